"""How far a statistic moves, with everything that floating point adds, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer, positive_number, shown
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import (
    Sensitivity,
)
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.statistics.solver_error import coordinate_rounding
from dpmanifolds.sums.mechanism import Facts, SumShape

__all__ = ["ADJACENCIES", "mean_facts", "value_facts"]


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
    >>> round(float(facts.at_center), 8)
    0.00785398
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
    precision = str(np.dtype(dtype)) if adjacency == "replace-one" and not labelled else None
    return Facts(domain, moved, adjacency=adjacency, unit=unit, shape=shape, precision=precision)


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
