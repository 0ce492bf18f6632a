"""Jiang, Chang, Liu, Ding, Kong and Jiang 2023, Figure 1: μ of the Riemannian Gaussian, and what it buys on S².

>>> from papers import names, reproduce
>>> "jiang-1" in names()  # reproduce("jiang-1", quick=True) runs it
True

μ against σ on the circle and the line: the exact profile, the published Algorithm 1 (circle) and the Monte-Carlo
Algorithm 2 at the paper's settings (1,000 draws × 100, 1,000 values of ε, 20 replicates; exact draws instead of its
chains). Then the Gaussian against the Laplace at equal μ on S², n = 10, r = π/8, with μ from quadrature.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpmanifolds.domains import Ball
from dpmanifolds.intrinsic import RiemannianGaussian, RiemannianLaplace
from dpmanifolds.manifolds import Euclidean, Sphere
from dpmanifolds.privacy import gaussian_dp_mu, mu_of_pure, sensitivity_of_mean, sigma_for_mu
from papers._checks import inside, near
from papers._plots import curves
from papers._study import Claim, Numbers, Result, Setting, claim, compared, mean_and_error
from papers.jiang_algorithms import algorithm_1, algorithm_2
from papers.published import published_sensitivity_of_mean

__all__ = ["PANELS", "SIZE", "draw", "run"]

PANELS, SIZE = (2, 2), (9.0, 8.0)
_CIRCLE, _LINE = "Circle S¹, Δ = 1", "Line R, Δ = 1"
_EXCESS, _UTILITY = "Overestimation by Algorithm 2, Δ = 1", "S², n = 10, r = π/8: error at equal μ"
_MONTE_CARLO = "Algorithm 2 (no error bound)"


def run(setting: Setting) -> Result:
    """Estimates and utility."""
    numbers = Numbers()
    claims = [*_estimates(setting, numbers), *_utility(setting, numbers)]
    title = "Jiang et al. 2023, Figure 1: Gaussian differential privacy of the Riemannian Gaussian"
    return Result("jiang-1", title, numbers, tuple(claims), setting.size)


def _estimates(setting: Setting, numbers: Numbers) -> list[Claim]:
    steps = setting.pick((1, 4, 12), tuple(range(1, 17)), tuple(range(1, 17)))
    replicates = setting.pick(3, 8, 20)
    options: dict[str, Any] = {"draws": setting.pick(100, 1000, 1000), "repeats": setting.pick(10, 100, 100)}
    excess: dict[str, dict[float, np.ndarray]] = {_CIRCLE: {}, _LINE: {}}
    first, exact = {}, {}
    for step in setting.each(steps, "Algorithm 2"):
        sigma = step / 4
        exact[sigma] = gaussian_dp_mu(Sphere(1), sigma, 1.0)
        first[sigma] = algorithm_1(sigma, 1.0)
        largest = {_CIRCLE: None, _LINE: max(10.0, 5 / sigma + 1 / (2 * sigma**2))}
        for panel, space, truth in ((_CIRCLE, Sphere(1), exact[sigma]), (_LINE, Euclidean(1), 1 / sigma)):
            found = np.array(
                [
                    algorithm_2(space, sigma, 1.0, largest_epsilon=largest[panel], rng=setting.rng, **options)
                    for _ in range(replicates)
                ]
            )
            excess[panel][sigma] = found / truth - 1
            numbers.add(panel, _MONTE_CARLO, sigma, found.mean(), found.min(), found.max())
            percent = 100 * excess[panel][sigma]
            numbers.add(_EXCESS, panel.split(",")[0], sigma, percent.mean(), percent.min(), percent.max())
        numbers.add(_CIRCLE, "exact", sigma, exact[sigma])
        numbers.add(_CIRCLE, "line R: 1/σ", sigma, 1 / sigma)
        numbers.add(_LINE, "exact: 1/σ", sigma, 1 / sigma)
    sigmas = list(exact)
    small, large = sigmas[0], sigmas[-1]
    over, error = mean_and_error(excess[_CIRCLE][small])
    line_over, line_error = mean_and_error(excess[_LINE][small])
    wrong = [float(np.mean(excess[_LINE][sigma])) / sigma for sigma in (small, large)]
    typical = [float(np.mean(np.abs(excess[_CIRCLE][sigma]))) for sigma in sigmas if sigma >= 1]
    worst = max(abs(first[sigma] / exact[sigma] - 1) for sigma in sigmas)
    steepest = max(mu_of_pure(e) / e for e in np.linspace(0.01, 10, 500))
    return [
        claim(
            "Jiang, section 4.2",
            "at small σ the circle's μ is almost exactly the line's",
            f"{exact[small]:.6f} against {1 / small:.6f} at σ = {small}",
            abs(exact[small] * small - 1) < 1e-3,
            near("μ at σ = ¼", exact[0.25], 4.0, slack=1e-5),
            near("μ at σ = 1", exact[1.0], 0.983169, slack=1e-5),
        ),
        claim(
            "Jiang, section 4.2",
            "at larger σ, μ is smaller on the circle than on the line",
            f"{exact[large]:.4f} against {1 / large:.4f} at σ = {large:g}",
            all(exact[sigma] < 1 / sigma for sigma in sigmas if sigma >= 0.5),
            near("μ at σ = 3", exact[3.0], 0.173744, slack=1e-5),
        ),
        claim(
            "Jiang, section 4.2",
            "Algorithm 2 is fairly accurate at larger σ",
            f"mean absolute error on the circle {min(typical):.1%} to {max(typical):.1%} for σ ≥ 1: it grows again "
            "where μ "
            "is small",
            max(typical) < 0.1,
            setting.above_smoke(inside("largest error", max(typical), 0.0, 0.15, proven="low")),
        ),
        claim(
            "Jiang, section 4.2",
            "as σ gets smaller, Algorithm 2 overestimates μ more",
            f"at σ = {small}: by {over:.1%} ± {error:.1%} on the circle, {line_over:.1%} ± {line_error:.1%} on the "
            "line, "
            f"{wrong[0]:.3f} in μ, against {wrong[1]:.3f} at σ = {large:g}; relative to μ the line's error grows "
            "with σ, to "
            f"{float(np.mean(excess[_LINE][large])):.0%}",
            over - 4 * error > 0 and line_over - 4 * line_error > 0 and wrong[0] > wrong[1],
            setting.above_smoke(inside("excess on the circle", over, 0.035, 0.075)),
            setting.above_smoke(inside("excess on the line", line_over, 0.02, 0.11)),
        ),
        claim(
            "Jiang, Algorithm 1 and Corollary 3.2.1",
            "the maximum of μ_ε over ε > 0 is the μ of the circle",
            f"within {worst:.1e} of it, since the maximum is at ε = 0 and the printed δ(ε) is wrong only beyond (see "
            "errata)",
            worst < 1e-3,
            inside("largest difference", worst, 0.0, 1e-3),
        ),
        claim(
            "Jiang, section 5",
            "ε-DP gives μ = −2Φ⁻¹(1/(1+e^ε)) ≤ √(π/2)·ε",
            f"largest μ/ε over ε in (0, 10]: {steepest:.6f}; √(π/2) = {math.sqrt(math.pi / 2):.6f}",
            steepest <= math.sqrt(math.pi / 2) * (1 + 1e-9),
            near("largest μ/ε", steepest, math.sqrt(math.pi / 2), slack=1e-5),
        ),
    ]


def _utility(setting: Setting, numbers: Numbers) -> list[Claim]:
    space, n, north = Sphere(2), 10, np.array([0.0, 0.0, 1.0])
    ball = Ball(space, north, math.pi / 8)
    published, tight = published_sensitivity_of_mean(ball, n), float(sensitivity_of_mean(ball, n))
    draws = setting.pick(200, 2000, 20_000)
    rows = []
    for step in setting.each(setting.pick((1, 8), tuple(range(1, 13)), tuple(range(1, 13))), "S²"):
        sigma = step / 4
        mu = gaussian_dp_mu(space, sigma, published)
        epsilon = math.log(float(ndtr(mu / 2) / ndtr(-mu / 2)))
        gaussian = RiemannianGaussian(space, north, sigma)
        laplace = RiemannianLaplace(space, north, published / epsilon)
        ours = RiemannianGaussian(space, north, sigma_for_mu(space, mu, tight))
        for law, label in (
            (gaussian, "Riemannian Gaussian, published Δ"),
            (laplace, "Riemannian Laplace, published Δ"),
            (ours, "ours: Riemannian Gaussian, Δ = 2·tan(r)/n"),
        ):
            sample = space.dist(north, law.sample(draws, setting.rng))
            numbers.add_sample(_UTILITY, label, mu, sample, errors=4.0)
        rows.append((sigma, mu, gaussian.mean_distance, laplace.mean_distance, ours.mean_distance))
    table = np.array(rows)
    gain = 1 - table[:, 2] / table[:, 3]
    gap = table[:, 3] - table[:, 2]
    best = int(np.argmax(gap))
    estimate = algorithm_2(space, 0.25, published, draws=1000, repeats=setting.pick(5, 100, 100), rng=setting.rng)
    mu_small, mu_large = table[-1, 1], table[0, 1]
    return [
        claim(
            "Jiang, section 5.2",
            "at equal μ the Gaussian errs less than the Laplace on S²",
            f"{gain.min():.1%} to {gain.max():.1%} less mean distance for μ between {mu_small:.3g} and {mu_large:.3g} "
            "(exact expectations, no Monte Carlo)",
            bool(gain.min() > 0),
            near("gain at σ = ¼", gain[0], 0.460, slack=0.002),
            setting.above_smoke(near("gain at σ = 3", gain[-1], 0.0199, slack=0.001)),
        ),
        claim(
            "Jiang, section 5.2",
            "the gain is greater with smaller μ and less pronounced with larger μ",
            f"{gap[-1]:.3f} rad at the smallest μ, {gap[0]:.3f} at the largest, most ({gap[best]:.3f}) at μ = "
            f"{table[best, 1]:.2g}; relative to the Laplace {gain[-1]:.0%}, {gain[0]:.0%}, {gain[best]:.0%}: for "
            "tiny μ both "
            "are nearly uniform on the sphere",
            bool(np.all(np.diff(gap) >= 0)),
            near("gap at σ = ¼", gap[0], 0.264, slack=0.002),
            setting.above_smoke(near("largest gap", gap[best], 0.341, slack=0.002)),
        ),
        claim(
            "Jiang, section 5.2",
            "at larger μ the gain is small because Algorithm 2 overestimates μ there",
            f"at σ = 1/4 the exact μ is {mu_large:.4f}, Algorithm 2 gives {estimate:.4f} "
            f"({estimate / mu_large - 1:+.1%}); the "
            f"gain with the exact μ is still {gain[0]:.1%}",
            estimate > mu_large and gain[0] < 0.1,
            near("exact μ", mu_large, 0.4808, slack=1e-4),
            setting.above_smoke(inside("Algorithm 2", estimate, 0.36, 0.72)),
        ),
        compared(
            "Jiang, section 5.1",
            "the sensitivity 2r(2−h)/(nh) is what the noise must cover",
            published / tight,
            (1.0, 1.001),
            unit=" times what is proven",
            note=f"at the same μ the error falls by {1 - table[0, 4] / table[0, 2]:.0%} at σ = 1/4",
            checks=[near("ratio", published / tight, 1.46617, slack=1e-4)],
        ),
    ]


def draw(result: Result, axes: Any) -> None:
    """μ on the circle and the line, the overestimation, and errors at equal μ."""
    for axis, panel in zip(axes[:2], (_CIRCLE, _LINE), strict=True):
        curves(axis, result, panel, x="scale σ", y="μ (band: all replicates)", log="y")
    curves(axes[2], result, _EXCESS, x="scale σ", y="above the exact μ, %", log="")
    curves(axes[3], result, _UTILITY, x="μ of Gaussian DP", y="error (rad), mean ± 4 SE", log="x")
