"""Geodesic regression, measured: against the K-norm gradient, against the fit without privacy, and its regions.

    python benchmarks/regression.py peers --repeats 80 --jobs 2 > docs/tables/regression_peers.csv
    python benchmarks/regression.py large --repeats 60 --jobs 2
    python benchmarks/regression.py coverage --repeats 1600 --jobs 2 > docs/tables/regression_coverage.csv

Records scatter around a geodesic on S², SPD(2), SPD(3), H³ and planar shapes of 5 and 8 landmarks; covariates are even
on their bounds. Errors are of the predicted points: the mean over covariates of the squared distance to the geodesic of
the fit without privacy ("peers": privacy alone) or to the true one ("large").

**The K-norm gradient** (Kulkarni and Soto, arXiv 2504.11304) draws base and velocity with a density ∝ exp(−ε|G|/2Δ), G
the gradient of the mean squared residual. Here it is as generous as an honest promise allows: both are drawn together
from one ε; residuals are cut to the radius of the public ball, so that G moves by at most Δ = 2√2r/n whatever the
records and wherever base and velocity are (the paper takes the largest residual of the fit, which is read off the
records); 2 is the factor of the exponential mechanism, whose density has a normalising constant that depends on the
records. G takes parallel fields for Jacobi fields, the same in flat spaces. It is drawn by its gradient: x with density
∝ exp(−ε|x|/2Δ), and the base and velocity where G = x; in flat spaces that is its law exactly, elsewhere up to the
determinant of G's derivative, and no Markov chain has to mix. "as published" is the same without the factor 2 and with
the largest residual in place of r: not private.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import dpmanifolds as dpm
from dpmanifolds.releases import regression
from dpmanifolds.releases.regression_fit import carried

_TIMES = np.linspace(-0.95, 0.95, 20)
_BLOCK = 100


class Setting(NamedTuple):
    """Where records come from; slope and spread over the radius of the ball."""

    name: str
    manifold: Any
    radius: float
    slope: float = 0.5
    spread: float = 0.2

    @property
    def ball(self) -> dpm.Ball:
        return dpm.Ball(self.manifold, center_of(self.manifold), self.radius)


PEERS = (
    Setting("S2", dpm.Sphere(2), 0.8),
    Setting("SPD(2)", dpm.SPD(2), 1.0),
    Setting("shapes(5)", dpm.PlanarShapes(5), 0.6),
)
COVERED = (
    Setting("S2", dpm.Sphere(2), 0.8),
    Setting("SPD(3)", dpm.SPD(3), 1.0),
    Setting("shapes(8)", dpm.PlanarShapes(8), 0.6),
    Setting("H3", dpm.Hyperbolic(3), 1.0),
)


def center_of(manifold: Any) -> Any:
    """A public point."""
    if manifold.natural_center is not None:
        return manifold.natural_center
    if isinstance(manifold, dpm.Sphere):
        return np.eye(manifold.dim + 1)[-1]
    return manifold.random_point(rng=5)


class Sample(NamedTuple):
    """Records with their covariates, and the geodesic behind them."""

    points: Any
    times: np.ndarray
    base: Any
    slope: np.ndarray


def draw(setting: Setting, n: int, rng: np.random.Generator, *, even: bool = True) -> Sample:
    """Records around a geodesic that starts off the centre: spread is the root mean square distance to it.

    They scatter alike in all directions, or along the geodesic alone.
    """
    space, radius = setting.manifold, setting.radius
    times = rng.uniform(-1, 1, n)
    base = space.exp_coordinates(setting.ball.center, 0.15 * radius * np.eye(space.dim)[-1])
    slope = setting.slope * radius * np.eye(space.dim)[0]
    curve = space.exp_coordinates(base, times[:, None] * slope)
    shares = np.full(space.dim, 1 / np.sqrt(space.dim)) if even else np.eye(space.dim)[0]
    left = setting.spread * radius * shares * rng.normal(size=(n, space.dim))
    return Sample(space.exp(curve, space.from_coordinates(curve, left)), times, base, slope)


class Line(NamedTuple):
    """A geodesic: a base, and a slope in coordinates there."""

    base: Any
    slope: np.ndarray

    def at(self, space: Any, times: np.ndarray) -> Any:
        return space.exp_coordinates(self.base, times[:, None] * self.slope)


def field(space: Any, line: Line, sample: Sample, longest: float) -> tuple[np.ndarray, float]:
    """(1/n)Σ (1, t)ᵀ c, c what is left beyond the geodesic, cut to this length, carried back to its base."""
    curve = line.at(space, sample.times)
    left = space.to_coordinates(line.base, space.transport(curve, line.base, space.log(curve, sample.points)))
    length = np.linalg.norm(left, axis=1, keepdims=True)
    left = left * np.minimum(1.0, longest / np.maximum(length, 1e-300))
    return np.stack([np.ones_like(sample.times), sample.times]) @ left / len(left), float(length.max())


def solve(setting: Setting, sample: Sample, wanted: np.ndarray, start: Line, longest: float = np.inf) -> Line:
    """The geodesic whose field is the wanted one, by Newton's method with the covariates' moments; kept in the ball."""
    space, line = setting.manifold, start
    design = np.stack([np.ones_like(sample.times), sample.times])
    inverse = np.linalg.inv(design @ design.T / len(sample.times))
    for _ in range(12):
        step = inverse @ (field(space, line, sample, longest)[0] + wanted)
        step = step * min(1.0, setting.radius / max(float(np.linalg.norm(step)), 1e-300))
        base = setting.ball.clip(space.exp_coordinates(line.base, step[0]))
        slope = carried(space, line.base, base, (line.slope + step[1])[None])[0]
        slope = slope * min(1.0, setting.radius / max(float(np.linalg.norm(slope)), 1e-300))
        line = Line(base, slope)
    return line


def k_norm_gradient(
    setting: Setting, sample: Sample, fit: Line, epsilon: float, rng: np.random.Generator, *, published: bool
) -> Line:
    """A draw around the fit."""
    largest = field(setting.manifold, fit, sample, np.inf)[1] if published else setting.radius
    moved = 2 * np.sqrt(2.0) * largest / len(sample.times)
    size = 2 * setting.manifold.dim
    direction = rng.normal(size=size)
    length = rng.gamma(size) * moved * (1.0 if published else 2.0) / epsilon
    wanted = (length * direction / np.linalg.norm(direction)).reshape(2, -1)
    return solve(setting, sample, wanted, fit)


def ours(setting: Setting, sample: Sample, budget: dpm.Budget, rng: np.random.Generator) -> dpm.GeodesicRegression:
    """The private fit."""
    return dpm.private_geodesic_regression(
        sample.points, sample.times, setting.ball, budget, covariate_bounds=(-1, 1), rng=rng
    )


def gap(setting: Setting, one: Any, other: Any) -> float:
    """The mean squared distance of points to others."""
    return float(np.mean(setting.manifold.dist(one, other) ** 2))


def compare(setting: Setting, n: int, epsilon: float, repeats: int) -> list[float]:
    """Mean squared errors against the fit without privacy: ours, the honest K-norm gradient's, the published one's."""
    warnings.simplefilter("ignore", dpm.NoiseExceedsDomainWarning)
    rng, found, space = np.random.default_rng(n), [], setting.manifold
    for _ in range(repeats):
        sample = draw(setting, n, rng)
        fit = solve(setting, sample, np.zeros((2, space.dim)), Line(sample.base, sample.slope))
        expected = fit.at(space, _TIMES)
        kinds = [k_norm_gradient(setting, sample, fit, epsilon, rng, published=kind) for kind in (False, True)]
        mine = ours(setting, sample, dpm.PureDP(epsilon), rng).predict(_TIMES)
        found.append(
            [gap(setting, mine, expected), *(gap(setting, kind.at(space, _TIMES), expected) for kind in kinds)]
        )
    return np.mean(found, axis=0).tolist()


def peers(repeats: int, jobs: int) -> None:
    """The table against the K-norm gradient."""
    print("setting,n,ε,data sets,ours,K-norm gradient,ours over it,as published (not private)")
    cells = list(product(PEERS, (50, 100, 200, 500), (0.1, 0.5, 1.0, 2.0)))
    with ProcessPoolExecutor(jobs) as pool:
        answers = pool.map(partial(compare, repeats=repeats), *zip(*cells, strict=True))
        for (setting, n, epsilon), (mine, honest, published) in zip(cells, answers, strict=True):
            told = f"{mine:.3g},{honest:.3g},{mine / honest:.2f},{published:.3g}"
            print(f"{setting.name},{n},{epsilon:g},{repeats},{told}", flush=True)


def large(repeats: int, jobs: int) -> None:
    """Root mean square errors against the true geodesic at n = 5000, μ = 1, with and without privacy."""
    print("| setting | private | without privacy | ratio |\n|---|---|---|---|")
    settings = (*PEERS, *COVERED[1:])
    with ProcessPoolExecutor(jobs) as pool:
        answers = pool.map(partial(large_errors, repeats=repeats), settings)
        for setting, (private, plain) in zip(settings, answers, strict=True):
            print(f"| {setting.name} | {private:.4g} | {plain:.4g} | {private / plain:.3f} |", flush=True)


def large_errors(setting: Setting, repeats: int) -> tuple[float, float]:
    """With and without privacy."""
    rng, found, space = np.random.default_rng(0), [], setting.manifold
    for _ in range(repeats):
        sample = draw(setting, 5000, rng)
        truth = Line(sample.base, sample.slope)
        fit = solve(setting, sample, np.zeros((2, space.dim)), truth)
        mine = ours(setting, sample, dpm.GaussianDP(1.0), rng).predict(_TIMES)
        expected = truth.at(space, _TIMES)
        found.append([gap(setting, mine, expected), gap(setting, fit.at(space, _TIMES), expected)])
    private, plain = np.sqrt(np.mean(found, axis=0))
    return float(private), float(plain)


def covered(setting: Setting, n: int, budget: dpm.Budget, block: int) -> np.ndarray:
    """How many 95 % regions hold the slope: for even scatter that of "any" and of "even"; for one direction "any"."""
    mark = f"{setting.name} {budget!r}".encode()
    rng, held = np.random.default_rng([block, n, *mark]), np.zeros(3)
    with warnings.catch_warnings(), planned_once():
        warnings.simplefilter("ignore")
        for _ in range(_BLOCK):
            for even, regions in ((True, ("any", "even")), (False, ("any",))):
                sample = draw(setting, n, rng, even=even)
                fit = ours(setting, sample, budget, rng)
                truth = carried(setting.manifold, sample.base, fit.base, sample.slope[None])
                for number, scatter in enumerate(regions, start=0 if even else 2):
                    held[number] += fit.slope_region(0.95, scatter=scatter).contains(truth)[0]
    return held


@contextmanager
def planned_once() -> Iterator[None]:
    """Meanwhile all fits are of one ball, budget and number of records: those public facts are asked for plans once."""
    with ExitStack() as stack:
        for name in ("horizon", "best_cut"):
            stack.enter_context(patch.object(regression, name, asked_once(getattr(regression, name))))
        yield


def asked_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first answer, whatever is asked later."""
    answers: list[Any] = []

    def ask(*given: Any) -> Any:
        if not answers:
            answers.append(function(*given))
        return answers[0]

    return ask


def coverage(repeats: int, jobs: int) -> None:
    """The table of coverage: by blocks of data sets with a seed each, however many processes share them."""
    print("setting,budget,n,data sets,even scatter: any,even scatter: even,one direction: any")
    cells = [
        (setting, n, budget)
        for n in (50, 100, 200, 1000)
        for setting in COVERED
        for budget in (dpm.GaussianDP(1.0), dpm.PureDP(1.0))
    ]
    blocks = range(-(-repeats // _BLOCK))
    with ProcessPoolExecutor(jobs) as pool:
        answers = [[pool.submit(covered, *cell, block) for block in blocks] for cell in cells]
        for (setting, n, budget), found in zip(cells, answers, strict=True):
            shares = sum(each.result() for each in found) / (_BLOCK * len(blocks))
            told = ",".join(f"{share:.4f}" for share in shares)
            print(f'{setting.name},"{budget!r}",{n},{_BLOCK * len(blocks)},{told}', flush=True)


def main() -> None:
    """Choose a table and its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=("peers", "large", "coverage"))
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpm.NoiseExceedsDomainWarning)
        {"peers": peers, "large": large, "coverage": coverage}[given.table](given.repeats, given.jobs)


if __name__ == "__main__":
    main()
