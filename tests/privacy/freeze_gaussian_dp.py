"""Write the values that test_gaussian_dp.py compares with: `python tests/privacy/freeze_gaussian_dp.py`.

Needs NumPy and mpmath, and nothing of dpmanifolds. δ(ε), P₁(A) and P₂(A) of two Riemannian Gaussians at distance Δ, by
the formulas of MATH.md section 5 as they stand there (cosines, clipping, guards and splittings), with 40 digits of
working precision, rounded to 25; mu_at_zero is −2Φ⁻¹(P₂(A)) at ε = 0. Takes some minutes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

FILE = Path(__file__).parent / "frozen" / "gaussian_dp.json"
SEED = 20240607
DIGITS = 25


def share(d: int, x: Any) -> Any:
    """I_x(a, a), a = (d−1)/2."""
    x = min(max(x, mp.mpf(0)), mp.mpf(1))
    a = mp.mpf(d - 1) / 2
    if d == 2:
        return 2 / mp.pi * mp.asin(mp.sqrt(x))
    if d == 3:
        return x
    return mp.betainc(a, a, 0, x, regularized=True)


def breakpoints(low: Any, high: Any, inner: list[Any], width: Any) -> list[Any]:
    """The ends, the given points between them, and steps of 3/2 of `width`, so that no bump is missed."""
    count = min(int((high - low) / width / 1.5) + 1, 60)
    points = [low + (high - low) * k / count for k in range(count + 1)] + inner
    return sorted({mp.mpf(p) for p in points if low <= p <= high})


def masses(kind: str, d: int, sigma: Any, delta: Any, epsilon: Any) -> tuple[Any, Any]:
    """P₁(A) and P₂(A) in unit curvature."""
    q = 2 * sigma**2 * epsilon
    sine, cosine = (mp.sin, mp.cos) if kind == "sphere" else (mp.sinh, mp.cosh)
    sign = 1 if kind == "sphere" else -1
    drift = 0 if kind == "sphere" else (d - 1) * sigma**2
    end = mp.pi if kind == "sphere" else drift + 20 * sigma + mp.sqrt(d) * sigma + (q + delta**2) / delta

    def weight(s: Any) -> Any:
        return mp.exp(-(s**2) / (2 * sigma**2) + (d - 1) * mp.log(sine(s))) if s > 0 else mp.mpf(0)

    def c(s: Any, r: Any) -> Any:
        return sign * (cosine(r) - cosine(s) * cosine(delta)) / (sine(s) * sine(delta))

    def first(s: Any) -> Any:
        if s <= 0 or (kind == "sphere" and s**2 + q >= mp.pi**2):
            return mp.mpf(0)
        return weight(s) * share(d, (1 + c(s, mp.sqrt(s**2 + q))) / 2)

    def second(s: Any) -> Any:
        if s <= 0 or (kind == "sphere" and s >= mp.pi):
            return mp.mpf(0)
        return weight(s) * share(d, (1 - c(s, mp.sqrt(s**2 - q))) / 2)

    around = 2 * mp.pi - delta
    extra = [(around**2 - q) / (2 * around), mp.sqrt(max(mp.pi**2 - q, 0))] if kind == "sphere" else []
    inner = [abs(q - delta**2) / (2 * delta), *extra]
    extra = [(around**2 + q) / (2 * around)] if kind == "sphere" else []
    total = mp.quad(weight, breakpoints(mp.mpf(0), end, [], sigma))
    p1 = mp.quad(first, breakpoints(mp.mpf(0), end, inner, sigma)) / total
    if kind == "sphere" and q >= mp.pi**2:
        return p1, mp.mpf(0)
    p2 = mp.quad(second, breakpoints(mp.sqrt(q), end, [(q + delta**2) / (2 * delta), *extra], sigma)) / total
    return p1, p2


def case(kind: str, d: int, curvature: float, sigma: float, delta: float, epsilon: float) -> dict[str, Any]:
    root = mp.sqrt(abs(mp.mpf(curvature)))
    scaled = (root * mp.mpf(sigma), root * mp.mpf(delta))
    p1, p2 = masses(kind, d, *scaled, mp.mpf(epsilon))
    _, zero = masses(kind, d, *scaled, mp.mpf(0))
    probit = mp.findroot(lambda z: mp.ncdf(z) - zero, float(-scaled[1] / scaled[0] / 2))
    return {
        "manifold": kind,
        "dim": d,
        "curvature": curvature,
        "sigma": sigma,
        "sensitivity": delta,
        "epsilon": epsilon,
        "first": mp.nstr(p1, DIGITS),
        "second": mp.nstr(p2, DIGITS),
        "delta": mp.nstr(p1 - mp.exp(mp.mpf(epsilon)) * p2, DIGITS),
        "mu_at_zero": mp.nstr(-2 * probit, DIGITS),
    }


def main() -> None:
    mp.mp.dps = 40
    rng = np.random.default_rng(SEED)
    cases = []
    for kind in ("sphere", "hyperbolic"):
        for d in (2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 5, 5, 7, 11, 20, 60):
            curvature = float(np.round(np.exp(rng.uniform(-1.5, 1.5)), 3)) * (1 if kind == "sphere" else -1)
            root = abs(curvature) ** 0.5
            sigma = float(np.round(np.exp(rng.uniform(-2.5, 0.8)) / root, 4))
            largest = 3.1 if kind == "sphere" else 5.0
            delta = float(np.round(min(sigma * root * np.exp(rng.uniform(-2, 2.2)), largest) / root, 4))
            epsilon = delta / sigma * rng.uniform(0, 4)
            if kind == "sphere":
                epsilon = min(epsilon, delta * (2 * np.pi / root - delta) / (2 * sigma**2) * rng.uniform(0.5, 0.95))
            epsilon = float(np.round(epsilon, 4))
            cases.append(case(kind, d, curvature, sigma, delta, epsilon))
            print(cases[-1], flush=True)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
