"""Privacy-loss distributions on a grid, built pessimistically from profiles, with every error charged.

>>> import numpy as np
>>> from dpmanifolds.privacy.conversions import delta_of_mu
>>> from dpmanifolds.privacy.loss_grid import from_profile, power
>>> step = from_profile(lambda e: delta_of_mu(0.1, e), interval=1e-3, nodes=np.arange(0, 1001))
>>> hundred = power(step, 100, tail=1e-14)
>>> bool(0 <= hundred.delta(np.array(1.0)) - delta_of_mu(1.0, 1.0) < 1e-5)
True

**From a profile** (Doroshenko et al. 2022, "Connect the dots"): with δ given, or bounded from above, at grid points,
the chords between the dots, as functions of e^ε, lie above the convex truth. They are the profile of a law on the grid
points and +∞. The relation between neighbours is symmetric, so δ(−ε) = 1 − e^−ε + e^−ε δ(ε) and the law satisfies
p(−l) = e^−l p(l): only ε ≥ 0 is ever evaluated, and the left tail has no rounding noise.

**Composition**: a pair of laws whose profile lies above a mechanism's at every real ε dominates it, and products of
dominating pairs dominate adaptive composition (Zhu, Dong and Wang 2022, Theorem 10). Convolution is by FFT; its
rounding error, bounded in ℓ1 by √N·4·log2 N·2^−52·‖p‖₂‖q‖₂, and what is cut off the right tail are added to the mass
at +∞; what is cut off the left tail is moved to the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from dpmanifolds.privacy.rounding import ULP

_FEW = 64
_NOT_CONVEX = 1e-6


class LossGrid:
    """Masses at the losses (lower + i)·interval and at +∞; its profile is an upper bound on δ(ε)."""

    def __init__(self, interval: float, lower: int, masses: np.ndarray, infinity: float) -> None:
        self.interval, self.lower, self.masses, self.infinity = interval, lower, masses, infinity

    @cached_property
    def losses(self) -> np.ndarray:
        """Where the masses lie."""
        return (self.lower + np.arange(len(self.masses))) * self.interval

    @cached_property
    def _at_nodes(self) -> np.ndarray:
        """δ at the losses."""
        return np.asarray(self.infinity + sums_ahead(self.masses, self.interval) * (1 + 4 * ULP * len(self.masses)))

    def delta(self, epsilon: np.ndarray) -> np.ndarray:
        """inf + Σ_{l > ε} (1 − e^{ε − l}) p(l), linear in e^ε between grid points."""
        at_nodes = self._at_nodes
        position = np.clip(np.floor(epsilon / self.interval) - self.lower, -1, len(at_nodes) - 1).astype(int)
        here = np.maximum(position, 0)
        after = np.minimum(position + 1, len(at_nodes) - 1)
        with np.errstate(over="ignore"):
            share = np.expm1(epsilon - self.losses[here]) / math.expm1(self.interval)
        inside = at_nodes[here] + np.clip(share, 0, 1) * (at_nodes[after] - at_nodes[here])
        total = self.infinity + float(np.sum(self.masses))
        below = total - (total - at_nodes[0]) * np.exp(np.minimum(epsilon - self.losses[0], 0.0))
        return np.asarray(np.minimum(np.where(position < 0, below, inside) * (1 + 8 * ULP), 1.0))

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta; infinity when the mass at +∞ is larger."""
        if float(self.delta(np.asarray(0.0))) <= delta:
            return 0.0
        if self.infinity * (1 + 8 * ULP) > delta:
            return math.inf
        return first_below(self.delta, delta, max(float(self.losses[-1]), 0.0))


def sums_ahead(masses: np.ndarray, interval: float) -> np.ndarray:
    """Σ_{l > l_i} (1 − e^{l_i − l}) p(l) at losses one interval h apart, by sums of positive terms.

    δ_i − δ_{i+1} = (1 − e^−h) U_{i+1}, U_i = p_i + e^−h U_{i+1}.
    """
    from scipy import signal

    ahead = signal.lfilter([1.0], [1.0, -math.exp(-interval)], masses[::-1])[::-1]
    steps = -math.expm1(-interval) * np.append(ahead[1:], 0.0)
    return np.asarray(np.cumsum(steps[::-1])[::-1])


