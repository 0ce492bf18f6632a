"""The steps of a descent, and what is checked before the first of them: all that `releases.private_descent` rests on.

>>> import numpy as np
>>> from dpmanifolds import Sphere
>>> from dpmanifolds.descent.descent import move
>>> north = np.array([1.0, 0.0, 0.0])
>>> move(Sphere(2), north, np.array([1.0, 0.0]), retraction=True).round(6).tolist()
[0.707107, 0.707107, 0.0]

w_{t+1} = exp_{w_t}(−η_t ζ_t), where ζ_t is the mean of the per-record Riemannian gradients, each clipped to the norm C
around a public vector, plus noise N(0, σ²I) in orthonormal coordinates of the tangent space at w_t (Han et al. 2022,
Algorithm 1). All iterates w_1, …, w_T together carry the promise (docs/proofs/descent.md), so callbacks may look at
them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, is_numpy, norm
from dpmanifolds._points import as_block, host, leaves, records_at
from dpmanifolds._validate import hide_records, positive_number, shown
from dpmanifolds.descent.draws import Draws
from dpmanifolds.descent.losses.loss import Loss, OuterLoss, clip_factors, like_point
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import HeldRecords
from dpmanifolds.domains import Domain, WholeSpace
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget

OUTPUTS = ("last", "random", "average", "weighted-average")
LONGEST_STEP = 1024.0
"""Where a step leaves the range of floating-point numbers, it is shortened from here on."""
_HALVINGS = 64


@dataclass(frozen=True)
class DescentDetails:
    """The public numbers behind a release that was made by descent: its field `descent`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> loss = dpm.losses.EigenvectorLoss(dimension=3, radius=1.0)
    >>> records = np.random.default_rng(0).standard_normal((2000, 3)) * [0.5, 0.1, 0.1]
    >>> release = dpm.private_descent(
    ...     loss, records, loss.manifold, dpm.GaussianDP(1.0), start=[0.6, 0.8, 0.0], steps=3, step_size=1.0
    ... )
    >>> release.descent.steps, release.descent.clip_norm, release.descent.law, release.descent.lost_steps
    (3, 1.0, 'gaussian', 0)
    """

    steps: int
    """Steps that led here; the guarantee also covers `lost_steps`."""
    clip_norm: float
    """C, to which the gradient of each record is shortened."""
    sigma: float
    """σ per coordinate of each mean gradient (the scale of the ℓ2-Laplace under a pure budget)."""
    law: str
    """"gaussian" or "laplace"."""
    output: str
    batch_size: int | None = None
    """None: all records in every step."""
    sampling: str | None = None
    """"poisson" or "without-replacement"; None where there are no batches."""
    lost_steps: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("steps", int), ("clip_norm", float), ("sigma", float), ("lost_steps", int)):
            object.__setattr__(self, name, kind(getattr(self, name)))
        object.__setattr__(self, "batch_size", None if self.batch_size is None else int(self.batch_size))
        if not all(isinstance(word, str) for word in (self.law, self.output, self.sampling or "")):
            raise ArgumentError("law, output and sampling of a descent must be words.")

    def __str__(self) -> str:
        batches = "all records" if self.batch_size is None else f"batches of {self.batch_size} ({self.sampling})"
        lost = f", {self.lost_steps} lost" if self.lost_steps else ""
        return (
            f"{self.steps} steps{lost} with {batches}, {self.law} noise of sigma {self.sigma:.6g} on each mean "
            f"gradient, clip_norm {self.clip_norm:.6g}, output {self.output}"
        )


def manifold_of(domain: Any) -> Manifold:
    """Where iterates live."""
    if isinstance(domain, Domain):
        return domain.manifold
    if not isinstance(domain, Manifold):
        raise ArgumentError(
            f"must be a Domain such as Ball, which iterates are clipped to, or a Manifold; got {shown(domain)}.",
            argument="domain",
        )
    return domain


def as_loss(loss: Any, manifold: Manifold) -> Loss:
    """A loss for this manifold; a function of w and one record is differentiated."""
    if not isinstance(loss, Loss):
        if not callable(loss):
            raise ArgumentError(f"must be a Loss or a function loss(w, record); got {shown(loss)}.", argument="loss")
        from dpmanifolds.descent.losses.autograd import AutogradLoss

        return AutogradLoss(loss, manifold)
    if loss.manifold != manifold:
        raise ArgumentError(f"the loss is for parameters on {loss.manifold!r}, and the domain lies on {manifold!r}.")
    return loss


def start_domain(domain: Domain | Manifold, start: Any) -> tuple[Domain, Any]:
    """Where iterates may go, and where they start (NumPy, double precision): the centre of a domain unless told."""
    manifold = manifold_of(domain)
    if start is None:
        if not isinstance(domain, Domain):
            raise ArgumentError(
                f"is needed, a public point: a descent over all of {manifold!r} has no centre to start from.",
                argument="start",
            )
        start = domain.center
    point = manifold.as_points(start, "start")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(f"start must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}.")
    w = host(point)
    if not (is_finite(w) and bool(manifold.belongs(w))):
        raise NotOnManifoldError(f"start does not lie on {manifold!r}; use manifold.project to put it there.")
    return (domain if isinstance(domain, Domain) else WholeSpace(manifold, w)), w


def choose_clip_norm(loss: Loss, clip_norm: float | None) -> float:
    """C: as given, or the bound that the loss proves."""
    if clip_norm is not None:
        return positive_number("clip_norm", clip_norm)
    if loss.bound is None:
        raise ArgumentError(
            "this loss has no proven bound on its gradients: give clip_norm, the public norm to which per-record "
            "gradients are shortened. It must not be read off the records."
        )
    return loss.bound


def probe_gradients(source: NoisyGradient, w: Any) -> None:
    """Whether gradients have the right shape and integers can hold the noise: public facts, told before spending."""
    loss = source.loss
    _ = source.exponent
    if isinstance(loss, OuterLoss) or source.records.source.count == 0:
        return
    with np.errstate(all="ignore"), hide_records():
        rows = loss.gradients(w, source.records.head())
    expected = (1, loss.manifold.dim)
    if getattr(rows, "shape", None) is None or tuple(rows.shape) != expected:
        raise ArgumentError(
            f"gradients must be coordinates of shape (records, dim) = {expected}; got {getattr(rows, 'shape', None)}. "
            "Use manifold.to_coordinates(w, gradient) for tangent vectors."
        )


def return_point(point: Any, held: HeldRecords, private_count: bool = False) -> Any:
    """The point in the library of the records; NumPy keeps double precision.

    Of records that come in blocks there may be none that would tell, where their number is protected: then NumPy's.
    """
    if private_count and not held.given.is_in_memory:
        return point
    return point if all(map(is_numpy, leaves(held.reference))) else like_point(point, held.reference)


def is_finite(point: Any) -> bool:
    """Whether all numbers of a point, or of a tangent vector, are finite."""
    return all(bool(np.all(np.isfinite(leaf))) for leaf in leaves(point))


def move(manifold: Manifold, w: Array, coordinates: Array, retraction: bool) -> Array:
    """exp_w(v), or the retraction of v, for the tangent vector v with these coordinates; kept on the manifold."""
    vector = manifold.from_coordinates(w, coordinates)
    if retraction:
        return manifold.retract(w, vector)
    return manifold.place(manifold.exp(w, vector))


def clip_point(domain: Domain, point: Any) -> Any | None:
    """The point in the domain; None where it is not finite, or rounding left it outside."""
    if not is_finite(point):
        return None
    inside = domain.clip(as_block(point))
    return records_at(inside, 0) if bool(np.all(domain.contains(inside))) else None


def shorten(manifold: Manifold, coordinates: np.ndarray, longest: float) -> np.ndarray:
    """A step cut to the length `longest`, on a `Power` each copy on its own."""
    parts = coordinates.reshape(manifold.copies, -1)
    return np.asarray(parts * clip_factors(norm(parts), longest)[:, None]).ravel()


@dataclass(frozen=True)
class Run:
    """The loop, once everything is checked and paid for: draw, move, save."""

    domain: Domain
    sizes: np.ndarray
    output: str
    retraction: bool
    longest: float | None
    source: NoisyGradient
    callback: Callable[[int, Any], object] | None
    progress: bool

    @property
    def manifold(self) -> Manifold:
        return self.domain.manifold

    def public_settings(self, budget: Budget | None) -> dict[str, Any]:
        """What tells this run from others; JSON."""
        plan = self.source.plan
        return {
            "loss": self.source.loss.name,
            "domain": repr(self.domain),
            "budget": repr(budget),
            "n": plan.n,
            "steps": plan.steps,
            "sigma": plan.sigma,
            "clip_norm": plan.clip_norm,
            "law": plan.law,
            "batch_size": plan.batch_size,
            "sampling": plan.sampling,
            "output": self.output,
            "retraction": self.retraction,
            "longest_step": self.longest,
            "adjacency": plan.adjacency,
            "persons": self.source.records.persons is not None,
        }

    def go(self, draws: Draws) -> tuple[Any, DescentDetails]:
        """Make the draws that are left; where they led, and the public numbers behind it."""
        with self._bar(draws.left) as advance:
            for position in draws:
                w = draws.points["point"]
                direction = self.source.private(w, self.source.total(w))
                draws.save(self._advance(draws.points, self.sizes[position] * direction, draws.made))
                if self.callback is not None:
                    self.callback(draws.made, draws.points["point"])
                advance()
        plan = self.source.plan
        details = DescentDetails(
            steps=draws.made,
            clip_norm=plan.clip_norm,
            sigma=plan.sigma,
            law=plan.law,
            output=self.output,
            batch_size=plan.batch_size,
            sampling=None if plan.batch_size is None else plan.sampling,
            lost_steps=draws.lost,
        )
        return draws.points["point" if self.output == "last" else "chosen"], details

    def _advance(self, points: dict[str, Any], pull: np.ndarray, t: int) -> dict[str, Any]:
        """w_{t+1} and the output so far, from w_t."""
        step = -pull
        if self.longest is not None:
            step = shorten(self.manifold, step, self.longest)
        reached = self._reach(points, step, t)
        if reached is None:
            # all of it is public by now: a shorter step in the same direction, back to where numbers can go, or none
            longest = self.domain.diameter if self.domain.diameter < math.inf else LONGEST_STEP
            lengths = (longest * 2.0**-power for power in range(_HALVINGS))
            tries = (self._reach(points, shorten(self.manifold, step, length), t) for length in lengths)
            reached = next((found for found in tries if found is not None), points)
        return reached

    def _reach(self, points: dict[str, Any], step: np.ndarray, t: int) -> dict[str, Any] | None:
        """Where a step from w_t leads, clipped; None if floating-point numbers cannot hold it or go on from there."""
        w = points["point"]
        with np.errstate(all="ignore"):
            try:
                following = move(self.manifold, w, step, self.retraction)
                following = clip_point(self.domain, following)
                if following is None:
                    return None
                chosen = self._choose(points["chosen"], w, following, t)
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

    def _choose(self, so_far: Any, w: Any, following: Any, t: int) -> Any:
        if self.output == "random":
            # each of w_0, …, w_t with probability 1/(t+1)
            return w if self.source.noise.uniform() * (t + 1) < 1 else so_far
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
