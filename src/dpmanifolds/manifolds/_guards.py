"""What every manifold's methods check of the arrays they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from array_api_compat import device as device_of

from dpmanifolds._arrays import Array, holds_complex, namespace
from dpmanifolds.errors import ArgumentError

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold

__all__ = ["guard_methods"]

_OF_REAL_NUMBERS = (
    "exp",
    "log",
    "log_coordinates",
    "inner",
    "norm",
    "dist",
    "squared_dist",
    "geodesic",
    "transport",
    "to_coordinates",
    "from_coordinates",
    "log_volume_density",
    "project",
    "project_tangent",
)


def guard_methods(cls: type[Any]) -> None:
    """Put the checks around the methods that a class defines itself."""
    for name in _OF_REAL_NUMBERS:
        if name in cls.__dict__:
            setattr(cls, name, _refuse_complex(cls.__dict__[name]))
    if "belongs" in cls.__dict__:
        cls.belongs = _false_elsewhere(cls.__dict__["belongs"])


def _refuse_complex(method: Callable[..., Array]) -> Callable[..., Array]:
    """A method that raises for complex arrays on a space of real ones, where imaginary parts would be dropped."""

    @functools.wraps(method)
    def checked(self: Manifold, *arrays: Array, **named: Array) -> Array:
        if not self.is_complex and any(map(holds_complex, (*arrays, *named.values()))):
            raise ArgumentError(
                f"points and vectors of {self!r} are real numbers; got complex ones. Take their real part first."
            )
        return method(self, *arrays, **named)

    return checked


def _false_elsewhere(method: Callable[..., Array]) -> Callable[..., Array]:
    """`belongs`, with False for arrays of another shape or of complex numbers instead of real ones."""

    @functools.wraps(method)
    def checked(self: Manifold, point: Array, tolerance: float | None = None) -> Array:
        if not self.point_shape:
            return method(self, point, tolerance)
        shape, rank = tuple(point.shape), len(self.point_shape)
        if shape[max(len(shape) - rank, 0) :] == self.point_shape and (self.is_complex or not holds_complex(point)):
            return method(self, point, tolerance)
        xp = namespace(point)
        return xp.zeros(shape[: max(len(shape) - rank, 0)], dtype=xp.bool, device=device_of(point))

    return checked
