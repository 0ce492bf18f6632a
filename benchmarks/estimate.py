"""How far our guess of a point of a ball is from it: against the public centre, the noise, and a uniform prior.

    python benchmarks/estimate.py [--draws 4000]

The point is at a share of the radius r = 1 from the centre; the size of the noise is √d·σ (Gaussian) or d·σ (Laplace).
Over the ball: the largest ratio of our mean error to the smaller of the centre's, which is the share, and the noise's
own; and the mean error, averaged over sizes and shares, of ours and of the posterior mean under a uniform prior. Near
the edge, up to three deviations inside: the largest ratio of our mean error to that of the projection onto the ball,
and to the noise's own. Last, what the prior's tilt and its reach beyond the ball are for.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import one_core

from dpmanifolds.sums import estimate
from dpmanifolds.sums.estimate import shrink_lengths

DIMENSIONS = (3, 6, 10, 21, 45, 105, 253)
SIZES, SHARES = (0.1, 0.25, 0.5, 1.0, 2.0), (0.1, 0.3, 0.5, 0.7, 0.9)
EDGE_DIMENSIONS, EDGE_SIZES = (1, 2, 3, 6), (1e-6, 0.01, 0.1, 0.25, 0.5, 1.0)
DEVIATIONS_INSIDE = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)
NODES = 160


class Noise(NamedTuple):
    """A law, and draws of it along and across the direction of the point."""

    dim: int
    sigma: float
    gaussian: bool
    along: np.ndarray
    across: np.ndarray

    @classmethod
    def of_size(cls, dim: int, size: float, gaussian: bool, draws: int) -> Noise:
        """With mean length close to the size."""
        rng = np.random.default_rng(dim)
        along = rng.standard_normal(draws)
        across = np.sqrt(rng.chisquare(dim - 1, draws)) if dim > 1 else np.zeros(draws)
        sigma = size / (math.sqrt(dim) if gaussian else dim)
        factor = sigma * (np.ones(draws) if gaussian else rng.gamma(dim, size=draws) / np.hypot(along, across))
        return cls(dim, sigma, gaussian, factor * along, factor * across)

    @property
    def own(self) -> float:
        """Its mean length."""
        return float(np.mean(np.hypot(self.along, self.across)))

    def errors(self, shares: Sequence[float], guess: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The mean distance of the guess, a function of the noisy lengths, from points at these shares."""
        places = np.array(shares)[:, None]
        lengths = np.hypot(places + self.along, self.across)
        factors = guess(lengths) / lengths
        return np.asarray(np.mean(np.hypot(factors * (places + self.along) - places, factors * self.across), axis=1))

    def ours(self, lengths: np.ndarray) -> np.ndarray:
        """The estimate of the library."""
        return shrink_lengths(lengths, dim=self.dim, radius=1.0, sigma=self.sigma, gaussian=self.gaussian)

    def under_uniform_prior(self, lengths: np.ndarray) -> np.ndarray:
        """The posterior mean if every point of the ball were as likely, by interpolation between 60 lengths."""
        places = np.linspace(float(lengths.min()), float(lengths.max()), 60)
        return np.interp(lengths, places, [self._one_under_uniform_prior(place) for place in places])

    def _one_under_uniform_prior(self, length: float) -> float:
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        radii, angles = ((nodes + 1) / 2)[:, None], math.pi * (nodes + 1) / 2
        squares = (radii - length) ** 2 + 2 * length * radii * (1 - np.cos(angles))
        logs = -squares / (2 * self.sigma**2) if self.gaussian else -np.sqrt(squares) / self.sigma
        logs = logs + (self.dim - 2) * np.log(np.sin(angles)) + (self.dim - 1) * np.log(radii)
        mass = np.exp(logs - logs.max()) * weights[:, None] * weights
        return float(np.sum(mass * radii * np.cos(angles)) / np.sum(mass))


