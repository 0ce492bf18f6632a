"""How far a statistic moves, with everything that floating point adds, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.mechanisms.base import Facts
from dpmanifolds.privacy import (
    Sensitivity,
    sensitivity_of_flat_mean,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
    solver_tolerance,
)
from dpmanifolds.privacy.solver import coordinate_rounding

__all__ = ["mean_facts", "value_facts"]


def mean_facts(
    domain: Domain, n: int, dtype: Any = "float64", *, adjacency: str = "replace-one", unit: str = "person"
) -> Facts:
    """How far the Fréchet mean of n records of the domain moves, as computed in `dtype`.

    A ball counts by S1, S1w and S2; any other domain of a flat space by S1d, diameter/n. The solver's tolerance and
    the rounding of coordinates are public numbers and part of the sensitivity.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = mean_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8)
    0.00828427
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a Domain such as Ball, the public promise about records; got {domain!r}.")
    n = positive_integer("n", n)
    tolerance, rounding = solver_tolerance(domain, n, dtype), coordinate_rounding(domain, dtype)
    if not isinstance(domain, Ball):
        moved = sensitivity_of_flat_mean(domain, n, solver_tolerance=tolerance, rounding=rounding)
        return Facts(domain, moved, moved, adjacency=adjacency, unit=unit)
    ball = _as_contained(domain, dtype)
    gradient = sensitivity_of_mean_gradient(ball, n)
    return Facts(
        domain,
        sensitivity_of_mean_at_center(ball, n, solver_tolerance=tolerance, rounding=rounding),
        sensitivity_of_mean(ball, n, solver_tolerance=tolerance, rounding=rounding),
        replace(gradient, value=gradient.value + 2 * rounding),
        adjacency=adjacency,
        unit=unit,
    )


def _as_contained(ball: Ball, dtype: Any) -> Ball:
    """The ball that `Ball.contains` means in this precision: a hair larger in single precision."""
    precision = float(np.finfo(np.dtype(dtype)).eps)
    return ball if precision < 1e-10 else replace(ball, radius=ball.radius * (1 + 64 * precision))


def value_facts(
    domain: Domain, sensitivity: float | Sensitivity, *, adjacency: str = "replace-one", unit: str = "person"
) -> Facts:
    """A user's own statistic with values in the domain, that moves by at most `sensitivity` as a geodesic distance.

    log at the centre is 1-Lipschitz where the curvature is at most 0, and stretches by at most √κr/sin(√κr) on a
    ball of radius r where it is at most κ > 0 (Rauch), in tangent directions of geodesics that stay in the ball, which
    is convex.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = value_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0), 0.1)
    >>> round(float(facts.at_center), 6)
    0.11884
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a Domain such as Ball, the public promise about values; got {domain!r}.")
    if not isinstance(sensitivity, Sensitivity):
        number = positive_number("sensitivity", sensitivity)
        sensitivity = Sensitivity(number, "stated by the user", "stated", "a geodesic distance between neighbours")
    angle = math.sqrt(max(domain.manifold.curvature_bounds[1], 0.0)) * domain.radius
    stretch = angle / math.sin(angle) if angle > 1e-8 else 1.0
    rounding = 2 * coordinate_rounding(domain)
    at_center = replace(sensitivity, value=(sensitivity.value * stretch + rounding) * (1 + 2.0**-49))
    in_distance = replace(sensitivity, value=sensitivity.value + rounding)
    return Facts(domain, at_center, in_distance, adjacency=adjacency, unit=unit)
