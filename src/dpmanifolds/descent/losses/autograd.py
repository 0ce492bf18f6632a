"""A user's own loss: per-record gradients by JAX or PyTorch, turned Riemannian by the manifold.

>>> from dpmanifolds import Sphere
>>> from dpmanifolds.descent.losses import AutogradLoss
>>> loss = AutogradLoss(lambda w, x: -((x * w).sum() ** 2), Sphere(2))
>>> loss.manifold.dim, loss.bound
(2, None)

The function takes one parameter w (an array, or a tuple of arrays on a `Product`) and one record, and returns one
number, written in the library of the records. It is differentiated as a function of the ambient array. It must look at
its one record only: what it remembers from other records would not be private. Records are worked on together, by
`vmap` in tiles of one shape, or one by one where their number can change between neighbours (`group_by`, add/remove).
Where the gradient is not finite the record counts as zero. PyTorch's linear algebra raises for a whole block when it
fails for one record, so functions in PyTorch are called with one record at a time, and where they fail the record
counts as zero; `never_raises=True` promises that none does, and is faster. JAX does not raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, namespace, to_numpy
from dpmanifolds._points import count_records, leaves, map_parts, records_at
from dpmanifolds._validate import record_numbers
from dpmanifolds.descent.losses.loss import Loss, like_point
from dpmanifolds.errors import ArgumentError, DPManifoldsError
from dpmanifolds.manifolds import Manifold


@dataclass(frozen=True)
class AutogradLoss(Loss):
    """f(w, record) with `vmap(grad(f))` for its gradients; records are JAX or PyTorch arrays.

    `lipschitz` is a proven public bound on the Riemannian norm of the gradients; without one give `clip_norm`.

    >>> from dpmanifolds import Sphere
    >>> from dpmanifolds.descent.losses import AutogradLoss
    >>> loss = AutogradLoss(lambda w, x: -((x * w).sum() ** 2), Sphere(2), lipschitz=1.0)  # records of norm ≤ 1
    >>> loss.bound
    1.0
    """

    function: Callable[[Any, Any], Any]
    manifold: Manifold
    lipschitz: float | None = None
    library: str | None = None
    """"torch" or "jax", where records of these libraries come as NumPy arrays."""
    never_raises: bool = False
    """A promise that the function raises for no record whatever: PyTorch then takes them together."""

    @property
    def bound(self) -> float | None:
        return self.lipschitz

    def form(self, records: Any) -> Array:
        """As they come, in their precision."""
        return map_parts(_as_records, records)

    def for_records(self, reference: Array) -> AutogradLoss:
        return replace(self, library=_library(reference).name)

    def value(self, w: Array, records: Array) -> float:
        library, records = self._own(records)
        values = library.vmap(self.function, in_dims=(None, 0))(like_point(w, records), records)
        return float(np.mean(to_numpy(values)))

    def gradients(self, w: Array, records: Array) -> Array:
        library, records = self._own(records)
        point = like_point(w, records)
        if library is _Torch and not self.never_raises:
            rows = [self._alone(point, record) for record in _one_by_one(records)]
            return namespace(*rows).concat(rows, axis=0)
        egrad = library.gradients(self.function, point, records)
        return self.manifold.gradient_coordinates(point, egrad)

    def _alone(self, point: Array, record: Array) -> Array:
        """One row of coordinates; NaN where the function raises for its record."""
        try:
            return self.manifold.gradient_coordinates(point, _Torch.gradients(self.function, point, record))
        except _failures():
            return leaves(record)[0].new_full((1, self.manifold.dim), math.nan)

    def _own(self, records: Any) -> tuple[type[_Torch] | type[_Jax], Any]:
        """The library, and the records in it."""
        if self.library is None:
            return _library(records), records
        library = _Torch if self.library == _Torch.name else _Jax
        return library, library.arrays(records)


def _as_records(part: Any) -> Array:
    array = record_numbers("records", part)
    if array.ndim == 0:
        raise ArgumentError("records must be an array with one leading axis of records; got a single number.")
    return array


def _failures() -> tuple[type[Exception], ...]:
    """What numbers alone make a function raise; all else is a mistake in it, and is shown."""
    import torch

    return torch.linalg.LinAlgError, ArithmeticError, DPManifoldsError


def _one_by_one(records: Any) -> Iterator[Any]:
    return (records_at(records, slice(row, row + 1)) for row in range(count_records(records)))


class _Torch:
    name = "torch"

    @classmethod
    def arrays(cls, records: Any) -> Any:
        import torch

        return map_parts(torch.as_tensor, records)

    @staticmethod
    def vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
        from torch.func import vmap

        return vmap(function, in_dims=in_dims)  # type: ignore[no-any-return]

    @classmethod
    def gradients(cls, function: Callable[..., Any], w: Any, records: Any) -> Any:
        from torch.func import grad

        return cls.vmap(grad(function), (None, 0))(w, records)


class _Jax:
    name = "jax"

    @classmethod
    def arrays(cls, records: Any) -> Any:
        import jax

        return map_parts(jax.numpy.asarray, records)

    @staticmethod
    def vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
        import jax

        return jax.vmap(function, in_axes=in_dims)  # type: ignore[no-any-return]

    @classmethod
    def gradients(cls, function: Callable[..., Any], w: Any, records: Any) -> Any:
        import jax

        found = cls.vmap(jax.grad(function), (None, 0))(w, records)
        # of a complex argument JAX gives ∂/∂Re − i·∂/∂Im
        return jax.tree.map(lambda part: part.conj() if part.dtype.kind == "c" else part, found)


def _library(records: Array) -> type[_Torch] | type[_Jax]:
    parts = leaves(records)
    if all(map(is_torch_array, parts)):
        return _Torch
    if all(map(is_jax_array, parts)):
        return _Jax
    raise ArgumentError(
        "a loss given as a function is differentiated by JAX or PyTorch: pass the records as jax.Array or "
        "torch.Tensor, or write a Loss with its own gradients."
    )
