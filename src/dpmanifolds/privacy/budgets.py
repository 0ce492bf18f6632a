"""What a user is ready to spend, as frozen values, and what one kind of promise says in another's terms.

>>> from dpmanifolds.privacy import GaussianDP, PureDP
>>> GaussianDP(1.0).as_zcdp()
ZeroConcentratedDP(rho=0.5)
>>> round(PureDP(1.0).as_gaussian().mu, 6)
1.232035

`a.as_x()` is a promise of kind x that every mechanism with promise `a` keeps. It is the smallest such promise where
that is known (pure to anything, Gaussian to anything; zCDP and Rényi to each other), the best published bound for
zCDP and Rényi to (ε, δ), and it is always rounded up, by at most 1e−12 of itself. Where no finite promise follows
(Gaussian to pure, one point (ε, δ) to Gaussian, zCDP to Gaussian, …) a `NotAvailableError` says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dpmanifolds._validate import probability
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy.budget import (
    KINDS_BY_FILTER,
    NOTHING,
    Budget,
    Cost,
    checked_budget,
    checked_kind,
    order,
    told,
)
from dpmanifolds.privacy.conversions import (
    best_order,
    epsilon_of_mu,
    epsilon_of_renyi,
    epsilon_of_zcdp,
    mu_for,
    mu_of_pure,
    pure_renyi,
    renyi_of_rho,
    renyi_within,
    rho_of_mu,
    rho_of_pure,
)
from dpmanifolds.privacy.rounding import down, float_above, float_below, keeps
from dpmanifolds.privacy.terms import ApproxTerm, GaussianTerm, PureTerm, Term, ZcdpTerm

if TYPE_CHECKING:
    from dpmanifolds.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class PureDP(Budget):
    """ε-DP: P(A) ≤ e^ε Q(A) for every event and every pair of neighbours.

    Everything that follows from it is attained by randomised response (Kairouz, Oh and Viswanath 2015), hence tight.

    >>> from dpmanifolds.privacy import PureDP
    >>> round(PureDP(1.0).as_zcdp().rho, 6)
    0.462117
    >>> PureDP(0.0)
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.ArgumentError: epsilon must be finite and above 0; got 0.0.
    """

    epsilon: float
    reader: ClassVar[str] = "as_pure"
    term_kind: ClassVar[type[Term]] = PureTerm
    filter: ClassVar[str] = "pure"
    filter_reads: ClassVar[str] = "releases with a bounded loss: pure ε and Laplace noise"
    bounded_loss: ClassVar[bool] = True

    def as_pure(self) -> PureDP:
        return self

    def as_approx(self, delta: float) -> ApproxDP:
        """ε' = log(e^ε − δ(1 + e^ε)): the profile of randomised response is (e^ε − e^ε')/(1 + e^ε)."""
        delta = probability("delta", delta)
        return ApproxDP(told(_pure_epsilon_at(self.epsilon, delta)), delta)

    def as_gaussian(self) -> GaussianDP:
        """μ = −2Φ⁻¹(1/(1 + e^ε))."""
        return GaussianDP(mu_of_pure(self.epsilon))

    def as_zcdp(self) -> ZeroConcentratedDP:
        """ρ = ε·tanh(ε/2)."""
        return ZeroConcentratedDP(told(rho_of_pure(self.epsilon)))

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = log(cosh((α − ½)ε)/cosh(ε/2))/(α − 1)."""
        alpha = order(alpha)
        return RenyiDP(alpha, told(pure_renyi(self.epsilon, alpha)))

    def spent_by(self, guarantee: Guarantee) -> float | None:
        return guarantee.total_pure()

    def largest_epsilon(self) -> float:
        return self.epsilon

    def gaussian_mu(self) -> float:
        raise NotAvailableError(f"Gaussian noise has unbounded privacy loss: it keeps no {self!r}. Use Laplace noise.")

    def largest_rho(self) -> float:
        raise _no_zcdp(self)

    @classmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> PureDP:
        return cls(total.epsilon)


