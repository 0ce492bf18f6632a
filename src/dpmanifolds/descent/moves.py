"""From one iterate to the next: exponential map or retraction, kept on the manifold against rounding.

>>> import numpy as np
>>> from dpmanifolds import Sphere
>>> from dpmanifolds.descent.moves import move
>>> north = np.array([1.0, 0.0, 0.0])
>>> move(Sphere(2), north, np.array([1.0, 0.0]), retraction=True).round(6).tolist()
[0.707107, 0.707107, 0.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, norm
from dpmanifolds._points import leaves
from dpmanifolds.descent.losses.loss import clip_factors
from dpmanifolds.manifolds import (
    Manifold,
)

__all__ = ["LONGEST_STEP", "is_finite", "move", "shortened"]

LONGEST_STEP = 1024.0
"""Where a step leaves the range of floating-point numbers, it is shortened from here on."""


def is_finite(point: Any) -> bool:
    """Whether all numbers of a point, or of a tangent vector, are finite."""
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves(point))


def move(manifold: Manifold, w: Array, coordinates: Array, retraction: bool) -> Array:
    """exp_w(v), or the retraction of v, for the tangent vector v with these coordinates."""
    vector = manifold.from_coordinates(w, coordinates)
    if retraction:
        return manifold.retract(w, vector)
    return manifold.place(manifold.exp(w, vector))


def shortened(manifold: Manifold, coordinates: np.ndarray, longest: float) -> np.ndarray:
    """A step cut to the length `longest`, on a `Power` each copy on its own."""
    parts = coordinates.reshape(manifold.copies, -1)
    return np.asarray(parts * clip_factors(norm(parts), longest)[:, None]).ravel()
