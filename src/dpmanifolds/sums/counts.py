"""Private counts: every record, or person, is a point of a simplex, and integer noise is added to the sum.

>>> import numpy as np
>>> from dpmanifolds import Euclidean, PureDP
>>> from dpmanifolds.sums.total import read_records
>>> ages = read_records(Euclidean(1), np.array([[1.0], [3.0], [8.0]]))
>>> bins = DistanceBins(Euclidean(1), np.zeros(1), edges=np.array([2.0, 4.0, 16.0]))
>>> ages.total(bins).integers
[1, 1, 1]
>>> round(counts_noise(3, PureDP(1.0), "record").guarantee.as_pure().epsilon, 12)
1.0

The integers of a record are not negative and add up to at most one unit: two such vectors differ by at most 2 units in
ℓ1 and √2 in ℓ2 (docs/proofs/sums.md). A unit is 1 for records; for persons, whose records may lie in several bins, 2²⁰.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace
from dpmanifolds.domains.axes import Axes
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.noise import LatticeLaplace, RoundedGaussian
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, affordable_epsilon, affordable_mu
from dpmanifolds.sums.contribution import AtPoint, TangentContribution, like_integers
from dpmanifolds.sums.rounding import finest_exponent

_UP = 1 + 2.0**-49
_LARGEST = 1 << 62
PERSON_UNIT = 1 << 20


def simplex_fits(whole: Array, unit: int) -> Array:
    """Whether the integers of each column are not negative and add up to at most `unit`, in exact arithmetic."""
    xp = namespace(whole)
    return xp.all(whole >= 0, axis=0) & (xp.sum(whole, axis=0) <= unit)


@dataclass(frozen=True, eq=False)
class DistanceBins(AtPoint):
    """Which bin [0, e₁], (e₁, e₂], … the distance to the base lies in; beyond the last, and lost, in the last.

    With `axes` it is the size of the ellipsoid of these axes that a record lies on the edge of (`Axes.gauge`).
    """

    edges: np.ndarray | None = None
    unit: int = 1
    axes: Axes | None = None

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self._edges)

    @property
    def bound(self) -> int:
        return self.unit

    @property
    def _edges(self) -> np.ndarray:
        return np.empty(0) if self.edges is None else self.edges

    def fits(self, whole: Array) -> Array:
        return simplex_fits(whole, self.unit)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.seen(block)
        xp = namespace(rows)
        with np.errstate(all="ignore"):
            distance = xp.sqrt(xp.sum(rows * rows, axis=-1)) if self.axes is None else self.axes.gauge(rows)
            below = distance[None, :] <= like(self._edges, rows)[:, None]
        return self._cells(below), broken

    def _cells(self, below: Array) -> Array:
        """One-hot columns (edges, n) for whether a record is within each edge."""
        xp = namespace(below)
        whole = xp.astype(below, xp.int64)
        # 1 from the bin of the record on; the last bin holds whatever is left
        whole = xp.concat([whole[:-1, :], xp.ones_like(whole[-1:, :])], axis=0)
        first = xp.concat([whole[:1, :], whole[1:, :] - whole[:-1, :]], axis=0) * self.unit
        return first * xp.astype(self.fits(first), xp.int64)

    def integers_on_device(self, block: Array) -> tuple[Array, Array] | None:
        """By the kernel of tangent coordinates: squares of their integers, in units of the last edge, are exact."""
        if self.axes is not None:
            return None
        reach, exponent = float(self._edges[-1]), finest_exponent(self.manifold.dim)
        seen = TangentContribution(self.manifold, self.base, self.substitute, radius=reach, exponent=exponent)
        found = seen.integers_on_device(block)
        if found is None:
            return None
        whole, broken = found
        xp = namespace(whole)
        limits = np.floor((self._edges / reach) ** 2 * 4.0**exponent).astype(np.int64)
        squares = xp.sum(whole * whole, axis=0)
        below = squares[None, :] <= like_integers(limits, squares)[:, None]
        return self._cells(below & (broken == 0)[None, :]), broken


@dataclass(frozen=True)
class CountsNoise:
    """Integer noise for sums of points of a simplex, in units."""

    law: LatticeLaplace | RoundedGaussian
    guarantee: Guarantee
    part: Budget
    unit: int
    sensitivity: Sensitivity
    """Of the counts, in the norm that the noise is made for."""

    @property
    def is_gaussian(self) -> bool:
        """Else the discrete Laplace."""
        return isinstance(self.law, RoundedGaussian)

    @property
    def deviation(self) -> float:
        """Standard deviation of one noisy count."""
        sigma = float(self.law.sigma) / self.unit
        return sigma if self.is_gaussian else math.sqrt(2) * sigma

    def draw(self, total: Sequence[int], rng: Any = None) -> np.ndarray:
        """The noisy counts, which may be negative. Each call spends the guarantee once.

        Sums beyond 2⁶² are cut there first, which brings no two of them farther apart.
        """
        cut = [max(-_LARGEST, min(_LARGEST, number)) for number in total]
        return np.asarray(self.law.release(np.array(cut, dtype=np.int64), rng) / self.unit)


def counts_noise(
    cells: int,
    part: Budget,
    label: str,
    *,
    unit: int = 1,
    adjacency: str = "replace-one",
    gaussian_only: bool = False,
) -> CountsNoise:
    """The noise with the smaller deviation among those that keep this part of the budget; `label`: what a record is.

    A replaced record moves the counts by 2 in ℓ1 and √2 in ℓ2, one that is added or removed by 1.
    """
    replaced = adjacency == "replace-one"
    in_l1, in_l2 = (2.0, math.sqrt(2) * _UP) if replaced else (1.0, 1.0)
    labels = {"unit": label, "adjacency": adjacency}
    found = []
    epsilon = affordable_epsilon(part)
    laplace = LatticeLaplace(cells, in_l1 * unit / epsilon * _UP)
    if laplace.epsilon(in_l1 * unit) <= epsilon and not gaussian_only:
        moved = Sensitivity(in_l1, "counts", "P", "ℓ1: a record leaves one cell for another", adjacency)
        promise = Guarantee.discrete_laplace(round(in_l1 * unit), laplace.sigma, **labels)
        found.append(CountsNoise(laplace, promise, part, unit, moved))
    try:
        mu = affordable_mu(part)
        gaussian = RoundedGaussian(cells, in_l2 * unit / mu * _UP)
        moved = Sensitivity(in_l2, "counts", "P", "ℓ2: a record leaves one cell for another", adjacency)
        found.append(CountsNoise(gaussian, Guarantee.gaussian(mu, **labels), part, unit, moved))
    except NotAvailableError:
        pass
    if not found:
        raise NotAvailableError(f"no noise for counts keeps {part!r}.")
    return min(found, key=lambda noise: noise.deviation)