def _pure_epsilon_at(epsilon: float, delta: float) -> float:
    """log(e^ε − δ(1 + e^ε)) = ε + log(1 − δ(1 + e^−ε)), rounded up and kept above 0."""
    used = delta * (1 + math.exp(-epsilon))
    if used >= 1:
        return NOTHING
    return max(min(epsilon + math.log1p(-used) + 2.0**-50 * (epsilon + used / (1 - used)), epsilon), NOTHING)


@dataclass(frozen=True)
class ApproxDP(Budget):
    """(ε, δ)-DP: P(A) ≤ e^ε Q(A) + δ. One point of a profile, from which only other points of larger δ follow.

    A conversion that would give ε = 0 gives the smallest normal float instead.

    >>> from dpmanifolds.privacy import ApproxDP
    >>> ApproxDP(1.0, 1e-6).as_approx(1e-5).epsilon < 1.0
    True
    >>> ApproxDP(1.0, 1e-6).as_gaussian()
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.NotAvailableError: ApproxDP(epsilon=1.0, delta=1e-06) implies no Gaussian μ promise. One point
    (ε, δ) says nothing about smaller δ; keep the guarantee it came from and convert that.
    """

    epsilon: float
    delta: float
    reader: ClassVar[str] = "as_approx"
    term_kind: ClassVar[type[Term]] = ApproxTerm
    filter: ClassVar[str] = "basic"
    filter_reads: ClassVar[str] = (
        "pure ε and (ε, δ) as they are, and any other release at the δ that spend(…, delta=…) names"
    )
    gains_by_batches: ClassVar[bool] = True
    exact_mu: ClassVar[bool] = True
    _instead: ClassVar[str] = (
        "One point (ε, δ) says nothing about smaller δ; keep the guarantee it came from and convert that."
    )

    def as_approx(self, delta: float) -> ApproxDP:
        """δ' ↦ log(e^ε − (δ' − δ)/(1 − δ)·(1 + e^ε)) for δ' ≥ δ (Kairouz, Oh and Viswanath 2015)."""
        delta = probability("delta", delta)
        if delta < self.delta:
            raise self._refuse(f"(ε, {delta:g})")
        if delta == self.delta:
            return self
        share = down((delta - self.delta) / (1 - self.delta))
        return ApproxDP(told(_pure_epsilon_at(self.epsilon, share)), delta)

    def admits(self, guarantee: Guarantee, *, strict: bool = False) -> bool:
        """δ(ε) ≤ δ, with no slack."""
        return keeps(float(guarantee.delta(self.epsilon)), self.delta)

    def gaussian_mu(self) -> float:
        return mu_for(self.epsilon, self.delta)

    @property
    def cost(self) -> Cost:
        return Fraction(self.epsilon), Fraction(self.delta)

    def with_cost(self, cost: Cost, *, up: bool) -> Budget | None:
        """Pure where there is no δ."""
        pure, delta = self.pure_total.with_cost(cost, up=up), self._rounded(cost[1], up=up)
        return pure if pure is None or delta <= 0 else ApproxDP(pure.amount, delta)

    def cut(self, shares: Sequence[Fraction]) -> list[tuple[Budget, ...]]:
        """As the pure ε and as the Gaussian μ that it affords: a point (ε, δ) cannot be cut without loss."""
        from dpmanifolds.privacy.calibration import affordable_epsilon

        ways = []
        with suppress(NotAvailableError):
            ways += PureDP(affordable_epsilon(self)).cut(shares)
        with suppress(NotAvailableError):
            ways += GaussianDP(self.gaussian_mu()).cut(shares)
        return ways

    def limit(self, filter: str, alpha: float | None) -> Budget:
        """Of the kind that the filter adds up; "auto" is "renyi", which reads the most kinds of release."""
        name = "renyi" if filter == "auto" else filter
        if alpha is not None and name != "renyi":
            raise ArgumentError(f"alpha is the order of filter='renyi'; got filter={filter!r}, alpha={alpha!r}.")
        return KINDS_BY_FILTER[name].limit_within(self, alpha)

    @classmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> ApproxDP:
        return total

    @property
    def pure_total(self) -> PureDP:
        return PureDP(self.epsilon)

    def charge(self, guarantee: Guarantee, delta: float | None = None) -> Budget:
        """At `delta`; without one, Σε and Σδ of terms that state a pure ε or a point (ε, δ)."""
        if delta is not None:
            return guarantee.as_approx(delta)
        points = [term for term in guarantee.terms if isinstance(term, ApproxTerm)]
        if not points:
            return guarantee.as_pure()
        spent = sum((term.count * Fraction(term.epsilon) for term in points), Fraction(0))
        lost = sum((term.count * Fraction(term.delta) for term in points), Fraction(0))
        rest = tuple(term for term in guarantee.terms if not isinstance(term, ApproxTerm))
        if rest:
            spent += Fraction(replace(guarantee, terms=rest).as_pure().epsilon)
        return ApproxDP(float_above(spent), float_above(lost))


