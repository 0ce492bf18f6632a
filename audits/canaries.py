"""Descent audited in one run: many planted records at once, each told apart by its own direction.

Every record is a canary: a coin decides whether its gradient is +C·e_i or −C·e_i, and the attacker, who sees all
iterates, guesses the coins. Under (ε, δ)-DP for replaced records the number of right guesses is hardly above that of a
coin with probability e^ε/(1 + e^ε) (Steinke, Nasr and Jagielski 2023, Theorem 5.2, whose proof needs neighbours that
differ in one coin, not which adjacency they come from). One run gives a bound; it is looser than many runs give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from dpmanifolds._arrays import Array
from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.descent import plan_descent
from dpmanifolds.descent.losses import Loss
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Euclidean
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import ApproxDP
from dpmanifolds.releases import private_descent

__all__ = ["CanaryReport", "audit_descent", "one_run_bound"]

_LARGEST = 60.0


@dataclass(frozen=True)
class CanaryReport:
    """What one run of descent gave away about its canaries.

    >>> from dpmanifolds import ApproxDP
    >>> from audits.canaries import audit_descent
    >>> report = audit_descent(ApproxDP(4.0, 1e-5), steps=3, canaries=200, rng=0)
    >>> report.canaries, report.guesses, report.flagged
    (200, 20, False)
    """

    budget: ApproxDP
    """What is promised."""
    lower_bound: float
    """ε at the budget's δ is at least this, with `confidence`."""
    canaries: int
    guesses: int
    correct: int
    confidence: float
    noise_factor: float

    @property
    def flagged(self) -> bool:
        """Whether the promise is broken."""
        return self.lower_bound > self.budget.epsilon

    def __str__(self) -> str:
        return (
            f"descent: ε = {self.budget.epsilon:g} promised at δ = {self.budget.delta:g}, ε ≥ {self.lower_bound:.3g} "
            f"shown with confidence {self.confidence:.0%}: {self.correct} of {self.guesses} guesses were right, "
            f"{self.canaries} canaries in one run"
        )


class _PlantedGradients(Loss):
    """f(w, x) = ⟨w, x⟩ on R^m: the gradient of a record is the record."""

    def __init__(self, dim: int) -> None:
        self.manifold = Euclidean(dim)

    def value(self, w: Array, records: Array) -> float:
        return float(np.mean(np.asarray(records) @ np.asarray(w)))

    def gradients(self, w: Array, records: Array) -> Array:
        return records


def one_run_bound(correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    """The largest ε that so many right guesses contradict at this confidence; 0 if none.

    P(at least v of r right) ≤ P(B ≥ v) + 2mδ·max_i P(v − i ≤ B < v)/i with B ~ Binomial(r, e^ε/(1 + e^ε)), m coins.

    >>> round(one_run_bound(95, 100, 1000, 1e-5), 3)
    2.165
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ArgumentError("correct must be at most guesses, and guesses at most canaries.")
    error = 1 - number_between("confidence", confidence, 0.0, 1.0)
    below = np.arange(correct - 1, -1, -1)

    def excess(epsilon: float) -> float:
        law = stats.binom(guesses, 1 / (1 + math.exp(-epsilon)))
        windows = np.cumsum(law.pmf(below)) / np.arange(1, correct + 1)
        slack = 2 * canaries * delta * float(np.max(windows, initial=0.0))
        return float(law.sf(correct - 1)) + slack - error

    if excess(0.0) >= 0:
        return 0.0
    if excess(_LARGEST) <= 0:
        return _LARGEST
    root = float(optimize.brentq(excess, 0.0, _LARGEST, xtol=1e-9))
    # just below the root the guesses still contradict ε
    return max(0.0, root - 1e-8)


def audit_descent(
    budget: ApproxDP,
    *,
    steps: int = 10,
    canaries: int = 1000,
    guesses: int | None = None,
    confidence: float = 0.95,
    noise_factor: float = 1.0,
    rng: Any = None,
) -> CanaryReport:
    """One run of `private_descent` on planted records; `guesses` of the coins, those most certain, are guessed.

    The noise is what the budget asks for, times `noise_factor`. A tenth of the coins is guessed unless told otherwise.

    >>> from dpmanifolds import ApproxDP
    >>> from audits.canaries import audit_descent
    >>> audit_descent(ApproxDP(4.0, 1e-5), steps=3, canaries=200, rng=0).flagged
    False
    """
    if not isinstance(budget, ApproxDP):
        raise ArgumentError(f"budget must be ApproxDP, which one run can contradict; got {budget!r}.")
    canaries = positive_integer("canaries", canaries, at_least=10)
    guesses = max(1, canaries // 10) if guesses is None else positive_integer("guesses", guesses)
    factor = positive_number("noise_factor", noise_factor)
    source = as_generator(rng)
    coins = source.choice(np.array([-1.0, 1.0]), size=canaries)
    plan = plan_descent(n=canaries, clip_norm=1.0, budget=budget, steps=steps)
    # a step of n·η makes a planted gradient move its own coordinate by η = 1
    release = private_descent(
        _PlantedGradients(canaries),
        np.diag(coins),
        Euclidean(canaries),
        None,
        start=np.zeros(canaries),
        steps=steps,
        sigma=plan.sigma * factor,
        step_size=float(canaries),
        clip_norm=1.0,
        rng=None if rng is None else source,
    )
    correct = _right_guesses(-np.asarray(release.value), coins, guesses)
    bound = one_run_bound(correct, guesses, canaries, budget.delta, confidence)
    return CanaryReport(budget, bound, canaries, guesses, correct, confidence, factor)


def _right_guesses(scores: ArrayLike, coins: np.ndarray, guesses: int) -> int:
    """How many of the most certain signs are right; the last iterate, a sum of all noisy gradients, tells enough."""
    values = np.asarray(scores)
    sure = np.argsort(-np.abs(values), kind="stable")[:guesses]
    return int(np.sum(np.sign(values[sure]) == coins[sure]))
