"""Random arguments for the fuzzer: usable ones, and ones that nobody should pass."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import dpmanifolds as dpm

__all__ = ["Values"]

_WILD = (
    None,
    True,
    0,
    -1,
    3,
    10**400,
    0.5,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    1e-17,
    math.nan,
    math.inf,
    -math.inf,
    1 + 2j,
    "",
    "x",
    "1",
    b"\x00",
    [],
    [1, [2]],
    {},
    {"a": 1},
    (),
    Fraction(1, 3),
    Decimal("0.1"),
    np.float32(0.25),
    np.int8(-3),
    np.datetime64("2001-01-01"),
    np.array(0.5),
    np.array([]),
    np.array([1.0, np.nan]),
    object(),
    print,
    int,
)
_METRICS = ("affine-invariant", "log-euclidean", "log-cholesky")
_SCALES = (1e-320, 1e-300, 1e-150, 1e-8, 1.0, 1.0, 1.0, 1e8, 1e150, 1e300, 1e308)


class Values:
    """One source of random arguments; the same generator state gives the same arguments."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def wild(self) -> Any:
        """Anything at all."""
        if self.chance(0.2):
            return self.array((3,))
        return self.pick(*_WILD)

    def or_wild(self, value: Any, probability: float = 0.08) -> Any:
        return self.wild() if self.chance(probability) else value

    def number(self) -> Any:
        """A positive number of any size, mostly a sensible one."""
        return self.or_wild(float(10.0 ** self.rng.uniform(-3, 2)) if self.chance(0.8) else self.pick(*_SCALES))

    def integer(self, high: int = 6) -> Any:
        return self.or_wild(int(self.rng.integers(0, high)))

    def share(self) -> Any:
        return self.or_wild(float(self.rng.random()))

    def name(self, *options: str) -> Any:
        return self.or_wild(self.pick(*options), 0.05)

    def seed(self) -> Any:
        return self.pick(None, 0, 7, self.wild())

    def manifold(self, depth: int = 0) -> dpm.Manifold:
        """A small manifold of any kind."""
        small = int(self.rng.integers(1, 4))
        kinds = [
            lambda: dpm.Euclidean(small),
            lambda: dpm.Sphere(small, curvature=float(self.pick(1.0, 1.0, 4.0, 1e-4, 1e-12, 1e12))),
            lambda: dpm.Hyperbolic(small, curvature=-float(self.pick(1.0, 1.0, 4.0, 1e-4, 1e-12, 1e12))),
            lambda: dpm.SPD(int(self.rng.integers(1, 5)), self.pick(*_METRICS)),
            lambda: dpm.Correlation(small + 1),
            lambda: dpm.PlanarShapes(small + 2),
            lambda: dpm.SpecialOrthogonal(int(self.rng.integers(2, 5))),
            lambda: dpm.Grassmann(int(self.rng.integers(2, 5)), 1),
            lambda: dpm.Grassmann(4, 2),
            lambda: dpm.Stiefel(4, 2),
        ]
        if depth < 2:
            kinds.append(lambda: dpm.Power(self.manifold(depth + 1), int(self.rng.integers(1, 4))))
            kinds.append(lambda: dpm.Product(*(self.manifold(depth + 1) for _ in range(int(self.rng.integers(1, 4))))))
        return self.pick(*kinds)()

    def points(self, manifold: dpm.Manifold, size: tuple[int, ...] | int) -> Any:
        """Points, mostly good, often spoilt in one of many ways."""
        points = manifold.random_point(size, rng=self.rng)
        return self.spoilt(points) if self.chance(0.35) else points

    def spoilt(self, points: Any) -> Any:
        if isinstance(points, tuple):
            parts = tuple(self.spoilt(part) for part in points)
            return self.pick(parts, parts[:-1], list(parts), parts[0])
        return self.pick(*_SPOIL)(self, points)

    def array(self, shape: tuple[int, ...]) -> Any:
        """An array that may be of any type."""
        return self.spoilt(self.rng.normal(size=shape))

    def ball(self, manifold: dpm.Manifold | None = None) -> dpm.Ball:
        """A ball; constructing it may fail with one of the package's errors."""
        manifold = manifold or self.manifold()
        limit = manifold.max_radius
        sensible = float(self.rng.random()) * (limit if math.isfinite(limit) and limit > 0 else 4.0)
        radius = self.or_wild(self.pick(sensible, sensible, sensible, limit * (1 - 1e-9), 1e-12, 1e3, 1e-300, 1e300))
        center = manifold.random_point(rng=self.rng)
        return dpm.Ball(manifold, self.spoilt(center) if self.chance(0.1) else center, radius)

    def domain(self) -> dpm.Domain:
        return dpm.DescriptorDomain(self.pick(1, 3), self.number()) if self.chance(0.05) else self.ball()

    def budget(self) -> dpm.Budget:
        size = self.number()
        return self.pick(
            lambda: dpm.PureDP(size),
            lambda: dpm.GaussianDP(size),
            lambda: dpm.ZeroConcentratedDP(size),
            lambda: dpm.ApproxDP(size, self.or_wild(float(10.0 ** self.rng.uniform(-12, -0.01)))),
            lambda: dpm.RenyiDP(self.or_wild(1 + float(self.rng.exponential(4))), size),
        )()

    def labels(self, count: int) -> Any:
        numbers = self.rng.integers(0, 3, size=count)
        return self.pick(
            numbers,
            numbers.astype(float),
            np.array(["a", "b", "c"])[numbers],
            numbers.astype(object),
            [None, "a", 2] * max(1, count // 3),
            numbers[:-1],
            numbers[:, None],
            self.wild(),
        )


def _with_entry(values: Values, array: np.ndarray, entry: float) -> np.ndarray:
    changed = np.array(array)
    if changed.size:
        changed.flat[int(values.rng.integers(changed.size))] = entry
    return changed


def _structured(values: Values, array: np.ndarray) -> np.ndarray:
    return np.zeros(array.shape[:1], dtype=[("x", float), ("y", "U3")])


def _read_only(values: Values, array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


_SPOIL = (
    lambda v, a: _with_entry(v, a, np.nan),
    lambda v, a: _with_entry(v, a, np.inf),
    lambda v, a: _with_entry(v, a, -np.inf),
    lambda v, a: _with_entry(v, a, 1e308),
    lambda v, a: _with_entry(v, a, 0.0),
    lambda v, a: a * v.pick(*_SCALES),
    lambda v, a: -a,
    lambda v, a: a * (1 + 1e-7 * v.rng.normal(size=a.shape)),
    lambda v, a: np.zeros_like(a),
    lambda v, a: a.astype(np.complex64 if a.dtype.kind == "c" else np.float32),
    lambda v, a: np.real(a).astype(np.float16),
    lambda v, a: a.astype(np.clongdouble if a.dtype.kind == "c" else np.longdouble),
    lambda v, a: a.astype(complex),
    lambda v, a: np.real(np.nan_to_num(a)).clip(-9, 9).astype(np.int64),
    lambda v, a: a.astype(a.dtype.newbyteorder()),
    lambda v, a: a.astype(object),
    lambda v, a: a.astype(str),
    lambda v, a: a[:0],
    lambda v, a: a[..., None],
    lambda v, a: a[None],
    lambda v, a: a[0] if a.ndim and len(a) else a,
    lambda v, a: np.asfortranarray(a),
    lambda v, a: np.repeat(a, 2, axis=0)[::2] if a.ndim else a,
    lambda v, a: a[::-1] if a.ndim else a,
    lambda v, a: np.ma.masked_array(a, mask=np.zeros(a.shape, dtype=bool)),
    lambda v, a: a.tolist(),
    lambda v, a: np.broadcast_to(a, (2, *a.shape)),
    _read_only,
    _structured,
)
