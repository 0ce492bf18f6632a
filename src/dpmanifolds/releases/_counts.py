"""Private counts: integers in, integers out, with the noise that suits the part of the budget they get."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.mechanisms import ExpectedError
from dpmanifolds.noise import LatticeLaplace, RoundedGaussian
from dpmanifolds.privacy import Budget, Guarantee, Sensitivity, affordable_epsilon, affordable_mu
from dpmanifolds.releases.entry import Account
from dpmanifolds.releases.release import Release

__all__ = ["CountsNoise", "counts_noise"]

_UP = 1 + 2.0**-49
_IN_L1 = Sensitivity(2.0, "counts", "P", "2 in ℓ1: a record leaves one cell and enters another")
_IN_L2 = Sensitivity(math.sqrt(2) * _UP, "counts", "P", "√2 in ℓ2: a record leaves one cell and enters another")


@dataclass(frozen=True)
class CountsNoise:
    """Integer noise for a histogram of n records, each of which is in one cell or in none."""

    law: LatticeLaplace | RoundedGaussian
    guarantee: Guarantee
    part: Budget

    @property
    def deviation(self) -> float:
        """Standard deviation of one noisy count."""
        scale = float(self.law.scale)
        return scale if isinstance(self.law, RoundedGaussian) else math.sqrt(2) * scale

    @property
    def cut(self) -> float:
        """What the noise of one of two dozen empty cells exceeds in about 1 % of releases."""
        return (4 if isinstance(self.law, RoundedGaussian) else 5) * self.deviation

    def release(self, counts: np.ndarray, account: Account, n: int) -> Release:
        """The noisy counts of n records, which may be negative, as a stage of a larger release.

        n is the public number of records, and not the sum of the counts: a record may be in no cell.
        """
        from dpmanifolds import __version__

        gaussian = isinstance(self.law, RoundedGaussian)
        noisy = self.law.release(counts.astype(np.int64), account.rng)
        cells = len(counts)
        spread = self.deviation * math.sqrt(cells)
        return Release(
            statistic="counts",
            value=noisy.astype(np.float64),
            guarantee=self.guarantee,
            budget=self.part,
            mechanism="wrapped-gaussian" if gaussian else "wrapped-laplace",
            theorem="the Gaussian mechanism on integers" if gaussian else "the Laplace mechanism on integers",
            numerics="rounded" if gaussian else "lattice",
            sensitivity=_IN_L2 if gaussian else _IN_L1,
            scale=float(self.law.scale),
            step=1.0,
            n=n,
            domain=Ball(Euclidean(cells), np.full(cells, n / cells), float(n)),
            expected_error=ExpectedError(spread, 2 * spread, spread),
            reason="the smaller standard deviation of a count",
            reproducible=account.reproducible,
            version=__version__,
        )


def counts_noise(cells: int, part: Budget, unit: str) -> CountsNoise:
    """The noise with the smaller deviation among those that keep this part of the budget."""
    found = []
    epsilon = affordable_epsilon(part)
    laplace = LatticeLaplace(cells, 2 / epsilon * _UP)
    if laplace.epsilon(2.0) <= epsilon:
        found.append(CountsNoise(laplace, Guarantee.pure(epsilon, unit=unit), part))
    try:
        mu = affordable_mu(part)
        gaussian = RoundedGaussian(cells, math.sqrt(2) / mu * _UP * _UP)
        found.append(CountsNoise(gaussian, Guarantee.gaussian(mu, unit=unit), part))
    except NotAvailableError:
        pass
    if not found:
        raise NotAvailableError(f"no noise for counts keeps {part!r}.")
    return min(found, key=lambda noise: noise.deviation)
