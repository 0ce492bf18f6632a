"""When is a private mean useful? Its noise beside the error of having only n records, and beside the public centre.

>>> import numpy as np
>>> from dpmanifolds import Ball, Euclidean, PureDP
>>> from dpmanifolds.planning import plan
>>> found = plan(Ball(Euclidean(3), np.zeros(3), radius=1.0), 400, PureDP(1.0), spread=0.3, offset=0.2).usefulness()
>>> round(found.over_sampling, 6), found.equal_from, found.beats_center_from
(1.0, 400, 21)

E is the expected error of the noise with n records, s the spread: the root mean square distance of records to their
mean. To first order in curvature:

- The mean of n records is s/√n from the mean of the population they came from: the *sampling error*, which no one who
  has n records escapes. `over_sampling` is E√n/s. As E falls like 1/n, both errors are equal at n·(E√n/s)² records.
- The public centre alone errs by a, its distance to the mean of the records. What is released is not c + noise but the
  best guess in the ball (`sums.estimate`), and errs by R(a, E) = 𝔼|guess(c + noise) − c|, |c| = a. It is nearer than
  the centre where R(a, E) < a; `center_within` is the a with R(a, E) = a. R is computed by quadrature over the length
  of the noise and its angle to c. Where no guess is made (noise that is not isotropic, domains other than balls) it
  is E.
- With a public guess of a, `beats_center_from` is the number of records from which on R(a, E) < a and E is below the
  radius. Beyond the radius the guess is hardly farther from the centre than the centre itself, wherever c is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize, special

from dpmanifolds._validate import positive_number
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import Release
from dpmanifolds.sums.estimate import shrink_lengths
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedLaplaceMechanism

_LENGTHS, _ANGLES = 40, 20
_NEAREST, _LARGEST_NOISE = 1e-9, 1e3
_DIGITS = 1e-4


@dataclass(frozen=True)
class Usefulness:
    """What a plan's choice within one budget comes to in people's terms; see the module. All of it is public.

    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.4)
    >>> found = dpm.plan(ball, 100, dpm.PureDP(1.0), spread=0.2).usefulness()
    >>> round(found.sampling_error, 4), round(found.over_sampling, 2), found.equal_from
    (0.02, 0.8, 64)
    """

    domain: Domain
    n: int
    error: float
    """E, the expected error of the noise."""
    mechanism: str
    numerics: str
    spread: float | None = None
    offset: float | None = None

    @property
    def exceeds_domain(self) -> bool:
        """Whether the noise is as large as the ball, so that the release says little more than the public centre."""
        return self.error >= self.domain.radius

    @property
    def sampling_error(self) -> float | None:
        """s/√n; None without a spread."""
        return None if self.spread is None else self.spread / math.sqrt(self.n)

    @property
    def over_sampling(self) -> float | None:
        """Privacy error over sampling error, E√n/s; None without a spread."""
        return None if self.sampling_error is None else self.error / self.sampling_error

    @property
    def equal_from(self) -> int | None:
        """The number of records at which privacy error and sampling error are equal; None without a spread."""
        return None if self.over_sampling is None else _at_least(self.n * self.over_sampling**2)

    @property
    def center_within(self) -> float:
        """The public centre alone is expected nearer than the release if the mean lies closer to it than this."""
        radius = self.domain.radius
        if self._guessed is None:
            return min(self.error, radius)
        return radius * _crossing(self.domain.manifold.dim, self.error / radius, self._guessed)

    @property
    def beats_center_from(self) -> int | None:
        """The number of records from which on the release is expected nearer than the centre; None without offset."""
        if self.offset is None:
            return None
        radius, most = self.domain.radius, self.offset
        if self._guessed is not None:
            most = radius * _largest_noise(self.domain.manifold.dim, self.offset / radius, self._guessed)
        return _at_least(self.n * self.error / min(most, radius))

    @property
    def _guessed(self) -> str | None:
        """The law of the noise where the release is the best guess in a ball."""
        isotropic = self.mechanism == WrappedGaussianMechanism.name or (
            self.mechanism == WrappedLaplaceMechanism.name and self.numerics == "rounded"
        )
        return self.mechanism if isotropic and isinstance(self.domain, Ball) else None


def describe_usefulness(chosen: Sequence[tuple[str, Usefulness]]) -> list[str]:
    """In words, for the choice within each budget, told by its label."""
    if not chosen:
        return []
    one = chosen[0][1]

    def listed(numbers: Iterable[tuple[str, str]]) -> str:
        return ", ".join(number if len(chosen) == 1 else f"{number} ({label})" for label, number in numbers)

    if one.spread is None:
        found = [
            f"How the noise compares with having {one.n} records at all is left out: it takes spread=, the root mean "
            "square distance of records to their mean, from public knowledge or paid for, never from these records."
        ]
    else:
        equal = listed((label, str(each.equal_from)) for label, each in chosen)
        found = [
            f"Sampling error: with {one.n} records at a spread of {one.spread:.4g}, {one.sampling_error:.4g} even "
            f"without privacy. The noise errs as much at n = {equal}, and less beyond."
        ]
    if one.offset is not None:
        counts = listed((label, str(each.beats_center_from)) for label, each in chosen)
        return [
            *found,
            f"If the mean lies {one.offset:.4g} from the public centre, the private mean is expected to beat the "
            f"centre alone from n = {counts} on.",
        ]
    within = listed((label, f"{each.center_within:.3g}") for label, each in chosen if not each.exceeds_domain)
    if within:
        found.append(f"The public centre alone is better if the mean lies closer to it than {within}.")
    return found


def check_spread(spread: Any) -> float | None:
    """A positive number, or the root of a private variance that was paid for."""
    if isinstance(spread, Release):
        if spread.statistic != "variance":
            raise ArgumentError(
                f"must be a number, or a release of private_variance; got {spread!r}.", argument="spread"
            )
        spread = math.sqrt(spread.value) or None
    return None if spread is None else positive_number("spread", spread)


def check_offset(offset: Any, domain: Domain) -> float | None:
    """A distance within the ball."""
    if offset is None:
        return None
    distance = positive_number("offset", offset)
    if distance > domain.radius:
        raise ArgumentError(
            f"must be at most the radius {domain.radius:.4g}, as the mean of clipped records is; got {distance:g}.",
            argument="offset",
        )
    return distance


def guess_error(offset: float, error: float, *, dim: int, mechanism: str) -> float:
    """R(a, E) in the ball of radius 1: how far the best guess is from a point at this distance from the centre.

    By the midpoint rule in the quantiles of the length of the noise (σ·χ_d, or σ·Gamma(d) for Laplace noise) and of the
    cosine u₁ of its angle, (1 + u₁)/2 ~ Beta((d−1)/2, (d−1)/2).

    >>> round(guess_error(0.8, 0.05, dim=6, mechanism="wrapped-gaussian"), 4)
    0.0499
    """
    gaussian = mechanism == WrappedGaussianMechanism.name
    lengths, cosines, sigma = _noise_nodes(dim, gaussian)
    along, across = offset + error * lengths * cosines, error * lengths * np.sqrt(1 - cosines**2)
    seen = np.maximum(np.hypot(along, across), 1e-300)
    share = shrink_lengths(seen, dim=dim, radius=1.0, sigma=error * sigma, gaussian=gaussian) / seen
    return float(np.mean(np.hypot(share * along - offset, share * across)))


@lru_cache(maxsize=64)
def _noise_nodes(dim: int, gaussian: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Lengths (N, 1) and cosines (M,) of noise of mean length 1, and its σ."""
    levels = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
    if gaussian:
        sigma = math.exp(special.gammaln(dim / 2) - special.gammaln((dim + 1) / 2)) / math.sqrt(2)
        lengths = sigma * np.sqrt(2 * special.gammaincinv(dim / 2, levels))
    else:
        sigma = 1 / dim
        lengths = sigma * special.gammaincinv(dim, levels)
    if dim == 1:
        return lengths[:, None], np.array([-1.0, 1.0]), sigma
    half = (dim - 1) / 2
    return lengths[:, None], 2 * special.betaincinv(half, half, (np.arange(_ANGLES) + 0.5) / _ANGLES) - 1, sigma


@lru_cache(maxsize=256)
def _crossing(dim: int, error: float, mechanism: str) -> float:
    """The a in (0, 1] with R(a, E) = a; where the guess is nearer throughout, or nowhere, the end of the interval."""

    def excess(u: float) -> float:
        a = math.exp(u)
        return guess_error(a, min(error, _LARGEST_NOISE), dim=dim, mechanism=mechanism) / a - 1

    low, high = math.log(min(_NEAREST, 1e-3 * error)), 0.0
    if excess(high) >= 0:
        return 1.0
    return math.exp(optimize.brentq(excess, low, high, xtol=_DIGITS))


@lru_cache(maxsize=256)
def _largest_noise(dim: int, offset: float, mechanism: str) -> float:
    """The largest E ≤ 1 with R(a, E) ≤ a."""

    def excess(u: float) -> float:
        return guess_error(offset, math.exp(u), dim=dim, mechanism=mechanism) / offset - 1

    low, high = math.log(1e-3 * offset), 0.0
    if excess(high) <= 0:
        return 1.0
    return math.exp(optimize.brentq(excess, low, high, xtol=_DIGITS))


def _at_least(count: float) -> int:
    return max(1, math.ceil(count * (1 - 1e-9)))
