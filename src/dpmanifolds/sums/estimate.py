"""The best guess of a point of a ball from its noisy coordinates: free post-processing.

>>> round(shrink_length(0.1, dim=2, radius=10.0, sigma=0.001, gaussian=True), 6)
0.09999
>>> round(shrink_length(0.5, dim=45, radius=1.0, sigma=0.5 / 45**0.5, gaussian=True), 3)
0.046

Known are y = c + noise and that |c| is at most a public r. In many dimensions nearly all of a ball is near its edge, so
that a uniform prior believes c to be there; a prior that spreads the radius |c| over [0, r] does not, and its posterior
mean is nowhere much worse than the better of the public centre and the noise. Two things make it better still
(measured by `python benchmarks/estimate.py`):

- The radius has density ∝ 1/(1 + a|c|/r), a = min(d − 1, 2): between uniform and uniform in its logarithm. With a = 0
  and ℓ2-Laplace noise in 3 dimensions the error was up to 2.9 times that of the better of the two.
- The prior reaches beyond the ball, to r + 2u·(1 − t/r) where that is more than r, and the guess is cut to r; t is the
  root mean square of the noise, u = t/√d. A prior that ends at the edge takes a point there for one inside: in one
  dimension that had 2.2 to 2.5 times the error of the projection onto the ball, and up to 1.3 times the noise's own.

Posterior means are taken by quadrature whose nodes follow the noise. Gaussian noise: with s = |c|, R = |y| and k =
sR/σ² the likelihood of s is ∝ e^{−(R−s)²/2σ²}·(e^{−k}·E e^{k·u₁}), u uniform on the sphere, and E(c | y, s) has length
s·E u₁e^{k·u₁}/E e^{k·u₁}: one integral over s. Laplace noise of density ∝ e^{−|noise|/σ} is a mixture of Gaussians of
scale τ, (τ/σ)² ~ χ² with d + 1 degrees of freedom: one more.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss

_MANY, _STEPS_PER_DEVIATION = 64, 10

_DEPTH = 30.0
_NODES, _SCALE_NODES, _SCANNED, _MOST_SCANS = 32, 40, 48, 8
_AT_ONCE = 40_000
_REACH, _MOST_TILT = 2.0, 2.0
_LEAST_DIMENSION = 34
_TINIEST = 1e-150
_DEBYE = (
    (24, (3, -5)),
    (1152, (81, -462, 385)),
    (414720, (30375, -369603, 765765, -425425)),
    (39813120, (4465125, -94121676, 349922430, -446185740, 185910725)),
)


def shrink_length(length: float, *, dim: int, radius: float, sigma: float, gaussian: bool) -> float:
    """|E(c | y)| for |y| = length; it points along y. The noise is N(0, σ²I), or has density ∝ e^{−|noise|/σ}.

    Between 0 and the smaller of length and radius. It grows with the length for Gaussian noise; a length that Laplace
    noise hardly reaches speaks for much noise, so that the guess falls again beyond.

    >>> round(shrink_length(0.3, dim=1, radius=1.0, sigma=1e-3, gaussian=False), 12)
    0.3
    >>> round(shrink_length(1.5, dim=2, radius=1.0, sigma=0.5, gaussian=False), 3)
    0.269
    """
    lengths = np.array([length], dtype=float)
    return float(shrink_lengths(lengths, dim=dim, radius=radius, sigma=sigma, gaussian=gaussian)[0])


def shrink_lengths(lengths: np.ndarray, *, dim: int, radius: float, sigma: float, gaussian: bool) -> np.ndarray:
    """`shrink_length` of each; of many by cubic interpolation, in steps of a tenth of the noise's deviation u.

    >>> lengths = np.linspace(0.0, 2.0, 1000)
    >>> found = shrink_lengths(lengths, dim=3, radius=1.0, sigma=0.1, gaussian=True)
    >>> round(float(found[700]) - shrink_length(lengths[700], dim=3, radius=1.0, sigma=0.1, gaussian=True), 6)
    0.0
    """
    given = np.asarray(lengths, dtype=float)
    flat = given.ravel() / radius
    law = Posterior(dim, sigma / radius, gaussian)
    found = law.means(flat) if flat.size < _MANY else _interpolate(law, flat)
    return np.asarray(radius * np.clip(found, 0.0, np.minimum(flat, 1.0))).reshape(given.shape)


def _interpolate(law: Posterior, lengths: np.ndarray) -> np.ndarray:
    """By the cubic through the knots −1, 0, 1, 2 around each length; no more of them are computed than lengths."""
    step, start = law.deviation / _STEPS_PER_DEVIATION, float(np.min(lengths))
    cells = np.floor((lengths - start) / step)
    knots = np.unique(np.unique(cells)[:, None] + np.arange(-1.0, 3.0))
    if knots.size >= lengths.size:
        return law.means(lengths)
    places = start + step * knots
    # along a line through 0 the posterior mean is an odd function
    values = np.copysign(law.means(np.abs(places)), places)
    before, here, after, beyond = (values[np.searchsorted(knots, cells + shift)] for shift in (-1.0, 0.0, 1.0, 2.0))
    x = (lengths - start) / step - cells
    left = (x - 1) * (x - 2) * (here * (x + 1) / 2 - before * x / 6)
    return np.asarray(left + x * (x + 1) * ((2 - x) * after / 2 + (x - 1) * beyond / 6))


class Posterior(NamedTuple):
    """Of c for y = c + noise; the prior of its length s has density ∝ 1/(1 + tilt·s) on [0, outer].

    >>> law = Posterior(dim=1, sigma=0.5, gaussian=True)
    >>> law.outer, law.tilt, law.means(np.array([0.0, 0.5, 100.0])).round(4).tolist()
    (1.5, 0.0, [0.0, 0.4724, 1.4975])
    """

    dim: int
    sigma: float
    gaussian: bool

    @property
    def deviation(self) -> float:
        """Of one coordinate of the noise."""
        return self.sigma * (1.0 if self.gaussian else math.sqrt(self.dim + 1))

    @property
    def outer(self) -> float:
        """The radius of the prior, 1 + 2u(1 − √d·u) or 1, u the deviation."""
        return 1 + _REACH * self.deviation * max(0.0, 1 - math.sqrt(self.dim) * self.deviation)

    @property
    def tilt(self) -> float:
        """How much less likely than the centre the edge is: by 1 + tilt."""
        return min(self.dim - 1.0, _MOST_TILT)

    def means(self, lengths: np.ndarray) -> np.ndarray:
        """|E(c | y)| for each |y| of lengths (N,)."""
        rows = max(1, _AT_ONCE // (_NODES * (1 if self.gaussian else _SCALE_NODES)))
        if len(lengths) <= rows:
            return self._means(lengths) if len(lengths) else np.empty(0)
        return np.concatenate([self._means(lengths[first : first + rows]) for first in range(0, len(lengths), rows)])

    def _means(self, lengths: np.ndarray) -> np.ndarray:
        if self.gaussian:
            return self._given_scales(lengths, np.full(lengths.shape, self.sigma))[1]
        low, high = self._plausible_scales(lengths)
        # cube roots bring nodes to small scales, which decide where the noise is much larger than the ball
        nodes, weights = _rule(_SCALE_NODES)
        roots = np.cbrt(low)[:, None] + (np.cbrt(high) - np.cbrt(low))[:, None] * nodes
        scales = roots**3
        logs, means = self._given_scales(np.broadcast_to(lengths[:, None], scales.shape), scales)
        logs += 2 * np.log(roots) - (scales / self.sigma) ** 2 / 2
        mass = weights * np.exp(logs - np.max(logs, axis=1, keepdims=True))
        return np.asarray(np.sum(mass * means, axis=1) / np.sum(mass, axis=1))

    def _given_scales(self, lengths: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln(τ^d·density of y) up to a constant, and |E(c | y)|, for Gaussian noise of these scales τ."""
        top, width = self._plausible_radii(lengths, scales)
        nodes, weights = _rule(_NODES)
        below = width[..., None] * nodes
        radii = top[..., None] - below
        logs, cosines = average_over_sphere(self.dim, radii / scales[..., None] * (lengths / scales)[..., None])
        # (R − s)² less its value at s = top, which may be 1e40 times larger
        gap, offset = (lengths - top) / scales, below / scales[..., None]
        logs -= offset * (gap[..., None] + offset / 2)
        most = logs.max(axis=-1)
        mass = weights * np.exp(logs - most[..., None]) / (1 + self.tilt * radii)
        total = mass.sum(axis=-1)
        return most + np.log(total * width) - gap * gap / 2, (mass * radii * cosines).sum(axis=-1) / total

    def _plausible_radii(self, lengths: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the likelihood of s is within e^{−30} of its maximum on [0, outer]: the upper end, and the width.

        R²/τ² is noncentral χ² with noncentrality λ = s²/τ², hence (Birgé 2001) within d + λ ± 2√((d + 2λ)x) + {2x, 0}
        but for e^{−x}. The logarithm of the likelihood is concave in λ. So for R² < dτ², where it falls from λ = 0 on,
        the slope there bounds the upper end; where it still rises at the edge, the slope at the edge bounds the width.
        """
        root, depth = math.sqrt(self.dim), math.sqrt(_DEPTH)
        ratio, rim = lengths / scales, self.outer / scales
        seen, edge = ratio * ratio, rim * rim
        least = np.maximum(np.sqrt(np.maximum(2 * seen - self.dim, 0.0)) - 2 * depth, root)
        most = np.sqrt(2 * np.maximum(seen, self.dim) - self.dim + 4 * _DEPTH) + 2 * depth
        lowest, highest = ((end - root) * (end + root) / 2 for end in (least, most))
        flat = 2 * _DEPTH / np.maximum(1 - seen / self.dim, 1e-300)
        top = np.minimum(np.minimum(highest, flat), edge)
        best = np.maximum(seen - (self.dim - 1), 0.0)
        slope = seen / (self.dim / 2 + np.hypot(self.dim / 2, rim * ratio)) - 1
        steep = 2 * _DEPTH / np.maximum(slope, 1e-300)
        fall = np.minimum(np.where(best < edge, top - lowest, np.minimum(best - lowest, steep)), top)
        fall = np.maximum(fall, 1e-15 * top)
        reach = np.sqrt(top)
        return scales * reach, scales * fall / (reach + np.sqrt(np.maximum(top - fall, 0.0)))

    def _plausible_scales(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the density of τ given y is within e^{−30} of its maximum, by scans that close in on it.

        Given the length q of the noise it is ∝ e^{−(τ/σ − q/τ)²/2}, so τ/σ is within √(x/2 + q/σ) ± √(x/2) but for
        e^{−x}; q is between R − outer and R + outer, and hardly beyond both R and the reach of its Gamma(d) law.
        """
        half = _DEPTH / 2
        nearest = np.maximum(lengths - self.outer, 0.0) / self.sigma
        reach = self.dim + math.sqrt(2 * self.dim * _DEPTH) + _DEPTH
        farthest = np.minimum(np.maximum(lengths / self.sigma, reach), (lengths + self.outer) / self.sigma)
        low = self.sigma * nearest / (np.sqrt(half + nearest) + math.sqrt(half))
        high = self.sigma * (np.sqrt(half + farthest) + math.sqrt(half))
        steps = (np.arange(_SCANNED) + 0.5) / _SCANNED
        for _ in range(_MOST_SCANS):
            logs = self._profile(lengths[:, None], low[:, None] + (high - low)[:, None] * steps)
            kept = logs > np.max(logs, axis=1, keepdims=True) - _DEPTH
            first, last = np.argmax(kept, axis=1), np.argmax(kept[:, ::-1], axis=1)
            cell = (high - low) / _SCANNED
            low, high = low + cell * np.maximum(first - 1, 0), high - cell * np.maximum(last - 1, 0)
            if np.max(first + last) < 3 * _SCANNED // 4:
                break
        return low, high

    def _profile(self, lengths: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """ln of the density of τ given y, roughly: the best likelihood of s, by I_ν's leading term, times a width."""
        seen = lengths / scales
        best = np.minimum(np.sqrt(np.maximum(seen * seen - (self.dim - 1), 0.0)), self.outer / scales)
        order = max((self.dim - 1) / 2, 1e-9)
        k = seen * best
        size = np.hypot(order, k)
        logs = order * (order / (size + k) - 1 - np.log1p((size - order) / (2 * order)))
        logs -= (seen - best) ** 2 / 2 + (scales / self.sigma) ** 2 / 2
        return np.asarray(logs + np.log(np.minimum(scales, self.outer)))


@cache
def _rule(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss and Legendre's on [0, 1]."""
    nodes, weights = leggauss(count)
    return (nodes + 1) / 2, weights / 2


def average_over_sphere(dim: int, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln(E e^{k·u₁}) − k and E u₁e^{k·u₁}/E e^{k·u₁} for u uniform on the unit sphere of R^dim.

    E e^{k·u₁} = Γ(ν+1)·(2/k)^ν·I_ν(k) and the second is I_{ν+1}(k)/I_ν(k), with ν = dim/2 − 1. From 34 dimensions on by
    Debye's expansion for large order (DLMF 10.41.3), uniform in k, to four terms: 8e−9 at worst. Below, 34 or 35
    dimensions are carried down by I_{ν−1} = (2ν/k)·I_ν + I_{ν+1}, all terms of which are positive.

    >>> logs, cosines = average_over_sphere(3, np.array([0.5]))
    >>> [round(float(value), 6) for value in (logs[0] + 0.5, np.log(np.sinh(0.5) / 0.5))]
    [0.041325, 0.041325]
    >>> [round(float(value), 6) for value in (cosines[0], 1 / np.tanh(0.5) - 1 / 0.5)]
    [0.163953, 0.163953]
    """
    k = np.maximum(k, _TINIEST)
    top = dim if dim >= _LEAST_DIMENSION else _LEAST_DIMENSION + dim % 2
    logs, cosines = _expand_large_order(top / 2 - 1, k)
    if top == dim:
        return logs, cosines
    # 2ν + k²/(the same two dimensions higher) and their products, each times a scale that keeps them in range
    scale = 1 / (1 + k / top)
    across, lower = k * scale, range(top - 4, dim - 1, -2)
    squared = across * across
    before, product = np.ones_like(k), (top - 2) * scale + across * cosines
    for own in np.multiply.outer(np.array(lower), scale):
        np.multiply(own, product, out=own)
        before *= squared
        before += own
        before, product = product, before
    logs += np.log(product) - math.log((top - 2) * math.prod(lower)) - (len(lower) + 1) * np.log(scale)
    return logs, np.minimum(across * (before / product), 1.0)


def _expand_large_order(order: float, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for ν = `order`: ν(w − 1 − z) − ν·ln((1 + w)/2) − ½·ln w + ln U_ν(1/w)/U_ν(1), z = k/ν, w = √(1 + z²).

    The ratio is taken without Γ, so that for k → ∞ its error falls as 1 − ratio does, where s·(1 − ratio) must be small
    against the noise.
    """
    here, above = np.hypot(order, k), np.hypot(order + 1, k)
    excess = k / order * (k / (here + order))
    correction = _sum_terms(order, order / here)
    logs = order * (order / (here + k) - 1 - np.log1p(excess / 2)) - np.log1p(excess) / 2
    logs += np.log(correction / _sum_terms(order, 1.0))
    slope = (order + 1) ** 2 / (above + k) - (order + 1) * np.arcsinh((order + 1) / k)
    slope -= order**2 / (here + k) - order * np.arcsinh(order / k)
    ratio = np.exp(slope) * np.sqrt(here / above) * _sum_terms(order + 1, (order + 1) / above) / correction
    return logs, np.minimum(ratio, 1.0)


def _sum_terms(order: float, p: Any) -> Any:
    """1 + U₁(p)/ν + … + U₄(p)/ν⁴ (DLMF 10.41.10), by Horner's rule in p."""
    first, *others = _term_factors(order)
    total = first * p
    for factor in others:
        total += factor
        total *= p
    return total + 1.0


@cache
def _term_factors(order: float) -> list[float]:
    """Of p¹², p¹¹, …, p: U_j holds pʲ, pʲ⁺², …, p³ʲ."""
    factors = [0.0] * 13
    for j, (below, numbers) in enumerate(_DEBYE, start=1):
        for i, number in enumerate(numbers):
            factors[j + 2 * i] += number / below / order**j
    return factors[:0:-1]
