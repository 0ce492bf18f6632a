"""From the scores of an attack to a lower confidence bound on what was promised.

>>> import numpy as np
>>> from dpmanifolds.auditing import Claim, lower_bound
>>> rng = np.random.default_rng(0)
>>> scores = rng.laplace(1.0, size=20_000), rng.laplace(0.0, size=20_000)
>>> found = lower_bound(*scores, Claim("ε", 1.0))
>>> 0.9 < found.value < 1.0
True

Scores are quantised, so that their low-order bits decide nothing (that is the precision attack's business). The
threshold, and which neighbour counts as the alarm, are chosen on the first half of the draws; the second half, which
played no part in the choice, is counted. Clopper–Pearson bounds of both error rates, each at half of the error
probability, make the bound valid whatever the scores are: a bad score only makes it small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds._validate import number_between
from dpmanifolds.auditing.claims import Claim
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Guarantee

__all__ = ["LowerBound", "lower_bound", "profile_bands", "upper_rate"]

_QUANTUM = 2.0**-12
_THRESHOLDS = 512
_TAIL_THRESHOLDS = 64
_FEWEST = 100
# stricter than what is counted: the best of many thresholds must not be best by luck in a tail
_CHOOSING_ERROR = 1e-5


@dataclass(frozen=True)
class LowerBound:
    """The result of one attack.

    >>> import numpy as np
    >>> from dpmanifolds.auditing import Claim, lower_bound
    >>> rng = np.random.default_rng(0)
    >>> found = lower_bound(rng.normal(1.0, size=20_000), rng.normal(0.0, size=20_000), Claim("μ", 1.0))
    >>> 0.9 < found.value < 1.0, 0.0 < found.false_alarms < 1.0
    (True, True)
    """

    value: float
    """With the asked confidence, the mechanism does not keep the claimed number below this."""
    threshold: float
    """Scores of at least this raise the alarm (at most this, where `mirrored`)."""
    mirrored: bool
    """Whether the second neighbour, not the first, is the one that the alarm looks for."""
    false_alarms: float
    """Upper confidence bound."""
    misses: float
    """Upper confidence bound."""


def upper_rate(events: ArrayLike, trials: int, error: float) -> np.ndarray:
    """Clopper–Pearson: the largest rate at which so few events among `trials` have a probability of `error`.

    >>> round(float(upper_rate(0, 100, 0.025)), 6)
    0.036217
    """
    count = np.asarray(events, dtype=np.float64)
    return np.where(count >= trials, 1.0, special.betaincinv(count + 1, np.maximum(trials - count, 1e-9), 1 - error))


def quantised(scores: ArrayLike) -> np.ndarray:
    """Scores on a grid far coarser than floating-point rounding and far finer than a privacy loss that matters."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size < _FEWEST or not np.all(np.isfinite(values)):
        raise ArgumentError(f"scores must be at least {_FEWEST} finite numbers for each of the two neighbours.")
    return np.asarray(np.rint(values / _QUANTUM) * _QUANTUM)


def lower_bound(first: ArrayLike, second: ArrayLike, claim: Claim, confidence: float = 0.95) -> LowerBound:
    """A lower bound on the claimed number from scores of draws of two neighbours; high scores speak for the first.

    >>> import numpy as np
    >>> from dpmanifolds.auditing import Claim, lower_bound
    >>> rng = np.random.default_rng(0)
    >>> found = lower_bound(rng.laplace(1.0, size=20_000), rng.laplace(0.0, size=20_000), Claim("ε", 1.0))
    >>> 0.9 < found.value < 1.0
    True
    """
    error = (1 - number_between("confidence", confidence, 0.0, 1.0)) / 2
    trained, counted = _halves(first, second)
    thresholds = _candidates(trained)
    chosen = (-1.0, 0.0, False)
    for mirrored in (False, True):
        values = claim.implied(*_rates(trained, thresholds, mirrored, min(error, _CHOOSING_ERROR)))
        at = int(np.argmax(values))
        chosen = max(chosen, (float(values[at]), float(thresholds[at]), mirrored))
    _, threshold, mirrored = chosen
    alarms, misses = _rates(counted, np.array([threshold]), mirrored, error)
    value = float(claim.implied(alarms, misses)[0])
    return LowerBound(value, threshold, mirrored, float(alarms[0]), float(misses[0]))


