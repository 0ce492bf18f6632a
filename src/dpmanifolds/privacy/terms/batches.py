"""Terms of one noisy sum over a random batch."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpmanifolds._validate import choice, number_between, positive_number
from dpmanifolds.privacy.rounding import float_above
from dpmanifolds.privacy.subsampled_profiles import (
    add_profile,
    fixed_size_profile,
    log_profile_upper,
    poisson_profile,
    remove_profile,
    subsampled_renyi,
)
from dpmanifolds.privacy.terms.base import Term, within_floats

__all__ = ["SubsampledGaussianTerm"]


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