def from_profile(
    profile: Callable[[np.ndarray], np.ndarray],
    *,
    interval: float,
    nodes: np.ndarray,
    other: Callable[[np.ndarray], np.ndarray] | None = None,
) -> LossGrid:
    """The law that connects the dots (ε, δ(ε)) at ε = nodes·interval, for increasing integer nodes from 0.

    `other` is the profile of the same pair in the other direction, where the two differ: what it puts at the loss ε
    lies at −ε in this one, e^−ε as much. Its mass at +∞ is none here.
    """
    right, infinity = connect_dots(nodes * interval, np.asarray(profile(nodes * interval), dtype=np.float64))
    if other is None:
        back = right
    else:
        back, _ = connect_dots(nodes * interval, np.asarray(other(nodes * interval), dtype=np.float64))
    left = back * np.exp(-nodes[1:] * interval)
    top = int(nodes[-1])
    masses = np.zeros(2 * top + 1)
    masses[top + nodes[1:]] = right
    masses[top - nodes[1:]] = left
    masses[top] = max(1 - infinity - float(np.sum(right)) - float(np.sum(left)), 0.0) + 4 * ULP
    return LossGrid(interval, -top, masses, infinity)


def connect_dots(epsilon: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, float]:
    """The masses at ε₁ < ε₂ < … and at +∞ of the law whose profile joins the dots (ε_i, δ_i), ε₀ = 0.

    With U_i = (δ_{i−1} − δ_i)/(1 − e^−h_i), p_i = U_i − (δ_i − δ_{i+1})/(e^h_{i+1} − 1). A dot above the chord of
    others, as an upper bound on a convex truth may have, would give a negative mass: such dots are left out, and what
    rounding leaves is set to 0.
    """
    deltas = np.minimum.accumulate(np.minimum(deltas, 1.0))
    ahead, behind = _slopes(epsilon, deltas)
    if np.any(ahead - behind < -_NOT_CONVEX * ahead):
        kept = _lower_hull(epsilon, deltas)
        masses = np.zeros(len(epsilon) - 1)
        masses[kept[1:] - 1], _ = connect_dots(epsilon[kept], deltas[kept])
        return masses, float(deltas[-1])
    # each difference is rounded relative to `ahead`, whose sum is at most δ/(1 − e^−h)
    return np.maximum(ahead - behind, 0.0) + 4 * ULP * ahead, float(deltas[-1])


