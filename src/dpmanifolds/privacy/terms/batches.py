"""Terms of one noisy sum over a random batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy import special

from dpmanifolds._validate import choice, number_between, positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy._renyi import laplace_renyi, laplace_rho, pure_renyi
from dpmanifolds.privacy.calibration import mu_of_laplace, mu_of_pure
from dpmanifolds.privacy.rounding import float_above, up
from dpmanifolds.privacy.subsampled_profiles import (
    add_profile,
    fixed_size_profile,
    laplace_add_profile,
    laplace_fixed_size_profile,
    laplace_poisson_profile,
    log_profile_upper,
    poisson_profile,
    remove_profile,
    subsampled_renyi,
)
from dpmanifolds.privacy.terms.base import Term, within_floats

__all__ = ["SubsampledGaussianTerm", "SubsampledLaplaceTerm", "TruncatedGaussianTerm"]

_SAMPLINGS = ("poisson", "fixed-size", "poisson-add-remove")
_LARGEST_EXPONENT = 500.0


def _rate(value: float) -> float:
    return number_between("rate", positive_number("rate", value), 0, 1)


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
        choice("sampling", self.sampling, _SAMPLINGS)
        object.__setattr__(self, "rate", _rate(self.rate))
        object.__setattr__(self, "noise_multiplier", within_floats("noise_multiplier", self.noise_multiplier))

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
class SubsampledLaplaceTerm(Term):
    """The same with Laplace noise on each coordinate and gradients clipped to C in ℓ1 (docs/proofs/accounts.md, A3).

    `noise_multiplier` is the scale of the noise on the sum over C. Its loss is bounded.
    """

    sampling: str
    rate: float
    noise_multiplier: float
    kind: ClassVar[str] = "subsampled-laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("sampling", self.sampling, _SAMPLINGS)
        object.__setattr__(self, "rate", _rate(self.rate))
        object.__setattr__(self, "noise_multiplier", within_floats("noise_multiplier", self.noise_multiplier))

    @property
    def is_symmetric(self) -> bool:
        return self.sampling != "poisson-add-remove"

    @property
    def adjacency(self) -> str:
        return "replace-one" if self.is_symmetric else "add-remove-one"

    @property
    def _full(self) -> float:
        """ε of the full batch."""
        return float_above((2 if self.is_symmetric else 1) / Fraction(self.noise_multiplier))

    @property
    def pure_epsilon(self) -> float:
        """log(1 − q + q·e^ε) of a share q of ε; for Poisson sampling under replace-one the ratio for ±ε/2."""
        if self.sampling == "poisson":
            value = _log_mixed(self.rate, self._full / 2) - _log_mixed(self.rate, -self._full / 2)
        else:
            value = _log_mixed(self.rate, self._full)
        return min(float(up(value, 44)), self._full)

    @property
    def gaussian_mu(self) -> float:
        return min(mu_of_pure(self.pure_epsilon), mu_of_laplace(self._full))

    @property
    def zcdp_rho(self) -> float:
        epsilon = self.pure_epsilon
        return min(float(up(epsilon * math.tanh(epsilon / 2))), laplace_rho(self._full))

    def renyi(self, alpha: float) -> float:
        return min(pure_renyi(self.pure_epsilon, alpha), laplace_renyi(self._full, alpha))

    @property
    def spread(self) -> float:
        return 2 * float(self.profile(np.asarray(0.0)))

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        if backward and not self.is_symmetric:
            return laplace_add_profile(self.rate, self.noise_multiplier, epsilon)
        return self.profile(epsilon)

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        if self.sampling == "poisson":
            return laplace_poisson_profile(self.rate, self.noise_multiplier, epsilon)
        wide = 1 if self.is_symmetric else 2
        return laplace_fixed_size_profile(self.rate, wide * self.noise_multiplier, epsilon)


def _log_mixed(share: float, loss: float) -> float:
    """log(1 − q + q·e^loss)."""
    if loss < _LARGEST_EXPONENT:
        return math.log1p(share * math.expm1(loss))
    return loss + math.log(share) + math.log1p((1 / share - 1) * math.exp(-loss))


@dataclass(frozen=True, kw_only=True)
class TruncatedGaussianTerm(Term):
    """A Poisson-sampled Gaussian step whose batch, where larger, is cut to `largest_batch` records drawn from it.

    `records` is the public number of records ("poisson", replace-one), or a public bound on it ("poisson-add-remove").
    A cut batch trades the record for another one: it moves the sum by up to 2C (docs/proofs/accounts.md, A4).
    """

    sampling: str
    records: int
    rate: float
    largest_batch: int
    noise_multiplier: float
    kind: ClassVar[str] = "truncated-gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("sampling", self.sampling, ("poisson", "poisson-add-remove"))
        for name in ("records", "largest_batch"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        if self.largest_batch >= self.records:
            raise ArgumentError(f"largest_batch must be below the {self.records} records; got {self.largest_batch}.")
        object.__setattr__(self, "rate", _rate(self.rate))
        object.__setattr__(self, "noise_multiplier", within_floats("noise_multiplier", self.noise_multiplier))

    @property
    def is_symmetric(self) -> bool:
        return self.sampling == "poisson"

    @property
    def adjacency(self) -> str:
        return "replace-one" if self.is_symmetric else "add-remove-one"

    @property
    def _cut(self) -> tuple[float, float]:
        """The probability that the others alone fill a batch, and that the record is then in it; rounded up."""
        limit, others = self.largest_batch, self.records - 1
        full = float(special.bdtrc(limit - 1, others, self.rate))
        most = self.rate * limit / (limit + 1)
        if self.is_symmetric and full > 0:
            kept = limit * float(special.bdtrc(limit, self.records, self.rate)) / (self.records * full)
            most = min(most, up(kept, 30))
        return min(up(full, 30) + 1e-300, 1.0), up(most)

    @property
    def _plain(self) -> float:
        """The probability that nothing can be cut, rounded up; at most 1 where the number of records is not known."""
        if not self.is_symmetric:
            return 1.0
        unfilled = float(special.bdtr(self.largest_batch - 1, self.records - 1, self.rate))
        return float(min(up(unfilled, 30), 1.0))

    @property
    def gaussian_mu(self) -> float:
        """That of the full batch, 2/noise."""
        return float_above(2 / Fraction(self.noise_multiplier))

    def renyi(self, alpha: float) -> float:
        full, kept = self._cut
        log_plain = math.log(max(self._plain, 1e-300))

        def log_profile(epsilon: np.ndarray) -> np.ndarray:
            plain = log_plain + log_profile_upper(self.sampling, self.rate, self.noise_multiplier, epsilon)
            cut = math.log(full) + log_profile_upper("fixed-size", kept, self.noise_multiplier, epsilon)
            return np.asarray(np.logaddexp(plain, cut))

        return subsampled_renyi(log_profile, self.noise_multiplier, min(2 * self.rate, 1.0), alpha)

    @property
    def spread(self) -> float:
        return (2 if self.is_symmetric else 1) * self.rate / self.noise_multiplier

    def directed(self, epsilon: np.ndarray, *, backward: bool) -> np.ndarray:
        full, kept = self._cut
        noise = self.noise_multiplier
        if self.is_symmetric:
            plain, cut = poisson_profile(self.rate, noise, epsilon), fixed_size_profile(kept, noise, epsilon)
            return np.asarray(np.minimum(up(self._plain * plain + full * cut), 1.0))
        law = add_profile if backward else remove_profile
        plain, cut = law(self.rate, noise, epsilon), law(kept, noise / 2, epsilon)
        return np.asarray(np.minimum(up(plain + full * np.maximum(cut - plain, 0.0)), 1.0))

    def profile(self, epsilon: np.ndarray) -> np.ndarray:
        return self.directed(epsilon, backward=False)
