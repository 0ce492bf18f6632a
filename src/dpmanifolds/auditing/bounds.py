"""What a promise lets an attacker do, and what an attack's error rates say against it.

A test that tells two neighbours apart with false alarms α and misses β contradicts every promise that is stronger than
what `implied` says: ε ≥ ln((1 − δ − β)/α) for (ε, δ)-DP, μ ≥ Φ⁻¹(1 − α) − Φ⁻¹(β) for Gaussian DP, and
ρ ≥ sup_a D_a(1 − β ‖ α)/a over orders a ≥ 1 for zCDP, D_a the Rényi divergence of the test's two coins.

Scores are quantised, so that their low-order bits decide nothing (that is the precision attack's business). The
threshold, and which neighbour counts as the alarm, are chosen on the first half of the draws; the second half, which
played no part in the choice, is counted. Clopper–Pearson bounds of both error rates, each at half of the error
probability, make the bound valid whatever the scores are: a bad score only makes it small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds._validate import number_between
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Guarantee

_ORDERS = np.concatenate([[1.0], 1 + np.geomspace(1e-2, 63.0, 24)])


@dataclass(frozen=True)
class Claim:
    """One number that a guarantee promises, in the form that an attack can contradict.

    >>> from dpmanifolds.auditing import Claim
    >>> claim = Claim("ε", 1.0)
    >>> float(claim.implied(false_alarms=0.1, misses=0.1)) > claim.value  # such a test would break the promise
    True
    """

    name: str
    """"ε" (pure, or at `delta`), "μ" (Gaussian DP) or "√2ρ" (zCDP, on the scale of μ)."""
    value: float
    delta: float = 0.0
    """For the name "ε"."""

    @classmethod
    def of(cls, guarantee: Guarantee, delta: float | None = None) -> Self:
        """The parameter of the guarantee where all its terms are of one kind; else, or given `delta`, ε at δ (1e−5)."""
        kinds = {term.kind for term in guarantee.terms}
        if delta is None and kinds <= {"gaussian", "riemannian-gaussian", "l2-laplace"}:
            return cls("μ", guarantee.as_gaussian().mu)
        if delta is None and kinds <= {"zcdp", "discrete-gaussian"}:
            return cls("√2ρ", math.sqrt(2 * guarantee.as_zcdp().rho))
        if delta is None and kinds <= {"pure", "laplace", "discrete-laplace"}:
            return cls("ε", guarantee.as_pure().epsilon)
        delta = 1e-5 if delta is None else delta
        return cls("ε", guarantee.epsilon(delta), delta)

    def implied(self, false_alarms: ArrayLike, misses: ArrayLike) -> np.ndarray:
        """The smallest value of the claimed number that allows a test with these error rates; at least 0."""
        alpha, beta = np.asarray(false_alarms, dtype=np.float64), np.asarray(misses, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.name == "μ":
                value = -special.ndtri(alpha) - special.ndtri(beta)
            elif self.name == "√2ρ":
                value = np.sqrt(2 * _rho(alpha, 1 - beta))
            else:
                value = np.log((1 - self.delta - beta) / alpha)
        return np.where(np.isnan(value) | (1 - beta <= alpha), 0.0, np.maximum(value, 0.0))

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.4g}" + (f" at δ = {self.delta:g}" if self.delta else "")


def _rho(alpha: np.ndarray, power: np.ndarray) -> np.ndarray:
    """sup over orders a of D_a(Bernoulli(power) ‖ Bernoulli(alpha))/a; a finite set of orders only lowers it."""
    logs = np.log(power), np.log(alpha), np.log1p(-power), np.log1p(-alpha)
    best = special.xlogy(power, power / alpha) + special.xlogy(1 - power, (1 - power) / (1 - alpha))
    for order in _ORDERS[1:]:
        hit, miss = order * logs[0] + (1 - order) * logs[1], order * logs[2] + (1 - order) * logs[3]
        best = np.fmax(best, np.logaddexp(hit, miss) / ((order - 1) * order))
    return np.asarray(best)


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
