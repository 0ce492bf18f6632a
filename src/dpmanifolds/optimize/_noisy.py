"""One private step: a batch, the mean of its clipped gradients, and noise in orthonormal coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.noise import uniform_directions
from dpmanifolds.noise.exact import RoundedGaussian, RoundedLaplace
from dpmanifolds.optimize.loss import Loss, clipped_total
from dpmanifolds.optimize.plan import DescentPlan
from dpmanifolds.optimize.streamed import StreamedRecords, taken

__all__ = ["NoisyGradient", "draw_batch", "lattice_slack", "lattice_step"]

_FINENESS = 2.0**-24


def lattice_step(sensitivity: float, dim: int) -> float:
    """A power of two g with √dim·g ≤ 2^−24·Δ: fine enough to cost nothing, coarse enough for integers."""
    return 2.0 ** math.floor(math.log2(_FINENESS * sensitivity / math.sqrt(dim)))


def lattice_slack() -> float:
    """What rounding the mean gradient to that lattice adds, relative to the contribution C of one record.

    Two sums that differ by one record's contribution differ by up to √dim·g more once rounded, and Δ = 2C.
    """
    return 2 * _FINENESS


@dataclass(frozen=True)
class NoisyGradient:
    """Σ(clipped gradients)/divisor + noise + anchor, as coordinates at the public w."""

    loss: Loss
    records: Any
    plan: DescentPlan
    numerics: str
    step: float
    rng: np.random.Generator

    def mean(self, w: Any) -> np.ndarray:
        """The mean of the clipped gradients of one batch, without the anchor. Not private."""
        batch = draw_batch(self.records, self.plan, self.rng)
        total = clipped_total(self.loss, w, batch, self.plan.clip)
        if not np.all(np.isfinite(total)):
            raise NotOnManifoldError(
                "the loss gave gradients that are not finite. Check the records with dpmanifolds.validate and the loss "
                "at the points it can reach; a smaller step size keeps those nearby."
            )
        return total / self.plan.divisor

    def private(self, w: Any, mean: np.ndarray) -> np.ndarray:
        """The noisy gradient at w."""
        noisy = self._rounded(mean) if self.numerics == "rounded" else mean + self._noise(mean.size)
        anchor = self.loss.anchor(w)
        return noisy if anchor is None else noisy + anchor

    def _rounded(self, mean: np.ndarray) -> np.ndarray:
        """The mean on the lattice plus noise rounded to it, of exact law (docs/proofs/descent.md)."""
        law = RoundedLaplace if self.plan.law == "laplace" else RoundedGaussian
        steps = np.rint(mean / self.step).astype(np.int64)
        return np.asarray(law(mean.size, self.plan.noise / self.step).release(steps, self.rng) * self.step)

    def _noise(self, dim: int) -> np.ndarray:
        if self.plan.law == "laplace":
            radius = self.plan.noise * self.rng.standard_gamma(dim)
            return np.asarray(radius * uniform_directions(1, dim, self.rng)[0])
        return self.plan.noise * self.rng.standard_normal(dim)


def draw_batch(records: Any, plan: DescentPlan, rng: np.random.Generator) -> Any:
    """The records of one step: all, each with probability `plan.rate`, or a uniform set of the batch size."""
    if plan.batch_size is None:
        return records
    if plan.sampling == "poisson":
        chosen = np.flatnonzero(rng.random(plan.n) < plan.rate)
    else:
        chosen = np.sort(rng.choice(plan.n, plan.batch_size, replace=False, shuffle=False))
    return records.only(chosen) if isinstance(records, StreamedRecords) else taken(records, chosen)
