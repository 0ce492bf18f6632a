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
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpmanifolds._validate import positive_number
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy._renyi import epsilon_of_renyi, epsilon_of_zcdp, pure_renyi
from dpmanifolds.privacy.calibration import epsilon_of_mu, mu_of_pure, probability
from dpmanifolds.privacy.rounding import down, float_above, up

__all__ = ["ApproxDP", "Budget", "GaussianDP", "PureDP", "RenyiDP", "ZeroConcentratedDP", "convert"]

_LARGEST = 700.0
_LARGEST_ORDER = 1e100
_NOTHING = 2.0**-1022
_SMALLEST = 1e-100


def _spendable(name: str, value: Any) -> float:
    """A number from 1e−100 to 700, or 2^−1022, which stands for nothing at all.

    Above, e^ε is no number and the promise says nothing; below, the noise is more than numbers can hold.
    """
    number = positive_number(name, value)
    if number < _SMALLEST and number != _NOTHING:
        raise ArgumentError(
            f"{name} = {number:g} asks for more noise than numbers can hold: allowed is from {_SMALLEST:g}. Useful "
            "budgets are above about 0.001; check the units."
        )
    if number > _LARGEST:
        raise ArgumentError(
            f"{name} = {number:g} promises nothing: allowed is up to {_LARGEST:g}. Useful budgets are below about 10; "
            "check the units, or release without noise and without a claim of privacy."
        )
    return number


rounded_up = float_above


def told(promise: float) -> float:
    """A promise that was computed, as a number that a budget can hold: raised to 1e−100 where it is below, not if 0."""
    return _NOTHING if promise <= _NOTHING else max(promise, _SMALLEST)


def order(alpha: Any) -> float:
    """A Rényi order above 1, or an error."""
    number = positive_number("alpha", alpha)
    if number <= 1:
        raise ArgumentError(f"alpha must be above 1; got {number}. Orders from 1.1 to 64 are usual.")
    if number > _LARGEST_ORDER:
        raise ArgumentError(
            f"alpha must be at most {_LARGEST_ORDER:g}; got {number:g}. Orders from 1.1 to 64 are usual."
        )
    return number


@dataclass(frozen=True)
class Budget:
    """What the five kinds share: reading one promise as another.

    >>> from dpmanifolds.privacy import ApproxDP, Budget, GaussianDP, PureDP
    >>> all(isinstance(budget, Budget) for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), GaussianDP(1.0)))
    True
    >>> round(GaussianDP(0.5).as_approx(delta=1e-6).epsilon, 6)
    2.254085
    """

    _instead: ClassVar[str] = ""

    def _refuse(self, kind: str) -> NotAvailableError:
        return NotAvailableError(f"{self} implies no {kind} promise. {self._instead}".rstrip())

    def as_pure(self) -> PureDP:
        """The ε-DP that follows, where one does."""
        raise self._refuse("pure ε")

    def as_approx(self, delta: float) -> ApproxDP:
        """The (ε, δ)-DP that follows at this δ, where one does."""
        raise self._refuse(f"(ε, {delta:g})")

    def as_gaussian(self) -> GaussianDP:
        """The μ-Gaussian-DP that follows, where one does."""
        raise self._refuse("Gaussian μ")

    def as_zcdp(self) -> ZeroConcentratedDP:
        """The ρ-zCDP that follows, where one does."""
        raise self._refuse("zCDP ρ")

    def as_renyi(self, alpha: float) -> RenyiDP:
        """The Rényi-DP of this order that follows, where one does."""
        raise self._refuse(f"Rényi (order {alpha:g})")


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _spendable("epsilon", self.epsilon))

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
        """ρ = ε·tanh(ε/2), below the usual ε²/2 and attained as α → 1.

        For randomised response (α − 1)D_α = log cosh(sε) − log cosh(ε/2) with s = α − ½, and α(α − 1) = s² − ¼.
        u ↦ log cosh(√u·ε) is concave (tanh x/x falls), so it lies below its tangent at u = ¼, whose slope is
        ε·tanh(ε/2): D_α ≤ α·ε·tanh(ε/2).
        """
        return ZeroConcentratedDP(told(up(self.epsilon * math.tanh(self.epsilon / 2))))

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = log(cosh((α − ½)ε)/cosh(ε/2))/(α − 1)."""
        alpha = order(alpha)
        return RenyiDP(alpha, told(pure_renyi(self.epsilon, alpha)))


def _pure_epsilon_at(epsilon: float, delta: float) -> float:
    """log(e^ε − δ(1 + e^ε)) = ε + log(1 − δ(1 + e^−ε)), rounded up and kept above 0."""
    used = delta * (1 + math.exp(-epsilon))
    if used >= 1:
        return _NOTHING
    return max(min(epsilon + math.log1p(-used) + 2.0**-50 * (epsilon + used / (1 - used)), epsilon), _NOTHING)


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
    _instead: ClassVar[str] = (
        "One point (ε, δ) says nothing about smaller δ; keep the guarantee it came from and convert that."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _spendable("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def as_approx(self, delta: float) -> ApproxDP:
        """δ' ↦ log(e^ε − (δ' − δ)/(1 − δ)·(1 + e^ε)) for δ' ≥ δ (Kairouz, Oh and Viswanath 2015)."""
        delta = probability("delta", delta)
        if delta < self.delta:
            raise self._refuse(f"(ε, {delta:g})")
        if delta == self.delta:
            return self
        share = down((delta - self.delta) / (1 - self.delta))
        return ApproxDP(told(_pure_epsilon_at(self.epsilon, share)), delta)


