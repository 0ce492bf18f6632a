"""What a release promises: named terms, composed and read as whatever budget is asked for.

>>> from dpmanifolds.privacy import Guarantee, compose
>>> mean = Guarantee.gaussian(0.5)
>>> both = compose(mean, Guarantee.pure(0.3))
>>> both.delta(2.0) < compose(mean, mean, mean).delta(2.0)
True
>>> Guarantee.from_json(both.to_json()) == both
True

A guarantee keeps its terms, sorted and counted; nothing is approximated until a number is asked for. Then several true
accounts are drawn up and the best is told: the sum of pure ε, the root of Σμ², the sum of ρ, and, unless one of
these is exact, the composed privacy-loss distribution (`loss_grid`). So copies equal `k_fold` and the order of
composition does not matter, bit for bit; and no number is ever below the truth.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpmanifolds._validate import choice, float_or_array, non_negative_epsilons, positive_integer, probability, text
from dpmanifolds.errors import ArgumentError, NotAvailableError, ScaleOutOfRangeError
from dpmanifolds.privacy import accounts
from dpmanifolds.privacy.budget import Budget, checked_budget, order, told
from dpmanifolds.privacy.budgets import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpmanifolds.privacy.l2_laplace import L2LaplaceTerm
from dpmanifolds.privacy.lattice import DiscreteGaussianTerm, DiscreteLaplaceTerm
from dpmanifolds.privacy.loss_grid import LossGrid
from dpmanifolds.privacy.riemannian_gaussian import RiemannianGaussianTerm
from dpmanifolds.privacy.rounding import down
from dpmanifolds.privacy.terms import (
    ApproxTerm,
    GaussianTerm,
    LaplaceTerm,
    ProfileTerm,
    PureTerm,
    Term,
    ZcdpTerm,
    term_from_dict,
)
from dpmanifolds.privacy.tilted_grid import TailLaw

ADJACENCIES = ("replace-one", "add-remove-one")
"""What neighbours differ in: one record of a public number, or one record more or less."""
_MEANINGS = ("replaced by any other; how many there are is public", "added or removed; how many there are is private")
_SCHEMA = 1
_RESOLVED = 1e3
_TAILS = (1e-20, 1e-40, 1e-80, 1e-160, 1e-280)


def records_moved(adjacency: str) -> int:
    """How many records a neighbour changes in a sum: two for a replacement, one added or removed."""
    return 2 if choice("adjacency", adjacency, ADJACENCIES) == "replace-one" else 1


@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy promise: terms, the adjacency they hold under, and what one record is (`unit`).

    >>> from dpmanifolds.privacy import ApproxDP, GaussianDP, Guarantee
    >>> promise = Guarantee.gaussian(0.1).k_fold(100)
    >>> round(promise.as_gaussian().mu, 12)
    1.0
    >>> promise.fits(GaussianDP(1.0)), promise.fits(ApproxDP(4.0, 1e-5))
    (True, False)
    """

    terms: tuple[Term, ...]
    adjacency: str = "replace-one"
    unit: str = "record"

    def __post_init__(self) -> None:
        choice("adjacency", self.adjacency, ADJACENCIES)
        text("unit", self.unit, "what one record is, for instance 'person'")
        given = self.terms if isinstance(self.terms, tuple | list) else ()
        if not given or not all(isinstance(term, Term) for term in given):
            raise ArgumentError("terms must be one or more terms; use Guarantee.pure, .gaussian, … to make them.")
        for term in given:
            if term.adjacency not in (None, self.adjacency):
                raise ArgumentError(
                    f"a term of kind {term.kind!r} here holds for {term.adjacency!r} neighbours; got adjacency "
                    f"{self.adjacency!r}."
                )
        object.__setattr__(self, "terms", _collected(tuple(given)))

    @property
    def neighbours(self) -> str:
        """The adjacency, and what it means."""
        return f"{self.adjacency}: neighbours differ in one {self.unit}, {_MEANINGS[ADJACENCIES.index(self.adjacency)]}"

    def __getstate__(self) -> dict[str, Any]:
        # what was computed along the way holds closures, which cannot be pickled
        return {"terms": self.terms, "adjacency": self.adjacency, "unit": self.unit}

    @classmethod
    def pure(cls, epsilon: float, **labels: str) -> Guarantee:
        """ε-DP, and nothing else known."""
        return cls((PureTerm(epsilon=epsilon),), **labels)

    @classmethod
    def approx(cls, epsilon: float, delta: float, **labels: str) -> Guarantee:
        """(ε, δ)-DP at one point."""
        return cls((ApproxTerm(epsilon=epsilon, delta=delta),), **labels)

    @classmethod
    def gaussian(cls, mu: float, **labels: str) -> Guarantee:
        """μ-Gaussian-DP: Euclidean Gaussian noise with μ = Δ/σ."""
        return cls((GaussianTerm(mu=mu),), **labels)

    @classmethod
    def zcdp(cls, rho: float, **labels: str) -> Guarantee:
        """ρ-zCDP, and nothing else known."""
        return cls((ZcdpTerm(rho=rho),), **labels)

    @classmethod
    def discrete_gaussian(cls, shift: float, sigma: float, dim: int, **labels: str) -> Guarantee:
        """Discrete Gaussian noise on dim integers that move by at most `shift` in ℓ2 (docs/proofs/accounts.md, A1)."""
        return cls((DiscreteGaussianTerm(dim=dim, sigma=sigma, shift=shift),), **labels)

    @classmethod
    def discrete_laplace(cls, shift: int, scale: float, **labels: str) -> Guarantee:
        """Discrete Laplace noise on each of some integers that move by at most `shift` in ℓ1 (A2 there).

        >>> from dpmanifolds.privacy import Guarantee
        >>> round(Guarantee.discrete_laplace(8, 4.0).delta(1.0), 6), round(Guarantee.pure(2.0).delta(1.0), 6)
        (0.393469, 0.55677)
        """
        return cls((DiscreteLaplaceTerm(scale=scale, shift=shift),), **labels)

    @classmethod
    def laplace(cls, epsilon: float, **labels: str) -> Guarantee:
        """Laplace noise on the line, and bounds any noise ∝ e^{−dist/σ} with ε = Δ/σ (docs/proofs/accounts.md, A2)."""
        return cls((LaplaceTerm(epsilon=epsilon),), **labels)

    @classmethod
    def l2_laplace(cls, shift: float, dim: int, **labels: str) -> Guarantee:
        """ℓ2-Laplace noise of scale σ in R^dim with Δ = shift·σ, with its true profile (MATH.md, B6).

        >>> from dpmanifolds.privacy import Guarantee
        >>> round(Guarantee.l2_laplace(3.0, 21).delta(1.0), 10), Guarantee.pure(3.0).delta(1.0) > 0.8
        (0.0262247909, True)
        """
        return cls((LaplaceTerm(epsilon=shift) if dim == 1 else L2LaplaceTerm(dim=dim, shift=shift),), **labels)

    @classmethod
    def riemannian_gaussian(cls, manifold: Any, sigma: float, sensitivity: float, **labels: str) -> Guarantee:
        """The intrinsic Gaussian on a `Sphere` or `Hyperbolic` space."""
        kind = type(manifold).__name__.lower()
        if kind not in ("sphere", "hyperbolic"):
            raise NotAvailableError(
                f"no Gaussian-DP bound is known for the intrinsic Gaussian on {type(manifold).__name__}. Use the "
                "wrapped Gaussian at the public centre, whose promise is Guarantee.gaussian(sensitivity / sigma)."
            )
        term = RiemannianGaussianTerm(
            manifold=kind, dim=manifold.dim, curvature=manifold.curvature, sigma=sigma, sensitivity=sensitivity
        )
        return cls((term,), **labels)

    @classmethod
    def profile(cls, interval: float, deltas: Iterable[float], **labels: str) -> Guarantee:
        """A privacy-loss grid: upper bounds on δ at ε = 0, interval, 2·interval, …"""
        return cls((ProfileTerm(interval=interval, deltas=tuple(deltas)),), **labels)

    def k_fold(self, k: int) -> Guarantee:
        """The promise of k releases that each keep this one, chosen adaptively."""
        k = positive_integer("k", k)
        return Guarantee(tuple(term.times(term.count * k) for term in self.terms), self.adjacency, self.unit)

    def delta(self, epsilon: ArrayLike) -> Any:
        """The profile: an upper bound on the smallest δ with (ε, δ)-DP, for a number or an array of ε ≥ 0."""
        values = non_negative_epsilons(epsilon)
        bound = np.ones_like(values)
        for account in self._simple:
            bound = np.minimum(bound, account.delta(values))
        if not accounts.is_exact(self.terms):
            by_direction = [self._delta_by_grid(values, np.asarray(bound), backward=way) for way in self._directions]
            bound = np.maximum.reduce(by_direction)
        return float_or_array(np.asarray(bound))

    @property
    def _directions(self) -> tuple[bool, ...]:
        """Both directions between neighbours, where a term tells them apart."""
        return (False,) if all(term.is_symmetric for term in self.terms) else (False, True)

    def _delta_by_grid(self, values: np.ndarray, bound: np.ndarray, *, backward: bool) -> np.ndarray:
        """δ in one direction, by privacy-loss distributions, where that is below `bound`."""
        grid = self._loss_grid_backward if backward else self.loss_grid
        found = np.array(bound if grid is None else np.minimum(bound, grid.delta(values)))
        floor = 1.0 if grid is None else grid.infinity
        for level in _TAILS:
            # below its mass at infinity the grid answers nothing
            unresolved = found < _RESOLVED * floor
            if not np.any(unresolved) or (law := self._tail_law(level, backward)) is None:
                break
            found[unresolved] = np.minimum(found[unresolved], law.delta(values[unresolved]))
            floor = law.infinity
        return np.asarray(found)

    def epsilon(self, delta: float) -> float:
        """An upper bound on the smallest ε ≥ 0 with (ε, δ)-DP; infinity where none is known."""
        delta = probability("delta", delta)
        found = [account.epsilon(delta) for account in self._simple]
        if not accounts.is_exact(self.terms):
            found.append(max(self._epsilon_by_grid(delta, backward=way) for way in self._directions))
        return min(found)

    def _epsilon_by_grid(self, delta: float, *, backward: bool) -> float:
        grid = self._loss_grid_backward if backward else self.loss_grid
        found = math.inf if grid is None else grid.epsilon(delta)
        if grid is not None and delta >= _RESOLVED * grid.infinity:
            return found
        level = next((level for level in _TAILS if delta >= _RESOLVED * level), _TAILS[-1])
        law = self._tail_law(level, backward)
        return found if law is None else min(found, law.epsilon(delta))

    def tradeoff(self, alpha: ArrayLike) -> Any:
        """f(α): a lower bound on the type II error of any test between neighbours at type I error α.

        max over ε of 1 − δ(ε) − e^ε α and e^−ε(1 − δ(ε) − α); exact for Gaussian terms, where f(α) = Φ(Φ⁻¹(1 − α) − μ).

        >>> from dpmanifolds.privacy import Guarantee
        >>> round(Guarantee.gaussian(1.0).tradeoff(0.05), 6)
        0.740489
        """
        levels = np.asarray(alpha, dtype=np.float64)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ArgumentError(f"alpha must be from 0 to 1; got {alpha!r}.")
        if all(term.is_gaussian for term in self.terms):
            return float_or_array(np.asarray(down(special.ndtr(-special.ndtri(levels) - self.as_gaussian().mu), 43)))
        epsilon = accounts.reading_points(self.terms, min(self.epsilon(1e-9), 700.0))
        miss = 1 - np.asarray(self.delta(epsilon))
        lines = [miss - np.exp(epsilon) * level for level in levels.ravel()]
        mirrored = [np.exp(-epsilon) * (miss - level) for level in levels.ravel()]
        best = [max(float(np.max(a)), float(np.max(b)), 0.0) for a, b in zip(lines, mirrored, strict=True)]
        return float_or_array(np.reshape(best, levels.shape))

    def total_pure(self) -> float | None:
        """Σε; None where a term has an unbounded loss."""
        return accounts.total_pure(self.terms)

    def total_mu(self) -> float | None:
        """√Σμ²; None where a term has no μ."""
        return accounts.total_mu(self.terms)

    def total_rho(self) -> float | None:
        """Σρ; None where a term has no ρ."""
        return accounts.total_rho(self.terms)

    def total_renyi(self, alpha: float) -> float | None:
        """ΣD_α; None where a term has no Rényi divergences."""
        return accounts.total_renyi(self.terms, order(alpha))

    def as_pure(self) -> PureDP:
        """Σε, where every term has a bounded loss."""
        return PureDP(self._needed(self.total_pure(), "pure ε"))

    def as_gaussian(self) -> GaussianDP:
        """√Σμ², where every term has a μ."""
        return GaussianDP(self._needed(self.total_mu(), "Gaussian μ"))

    def as_zcdp(self) -> ZeroConcentratedDP:
        """Σρ, where every term has a ρ."""
        return ZeroConcentratedDP(self._needed(self.total_rho(), "zCDP ρ"))

    def as_renyi(self, alpha: float) -> RenyiDP:
        """ΣD_α, where every term has Rényi divergences."""
        return RenyiDP(alpha, self._needed(self.total_renyi(alpha), "Rényi"))

    def as_approx(self, delta: float) -> ApproxDP:
        """(ε(δ), δ)."""
        epsilon = self.epsilon(delta)
        if math.isinf(epsilon):
            raise NotAvailableError(f"this guarantee gives no finite ε at delta = {delta:g}. Ask for a larger delta.")
        return ApproxDP(told(epsilon), delta)

    def fits(self, budget: Budget, *, strict: bool = False) -> bool:
        """Whether this promise is within `budget`; False also where no conversion to the budget's kind exists.

        A sum of several ε, μ², ρ or D_α may exceed the budget by a relative 1e−12, for the rounding of the parts it was
        cut into; `strict`, as calibration is, allows nothing. A point (ε, δ) never has slack: at δ = 1e−12 a relative
        1e−12 in ε = 8 would be eight times the budget.
        """
        return checked_budget(budget).admits(self, strict=strict)

    @cached_property
    def _simple(self) -> list[accounts.Account]:
        return accounts.simple_accounts(self.terms)

    @cached_property
    def loss_grid(self) -> LossGrid | None:
        """The composed privacy-loss distribution, from above; None where a formula is exact or no grid can hold it."""
        return None if accounts.is_exact(self.terms) else self._composed(backward=False)

    @cached_property
    def _loss_grid_backward(self) -> LossGrid | None:
        return self._composed(backward=True)

    def _composed(self, *, backward: bool) -> LossGrid | None:
        try:
            return accounts.composed_grid(self.terms, backward=backward)
        except ScaleOutOfRangeError:
            return None

    def _tail_law(self, level: float, backward: bool) -> TailLaw | None:
        """The law of all losses in the far tail of one direction, cut off where `level` is left."""
        laws: dict[tuple[float, bool], TailLaw | None] = self.__dict__.setdefault("_tail_laws", {})
        if (level, backward) not in laws:
            laws[level, backward] = accounts.tail_law(self.terms, level, backward=backward)
        return laws[level, backward]

    @property
    def best_guess(self) -> float:
        """The largest probability of guessing right which of two equally likely values a record has."""
        return (1 + float(self.delta(0.0))) / 2

    def to_dp_accounting(self) -> Any:
        """This promise as dp-accounting's pessimistic `PrivacyLossDistribution`, to compose with that library's own."""
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        if len(self._directions) > 1:
            raise NotAvailableError(
                "a promise that differs between the two directions is not handed over. Compose dp-accounting's own "
                "events."
            )
        grid = accounts.composed_grid(self.terms)
        masses = {grid.lower + i: float(mass) for i, mass in enumerate(grid.masses)}
        return PrivacyLossDistribution.create_from_rounded_probability(masses, grid.infinity, grid.interval)

    def _needed(self, value: float | None, kind: str) -> float:
        if value is None:
            names = ", ".join(sorted({term.kind for term in self.terms}))
            raise NotAvailableError(
                f"a guarantee with terms {names} implies no {kind} promise. Read it as (ε, δ) with as_approx."
            )
        return told(value)

    def to_json(self) -> str:
        """Names and numbers; every float comes back bit for bit."""
        terms = [term.to_dict() for term in self.terms]
        data = {"schema": _SCHEMA, "adjacency": self.adjacency, "unit": self.unit, "terms": terms}
        return json.dumps(data, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """The guarantee that `to_json` wrote; anything else is refused."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError):
            raise ArgumentError("a guarantee must be JSON as written by Guarantee.to_json.") from None
        if not isinstance(data, dict) or set(data) != {"schema", "adjacency", "unit", "terms"}:
            raise ArgumentError("a guarantee in JSON has the fields schema, adjacency, unit and terms.")
        if data["schema"] != _SCHEMA:
            raise ArgumentError(f"this version reads guarantees of schema {_SCHEMA}; got {data['schema']!r}.")
        if not isinstance(data["terms"], list):
            raise ArgumentError("the terms of a guarantee in JSON are a list.")
        return cls(tuple(term_from_dict(term) for term in data["terms"]), data["adjacency"], data["unit"])


def _collected(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Equal terms counted together, in an order that depends on nothing but the terms."""
    if len(terms) == 1:
        return terms
    counts: Counter[Term] = Counter()
    for term in terms:
        counts[term.times(1)] += term.count
    collected = [term.times(count) for term, count in counts.items()]
    return tuple(sorted(collected, key=lambda term: json.dumps(term.to_dict())))


def compose(*guarantees: Guarantee) -> Guarantee:
    """The promise of several releases together, each chosen in view of the ones before; like with like only.

    >>> from dpmanifolds.privacy import Guarantee, compose
    >>> compose(Guarantee.gaussian(3.0), Guarantee.gaussian(4.0)).as_gaussian()
    GaussianDP(mu=5.0)
    >>> compose(Guarantee.pure(1.0), Guarantee.pure(1.0, unit="household"))
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.ArgumentError: guarantees compose only when adjacency and unit agree; got ('replace-one',
    'household'), ('replace-one', 'record'). Account for each kind separately.
    """
    if not guarantees or not all(isinstance(guarantee, Guarantee) for guarantee in guarantees):
        raise ArgumentError("compose takes one or more guarantees.")
    labels = {(guarantee.adjacency, guarantee.unit) for guarantee in guarantees}
    if len(labels) > 1:
        listed = ", ".join(map(str, sorted(labels)))
        raise ArgumentError(
            f"guarantees compose only when adjacency and unit agree; got {listed}. Account for each kind separately."
        )
    return Guarantee(tuple(term for each in guarantees for term in each.terms), *labels.pop())
