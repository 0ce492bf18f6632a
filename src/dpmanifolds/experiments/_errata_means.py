"""Statements of Reimherr et al. 2021 and Soto et al. 2022, each put to a small numerical test."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds.distributions import RiemannianLaplace
from dpmanifolds.domains import Ball
from dpmanifolds.experiments._draws import polar_records, wishart_records
from dpmanifolds.experiments._study import Claim, Setting, claim, compared, mean_and_error
from dpmanifolds.manifolds import SPD, PlanarShapes, Sphere
from dpmanifolds.privacy import sensitivity_of_mean_gradient

__all__ = ["reimherr_claims", "soto_claims"]


def reimherr_claims(setting: Setting) -> list[Claim]:
    """Constants in the proofs, Example 1 and the formulas for the sphere."""
    rng, draws = setting.rng, setting.pick(20_000, 400_000, 4_000_000)
    square, error = mean_and_error(rng.standard_gamma(3, draws) ** 2)
    unit = rng.standard_normal((draws, 5))
    share = unit[:, 0] ** 2 / np.sum(unit * unit, axis=1)
    fourth, fourth_error = mean_and_error(share**2)
    lengths = rng.standard_gamma(5, draws)
    projected, projected_error = mean_and_error(
        lengths**2 * (unit[:, 0] ** 2 + unit[:, 1] ** 2) / np.sum(unit * unit, axis=1)
    )
    quarter = Sphere(2, 4.0)
    north, step = np.array([0.0, 0.0, 0.5]), np.array([0.3, 0.0, 0.0])
    printed = math.cos(0.3) * north + 0.5 * math.sin(0.3) * step / 0.3
    walked = float(quarter.dist(north, quarter.project(printed)))
    far = Sphere(2).exp(np.array([0.0, 0.0, 1.0]), np.array([3.0, 0.0, 0.0]))
    length = float(np.linalg.norm(Sphere(2).log(np.array([0.0, 0.0, 1.0]), far)))
    squares = {
        dim: RiemannianLaplace(Sphere(dim), np.eye(dim + 1)[0], 0.01).mean_squared_distance / (1e-4 * dim * (dim + 1))
        for dim in (2, 5, 10)
    }
    others = Sphere(2).random_point(5_000, rng=rng)
    feet = np.array([[0.0, 0.0, 1.0], [math.sin(0.1), 0.0, math.cos(0.1)]])
    loss = float(np.max(np.abs(Sphere(2).dist(feet[0], others) - Sphere(2).dist(feet[1], others)))) / 0.1
    radius = 0.3 * math.pi
    beyond = 2 * radius * (2 - 2 * radius / math.tan(2 * radius)) / (2 * radius / math.tan(2 * radius))
    return [
        compared(
            "Reimherr, Theorem 3",
            "E|u|² = d(d − 1) = 6 for d = 3",
            square,
            (5.99, 6.01),
            error=error,
            note="d(d + 1) = 12",
        ),
        compared(
            "Reimherr, Theorem 4",
            "⟨U, v⟩² is Beta(1, D − 1): E⟨U, v⟩⁴ = 2/(D(D + 1)) = 0.0667 for D = 5",
            fourth,
            (0.0665, 0.0668),
            error=fourth_error,
            note="Beta(½, (D − 1)/2): 3/(D(D + 2)) = 0.0857",
        ),
        compared(
            "Reimherr, Theorem 4",
            "E‖P x̃ − x̄‖² = σ²d(D + 1) = 12σ² for d = 2, D = 5",
            projected,
            (11.99, 12.01),
            error=projected_error,
            note="the conclusion survives",
        ),
        compared(
            "Reimherr, Theorem 2",
            "a(s, 0) = 1/s bounds the Hessian of ½ρ² in flat space: ½ at s = 2",
            (math.hypot(2.0, 1e-3) ** 2 - 4.0) / 1e-6,
            (0.49, 0.51),
            note="a(s, 0) = 1",
        ),
        compared(
            "Reimherr, section 4",
            "privatising in the ambient space inflates the variance by D/d = 2.5 for d = 2, D = 5",
            projected / 6,
            (2.45, 2.55),
            error=projected_error / 6,
            note="σ²d(D + 1) over σ²d(d + 1), that is (D + 1)/(d + 1) = 2",
        ),
        claim(
            "Reimherr, Theorem 3",
            "E ρ² grows like d²σ², whatever the ambient space",
            "E ρ²/(σ²d(d + 1)) at σ = 0.01: " + ", ".join(f"{ratio:.4f} (S^{dim})" for dim, ratio in squares.items()),
            all(abs(ratio - 1) < 0.02 for ratio in squares.values()),
        ),
        claim(
            "Reimherr, Theorem 1",
            "σ = Δ/ε suffices on the whole of a homogeneous space",
            f"largest privacy loss over {len(others)} points of S² for footpoints Δ apart: {loss:.4f} ε, and the "
            "normalisers "
            "are equal",
            loss <= 1 + 1e-9,
        ),
        claim(
            "Reimherr, Example 1",
            "for even n one record can move the mean on the circle by π: the sensitivity does not fall with n",
            f"n = 20: {_circle_move(20):.4f}, n = 100: {_circle_move(100):.4f}, that is π − π/(n − 1); it is π for "
            "odd n (n = 21: "
            f"{_circle_move(21):.4f}). It does not fall with n",
            _circle_move(20) > math.pi - 1e-6,
        ),
        claim(
            "Reimherr, section 5.2",
            "exp_p(v) = cos(‖v‖)p + κ^−½ sin(‖v‖)v/‖v‖ on the sphere of curvature κ",
            f"κ = 4, ‖v‖ = 0.3: the printed point is {walked:.3f} away; √κ‖v‖ belongs into the sine and cosine",
            abs(walked - 0.3) < 1e-9,
        ),
        claim(
            "Reimherr, section 5.2 (and Soto, section 4.1)",
            "log_p is defined only within π/2 of p",
            f"a point at distance 3 has a log of length {length:.3f}: the injectivity radius is π",
            abs(length - 3.0) > 1e-9,
        ),
        claim(
            "Reimherr, section 5.2",
            "r* = π/2 on S²",
            f"by Assumption 1 it is ½·min(π, π/2) = π/4; at r = 0.3π the bound of Theorem 2 is {beyond:.2f}/n, "
            "negative",
            beyond > 0,
        ),
    ]


def _circle_move(n: int) -> float:
    """How far the mean of n − 1 equally spaced angles and one more moves, at most, with that one; by brute force."""
    spaced = 2 * np.pi * np.arange(1, n) / (n - 1)
    grid = np.linspace(-np.pi, np.pi, 24 * (n - 1), endpoint=False)

    def mean(last: float) -> float:
        gaps = np.angle(np.exp(1j * (grid[:, None] - np.append(spaced, last)[None])))
        return float(grid[np.argmin(np.sum(gaps**2, axis=1))])

    first = mean(spaced[0])
    return max(abs(float(np.angle(np.exp(1j * (mean(last) - first))))) for last in spaced)


def soto_claims(setting: Setting) -> list[Claim]:
    """The chain without its rejections, and the logarithm of shapes."""
    exact, dropped = _line_chain(setting, repeat=True), _line_chain(setting, repeat=False)
    space, rng = PlanarShapes(6), np.random.default_rng(1)
    x, y = space.random_point(2, rng=rng)
    away = y - x * np.sum(np.conj(x) * y)
    angle = float(space.dist(x, y))
    moved = _gradient_moves(setting)
    turns = np.linspace(0, 2 * np.pi, 721)
    ends = np.exp(1.5 * np.stack([np.cos(turns), np.sin(turns)])) - 1
    reach = float(np.sqrt(np.sum(ends**2, axis=0)).max())
    counts = _descent_lengths(setting)
    apart = float(
        PlanarShapes(4).dist(*PlanarShapes(4).from_landmarks(np.exp(0.5j * np.pi * np.outer([1, 2], range(4)))))
    )
    missed = float(space.dist(space.exp(x, angle * away / np.linalg.norm(away)), y))
    return [
        compared(
            "Soto, B.3.2",
            "a chain that draws a new candidate after a rejection heads for exp(−|x|)",
            dropped[0],
            (0.999, 1.001),
            error=dropped[1],
            note=f"mean |x|, should be 1; with rejections repeated {exact[0]:.3f} ± {exact[1]:.2g}",
        ),
        claim(
            "Soto, Theorem 2",
            "the gradient moves by at most 2r(2 − h)/n on the ball of S²",
            f"largest move over random pairs at the edge: {moved:.3f} of the bound at r = π/8; the sharp constant is "
            f"{_sharp_share():.3f} of it",
            moved <= 1,
        ),
        compared(
            "Soto, B.3.3",
            "the ball of radius r = 1.5 around I lies within e^r − 1 = 3.482 of I in the Frobenius norm",
            reach,
            (3.47, 3.49),
            note="largest over the edge of the ball",
        ),
        claim(
            "Soto, B.1",
            "with steps of ½, the mean converges to a gradient of 1e−5 within a couple of hundred iterations",
            f"{counts[0]} iterations on S², {counts[1]} on SPD(2)",
            max(counts) <= 300,
        ),
        compared(
            "Soto, section 4.3",
            "the injectivity radius of planar shapes is π/2 = 1.5708",
            apart,
            (1.5707, 1.5709),
            note="distance of two orthogonal configurations of four landmarks, the farthest there is",
        ),
        claim(
            "Soto, section 4.3",
            "exp⁻¹(x, y) points along y − x(x*y)",
            f"walking the printed direction ends {missed:.3f} away from a random y; y must be rotated to x first",
            missed < 1e-6,
        ),
    ]


def _gradient_moves(setting: Setting) -> float:
    """The largest ‖log_x a − log_x b‖ found over x in the ball and a, b at its edge, as a share of 2r(2 − h)."""
    space, radius, count = Sphere(2), math.pi / 8, setting.pick(2_000, 50_000, 500_000)
    turns = setting.rng.random((3, count)) * 2 * np.pi
    angles = np.stack([radius * np.sqrt(setting.rng.random(count)), np.full(count, radius), np.full(count, radius)])
    x, a, b = np.stack([np.sin(angles) * np.cos(turns), np.sin(angles) * np.sin(turns), np.cos(angles)], axis=-1)
    moves = np.linalg.norm(space.log(x, a) - space.log(x, b), axis=-1)
    return float(moves.max()) / (2 * radius * (2 - 2 * radius / math.tan(2 * radius)))


def _sharp_share() -> float:
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), math.pi / 8)
    return float(sensitivity_of_mean_gradient(ball, 1)) / float(
        sensitivity_of_mean_gradient(ball, 1, bound="published")
    )


def _descent_lengths(setting: Setting) -> list[int]:
    """Iterations of half Karcher steps until the gradient is below 1e−5, on the paper's records."""
    counts = []
    for space, records in (
        (Sphere(2), polar_records(math.pi / 8, (100,), setting.rng)),
        (SPD(2), wishart_records(1.5, (100,), setting.rng)),
    ):
        point, count = records[0], 0
        step = np.mean(space.log(point, records), axis=0)
        while float(space.norm(point, step)) >= 1e-5 and count < 500:
            point, count = space.exp(point, step / 2), count + 1
            step = np.mean(space.log(point, records), axis=0)
        counts.append(count)
    return counts


def _line_chain(setting: Setting, *, repeat: bool) -> tuple[float, float]:
    """Mean |x| and its standard error, over many chains towards ½e^{−|x|} with uniform steps of ±2."""
    chains, steps, rng = setting.pick(500, 16_000, 60_000), setting.pick(60, 200, 200), setting.rng
    state = rng.laplace(size=chains)
    for _ in range(steps):
        waiting = np.ones(chains, dtype=bool)
        while waiting.any():
            candidate = state + rng.uniform(-2, 2, chains)
            accepted = waiting & (np.log(rng.random(chains)) < np.abs(state) - np.abs(candidate))
            state = np.where(accepted, candidate, state)
            waiting = np.zeros(chains, dtype=bool) if repeat else waiting & ~accepted
    return mean_and_error(np.abs(state))
