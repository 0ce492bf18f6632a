"""The steps of a descent, once everything is checked and paid for: draw, move, save."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._points import as_block, records_at
from dpmanifolds.descent.draws import Draws
from dpmanifolds.descent.moves import LONGEST_STEP, is_finite, move, shortened
from dpmanifolds.descent.noise_plan import DescentPlan
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.domains import Domain
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget

__all__ = ["Outcome", "Run"]

_HALVINGS = 64


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, and of how many steps."""

    point: Any
    steps: int
    lost: int


@dataclass(frozen=True)
class Run:
    """The loop, once everything is checked."""

    manifold: Manifold
    plan: DescentPlan
    sizes: np.ndarray
    output: str
    retraction: bool
    within: Domain | None
    longest: float | None
    source: NoisyGradient
    callback: Callable[[int, Any], object] | None
    progress: bool

    def public_settings(self, budget: Budget | None) -> dict[str, Any]:
        """What tells this run from others; JSON."""
        plan = self.plan
        return {
            "loss": self.source.loss.name,
            "manifold": repr(self.manifold),
            "budget": repr(budget),
            "n": plan.n,
            "steps": plan.steps,
            "noise": plan.noise,
            "clip": plan.clip,
            "law": plan.law,
            "batch_size": plan.batch_size,
            "sampling": plan.sampling,
            "output": self.output,
            "retraction": self.retraction,
            "within": repr(self.within),
            "longest_step": self.longest,
            "adjacency": plan.adjacency,
            "persons": self.source.records.persons is not None,
        }

    def go(self, draws: Draws) -> Outcome:
        """Make the draws that are left."""
        with self._bar(draws.left) as advance:
            for position in draws:
                w = draws.points["point"]
                direction = self.source.private(w, self.source.total(w))
                draws.save(self._advanced(draws.points, self.sizes[position] * direction, draws.made))
                if self.callback is not None:
                    self.callback(draws.made, draws.points["point"])
                advance()
        points = draws.points
        return Outcome(points["point" if self.output == "last" else "chosen"], draws.made, draws.lost)

    def _advanced(self, points: dict[str, Any], pull: np.ndarray, t: int) -> dict[str, Any]:
        """w_{t+1} and the output so far, from w_t."""
        step = -pull
        if self.longest is not None:
            step = shortened(self.manifold, step, self.longest)
        reached = self._reached(points, step, t)
        if reached is None:
            # all of it is public by now: a shorter step in the same direction, back to where numbers can go, or none
            longest = LONGEST_STEP if self.within is None else self.within.diameter
            lengths = (longest * 2.0**-power for power in range(_HALVINGS))
            tries = (self._reached(points, shortened(self.manifold, step, length), t) for length in lengths)
            reached = next((found for found in tries if found is not None), points)
        return reached

    def _reached(self, points: dict[str, Any], step: np.ndarray, t: int) -> dict[str, Any] | None:
        """Where a step from w_t leads, clipped; None if floating-point numbers cannot hold it or go on from there."""
        w = points["point"]
        with np.errstate(all="ignore"):
            try:
                following = move(self.manifold, w, step, self.retraction)
                if not is_finite(following):
                    return None
                following = following if self.within is None else _clipped(self.within, following)
                if following is None:
                    return None
                chosen = self._chosen(points["chosen"], w, following, t)
                log = self.manifold.log if self.manifold.max_radius > 0 else lambda _, point: point
                sees = is_finite(log(following, chosen)) and is_finite(log(chosen, following))
                self._look_from(following)
                return {"point": following, "chosen": chosen} if sees else None
            except (np.linalg.LinAlgError, NotOnManifoldError):
                return None

    def _look_from(self, w: Any) -> None:
        """A gradient at w of a public record: whatever cannot be factorised there shows."""
        loss = self.source.loss
        if loss.filler is not None:
            loss.gradients(w, as_block(loss.filler))

    def _chosen(self, so_far: Any, w: Any, following: Any, t: int) -> Any:
        if self.output == "random":
            # each of w_0, …, w_t with probability 1/(t+1)
            return w if self.source.rng.random() * (t + 1) < 1 else so_far
        if self.output == "last" or t == 0:
            return following
        share = min(1.0, (1 if self.output == "average" else 2) / (t + 1))
        return self.manifold.geodesic(so_far, following, share)

    @contextlib.contextmanager
    def _bar(self, steps: int) -> Iterator[Callable[[], object]]:
        if not self.progress:
            yield lambda: None
            return
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            task = bar.add_task("private descent", total=steps)
            yield lambda: bar.advance(task)


def _clipped(domain: Domain, point: Any) -> Any | None:
    """The point in the domain; None where rounding left it outside."""
    inside = domain.clip(as_block(point))
    return records_at(inside, 0) if bool(np.all(domain.contains(inside))) else None
