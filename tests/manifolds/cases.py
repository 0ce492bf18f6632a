"""The manifolds that the law suite runs on."""

from __future__ import annotations

import numpy as np

from dpmanifolds import (
    SPD,
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    Product,
    SmoothMaps,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from tests.manifolds.cylinder import Cylinder

MANIFOLDS: list[Manifold] = [
    Euclidean(1),
    Euclidean(4),
    Sphere(1),
    Sphere(2),
    Sphere(10, curvature=0.5),
    Sphere(3, curvature=4.0),
    Hyperbolic(1),
    Hyperbolic(2),
    Hyperbolic(5, curvature=-0.25),
    Hyperbolic(3, curvature=-4.0),
    *(SPD(k, metric) for k in (1, 2, 3, 5) for metric in ("affine-invariant", "log-euclidean", "log-cholesky")),
    Correlation(2),
    Correlation(3),
    Correlation(5),
    PlanarShapes(3),
    PlanarShapes(4),
    PlanarShapes(9),
    Grassmann(2, 1),
    Grassmann(5, 1),
    Grassmann(5, 2),
    Grassmann(5, 4),
    Grassmann(6, 3),
    SpecialOrthogonal(2),
    SpecialOrthogonal(3),
    SpecialOrthogonal(4),
    SpecialOrthogonal(5),
    Stiefel(4, 1),
    Stiefel(5, 2),
    Stiefel(5, 4),
    Product(Sphere(2), SPD(2), Euclidean(3)),
    Product(Hyperbolic(2), SpecialOrthogonal(3)),
    Power(SPD(3), 4),
    Power(Sphere(2), 3),
    Power(SPD(2, "log-euclidean"), 2),
    SmoothMaps(SPD(2, "log-euclidean"), (3, 4), 2),
    SmoothMaps(Euclidean(1), (5,), 3),
    Cylinder(2.0),
]

SMOOTH = [manifold for manifold in MANIFOLDS if not isinstance(manifold, Stiefel)]


def tangent_of_length(manifold: Manifold, base, rng: np.random.Generator, length: float | None = None):
    """Tangent vectors with random directions and lengths up to 0.8 of the injectivity radius (at most 1.5)."""
    shape = manifold.batch_shape(base)
    coordinates = rng.standard_normal((*shape, manifold.dim))
    coordinates /= np.linalg.norm(coordinates, axis=-1, keepdims=True)
    largest = min(0.8 * manifold.injectivity_radius, 1.5)
    if isinstance(manifold, Stiefel):
        largest = 0.8
    if length is None:
        coordinates *= rng.uniform(0.05, largest, size=(*shape, 1))
    else:
        coordinates *= length
    return manifold.from_coordinates(base, coordinates)
