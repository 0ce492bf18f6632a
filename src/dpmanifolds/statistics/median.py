"""The Fréchet median: the point with the smallest mean distance to the records. Not private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmanifolds._arrays import Array, curvature_factor, eps, eye, namespace, norm, safe_divide
from dpmanifolds._points import records_at
from dpmanifolds._validate import hide_records, positive_number
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.linearization import certificate_step, outer_sum, weighted_sum
from dpmanifolds.records.blocks import check_block, record_array, record_weights
from dpmanifolds.records.source import ArraySource
from dpmanifolds.statistics.mean import MeanResult, frechet_mean

_MOST_PASSES = 200


@dataclass
class _View:
    """What one pass sees from a base: sums over records, those at the base itself kept apart."""

    value: float
    """Σ w ρ."""
    pull: Array
    """Σ w u over records away from the base, u = unit log in coordinates: minus the gradient."""
    resting: float
    """Σ w over records at the base."""
    nearness: float
    """Σ w/ρ over the others."""
    bend: Array
    """Σ w c (I − uuᵀ)/ρ: the Hessian, up to curvature where that is not constant."""
    grip: Array
    """Σ w (I − uuᵀ)/(2(ρ + δ₀)), of the certificate."""
    farthest: float
    nearest: float
    nearest_record: int

    def plus(self, other: _View) -> _View:
        """What two blocks together see."""
        nearer = min(self, other, key=lambda view: view.nearest)
        return _View(
            value=self.value + other.value,
            pull=self.pull + other.pull,
            resting=self.resting + other.resting,
            nearness=self.nearness + other.nearness,
            bend=self.bend + other.bend,
            grip=self.grip + other.grip,
            farthest=max(self.farthest, other.farthest),
            nearest=nearer.nearest,
            nearest_record=nearer.nearest_record,
        )

    @property
    def gradient(self) -> float:
        """Length of the smallest subgradient."""
        return max(0.0, float(norm(self.pull)) - self.resting)


@hide_records()
def frechet_median(
    manifold: Manifold, points: Any, *, sample_weight: Any = None, tolerance: float | None = None
) -> MeanResult:
    """argmin_x Σ w_i ρ(x, x_i), by Newton steps guarded by Weiszfeld's. Not private: this is the bare median.

    A median that coincides with a record is recognised by its subgradient (Vardi–Zhang): there the unit pulls of the
    other records together do not exceed the record's own weight. `error_bound` on Hadamard manifolds: by comparison
    F(exp_x v) ≥ Σ w|v − log_x x_i|, and |v − a| ≥ |a| − ⟨u,v⟩ + (|v|² − ⟨u,v⟩²)/(2(|a| + |v|)), so no point farther
    than δ ≤ δ₀ is better when δ·λ_min(Σ w (I − uuᵀ)/(2(ρ_i + δ₀))) exceeds the gradient. Elsewhere it is infinite.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean, frechet_median
    >>> result = frechet_median(Euclidean(1), np.array([[0.0], [1.0], [50.0]]))
    >>> float(result.point[0])
    1.0
    """
    array = record_array(manifold, points)
    count = manifold.batch_shape(array)[0]
    weights = record_weights(sample_weight, array, count)
    limit = positive_number("tolerance", tolerance) if tolerance is not None else None
    if limit is None:
        limit = 1e-10 if eps(weights) < 1e-10 else 1e-5
    start = frechet_mean(manifold, array, sample_weight=sample_weight, tolerance=1e-2)
    base, passes = start.point, start.passes + 1
    here = _look(manifold, base, array, weights)
    visited: set[int] = set()
    stalled = 0
    while here.gradient > limit and stalled < 3:
        if here.nearest_record not in visited and here.nearest < 0.1 * here.value:
            # close to a record: is that record itself the median?
            visited.add(here.nearest_record)
            record = records_at(array, here.nearest_record)
            there = _look(manifold, record, array, weights)
            passes += 1
            if there.gradient == 0:
                base, here = record, there
                break
        base, there, used = _step(manifold, base, here, array, weights)
        passes += used
        stalled = stalled + 1 if there.gradient > 0.9 * here.gradient and there.value >= here.value else 0
        here = there
        if passes > _MOST_PASSES:
            raise ConvergenceError(
                f"the median did not converge in {passes} passes: the records may be spread too far apart for it to "
                "be unique. Clip them to a ball first, or loosen the tolerance."
            )
    bound, is_global = _certificate(manifold, here)
    return MeanResult(base, here.gradient, bound, passes, here.gradient <= limit, is_global)


def _step(manifold: Manifold, base: Array, here: _View, points: Array, weights: Array) -> tuple[Array, _View, int]:
    """A Newton step if it lowers the objective or the gradient, else Weiszfeld's, which always lowers it."""
    slack = 64 * eps(here.pull) * here.value
    size = float(norm(here.pull))
    share = max(0.0, 1 - here.resting / size)
    weiszfeld = here.pull * (share / here.nearness)
    newton = _solve(here.bend, here.pull * share, weiszfeld)
    looks = 0
    for step in (newton, weiszfeld, weiszfeld / 4, weiszfeld / 64):
        candidate = manifold.exp(base, manifold.from_coordinates(base, step))
        there = _look(manifold, candidate, points, weights)
        looks += 1
        if there.value < here.value - slack or (there.value <= here.value + slack and there.gradient < here.gradient):
            break
    return candidate, there, looks


