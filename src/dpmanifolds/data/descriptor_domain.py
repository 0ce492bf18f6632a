"""Where covariance descriptors live: a public set with half the diameter of the ball that the literature uses."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._arrays import Array, eye, is_numpy, namespace, transpose
from dpmanifolds._validate import number_between
from dpmanifolds.data.descriptors import feature_names
from dpmanifolds.domains import Domain
from dpmanifolds.manifolds import SPDLogEuclidean

# where ln²(1+x)/x is largest, and its concave majorant leaves the straight line from 0
_TOUCH = 3.9215536345675009
_SLOPE = math.log1p(_TOUCH) ** 2 / _TOUCH
_UP = 1 + 2.0**-46
# the rounding that membership forgives, in units of k·eps·(T + η); the diameter is that of the larger set
_FORGIVEN = 64
_EPS = 2.0**-52


class DescriptorDomain(Domain):
    """The symmetric matrices with λ_min(A) ≥ η and tr(A − ηI) ≤ T, with the log-Euclidean metric.

    It holds every result of `image_descriptors(images, eta=eta)`: T = 7/4 + 5/16 + π²/16 for grey images (channels=1,
    k=9), T = 9/4 + 5/16 + π²/16 for RGB ones (channels=3, k=11), by Popoviciu's inequality for each feature. With h
    the smallest concave function above ln²(1+x),

        diameter² = max over m of m·h(T/(mη)) + (k−m)·h(T/((k−m)η)),

    attained for T/(kη) ≥ 3.93: 39.874 (grey) and 43.991 (RGB) at η=1e−6 (docs/proofs/descriptors.md). The centre is
    the multiple of the identity around which the domain fits into the smallest ball, and `radius` bounds that ball.
    Everything is public: sensitivities follow from n, the channels and η.

    >>> from dpmanifolds.data import DescriptorDomain
    >>> grey, colour = DescriptorDomain(channels=1), DescriptorDomain(channels=3)
    >>> grey.manifold, round(grey.diameter, 3), round(colour.diameter, 2)
    (SPD(9, metric='log-euclidean'), 39.874, 43.99)
    """

    manifold: SPDLogEuclidean
    kind: ClassVar[str] = "descriptors"
    written: ClassVar[tuple[str, ...]] = ("channels", "eta")

    def __init__(self, channels: int = 1, eta: float = 1e-6) -> None:
        self.channels = channels
        k = len(feature_names(channels))
        self.eta = number_between("eta", eta, 1e-10, 1e6)
        self.manifold = SPDLogEuclidean(k)
        self.trace_bound = ((k - 2) / 4 + 5 / 16 + math.pi**2 / 16) * _UP
        """T: the most that the trace exceeds that of ηI."""
        self._forgiven = _FORGIVEN * k * _EPS * (self.trace_bound + self.eta)
        smallest = self.eta - self._forgiven
        self._ratio = (self.trace_bound + 2 * k * self._forgiven) / smallest * _UP
        self.largest_condition = 1 + self._ratio
        height = _best_height(k, self._ratio)
        self.center = math.exp(height) * smallest * np.eye(k)
        self.radius = _radius(k, self._ratio, height) * _UP

    def __repr__(self) -> str:
        return f"DescriptorDomain(channels={self.channels}, eta={self.eta:g})"

    @property
    def diameter(self) -> float:
        """An upper bound of the largest distance, sharp but for rounding when η ≤ T/(3.93·k)."""
        return _diameter(self.manifold.k, self._ratio) * _UP

    def contains(self, points: Array) -> Array:
        """Whether each matrix is finite, symmetric and within both bounds, up to 64k units of rounding of T + η."""
        return self._inside(self._double(points))

    def clip(self, points: Array) -> Array:
        """Matrices outside: the eigenvalues of the symmetric part are raised to η, and what exceeds η is scaled down
        until it adds up to T. Matrices inside stay bit for bit; those that hold NaN or infinities are left alone, for
        whoever reads them to refuse. float32 becomes float64, in which η can be told from 0.
        """
        points = self._double(points)
        if self._all_inside(points):
            return points
        xp = namespace(points)
        outside = ~self._inside(points) & xp.all(xp.isfinite(points), axis=(-2, -1))
        if is_numpy(points) and points.ndim > 2:
            clipped = points.copy()
            clipped[outside] = self._moved(points[outside])
            return clipped
        safe = xp.where(outside[..., None, None], points, eye(self.manifold.k, points))
        return xp.where(outside[..., None, None], self._moved(safe), points)

    def _double(self, points: Any) -> Array:
        points = self.manifold.as_points(points)
        xp = namespace(points)
        return points if points.dtype == xp.float64 else xp.astype(points, xp.float64)

    def _moved(self, points: Array) -> Array:
        xp = namespace(points)
        # entries near the largest number have eigenvalues beyond it: those matrices are scaled down first
        size = xp.clip(xp.max(xp.abs(points), axis=(-2, -1)) * 1e-200, 1.0, None)[..., None]
        scaled = points / size[..., None]
        values, vectors = xp.linalg.eigh(scaled / 2 + transpose(scaled) / 2)
        above = xp.clip(values - self.eta / size, 0.0, None)
        largest = xp.max(above, axis=-1, keepdims=True)
        shares = above / xp.where(largest > 0, largest, 1.0)
        allowed = self.trace_bound / size / xp.clip(xp.sum(shares, axis=-1, keepdims=True), 1.0, None)
        above = shares * xp.where(largest < allowed, largest, allowed) * size
        moved = (vectors * above[..., None, :]) @ transpose(vectors)
        return moved / 2 + transpose(moved) / 2 + self.eta * eye(self.manifold.k, points)

    def _inside(self, points: Array) -> Array:
        xp = namespace(points)
        # entries of a point are smaller; larger ones and NaN are kept from the eigensolver
        small = xp.all(xp.abs(points) <= 2 * (self.trace_bound + self.eta), axis=(-2, -1))
        safe = xp.where(small[..., None, None], points, xp.zeros_like(points))
        skew = xp.max(xp.abs(safe - transpose(safe)), axis=(-2, -1))
        values = xp.linalg.eigvalsh((safe + transpose(safe)) / 2)
        return (
            small
            & (skew <= self._forgiven / (2 * self.manifold.k))
            & (values[..., 0] >= self.eta - self._forgiven / 2)
            & (xp.sum(values - self.eta, axis=-1) <= self.trace_bound + self._forgiven)
        )

    def _all_inside(self, points: Array) -> bool:
        """Whether a Cholesky factorisation, several times faster than eigenvalues, shows every NumPy record inside."""
        if not is_numpy(points) or not np.array_equal(points, transpose(points)):
            return False
        k = self.manifold.k
        excess = np.trace(points, axis1=-2, axis2=-1) - k * self.eta
        if not bool(np.all(excess <= self.trace_bound)):
            return False
        try:
            np.linalg.cholesky(points - (self.eta - self._forgiven / 4) * np.eye(k))
        except np.linalg.LinAlgError:
            return False
        return True


def _majorant(x: float) -> float:
    """h(x), the smallest concave function above ln²(1+x) on x ≥ 0."""
    return math.log1p(x) ** 2 if x >= _TOUCH else x * _SLOPE


def _diameter(k: int, ratio: float) -> float:
    """max over m of √(m·h(ratio/m) + (k−m)·h(ratio/(k−m)))."""

    def part(m: int) -> float:
        return m * _majorant(ratio / m) if m else 0.0

    return math.sqrt(max(part(m) + part(k - m) for m in range(k + 1)))


def _radius(k: int, ratio: float, height: float) -> float:
    """A bound on the distance from η·e^height·I: m eigenvalues above it, the others at η at worst."""
    worst = k * height * height
    for m in range(1, k + 1):
        above = (1 + ratio / m) * math.exp(-height) - 1
        if above > 0:
            worst = max(worst, m * _majorant(above) + (k - m) * height * height)
    return math.sqrt(worst)


def _best_height(k: int, ratio: float) -> float:
    """Where the bound on the radius is smallest, by narrowing; any height is valid, so that nothing hangs on it."""
    low, high = 0.0, math.log1p(ratio)
    for _ in range(100):
        third = (high - low) / 3
        if _radius(k, ratio, low + third) <= _radius(k, ratio, high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2
