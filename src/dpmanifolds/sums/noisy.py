"""Several private sums in a row, from one generator: who takes part in a sum, and the noise on its integers.

>>> from dpmanifolds.sums.noisy import NoiseSource
>>> source = NoiseSource.of(0)
>>> source.poisson_batch(10, rate=0.3).tolist(), source.fixed_batch(10, size=3).tolist()
([1, 2, 3], [2, 6, 7])

All of it is drawn on the driver: batches before the pass over the records, noise once after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds.noise import RoundedGaussian, RoundedLaplace, as_generator
from dpmanifolds.sums.total import ExactSum

_LARGEST = 1 << 62


@dataclass(frozen=True)
class NoiseSource:
    """The randomness of a run."""

    rng: np.random.Generator

    @classmethod
    def of(cls, rng: Any = None) -> NoiseSource:
        """From a seed or a generator; the secure source where there is none."""
        return cls(as_generator(rng))

    def uniform(self) -> float:
        """A number of [0, 1)."""
        return float(self.rng.random())

    def poisson_batch(self, count: int, rate: float) -> np.ndarray:
        """The numbers of the records that take part, ascending: each of `count` with this probability."""
        return np.flatnonzero(self.rng.random(count) < rate)

    def fixed_batch(self, count: int, size: int) -> np.ndarray:
        """The numbers of `size` records of `count`, ascending: a uniform set, without replacement."""
        return np.sort(self.rng.choice(count, size, replace=False, shuffle=False))

    def add_to(self, total: ExactSum, law: str, sigma: float) -> np.ndarray:
        """The integers of a total with rounded noise of the law "gaussian" or "laplace", `sigma` in steps.

        Cutting integers to ±2⁶² moves no two sums apart; an exponent keeps them far below where n is public.
        """
        whole = np.array([max(-_LARGEST, min(_LARGEST, number)) for number in total.integers], dtype=np.int64)
        kind = RoundedLaplace if law == "laplace" else RoundedGaussian
        return np.asarray(kind(whole.size, sigma).release(whole, self.rng))
