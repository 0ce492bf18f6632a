"""The closed list of named parametric terms that a guarantee is made of: numbers and names, never a callable.

>>> from dpmanifolds.privacy.terms import GaussianTerm, term_from_dict
>>> term_from_dict(GaussianTerm(mu=0.5).to_dict()) == GaussianTerm(mu=0.5)
True

A term bounds δ(ε) from above by `profile`, in both directions between neighbours; where they exist it also states a
pure ε (`pure_epsilon`), a μ (`gaussian_mu`), a ρ (`zcdp_rho`) and D_α (`renyi`). `count` copies of it are meant.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import choice, number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError, ConvergenceError, ScaleOutOfRangeError
from dpmanifolds.privacy._normal import log_delta_upper
from dpmanifolds.privacy._renyi import laplace_renyi, laplace_rho, log_delta_of_zcdp, pure_renyi
from dpmanifolds.privacy.calibration import mu_of_laplace, mu_of_pure, probability
from dpmanifolds.privacy.l2_laplace import L2LaplacePair, l2_laplace_pair
from dpmanifolds.privacy.loss_grid import LossGrid, from_profile, nodes_around, where_below
from dpmanifolds.privacy.rounding import float_above, up
from dpmanifolds.privacy.subsampled_profiles import (
    add_profile,
    fixed_size_profile,
    log_profile_upper,
    poisson_profile,
    remove_profile,
    subsampled_renyi,
)

__all__ = [
    "ApproxTerm",
    "GaussianTerm",
    "L2LaplaceTerm",
    "LaplaceTerm",
    "ProfileTerm",
    "PureTerm",
    "RiemannianGaussianTerm",
    "SubsampledGaussianTerm",
    "Term",
    "ZcdpTerm",
    "term_from_dict",
]

_DOTS = 4000
_LEAST, _MOST = 1e-100, 1e100
_MOST_CELLS = 2**21
_MOST_DIMENSIONS = 10**6
_LEAST_SHIFT = 1e-6
_LARGEST_INTERVAL = 700.0


def _within_floats(name: str, value: Any) -> float:
    """A number whose square, and whose multiples, floats can hold."""
    return number_between(name, positive_number(name, value), _LEAST, _MOST)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One named promise, `count` times."""

    count: int = 1
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", positive_integer("count", self.count))

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
    def gaussian_mu(self) -> float | None:
        """A μ of one copy."""
        return None if self.pure_epsilon is None else mu_of_pure(self.pure_epsilon)

    @property
    def zcdp_rho(self) -> float | None:
        """A ρ of one copy: ε·tanh(ε/2) of a pure ε (`PureDP.as_zcdp`), else μ²/2."""
        if self.pure_epsilon is not None:
            return float(up(self.pure_epsilon * math.tanh(self.pure_epsilon / 2)))
        mu = self.gaussian_mu
        return None if mu is None else float_above(Fraction(mu) ** 2 / 2)

    def renyi(self, alpha: float) -> float | None:
        """D_α of one copy."""
        rho = self.zcdp_rho
        return None if rho is None else float_above(Fraction(rho) * Fraction(alpha))

    @property
    def spread(self) -> float:
        """The order of magnitude of one copy's privacy loss: it sets the grid, not the claim."""
        raise NotImplementedError

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        """An upper bound on δ(ε) of one copy, ε ≥ 0."""
        raise NotImplementedError

    def reach(self, tail: float) -> float:
        """An ε beyond which one copy has δ ≤ tail, or the ε where its loss ends."""
        if self.pure_epsilon is not None:
            return self.pure_epsilon
        return where_below(self.profile, tail, start=self.spread)

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
        if interval > _LARGEST_INTERVAL or self.reach(tail) > _MOST_CELLS * interval:
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
        return np.arange(math.ceil(self.reach(tail) / interval) + 2)


def _randomised_response(epsilon: float, at: np.ndarray) -> np.ndarray:
    """(e^ε − e^ε')₊/(1 + e^ε) = (1 − e^{ε' − ε})₊/(1 + e^−ε)."""
    return np.asarray(up(np.maximum(-np.expm1(np.minimum(at - epsilon, 0.0)), 0.0) / (1 + math.exp(-epsilon))))


@dataclass(frozen=True, kw_only=True)
class PureTerm(Term):
    """ε-DP, and nothing else known: the profile of randomised response."""

    epsilon: float
    kind: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", _within_floats("epsilon", self.epsilon))

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    def renyi(self, alpha: float) -> float:
        return pure_renyi(self.epsilon, alpha)

    @property
    def spread(self) -> float:
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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", _within_floats("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))

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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", _within_floats("mu", self.mu))

    @property
    def gaussian_mu(self) -> float:
        return self.mu

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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", _within_floats("rho", self.rho))

    @property
    def zcdp_rho(self) -> float:
        return self.rho

    @property
    def spread(self) -> float:
        return math.sqrt(2 * self.rho)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(log_delta_of_zcdp(self.rho, epsilon)))