def _slopes(epsilon: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of the chords before and after each dot but the first, times e^ε there."""
    gaps, drops = np.diff(epsilon), -np.diff(deltas)
    return drops / -np.expm1(-gaps), np.append(drops[1:] / np.expm1(gaps[1:]), 0.0)


def _lower_hull(epsilon: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """The dots on the lower convex hull of (e^ε, δ), first and last included."""
    kept: list[int] = []
    for i in range(len(epsilon)):
        while len(kept) > 1 and not _below_chord(epsilon, deltas, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return np.array(kept)


def _below_chord(epsilon: np.ndarray, deltas: np.ndarray, a: int, b: int, c: int) -> bool:
    """Whether dot b lies below the chord from a to c."""
    before = (deltas[a] - deltas[b]) / -math.expm1(epsilon[a] - epsilon[b])
    after = (deltas[b] - deltas[c]) / math.expm1(min(epsilon[c] - epsilon[b], 700.0))
    return bool(before > after)


def compose_grids(first: LossGrid, second: LossGrid, *, tail: float) -> LossGrid:
    """The law of the sum of two independent losses on the same grid, from above."""
    if first.interval != second.interval:
        raise ValueError(f"grids of different intervals: {first.interval} and {second.interval}.")
    masses, error = convolve(first.masses, second.masses)
    totals = [grid.infinity + float(np.sum(grid.masses)) for grid in (first, second)]
    infinity = first.infinity * totals[1] + second.infinity * totals[0] - first.infinity * second.infinity
    below, above = np.cumsum(masses), np.cumsum(masses[::-1])
    start = int(np.searchsorted(below, tail + error, side="right"))
    stop = len(masses) - int(np.searchsorted(above, tail + error, side="right"))
    start = min(start, len(masses) - 1)
    stop = max(stop, start + 1)
    kept = masses[start:stop].copy()
    kept[0] += float(np.sum(masses[:start]))
    infinity += float(np.sum(masses[stop:])) + error
    return LossGrid(first.interval, first.lower + second.lower + start, kept, min(infinity * (1 + 8 * ULP), 1.0))


def convolve(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, float]:
    """Non-negative convolution and a bound on its ℓ1 error; exact to relative rounding when one factor is sparse.

    A transform of length N is off by at most 3.4·log₂N units of its ℓ2 norm (Higham 2002, theorem 24.2), and no
    transform exceeds the ℓ1 norm: in ℓ2 the result is off by 5·log₂N·(‖f‖₂‖g‖₁ + ‖f‖₁‖g‖₂) units, its own transform
    included, and in ℓ1 by √N times as much. Units are those of extended precision, where the machine has one; what is
    then rounded to double precision is rounded up. The largest mass of each is split off and multiplied exactly:
    (a + f)∗(b + g) = ab + a·g + b·f + f∗g.
    """
    dense, sparse = sorted((first, second), key=np.count_nonzero, reverse=True)
    places = np.flatnonzero(sparse)
    if len(places) <= _FEW:
        result = np.zeros(len(first) + len(second) - 1)
        for place in places:
            result[place : place + len(dense)] += sparse[place] * dense
        return result * (1 + ULP * (len(places) + 2)), 0.0
    at, atom, rest = _without_atom(first)
    spot, peak, left = (at, atom, rest) if second is first else _without_atom(second)
    result, error = _transformed(rest, left)
    result[at : at + len(second)] += atom * second
    result[spot : spot + len(first)] += peak * rest
    return result * (1 + 4 * ULP), error


def _without_atom(masses: np.ndarray) -> tuple[int, float, np.ndarray]:
    """The largest mass, its place, and the others: a step on a small batch loses nearly always nearly nothing."""
    place = int(np.argmax(masses))
    rest = masses.copy()
    rest[place] = 0.0
    return place, float(masses[place]), rest


def _transformed(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, float]:
    """The convolution by transforms and a bound on its ℓ1 error."""
    from scipy import fft

    size = len(first) + len(second) - 1
    length = fft.next_fast_len(size, real=True)
    seen = fft.rfft(first.astype(np.longdouble), length)
    result = fft.irfft(seen * (seen if first is second else fft.rfft(second.astype(np.longdouble), length)), length)
    (long, high), (wide, tall) = ((float(np.linalg.norm(f)), float(np.sum(f))) for f in (first, second))
    unit = float(np.finfo(np.longdouble).eps)
    error = math.sqrt(length) * 5 * math.log2(length) * unit * (long * tall + high * wide)
    return np.maximum(result[:size], 0.0).astype(np.float64) * (1 + 2 * ULP), error


def power(grid: LossGrid, times: int, *, tail: float) -> LossGrid:
    """`times` independent copies, by repeated squaring; about `tail` is cut off in all."""
    result: LossGrid | None = None
    base, left, copies = grid, times, 1
    while True:
        cut = tail * copies / times / 4
        if left & 1:
            result = base if result is None else compose_grids(result, base, tail=cut)
        left >>= 1
        if not left:
            return result if result is not None else base
        base, copies = compose_grids(base, base, tail=cut), copies * 2


def where_below(profile: Callable[[np.ndarray], np.ndarray], tail: float, *, start: float) -> float:
    """An ε with δ(ε) ≤ tail, within a percent of the first."""
    high = start
    while float(profile(np.asarray(high))) > tail:
        high *= 2
    return first_below(profile, tail, high, within=0.01)


def first_below(
    profile: Callable[[np.ndarray], np.ndarray], delta: float, high: float, *, within: float = 1e-13
) -> float:
    """The first ε with δ(ε) ≤ delta, from above and within so much of itself, where that holds at `high`."""
    low = 0.0
    while high - low > within * high:
        middle = (low + high) / 2
        low, high = (low, middle) if float(profile(np.asarray(middle))) <= delta else (middle, high)
    return high


def nodes_around(corner: float) -> np.ndarray:
    """0 and the whole numbers around a corner; the one beyond catches what rounding leaves of a grid made to fit."""
    return np.unique([0, math.floor(corner), math.ceil(corner), math.ceil(corner) + 1])
