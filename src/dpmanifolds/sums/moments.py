"""Noise for exact sums of squares Σ zzᵀ: how far one record moves them, in whole steps, and which law errs least.

>>> from dpmanifolds import GaussianDP, PureDP
>>> noise = moment_noise(10, PureDP(1.0), "person")
>>> type(noise.law).__name__, noise.moved == 2 * 4**noise.exponent
('WishartDifference', True)
>>> type(moment_noise(10, GaussianDP(1.0), "person").law).__name__
'SymmetricGaussian'

Every record, or person, has a positive semidefinite matrix of integers with a trace of at most T = 4^exponent, checked
exactly (`sums.outer`). Two of them are at most √2·T apart in Frobenius norm, as their inner product is not negative, T
in one dimension, and 2T in nuclear norm; one that is added or removed moves the sum by T in either norm. Where the
number of records is protected it is counted along, c₀ for every record: √(T² + c₀²) and T + c₀
(docs/proofs/second_moment.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.noise.symmetric import SymmetricGaussian, SymmetricLaplace, WishartDifference
from dpmanifolds.privacy import Budget, Guarantee, affordable_epsilon, affordable_mu
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.mechanism import root_up
from dpmanifolds.sums.outer import OuterContribution, finest_factor_exponent

__all__ = ["MomentNoise", "TangentSquareContribution", "frobenius_steps", "moment_noise", "nuclear_steps"]

_LARGEST_WISHART = 1000
_GUESS = 0.2
"""The Frobenius norm of the second moment over R² that c₀ is chosen for; the promise does not depend on it."""


@dataclass(frozen=True, eq=False)
class TangentSquareContribution(OuterContribution):
    """v vᵀ/radius² for v = log at a public point, shortened to the public radius."""

    view: AtPoint
    radius: float
    exponent: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.view.manifold.dim, self.view.manifold.dim

    @property
    def exponents(self) -> tuple[int, int]:  # type: ignore[override]
        return self.exponent, self.exponent

    @property
    def filler(self) -> Array | None:
        return self.view.filler

    def form(self, block: Any) -> Array:
        return self.view.form(block)

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        seen, broken = self.view.seen(block)
        with np.errstate(all="ignore"):
            rows = seen / self.radius
        return rows, rows, broken


def frobenius_steps(dim: int, trace: int, weight: int | None = None) -> int:
    """How far one record moves Σzzᵀ with tr zzᵀ ≤ trace in Frobenius norm, rounded up; `weight` c₀: added or removed.

    >>> frobenius_steps(3, 100), frobenius_steps(1, 100), frobenius_steps(3, 100, weight=50)
    (142, 100, 112)
    """
    if weight is not None:
        return root_up(trace * trace + weight * weight)
    return trace if dim == 1 else root_up(2 * trace * trace)


def nuclear_steps(dim: int, trace: int, weight: int | None = None) -> int:
    """The same in nuclear norm, with |c₀| added.

    >>> nuclear_steps(3, 100), nuclear_steps(1, 100), nuclear_steps(3, 100, weight=50)
    (200, 100, 150)
    """
    if weight is not None:
        return trace + weight
    return trace if dim == 1 else 2 * trace


@dataclass(frozen=True)
class MomentNoise:
    """A law of noise on Σzzᵀ, calibrated to a budget; the number of records plays no part in it."""

    law: SymmetricGaussian | SymmetricLaplace | WishartDifference
    moved: int
    """How far neighbours are apart, in steps, in the norm of the law."""
    exponent: int
    guarantee: Guarantee
    weight: int | None = None
    """c₀, where the number of records is counted."""

    @property
    def is_nuclear(self) -> bool:
        """Whether the law is made for the nuclear norm; else for that of Frobenius."""
        return isinstance(self.law, WishartDifference)

    @property
    def is_gaussian(self) -> bool:
        return isinstance(self.law, SymmetricGaussian)

    @property
    def mechanism(self) -> str:
        """What a release calls it."""
        if self.is_nuclear:
            return "wishart-difference"
        return "wrapped-gaussian" if self.is_gaussian else "wrapped-laplace"

    @property
    def steps(self) -> int:
        """The squared radius in steps."""
        return 1 << 2 * self.exponent

    @property
    def spread(self) -> float:
        """The standard deviation of an entry off the diagonal, over what one record adds."""
        return self.law.spread / self.steps

    def draw(self, total: Sequence[int], rows: int, rng: Any = None) -> tuple[np.ndarray, float | None]:
        """The noisy matrix in whole steps, and the noisy number of records. Each call spends the guarantee once."""
        dim = self.law.dim
        matrix = np.array([*total], dtype=object).reshape(dim, dim)
        if self.weight is None:
            return self.law.release(matrix, rng), None
        counted = self.weight * rows
        if isinstance(self.law, WishartDifference):
            noisy = self.law.release(matrix, rng)
            # the same law in one dimension, Laplace noise: losses of independent noise add up
            count = WishartDifference(1, self.law.scale).release(np.array([[counted]], dtype=object), rng)[0, 0]
        else:
            noisy, (count,) = self.law.release_with(matrix, [counted], rng)
        return noisy, max(1.0, count / self.weight)


def moment_noise(dim: int, budget: Budget, unit: str, *, adjacency: str = "replace-one") -> MomentNoise:
    """The law with the smallest standard deviation off the diagonal among those that keep the budget.

    The Gaussian, the Laplace in Frobenius norm, or (up to 1000 columns) the difference of two Wishart matrices.
    """
    exponent = finest_factor_exponent(dim)
    trace = 1 << 2 * exponent
    labels = {"unit": unit, "adjacency": adjacency}
    counted = adjacency == "add-remove-one"
    found, refusal = [], NotAvailableError(f"no noise for a second moment keeps {budget!r}.")
    try:
        mu = affordable_mu(budget)
        weight = _weight(dim, trace, nuclear=False) if counted else None
        moved = frobenius_steps(dim, trace, weight)
        gaussian = SymmetricGaussian(dim, _scale(moved, mu), int(counted))
        found.append(MomentNoise(gaussian, moved, exponent, Guarantee.gaussian(mu, **labels), weight))
    except NotAvailableError as reason:
        refusal = reason
    for kind in _pure_kinds(dim, counted):
        line = dim == 1 and not counted
        epsilon = affordable_epsilon(budget, on_the_line=line)
        nuclear = kind is WishartDifference
        weight = _weight(dim, trace, nuclear=nuclear) if counted else None
        moved = (nuclear_steps if nuclear else frobenius_steps)(dim, trace, weight)
        promise = Guarantee.laplace if line else Guarantee.pure
        found.append(
            MomentNoise(kind(dim, _scale(moved, epsilon)), moved, exponent, promise(epsilon, **labels), weight)
        )
    if not found:
        raise refusal
    return min(found, key=lambda noise: noise.spread)


def _pure_kinds(dim: int, counted: bool) -> list[Any]:
    laplace = partial(SymmetricLaplace, others=int(counted))
    return [laplace, WishartDifference] if 1 < dim <= _LARGEST_WISHART else [laplace]


def _scale(moved: int, parameter: float) -> Fraction:
    """Exactly so much that moved/scale is the parameter."""
    return Fraction(moved) / Fraction(parameter)


def _weight(dim: int, trace: int, *, nuclear: bool) -> int:
    """c₀ with the smallest error of M = Σ/n for ‖M‖_F = 0.2·T, as `SumShape.weight` has it for vectors.

    With c = c₀/T the squared error grows as (1 + c²)(D + m²/c²), D = d(d+1)/2, in Frobenius norm, and as
    (1 + c)²(V + 2m²/c²), V = d(d+1)²/2, in nuclear norm: c = (m²/D)^¼ and (2m²/V)^⅓.
    """
    if nuclear:
        share = math.cbrt(4 * _GUESS**2 / (dim * (dim + 1) ** 2))
    else:
        share = math.sqrt(_GUESS * math.sqrt(2 / (dim * (dim + 1))))
    return max(1, round(trace * share))
