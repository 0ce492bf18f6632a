"""Utpala, Vepakomma and Miolane 2022, Figure 1: tangent Gaussian and Laplace on log-Euclidean SPD(k), k = 2 to 30.

>>> from papers import names, reproduce
>>> "utpala-1" in names()  # reproduce("utpala-1", quick=True) runs it
True

n = 500 matrices with eigenvalues uniform in [e^−¼, e^¼], in the ball of radius √k/4, Δ = √k/1000. The log-Euclidean
metric is flat, so the Laplace has an exact sampler and its mean error is d·Δ/ε; the paper drew it by a Metropolis
chain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpmanifolds.domains import Ball
from dpmanifolds.intrinsic import FlatGaussian, FlatLaplace
from dpmanifolds.manifolds import SPD, Euclidean
from dpmanifolds.privacy import ApproxDP, gaussian_sigma, laplace_scale
from dpmanifolds.releases import private_mean
from dpmanifolds.statistics import frechet_mean
from dpmanifolds.sums import choose, mean_facts
from papers._checks import inside, near
from papers._plots import curves, legend_below, power
from papers._study import Claim, Numbers, Result, Setting, claim, compared
from papers.published import classical_gaussian_sigma

__all__ = ["PANELS", "SIZE", "draw", "run"]

PANELS, SIZE = (2, 3), (9.0, 6.8)
_KS = (2, 5, 10, 15, 20, 25, 30)
_EPSILONS, _DELTAS = (0.1, 0.2, 0.4), (1e-7, 1e-8, 1e-9)
_DELTA, _N, _SPREAD = 1e-6, 500, 0.25
_LAPLACE, _CLASSIC, _ANALYTIC = "Riemannian Laplace", "Tangent Gaussian, classical", "Tangent Gaussian, analytic"
_OURS = "ours (mechanism chosen for the budget)"
_USELESS = "public centre alone: no information"


def run(setting: Setting) -> Result:
    """Errors against k."""
    numbers = Numbers()
    ks = setting.pick((2, 5), _KS, _KS)
    balls = {k: Ball(SPD(k, "log-euclidean"), np.eye(k), _SPREAD * math.sqrt(k) * (1 + 1e-9)) for k in ks}
    records = {k: _records(k, _N, setting.rng) for k in ks}
    away = {k: float(ball.manifold.dist(ball.center, _mean(ball, records[k]))) for k, ball in balls.items()}
    for epsilon in _EPSILONS:
        _by_epsilon(setting, numbers, balls, records, epsilon)
    for delta in _DELTAS:
        for k, ball in balls.items():
            moved, dim = 2 * ball.radius / _N, ball.manifold.dim
            panel = f"ε = 0.2, δ = {power(delta)}, n = {_N}"
            numbers.add(panel, _LAPLACE, k, dim * laplace_scale(moved, 0.2))
            numbers.add(panel, _CLASSIC, k, classical_gaussian_sigma(moved, 0.2, delta) * mean_length(dim))
            numbers.add(panel, _ANALYTIC, k, gaussian_sigma(moved, 0.2, delta) * mean_length(dim))
            numbers.add(panel, _USELESS, k, away[k])
            numbers.add(
                panel, _OURS, k, choose(mean_facts(ball, _N), ApproxDP(0.2, delta)).mechanism.expected_error.mean
            )
    title = "Utpala et al. 2022, Figure 1: error of the private mean of k × k matrices"
    return Result("utpala-1", title, numbers, tuple(_claims(setting, ks)), setting.size)


def mean_length(dim: int) -> float:
    """E|z| of a standard normal vector."""
    return FlatGaussian(Euclidean(dim), 1.0).distance_moment(1)


def _records(k: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """EDEᵀ: eigenvalues uniform in [e^−r, e^r], E Haar-distributed."""
    values = rng.uniform(math.exp(-_SPREAD), math.exp(_SPREAD), (n, k))
    factors, triangle = np.linalg.qr(rng.standard_normal((n, k, k)))
    factors = factors * np.sign(np.einsum("nii->ni", triangle))[:, None, :]
    points = (factors * values[:, None, :]) @ np.swapaxes(factors, -1, -2)
    return np.asarray((points + np.swapaxes(points, -1, -2)) / 2)


def _mean(ball: Ball, records: np.ndarray) -> np.ndarray:
    return np.asarray(frechet_mean(ball.manifold, records).point)


def _by_epsilon(
    setting: Setting, numbers: Numbers, balls: dict[int, Ball], data: dict[int, np.ndarray], epsilon: float
) -> None:
    """Ten draws of each published mechanism, and releases of ours, as in the paper."""
    panel = f"ε = {epsilon:g}, δ = {power(_DELTA)}, n = {_N}"
    repeats, rng = setting.pick(2, 5, 10), setting.rng
    for k in setting.each(list(balls), f"ε = {epsilon}"):
        ball = balls[k]
        space, moved, dim = ball.manifold, 2 * ball.radius / _N, ball.manifold.dim
        laws = (
            (_LAPLACE, FlatLaplace(space, laplace_scale(moved, epsilon))),
            (_CLASSIC, FlatGaussian(space, classical_gaussian_sigma(moved, epsilon, _DELTA))),
            (_ANALYTIC, FlatGaussian(space, gaussian_sigma(moved, epsilon, _DELTA))),
        )
        for label, law in laws:
            lengths = np.linalg.norm(law.sample_coordinates(repeats, rng), axis=-1)
            numbers.add(
                panel, label, k, lengths.mean(), lengths.mean() - 2 * lengths.std(), lengths.mean() + 2 * lengths.std()
            )
        records = data[k]
        mean = _mean(ball, records)
        numbers.add(panel, _USELESS, k, float(space.dist(ball.center, mean)))
        count = 2 if dim > 100 else repeats
        errors = np.array(
            [
                float(space.dist(mean, private_mean(records, ball, ApproxDP(epsilon, _DELTA), rng=rng).value))
                for _ in range(count)
            ]
        )
        numbers.add(panel, _OURS, k, errors.mean(), errors.mean() - 2 * errors.std(), errors.mean() + 2 * errors.std())


def _claims(setting: Setting, ks: Any) -> list[Claim]:
    k = ks[-1]
    dim, moved = k * (k + 1) // 2, 2 * _SPREAD * math.sqrt(k) / _N
    laplace = dim * moved / 0.1
    classic, analytic = (
        sigma(moved, 0.1, _DELTA) * mean_length(dim) for sigma in (classical_gaussian_sigma, gaussian_sigma)
    )
    crossing = next((size for size in range(1, 31) if _gaussian_wins(size)), 31)
    ends = np.array([10.0, 30.0])
    dims = ends * (ends + 1) / 2
    slopes = [
        float(np.diff(np.log(square)).item() / np.diff(np.log(ends)).item()) for square in (dims * (dims + 1), dims)
    ]
    draws, error = setting.pick(2_000, 20_000, 200_000), 0.0
    sigma = classical_gaussian_sigma(2 * 1.0 / _N, 0.5, _DELTA)
    sample = np.sum((sigma * setting.rng.standard_normal((draws, 6))) ** 2, axis=1)
    unit = 1.0 * math.log(1.25 / _DELTA) * 6 / (_N * 0.5) ** 2
    error = float(sample.std() / math.sqrt(draws)) / unit
    growth = gaussian_sigma(1.0, 0.2, 1e-9) / gaussian_sigma(1.0, 0.2, 1e-7)
    band = 2 * math.sqrt(465 / mean_length(465) ** 2 - 1)
    logs = math.log(1.25e9), math.log(1.25e18)
    printed = [float((1 - math.exp(0.2)) * ndtr(1 / (2 * s) - 0.2 * s)) for s in (0.01, 1.0, 10.0)]
    return [
        compared(
            "Utpala, section 6.1",
            "tangent Gaussians yield almost ×10 utility improvement for larger k",
            laplace / analytic,
            (8, 12),
            unit=f" times at k = {k}",
            note=f"{laplace / classic:.3g} classical; {(laplace / analytic) ** 2:.3g} in ρ². With an exact "
            "Laplace; the same at every ε for the classical",
            checks=[
                setting.above_smoke(near("analytic", laplace / analytic, 5.943, slack=0.01)),
                setting.above_smoke(near("classical", laplace / classic, 4.070, slack=0.01)),
            ],
        ),
        claim(
            "Utpala, abstract and Figure 1",
            "the tangent Gaussian improves on the Laplace",
            f"from k = {crossing} on (analytic, ε = 0.1, δ = 1e−6); below, the Laplace errs less and promises pure ε",
            crossing <= 2,
            near("first k", crossing, 5),
        ),
        claim(
            "Utpala, Table 1 and section 5",
            "E ρ²: O(k⁴) for the Laplace, O(k²) for the Gaussian at a fixed radius",
            f"exponents {slopes[0]:.2f} and {slopes[1]:.2f} between k = 10 and 30",
            abs(slopes[0] - 4) < 0.2 and abs(slopes[1] - 2) < 0.1,
            near("Laplace", slopes[0], 3.87, slack=0.01),
            near("Gaussian", slopes[1], 1.94, slack=0.01),
        ),
        compared(
            "Utpala, Theorem 6",
            "E ρ² = 4r²·ln(1.25/δ)·d/(nε)²",
            float(sample.mean()) / unit,
            (3.99, 4.01),
            error=error,
            unit="·r²·ln(1.25/δ)·d/(nε)²",
            note="8, as in its own Theorem 15",
            checks=[near("constant", float(sample.mean()) / unit, 8.0, error=error)],
        ),
        compared(
            "Utpala, section 6.1",
            "δ in 1e−7 to 1e−9 does not matter significantly",
            100 * (growth - 1),
            (0, 100 * band),
            unit=" % more noise",
            note=f"the bands of the figure, ± 2 sd, are ± {band:.1%} wide at k = 30",
            checks=[near("more noise, %", 100 * (growth - 1), 20.23, slack=0.05)],
        ),
        claim(
            "Utpala, section 5",
            "δ from 1e−9 to 1e−18 increases ln(1.25/δ) from 2.4 to 3.1",
            f"from {logs[0]:.1f} to {logs[1]:.1f}: {math.sqrt(logs[1] / logs[0]):.2f} times the noise",
            abs(logs[0] - 2.4) < 0.05 and abs(logs[1] - 3.1) < 0.05,
            near("ratio of noise", math.sqrt(logs[1] / logs[0]), 1.41, slack=0.005),
        ),
        claim(
            "Utpala, Theorem 4",
            "Φ(Δ/2σ − εσ/Δ) − e^ε Φ(Δ/2σ − εσ/Δ) ≤ δ makes σ private",
            f"as printed the left side is at most {max(printed):.3f}: every σ, however small, would satisfy it; the "
            "second Φ has −Δ/2σ",
            max(printed) > 0,
            inside("largest left side", max(printed), -0.01, 0.0),
        ),
    ]


def _gaussian_wins(k: int) -> bool:
    dim = k * (k + 1) // 2
    return gaussian_sigma(1.0, 0.1, _DELTA) * mean_length(dim) < dim * laplace_scale(1.0, 0.1)


def draw(result: Result, axes: Any) -> None:
    """Six budgets."""
    for index, (axis, panel) in enumerate(zip(axes, result.panels, strict=True)):
        y = "error, mean ± 2 sd" if index < 3 else "expected error of the noise alone"
        curves(axis, result, panel, x="matrix size k", y=y if index % 3 == 0 else "", log="y", legend=False)
    legend_below(axes, 2)
