"""What leaves the house: every noisy sum that a release draws, overheard where the noise is made.

>>> import numpy as np
>>> from dpmanifolds import Ball, Euclidean, GaussianDP, private_mean
>>> ball = Ball(Euclidean(1), [0.0], radius=1.0)
>>> with overheard_noise() as tap:
...     release = private_mean(np.zeros((10, 1)), ball, GaussianDP(1.0), rng=0)
>>> [said] = tap.said
>>> said.values.tolist(), bool(said.noisy[0] * release.step == release.coordinates[0])
([0], True)

All noise of means, counts and variances is added by four classes of `dpmanifolds.noise`. While `overheard_noise` is
open they note down the integers that came in (private) and went out (public), and draw with `factor` times their scale:
the one place where an audit makes noise weaker. A transcript can also be `forced`: the integers that go out are then
those of another run, so that the same call on a neighbour shows what it would have had to hide there. Meant for audits:
while it is open, it is open for all threads of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dpmanifolds.errors import DPManifoldsError
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace, RoundedGaussian, RoundedLaplace

__all__ = ["Law", "PathError", "Said", "Tap", "log_likelihoods", "overheard_noise"]

Law: TypeAlias = RoundedGaussian | RoundedLaplace | LatticeGaussian | LatticeLaplace
_LAWS = (RoundedGaussian, RoundedLaplace, LatticeGaussian, LatticeLaplace)


class PathError(DPManifoldsError):
    """The same noisy answers led a neighbour down another path: what is drawn next depends on the records."""


@dataclass(frozen=True, eq=False)
class Said:
    """One noisy sum."""

    law: Law
    """As it was asked for, before any weakening."""
    values: np.ndarray
    """Integers without noise. Private."""
    noisy: np.ndarray
    """The same with noise: all that may be known."""


@dataclass
class Tap:
    """What one run has said, and what it is forced to say."""

    factor: float = 1.0
    forced: Sequence[Said] | None = None
    said: list[Said] = field(default_factory=list)

    def answer(self, law: Law, values: Any, rng: Any, draw: Callable[[Law, Any, Any], np.ndarray]) -> np.ndarray:
        """Draw, or repeat what was said before."""
        if self.forced is None:
            noisy = draw(replace(law, scale=law.scale * self.factor), values, rng)
        else:
            noisy = self._repeated(law)
        self.said.append(Said(law, np.array(values), noisy))
        return noisy

    def _repeated(self, law: Law) -> np.ndarray:
        assert self.forced is not None
        number = len(self.said)
        if number >= len(self.forced):
            raise PathError(f"the neighbour asks for noise {number + 1} times, and {len(self.forced)} were enough.")
        if self.forced[number].law != law:
            raise PathError(f"noise number {number + 1} is {law!r} here and {self.forced[number].law!r} there.")
        return self.forced[number].noisy


@contextmanager
def overheard_noise(factor: float = 1.0, forced: Sequence[Said] | None = None) -> Iterator[Tap]:
    """Listen to all noise that is drawn meanwhile; `factor` times its scale is drawn."""
    tap = Tap(factor, forced)
    kept = {law: law.release for law in _LAWS}

    def listening(draw: Any) -> Any:
        return lambda law, values, rng=None: tap.answer(law, values, rng, draw)

    for law, draw in kept.items():
        law.release = listening(draw)  # type: ignore[method-assign]
    try:
        yield tap
    finally:
        for law, draw in kept.items():
            law.release = draw  # type: ignore[method-assign]


def log_likelihoods(law: Law, noisy: np.ndarray, values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """ln of the density of noisy integers (..., dim) around values, up to a constant, with `factor` times the scale."""
    scale = float(law.scale) * factor
    away = (noisy - values) / scale
    if isinstance(law, RoundedGaussian | LatticeGaussian):
        return np.asarray(-np.sum(away * away, axis=-1) / 2)
    return np.asarray(-np.linalg.norm(away, 1 if isinstance(law, LatticeLaplace) else 2, axis=-1))
