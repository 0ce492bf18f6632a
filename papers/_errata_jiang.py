"""Statements of Jiang et al. 2023, each put to a small numerical test."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import gamma, ndtr

from dpmanifolds.manifolds import Euclidean, Hyperbolic, Sphere
from dpmanifolds.privacy import RiemannianGaussianProfile, gaussian_dp_mu, mu_of_pure
from papers._checks import inside, near
from papers._study import Claim, Setting, claim, not_reproducible
from papers.jiang_algorithms import published_circle_delta

__all__ = ["jiang_claims"]


def jiang_claims(setting: Setting) -> list[Claim]:
    """Corollary 3.2.1, the theorems about μ, and the formulas of the appendix."""
    return [*_circle(), *_theorems(setting), *_formulas()]


def _circle() -> list[Claim]:
    profile = RiemannianGaussianProfile(Sphere(1), 1.0, 1.0)
    printed, right = float(published_circle_delta(1.0, np.array(1.0), 1.0)), profile.delta(1.0)
    beyond = profile.delta(math.pi / 2)
    return [
        claim(
            "Jiang, Corollary 3.2.1",
            f"δ(1) = {printed:.4f} on the circle, Δ = σ = 1",
            f"{right:.4f}: the printed set A misses an arc, and δ is under-reported for ε > 0",
            printed >= right - 1e-4,
            near("δ(1), exact", right, 0.1183, slack=5e-5),
            near("δ(1), printed", printed, 0.0880, slack=5e-5),
        ),
        claim(
            "Jiang, Corollary 3.2.1",
            "ε need run only up to πΔ/(2σ²) = 1.571",
            f"there δ is still {beyond:.4f}; it is 0 from Δ(2π − Δ)/(2σ²) = {(2 * math.pi - 1) / 2:.3f} on",
            beyond <= 0,
            inside("δ(π/2)", beyond, 0.035, 0.045),
            inside("δ at the end", profile.delta((2 * math.pi - 1) / 2), 0.0, 1e-9),
        ),
    ]


def _theorems(setting: Setting) -> list[Claim]:
    """Theorems 3.1, 4.1 and A.1, Proposition 4.1, and the flat case."""
    grid = [gaussian_dp_mu(Sphere(2), 1.0, float(moved)) for moved in np.linspace(0.1, 3.0, 15)]
    answer = (math.e - 1) / (math.e + 1)
    flat = [float(ndtr(-e + 0.5) - math.exp(e) * ndtr(-e + 0.5)) for e in (0.1, 1.0)]
    euclid = [gaussian_dp_mu(Euclidean(dim), 2.0, 1.0) for dim in (1, 3, 10)]
    curved = [gaussian_dp_mu(Hyperbolic(2), sigma, 1.0) for sigma in (0.25, 1.0, 4.0, 20.0)]
    points = Sphere(2).random_point(setting.pick(20_000, 200_000, 2_000_000), rng=setting.rng)
    weights = [np.exp(-(Sphere(2).dist(foot, points) ** 2) / 2) for foot in np.eye(3)[:2]]
    gap = float(weights[0].mean() - weights[1].mean()) * 4 * math.pi
    gap_error = 4 * math.pi * float((weights[0] - weights[1]).std()) / math.sqrt(len(points))
    return [
        claim(
            "Jiang, after Theorem 3.2",
            "in R^d the condition is Φ(−σε/Δ + Δ/2σ) − e^ε Φ(−σε/Δ + Δ/2σ) ≤ δ_μ(ε)",
            f"as printed the left side is {flat[0]:.3f} and {flat[1]:.3f}, negative; the second Φ has −Δ/2σ",
            min(flat) >= 0,
        ),
        claim(
            "Jiang, after Theorem 3.2",
            "in R^d equality holds if and only if σ = Δ/μ, whatever d is",
            f"μ at σ = 2, Δ = 1: {', '.join(f'{mu:.6f}' for mu in euclid)} in 1, 3 and 10 dimensions",
            max(abs(mu - 0.5) for mu in euclid) < 1e-9,
            near("largest μ", max(euclid), 0.5, slack=1e-9),
        ),
        claim(
            "Jiang, Theorem 3.1",
            "where the Ricci curvature is bounded below the Riemannian Gaussian is μ-GDP for some μ",
            f"H², Δ = 1: μ = {', '.join(f'{mu:.4f}' for mu in curved)} at σ = 0.25, 1, 4 and 20. It is larger than "
            "Δ/σ, "
            "and has a floor that no σ goes below: small μ cannot be had this way",
            all(math.isfinite(mu) for mu in curved),
            near("μ at σ = 0.25", curved[0], 4.039472, slack=1e-4),
            near("μ at σ = 1", curved[1], 1.161224, slack=1e-4),
            inside("μ at σ = 20", curved[-1], 0.7863, 0.7880),
        ),
        claim(
            "Jiang, Proposition 4.1",
            "Z(η, σ) is the same for every footpoint of a homogeneous space",
            f"S², σ = 1, two footpoints: {gap:+.1e} ± {gap_error:.1e} apart, Z = {4 * math.pi * weights[0].mean():.4f}",
            abs(gap) < 4 * gap_error,
            near("difference", gap, 0.0, error=gap_error),
        ),
        claim(
            "Jiang, Theorem 4.1",
            "on constant curvature one pair at distance exactly Δ decides μ",
            f"μ on S², σ = 1, grows with the distance from {grid[0]:.4f} at 0.1 to {grid[-1]:.4f} at 3: nearer "
            "pairs are easier",
            all(a < b for a, b in pairwise(grid)),
            inside("μ at 0.1", grid[0], 0.0833, 0.0843),
            inside("μ at 3", grid[-1], 1.88, 1.89),
        ),
        claim(
            "Jiang, Theorem A.1",
            "a mechanism is μ-GDP iff μ ≥ μ₀ = √lim ε²/(−2·log δ(ε))",
            f"randomised response with ε = 1 has δ(ε) = 0 beyond 1, so that μ₀ = 0, but δ(0) = {answer:.3f}: it is "
            f"{mu_of_pure(1.0):.3f}-GDP and no better",
            answer <= 0,
            near("μ of randomised response", mu_of_pure(1.0), 1.2317, slack=1e-3),
        ),
    ]


def _formulas() -> list[Claim]:
    """What is printed in the text and in the proof of Theorem 3.1."""
    tail = float(ndtr(-1.0 / 2))
    conversions = math.log(1 - tail) / tail, math.log((1 - tail) / tail)
    left = 2 * float(ndtr(6.0) - ndtr(3.0))
    bounds = [math.sqrt(2 * math.pi) * math.exp(-9.0) * 6, math.exp(-4.5) * 6 / math.sqrt(2 * math.pi)]
    areas = [2 * math.pi ** (n / 2) / float(gamma(n / 2)) for n in (2, 3)]
    pole = np.array([1.0, 0.0, 0.0])
    farthest = float(Sphere(2).dist(pole, Sphere(2).exp(pole, np.array([0.0, math.pi - 1e-6, 0.0]))))
    times = np.linspace(0, 20, 2_001)
    share = max(float(np.max((1 - np.exp(-2 * times)) ** n / (n + 1))) for n in (1, 2, 5, 10))
    return [
        claim(
            "Jiang, section 5.2",
            "μ is converted by ε = log[1 − Φ(−μ/2)]/Φ(−μ/2)",
            f"{conversions[0]:.3f} for μ = 1, negative; the quotient belongs into the logarithm: {conversions[1]:.3f}",
            conversions[0] > 0,
            near("ε of μ = 1", conversions[1], 0.8072, slack=1e-3),
            near("back to μ", mu_of_pure(conversions[1]), 1.0, slack=1e-9),
        ),
        not_reproducible(
            "Jiang, Figure 1 and section 5.2",
            "means across 100 repeats (caption), across 1000 iterations (text)",
            "the two disagree; here expectations are exact and the drawn means have more draws than either",
        ),
        claim(
            "Jiang, section 5.2",
            "S^d has an injectivity radius of π",
            f"walking π − 1e−6 along a geodesic ends {farthest:.6f} away (Reimherr and Soto have π/2)",
            abs(farthest - math.pi) < 1e-5,
            near("distance", farthest, math.pi - 1e-6, slack=1e-9),
        ),
        claim(
            "Jiang, A.1.1, equation 4",
            "the mass between radii r and 2r is at most Z·e^{−r²/σ²}·volume",
            f"on the line, σ = 1, r = 3: {left:.5f} against {bounds[0]:.5f}; Z⁻¹·e^{{−r²/2σ²}}·volume = "
            f"{bounds[1]:.5f} "
            "is a bound, and the rate survives",
            left <= bounds[0],
            inside("mass over the right bound", left / bounds[1], 0.0, 1.0),
        ),
        claim(
            "Jiang, A.1.1, equation 5",
            "the n-sphere of curvature K has volume s(n)·K^((1−n)/2), s(n) = 2π^{n/2}/Γ(n/2)",
            f"for n = 2, K = 1 that is {areas[0]:.3f}, the length of a circle; the sphere has {areas[1]:.3f} = s(n + "
            "1)",
            abs(areas[0] - 4 * math.pi) < 1e-9,
            near("area", areas[1], 4 * math.pi, slack=1e-9),
        ),
        claim(
            "Jiang, A.1.1, equation 8",
            "sinh^n(t) ≤ (n + 1)e^{nt}/2^n",
            f"the left side is at most {share:.3f} of the right one for n up to 10",
            share <= 1,
            inside("share", share, 0.45, 0.5 + 1e-9),
        ),
    ]
