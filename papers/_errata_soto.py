"""Statements of Soto et al. 2022, each put to a small numerical test."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import SPD, Euclidean, PlanarShapes, Sphere
from dpmanifolds.privacy import sensitivity_of_mean_gradient
from papers._checks import inside, near
from papers._draws import (
    embedded_laplace,
    half_vectors,
    means_of,
    polar_records,
    wishart_records,
)
from papers._study import Claim, Setting, claim, compared, mean_and_error, not_reproducible
from papers.published import published_sensitivity_of_mean_gradient

__all__ = ["soto_claims"]

_RADIUS = 1.5


def soto_claims(setting: Setting) -> list[Claim]:
    """Chains, gradients, formulas for shapes."""
    return [*_sampling(setting), *_gradients(setting), *_matrix_gradients(setting), *_constants(), *_shapes()]


def _sampling(setting: Setting) -> list[Claim]:
    """The chain without its rejections, its proposals, and the direct sampler of the Euclidean Laplace."""
    exact, dropped = _line_chain(setting, repeat=True), _line_chain(setting, repeat=False)
    one_way = _one_way(setting)
    chains = setting.pick(100, 1_000, 4_000)
    early, linked = _correlations(setting, chains)
    spread = 1 / math.sqrt(chains)
    lengths = np.linalg.norm(embedded_laplace(np.zeros((20_000, 3)), 1.0, setting.rng), axis=1)
    length, error = mean_and_error(lengths)
    return [
        compared(
            "Soto, B.3.2",
            "a chain that draws a new candidate after a rejection heads for exp(−|x|)",
            dropped[0],
            (0.999, 1.001),
            error=dropped[1],
            note=f"mean |x|, should be 1; with rejections repeated {exact[0]:.3f} ± {exact[1]:.2g}",
            checks=[
                near("mean |x|, repeated", exact[0], 1.0, error=exact[1], slack=1e-3),
                near("mean |x|, dropped", dropped[0], _mean_of_jumps(), error=dropped[1], slack=2e-3),
            ],
        ),
        claim(
            "Soto, B.3.2",
            "proposals exp(x, tσv) with uniform entries of v may be accepted with g(x')/g(x)",
            f"{one_way:.1%} of the proposals on SPD(2) (t = 1, n = 20, from a record) have no way back, since the "
            "box of "
            "v is one in the coordinates of x: a Hastings correction is missing",
            one_way < 1e-3,
            inside("share without a way back", one_way, 0.10, 0.45),
        ),
        claim(
            "Soto, B.4.2",
            "thinning the chain on S² by 600 steps avoids correlated samples",
            f"correlation of a coordinate with itself 600 steps later {linked:+.3f} ± {spread:.2g} ({chains} chains, "
            f"n = 20, t = ½); 20 steps later {early:+.2f}",
            abs(linked) < 4 * spread,
            near("after 600 steps", linked, 0.0, error=spread, slack=0.02),
            inside("after 20 steps", early, 0.25, 1.0, proven="high"),
        ),
        compared(
            "Soto, B.2",
            "direction uniform and length Γ(d, 1): E‖Y − x̄‖ = dσ = 3σ in R³",
            length,
            (2.99, 3.01),
            error=error,
            unit="σ",
            checks=[near("mean length", length, 3.0, error=error)],
        ),
    ]


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


def _correlations(setting: Setting, chains: int) -> tuple[float, float]:
    """Of the first coordinate of K-norm gradient chains on S², as published, with itself 20 and 600 steps later."""
    space, rng, radius, n = Sphere(2), setting.rng, math.pi / 8, 20
    records = polar_records(radius, (n,), rng)
    sigma = 2 * radius * (2 - 2 * radius / math.tan(2 * radius)) / n
    center = np.array([0.0, 0.0, 1.0])
    state = np.tile(means_of(space, records[None]), (chains, 1))

    def slopes(points: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(space.log(points[:, None], records[None]).mean(axis=1), axis=-1))

    level, kept = slopes(state), []
    for step in range(1_001):
        vectors = rng.standard_normal((chains, 3))
        vectors *= 0.5 * sigma / np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors -= np.sum(vectors * state, axis=1, keepdims=True) * state
        candidate = np.asarray(space.project(space.exp(state, vectors)))
        reached = slopes(candidate)
        move = (np.log(rng.random(chains)) < (level - reached) / sigma) & (space.dist(center, candidate) <= radius)
        state[move], level = candidate[move], np.where(move, reached, level)
        if step in (400, 420, 1_000):
            kept.append(state[:, 0].copy())
    return float(np.corrcoef(kept[0], kept[1])[0, 1]), float(np.corrcoef(kept[0], kept[2])[0, 1])


def _mean_of_jumps() -> float:
    """Mean |x| of the law that the chain without rejections has: ∝ e^{−|x|} times the chance to leave x."""
    x, steps = np.linspace(0, 40, 4_001), np.linspace(-2, 2, 801)
    leave = np.mean(np.exp(np.minimum(0, np.abs(x)[:, None] - np.abs(x[:, None] + steps))), axis=1)
    weights = np.exp(-x) * leave
    return float(weights @ x / weights.sum())


def _one_way(setting: Setting) -> float:
    """The share of proposals of B.3.2 from whose end the start cannot be proposed."""
    space, size = SPD(2), 4 * _RADIUS / 20
    starts = wishart_records(_RADIUS, (setting.pick(500, 5_000, 20_000),), setting.rng)
    entries = size * setting.rng.uniform(-0.5, 0.5, (len(starts), 3))
    steps = entries[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    ends = space.exp(starts, steps)
    back = np.abs(half_vectors(np.asarray(space.log(ends, starts))))
    return float(np.mean(np.max(back, axis=1) > size / 2))


def _gradients(setting: Setting) -> list[Claim]:
    """Theorem 2 on S², convexity, and the mean itself."""
    moved, counts = _gradient_moves(setting), _descent_lengths(setting)
    near_edge, beyond = (_smallest_bend(share * math.pi / 4) for share in (0.99, 1.1))
    return [
        claim(
            "Soto, Theorem 2",
            "the gradient moves by at most 2r(2 − h)/n on the ball of S²",
            f"largest move over random pairs at the edge: {moved:.3f} of the bound at r = π/8; the sharp constant is "
            f"{_sharp_share():.3f} of it",
            moved <= 1,
            near("sharp share", _sharp_share(), 0.80620 / 0.95396, slack=1e-3),
            inside("largest share", moved, 0.95 * _sharp_share(), _sharp_share() + 1e-9, proven="high"),
        ),
        claim(
            "Soto, section 3",
            "ρ² is geodesically convex on a ball of S² of radius smaller than π/4",
            f"smallest second derivative of ρ² over pairs in the ball: {near_edge:+.3f} at 0.99·π/4, {beyond:+.3f} at "
            "1.1·π/4",
            near_edge > 0 > beyond,
            near("second derivative", near_edge, 2 * 1.55509 / math.tan(1.55509), slack=1e-3),
        ),
        claim(
            "Soto, B.1",
            "with steps of ½, the mean converges to a gradient of 1e−5 within a couple of hundred iterations",
            f"{counts[0]} iterations on S², {counts[1]} on SPD(2)",
            max(counts) <= 300,
            inside("iterations", max(counts), 10, 25),
        ),
    ]


def _smallest_bend(radius: float) -> float:
    """The second derivative of ρ(·, y)² across the geodesic at distance 2r, the worst in the ball."""
    space, h = Sphere(2), 1e-3
    x = np.array([0.0, 0.0, 1.0])
    y = space.exp(x, np.array([2 * radius, 0.0, 0.0]))
    sides = [float(space.dist(space.exp(x, np.array([0.0, sign * h, 0.0])), y)) ** 2 for sign in (1, -1)]
    return (sum(sides) - 2 * float(space.dist(x, y)) ** 2) / h**2


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
    return float(sensitivity_of_mean_gradient(ball, 1)) / published_sensitivity_of_mean_gradient(ball, 1)


def _descent_lengths(setting: Setting) -> list[int]:
    """Iterations of half Karcher steps until the gradient is below 1e−5, on the paper's records."""
    counts = []
    for space, records in (
        (Sphere(2), polar_records(math.pi / 8, (100,), setting.rng)),
        (SPD(2), wishart_records(_RADIUS, (100,), setting.rng)),
    ):
        point, count = records[0], 0
        step = np.mean(space.log(point, records), axis=0)
        while float(space.norm(point, step)) >= 1e-5 and count < 500:
            point, count = space.exp(point, step / 2), count + 1
            step = np.mean(space.log(point, records), axis=0)
        counts.append(count)
    return counts


