"""Points and domains in JSON, every float bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import has_parts
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.domains import Ball, Domain, Ellipsoid, WholeSpace
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import manifold_from_json

_DTYPES = ("float64", "complex128", "float32", "complex64")


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


def domain_to_json(domain: Domain) -> dict[str, Any]:
    """A ball, an ellipsoid, all of a space, or the domain of image descriptors."""
    if isinstance(domain, Ball):
        described: dict[str, Any] = {"kind": "ball", "center": point_to_json(domain.center), "radius": domain.radius}
    elif isinstance(domain, Ellipsoid):
        basis = None if domain.basis is None else domain.basis.tolist()
        described = {"kind": "ellipsoid", "center": point_to_json(domain.center), "source": domain.source}
        described |= {"axes": domain.axes.tolist(), "basis": basis}
    elif isinstance(domain, WholeSpace):
        described = {"kind": "all", "center": point_to_json(domain.center)}
    elif isinstance(domain, DescriptorDomain):
        return {"kind": "descriptors", "channels": domain.channels, "eta": domain.eta}
    else:
        raise ArgumentError(
            f"a release over {domain!r} cannot be written down: JSON knows Ball, Ellipsoid and DescriptorDomain. Keep "
            "the release in memory, or promise a Ball."
        )
    return {**described, "manifold": domain.manifold.to_json()}


def domain_from_json(data: Any) -> Domain:
    """What `domain_to_json` wrote."""
    if data["kind"] == "ball":
        return Ball(manifold_from_json(data["manifold"]), point_from_json(data["center"]), data["radius"])
    if data["kind"] == "ellipsoid":
        manifold, center = manifold_from_json(data["manifold"]), point_from_json(data["center"])
        return Ellipsoid(manifold, center, data["axes"], data["basis"], data["source"])
    if data["kind"] == "all":
        return WholeSpace(manifold_from_json(data["manifold"]), point_from_json(data["center"]))
    if data["kind"] == "descriptors":
        return DescriptorDomain(data["channels"], data["eta"])
    raise ArgumentError(f"no domain is of the kind {data['kind']!r}.")
