"""Write frozen/hard_profiles.json, for test_gaussian_dp.py: `python tests/privacy/freeze_hard_profiles.py [count]`.

Needs NumPy and mpmath, and nothing of dpmanifolds. δ(ε) of two Riemannian Gaussians where float64 has the hardest time:
H^d of up to 1000 dimensions with Δ/σ down to 1e−5, and spheres close to the largest loss. The formulas of MATH.md
section 5 with 60 digits; roots at the ends of an interval are removed by s = end ± y², then Gauss–Legendre panels.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

FILE = Path(__file__).parent / "frozen" / "hard_profiles.json"
SEED = 20261116
NODES = 40


def legendre_rule(count: int) -> list[tuple[Any, Any]]:
    rule = []
    for guess in np.polynomial.legendre.leggauss(count)[0]:
        x = mp.findroot(lambda y: mp.legendre(count, y), mp.mpf(float(guess)))
        slope = count * (x * mp.legendre(count, x) - mp.legendre(count - 1, x)) / (x * x - 1)
        rule.append((x, 2 / ((1 - x * x) * slope * slope)))
    return rule


def share(d: int, c: Any) -> Any:
    """I_{(1+c)/2}(a, a), a = (d−1)/2: the share of directions with cos θ ≤ c."""
    c = min(max(c, mp.mpf(-1)), mp.mpf(1))
    a = mp.mpf(d - 1) / 2
    if d == 2:
        return mp.mpf(1) / 2 + mp.asin(c) / mp.pi
    if d == 3:
        return (1 + c) / 2
    if a * c * c < 1:
        return mp.mpf(1) / 2 + c * mp.hyp2f1(mp.mpf(1) / 2, 1 - a, mp.mpf(3) / 2, c * c) / mp.beta(mp.mpf(1) / 2, a)
    small = mp.betainc(a, a, 0, (1 - abs(c)) / 2, regularized=True)
    return small if c < 0 else 1 - small


class Oracle:
    def __init__(self, kind: str, d: int, sigma: float, delta: float) -> None:
        self.kind, self.d, self.sigma, self.delta = kind, d, mp.mpf(sigma), mp.mpf(delta)
        self.sine, self.cosine = (mp.sin, mp.cos) if kind == "sphere" else (mp.sinh, mp.cosh)
        slope = lambda s: -s / self.sigma**2 + (d - 1) * self.cosine(s) / self.sine(s)  # noqa: E731
        low, high = mp.mpf("1e-30"), mp.pi if kind == "sphere" else (d - 1) * self.sigma**2 + self.sigma * mp.sqrt(d)
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        self.mode = low
        self.level = self._log_weight(low)
        self.total = self._sum(lambda s: mp.mpf(1), mp.mpf(0), self._far(mp.mpf(0)))

    def _log_weight(self, s: Any) -> Any:
        return -(s**2) / (2 * self.sigma**2) + (self.d - 1) * mp.log(self.sine(s))

    def _far(self, low: Any) -> Any:
        end = max(low, self.mode) + (14 + mp.sqrt(self.d)) * self.sigma
        return min(end, mp.pi) if self.kind == "sphere" else end

    def _sum(self, part: Callable[[Any], Any], low: Any, high: Any) -> Any:
        """∫ part·weight, from both ends to the middle in y = √(distance)."""
        low = max(low, self.mode - 14 * self.sigma) if low < self.mode - 14 * self.sigma else low
        if high <= low:
            return mp.mpf(0)
        total, middle = mp.mpf(0), (low + high) / 2
        reach = mp.sqrt(middle - low)
        panels = min(max(int((high - low) / self.sigma / 2) + 2, 3), 24)
        for end, sign in ((low, 1), (high, -1)):
            for k in range(panels):
                for x, w in RULE:
                    y = reach * (k + (1 + x) / 2) / panels
                    s = end + sign * y * y
                    total += part(s) * mp.exp(self._log_weight(s) - self.level) * 2 * y * w * reach / panels / 2
        return total

    def delta_at(self, epsilon: float) -> tuple[Any, Any]:
        """δ and P₁(A)."""
        epsilon, delta = mp.mpf(epsilon), self.delta
        q = 2 * self.sigma**2 * epsilon
        sign = 1 if self.kind == "sphere" else -1
        around = 2 * mp.pi - delta

        def c(s: Any, r: Any) -> Any:
            return sign * (self.cosine(r) - self.cosine(s) * self.cosine(delta)) / (self.sine(s) * self.sine(delta))

        low, start = (q + delta**2) / (2 * delta), (q - delta**2) / (2 * delta)
        ends = ((around**2 - q) / (2 * around), (around**2 + q) / (2 * around)) if sign > 0 else (mp.inf, mp.inf)
        high = min(ends[0], self._far(abs(start)))
        first = self._sum(lambda s: share(self.d, c(s, mp.sqrt(s * s + q))), abs(start), high)
        if start < 0:
            first += self._sum(lambda s: mp.mpf(1), mp.mpf(0), -start)
        high = min(ends[1], self._far(low))
        second = self._sum(lambda s: share(self.d, -c(s, mp.sqrt(s * s - q))), low, high)
        if sign > 0:
            second += self._sum(lambda s: mp.mpf(1), ends[1], self._far(ends[1]))
        return (first - mp.exp(epsilon) * second) / self.total, first / self.total


def draw(rng: np.random.Generator, k: int) -> tuple[str, int, float, float, float]:
    """Two H^d of high dimension, one sphere close to its largest loss, one anything, in turn."""
    if k % 4 < 2:
        d = int(np.exp(rng.uniform(np.log(20), np.log(1000))))
        sigma = float(np.exp(rng.uniform(np.log(0.01), np.log(3000 / d))))
        delta = float(sigma * np.exp(rng.uniform(np.log(1e-5), np.log(1e-4))))
        return "hyperbolic", d, sigma, delta, float(delta / sigma * rng.uniform(0, 3) ** 2 * 10 ** rng.uniform(-6, 0))
    d = int(np.exp(rng.uniform(np.log(2), np.log(60))))
    sigma = float(np.exp(rng.uniform(np.log(0.05), np.log(200))))
    if k % 4 == 2:
        delta = float(np.exp(rng.uniform(np.log(1e-3), np.log(3.0))))
        largest = delta * (2 * np.pi - delta) / 2 / sigma**2
        return "sphere", d, sigma, delta, float(largest * (1 - 10 ** rng.uniform(-7, -0.5)))
    kind = str(rng.choice(["sphere", "hyperbolic"]))
    sigma = min(sigma, 20.0)
    delta = float(min(sigma * np.exp(rng.uniform(-6, 2)), 3.0))
    return kind, d, sigma, delta, float(delta / sigma * rng.uniform(0, 6))


def main() -> None:
    rng = np.random.default_rng(SEED)
    cases = [
        ("hyperbolic", 1000, 2.3969508095419494, 2.89954429250718e-05, 1.941721764882664e-10),
        ("sphere", 2, 100.0, 1.0, 0.0002641566237663257),
    ]
    cases += [draw(rng, k) for k in range(int(sys.argv[1]) if len(sys.argv) > 1 else 78)]
    rows = []
    for kind, d, sigma, delta, epsilon in cases:
        value, power = Oracle(kind, d, sigma, delta).delta_at(epsilon)
        if value > mp.mpf("1e-290"):
            row = {"manifold": kind, "dim": d, "sigma": sigma, "sensitivity": delta, "epsilon": epsilon}
            rows.append(row | {"delta": mp.nstr(value, 25), "first": mp.nstr(power, 25)})
            print(rows[-1], flush=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


mp.mp.dps = 60
RULE = legendre_rule(NODES)

if __name__ == "__main__":
    main()
