"""The second moment (1/n)Σ x xᵀ of clipped vectors, and how far one record moves it.

>>> import numpy as np
>>> from dpmanifolds.estimators.second_moment import second_moment
>>> second_moment(np.array([[3.0, 0.0], [0.0, 1.0]]), clip_norm=1.0).round(6).tolist()
[[0.5, 0.0], [0.0, 0.5]]

Replacing a record replaces one term vvᵀ by wwᵀ. Their difference has rank two and trace |v|² − |w|²:

    ‖vvᵀ − wwᵀ‖²_F = |v|⁴ + |w|⁴ − 2(v·w)² ≤ 2C⁴  (C⁴ in one dimension),   ‖vvᵀ − wwᵀ‖_* ≤ |v|² + |w|² ≤ 2C²,

both attained by orthogonal v and w of length C: √2·C²/n in Frobenius norm, 2C²/n in nuclear norm (the sum of the
absolute eigenvalues). Noise for the first is the Gaussian or the ℓ2-Laplace; noise for the second is the difference of
two Wishart matrices (`_wishart.py`), which under a pure ε has √(2(d+1))·C²/(nε) where the ℓ2-Laplace has d/√2·C²/(nε).
Proofs: docs/proofs/second_moment.md.

A person with several vectors has one term A = (1/m)Σ v vᵀ, positive semidefinite with tr A ≤ C². For two such terms
‖A − B‖²_F = ‖A‖² + ‖B‖² − 2⟨A, B⟩ ≤ 2C⁴, as ⟨A, B⟩ ≥ 0, and ‖A − B‖_* ≤ tr A + tr B ≤ 2C²: the same bounds hold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.estimators._wishart import WishartDifference
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.manifolds._symmetric import upper_triangle
from dpmanifolds.mechanisms import Mechanism, offered, value_facts
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, affordable_epsilon
from dpmanifolds.releases import Release, privatize
from dpmanifolds.releases.entry import open_account
from dpmanifolds.statistics.blocks import total_of
from dpmanifolds.statistics.persons import Persons

__all__ = [
    "nuclear_sensitivity_of_second_moment",
    "private_second_moment",
    "second_moment",
    "sensitivity_of_second_moment",
]

_BLOCK = 4096
_EPS = 2.0**-52
# what clipping in floating point leaves of |v| ≤ C
_SLACK = 2.0**-40
_LARGEST_WISHART = 1000


def second_moment(vectors: np.ndarray, clip_norm: float, persons: Persons | None = None) -> np.ndarray:
    """(1/n)Σ v vᵀ of vectors clipped to this length, added up in blocks of a fixed size and these as a tree.

    With `persons` n is their number, and each has one term, the second moment of their own vectors.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    clipped = vectors * np.minimum(1.0, clip_norm * (1 - _SLACK) / np.maximum(lengths, 1e-300))
    count = len(clipped)
    if persons is not None:
        count = persons.count
        clipped /= np.sqrt(persons.sizes[persons.numbers])[:, None]
    blocks = (clipped[start : start + _BLOCK] for start in range(0, len(clipped), _BLOCK))
    total = total_of((block.T @ block for block in blocks), np.add)
    return np.asarray((total + total.T) / (2 * count))


def _summation(clip_norm: float) -> float:
    """What rounding in sums of blocks can move the matrix by, in Frobenius norm, between neighbours.

    A number passes through the sum of a block and a tree of fewer than 64 sums, however many records there are: with
    persons, that is not public.
    """
    return 2 * (_BLOCK + 64) * _EPS * clip_norm * clip_norm


def sensitivity_of_second_moment(clip_norm: float, n: int, dim: int, *, rounding: float = 0.0) -> Sensitivity:
    """How far (1/n)Σ v_i v_iᵀ moves in Frobenius norm between neighbours with |v_i| ≤ C: √2·C²/n, or C²/n for dim 1.

    `rounding` e: the v_i of unchanged records may differ by e, each of which moves the matrix by 2Ce/n. Sums of blocks
    of 4096 records, as a tree, add (4096 + 64)·eps·C² on either side.

    >>> round(float(sensitivity_of_second_moment(2.0, 1000, 3)), 6)
    0.005657
    """
    exact = clip_norm * clip_norm * (math.sqrt(2) if dim > 1 else 1.0) / n
    return Sensitivity(
        exact * (1 + 4 * _SLACK) + _summation(clip_norm) + 2 * clip_norm * rounding,
        "second moment of clipped vectors",
        "P",
        "√2·C²/n in Frobenius norm (C²/n in one dimension) for vectors of length at most C",
    )