def over_the_ball(dim: int, gaussian: bool, draws: int) -> list[str]:
    """A row of the first table."""
    noises, ours, better = _grid(dim, gaussian, draws)
    uniform = np.array([noise.errors(SHARES, noise.under_uniform_prior) for noise in noises])
    size, share = np.unravel_index(np.argmax(ours / better), better.shape)
    worst = f"{np.max(ours / better):.2f} (size {SIZES[size]:g}, at {SHARES[share]:g})"
    at_half = " ".join(f"{ours[SIZES.index(0.5), SHARES.index(share)]:.3f}" for share in (0.1, 0.5, 0.9))
    means = [f"{np.mean(error):.4f}" for error in (ours, uniform)]
    return [worst, f"{np.max(uniform / better):.2f}", *means, f"{np.mean(ours) / np.mean(uniform):.3f}", at_half]


def _grid(dim: int, gaussian: bool, draws: int) -> tuple[list[Noise], np.ndarray, np.ndarray]:
    """Noises of all sizes; our errors, and the smaller of the centre's and the noise's, for all sizes and shares."""
    noises = [Noise.of_size(dim, size, gaussian, draws) for size in SIZES]
    ours = np.array([noise.errors(SHARES, noise.ours) for noise in noises])
    return noises, ours, np.array([np.minimum(SHARES, noise.own) for noise in noises])


def near_the_edge(dim: int, size: float, gaussian: bool, draws: int) -> str:
    """A cell of the second table."""
    noise = Noise.of_size(dim, size, gaussian, draws)
    places = [1 - count * size / math.sqrt(dim) for count in DEVIATIONS_INSIDE]
    shares = [place for place in places if place > 0]
    ours, projected = noise.errors(shares, noise.ours), noise.errors(shares, lambda x: np.minimum(x, 1.0))
    return f"{np.max(ours / projected):.2f} {np.max(ours) / noise.own:.2f}"


def other_priors(draws: int) -> Table:
    """The worst cases of both tables under a prior without tilt, and one that ends at the edge."""
    table = Table(title="Priors: worst ratio over the ball at d = 3, near the edge at d = 1 and noise of size .1")
    for heading in ("prior", "ball, Gaussian", "ball, Laplace", "edge, Gaussian", "edge, Laplace"):
        table.add_column(heading)
    for name, changed in (("ours", {}), ("no tilt", {"_MOST_TILT": 0.0}), ("no reach", {"_REACH": 0.0})):
        with mock.patch.dict(vars(estimate), changed):
            grids = [_grid(3, gaussian, draws) for gaussian in (True, False)]
            worst = [f"{np.max(ours / better):.2f}" for _, ours, better in grids]
            edge = [near_the_edge(1, 0.1, gaussian, draws) for gaussian in (True, False)]
        table.add_row(name, *worst, *edge)
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4_000, help="of the noise, for each mean error")
    draws = parser.parse_args().draws
    one_core()
    ball = Table(title="Over the ball", caption="error at .1, .5, .9: for noise of size .5")
    headings = ("worst ratio, ours", "uniform's", "mean error, ours", "uniform's", "ratio", "error at .1, .5, .9")
    for heading in ("noise", "d", *headings):
        ball.add_column(heading)
    edge = Table(title="Near the edge: error over the projection's, and over the noise's own")
    for heading in ("noise", "d", *(f"size {size:g}" for size in EDGE_SIZES)):
        edge.add_column(heading)
    for gaussian, name in ((True, "Gaussian"), (False, "Laplace")):
        for dim in DIMENSIONS:
            ball.add_row(name, str(dim), *over_the_ball(dim, gaussian, draws))
        for dim in EDGE_DIMENSIONS:
            edge.add_row(name, str(dim), *(near_the_edge(dim, size, gaussian, draws) for size in EDGE_SIZES))
    Console(width=130).print(ball, edge, other_priors(draws))


if __name__ == "__main__":
    main()
