"""How far a statistic moves, with everything that floating point adds, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, positive_number, shown
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.mechanisms.base import Facts, SumShape
from dpmanifolds.privacy import (
    Sensitivity,
    sensitivity_of_flat_mean,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
    solver_tolerance,
)
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.privacy.solver import coordinate_rounding

__all__ = ["ADJACENCIES", "frechet_facts", "mean_facts", "value_facts"]


def mean_facts(
    domain: Domain,
    n: int,
    dtype: Any = "float64",
    *,
    adjacency: str = "replace-one",
    unit: str = "record",
    labelled: bool = False,
) -> Facts:
    """How far the mean of n records moves in the tangent space of a public point: a sum of integers over n (B1).

    2r/n for neighbours that differ in one record, on every manifold, for every arithmetic. Where records may be added
    or removed, n is a public guess, and the number of records is counted along. `labelled`: one such sum for each
    class, and the class is protected. Mechanisms around the Fréchet mean itself have facts of their own, which are
    worked out when such a mechanism is asked for, as computed in `dtype`.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = mean_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8), round(float(facts.of_frechet_mean.at_center), 8)
    (0.00785398, 0.00828427)
    """
    if not isinstance(domain, Domain):
        raise ArgumentError(
            f"domain must be a Domain such as Ball, the public promise about records; got {shown(domain)}."
        )
    n = positive_integer("n", n)
    choice("adjacency", adjacency, ADJACENCIES)
    shape = SumShape(domain.manifold.dim, domain.radius, n, adjacency, labelled)
    finest = shape.finest
    moved = Sensitivity(
        shape.diameter(finest, gaussian=True) * shape.step(finest) * (1 + 2.0**-49),
        "B1",
        "P",
        "2r/n for a sum of integers" if adjacency == "replace-one" else "√(r² + c₀²)/n for a sum of integers",
        adjacency,
    )
    plain = adjacency == "replace-one" and not labelled
    frechet = partial(frechet_facts, domain, n, dtype, unit=unit) if plain else None
    return Facts(domain, moved, adjacency=adjacency, unit=unit, shape=shape, frechet=frechet)


def frechet_facts(domain: Domain, n: int, dtype: Any = "float64", *, unit: str = "record") -> Facts:
    """How far the Fréchet mean of n records of the domain moves, as computed in `dtype`.

    A ball counts by S1, S1w and S2; any other domain of a flat space by S1d, diameter/n. The solver's tolerance and
    the rounding of coordinates are public numbers and part of the sensitivity. `NotAvailableError` where the mean need
    not be unique, or no bound on the solver's error is known.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> facts = frechet_facts(Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), np.pi / 8), n=100)
    >>> round(float(facts.at_center), 8)
    0.00828427
    """
    if not domain.has_unique_mean:
        raise NotAvailableError(
            f"the Fréchet mean is unique for radii below {domain.manifold.max_radius:.6g} on {domain.manifold!r}; got "
            f"{domain.radius:.6g}. Leave the mechanism to 'auto', or use a smaller ball."
        )
    try:
        tolerance, rounding = solver_tolerance(domain, n, dtype), coordinate_rounding(domain, dtype)
        if not isinstance(domain, Ball):
            moved = sensitivity_of_flat_mean(domain, n, solver_tolerance=tolerance, rounding=rounding)
            return Facts(domain, moved, moved, unit=unit)
        ball = _as_contained(domain, dtype)
        gradient = sensitivity_of_mean_gradient(ball, n)
        return Facts(
            domain,
            sensitivity_of_mean_at_center(ball, n, solver_tolerance=tolerance, rounding=rounding),
            sensitivity_of_mean(ball, n, solver_tolerance=tolerance, rounding=rounding),
            replace(gradient, value=gradient.value + 2 * rounding),
            unit=unit,
        )
    except ArgumentError as reason:
        raise NotAvailableError(f"no bound on the rounding of the Fréchet mean is known here. {reason}") from None


def _as_contained(ball: Ball, dtype: Any) -> Ball:
    """The ball that `Ball.contains` means in this precision: a hair larger in single precision."""
    precision = float(np.finfo(np.dtype(dtype)).eps)
    return ball if precision < 1e-10 else replace(ball, radius=ball.radius * (1 + 64 * precision))


def value_facts(
    domain: Domain, sensitivity: float | Sensitivity, *, adjacency: str = "replace-one", unit: str = "record"
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
        raise ArgumentError(
            f"domain must be a Domain such as Ball, the public promise about values; got {shown(domain)}."
        )
    choice("adjacency", adjacency, ADJACENCIES)
    if not isinstance(sensitivity, Sensitivity):
        number, statement = positive_number("sensitivity", sensitivity), "a geodesic distance between neighbours"
        sensitivity = Sensitivity(number, "stated by the user", "stated", statement, adjacency)
    elif sensitivity.adjacency != adjacency:
        raise ArgumentError(
            f"this sensitivity holds for {sensitivity.adjacency!r} neighbours; got adjacency {adjacency!r}. State one "
            "that holds for these, as a number."
        )
    if not domain.has_unique_mean:
        raise NotAvailableError(
            f"how far a value moves at the centre is known for radii below {domain.manifold.max_radius:.6g} on "
            f"{domain.manifold!r}; got {domain.radius:.6g}. Use a smaller ball."
        )
    angle = math.sqrt(max(domain.manifold.curvature_bounds[1], 0.0)) * domain.radius
    stretch = angle / math.sin(angle) if angle > 1e-8 else 1.0
    rounding = 2 * coordinate_rounding(domain)
    at_center = replace(sensitivity, value=(sensitivity.value * stretch + rounding) * (1 + 2.0**-49))
    in_distance = replace(sensitivity, value=sensitivity.value + rounding)
    return Facts(domain, at_center, in_distance, adjacency=adjacency, unit=unit)
