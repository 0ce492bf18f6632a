"""Composition in the far tail: a privacy-loss law tilted by e^{λl}, so that rounding is relative to δ and not to 1.

A composed `LossGrid` charges the rounding of its transforms as mass at +∞ and answers nothing below it. Here the law p
of the sum of all losses is transformed after tilting, w(l) = p(l)·e^{λl − K(λ)}, K(λ) = log Σ p(l)·e^{λl}. Where w is
off by at most e in ℓ1, wherever that lies, δ(ε) = Σ_{l>ε} (1 − e^{ε−l}) p(l) is off by at most

    e·e^{K(λ)} · max_{l>ε} (1 − e^{ε−l})·e^{−λl} = e·e^{K(λ)−λε}·λ^λ/(1+λ)^{1+λ}:

e times the bound by the Rényi divergence of order 1 + λ (Canonne, Kamath and Steinke 2020). With λ where that bound is
smallest it is some tens of δ itself, so that e = 1e−10 gives δ to 1e−8, be it 1e−6 or 1e−60. The same argument
charges what lies outside of the window of the transform, by Chernoff's bound under the tilted law.

>>> import numpy as np
>>> from dpmanifolds.privacy.conversions import delta_of_mu
>>> from dpmanifolds.privacy.loss_grid import from_profile
>>> from dpmanifolds.privacy.tilted_grid import TailLaw
>>> step = from_profile(lambda e: delta_of_mu(0.1, e), interval=1e-3, nodes=np.arange(0, 2001))
>>> bound = TailLaw([(step, 100)]).delta(np.array([9.0]))
>>> bool(1 < bound[0] / delta_of_mu(1.0, 9.0) < 1.01)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import fft, optimize

from dpmanifolds.privacy.loss_grid import LossGrid, first_below
from dpmanifolds.privacy.rounding import ULP, up

_COARSE = 2048
_LARGEST_TILT = 1e7
_SEARCH = (-12.0, math.log(_LARGEST_TILT))
_SCAN = 40
_OUTSIDE = 1e-13
_SHIFTS = 2.0 ** np.arange(-3, 9)
_MOST_CELLS = 2**21
_ENOUGH = 1e-3
_SPARE = 5.0
_ROUNDS = 12


class TiltedLaw:
    """δ(ε) near one ε: a grid of masses in a window, and what their error costs at each ε."""

    def __init__(self, grid: LossGrid, tilt: float, log_moment: float, error: float) -> None:
        self.grid, self.tilt, self._log_moment, self._error = grid, tilt, log_moment, error

    def charge(self, epsilon: np.ndarray) -> np.ndarray:
        """What the masses' error costs: e·e^{K−λε}·λ^λ/(1+λ)^{1+λ}."""
        return np.asarray(self._error * np.exp(np.minimum(self._log_moment + _log_rest(self.tilt, epsilon), 0.0)))

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """An upper bound on δ(ε)."""
        return np.asarray(np.minimum(self.grid.delta(epsilon) + self.charge(epsilon), 1.0))

    def epsilon(self, delta: float, high: float) -> float:
        """The smallest ε with δ(ε) ≤ delta, at most `high`, at which that is known."""
        return 0.0 if float(self.delta(np.asarray(0.0))) <= delta else first_below(self.delta, delta, high)


def _log_rest(tilt: float, epsilon: np.ndarray) -> np.ndarray:
    """−λε + λ·log λ − (1+λ)·log(1+λ)."""
    return np.asarray(-tilt * epsilon - tilt * math.log1p(1 / tilt) - math.log1p(tilt))


