"""Noise for exact sums of squares Σ zzᵀ: how far one record moves them, in whole steps, and which law errs least.

>>> from dpmanifolds import GaussianDP, PureDP
>>> noise = moment_noise(10, PureDP(1.0), "person")
>>> type(noise.law).__name__, noise.moved == 2 * 4**noise.exponent
('WishartDifference', True)
>>> type(moment_noise(10, GaussianDP(1.0), "person").law).__name__
'SymmetricGaussian'

Every record, or person, has a positive semidefinite matrix of integers with a trace of at most T = 4^exponent, checked
exactly (`sums.outer`). Two of them are at most √2·T apart in Frobenius norm, as their inner product is not negative, T
in one dimension, and 2T in nuclear norm; one that is added or removed moves the sum by T in either norm
(docs/proofs/second_moment.md). Where the number of records is protected, vectors have a constant coordinate, whose
square counts them (`sums.joint_moment`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import in_double
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.noise.symmetric import SymmetricGaussian, SymmetricLaplace, WishartDifference
from dpmanifolds.privacy import Budget, Guarantee, affordable_epsilon, affordable_mu
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.mechanism import root_up
from dpmanifolds.sums.outer import OuterContribution, finest_factor_exponent

_LARGEST_WISHART = 1000


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
        return in_double(self.view.form(block))

    def __call__(self, block: Array) -> tuple[Array, Array, Array]:
        seen, broken = self.view.seen(block)
        with np.errstate(all="ignore"):
            rows = seen / self.radius
        return rows, rows, broken


def frobenius_steps(dim: int, trace: int, *, replaced: bool = True) -> int:
    """How far one record moves Σzzᵀ with tr zzᵀ ≤ trace in Frobenius norm, rounded up; else it is added or removed.

    >>> frobenius_steps(3, 100), frobenius_steps(1, 100), frobenius_steps(3, 100, replaced=False)
    (142, 100, 100)
    """
    return root_up(2 * trace * trace) if replaced and dim > 1 else trace


def nuclear_steps(dim: int, trace: int, *, replaced: bool = True) -> int:
    """The same in nuclear norm.

    >>> nuclear_steps(3, 100), nuclear_steps(1, 100), nuclear_steps(3, 100, replaced=False)
    (200, 100, 100)
    """
    return 2 * trace if replaced and dim > 1 else trace


@dataclass(frozen=True)
class MomentNoise:
    """A law of noise on Σzzᵀ, calibrated to a budget; the number of records plays no part in it."""

    law: SymmetricGaussian | SymmetricLaplace | WishartDifference
    moved: int
    """How far neighbours are apart, in steps, in the norm of the law."""
    exponent: int
    guarantee: Guarantee

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

    def draw(self, total: Sequence[int], rng: Any = None) -> np.ndarray:
        """The noisy matrix in whole steps. Each call spends the guarantee once."""
        dim = self.law.dim
        return self.law.release(np.array([*total], dtype=object).reshape(dim, dim), rng)


def moment_noise(dim: int, budget: Budget, unit: str, *, adjacency: str = "replace-one") -> MomentNoise:
    """The law with the smallest standard deviation off the diagonal among those that keep the budget.

    The Gaussian, the Laplace in Frobenius norm, or (up to 1000 columns) the difference of two Wishart matrices.
    """
    exponent = finest_factor_exponent(dim)
    trace = 1 << 2 * exponent
    labels = {"unit": unit, "adjacency": adjacency}
    replaced = adjacency == "replace-one"
    found, refusal = [], NotAvailableError(f"no noise for a second moment keeps {budget!r}.")
    try:
        mu = affordable_mu(budget)
        moved = frobenius_steps(dim, trace, replaced=replaced)
        gaussian = SymmetricGaussian(dim, _scale(moved, mu))
        found.append(MomentNoise(gaussian, moved, exponent, Guarantee.gaussian(mu, **labels)))
    except NotAvailableError as reason:
        refusal = reason
    for kind in (SymmetricLaplace, WishartDifference) if 1 < dim <= _LARGEST_WISHART else (SymmetricLaplace,):
        line = dim == 1
        epsilon = affordable_epsilon(budget, on_the_line=line)
        steps_of = nuclear_steps if kind is WishartDifference else frobenius_steps
        moved = steps_of(dim, trace, replaced=replaced)
        promise = Guarantee.laplace if line else Guarantee.pure
        found.append(MomentNoise(kind(dim, _scale(moved, epsilon)), moved, exponent, promise(epsilon, **labels)))
    if not found:
        raise refusal
    return min(found, key=lambda noise: noise.spread)


def _scale(moved: int, parameter: float) -> Fraction:
    """Exactly so much that moved/σ is the parameter."""
    return Fraction(moved) / Fraction(parameter)