def _matrix_gradients(setting: Setting) -> list[Claim]:
    """Theorem 2 and Lemma 1 where the curvature is negative, and the flat case."""
    space, count = SPD(2), setting.pick(500, 5_000, 50_000)
    x, a, b = (wishart_records(_RADIUS, (count,), setting.rng) for _ in range(3))
    moved = float(np.max(space.norm(x, space.log(x, a) - space.log(x, b)))) / (2 * _RADIUS)
    ends = np.diag([math.exp(_RADIUS), 1.0]), np.diag([math.exp(-_RADIUS), 1.0])
    crossing = float(space.norm(np.eye(2), space.log(np.eye(2), ends[0]) - space.log(np.eye(2), ends[1])))
    records = wishart_records(_RADIUS, (1, 20), setting.rng)
    mean = means_of(space, records)[0]
    pulls = np.mean(space.log(x[:400, None], records), axis=1)
    slopes = np.asarray(space.norm(x[:400], pulls)) / np.asarray(space.dist(mean, x[:400]))
    steepest = 2 * _RADIUS * math.sqrt(0.5) / math.tanh(2 * _RADIUS * math.sqrt(0.5))
    flat, points = Euclidean(4), setting.rng.standard_normal((30, 4))
    places = setting.rng.standard_normal((50, 4))
    pull = np.linalg.norm(np.mean(flat.log(places[:, None], points[None]), axis=1), axis=-1)
    gap = float(np.max(np.abs(pull - flat.dist(places, points.mean(axis=0)))))
    return [
        claim(
            "Soto, Theorem 2",
            "the gradient moves by at most 2r/n where the curvature is not positive",
            f"largest of {count} random pairs on SPD(2): {moved:.3f} of the bound; {crossing / (2 * _RADIUS):.4f} by a "
            "record that crosses the ball, seen from its centre",
            max(moved, crossing / (2 * _RADIUS)) <= 1 + 1e-9,
            inside("random pairs", moved, 0.75, 1 + 1e-9, proven="high"),
            near("crossing", crossing / (2 * _RADIUS), 1.0, slack=1e-9),
        ),
        claim(
            "Soto, Lemma 1",
            "ρ(x̄, x) ≤ ‖∇U(x)‖ ≤ 2r√|κ|·coth(2r√|κ|)·ρ(x̄, x) on SPD(2)",
            f"‖∇U‖/ρ between {slopes.min():.3f} and {slopes.max():.3f}; the bounds are 1 and {steepest:.3f} (κ = −½)",
            bool(slopes.min() >= 1 - 1e-9 and slopes.max() <= steepest),
            inside("smallest slope", slopes.min(), 1 - 1e-9, 1.1, proven="low"),
            inside("largest slope", slopes.max(), 1.0, steepest, proven="both"),
        ),
        claim(
            "Soto, section 4.2",
            "for means in Euclidean space the Laplace is equivalent to the K-norm gradient",
            f"‖∇U(x)‖ and |x − x̄| differ by at most {gap:.0e} in R⁴; without a ball both may take σ = Δ/ε",
            gap < 1e-12,
            inside("difference", gap, 0.0, 1e-12),
        ),
    ]


