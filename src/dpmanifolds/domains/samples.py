"""Public points and public samples, checked: what domains are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import map_parts
from dpmanifolds._validate import hide_records
from dpmanifolds.errors import ArgumentError, NotOnManifoldError, RadiusTooLargeError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.manifolds.base import check_manifold

_MOST_STEPS = 500
_SHORTEST_STEP = 1e-12


def check_center(manifold: Manifold, center: Any) -> Array:
    """One point of a manifold that has balls, or an error that says what is wrong."""
    check_manifold(manifold)
    point = manifold.as_points(center, "center")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(
            f"must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}.", argument="center"
        )
    if not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"center does not lie on {manifold!r}; use manifold.project to put it there.")
    _refuse_optimisation_only(manifold)
    return point


def check_sample(manifold: Manifold, sample: Any, *, at_least: int = 1, argument: str = "sample") -> Array:
    """Points (m, *point_shape) of a manifold that has balls, m ≥ `at_least`, or an error that says what is wrong."""
    check_manifold(manifold)
    _refuse_optimisation_only(manifold)
    points = manifold.as_points(sample, argument)
    shape = manifold.batch_shape(points)
    if len(shape) != 1 or shape[0] < at_least:
        needed = "one point" if at_least == 1 else f"{at_least} points"
        raise ArgumentError(f"must have one leading axis, of at least {needed}; got {shape}.", argument=argument)
    rule = manifold.first_broken_rule(points)
    if rule is not None:
        raise NotOnManifoldError(f"must lie on {manifold!r}: {rule}.", argument=argument)
    return points


def _refuse_optimisation_only(manifold: Manifold) -> None:
    if manifold.max_radius == 0:
        raise RadiusTooLargeError(f"{manifold!r} is for optimisation only: no ball of it has a proven mean.")


@hide_records()
def mean_of_sample(manifold: Manifold, points: Array) -> Array:
    """The Fréchet mean by steps along the mean logarithm, halved where they do not bring the points closer."""
    center, step = map_parts(lambda part: part[0, ...], points), 1.0
    with np.errstate(all="ignore"):
        logs = to_numpy(manifold.log_coordinates(center, points))
        for _ in range(_MOST_STEPS):
            pull = np.mean(logs, axis=0)
            following = manifold.exp_coordinates(center, step * pull)
            there = to_numpy(manifold.log_coordinates(following, points))
            if np.sum(there * there) < np.sum(logs * logs):
                center, logs, step = following, there, min(1.0, 2 * step)
            else:
                step /= 2
            if step * np.linalg.norm(pull) <= _SHORTEST_STEP * (1 + np.max(np.abs(logs))):
                break
    return center
