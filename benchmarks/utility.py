"""How far private means are from the true ones: ours against what the papers publish, at the same promise.

    python benchmarks/utility.py [--replicates 2000] [--quick]

A ratio is our mean error over theirs. "pass" is a ratio at or below its threshold, "within noise" one that is above it
by less than three standard errors of the simulation; ratios of expected errors have no simulation noise.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import special
from timing import one_core

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Budget,
    Euclidean,
    Manifold,
    PureDP,
    RiemannianLaplace,
    Sphere,
    frechet_mean,
    private_mean,
    sensitivity_of_mean,
)
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.distributions import KNormGradientLaw, laplace_law, move
from dpmanifolds.mechanisms import calibrate, choose, mean_facts
from dpmanifolds.privacy import gaussian_sigma, sensitivity_of_mean_gradient

PURE, APPROXIMATE = PureDP(1.0), ApproxDP(1.0, 1e-6)


class Line(NamedTuple):
    """One ratio, its standard error, and what it must not exceed (None: for information)."""

    what: str
    against: str
    ours: float
    theirs: float
    width: float
    threshold: float | None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def verdict(self) -> str:
        if self.threshold is None:
            return ""
        if self.ratio <= self.threshold:
            return "pass"
        return "within noise" if self.ratio - 3 * self.width <= self.threshold else "FAIL"


def expected(what: str, against: str, ours: float, theirs: float, threshold: float | None) -> Line:
    """From expected errors: no simulation noise."""
    return Line(what, against, ours, theirs, 0.0, threshold)


def realised(what: str, against: str, ours: np.ndarray, theirs: np.ndarray, threshold: float | None) -> Line:
    """From errors of independent releases, the width by the delta method."""
    relative = [np.std(errors) / np.mean(errors) / math.sqrt(len(errors)) for errors in (ours, theirs)]
    ratio = float(np.mean(ours) / np.mean(theirs))
    return Line(what, against, float(np.mean(ours)), float(np.mean(theirs)), ratio * math.hypot(*relative), threshold)


def points_in(ball: Ball, n: int, rng: np.random.Generator) -> np.ndarray:
    """Records around the centre, their tangent coordinates uniform in the ball."""
    directions = rng.standard_normal((n, ball.manifold.dim))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    lengths = ball.radius * (1 - 1e-9) * rng.random((n, 1)) ** (1 / ball.manifold.dim)
    return move(ball.manifold, ball.center, lengths * directions)


def our_errors(records: np.ndarray, ball: Ball, truth: np.ndarray, count: int, rng: Any, **options: Any) -> list[float]:
    """Distances of `private_mean` to the mean without privacy."""
    releases = (private_mean(records, ball, PURE, rng=rng, **options) for _ in range(count))
    return [float(ball.manifold.dist(truth, release.value)) for release in releases]


def sphere(replicates: int) -> Iterator[Line]:
    """S², r = π/8, ε = 1: the published Laplace and K-norm gradient; the latter is not ε-private."""
    manifold, radius = Sphere(2), math.pi / 8
    ball = Ball(manifold, np.array([0.0, 0.0, 1.0]), radius)
    rng = np.random.default_rng(20)
    data_sets = 10
    for n in (10, 30, 100, 300):
        laplace_scale = float(sensitivity_of_mean(ball, n, bound="published")) / PURE.epsilon
        gradient_scale = float(sensitivity_of_mean_gradient(ball, n, bound="published")) / PURE.epsilon
        ours, laplace, projected, gradient = [], [], [], []
        for _ in range(data_sets):
            records = points_in(ball, n, rng)
            mean = frechet_mean(manifold, records).point
            ours += our_errors(records, ball, mean, replicates // data_sets, rng)
            draws = RiemannianLaplace(manifold, mean, laplace_scale).sample(2_000, rng)
            laplace += manifold.dist(mean, draws).tolist()
            projected += manifold.dist(mean, ball.clip(draws)).tolist()
            law = KNormGradientLaw(manifold, records, ball.center, radius, gradient_scale, mean)
            gradient += manifold.dist(mean, law.sample(2_000, rng)).tolist()
        where, mine = f"S², r=π/8, ε=1, n={n}", np.array(ours)
        yield realised(where, "published Laplace", mine, np.array(laplace), 0.70)
        yield realised(where, "published Laplace, projected into the ball", mine, np.array(projected), None)
        yield realised(where, "published K-norm gradient (not private)", mine, np.array(gradient), 0.90)


def affine_invariant(replicates: int) -> Iterator[Line]:
    """SPD(2), r = 1.5, ε = 1: the published Laplace has σ = 2r/(nε) too, at the mean itself."""
    ball = Ball(SPD(2), np.eye(2), 1.5)
    rng = np.random.default_rng(21)
    for n in (50, 300):
        scale = 2 * ball.radius / n / PURE.epsilon
        mine = choose(mean_facts(ball, n), PURE).mechanism.expected_error.mean
        theirs = np.linalg.norm(laplace_law(ball.manifold, scale).sample_coordinates(100_000, rng), axis=-1)
        where = f"SPD(2) affine-invariant, r=1.5, ε=1, n={n}"
        yield realised(f"{where}, expected", "published Laplace", np.full(2, mine), theirs, 1.02)
        records = points_in(ball, n, rng)
        mean = frechet_mean(ball.manifold, records).point
        ours = np.array(our_errors(records, ball, mean, replicates, rng))
        yield realised(where, "published Laplace", ours, theirs, 1.02)


def log_euclidean(replicates: int) -> Iterator[Line]:
    """SPD(k), (1, 1e−6): rounded and lattice noise against the analytic tangent Gaussian in real numbers."""
    rng = np.random.default_rng(22)
    n = 1_000
    for k in (2, 5, 10, 20, 30):
        ball = Ball(SPD(k, "log-euclidean"), np.eye(k), 1.0)
        dim = ball.manifold.dim
        sigma = gaussian_sigma(2 * ball.radius / n, APPROXIMATE.epsilon, APPROXIMATE.delta)
        theirs = sigma * math.sqrt(2) * math.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2))
        facts = mean_facts(ball, n)
        where = f"SPD({k}) log-Euclidean, ε=1, δ=1e-6"
        rounded = calibrate("wrapped-gaussian", facts, APPROXIMATE, "rounded")
        lattice = calibrate("wrapped-gaussian", facts, APPROXIMATE, "lattice")
        yield expected(f"{where}, expected", "analytic Gaussian", rounded.expected_error.mean, theirs, 1.01)
        mean = frechet_mean(ball.manifold, points_in(ball, n, rng)).point
        count = max(100, 2 * replicates // dim)
        ours = np.array([float(ball.manifold.dist(mean, rounded.release(mean, rng=rng))) for _ in range(count)])
        yield realised(where, "analytic Gaussian", ours, np.full(2, theirs), 1.01)
        yield expected(f"{where}, lattice, expected", "analytic Gaussian", lattice.expected_error.mean, theirs, None)


def descriptors() -> Iterator[Line]:
    """Covariance descriptors of images: the published sensitivity is 2√k·|ln η|/n."""
    n = 1_000
    for channels, name in ((1, "grey"), (3, "RGB")):
        domain = DescriptorDomain(channels)
        published = 2 * math.sqrt(domain.manifold.k) * abs(math.log(domain.eta)) / n
        dim = domain.manifold.dim
        facts = mean_facts(domain, n)
        laplace = calibrate("wrapped-laplace", facts, PURE, "rounded").expected_error.mean
        yield expected(f"{name} descriptors, ε=1", "published noise", laplace, dim * published, 0.5)
        sigma = gaussian_sigma(published, APPROXIMATE.epsilon, APPROXIMATE.delta)
        theirs = sigma * math.sqrt(2) * math.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2))
        gaussian = calibrate("wrapped-gaussian", facts, APPROXIMATE, "rounded").expected_error.mean
        yield expected(f"{name} descriptors, ε=1, δ=1e-6", "published noise", gaussian, theirs, 0.5)


def refined(replicates: int) -> Iterator[Line]:
    """A ball 10 times too large, and a tight one: refine=1 against one release. n = 5,000."""
    n = 5_000
    count = max(8, replicates // 80)
    cases: list[tuple[str, Manifold, Any, float]] = [
        ("SPD(3)", SPD(3), np.eye(3), 0.2),
        ("S²", Sphere(2), np.array([0.0, 0.0, 1.0]), 0.15),
        ("SPD(5) log-Euclidean", SPD(5, "log-euclidean"), np.eye(5), 0.3),
        ("R¹⁰", Euclidean(10), np.zeros(10), 1.0),
    ]
    for name, manifold, center, radius in cases:
        for budget in (PURE, APPROXIMATE):
            wide = Ball(manifold, center, 10 * radius)
            yield _refined_line(f"{name}, {_short(budget)}, ball 10 times too large", wide, 0.1, budget, count, n, 0.4)
            yield _refined_line(
                f"{name}, {_short(budget)}, tight ball", Ball(manifold, center, radius), 1.0, budget, count, n, None
            )


def _refined_line(
    what: str, ball: Ball, share: float, budget: Budget, count: int, n: int, threshold: float | None
) -> Line:
    """Records fill a ball of `share` of the radius, around a point 0.3 radii from the centre where there is room."""
    rng = np.random.default_rng(23)
    manifold, ours, theirs = ball.manifold, [], []
    once = choose(mean_facts(ball, n), budget).mechanism
    for _ in range(count):
        direction = rng.standard_normal(manifold.dim)
        offset = min(0.3, 1 - share) * ball.radius * direction / np.linalg.norm(direction)
        middle = move(manifold, ball.center, offset)
        records = points_in(Ball(manifold, middle, share * ball.radius), n, rng)
        mean = frechet_mean(manifold, records).point
        ours.append(float(manifold.dist(mean, private_mean(records, ball, budget, refine=1, rng=rng).value)))
        theirs += [float(manifold.dist(mean, once.release(mean, rng=rng))) for _ in range(10)]
    return realised(what, "one release", np.array(ours), np.array(theirs), threshold)


def _short(budget: Budget) -> str:
    return "ε=1" if budget == PURE else "ε=1, δ=1e-6"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2_000, help="releases of ours for each simulated line")
    parser.add_argument("--quick", action="store_true", help="a tenth of the releases")
    arguments = parser.parse_args()
    replicates = max(100, arguments.replicates // (10 if arguments.quick else 1))
    one_core()
    table = Table(title="Mean error of the private mean: ours over theirs, at the same promise")
    for heading in ("setting", "against", "ours", "theirs", "ratio", "at most", ""):
        table.add_column(heading, justify="left" if heading in ("setting", "against", "") else "right")
    verdicts = []
    for section in (
        sphere(replicates),
        affine_invariant(replicates),
        log_euclidean(replicates),
        descriptors(),
        refined(replicates),
    ):
        for line in section:
            noise = f" ± {line.width:.3f}" if line.width else ""
            limit = "" if line.threshold is None else f"{line.threshold:.2f}"
            verdicts.append(line.verdict)
            numbers = (f"{line.ours:.4g}", f"{line.theirs:.4g}", f"{line.ratio:.3f}{noise}", limit)
            table.add_row(line.what, line.against, *numbers, line.verdict)
        table.add_section()
    Console(width=150).print(table)
    kept, open_lines, failed = (verdicts.count(verdict) for verdict in ("pass", "within noise", "FAIL"))
    print(f"{kept} thresholds kept, {open_lines} open within noise, {failed} exceeded.")


if __name__ == "__main__":
    main()
