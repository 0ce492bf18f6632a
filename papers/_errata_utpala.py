"""Statements of Utpala et al. 2022, each put to a small numerical test."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.stats import chi2, kstest

from dpmanifolds.data import DescriptorDomain, image_descriptors
from dpmanifolds.domains import Ball
from dpmanifolds.intrinsic import FlatGaussian
from dpmanifolds.manifolds import SPD, Euclidean, Manifold, Sphere
from dpmanifolds.privacy import delta_of_mu, gaussian_sigma, sensitivity_of_mean
from dpmanifolds.statistics import frechet_mean
from papers._checks import inside, near
from papers._draws import matrix_function, means_of
from papers._study import Claim, Setting, claim, compared, mean_and_error

__all__ = ["utpala_claims"]


def utpala_claims(setting: Setting) -> list[Claim]:
    """Laws, sensitivity, descriptors, and what the appendix prints."""
    return [*_laws(setting), *_geometry(setting), *_sizes(), *_descriptors(), *_pathological()]


def _laws(setting: Setting) -> list[Claim]:
    """Privacy loss, squared distance, calibration, and the printed acceptance rule."""
    rng, dim, chains = setting.rng, 6, setting.pick(200, 2_000, 10_000)
    state = rng.standard_normal((chains, dim))
    for _ in range(setting.pick(50, 400, 1_000)):
        candidate = state + rng.standard_normal((chains, dim))
        level = np.linalg.norm(candidate - state, axis=1) - np.linalg.norm(candidate, axis=1)
        move = np.log(rng.random(chains)) < level
        state[move] = candidate[move]
    reached, error = mean_and_error(np.linalg.norm(state, axis=1))
    noise = rng.standard_normal((setting.pick(20_000, 400_000, 2_000_000), 3))
    moved = np.array([0.3, 0.4, 0.0])
    losses = (np.sum((noise + moved) ** 2, axis=1) - np.sum(noise**2, axis=1)) / 2
    middle, spread = mean_and_error(losses)
    law = FlatGaussian(SPD(3, "log-euclidean"), 0.7)
    squares = np.sum(law.sample_coordinates(setting.pick(1_000, 10_000, 100_000), rng) ** 2, axis=1) / 0.49
    fit = float(kstest(squares, chi2(6).cdf).pvalue)
    true = {e: float(delta_of_mu(e / math.sqrt(2 * math.log(1.25e6)), e)) for e in (0.1, 0.4, 0.99)}
    return [
        compared(
            "Utpala, Theorem 3",
            "the privacy loss is N(ρ²/2σ², ρ²/σ²): mean 0.125 for ρ = ½, σ = 1",
            middle,
            (0.1249, 0.1251),
            error=spread,
            note=f"variance {losses.var():.4f}",
            checks=[
                near("mean", middle, 0.125, error=spread),
                near("variance", losses.var(), 0.25, error=0.25 * math.sqrt(2 / len(losses))),
            ],
        ),
        claim(
            "Utpala, Theorem 6",
            "ρ²(f(D), A(D)) has the law σ²χ²_d",
            f"{len(squares):,} draws on SPD(3), d = 6: p = {fit:.2f} (Kolmogorov and Smirnov)",
            fit > 1e-4,
            inside("p", fit, 1e-7, 1.0, proven="both"),
        ),
        claim(
            "Utpala, Theorem 4",
            "σ = Δ√(2·ln(1.25/δ))/ε is (ε, δ)-private for ε < 1",
            "true δ at δ = 1e−6: " + ", ".join(f"{value:.1e} (ε = {e:g})" for e, value in true.items()),
            max(true.values()) <= 1e-6,
            inside("largest δ", max(true.values()), 1e-10, 1e-6),
        ),
        compared(
            "Utpala, A.4",
            "accepting with exp(−ρ(M, X)/σ)/exp(−ρ(X_curr, X)/σ) draws the Laplace: mean distance d·σ = 6σ for d = 6",
            reached,
            (5.99, 6.01),
            error=error,
            unit="σ",
            note="the ratio must be between the new and the current distance to M",
            checks=[setting.above_smoke(inside("mean distance", reached, 5.1, 5.7))],
        ),
    ]


def _geometry(setting: Setting) -> list[Claim]:
    """The isometry, the Jacobian, the closed mean, the sensitivity and the bound by eigenvalues."""
    nudged = np.diag([4.0, 1.0]) + 1e-6 * np.array([[0.0, 1.0], [1.0, 0.0]])
    slope = float(matrix_function(nudged, np.log)[0, 1]) / 1e-6
    space, rng, k = SPD(9, "log-euclidean"), setting.rng, 9
    points = space.random_point(60, rng=rng)
    logs = matrix_function(points, np.log)
    rows, columns = np.triu_indices(k, 1)
    flat = np.concatenate([np.diagonal(logs, axis1=1, axis2=2), math.sqrt(2) * logs[:, rows, columns]], axis=1)
    gap = float(np.max(np.abs(np.linalg.norm(flat[1:] - flat[0], axis=1) - space.dist(points[0], points[1:]))))
    values = np.exp(rng.uniform(-0.25, 0.25, (1000, k)))
    widest = float(np.linalg.norm(np.log(values), axis=1).max())
    closed = matrix_function(logs.mean(axis=0), np.exp)
    left = float(space.norm(closed, np.mean(space.log(closed, points), axis=0)))
    spectra = np.log(np.linalg.eigvalsh(points))
    bound = 3 * np.maximum(np.abs(spectra[:, 0]), np.abs(spectra[:, -1]))
    share = float(np.max(np.linalg.norm(spectra, axis=1) / bound))
    n = 50
    records = np.stack([np.tile(np.eye(2), (n, 1, 1))] * 2)
    records[:, -1] = np.diag([math.e, 1.0]), np.diag([1 / math.e, 1.0])
    two = SPD(2, "log-euclidean")
    moved = float(two.dist(*means_of(two, records))) / float(sensitivity_of_mean(Ball(two, np.eye(2), 1.0), n))
    seconds = [_seconds(SPD(10, metric), setting) for metric in ("log-euclidean", "affine-invariant")]
    return [
        compared(
            "Utpala, Theorem 5",
            "the log-Euclidean mean moves by at most 2r/n",
            moved,
            (0.999, 1.0 + 1e-9),
            unit=" of it, by a record that crosses the ball",
            checks=[near("share", moved, 1.0, slack=1e-9)],
        ),
        claim(
            "Utpala, Lemma 9",
            "vecd∘Logm is an isometry to R^{k(k+1)/2}",
            f"distances of 60 random 9 × 9 matrices differ by at most {gap:.0e}",
            gap < 1e-10,
            inside("difference", gap, 0.0, 1e-10, proven="low"),
        ),
        claim(
            "Utpala, section 3",
            "the log-Euclidean mean is Expm of the mean of Logm",
            f"the gradient of Σρ² there has length {left:.0e}",
            left < 1e-10,
            inside("gradient", left, 0.0, 1e-10, proven="low"),
        ),
        claim(
            "Utpala, section 1.1",
            "the log-Euclidean mean is computationally faster than the affine-invariant one",
            f"{seconds[1] / seconds[0]:.2g} times faster here (500 matrices, 10 × 10, CPU time)",
            seconds[0] < seconds[1],
        ),
        claim(
            "Utpala, section 6.1",
            "eigenvalues in [e^−r, e^r] keep a matrix within √k·r of I",
            f"largest distance over 1,000 matrices, k = 9: {widest:.3f}; √k·r = 0.75",
            widest <= 0.75,
            inside("largest distance", widest, 0.5, 0.75, proven="high"),
        ),
        claim(
            "Utpala, Lemma 16",
            "‖Logm X‖ ≤ √k·max{|ln λ_min|, |ln λ_max|}",
            f"at most {share:.3f} of the bound over 60 random matrices, k = 9",
            share <= 1,
            inside("largest share", share, 1 / 3, 1.0, proven="both"),
        ),
        compared(
            "Utpala, Definition 1",
            "J(X) has the factor ln λ_i − ln λ_j = 1.386 for eigenvalues 4 and 1",
            slope,
            (1.38, 1.39),
            note="(ln λ_i − ln λ_j)/(λ_i − λ_j)",
            checks=[near("factor", slope, math.log(4) / 3, slack=1e-6)],
        ),
    ]


def _seconds(space: Manifold, setting: Setting) -> float:
    """The shortest CPU time of three means of 500 matrices."""
    points = space.random_point(setting.pick(50, 500, 500), rng=np.random.default_rng(0))
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        frechet_mean(space, points)
        best = min(best, time.process_time() - start)
    return best


def _sizes() -> list[Claim]:
    """What the noise amounts to, in closed form, for n = 500, r = ¼, δ = 1e−6."""

    def errors(k: int, epsilon: float = 0.1) -> tuple[float, float]:
        dim, moved = k * (k + 1) // 2, math.sqrt(k) / 1000
        length = FlatGaussian(Euclidean(dim), 1.0).distance_moment(1)
        return dim * moved / epsilon, gaussian_sigma(moved, epsilon, 1e-6) * length

    laplace, gaussian = errors(20)
    radius = math.sqrt(20) / 4
    slopes = [math.log(errors(30)[i] / errors(10)[i] / math.sqrt(3)) / math.log(3) for i in (0, 1)]
    dims = [k * (k + 1) // 2 for k in (2, 30)]
    spreads = [math.sqrt(dim / FlatGaussian(Euclidean(dim), 1.0).distance_moment(1) ** 2 - 1) for dim in dims]
    return [
        claim(
            "Utpala, section 5",
            "the improvement is quadratic whether one compares ρ or ρ²",
            f"E ρ at a fixed radius grows like k^{slopes[0]:.2f} for the Laplace and k^{slopes[1]:.2f} for the "
            "Gaussian: "
            "the square root in both readings, a factor of about k in ρ",
            abs(slopes[0] - 2) < 0.1 and abs(slopes[1] - 1) < 0.1,
            near("Laplace", slopes[0], math.log(465 / 55) / math.log(3), slack=1e-6),
            near("Gaussian", slopes[1], 0.5 * math.log(465 / 55) / math.log(3), slack=0.01),
        ),
        claim(
            "Utpala, section 1.1",
            "the Laplace is impracticable from matrices of moderate size on, e.g. 20 × 20",
            f"expected error {laplace:.2f} at ε = 0.1, n = 500, where all records lie within {radius:.2f} of I; but "
            "the "
            f"tangent Gaussian's is {gaussian:.2f}, no more practicable",
            laplace > radius,
            near("Laplace", laplace, 210 * math.sqrt(20) / 100, slack=1e-6),
            inside("Gaussian", gaussian, 2.2, 2.6),
        ),
        claim(
            "Utpala, section 6.1",
            "the spread of the tangent Gaussian's error is too small for the plots",
            f"standard deviation over mean: {spreads[1]:.1%} at k = 30, {spreads[0]:.0%} at k = 2",
            spreads[1] < 0.05,
            near("at k = 30", spreads[1], 1 / math.sqrt(2 * dims[1]), slack=5e-4),
        ),
    ]


def _descriptors() -> list[Claim]:
    """Lemma 17 step by step."""
    feature = np.array([0.0, 1.0])
    centred, plain = float((feature[0] - feature.mean()) ** 2), float(feature[0] ** 2)
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) / 4
    patches = (np.arange(512)[:, None] >> np.arange(9) & 1).reshape(-1, 3, 3).astype(float)
    slopes = [np.einsum("nij,ij->n", patches, one) for one in (kernel, kernel.T)]
    steepest = float(np.max(slopes[0] ** 2 + slopes[1] ** 2))
    parts = {"grey": 2 + 1 + 4 + 2 + (math.pi / 2) ** 2, "RGB": 2 + 3 + 4 + 2 + (math.pi / 2) ** 2}
    shapes = [image_descriptors(np.zeros(size)).shape[1:] for size in ((1, 8, 8), (1, 8, 8, 3))]
    traces = [DescriptorDomain(channels).trace_bound for channels in (1, 3)]
    return [
        claim(
            "Utpala, section 6.2",
            "grey images have 9 × 9 descriptors, RGB images 11 × 11",
            " and ".join(f"{rows} × {columns}" for rows, columns in shapes),
            shapes == [(9, 9), (11, 11)],
        ),
        claim(
            "Utpala, Lemma 17",
            "‖φ − μ‖² ≤ ‖φ‖² since both are non-negative",
            f"a feature that is 0 on half of the pixels and 1 on the others: {centred:.2f} against {plain:.0f} at the "
            "first. The conclusion survives: a range of 1 has a variance of at most ¼ (Popoviciu)",
            centred <= plain,
            near("centred", centred, 0.25, slack=1e-12),
        ),
        claim(
            "Utpala, Lemma 17",
            "√(I_x² + I_y²) ≤ √2",
            f"{math.sqrt(steepest):.4f}, that is √5/2, over the {len(patches)} patches of black and white, where a "
            "convex "
            "function is largest: true, not sharp",
            steepest <= 2,
            near("steepest²", steepest, 1.25, slack=1e-9),
        ),
        claim(
            "Utpala, Lemma 17",
            "‖φ‖² ≤ 12 (grey) and 14 (RGB)",
            f"the six bounds add up to {parts['grey']:.2f} and {parts['RGB']:.2f}; the trace of the covariance is at "
            "most "
            f"{traces[0]:.4f} and {traces[1]:.4f}",
            parts["grey"] <= 12 and parts["RGB"] <= 14,
            near("trace, grey", traces[0], 2.67935, slack=1e-4),
            near("trace, RGB", traces[1], 3.17935, slack=1e-4),
        ),
    ]


def _pathological() -> list[Claim]:
    """Two poles of S²."""
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    heights = np.linspace(-1, 1, 41)
    points = np.stack([np.sqrt(1 - heights**2), np.zeros(41), heights], axis=-1)
    energy = np.sum(Sphere(2).dist(points[:, None], poles[None]) ** 2, axis=1)
    lowest = float(heights[np.argmin(energy)])
    return [
        claim(
            "Utpala, B",
            "the Fréchet mean of the two poles of S² is the whole equator",
            f"Σρ² is lowest at height {lowest:.2f}, {float(energy.min()):.4f} = π²/2, on every meridian",
            abs(lowest) < 1e-9,
            near("lowest", float(energy.min()), math.pi**2 / 2, slack=1e-9),
        )
    ]