class TailLaw:
    """The sum of independent losses, each a grid with the same interval and a count."""

    def __init__(self, parts: list[tuple[LossGrid, int]], coarser: Callable[[], TailLaw | None] | None = None) -> None:
        """`coarser` makes the same law on a wider grid, for tilts whose window is too large for this one."""
        self._parts, self._make_coarser = parts, coarser
        self.interval = parts[0][0].interval
        self.copies = sum(count for _, count in parts)
        missing = math.fsum(count * math.log1p(-min(grid.infinity, 0.5)) for grid, count in parts)
        self.infinity = float(up(-math.expm1(missing))) if max(grid.infinity for grid, _ in parts) < 0.5 else 1.0

    @cached_property
    def _sparse(self) -> list[tuple[np.ndarray, np.ndarray, int]]:
        """Losses and logarithms of masses, where there are any."""
        kept = [(grid, np.flatnonzero(grid.masses), count) for grid, count in self._parts]
        return [(grid.losses[at], np.log(grid.masses[at]), count) for grid, at, count in kept]

    @cached_property
    def _coarse(self) -> list[tuple[np.ndarray, np.ndarray, int]]:
        """The same in a few thousand cells, for searches only."""
        found = []
        for losses, logs, count in self._sparse:
            if len(losses) <= 2 * _COARSE:
                found.append((losses, logs, count))
                continue
            cuts = np.linspace(0, len(losses), _COARSE + 1).astype(int)[:-1]
            masses = np.add.reduceat(np.exp(logs), cuts)
            middle = np.add.reduceat(np.exp(logs) * losses, cuts) / np.maximum(masses, 1e-300)
            kept = masses > 0
            found.append((middle[kept], np.log(masses[kept]), count))
        return found

    @staticmethod
    def _log_moment(parts: list[tuple[np.ndarray, np.ndarray, int]], tilt: float) -> float:
        """K(λ)."""
        total = 0.0
        for losses, logs, count in parts:
            values = logs + tilt * losses
            top = float(np.max(values))
            total += count * (top + math.log(float(np.sum(np.exp(values - top)))))
        return total

    def _best_tilt(self, epsilon: float) -> tuple[float, float]:
        """A good λ for δ(ε), and the logarithm of the best one's bound, by the coarse law.

        The smallest λ whose bound is within e^5 of the best: rare large losses, tilted, need a large window.
        """

        def cost(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            return self._log_moment(self._coarse, tilt) + float(_log_rest(tilt, np.asarray(epsilon)))

        grid = np.linspace(*_SEARCH, _SCAN)
        values = [cost(point) for point in grid]
        best = int(np.argmin(values))
        bounds = (grid[max(best - 1, 0)], grid[min(best + 1, _SCAN - 1)])
        found = optimize.minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-3})
        low, high = _SEARCH[0], float(found.x)
        while high - low > 0.05:
            middle = (low + high) / 2
            low, high = (low, middle) if cost(middle) <= found.fun + _SPARE else (middle, high)
        return math.exp(high), float(found.fun)

    def tilted(self, tilt: float) -> TiltedLaw | None:
        """The law tilted by λ, in a window that holds all but 2e−13 of it; None where the window is too large."""
        moments = [self._log_moment([part], tilt) / part[2] for part in self._sparse]
        here = math.fsum(moment * count for moment, (_, _, count) in zip(moments, self._sparse, strict=True))
        spread = self._spread(tilt, moments)
        ends = []
        for sign in (1, -1):
            shifts = sign * _SHIFTS / spread
            grown = [self._log_moment(self._sparse, tilt + shift) - here - math.log(_OUTSIDE) for shift in shifts]
            ends.append(min(room / abs(shift) for room, shift in zip(grown, shifts, strict=True)))
        low = math.floor(-ends[1] / self.interval) - 1
        size = fft.next_fast_len(math.ceil(ends[0] / self.interval) + 2 - low, real=True)
        if size > _MOST_CELLS:
            return None
        masses, error = self._transformed(tilt, moments, low, size)
        losses = (low + np.arange(size)) * self.interval
        with np.errstate(over="ignore", divide="ignore"):
            true = np.exp(np.minimum(np.log(masses) + (here - tilt * losses), 0.0))
        rounding = 512 * self.copies + 4096 + 8 * (abs(here) + tilt * float(np.max(np.abs(losses))))
        slack = 1 + ULP * rounding
        grid = LossGrid(self.interval, low, true * slack, self.infinity)
        return TiltedLaw(grid, tilt, here, (error + 2 * _OUTSIDE) * slack)

    def _spread(self, tilt: float, moments: list[float]) -> float:
        """The standard deviation of the tilted sum."""
        variance = 0.0
        for (losses, logs, count), moment in zip(self._sparse, moments, strict=True):
            weights = np.exp(logs + tilt * losses - moment)
            mean = float(np.sum(weights * losses))
            variance += count * max(float(np.sum(weights * (losses - mean) ** 2)), 0.0)
        return max(math.sqrt(variance), self.interval)

    def _transformed(self, tilt: float, moments: list[float], low: int, size: int) -> tuple[np.ndarray, float]:
        """The tilted masses at low, low + 1, … of the sum, modulo the window, and a bound on their ℓ1 error.

        A transform of length N is off by at most 3.4·log₂N units u of its ℓ2 norm (Higham 2002, theorem 24.2), so each
        of its values by η = 3.4·log₂N·u·√N·‖w‖₂, where w leaves out the mass at 0, whose transform is exact. The k-th
        power ŵ^k is then off by k·η·|ŵ|^{k−1}, |ŵ| the larger of both, and by 6k units for the multiplications; in ℓ1
        the result is off by no more than the ℓ2 norm of all this.
        """
        unit = float(np.finfo(np.longdouble).eps)
        level = 3.4 * math.log2(size) * unit
        product = np.ones(size // 2 + 1, dtype=np.clongdouble)
        largest, relative = np.ones(size // 2 + 1), np.zeros(size // 2 + 1)
        with np.errstate(under="ignore"):
            for (grid, count), moment in zip(self._parts, moments, strict=True):
                at = np.flatnonzero(grid.masses)
                weights = np.exp(np.log(grid.masses[at]) + tilt * grid.losses[at] - moment)
                places = (grid.lower + at) % size
                centre = at == -grid.lower
                rest = np.bincount(places[~centre], weights[~centre], minlength=size)
                seen = fft.rfft(rest.astype(np.longdouble)) + float(np.sum(weights[centre]))
                off = level * math.sqrt(size) * float(np.linalg.norm(rest)) + 4 * unit
                length = np.abs(seen).astype(np.float64)
                length = np.minimum(length + off, max(float(np.sum(weights)), float(np.max(length)))) * (1 + ULP)
                relative += count * (off / length + 6 * unit)
                largest *= length**count
                product *= _power(seen, count)
            result = np.roll(fft.irfft(product, size).astype(np.float64), -low)
        error = math.sqrt(2) * float(np.linalg.norm(largest * (relative + level)))
        return np.maximum(result, 0.0) * (1 + 2 * ULP), error

    @cached_property
    def _coarser(self) -> TailLaw | None:
        return None if self._make_coarser is None else self._make_coarser()

    def _refined(self, epsilon: float) -> TiltedLaw | None:
        law = self.tilted(self._best_tilt(epsilon)[0])
        return self._coarser._refined(epsilon) if law is None and self._coarser is not None else law

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """Upper bounds on δ at an array of ε: a tilt at the middle of those still open serves many of them."""
        values = np.ones(epsilon.shape)
        still = np.flatnonzero(np.isfinite(epsilon) & (epsilon > 0))
        values[np.isposinf(epsilon)] = self.infinity
        for _ in range(_ROUNDS):
            if not still.size:
                break
            law = self._refined(float(np.sort(epsilon[still])[still.size // 2]))
            if law is None:
                break
            found, charge = law.delta(epsilon[still]), law.charge(epsilon[still])
            values[still] = np.minimum(values[still], found)
            still = still[charge > _ENOUGH * found]
        return values

    def epsilon(self, delta: float) -> float:
        """An upper bound on ε(δ): by Rényi divergences first, then by the law tilted there."""
        if delta <= self.infinity:
            return math.inf
        rest, low, high = math.log(delta - self.infinity), 0.0, self.interval
        while self._best_tilt(high)[1] > rest:
            low, high = high, 2 * high
        while high - low > 1e-2 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._best_tilt(middle)[1] <= rest else (middle, high)
        for _ in range(_ROUNDS):
            law = self._refined(high)
            if law is None:
                return math.inf
            while float(law.delta(np.asarray(high))) > delta:
                high *= 1.01
            high = law.epsilon(delta, high)
            if float(law.charge(np.asarray(high))) <= _ENOUGH * delta:
                break
        return high


def _power(values: np.ndarray, count: int) -> np.ndarray:
    """values^count by repeated squaring."""
    result, base = np.ones_like(values), values
    while count:
        if count & 1:
            result = result * base
        base, count = base * base if count > 1 else base, count >> 1
    return np.asarray(result)
