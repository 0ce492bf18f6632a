"""Where the answer without privacy may be, as points to draw: post-processing of a release."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.releases import ConfidenceRegion, Release, confidence_region
from dpmanifolds.sums import point_at

__all__ = ["directions", "edge_of", "known_region", "middle_of_number", "noisy_coordinates", "reach_of"]


def known_region(release: Release, level: float) -> ConfidenceRegion | None:
    """The confidence region, or None where none is known or it is all of the domain."""
    try:
        region = confidence_region(release, level)
    except NotAvailableError:
        return None
    return region if math.isfinite(region.radius) else None


def directions(dim: int, count: int) -> np.ndarray:
    """Unit vectors (count, dim) that cover a sphere evenly: a circle in the plane, the same random ones above."""
    if dim == 2:
        angles = np.linspace(0.0, 2 * np.pi, count)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    draws = np.random.default_rng(0).standard_normal((count, dim))
    unit: np.ndarray = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return unit


def edge_of(region: ConfidenceRegion, count: int) -> Array:
    """Points on the edge of the region, as far as it lies in the domain."""
    release = region.release
    manifold, domain = release.manifold, release.domain
    steps = region.radius * directions(manifold.dim, count)
    if region.metric == "distance":
        return domain.clip(manifold.move(host(release.value), steps))
    if release.base is None:
        return point_at(domain, noisy_coordinates(release) + steps)
    return domain.clip(manifold.move(release.base, noisy_coordinates(release) + steps))


def noisy_coordinates(release: Release) -> np.ndarray:
    """The middle of a region in coordinates: those that were drawn, which may lie outside of the domain."""
    if release.coordinates is not None:
        return np.asarray(release.coordinates)
    return np.asarray(release.manifold.log_coordinates(release.viewpoint, host(release.value)))


def reach_of(region: ConfidenceRegion) -> float:
    """A radius around the released value itself that holds the region, in the region's own metric."""
    release = region.release
    if region.metric == "distance":
        return region.radius
    if region.metric == "number":
        return region.radius + abs(middle_of_number(release) - float(release.value))
    shown = release.manifold.log_coordinates(release.viewpoint, host(release.value))
    return region.radius + float(np.linalg.norm(shown - noisy_coordinates(release)))


def middle_of_number(release: Release) -> float:
    """The noisy number before it was cut to its range."""
    return float(release.value if release.coordinates is None else release.coordinates[0])