def _constants() -> list[Claim]:
    """Theorem 3's constant, the length of a curve, the radius of the ambient ball, the budget of the landmarks."""
    flattest = math.pi / 4 / math.tan(math.pi / 4)
    # ∫ s^{d+1} e^{−hs} over ∫ s^{d−1} e^{−s}, for d = 2: 6/h⁴ over 1
    grid = np.linspace(0.0, 120.0, 240_001)
    ratio = float(np.sum(grid**3 * np.exp(-flattest * grid)) / np.sum(grid * np.exp(-grid))) / 6
    turns = np.linspace(0, 2 * np.pi, 721)
    ends = np.exp(_RADIUS * np.stack([np.cos(turns), np.sin(turns)])) - 1
    reach = float(np.sqrt(np.sum(ends**2, axis=0)).max())
    n, k, reached = 28, 13, 0.1
    spent = 2 * k * (2 * reached / n) / (4 * reached * k / n)
    return [
        claim(
            "Soto, Theorem 3 (proof)",
            f"the constant is h_min/h_max³ = {1 / flattest**3:.3f} on S², r = π/8",
            f"{ratio:.3f} by quadrature: h_min^d/h_max^(d+2), the printed one is that of d = 1. It grows exponentially "
            "with d, so that O(d²/n²ε²) holds for a fixed d only",
            abs(ratio * flattest**3 - 1) < 1e-3,
            near("constant", ratio, flattest**-4, slack=1e-4),
        ),
        claim(
            "Soto, section 2.1",
            "the length of a curve is ∫ ‖α'‖^½ dt",
            "a segment of length 4 walked at speed 4 would have length 2.000; the ½ belongs to ⟨α', α'⟩",
            abs(math.sqrt(4.0) - 4.0) < 1e-9,
        ),
        compared(
            "Soto, B.3.3",
            "the ball of radius r = 1.5 around I lies within e^r − 1 = 3.482 of I in the Frobenius norm",
            reach,
            (3.47, 3.49),
            note="largest over the edge of the ball",
            checks=[near("reach", reach, math.expm1(_RADIUS), slack=1e-9)],
        ),
        compared(
            "Soto, B.5.2",
            "2k coordinates with σ = 4rk/n spend ε = 1 in all",
            spent,
            (0.999, 1.001),
            note="for an arithmetic mean of aligned shapes and a public r; the r of B.5.1 is not public",
            checks=[near("spent", spent, 1.0, slack=1e-12)],
        ),
    ]