def nuclear_sensitivity_of_second_moment(clip_norm: float, n: int, dim: int) -> Sensitivity:
    """The same in nuclear norm, 2C²/n; rounding in the sums counts √dim times.

    >>> round(float(nuclear_sensitivity_of_second_moment(2.0, 1000, 3)), 6)
    0.008
    """
    exact = 2 * clip_norm * clip_norm / n
    return Sensitivity(
        exact * (1 + 4 * _SLACK) + math.sqrt(dim) * _summation(clip_norm),
        "second moment of clipped vectors",
        "P",
        "2·C²/n in nuclear norm for vectors of length at most C",
    )


def private_second_moment(
    vectors: np.ndarray,
    clip_norm: float,
    budget: Budget,
    *,
    persons: Persons | None = None,
    unit: str,
    ledger: Any,
    dataset: str | None,
    rng: Any,
) -> Release:
    """(1/n)Σ v vᵀ as orthonormal coordinates of the upper triangle, by whichever noise is smallest off the diagonal.

    The Gaussian, the ℓ2-Laplace, or the difference of two Wishart matrices (up to 1000 columns); public numbers decide.
    With `persons`, n is their number and each has one term.
    """
    count, dim = len(vectors) if persons is None else persons.count, vectors.shape[1]
    ball = Ball(plane := Euclidean(dim * (dim + 1) // 2), np.zeros(plane.dim), clip_norm**2)
    moved = sensitivity_of_second_moment(clip_norm, count, dim)
    isotropic = min(offered(value_facts(ball, moved, unit=unit), budget), key=_spread)
    wishart = _WishartPlan(clip_norm, count, dim, affordable_epsilon(budget)) if dim <= _LARGEST_WISHART else None
    matrix = second_moment(vectors, clip_norm, persons)
    if wishart is None or _spread(isotropic) <= wishart.spread:
        terms: dict[str, Any] = {"unit": unit, "ledger": ledger, "dataset": dataset, "rng": rng}
        name, numerics = isotropic.name, isotropic.numerics
        return privatize(
            upper_triangle(matrix),
            ball,
            moved,
            budget,
            mechanism=name,
            numerics=numerics,
            statistic="second moment",
            **terms,
        )
    account = open_account(ledger, dataset, rng)
    guarantee = wishart.guarantee(unit)
    account.spend("second moment", guarantee, mechanism="wishart-difference", numerics="rounded", domain=repr(ball))
    return wishart.release(matrix, ball, budget, guarantee, account.rng)


def _spread(mechanism: Mechanism) -> float:
    """The standard deviation of an entry off the diagonal: a coordinate divided by √2."""
    dim = mechanism.facts.domain.manifold.dim
    return mechanism.scale * math.sqrt((dim + 1 if "laplace" in mechanism.name else 1) / 2)


class _WishartPlan:
    """Lattice and scale of the difference of two Wishart matrices: public numbers.

    Rounding to gZ moves entries of a difference by at most g: by d·g in Frobenius norm, d^{3/2}·g in nuclear norm.
    """

    def __init__(self, clip_norm: float, n: int, dim: int, epsilon: float) -> None:
        self.sensitivity = nuclear_sensitivity_of_second_moment(clip_norm, n, dim)
        moved = float(self.sensitivity)
        # fine enough to cost a millionth, coarse enough for the matrix and the noise to fit 64-bit integers
        coarsest = max(2.0**-56 * dim * moved / epsilon, 2.0**-60 * clip_norm**2)
        self.step = 2.0 ** max(math.floor(math.log2(2.0**-20 * moved / dim**1.5)), math.ceil(math.log2(coarsest)))
        self._steps = (moved / self.step + dim**1.5) * (1 + 2.0**-50)
        self.noise = WishartDifference(dim, self._steps / epsilon * (1 + 2.0**-46))

    @property
    def spread(self) -> float:
        return self.noise.spread * self.step

    def guarantee(self, unit: str) -> Guarantee:
        return Guarantee.pure(self.noise.epsilon(self._steps), unit=unit)

    def release(self, matrix: np.ndarray, ball: Ball, budget: Budget, guarantee: Guarantee, rng: Any) -> Release:
        from dpmanifolds import __version__

        noisy = self.noise.release(np.rint(matrix / self.step).astype(np.int64), rng) * self.step
        coordinates = upper_triangle(noisy)
        return Release(
            statistic="second moment",
            value=coordinates,
            coordinates=coordinates,
            guarantee=guarantee,
            budget=budget,
            mechanism="wishart-difference",
            theorem="nuclear sensitivity over the scale of two Wishart matrices (docs/proofs/second_moment.md, P3)",
            numerics="rounded",
            sensitivity=self.sensitivity,
            scale=float(self.noise.scale) * self.step,
            step=self.step,
            n=None,
            domain=ball,
            expected_error=None,
            reason="smaller off the diagonal than noise of the same size in every direction",
            reproducible=rng is not None,
            version=__version__,
        )
