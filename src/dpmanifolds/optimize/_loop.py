"""The steps of a descent, once everything is checked: read, pay, draw, move, save."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, leaves
from dpmanifolds.domains import Domain
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.optimize._noisy import NoisyGradient
from dpmanifolds.optimize.moves import LONGEST_STEP, is_finite, move, shortened
from dpmanifolds.optimize.plan import DescentPlan
from dpmanifolds.optimize.state import StateFile
from dpmanifolds.privacy import Guarantee
from dpmanifolds.sums.contribution import expand

__all__ = ["Outcome", "Run"]

_HALVINGS = 64


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, and what it cost."""

    point: Any
    guarantee: Guarantee
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
    has_budget: bool

    def public_settings(self, start: Any) -> dict[str, Any]:
        """What tells this run from others; JSON."""
        plan = self.plan
        parts = [np.asarray(leaf).view(np.float64).ravel().tolist() for leaf in leaves(start)]
        return {
            "loss": self.source.loss.name,
            "manifold": repr(self.manifold),
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
            "start": parts,
            "step_sizes": self.sizes.tolist(),
        }

    def go(self, start: Any, file: StateFile | None, spend: Callable[[Guarantee], None]) -> Outcome:
        saved = file.read() if file is not None else None
        if saved is None:
            points = {"point": start, "chosen": start}
            finished, lost = 0, 0
            spend(self.plan.guarantee)
        else:
            finished, lost, points = saved["finished"], saved["lost"], saved["points"]
            if saved["unfinished"] and not self.has_budget:
                spend(self.plan.guarantee_of(1))
        goal = self.plan.steps - (lost if self.has_budget else 0)
        with self._bar(goal - finished) as advance:
            while finished < goal:
                if file is not None:
                    file.write(finished=finished, started=finished + 1, lost=lost, points=points)
                w = points["point"]
                direction = self.source.private(w, self.source.total(w))
                points = self._advanced(points, direction, finished)
                finished += 1
                if self.callback is not None:
                    self.callback(finished, points["point"])
                advance()
        if file is not None:
            file.write(finished=finished, started=finished, lost=lost, points=points)
        paid = self.plan.guarantee if self.has_budget or not lost else self.plan.guarantee_of(self.plan.steps + lost)
        return Outcome(points["point" if self.output == "last" else "chosen"], paid, finished, lost)

    def _advanced(self, points: dict[str, Any], direction: np.ndarray, t: int) -> dict[str, Any]:
        """w_{t+1} and the output so far, from w_t."""
        step = -self.sizes[t] * direction
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
            loss.gradients(w, expand(loss.filler))

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
    inside = domain.clip(_each(point, lambda part: part[None]))
    return _each(inside, lambda part: part[0]) if bool(np.all(domain.contains(inside))) else None


def _each(point: Any, change: Callable[[Array], Array]) -> Any:
    return tuple(_each(part, change) for part in point) if isinstance(point, tuple) else change(point)
