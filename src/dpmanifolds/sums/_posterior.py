"""Posterior means in the unit ball of R^d, by quadrature whose nodes follow the noise.

Gaussian noise: with s = |c|, R = |y| and k = sR/σ² the likelihood of s is ∝ e^{−(R−s)²/2σ²}·(e^{−k}·E e^{k·u₁}), u
uniform on the sphere, and E(c | y, s) has length s·E u₁e^{k·u₁}/E e^{k·u₁}: one integral over s. Laplace noise of
density ∝ e^{−|noise|/σ} is a mixture of Gaussians of scale τ, (τ/σ)² ~ χ² with d + 1 degrees of freedom: one more.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss

from dpmanifolds.sums._bessel import average_over_sphere

__all__ = ["Posterior"]

_DEPTH = 30.0
_NODES, _SCALE_NODES, _SCANNED, _MOST_SCANS = 32, 40, 48, 8
_AT_ONCE = 40_000
_REACH, _MOST_TILT = 2.0, 2.0


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
        parts = [self._means(lengths[first : first + rows]) for first in range(0, len(lengths), rows)]
        return np.concatenate([np.empty(0), *parts])

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
        most = np.max(logs, axis=-1)
        mass = weights * np.exp(logs - most[..., None]) / (1 + self.tilt * radii)
        total = np.sum(mass, axis=-1)
        return most + np.log(total * width) - gap * gap / 2, np.sum(mass * radii * cosines, axis=-1) / total

    def _plausible_radii(self, lengths: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the likelihood of s is within e^{−30} of its maximum on [0, outer]: the upper end, and the width.

        R²/τ² is noncentral χ² with noncentrality λ = s²/τ², hence (Birgé 2001) within d + λ ± 2√((d + 2λ)x) + {2x, 0}
        but for e^{−x}. The logarithm of the likelihood is concave in λ. So for R² < dτ², where it falls from λ = 0 on,
        the slope there bounds the upper end; where it still rises at the edge, the slope at the edge bounds the width.
        """
        root, depth = math.sqrt(self.dim), math.sqrt(_DEPTH)
        seen, edge = (lengths / scales) ** 2, (self.outer / scales) ** 2
        least = np.maximum(np.sqrt(np.maximum(2 * seen - self.dim, 0.0)) - 2 * depth, root)
        most = np.sqrt(2 * np.maximum(seen, self.dim) - self.dim + 4 * _DEPTH) + 2 * depth
        lowest, highest = ((end - root) * (end + root) / 2 for end in (least, most))
        flat = 2 * _DEPTH / np.where(seen < self.dim, 1 - seen / self.dim, 1e-300)
        top = np.minimum(np.minimum(highest, flat), edge)
        best = np.maximum(seen - (self.dim - 1), 0.0)
        slope = seen / (self.dim / 2 + np.hypot(self.dim / 2, np.sqrt(edge) * np.sqrt(seen))) - 1
        steep = 2 * _DEPTH / np.maximum(slope, 1e-300)
        fall = np.minimum(np.where(best < edge, top - lowest, np.minimum(best - lowest, steep)), top)
        fall = np.maximum(fall, 1e-15 * top)
        return scales * np.sqrt(top), scales * fall / (np.sqrt(top) + np.sqrt(np.maximum(top - fall, 0.0)))

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