@dataclass(frozen=True)
class GaussianDP(Budget):
    """μ-Gaussian-DP (Dong, Roth and Su 2022): no easier to test than N(0, 1) against N(μ, 1).

    >>> from dpmanifolds.privacy import GaussianDP
    >>> round(GaussianDP(1.0).as_approx(1e-5).epsilon, 6)
    4.377178
    """

    mu: float
    spends: ClassVar[str] = "mu"
    power: ClassVar[int] = 2
    reader: ClassVar[str] = "as_gaussian"
    term_kind: ClassVar[type[Term]] = GaussianTerm
    filter: ClassVar[str] = "gaussian"
    filter_reads: ClassVar[str] = "releases with a μ: Gaussian, pure ε and Laplace noise"
    exact_mu: ClassVar[bool] = True
    _instead: ClassVar[str] = "Gaussian noise has unbounded privacy loss; read it as (ε, δ) with as_approx(delta=…)."

    def as_approx(self, delta: float) -> ApproxDP:
        """The root of δ_μ(ε) = δ, exact."""
        return ApproxDP(told(epsilon_of_mu(self.mu, delta)), probability("delta", delta))

    def as_gaussian(self) -> GaussianDP:
        return self

    def as_zcdp(self) -> ZeroConcentratedDP:
        """ρ = μ²/2, attained by the Gaussian pair."""
        return ZeroConcentratedDP(told(rho_of_mu(self.mu)))

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = αμ²/2."""
        return self.as_zcdp().as_renyi(alpha)

    def spent_by(self, guarantee: Guarantee) -> float | None:
        return guarantee.total_mu()

    def gaussian_mu(self) -> float:
        return self.mu

    def largest_rho(self) -> float:
        raise _no_zcdp(self)

    @classmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> GaussianDP:
        return cls(total.gaussian_mu())


def _no_zcdp(budget: Budget) -> NotAvailableError:
    return NotAvailableError(f"a zCDP promise implies no {budget!r}. Ask for ApproxDP, or use other noise.")


@dataclass(frozen=True)
class ZeroConcentratedDP(Budget):
    """ρ-zCDP (Bun and Steinke 2016): D_α ≤ ρα for every α > 1.

    >>> from dpmanifolds.privacy import ZeroConcentratedDP
    >>> round(ZeroConcentratedDP(0.5).as_approx(1e-5).epsilon, 4)
    4.7284
    """

    rho: float
    spends: ClassVar[str] = "rho"
    reader: ClassVar[str] = "as_zcdp"
    term_kind: ClassVar[type[Term]] = ZcdpTerm
    filter: ClassVar[str] = "zcdp"
    filter_reads: ClassVar[str] = "releases with a ρ: lattice and other Gaussian, pure ε and Laplace noise"
    _instead: ClassVar[str] = (
        "Moments bound no trade-off curve of that form; read it as (ε, δ) with as_approx(delta=…)."
    )

    def as_approx(self, delta: float) -> ApproxDP:
        """min over α of ρα + log(1 − 1/α) − log(δα)/(α − 1) (Canonne, Kamath and Steinke 2020)."""
        delta = probability("delta", delta)
        return ApproxDP(told(epsilon_of_zcdp(self.rho, delta)), delta)

    def as_zcdp(self) -> ZeroConcentratedDP:
        return self

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = ρα."""
        alpha = order(alpha)
        return RenyiDP(alpha, renyi_of_rho(self.rho, alpha))

    def spent_by(self, guarantee: Guarantee) -> float | None:
        return guarantee.total_rho()

    def gaussian_mu(self) -> float:
        return math.sqrt(2 * self.rho)

    def largest_rho(self) -> float:
        return self.rho

    @classmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> ZeroConcentratedDP:
        from dpmanifolds.privacy.calibration import affordable_rho

        return cls(affordable_rho(total))


