"""Statements of Jiang et al. 2023, Han et al. 2022 and Utpala et al. 2022, each put to a small numerical test."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from dpmanifolds.experiments._study import Claim, Setting, claim, compared, mean_and_error, not_reproducible
from dpmanifolds.experiments.jiang_algorithms import published_circle_delta
from dpmanifolds.manifolds import SPD, Sphere
from dpmanifolds.manifolds._symmetric import apply_function
from dpmanifolds.privacy import (
    classical_gaussian_sigma,
    delta_of_mu,
    full_batch_descent,
    gaussian_dp_mu,
    mu_of_pure,
    riemannian_gaussian_profile,
)

__all__ = ["han_claims", "jiang_claims", "utpala_claims"]


def jiang_claims(setting: Setting) -> list[Claim]:
    """Corollary 3.2.1 and the ranges of ε."""
    profile = riemannian_gaussian_profile(Sphere(1), 1.0, 1.0)
    printed, right = float(published_circle_delta(1.0, np.array(1.0), 1.0)), profile.delta(1.0)
    beyond = profile.delta(math.pi / 2)
    grid = [gaussian_dp_mu(Sphere(2), 1.0, float(moved)) for moved in np.linspace(0.1, 3.0, 15)]
    answer = (math.e - 1) / (math.e + 1)
    flat = [float(ndtr(-e + 0.5) - math.exp(e) * ndtr(-e + 0.5)) for e in (0.1, 1.0)]
    return [
        claim(
            "Jiang, Corollary 3.2.1",
            f"δ(1) = {printed:.4f} on the circle, Δ = σ = 1",
            f"{right:.4f}: the printed set A misses an arc, and δ is under-reported for ε > 0",
            printed >= right - 1e-4,
        ),
        claim(
            "Jiang, Corollary 3.2.1",
            "ε need run only up to πΔ/(2σ²) = 1.571",
            f"there δ is still {beyond:.4f}; it is 0 from Δ(2π − Δ)/(2σ²) = {(2 * math.pi - 1) / 2:.3f} on",
            beyond <= 0,
        ),
        claim(
            "Jiang, after Theorem 3.2",
            "in R^d the condition is Φ(−σε/Δ + Δ/2σ) − e^ε Φ(−σε/Δ + Δ/2σ) ≤ δ_μ(ε)",
            f"as printed the left side is {flat[0]:.3f} and {flat[1]:.3f}, negative; the second Φ has −Δ/2σ",
            min(flat) >= 0,
        ),
        claim(
            "Jiang, Theorem 4.1",
            "on constant curvature one pair at distance exactly Δ decides μ",
            f"μ on S², σ = 1, grows with the distance from {grid[0]:.4f} at 0.1 to {grid[-1]:.4f} at 3: nearer "
            "pairs are easier",
            all(a < b for a, b in pairwise(grid)),
        ),
        claim(
            "Jiang, Theorem A.1",
            "a mechanism is μ-GDP iff μ ≥ μ₀ = √lim ε²/(−2·log δ(ε))",
            f"randomised response with ε = 1 has δ(ε) = 0 beyond 1, so that μ₀ = 0, but δ(0) = {answer:.3f}: it is "
            f"{mu_of_pure(1.0):.3f}-GDP and no better",
            answer <= 0,
        ),
    ]


def han_claims(setting: Setting) -> list[Claim]:
    """The normaliser of Remark 1, strong convexity, and where the classical calibration ends."""
    grid = np.linspace(-5, 5, 2001)
    line = float(np.exp(-(grid**2) / 0.5).sum() * (grid[1] - grid[0]))
    space, rng = SPD(2), setting.rng
    points, steps = space.random_point(300, rng=rng), rng.standard_normal((300, 3))
    steps /= np.linalg.norm(steps, axis=-1, keepdims=True)
    others, h = space.random_point(300, rng=rng), 1e-3
    ahead, behind = (
        space.dist(space.exp(points, space.from_coordinates(points, sign * h * steps)), others) ** 2 for sign in (1, -1)
    )
    bend = float(np.min((ahead + behind - 2 * space.dist(points, others) ** 2) / h**2))
    true = {
        epsilon: float(delta_of_mu(epsilon / math.sqrt(2 * math.log(1.25e5)), epsilon)) for epsilon in (0.5, 1.0, 20.0)
    }
    sigma = classical_gaussian_sigma(1.0, 0.5, 1e-5)
    moments = full_batch_descent(n=100, steps=1, clip=1.0, sigma=0.05).as_renyi(4.0).epsilon * 3
    vectors, starts = rng.standard_normal((20_000, 5)), Sphere(4).random_point(20_000, rng=rng)
    along = np.sum(vectors * starts, axis=1)
    sizes = 2 * np.abs(along) * np.linalg.norm(vectors - along[:, None] * starts, axis=1) / np.sum(vectors**2, axis=1)
    widths = np.linspace(0.01, 20, 2_000)
    return [
        compared(
            "Han, Remark 1",
            "the Gaussian on a tangent plane has normaliser √((2π)²σ²) = 3.142 for d = 2, σ = ½",
            line * line,
            (3.14, 3.143),
            note="σ^{2d}, not σ²: 2πσ²",
        ),
        claim(
            "Han, Theorem 7",
            "dist² is 2-strongly convex on SPD matrices",
            f"smallest second derivative over 300 random pairs {bend:.4f}",
            bend > 2 - 1e-3,
        ),
        compared(
            "Han, Lemma 2",
            "K(λ) ≤ 2λ(λ + 1)L₀²/(n²σ²) = 0.96 for λ = 3, L₀ = 1, n = 100, σ = 0.05",
            moments,
            (0.959, 0.961),
            note="from the exact account, attained",
        ),
        claim(
            "Han, section 5.1",
            "gradients of the eigenvector loss are at most ϑ = max zᵀz",
            f"largest over 20,000 random pairs {sizes.max():.4f}·zᵀz",
            float(sizes.max()) <= 1 + 1e-12,
        ),
        claim(
            "Han, section 5.2",
            "the curvature constant is at most 2√|κ|·D + 1",
            f"x·coth(x)/(2x + 1) at most {float(np.max(widths / np.tanh(widths) / (2 * widths + 1))):.4f}",
            bool(np.all(widths / np.tanh(widths) <= 2 * widths + 1)),
        ),
        not_reproducible(
            "Han, Theorems 2, 4 and 5, Lemma 3",
            "rates O(√d/(nε)), O(d·log n/(nε)²), O(√d/(nε)), and K(λ) ≤ 15(λ + 1)L₀²/(n²σ²) for batches",
            "constants, c_l and D are left open and the paper has no experiment for them; Lemma 3 lacks a factor λ "
            "by its own "
            "derivation",
        ),
        claim(
            "Han, Proposition 2",
            "σ² ≥ 2·log(1.25/δ)Δ²/ε² is (ε, δ)-private for every ε",
            f"at δ = 1e−5 (σ = {sigma:.2f} at ε = ½) the true δ is {true[0.5]:.1e} at ε = ½, {true[1.0]:.1e} at 1, "
            f"{true[20.0]:.1e} "
            "at 20: only for ε ≤ 1",
            max(true.values()) <= 1e-5,
        ),
    ]


def utpala_claims(setting: Setting) -> list[Claim]:
    """The Jacobian of the matrix logarithm and the printed acceptance rule."""
    nudged = np.diag([4.0, 1.0]) + 1e-6 * np.array([[0.0, 1.0], [1.0, 0.0]])
    slope = float(apply_function(nudged, np.log)[0, 1]) / 1e-6
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
    values = np.exp(rng.uniform(-0.25, 0.25, (1000, 9)))
    return [
        compared(
            "Utpala, Theorem 3",
            "the privacy loss is N(ρ²/2σ², ρ²/σ²): mean 0.125 for ρ = ½, σ = 1",
            middle,
            (0.1249, 0.1251),
            error=spread,
            note=f"variance {losses.var():.4f}",
        ),
        claim(
            "Utpala, section 6.1",
            "eigenvalues in [e^−r, e^r] keep a matrix within √k·r of I",
            f"largest distance over 1,000 matrices, k = 9: {float(np.linalg.norm(np.log(values), axis=1).max()):.3f}; "
            "√k·r = 0.75",
            float(np.linalg.norm(np.log(values), axis=1).max()) <= 0.75,
        ),
        compared(
            "Utpala, Definition 1",
            "J(X) has the factor ln λ_i − ln λ_j = 1.386 for eigenvalues 4 and 1",
            slope,
            (1.38, 1.39),
            note="(ln λ_i − ln λ_j)/(λ_i − λ_j)",
        ),
        compared(
            "Utpala, A.4",
            "accepting with exp(−ρ(M, X)/σ)/exp(−ρ(X_curr, X)/σ) draws the Laplace: mean distance d·σ = 6σ for d = 6",
            reached,
            (5.99, 6.01),
            error=error,
            unit="σ",
            note="the ratio must be between the new and the current distance to M",
        ),
    ]
