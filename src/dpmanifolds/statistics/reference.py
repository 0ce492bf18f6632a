"""A public ball from a public reference sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import to_numpy
from dpmanifolds._validate import number_between
from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.prepare import record_array
from dpmanifolds.statistics.mean import frechet_mean

__all__ = ["ball_from_reference"]


def ball_from_reference(manifold: Manifold, public_points: Any, *, coverage: float = 1.0, margin: float = 0.1) -> Ball:
    """The ball around the mean of a PUBLIC sample that holds the share `coverage` of it, widened by `margin`.

    The sample must be public: an atlas, a published study, simulated data, people who are not in the private
    records. A ball computed from the private records themselves leaks them.

    >>> import numpy as np
    >>> from dpmanifolds import Sphere, ball_from_reference
    >>> tilts = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0], [1.0, 0.0, 0.1], [1.0, 0.0, -0.1]])
    >>> public = Sphere(2).project(tilts)
    >>> round(ball_from_reference(Sphere(2), public).radius, 4)
    0.1096
    """
    coverage = number_between("coverage", coverage, 0.0, 1.0)
    margin = number_between("margin", margin, 0.0, 10.0)
    sample = record_array(manifold, public_points)
    center = frechet_mean(manifold, sample).point
    distances = np.sort(to_numpy(manifold.dist(center, sample)))
    reach = distances[min(len(distances) - 1, int(np.ceil(coverage * len(distances))) - 1)]
    return Ball(manifold, center, float(reach) * (1 + margin))