def _shapes() -> list[Claim]:
    """Dimension, curvature, injectivity radius and logarithm of planar shapes."""
    space, rng = PlanarShapes(6), np.random.default_rng(1)
    x, y = space.random_point(2, rng=rng)
    away = y - x * np.sum(np.conj(x) * y)
    angle = float(space.dist(x, y))
    missed = float(space.dist(space.exp(x, angle * away / np.linalg.norm(away)), y))
    apart = float(
        PlanarShapes(4).dist(*PlanarShapes(4).from_landmarks(np.exp(0.5j * np.pi * np.outer([1, 2], range(4)))))
    )
    along, across = _curvatures(space, x, rng)
    return [
        claim(
            "Soto, section 4.3",
            "shapes of k landmarks are CP^(k−2), the quotient of a sphere of 2k − 3 dimensions",
            f"k = 6: {space.dim} real dimensions, one fewer than {2 * 6 - 3}",
            space.dim == 2 * 6 - 4,
            near("dimension", space.dim, 8),
        ),
        claim(
            "Soto, section 4.3",
            "the holomorphic sectional curvature of planar shapes is 4",
            f"from the gap of geodesics that start along v and iv: {along:.3f}; along v and a w with ⟨iv, w⟩ = 0: "
            f"{across:.3f}",
            abs(along - 4) < 0.01,
            near("holomorphic", along, 4.0, slack=0.01),
            near("real", across, 1.0, slack=0.01),
        ),
        compared(
            "Soto, section 4.3",
            "the injectivity radius of planar shapes is π/2 = 1.5708",
            apart,
            (1.5707, 1.5709),
            note="distance of two orthogonal configurations of four landmarks, the farthest there is",
            checks=[near("distance", apart, math.pi / 2, slack=1e-6)],
        ),
        claim(
            "Soto, section 4.3",
            "exp⁻¹(x, y) points along y − x(x*y)",
            f"walking the printed direction ends {missed:.3f} away from a random y; y must be rotated to x first",
            missed < 1e-6,
            inside("miss", missed, 0.1, 1.6),
        ),
        not_reproducible(
            "Soto, Figures 2 and 3",
            "the hook at the top of the mean corpus callosum survives in K-norm estimates",
            "read off pictures of outlines that are not public",
        ),
    ]


def _curvatures(space: PlanarShapes, x: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """K = 3(2t² − d²)/t⁴ for unit v ⊥ w and small t, for w = iv and for a w orthogonal to v and iv."""
    v, w = (space.random_tangent(x, rng=rng) for _ in range(2))
    v = v / np.linalg.norm(v)
    w = w - v * np.sum(np.conj(v) * w)
    w = w / np.linalg.norm(w)
    t = 0.02
    found = [float(space.dist(space.exp(x, t * v), space.exp(x, t * other))) for other in (1j * v, w)]
    return 3 * (2 * t * t - found[0] ** 2) / t**4, 3 * (2 * t * t - found[1] ** 2) / t**4
