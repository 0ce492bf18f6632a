"""Kernels with features that are integers: what a permutation test sees of a record (docs/proofs/tests.md).

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
>>> kernel = kernel_of(ball, "gaussian", bandwidth=0.6)
>>> whole, _ = kernel.contribution(exponent=20)(np.array([[0.1, 0.2], [0.4, -0.3]]))
>>> round(float(np.prod(whole / 2**20, axis=1).sum()), 1), round(float(np.exp(-0.34 / 0.72)), 1)
(0.6, 0.6)

A record is seen in a public chart c(x) with |c| ≤ 1: coordinates of its logarithm at the public centre in units of the
radius (whitened, in an ellipsoid), or of its embedding in the flat space around. Every map into a flat space pulls
positive definite kernels back to positive definite ones, whatever the curvature. Its features are

- "gaussian", "exponential": f_j ∝ e^{ω_j·c} for public directions ω_j of the law N(0, h⁻²I), in pairs ±ω, made one unit
  long. None is negative, and ⟨f(x), f(y)⟩ approximates e^{−|c(x)−c(y)|²/2h²}: for E e^{ω·(c+c')} = e^{|c+c'|²/2h²}. On
  the embedding of a sphere, of shapes, subspaces and rotations that is e^{⟨x,y⟩/s}, divided by its value at x = y;
- "linear": c itself, which sees differences of means alone;
- "directions": for each of many public unit directions u, the coordinate axes first, a = c·u/h cut to [−1, 1], and
  1 − 2|a| for some. Each is a part of its own, and the statistic the largest of all: a record moves it by no more than
  one feature can move, √d times less than a record of d coordinates moves a length.

Features that are not negative and at most one unit long are at most √2 apart, where random Fourier features, of any
sign, may be 2 apart: with the same noise they show √2 times as much. The promise rests on exact checks of the integers:
z ≥ 0 and Σz² ≤ R², or 2Σz² ≤ R² for features of any sign, so that any two records are at most √2·R apart in each part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, clamp, like, namespace
from dpmanifolds._points import host
from dpmanifolds._validate import choice, positive_number
from dpmanifolds.domains import Domain, WholeSpace
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.sums.ambient import body_of
from dpmanifolds.sums.contribution import AtPoint
from dpmanifolds.sums.rounding import finest_exponent, shortened_length

KERNELS = ("auto", "directions", "gaussian", "exponential", "linear")
_SHARE, _CUT = 0.58, 1 / 3
"""The usual bandwidth over the radius; for directions over that of one coordinate, r/√d: docs/tests_of_groups.md."""
_PAIRS = 256
_FEWEST, _MOST, _PER_DIM = 512, 8192, 256
_ROOM = 1 << 22
"""How many numbers the records, or all permutations, may have in directions before fewer of these are taken."""
_SEED = 20231019


@dataclass(frozen=True, eq=False)
class Kernel:
    """A positive definite kernel on a domain, given by its features; everything in it is public."""

    name: str
    domain: Domain
    bandwidths: tuple[float, ...]
    """In the units of the chart; none for the linear kernel."""
    radius: float
    """What is 1 in the chart."""
    parts: tuple[np.ndarray | None, ...]
    """For each bandwidth the directions ω (chart dimension, pairs), or u/h; None: the chart itself."""
    chart_dim: int
    ambient: bool = False
    offset: np.ndarray | None = None

    @property
    def is_separate(self) -> bool:
        """Whether every feature is a part of its own."""
        return self.name == "directions"

    @property
    def is_signed(self) -> bool:
        """Whether features may be negative."""
        return self.name in ("directions", "linear")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many features each part has."""
        if self.is_separate:
            return (1,) * sum(3 * int(part.shape[1]) // 2 for part in self.parts if part is not None)
        return tuple(self.chart_dim if part is None else 2 * part.shape[1] for part in self.parts)

    @property
    def finest_exponent(self) -> int:
        """Of the lattice on which the exact check of a part fits 64 bits."""
        return finest_exponent(2 * max(self.sizes))

    @property
    def words(self) -> str:
        """One line."""
        chart = "in the flat space around" if self.ambient else "at the public centre"
        if not self.bandwidths:
            return f"linear, coordinates {chart}"
        told = ", ".join(f"{width:.4g}" for width in self.bandwidths)
        number = "" if self.parts[0] is None or not self.is_separate else f"{self.parts[0].shape[1]:,} "
        return f"{number}{self.name}, bandwidth {told}, coordinates {chart}"

    def contribution(self, exponent: int, substitute: Array | None = None) -> KernelContribution:
        """The integers of a record on the lattice of 2^exponent steps to one unit."""
        center = host(self.domain.manifold.as_points(self.domain.center, "center"))
        return KernelContribution(self.domain.manifold, center, substitute, kernel=self, exponent=exponent)


@dataclass(frozen=True, eq=False)
class KernelContribution(AtPoint):
    """The features of a record, part by part; any two records are at most √2·2^exponent apart in each part."""

    kernel: Kernel | None = None
    exponent: int = 20
    tile_bytes = 1 << 16

    @property
    def dim(self) -> int:  # type: ignore[override]
        return sum(self._kernel.sizes)

    @property
    def _kernel(self) -> Kernel:
        assert self.kernel is not None
        return self.kernel

    def coordinates(self, base: Array, points: Array) -> Array:
        if not self._kernel.ambient:
            return super().coordinates(base, points)
        rows = self.manifold.embed(points)
        return rows if self._kernel.offset is None else rows - like(self._kernel.offset, rows)

    def fits(self, whole: Array) -> Array:
        """Whether every part of each column lies in its body."""
        xp, kernel = namespace(whole), self._kernel
        if kernel.is_separate:
            return xp.all(part_fits(whole[None, ...], self.exponent, signed=True), axis=0)
        start, checks = 0, []
        for size in kernel.sizes:
            checks.append(part_fits(whole[start : start + size, ...], self.exponent, signed=kernel.is_signed))
            start += size
        return xp.all(xp.stack(checks), axis=0)

    def __call__(self, block: Array) -> tuple[Array, Array]:
        rows, broken = self.look_at(block)
        xp, kernel = namespace(rows), self._kernel
        with np.errstate(all="ignore"):
            if not kernel.ambient and kernel.domain.body is not None:
                chart = kernel.domain.body.whiten(rows / kernel.radius)
            else:
                chart = rows / kernel.radius
            length = xp.sqrt(xp.sum(chart * chart, axis=-1, keepdims=True))
            chart = xp.where(length > 1, chart / length, chart)
            usable = (broken == 0) & (length[:, 0] < math.inf)
            parts = [self._integers(chart, part, usable) for part in kernel.parts]
        return xp.concat(parts, axis=0), broken

    def _integers(self, chart: Array, directions: np.ndarray | None, usable: Array) -> Array:
        """The columns of one part, each from one row of the chart alone; 0 where it is not usable."""
        xp, kernel = namespace(chart), self._kernel
        # one product for each record, so that it depends on no other
        inner = chart if directions is None else (chart[:, None, :] @ like(directions, chart))[:, 0, :]
        if kernel.is_separate:
            cut = clamp(inner, -1.0, 1.0)
            features = xp.concat([cut, 1 - 2 * xp.abs(cut[:, : cut.shape[-1] // 2])], axis=-1) / math.sqrt(2)
        elif kernel.is_signed:
            features = chart / math.sqrt(2)
        else:
            largest = xp.max(xp.abs(inner), axis=-1, keepdims=True)
            grown = xp.concat([xp.exp(inner - largest), xp.exp(-inner - largest)], axis=-1)
            features = grown / xp.sqrt(xp.sum(grown * grown, axis=-1, keepdims=True))
        most = 1 << self.exponent
        scaled = features * (shortened_length(max(kernel.sizes), self.exponent) * most)
        usable = usable & xp.all(xp.isfinite(scaled), axis=-1)
        scaled = xp.where(usable[:, None], scaled, xp.zeros_like(scaled))
        whole = xp.permute_dims(clamp(xp.astype(xp.round(scaled), xp.int64), -most, most), (1, 0))
        parts = whole[None, ...] if kernel.is_separate else whole
        return whole * xp.astype(part_fits(parts, self.exponent, signed=kernel.is_signed), xp.int64)


def part_fits(whole: Array, exponent: int, *, signed: bool) -> Array:
    """Whether columns |z| ≤ R = 2^exponent lie in the body: 2Σz² ≤ R², or z ≥ 0 and Σz² ≤ R²; exact integers.

    >>> import numpy as np
    >>> columns = np.array([[3, 0, -1], [0, 4, 0]])
    >>> part_fits(columns, 2, signed=False).tolist(), part_fits(columns, 2, signed=True).tolist()
    ([True, True, False], [False, False, True])
    """
    xp = namespace(whole)
    squares, most = xp.sum(whole * whole, axis=0), 1 << (2 * exponent)
    return 2 * squares <= most if signed else (squares <= most) & xp.all(whole >= 0, axis=0)


def count_directions(dim: int, records: int, permutations: int) -> int:
    """How many directions a test of so many records takes: more find more in high dimension, and cost time; public.

    >>> count_directions(2, 200, 199), count_directions(50, 200, 199), count_directions(50, 10_000, 199)
    (512, 8192, 512)
    """
    return max(_FEWEST, min(_MOST, _PER_DIM * dim, _ROOM // max(records, permutations)) & ~1)


def kernel_of(
    domain: Domain,
    kernel: Any = "auto",
    bandwidth: Any = None,
    *,
    pairs: int = _PAIRS,
    size: tuple[int, int] | None = None,
) -> Kernel:
    """The kernel of a name on a domain; bandwidths in the metric's units.

    `size`, of how many records and permutations a test is, decides how many directions there are; else 2·pairs.
    """
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ArgumentError(
            f"must be one of {', '.join(KERNELS)}, whose features are proven to be bounded; got "
            f"{kernel if isinstance(kernel, str) else type(kernel).__name__!r}. A Gaussian of the geodesic distance is "
            "no kernel on curved spaces, and has no proof.",
            argument="kernel",
        )
    whole = isinstance(domain, WholeSpace)
    if kernel == "auto":
        kernel = "exponential" if whole else "directions"
    choice("kernel", kernel, KERNELS)
    if whole and kernel != "exponential":
        raise NotAvailableError(f"kernel {kernel!r} needs a bounded domain such as a Ball; got {domain!r}.")
    ambient = kernel == "exponential"
    if ambient:
        if not domain.manifold.ambient_dim:
            raise NotAvailableError(
                f"{domain.manifold!r} has no embedding for kernel='exponential': spheres, shapes, Grassmann and "
                "SpecialOrthogonal have one. Use kernel='gaussian'."
            )
        body = body_of(domain)
        dim, radius, offset = domain.manifold.ambient_dim, body.radius, body.offset
    else:
        dim = domain.manifold.dim if domain.body is None else domain.body.count
        radius, offset = domain.radius, None
    if kernel == "linear":
        if bandwidth is not None:
            raise ArgumentError("is for other kernels: the linear one has none.", argument="bandwidth")
        return Kernel(kernel, domain, (), radius, (None,), dim)
    separate = kernel == "directions"
    widths = _bandwidths(bandwidth, radius * (_CUT / math.sqrt(dim) if separate else _SHARE))
    # on a line all directions are one
    count = 2 * pairs if size is None else count_directions(dim, *(len(widths) * each for each in size))
    made = _unit_directions(dim, count if dim > 1 else 2) if separate else _directions(dim, pairs)
    parts = tuple(made * (radius / width) for width in widths)
    return Kernel(kernel, domain, widths, radius, parts, dim, ambient, offset)


def _bandwidths(bandwidth: Any, usual: float) -> tuple[float, ...]:
    if bandwidth is None:
        return (usual,)
    listed = list(bandwidth) if isinstance(bandwidth, Sequence | np.ndarray) and np.ndim(bandwidth) else [bandwidth]
    if not 1 <= len(listed) <= 8:
        raise ArgumentError("must be a public number, or a list of one to eight of them.", argument="bandwidth")
    return tuple(positive_number("bandwidth", width) for width in listed)


@lru_cache(maxsize=8)
def _directions(dim: int, pairs: int) -> np.ndarray:
    """Public directions (dim, pairs) of the law N(0, I), orthogonal as far as there are dimensions; always the same."""
    rng = np.random.default_rng(_SEED)
    blocks = []
    for _ in range(-(-pairs // dim)):
        basis = _orthogonal(dim, min(dim, pairs), rng)
        blocks.append(basis * np.sqrt(rng.chisquare(dim, size=basis.shape[1])))
    return _fixed(np.concatenate(blocks, axis=1)[:, :pairs])


@lru_cache(maxsize=8)
def _unit_directions(dim: int, count: int) -> np.ndarray:
    """Public unit vectors (dim, count), always the same: the axes, where they are at most half of all, and others."""
    axes = np.eye(dim)[:, : count // 2]
    return _fixed(np.concatenate([axes, _orthogonal(dim, count - axes.shape[1], np.random.default_rng(_SEED))], axis=1))


def _orthogonal(dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
    blocks = [np.linalg.qr(rng.standard_normal((dim, min(dim, count))))[0] for _ in range(-(-count // dim))]
    return np.concatenate(blocks, axis=1)[:, :count]


def _fixed(directions: np.ndarray) -> np.ndarray:
    directions.flags.writeable = False
    return directions
