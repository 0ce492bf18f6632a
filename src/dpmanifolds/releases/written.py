"""What JSON holds, every float bit for bit: points, domains, and what answers share that are written in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import has_parts
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.domains import Ball, Domain, Ellipsoid, WholeSpace
from dpmanifolds.errors import ArgumentError, DPManifoldsError
from dpmanifolds.manifolds import manifold_from_json

_DTYPES = ("float64", "complex128", "float32", "complex64")


class WrittenAnswer:
    """What is equal where its JSON is the same, letter for letter."""

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, every float bit for bit."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


@contextmanager
def read_json(
    kind: type, text: str | bytes, schema: int | None = None, *, refused: type[DPManifoldsError] = ArgumentError
) -> Iterator[Any]:
    """The data that `to_json` of this kind wrote, of this schema; whatever is amiss ends in the error `refused`."""
    try:
        data = json.loads(text)
        if schema is not None and data.pop("schema") != schema:
            raise refused(f"this version reads schema {schema} alone; write it with {kind.__name__}.to_json.")
        yield data
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as problem:
        if isinstance(problem, DPManifoldsError) and (refused is ArgumentError or isinstance(problem, refused)):
            raise
        raise refused(
            f"the JSON has other fields than these ({problem}); write it with {kind.__name__}.to_json."
        ) from None


def point_to_json(point: Array) -> Any:
    """Nested lists with a dtype; complex numbers as pairs; a tuple for a product."""
    if has_parts(point):
        return [point_to_json(part) for part in point]
    array = np.asarray(point)
    numbers = np.stack([array.real, array.imag], axis=-1) if np.iscomplexobj(array) else array
    return {"dtype": str(array.dtype), "values": numbers.astype(np.float64).tolist()}


def point_from_json(data: Any) -> Array:
    """What `point_to_json` wrote."""
    if isinstance(data, list):
        return tuple(point_from_json(part) for part in data)
    if data["dtype"] not in _DTYPES:
        raise ArgumentError(f"a point has one of the dtypes {', '.join(_DTYPES)}; got {data['dtype']!r}.")
    numbers = np.asarray(data["values"], dtype=np.float64)
    if data["dtype"].startswith("complex"):
        numbers = numbers[..., 0] + 1j * numbers[..., 1]
    return numbers.astype(data["dtype"])


_KINDS: dict[str, type[Domain]] = {each.kind: each for each in (Ball, Ellipsoid, WholeSpace, DescriptorDomain)}


def domain_to_json(domain: Domain) -> dict[str, Any]:
    """The kind of a domain and the arguments that make it again, as it says itself."""
    if _KINDS.get(domain.kind) is not type(domain):
        raise ArgumentError(
            f"a release over {domain!r} cannot be written down: JSON knows "
            f"{', '.join(each.__name__ for each in _KINDS.values())}. Keep the release in memory, or promise a Ball."
        )
    return {"kind": domain.kind, **{name: to_plain(getattr(domain, name), name) for name in domain.written}}


def domain_from_json(data: Any) -> Domain:
    """What `domain_to_json` wrote."""
    if data["kind"] not in _KINDS:
        raise ArgumentError(f"no domain is of the kind {data['kind']!r}.")
    kind = _KINDS[data["kind"]]
    return kind(**{name: from_plain(data[name], name) for name in kind.written})


def to_plain(value: Any, name: str = "") -> Any:
    """An argument of a domain or of a loss as plain values, every float bit for bit; `name`: what it is called."""
    if isinstance(value, Domain):
        return domain_to_json(value)
    if name in ("manifold", "response"):
        return value.to_json()
    if name == "center":
        return point_to_json(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def from_plain(data: Any, name: str) -> Any:
    """What `to_plain` wrote of an argument of this name."""
    return _READERS[name](data) if name in _READERS and data is not None else data


_READERS: dict[str, Callable[[Any], Any]] = {
    "manifold": manifold_from_json,
    "response": manifold_from_json,
    "center": point_from_json,
    "ball": domain_from_json,
    "start": partial(np.asarray, dtype=np.float64),
}
