"""Statements of Reimherr et al. 2021, each put to a small numerical test."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad

from dpmanifolds.intrinsic import RiemannianLaplace
from dpmanifolds.manifolds import Sphere
from papers._checks import inside, near
from papers._draws import embedded_laplace
from papers._study import Claim, Setting, claim, compared, mean_and_error

__all__ = ["reimherr_claims"]


def reimherr_claims(setting: Setting) -> list[Claim]:
    """Constants in the proofs, Example 1 and the formulas for the sphere."""
    return [*_moments(setting), *_rates(setting), *_privacy(setting), *_circle(), *_sphere_formulas()]


def _moments(setting: Setting) -> list[Claim]:
    """Theorems 3 and 4: lengths of the Laplace and of its projections."""
    rng, draws = setting.rng, setting.pick(20_000, 400_000, 4_000_000)
    square, error = mean_and_error(rng.standard_gamma(3, draws) ** 2)
    unit = rng.standard_normal((draws, 5))
    share = unit[:, 0] ** 2 / np.sum(unit * unit, axis=1)
    fourth, fourth_error = mean_and_error(share**2)
    lengths = rng.standard_gamma(5, draws)
    projected, projected_error = mean_and_error(
        lengths**2 * (unit[:, 0] ** 2 + unit[:, 1] ** 2) / np.sum(unit * unit, axis=1)
    )
    squares = {
        dim: RiemannianLaplace(Sphere(dim), np.eye(dim + 1)[0], 0.01).mean_squared_distance / (1e-4 * dim * (dim + 1))
        for dim in (2, 5, 10)
    }
    return [
        compared(
            "Reimherr, Theorem 3",
            "E|u|² = d(d − 1) = 6 for d = 3",
            square,
            (5.99, 6.01),
            error=error,
            note="d(d + 1) = 12",
            checks=[near("E|u|²", square, 12.0, error=error)],
        ),
        compared(
            "Reimherr, Theorem 4",
            "⟨U, v⟩² is Beta(1, D − 1): E⟨U, v⟩⁴ = 2/(D(D + 1)) = 0.0667 for D = 5",
            fourth,
            (0.0665, 0.0668),
            error=fourth_error,
            note="Beta(½, (D − 1)/2): 3/(D(D + 2)) = 0.0857",
            checks=[near("E⟨U, v⟩⁴", fourth, 3 / 35, error=fourth_error)],
        ),
        compared(
            "Reimherr, Theorem 4",
            "E‖P x̃ − x̄‖² = σ²d(D + 1) = 12σ² for d = 2, D = 5",
            projected,
            (11.99, 12.01),
            error=projected_error,
            note="the conclusion survives",
            checks=[near("E‖P x̃ − x̄‖²/σ²", projected, 12.0, error=projected_error)],
        ),
        compared(
            "Reimherr, Theorem 2",
            "a(s, 0) = 1/s bounds the Hessian of ½ρ² in flat space: ½ at s = 2",
            (math.hypot(2.0, 1e-3) ** 2 - 4.0) / 1e-6,
            (0.49, 0.51),
            note="a(s, 0) = 1",
            checks=[near("second derivative", (math.hypot(2.0, 1e-3) ** 2 - 4.0) / 1e-6, 1.0, slack=1e-6)],
        ),
        compared(
            "Reimherr, section 4",
            "privatising in the ambient space inflates the variance by D/d = 2.5 for d = 2, D = 5",
            projected / 6,
            (2.45, 2.55),
            error=projected_error / 6,
            note="σ²d(D + 1) over σ²d(d + 1), that is (D + 1)/(d + 1) = 2",
            checks=[near("inflation", projected / 6, 2.0, error=projected_error / 6)],
        ),
        claim(
            "Reimherr, Theorem 3",
            "E ρ² grows like d²σ², whatever the ambient space",
            "E ρ²/(σ²d(d + 1)) at σ = 0.01: " + ", ".join(f"{ratio:.4f} (S^{dim})" for dim, ratio in squares.items()),
            all(abs(ratio - 1) < 0.02 for ratio in squares.values()),
            *(near(f"ratio on S^{dim}", ratio, 1.0, slack=0.01) for dim, ratio in squares.items()),
        ),
    ]


def _rates(setting: Setting) -> list[Claim]:
    """The two rates of section 4, for records in a cube of half side r: noise in units of 2r/(nε)."""
    dims, draws = (2, 8, 32), setting.pick(2_000, 20_000, 200_000)
    whole, each, error = [], [], 0.0
    for dim in dims:
        square, spread = mean_and_error(dim * setting.rng.standard_gamma(dim, draws) ** 2)
        whole.append(math.sqrt(square))
        error = max(error, spread / square / 2)
        each.append(math.sqrt(np.mean(np.sum(setting.rng.laplace(scale=dim, size=(draws // 4, dim)) ** 2, axis=1))))
    slopes = [math.log(sizes[-1] / sizes[0]) / math.log(dims[-1] / dims[0]) for sizes in (whole, each)]
    return [
        claim(
            "Reimherr, section 4",
            "coordinate by coordinate the noise is O(d^{3/2}r/nε), and one ℓ₂ ball around the cube has the same rate",
            f"exponents of d between {dims[0]} and {dims[-1]}: {slopes[1]:.3f} and {slopes[0]:.3f}; the ℓ₂ Laplace has "
            f"{whole[-1] / each[-1]:.3f} of the noise at d = {dims[-1]}: the same rate, √½ of the constant",
            all(abs(slope - 1.5) < 0.1 for slope in slopes),
            near("share at d = 32", whole[-1] / each[-1], math.sqrt(33 / 64), error=2 * error),
        )
    ]


def _privacy(setting: Setting) -> list[Claim]:
    """Theorem 1 on the whole sphere, and where the normaliser of SPD(2) ends."""
    others = Sphere(2).random_point(5_000, rng=setting.rng)
    feet = np.array([[0.0, 0.0, 1.0], [math.sin(0.1), 0.0, math.cos(0.1)]])
    loss = float(np.max(np.abs(Sphere(2).dist(feet[0], others) - Sphere(2).dist(feet[1], others)))) / 0.1
    growth = [_mass(sigma, 80.0) / _mass(sigma, 40.0) for sigma in (1.0, 1.6)]
    noisy = embedded_laplace(np.tile([0.0, 0.0, 1.0], (5_000, 1)), 0.1, setting.rng)
    hits = int(np.sum(np.linalg.norm(noisy, axis=1) == 1.0))
    return [
        claim(
            "Reimherr, Theorem 1",
            "σ = Δ/ε suffices on the whole of a homogeneous space",
            f"largest privacy loss over {len(others)} points of S² for footpoints Δ apart: {loss:.4f} ε, and the "
            "normalisers are equal",
            loss <= 1 + 1e-9,
            inside("largest loss/ε", loss, 0.999, 1 + 1e-9, proven="high"),
        ),
        claim(
            "Reimherr, section 3",
            "the normalising constant may be finite for certain σ only",
            f"on SPD(2) it is for σ < √2: from radius 40 to 80 the integral grows by {growth[0] - 1:.0e} at σ = 1 and "
            f"{growth[1]:.3g}-fold at σ = 1.6; so the unrestricted Laplace cannot keep any small ε there",
            growth[0] - 1 < 1e-3 and growth[1] > 10,
            inside("growth at σ = 1", growth[0] - 1, 0.0, 1e-3),
            inside("growth at σ = 1.6", growth[1], 20.0, 100.0),
        ),
        claim(
            "Reimherr, section 5.2",
            "the Euclidean release is never on the sphere",
            f"{hits} of 5,000 draws are",
            hits == 0,
            inside("draws on the sphere", hits, 0, 0),
        ),
    ]


def _mass(sigma: float, radius: float) -> float:
    """∫ e^{−R/σ} sinh(a)/a over the ball of T_I of SPD(2), up to a constant; a = half the gap of the eigenvalues."""

    def shell(length: float) -> float:
        # the traceless part has length R·sin θ, and a = R·sin θ/√2
        inner = quad(lambda angle: math.sinh(length * math.sin(angle) / math.sqrt(2)), 0, math.pi)[0]
        return float(length * math.exp(-length / sigma) * inner)

    return float(quad(shell, 0, radius, limit=200)[0])


def _circle() -> list[Claim]:
    even, odd, more = (_circle_move(n) for n in (20, 21, 100))
    return [
        claim(
            "Reimherr, Example 1",
            "for even n one record can move the mean on the circle by π: the sensitivity does not fall with n",
            f"n = 20: {even:.4f}, n = 100: {more:.4f}, that is π − π/(n − 1); it is π for "
            f"odd n (n = 21: {odd:.4f}). It does not fall with n",
            even > math.pi - 1e-6,
            near("move at n = 20", even, math.pi * 18 / 19, slack=1e-9),
            near("move at n = 21", odd, math.pi, slack=1e-9),
        )
    ]


def _circle_move(n: int) -> float:
    """How far the mean of n − 1 equally spaced angles and one more moves, at most, with that one; by brute force."""
    spaced = 2 * np.pi * np.arange(1, n) / (n - 1)
    grid = np.linspace(-np.pi, np.pi, 24 * (n - 1), endpoint=False)

    def means(last: float) -> np.ndarray:
        """All of them: for odd n there are two, and rounding would choose."""
        gaps = np.angle(np.exp(1j * (grid[:, None] - np.append(spaced, last)[None])))
        sums = np.sum(gaps**2, axis=1)
        lowest: np.ndarray = grid[sums <= sums.min() + 1e-9]
        return lowest

    first = means(spaced[0])
    return max(float(np.max(np.abs(np.angle(np.exp(1j * (means(last)[:, None] - first)))))) for last in spaced)


def _sphere_formulas() -> list[Claim]:
    """Exponential, logarithm and radii as printed."""
    quarter = Sphere(2, 4.0)
    north, step = np.array([0.0, 0.0, 0.5]), np.array([0.3, 0.0, 0.0])
    printed = math.cos(0.3) * north + 0.5 * math.sin(0.3) * step / 0.3
    walked = float(quarter.dist(north, quarter.project(printed)))
    pole = np.array([0.0, 0.0, 1.0])
    length = float(np.linalg.norm(Sphere(2).log(pole, Sphere(2).exp(pole, np.array([3.0, 0.0, 0.0])))))
    radius = 0.3 * math.pi
    beyond = 2 * radius * (2 - 2 * radius / math.tan(2 * radius)) / (2 * radius / math.tan(2 * radius))
    itself = math.acos(float(north @ north))
    area = quad(lambda angle: 2 * math.pi * math.sin(angle), 0, math.pi)[0]
    return [
        claim(
            "Reimherr, section 5.2",
            "exp_p(v) = cos(‖v‖)p + κ^−½ sin(‖v‖)v/‖v‖ on the sphere of curvature κ",
            f"κ = 4, ‖v‖ = 0.3: the printed point is {walked:.3f} away; √κ‖v‖ belongs into the sine and cosine",
            abs(walked - 0.3) < 1e-9,
            near("distance walked", walked, 0.15, slack=1e-9),
        ),
        claim(
            "Reimherr, section 5.2",
            "ρ(p, q) = arccos⟨p, q⟩ on the sphere of curvature κ",
            f"κ = 4: a point would be {itself:.3f} away from itself; it is arccos(κ⟨p, q⟩)/√κ, that is "
            f"{float(quarter.dist(north, north)):.3f}",
            itself < 1e-9,
            near("printed distance", itself, math.acos(0.25), slack=1e-9),
        ),
        claim(
            "Reimherr, section 5.2 (and Soto, section 4.1)",
            "log_p is defined only within π/2 of p",
            f"a point at distance 3 has a log of length {length:.3f}: the injectivity radius is π",
            abs(length - 3.0) > 1e-9,
            near("length of the log", length, 3.0, slack=1e-9),
        ),
        claim(
            "Reimherr, section 5.2",
            "r* = π/2 on S²",
            f"by Assumption 1 it is ½·min(π, π/2) = π/4; at r = 0.3π the bound of Theorem 2 is {beyond:.2f}/n, "
            "negative",
            beyond > 0,
            inside("bound at 0.3π", beyond, -9.0, -7.0),
        ),
        claim(
            "Reimherr, section 4",
            "a simply connected manifold of non-negative curvature is diffeomorphic to R^d",
            f"S² is simply connected, has curvature 1 and the finite area {area:.3f}; the theorem of Cartan and "
            "Hadamard needs curvature of at most 0",
            math.isinf(area),
        ),
    ]