def _solve(matrix: Array, right: Array, fallback: Array) -> Array:
    """matrix⁻¹·right where the matrix is safely positive and the step not wild, else the fallback."""
    xp = namespace(matrix)
    values, vectors = xp.linalg.eigh(matrix)
    if not float(values[0]) > 1e-6 * float(values[-1]):
        return fallback
    step = vectors @ ((right @ vectors) / values)
    return step if float(norm(step)) <= 20 * float(norm(fallback)) else fallback


def _look(manifold: Manifold, base: Array, points: Array, weights: Array) -> _View:
    """One pass over the records."""
    reach = certificate_step(manifold, weights)

    def block_view(_: int, first: int, block: Array) -> _View:
        check_block(manifold, block)
        own = weights[first : first + manifold.batch_shape(block)[0]]
        view = _view(manifold, base, block, own, reach)
        view.nearest_record += first
        return view

    return ArraySource(points).reduce(block_view, _View.plus)


def _view(manifold: Manifold, base: Array, block: Array, weights: Array, reach: float) -> _View:
    coordinates = manifold.to_coordinates(base, manifold.log(base, block))
    xp = namespace(coordinates)
    distance = norm(coordinates)
    away = distance > 64 * eps(distance)
    directions = safe_divide(coordinates, distance[..., None])
    weight = xp.where(away, weights, xp.zeros_like(weights))
    pulls = safe_divide(weight, distance)
    grip = weight / (2 * (distance + reach))
    lower, upper = manifold.curvature_bounds
    across = curvature_factor(upper if lower == upper else 0.0, distance)
    where_nearest = xp.argmin(xp.where(away, distance, xp.full_like(distance, math.inf)))
    return _View(
        value=float(xp.sum(weights * distance)),
        pull=weighted_sum(directions, weight),
        resting=float(xp.sum(weights - weight)),
        nearness=float(xp.sum(pulls)),
        bend=_across(directions, pulls * across),
        grip=_across(directions, grip),
        farthest=float(xp.max(distance)),
        nearest=float(distance[where_nearest]),
        nearest_record=int(where_nearest),
    )


def _across(directions: Array, weights: Array) -> Array:
    """Σ w (I − uuᵀ)."""
    xp = namespace(directions)
    return xp.sum(weights) * eye(directions.shape[-1], directions) - outer_sum(directions, weights)


def _certificate(manifold: Manifold, here: _View) -> tuple[float, bool]:
    """The error bound, and whether the minimum is known to be global."""
    rounding = 64 * eps(here.pull) * math.sqrt(here.pull.shape[-1])
    reach = certificate_step(manifold, here.pull)
    if manifold.is_hadamard:
        if here.resting > 0 and float(norm(here.pull)) + rounding <= here.resting:
            return 0.0, True
        grip = float(namespace(here.grip).linalg.eigvalsh(here.grip)[0])
        bound = (here.gradient + rounding) / grip if grip > 0 else math.inf
        return (bound if bound <= reach else math.inf), True
    upper = manifold.curvature_bounds[1]
    conjugate = math.pi / (2 * math.sqrt(upper)) if upper > 0 else math.inf
    return math.inf, here.farthest + reach < min(manifold.injectivity_radius, conjugate) / 2
