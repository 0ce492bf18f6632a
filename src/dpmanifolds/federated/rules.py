"""What a record adds to a sum, written down for the sites: contributions as JSON, and how far one record moves them.

>>> import numpy as np
>>> from dpmanifolds import Euclidean
>>> rule = TangentContribution(Euclidean(2), np.zeros(2), np.zeros(2), radius=5.0, exponent=20)
>>> again = read_rule(write_rule(rule))
>>> again.radius, again.dim, body_of(again).apart == (2 * 2**20) ** 2
(5.0, 2, True)

A site makes the contribution itself, of numbers that it was told; the promise rests on the exact check of the integers
(docs/proofs/sums.md) and on the bounds here, which the site works out from the kind of the rule and its exponent alone.
Whatever other numbers a rule holds, they decide what is summed and not how far one record moves it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpmanifolds._points import on_host
from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.domains.axes import Axes
from dpmanifolds.errors import ArgumentError, RoundRefusedError
from dpmanifolds.federated.gradients import GradientRule
from dpmanifolds.manifolds import Euclidean, Manifold, manifold_from_json
from dpmanifolds.releases.written import point_from_json, point_to_json
from dpmanifolds.sums.contribution import AtPoint, DistanceContribution, TangentContribution
from dpmanifolds.sums.counts import DistanceBins
from dpmanifolds.sums.joint_moment import JointContribution
from dpmanifolds.sums.moments import TangentSquareContribution, frobenius_steps
from dpmanifolds.sums.outer import finest_factor_exponent
from dpmanifolds.sums.rounding import finest_exponent

Squares: TypeAlias = JointContribution | TangentSquareContribution
Rule: TypeAlias = TangentContribution | DistanceContribution | DistanceBins | Squares | GradientRule
_COARSEST = 4
# whether persons' records fit 64 bits must not depend on how many they are: at 2³² records it would
_LARGEST_UNIT = 1 << 30


class Body(NamedTuple):
    """Bounds on the integers of one record, exact."""

    apart: int
    """The squared distance of two of them."""
    alone: int
    """The squared length of one."""
    largest: int
    """No integer is larger in size."""
    noisy: int
    """How many integers a record has."""
    halved: int
    """How many of them, the last, count twice in these lengths and get σ/√2: those above a diagonal."""


def body_of(rule: Rule) -> Body:
    """Where the integers of a record lie (docs/proofs/sums.md, second_moment.md)."""
    if isinstance(rule, Squares):
        width, trace = rule.shape[0], 1 << 2 * rule.exponent
        above = width * (width - 1) // 2
        return Body(frobenius_steps(width, trace) ** 2, trace * trace, trace, width + above, above)
    if isinstance(rule, DistanceBins):
        return Body(2 * rule.unit**2, rule.unit**2, rule.unit, rule.dim, 0)
    radius = 1 << rule.exponent
    noisy = rule.noisy if isinstance(rule, GradientRule) else rule.dim
    return Body(4 * radius * radius, radius * radius, radius, noisy, 0)


def write_rule(rule: Rule) -> dict[str, Any]:
    """Plain values, every float bit for bit."""
    if isinstance(rule, JointContribution):
        assert rule.center is not None
        numbers = {"dimension": rule.dimension, "radius": rule.radius, "constant": rule.constant}
        points = {"base": point_to_json(rule.center), "substitute": point_to_json(_substitute(rule.substitute))}
        return {"kind": "squares", **numbers, "exponent": rule.exponent, **points}
    if isinstance(rule, GradientRule):
        return rule.to_dict()
    if isinstance(rule, TangentSquareContribution):
        numbers = {"radius": rule.radius, "exponent": rule.exponent}
        return {"kind": "logarithms squared", **_write_place(rule.view), **numbers}
    told = _write_place(rule)
    if isinstance(rule, DistanceBins):
        assert rule.edges is not None
        bins = {"edges": rule.edges.tolist(), "unit": rule.unit, "axes": _write_axes(rule.axes)}
        return {"kind": "distances counted", **told, **bins}
    told |= {"radius": rule.radius, "exponent": rule.exponent}
    if isinstance(rule, DistanceContribution):
        return {"kind": "squared distance", **told}
    return {"kind": "logarithm", **told, "offset": _listed(rule.offset), "axes": _write_axes(rule.axes)}


def read_rule(data: Any) -> Rule:
    """What `write_rule` wrote, checked; a rule that a site could not keep its promise with is refused."""
    try:
        return _READERS[data["kind"]](data)
    except RoundRefusedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as problem:
        raise RoundRefusedError(f"a rule of this round cannot be read ({problem}).") from None


def _write_place(rule: AtPoint) -> dict[str, Any]:
    """As `_place` reads it."""
    return {
        "manifold": rule.manifold.to_json(),
        "base": point_to_json(on_host(rule.base)),
        "substitute": point_to_json(on_host(_substitute(rule.substitute))),
    }


def _substitute(point: Any) -> Any:
    if point is None:
        raise ArgumentError("at several sites malformed records count as the centre: no site may refuse for one.")
    return point


def _listed(array: np.ndarray | None) -> Any:
    return None if array is None else array.tolist()


def _write_axes(axes: Axes | None) -> Any:
    return None if axes is None else {"lengths": axes.lengths.tolist(), "basis": _listed(axes.basis)}


def _read_axes(data: Any, dim: int) -> Axes | None:
    if data is None:
        return None
    lengths, basis = _numbers("axes", data["lengths"]), data["basis"]
    axes = Axes(lengths, None if basis is None else _numbers("axes", basis, (dim, lengths.size)))
    if lengths.ndim != 1 or not np.all(lengths > 0) or (basis is None and lengths.size != dim):
        raise RoundRefusedError("axes of a rule must be positive lengths, one for each direction.")
    return axes


def _numbers(name: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)) or (shape is not None and array.shape != shape):
        raise RoundRefusedError(f"{name} of a rule must be finite numbers of shape {shape}; got {array.shape}.")
    return array


def _exponent(value: Any, finest: int) -> int:
    found = positive_integer("exponent", value, at_least=_COARSEST)
    if found > finest:
        raise RoundRefusedError(f"an exponent of {found} is too fine to be checked exactly; at most {finest} here.")
    return found


def _place(data: Any) -> tuple[Manifold, Any, Any]:
    """Manifold, base and substitute; both are points of it."""
    manifold = manifold_from_json(data["manifold"])
    points = [point_from_json(data[name]) for name in ("base", "substitute")]
    for point in points:
        formed = manifold.as_points(point, "base")
        if manifold.batch_shape(formed) != () or not bool(manifold.belongs(formed)):
            raise RoundRefusedError(f"a rule looks from what is no point of {manifold!r}.")
    return manifold, points[0], points[1]


def _read_logarithm(data: Any) -> Rule:
    manifold, base, substitute = _place(data)
    axes = _read_axes(data["axes"], manifold.dim)
    offset = None if data["offset"] is None else _numbers("offset", data["offset"], (manifold.dim,))
    exponent = _exponent(data["exponent"], finest_exponent(manifold.dim if axes is None else axes.count))
    radius = positive_number("radius", data["radius"])
    return TangentContribution(manifold, base, substitute, radius=radius, offset=offset, exponent=exponent, axes=axes)


def _read_squared_distance(data: Any) -> Rule:
    exponent, radius = _exponent(data["exponent"], finest_exponent(1)), positive_number("radius", data["radius"])
    return DistanceContribution(*_place(data), radius=radius, exponent=exponent)


def _read_distances_counted(data: Any) -> Rule:
    edges = _numbers("edges", data["edges"])
    unit = positive_integer("unit", data["unit"])
    if edges.ndim != 1 or not 0 < edges.size <= 10_000 or unit > _LARGEST_UNIT or not np.all(np.diff(edges) > 0):
        raise RoundRefusedError("edges of a rule must rise, and its unit be at most 2^30.")
    manifold, base, substitute = _place(data)
    return DistanceBins(manifold, base, substitute, edges=edges, unit=unit, axes=_read_axes(data["axes"], manifold.dim))


def _read_squares(data: Any) -> Rule:
    dimension = positive_integer("dimension", data["dimension"])
    constant = float(data["constant"])
    if not 0 <= constant < math.inf:
        raise RoundRefusedError(f"the constant of a rule must be 0 or more; got {constant}.")
    points = [_numbers(name, point_from_json(data[name]), (dimension,)) for name in ("base", "substitute")]
    exponent = _exponent(data["exponent"], finest_factor_exponent(dimension + (constant > 0)))
    return JointContribution(dimension, positive_number("radius", data["radius"]), constant, exponent, *points)


def _read_logarithms_squared(data: Any) -> Rule:
    manifold, base, substitute = _place(data)
    exponent = _exponent(data["exponent"], finest_factor_exponent(manifold.dim))
    view = TangentContribution(manifold, base, substitute)
    return TangentSquareContribution(view, positive_number("radius", data["radius"]), exponent)


_READERS = {
    "gradient": GradientRule.from_dict,
    "logarithms squared": _read_logarithms_squared,
    "logarithm": _read_logarithm,
    "squared distance": _read_squared_distance,
    "distances counted": _read_distances_counted,
    "squares": _read_squares,
}


def records_live_on(rule: Rule) -> Manifold:
    """The manifold of the records that a rule is about."""
    if isinstance(rule, JointContribution):
        return Euclidean(rule.dimension)
    return rule.view.manifold if isinstance(rule, TangentSquareContribution) else rule.manifold
