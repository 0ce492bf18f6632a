"""The closed list of named parametric terms that a guarantee is made of: numbers and names, never a callable.

>>> from dpmanifolds.privacy.terms import GaussianTerm, term_from_dict
>>> term_from_dict(GaussianTerm(mu=0.5).to_dict()) == GaussianTerm(mu=0.5)
True

A term bounds δ(ε) from above by `profile`, in both directions between neighbours; where they exist it also states a
pure ε (`pure_epsilon`), a μ (`gaussian_mu`), a ρ (`zcdp_rho`) and D_α (`renyi`). `count` copies of it are meant. A kind
of term is one class below `Term`. Here are those that are a promise and nothing else, and Laplace noise on the line;
`lattice`, `l2_laplace`, `riemannian_gaussian` and `batches` have the others, with their laws.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import number_between, positive_integer, positive_number, probability
from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.privacy.conversions import (
    laplace_renyi,
    laplace_rho,
    log_delta_of_zcdp,
    log_delta_upper,
    mu_of_laplace,
    mu_of_pure,
    pure_renyi,
    renyi_of_rho,
    rho_of_mu,
    rho_of_pure,
)
from dpmanifolds.privacy.loss_grid import LossGrid, from_profile, nodes_around, where_below
from dpmanifolds.privacy.rounding import up

LARGEST_INTERVAL = 700.0
_LEAST, _MOST = 1e-100, 1e100
_MOST_CELLS = 2**21
_DOTS = 4000
_KINDS: dict[str, type[Term]] = {}


def within_floats(name: str, value: Any) -> float:
    """A number whose square, and whose multiples, floats can hold."""
    return number_between(name, positive_number(name, value), _LEAST, _MOST)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One named promise, `count` times."""

    count: int = 1
    kind: ClassVar[str]
    checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {}
    """How its numbers are checked, by their names."""
    is_dear: ClassVar[bool] = False
    """Whether its profile is worked out at a few thousand dots only: chords between dots stay above."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name, check in {"count": positive_integer, **self.checks}.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def times(self, count: int) -> Term:
        """The same term with another count."""
        return replace(self, count=count)

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers only."""
        return {"kind": self.kind, **asdict(self)}

    @property
    def pure_epsilon(self) -> float | None:
        """ε of one copy, where its loss is bounded."""
        return None

    @property
    def laplace_epsilon(self) -> float | None:
        """ε of Laplace noise on the line that dominates one copy, where one is known."""
        return None

    @property
    def gaussian_mu(self) -> float | None:
        """A μ of one copy."""
        return _least((mu_of_pure, self.pure_epsilon), (mu_of_laplace, self.laplace_epsilon))

    @property
    def zcdp_rho(self) -> float | None:
        """A ρ of one copy."""
        return _least(
            (rho_of_pure, self.pure_epsilon), (laplace_rho, self.laplace_epsilon), (rho_of_mu, self.gaussian_mu)
        )

    def renyi(self, alpha: float) -> float | None:
        """D_α of one copy."""
        return _least(
            (lambda epsilon: pure_renyi(epsilon, alpha), self.pure_epsilon),
            (lambda epsilon: laplace_renyi(epsilon, alpha), self.laplace_epsilon),
            (lambda rho: renyi_of_rho(rho, alpha), self.zcdp_rho),
        )

    @property
    def spread(self) -> float:
        """The order of magnitude of one copy's privacy loss: it sets the grid, not the claim."""
        if self.pure_epsilon is None:
            raise NotImplementedError
        return self.pure_epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        """An upper bound on δ(ε) of one copy, ε ≥ 0."""
        raise NotImplementedError

    def reach(self, tail: float) -> float:
        """An ε beyond which one copy has δ ≤ tail, or the ε where its loss ends."""
        if self.pure_epsilon is not None:
            return self.pure_epsilon
        return where_below(self.profile, tail, start=self.spread)

    @property
    def is_gaussian(self) -> bool:
        """Whether `gaussian_mu` is all there is to tell of its profile, up to a millionth."""
        return False

    @property
    def adjacency(self) -> str | None:
        """The neighbours it holds for, where its parameters say so."""
        return None

    @property
    def is_symmetric(self) -> bool:
        """Whether the profile is the same, or claimed to be, in both directions between neighbours."""
        return True

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        """The profile in one direction; `profile` bounds both."""
        return self.profile(epsilon)

    def grid(self, interval: float, tail: float, *, backward: bool = False) -> LossGrid:
        """One copy's privacy-loss law on a grid, refused where the cells would be too many or too wide.

        `backward` is the other direction between neighbours, where the two differ.
        """
        if interval > LARGEST_INTERVAL or self.reach(tail) > _MOST_CELLS * interval:
            raise ScaleOutOfRangeError("the terms of a guarantee are too large, or too unequal, for one common grid.")
        nodes = self._nodes(interval, tail)
        if self.is_symmetric:
            return from_profile(self.profile, interval=interval, nodes=nodes)
        return from_profile(
            lambda at: self.directed(at, backward=backward),
            other=lambda at: self.directed(at, backward=not backward),
            interval=interval,
            nodes=nodes,
        )

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        last = math.ceil(self.reach(tail) / interval) + 1
        stride = max(last // _DOTS, 1) if self.is_dear else 1
        return np.arange(0, last + stride, stride)


def _least(*bounds: tuple[Callable[[float], float], float | None]) -> float | None:
    """The smallest of some bounds, each a function of what may not be known."""
    return min((bound(value) for bound, value in bounds if value is not None), default=None)


def _randomised_response(epsilon: float, at: np.ndarray) -> np.ndarray:
    """(e^ε − e^ε')₊/(1 + e^ε) = (1 − e^{ε' − ε})₊/(1 + e^−ε)."""
    return np.asarray(up(np.maximum(-np.expm1(np.minimum(at - epsilon, 0.0)), 0.0) / (1 + math.exp(-epsilon))))


@dataclass(frozen=True, kw_only=True)
class PureTerm(Term):
    """ε-DP, and nothing else known: the profile of randomised response."""

    epsilon: float
    kind: ClassVar[str] = "pure"
    checks: ClassVar = {"epsilon": within_floats}

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return _randomised_response(self.epsilon, epsilon)

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return nodes_around(self.epsilon / interval)


@dataclass(frozen=True, kw_only=True)
class ApproxTerm(Term):
    """(ε, δ)-DP at one point and nothing else known: δ + (1 − δ)·randomised response (Kairouz et al. 2015)."""

    epsilon: float
    delta: float
    kind: ClassVar[str] = "approx"
    checks: ClassVar = {"epsilon": within_floats, "delta": probability}

    @property
    def spread(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        inside = self.delta + (1 - self.delta) * _randomised_response(self.epsilon, epsilon)
        return np.where(epsilon >= self.epsilon, self.delta, inside)

    def reach(self, tail: float) -> float:
        return self.epsilon

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return nodes_around(self.epsilon / interval)


@dataclass(frozen=True, kw_only=True)
class GaussianTerm(Term):
    """μ-Gaussian-DP."""

    mu: float
    kind: ClassVar[str] = "gaussian"
    checks: ClassVar = {"mu": within_floats}

    @property
    def gaussian_mu(self) -> float:
        return self.mu

    @property
    def is_gaussian(self) -> bool:
        return True

    @property
    def spread(self) -> float:
        return self.mu

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_delta_upper(self.mu, epsilon)))