@dataclass(frozen=True)
class GaussianDP(Budget):
    """μ-Gaussian-DP (Dong, Roth and Su 2022): no easier to test than N(0, 1) against N(μ, 1).

    >>> from dpmanifolds.privacy import GaussianDP
    >>> round(GaussianDP(1.0).as_approx(1e-5).epsilon, 6)
    4.377178
    """

    mu: float
    _instead: ClassVar[str] = "Gaussian noise has unbounded privacy loss; read it as (ε, δ) with as_approx(delta=…)."

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _spendable("mu", self.mu))

    def as_approx(self, delta: float) -> ApproxDP:
        """The root of δ_μ(ε) = δ, exact."""
        return ApproxDP(told(epsilon_of_mu(self.mu, delta)), probability("delta", delta))

    def as_gaussian(self) -> GaussianDP:
        return self

    def as_zcdp(self) -> ZeroConcentratedDP:
        """ρ = μ²/2, attained by the Gaussian pair."""
        return ZeroConcentratedDP(told(float_above(Fraction(self.mu) ** 2 / 2)))

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = αμ²/2."""
        return self.as_zcdp().as_renyi(alpha)


@dataclass(frozen=True)
class ZeroConcentratedDP(Budget):
    """ρ-zCDP (Bun and Steinke 2016): D_α ≤ ρα for every α > 1.

    >>> from dpmanifolds.privacy import ZeroConcentratedDP
    >>> round(ZeroConcentratedDP(0.5).as_approx(1e-5).epsilon, 4)
    4.7284
    """

    rho: float
    _instead: ClassVar[str] = (
        "Moments bound no trade-off curve of that form; read it as (ε, δ) with as_approx(delta=…)."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _spendable("rho", self.rho))

    def as_approx(self, delta: float) -> ApproxDP:
        """min over α of ρα + log(1 − 1/α) − log(δα)/(α − 1) (Canonne, Kamath and Steinke 2020)."""
        delta = probability("delta", delta)
        return ApproxDP(told(epsilon_of_zcdp(self.rho, delta)), delta)

    def as_zcdp(self) -> ZeroConcentratedDP:
        return self

    def as_renyi(self, alpha: float) -> RenyiDP:
        """D_α = ρα."""
        alpha = order(alpha)
        return RenyiDP(alpha, float_above(Fraction(self.rho) * Fraction(alpha)))


@dataclass(frozen=True)
class RenyiDP(Budget):
    """(α, ε)-Rényi-DP (Mironov 2017): D_α ≤ ε at one order α.

    >>> from dpmanifolds.privacy import RenyiDP
    >>> round(RenyiDP(8.0, 1.0).as_approx(1e-5).epsilon, 4)
    2.2141
    """

    alpha: float
    epsilon: float
    _instead: ClassVar[str] = "One order bounds no higher one; read it as (ε, δ) with as_approx(delta=…)."

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", order(self.alpha))
        object.__setattr__(self, "epsilon", _spendable("epsilon", self.epsilon))

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


def convert(budget: Budget, to: type[Budget], *, delta: float | None = None, alpha: float | None = None) -> Budget:
    """`budget` read as a promise of kind `to`; `delta=` for `ApproxDP` and `alpha=` for `RenyiDP`.

    >>> from dpmanifolds.privacy import GaussianDP, RenyiDP, convert
    >>> convert(GaussianDP(1.0), RenyiDP, alpha=4.0)
    RenyiDP(alpha=4.0, epsilon=2.0)
    """
    if not isinstance(budget, Budget):
        raise ArgumentError(
            f"budget must be one of PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP, RenyiDP; got {budget!r}."
        )
    if to is ApproxDP:
        if delta is None:
            raise ArgumentError("a conversion to ApproxDP needs delta=; none was given.")
        return budget.as_approx(delta)
    if to is RenyiDP:
        if alpha is None:
            raise ArgumentError("a conversion to RenyiDP needs alpha=; none was given.")
        return budget.as_renyi(alpha)
    readers = {PureDP: budget.as_pure, GaussianDP: budget.as_gaussian, ZeroConcentratedDP: budget.as_zcdp}
    if not isinstance(to, type) or to not in readers:
        raise ArgumentError(f"to must be one of PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP, RenyiDP; got {to!r}.")
    return readers[to]()