def _rates(
    scores: list[np.ndarray], thresholds: np.ndarray, mirrored: bool, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """Upper confidence bounds of false alarms and misses at each threshold."""
    hits, trials, wrong, others = _events(scores, thresholds, mirrored)
    return upper_rate(wrong, others, error), upper_rate(trials - hits, trials, error)


def profile_bands(
    first: ArrayLike, second: ArrayLike, guarantee: Guarantee, epsilons: ArrayLike, confidence: float = 0.95
) -> np.ndarray:
    """The privacy profile of this pair of neighbours: columns ε, estimate of δ, lower band, upper band, claimed δ.

    δ(ε) = sup over events of P(E) − e^ε·P'(E), for both orders of the neighbours. The event is chosen on the first
    half of the draws and counted on the second; the bands hold at all ε together (Bonferroni). Where the lower band
    lies above the claim, the claim is broken.

    >>> import numpy as np
    >>> from dpmanifolds.auditing import profile_bands
    >>> from dpmanifolds.privacy import Guarantee
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(1.0, size=4000), rng.normal(0.0, size=4000)
    >>> bands = profile_bands(*scores, Guarantee.gaussian(1.0), [0.0, 1.0])
    >>> bands.shape, bool(np.all(bands[:, 2] <= bands[:, 4]))
    ((2, 5), True)
    """
    points = np.asarray(epsilons, dtype=np.float64)
    error = (1 - number_between("confidence", confidence, 0.0, 1.0)) / (4 * points.size)
    trained, counted = _halves(first, second)
    thresholds = _candidates(trained)
    tables = [(_events(trained, thresholds, mirrored), mirrored) for mirrored in (False, True)]
    rows = []
    for epsilon, grown in zip(points, np.exp(points), strict=True):
        gains = [alarms / trials - grown * false / others for (alarms, trials, false, others), _ in tables]
        mirrored = bool(gains[1].max() > gains[0].max())
        at = thresholds[[int(np.argmax(gains[mirrored]))]]
        hits, trials, wrong, others = _events(counted, at, mirrored)
        estimate = hits / trials - grown * wrong / others
        low = 1 - upper_rate(trials - hits, trials, error) - grown * upper_rate(wrong, others, error)
        high = upper_rate(hits, trials, error) - grown * (1 - upper_rate(others - wrong, others, error))
        bands = np.maximum([estimate[0], low[0], high[0]], 0.0)
        rows.append([epsilon, *bands, float(guarantee.delta(epsilon))])
    return np.array(rows)


def _halves(first: ArrayLike, second: ArrayLike) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sorted quantised scores of both neighbours: the half to choose the event on, and the half to count."""
    scores = quantised(first), quantised(second)
    trained = [np.sort(each[: each.size // 2]) for each in scores]
    counted = [np.sort(each[each.size // 2 :]) for each in scores]
    return trained, counted


def _candidates(trained: list[np.ndarray]) -> np.ndarray:
    tails = np.geomspace(1e-4, 2e-2, _TAIL_THRESHOLDS)
    levels = np.concatenate([tails, np.linspace(0.0, 1.0, _THRESHOLDS), 1 - tails])
    return np.unique(np.quantile(np.concatenate(trained), levels, method="nearest"))


def _events(
    scores: list[np.ndarray], thresholds: np.ndarray, mirrored: bool
) -> tuple[np.ndarray, int, np.ndarray, int]:
    """How often the alarm is raised under the neighbour it looks for, and under the other, each with its trials."""
    first, second = scores
    if mirrored:
        right, wrong = (np.searchsorted(each, thresholds, side="right") for each in (second, first))
        return right, second.size, wrong, first.size
    right, wrong = (each.size - np.searchsorted(each, thresholds, side="left") for each in (first, second))
    return right, first.size, wrong, second.size
