"""A place on each kind of manifold that pages have a picture for, and one without."""

from __future__ import annotations

import numpy as np

import dpmanifolds as dpm

_SHAPES = dpm.PlanarShapes(5)
PLACES = {
    "S2": (dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0),
    "SPD": (dpm.SPD(2), np.eye(2), 2.0),
    "shapes": (_SHAPES, _SHAPES.random_point(rng=0), 0.6),
    "H2": (dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.5),
    "plane": (dpm.Euclidean(2), np.zeros(2), 2.0),
}
"""Manifold, centre and radius of a ball, by a short name."""