@dataclass(frozen=True)
class RenyiDP(Budget):
    """(α, ε)-Rényi-DP (Mironov 2017): D_α ≤ ε at one order α.

    >>> from dpmanifolds.privacy import RenyiDP
    >>> round(RenyiDP(8.0, 1.0).as_approx(1e-5).epsilon, 4)
    2.2141
    """

    alpha: float
    epsilon: float
    reader: ClassVar[str] = "as_renyi"
    filter: ClassVar[str] = "renyi"
    filter_reads: ClassVar[str] = (
        "releases with Rényi divergences: all Gaussian noise, random batches, pure ε and Laplace noise"
    )
    gains_by_batches: ClassVar[bool] = True
    _instead: ClassVar[str] = "One order bounds no higher one; read it as (ε, δ) with as_approx(delta=…)."

    def as_approx(self, delta: float) -> ApproxDP:
        """ε + log(1 − 1/α) − log(δα)/(α − 1) (Canonne, Kamath and Steinke 2020)."""
        delta = probability("delta", delta)
        return ApproxDP(told(epsilon_of_renyi(self.alpha, self.epsilon, delta)), delta)

    def as_renyi(self, alpha: float) -> RenyiDP:
        """The same ε at any smaller order: D_α does not fall with α."""
        alpha = order(alpha)
        if alpha > self.alpha:
            raise self._refuse(f"Rényi (order {alpha:g})")
        return RenyiDP(alpha, self.epsilon)

    def spent_by(self, guarantee: Guarantee) -> float | None:
        return guarantee.total_renyi(self.alpha)

    def gaussian_mu(self) -> float:
        return math.sqrt(2 * self.epsilon / self.alpha)

    def largest_rho(self) -> float:
        return float_below(Fraction(self.epsilon) / Fraction(self.alpha))

    @classmethod
    def limit_within(cls, total: ApproxDP, alpha: float | None) -> RenyiDP:
        """At the order that serves Gaussian noise best, unless one is given; any order gives a true rule."""
        alpha = best_order(total.epsilon, total.delta) if alpha is None else order(alpha)
        divergence = renyi_within(alpha, total.epsilon, total.delta)
        if divergence is None:
            raise ArgumentError(f"no Rényi divergence of order alpha = {alpha:g} keeps {total}. Leave alpha out.")
        return cls(alpha, divergence)

    def in_words(self) -> str:
        return f"Rényi ε = {self.epsilon:.6g} of order {self.alpha:.4g}"


def convert(budget: Budget, to: type[Budget], *, delta: float | None = None, alpha: float | None = None) -> Budget:
    """`budget` read as a promise of kind `to`; `delta=` for `ApproxDP` and `alpha=` for `RenyiDP`.

    >>> from dpmanifolds.privacy import GaussianDP, RenyiDP, convert
    >>> convert(GaussianDP(1.0), RenyiDP, alpha=4.0)
    RenyiDP(alpha=4.0, epsilon=2.0)
    """
    checked_budget(budget)
    kind = checked_kind("to", to)
    return kind.read_from(budget, **kind.choose_kept("a conversion to", delta=delta, alpha=alpha))