@dataclass(frozen=True, kw_only=True)
class LaplaceTerm(Term):
    """Laplace noise on the real line with Δ/σ = ε: δ(ε') = 1 − e^{(ε' − ε)/2} for ε' ≤ ε. One dimension only."""

    epsilon: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", _within_floats("epsilon", self.epsilon))

    @property
    def pure_epsilon(self) -> float:
        return self.epsilon

    @property
    def gaussian_mu(self) -> float:
        return mu_of_laplace(self.epsilon)

    @property
    def zcdp_rho(self) -> float:
        """The Kullback–Leibler divergence ε + e^−ε − 1 (docs/accounting.md): below ε·tanh(ε/2)."""
        return laplace_rho(self.epsilon)

    def renyi(self, alpha: float) -> float:
        """(α − 1)D_α = log(α/(2α − 1)·e^{(α−1)ε} + (α − 1)/(2α − 1)·e^{−αε}) (Mironov 2017, Proposition 6)."""
        return laplace_renyi(self.epsilon, alpha)

    @property
    def spread(self) -> float:
        return self.epsilon

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(up(-np.expm1(np.minimum((epsilon - self.epsilon) / 2, 0.0))))


@dataclass(frozen=True, kw_only=True)
class L2LaplaceTerm(Term):
    """ℓ2-Laplace noise ∝ e^{−|y|/σ} in R^d, d ≥ 2, for a statistic that moves by at most `shift`·σ (MATH.md, B6).

    Its loss is at most `shift`, but hardly ever near it: k releases lose far less than k pure ε.
    """

    dim: int
    shift: float
    kind: ClassVar[str] = "l2-laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dim", positive_integer("dim", self.dim))
        if not 2 <= self.dim <= _MOST_DIMENSIONS:
            raise ArgumentError(f"dim must be from 2 to {_MOST_DIMENSIONS}; got {self.dim}. On the line use laplace.")
        shift = number_between("shift", positive_number("shift", self.shift), _LEAST_SHIFT, _LARGEST_INTERVAL)
        object.__setattr__(self, "shift", shift)

    def _pair(self) -> L2LaplacePair:
        return l2_laplace_pair(self.dim, self.shift)

    @property
    def pure_epsilon(self) -> float:
        return self.shift

    @property
    def gaussian_mu(self) -> float:
        """The supremum over all thresholds; that of the pure ε where it does not settle."""
        try:
            return min(self._pair().mu, mu_of_pure(self.shift))
        except ConvergenceError:
            return mu_of_pure(self.shift)

    @property
    def zcdp_rho(self) -> float:
        """The smaller of μ²/2 and ε·tanh(ε/2)."""
        return min(float_above(Fraction(self.gaussian_mu) ** 2 / 2), float(up(self.shift * math.tanh(self.shift / 2))))

    def renyi(self, alpha: float) -> float:
        most = min(pure_renyi(self.shift, alpha), float_above(Fraction(self.zcdp_rho) * Fraction(alpha)))
        try:
            return min(self._pair().renyi(alpha), most)
        except ConvergenceError:
            return most

    @property
    def spread(self) -> float:
        return self.shift / math.sqrt(self.dim)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = self._pair().delta_upper(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
        return np.reshape(bound, np.shape(epsilon))

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        return _thinned(super()._nodes(interval, tail))


def _thinned(nodes: np.ndarray) -> np.ndarray:
    """Every so many of 0, 1, 2, … up to at least the last, where values are dear: chords between dots stay above."""
    stride = max(int(nodes[-1]) // _DOTS, 1)
    return np.arange(0, int(nodes[-1]) + stride, stride)


@lru_cache(maxsize=64)
def _riemannian_bound(kind: str, dim: int, curvature: float, sigma: float, sensitivity: float) -> Any:
    from dpmanifolds.manifolds import Hyperbolic, Sphere
    from dpmanifolds.privacy.gaussian_dp import riemannian_gaussian_profile

    family = Sphere if kind == "sphere" else Hyperbolic
    return riemannian_gaussian_profile(family(dim, curvature=curvature), sigma, sensitivity)


@dataclass(frozen=True, kw_only=True)
class RiemannianGaussianTerm(Term):
    """The intrinsic Gaussian of scale σ on S^d or H^d, for a statistic that moves by at most Δ (MATH.md section 5)."""

    manifold: str
    dim: int
    curvature: float
    sigma: float
    sensitivity: float
    kind: ClassVar[str] = "riemannian-gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("manifold", self.manifold, ("sphere", "hyperbolic"))
        object.__setattr__(self, "dim", positive_integer("dim", self.dim))
        object.__setattr__(self, "sigma", positive_number("sigma", self.sigma))
        object.__setattr__(self, "sensitivity", positive_number("sensitivity", self.sensitivity))
        sign = 1 if self.manifold == "sphere" else -1
        object.__setattr__(self, "curvature", sign * positive_number("|curvature|", sign * self.curvature))

    def _bound(self) -> Any:
        return _riemannian_bound(self.manifold, self.dim, self.curvature, self.sigma, self.sensitivity)

    @property
    def pure_epsilon(self) -> float | None:
        """The largest loss Δ(2π/√κ − Δ)/2σ² on spheres."""
        largest = float(self._bound().largest_loss)
        return float(up(largest)) if math.isfinite(largest) else None

    @property
    def gaussian_mu(self) -> float:
        return float(self._bound().mu)

    @property
    def zcdp_rho(self) -> float:
        rho = float_above(Fraction(self.gaussian_mu) ** 2 / 2)
        epsilon = self.pure_epsilon
        return rho if epsilon is None else min(rho, float(up(epsilon * math.tanh(epsilon / 2))))

    def renyi(self, alpha: float) -> float:
        """That of the worst pair, rounded up by 1e−9 of itself; ρα where its integral does not settle."""
        most = float_above(Fraction(self.zcdp_rho) * Fraction(alpha))
        try:
            return min(float(self._bound().renyi(alpha)) * (1 + 1e-9 + 4 * float(self._bound().error)), most)
        except ConvergenceError:
            return most

    @property
    def spread(self) -> float:
        return self.sensitivity / self.sigma

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        bound = np.asarray(self._bound().delta_upper(np.atleast_1d(epsilon)), dtype=np.float64)
        return np.reshape(bound, np.shape(epsilon))

    def reach(self, tail: float) -> float:
        mu = self.gaussian_mu
        return where_below(lambda at: np.exp(log_delta_upper(mu, at)), tail, start=mu)

    def _nodes(self, interval: float, tail: float) -> np.ndarray:
        last = math.ceil(self.reach(tail) / interval) + 1
        stride = max(last // _DOTS, 1)
        return np.arange(0, last + stride, stride)


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianTerm(Term):
    """One noisy sum of gradients clipped to C over a random batch; `noise_multiplier` is the noise on the sum over C.

    Poisson: each record with probability `rate`. Fixed size: a share `rate` of the records, without replacement. Both
    are for replace-one neighbours; "poisson-add-remove" is Poisson sampling where one neighbour has a record more.
    """

    sampling: str
    rate: float
    noise_multiplier: float
    kind: ClassVar[str] = "subsampled-gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("sampling", self.sampling, ("poisson", "fixed-size", "poisson-add-remove"))
        object.__setattr__(self, "rate", number_between("rate", positive_number("rate", self.rate), 0, 1))
        object.__setattr__(self, "noise_multiplier", _within_floats("noise_multiplier", self.noise_multiplier))

    @property
    def gaussian_mu(self) -> float:
        """That of the full batch, 2/noise (1/noise for add/remove): sampling only helps, though by no known μ."""
        return float_above((2 if self.is_symmetric else 1) / Fraction(self.noise_multiplier))

    @property
    def is_symmetric(self) -> bool:
        return self.sampling != "poisson-add-remove"

    @property
    def adjacency(self) -> str:
        """The neighbours it holds for."""
        return "replace-one" if self.is_symmetric else "add-remove-one"

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        if self.is_symmetric:
            return self.profile(epsilon)
        return (add_profile if backward else remove_profile)(self.rate, self.noise_multiplier, epsilon)

    def renyi(self, alpha: float) -> float:
        def log_profile(epsilon: np.ndarray) -> np.ndarray:
            return log_profile_upper(self.sampling, self.rate, self.noise_multiplier, epsilon)

        wide = 1 if self.is_symmetric else 2
        return subsampled_renyi(log_profile, wide * self.noise_multiplier, self.rate, alpha)

    @property
    def spread(self) -> float:
        return (2 if self.is_symmetric else 1) * self.rate / self.noise_multiplier

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        laws = {"poisson": poisson_profile, "fixed-size": fixed_size_profile, "poisson-add-remove": remove_profile}
        law = laws[self.sampling]
        return law(self.rate, self.noise_multiplier, epsilon)


@dataclass(frozen=True, kw_only=True)
class ProfileTerm(Term):
    """A privacy-loss grid: upper bounds on δ at ε = 0, interval, 2·interval, …, in both directions."""

    interval: float
    deltas: tuple[float, ...]
    kind: ClassVar[str] = "profile"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "interval", _within_floats("interval", self.interval))
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


_KINDS: dict[str, type[Term]] = {
    family.kind: family
    for family in (
        PureTerm,
        ApproxTerm,
        GaussianTerm,
        ZcdpTerm,
        LaplaceTerm,
        L2LaplaceTerm,
        RiemannianGaussianTerm,
        SubsampledGaussianTerm,
        ProfileTerm,
    )
}


def term_from_dict(data: Any) -> Term:
    """The term that `to_dict` described, checked as if a user had typed it."""
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
        raise ArgumentError(f"a term needs a kind out of {', '.join(_KINDS)}; got {data!r}.")
    fields = {name: value for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[data["kind"]](**fields)
    except TypeError:
        raise ArgumentError(f"a term of kind {data['kind']!r} has other fields than {sorted(fields)}.") from None
