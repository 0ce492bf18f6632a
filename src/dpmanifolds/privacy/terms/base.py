"""What every term states: a profile, and where they exist a pure ε, a μ, a ρ and D_α."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpmanifolds._validate import number_between, positive_integer, positive_number
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.privacy.calibration import mu_of_pure
from dpmanifolds.privacy.loss_grid import LossGrid, from_profile, where_below
from dpmanifolds.privacy.rounding import float_above, up

__all__ = ["LARGEST_INTERVAL", "Term", "thinned", "within_floats"]

LARGEST_INTERVAL = 700.0
_LEAST, _MOST = 1e-100, 1e100
_MOST_CELLS = 2**21
_DOTS = 4000


def within_floats(name: str, value: Any) -> float:
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
        return np.arange(math.ceil(self.reach(tail) / interval) + 2)


def thinned(nodes: np.ndarray) -> np.ndarray:
    """Every so many of 0, 1, 2, … up to at least the last, where values are dear: chords between dots stay above."""
    stride = max(int(nodes[-1]) // _DOTS, 1)
    return np.arange(0, int(nodes[-1]) + stride, stride)