@dataclass(frozen=True, kw_only=True)
class ZcdpTerm(Term):
    """ρ-zCDP."""

    rho: float
    kind: ClassVar[str] = "zcdp"
    checks: ClassVar = {"rho": within_floats}

    @property
    def zcdp_rho(self) -> float:
        return self.rho

    @property
    def spread(self) -> float:
        return math.sqrt(2 * self.rho)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_delta_of_zcdp(self.rho, epsilon)))


@dataclass(frozen=True, kw_only=True)
class ProfileTerm(Term):
    """A privacy-loss grid: upper bounds on δ at ε = 0, interval, 2·interval, …, in both directions."""

    interval: float
    deltas: tuple[float, ...]
    kind: ClassVar[str] = "profile"
    checks: ClassVar = {"interval": within_floats}

    def __post_init__(self) -> None:
        super().__post_init__()
        values = tuple(number_between("deltas", value, 0, 1) for value in self.deltas)
        if len(values) < 2 or any(later > earlier for earlier, later in itertools.pairwise(values)):
            raise ArgumentError("deltas must be at least two numbers that do not increase; take running minima first.")
        object.__setattr__(self, "deltas", values)

    @property
    def spread(self) -> float:
        return max(self.interval, 2 * self.deltas[0])

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        right = from_profile(
            lambda _: np.asarray(self.deltas), interval=self.interval, nodes=np.arange(len(self.deltas))
        )
        return right.delta(epsilon)

    def reach(self, tail: float) -> float:
        return self.interval * (len(self.deltas) - 1)


def laplace_profile(loss: float, epsilon: np.ndarray) -> np.ndarray:
    """1 − e^{(ε − ε₀)/2} up to the largest loss ε₀: Laplace noise on the line."""
    return np.asarray(up(-np.expm1(np.minimum((epsilon - loss) / 2, 0.0))))


@dataclass(frozen=True, kw_only=True)
class LaplaceTerm(Term):
    """Laplace noise on the real line with Δ/σ = ε: δ(ε') = 1 − e^{(ε' − ε)/2} for ε' ≤ ε.

    It dominates every law ∝ e^{−dist/σ}, in any space, moved along a path of length Δ (docs/proofs/accounts.md, A2).
    """

    epsilon: float
    kind: ClassVar[str] = "laplace"
    checks: ClassVar = {"epsilon": within_floats}

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    @property
    def laplace_epsilon(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return laplace_profile(self.epsilon, epsilon)


def term_from_dict(data: Any) -> Term:
    """The term that `to_dict` described, checked as if a user had typed it."""
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
        raise ArgumentError(f"a term needs a kind out of {', '.join(_KINDS)}; got {data!r}.")
    fields = {name: value for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[data["kind"]](**fields)
    except TypeError:
        raise ArgumentError(f"a term of kind {data['kind']!r} has other fields than {sorted(fields)}.") from None
