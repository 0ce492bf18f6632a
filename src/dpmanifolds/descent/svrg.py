"""Private descent with variance reduction: full gradients at anchors, cheap corrections between them, all of it paid.

At each of S anchors w̃ the full gradient is released, ζ̃ = ∇F(w̃) + N(0, σ_a²I), with sensitivity 2C/n. At each of the m
inner steps after it, with Γ the parallel transport from w̃ to w, the step goes along

    Γζ̃ + (1/b)Σ_{i in batch} clip(g_i(w) − Γg_i(w̃), C_t) + N(0, σ_t²I),   C_t = L·ρ(w, w̃),  σ_t = s·C_t.

For an L-smooth loss the clip changes nothing, so the noise of a correction shrinks with the way from the anchor. w, w̃,
Γ and C_t are functions of what was released before, so given the past an anchor is a Gaussian mechanism of μ =
2C/(nσ_a) and an inner step a subsampled Gaussian one of noise multiplier s·b whatever C_t is. The promise is the
adaptive composition of S terms of the first kind and S·m of the second; a fresh full gradient is never free
(docs/proofs/descent.md, D9). If the loss is not L-smooth, clipping biases the steps and the promise stays.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._validate import number_between, positive_integer, positive_number, shown
from dpmanifolds.descent.descent import (
    LONGEST_STEP,
    as_loss,
    choose_clip_norm,
    clip_point,
    is_finite,
    manifold_of,
    move,
    probe_gradients,
    return_point,
    shorten,
    start_domain,
)
from dpmanifolds.descent.draws import Charge, open_ledger, paid_draws
from dpmanifolds.descent.losses.loss import Loss, like_point, row_product
from dpmanifolds.descent.noise_plan import DescentPlan, plan_descent
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import hold_records
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget, Guarantee, compose, split
from dpmanifolds.privacy.budget import checked_budget
from dpmanifolds.sums.noisy import NoiseSource

_LEAST_CLIP = 2.0**-20
_HALVINGS = 12
_SHORTER = 64


@dataclass(frozen=True, eq=False)
class SVRGResult:
    """The last point and the public numbers behind it.

    >>> from dpmanifolds.descent import SVRGResult
    >>> list(SVRGResult.__dataclass_fields__)
    ['point', 'guarantee', 'manifold', 'anchor_plan', 'inner_plan', 'reproducible', 'lost_steps']
    """

    point: Array
    guarantee: Guarantee
    """The composition of `anchor_plan` and `inner_plan`."""
    manifold: Manifold
    anchor_plan: DescentPlan
    inner_plan: DescentPlan
    """For differences clipped to 1; at a step with clip C_t its noise is multiplied by C_t."""
    reproducible: bool
    lost_steps: int = 0


@dataclass(frozen=True)
class _Difference(Loss):
    """g(w) − Γg(w̃) in coordinates at w, for one anchor w̃."""

    loss: Loss
    place: Any

    @property
    def any_company(self) -> bool:  # type: ignore[override]
        return self.loss.any_company

    @property
    def filler(self) -> Any:
        return self.loss.filler

    @property
    def manifold(self) -> Manifold:  # type: ignore[override]
        return self.loss.manifold

    def value(self, w: Array, records: Array) -> float:
        return self.loss.value(w, records) - self.loss.value(self.place, records)

    def gradients(self, w: Array, records: Array) -> Array:
        return self.at(w)(records)

    def at(self, w: Array) -> Callable[[Array], Array]:
        here, there = self.loss.at(w), self.loss.at(self.place)
        return _Differences(here, there, _transport(self.manifold, self.place, w))


@dataclass(frozen=True)
class _Differences:
    """Rows of gradients here less rows there, carried over."""

    here: Callable[[Array], Array]
    there: Callable[[Array], Array]
    transport: np.ndarray

    def __call__(self, records: Array) -> Array:
        there = self.there(records)
        return self.here(records) - row_product(there, like_point(self.transport, there))


def _transport(manifold: Manifold, base: Array, to: Array) -> np.ndarray:
    """The matrix that takes rows of coordinates at `base` to coordinates at `to`."""
    frame = manifold.from_coordinates(base, np.eye(manifold.dim))
    return np.asarray(manifold.to_coordinates(to, manifold.transport(base, to, frame)))


def private_svrg(
    loss: Loss | Callable[[Any, Any], Any],
    records: Any,
    domain: Domain | Manifold,
    budget: Budget,
    *,
    start: Any = None,
    anchors: int,
    inner: int,
    step_size: float,
    smoothness: float,
    batch_size: int,
    anchor_share: float = 0.5,
    clip_norm: float | None = None,
    sampling: str = "poisson",
    group_by: Any = None,
    unit: str | None = None,
    callback: Callable[[Any], object] | None = None,
    state: str | os.PathLike[str] | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> SVRGResult:
    """S anchors with m inner steps after each, S·(1 + m) steps in all, within a budget other than pure ε.

    `smoothness` L is public and sets the clip of differences; `anchor_share` is what the full gradients get of the
    budget before both noises are lowered together until the exact composition just fits. All other arguments and
    errors are as in `private_descent`, and so are the integers behind the promise.
    Where the draw of an anchor was lost in a crash, its inner steps go on from the anchor before. `callback(w)` sees
    each iterate.

    >>> import numpy as np
    >>> from dpmanifolds import ApproxDP, Ball, SPD
    >>> from dpmanifolds.descent import private_svrg
    >>> from dpmanifolds.descent.losses import FrechetMeanLoss
    >>> ball = Ball(SPD(2), np.eye(2), radius=1.5)
    >>> result = private_svrg(
    ...     FrechetMeanLoss(ball), SPD(2).random_point(3000, rng=0), SPD(2), ApproxDP(1.0, 1e-6), start=ball.center,
    ...     anchors=3, inner=4, step_size=0.4, smoothness=2.0, batch_size=300, rng=0,
    ... )
    >>> result.guarantee.fits(ApproxDP(1.0, 1e-6)), len(result.guarantee.terms)
    (True, 2)
    """
    manifold = manifold_of(domain)
    loss = as_loss(loss, manifold)
    region, w = start_domain(domain, start)
    if manifold.max_radius == 0:
        raise ArgumentError(f"variance reduction needs distances and transports, which {manifold!r} lacks.")
    anchors, inner = positive_integer("anchors", anchors), positive_integer("inner", inner)
    size, smooth = positive_number("step_size", step_size), positive_number("smoothness", smoothness)
    ledger = open_ledger(ledger, dataset, state, rng)
    held = hold_records(loss, records, group_by=group_by)
    loss = loss.for_records(held.reference)
    clip_norm = choose_clip_norm(loss, clip_norm)
    n = held.count
    common: dict[str, Any] = {"n": n, "unit": held.unit_of(loss) if unit is None else unit}
    outer = common | {"clip_norm": clip_norm, "steps": anchors}
    within = common | {"clip_norm": 1.0, "steps": anchors * inner, "batch_size": batch_size, "sampling": sampling}
    full, short = _plans(budget, number_between("anchor_share", anchor_share, 0.0, 1.0), outer, within)
    guarantee = compose(full.guarantee, short.guarantee)
    source = NoiseSource.of(rng)
    for which, plan in ((loss, full), (_Difference(loss, w), short)):
        probe_gradients(NoisyGradient(which, held, plan, source), w)
    settings = {
        "loss": loss.name,
        "domain": repr(region),
        "budget": repr(budget),
        "anchors": anchors,
        "inner": inner,
        "n": n,
        "clip_norm": clip_norm,
        "sigma": [full.sigma, short.sigma],
        "batch_size": batch_size,
        "sampling": sampling,
        "smoothness": smooth,
        "persons": held.persons is not None,
        "step_size": size,
    }
    objects = (loss, region)
    charge = Charge(
        ledger,
        dataset,
        guarantee,
        anchors * (1 + inner),
        "svrg",
        settings,
        objects,
        reproducible=rng is not None,
        domain=loss.domain,
    )

    def noisy(which: Loss, plan: DescentPlan, at: Any, length: float) -> np.ndarray:
        gradient = NoisyGradient(which, held, plan, source, length)
        return gradient.private(at, gradient.total(at))

    points = {"point": w, "place": w, "pull": np.zeros(manifold.dim)}
    with paid_draws(charge, points, state=state, records=held) as draws:
        for position in draws:
            w, place, pull = (draws.points[name] for name in ("point", "place", "pull"))
            if position % (1 + inner) == 0:
                place, pull = w, noisy(loss, full, w, clip_norm)
                step = pull
            else:
                far = max(smooth * float(manifold.dist(place, w)), _LEAST_CLIP * clip_norm)
                turn = noisy(_Difference(loss, place), short, w, far)
                step = turn + pull @ _transport(manifold, place, w)
            w = _advance(region, w, place, -size * step)
            draws.save({"point": w, "place": place, "pull": pull})
            if callback is not None:
                callback(w)
    point = return_point(draws.points["point"], held)
    return SVRGResult(point, guarantee, manifold, full, short, rng is not None, draws.lost)


def _advance(domain: Domain, w: Any, place: Any, step: np.ndarray) -> Any:
    """Where a step leads; a shorter one, or none, where numbers cannot go there or back to the anchor. All public."""
    lengths = (LONGEST_STEP * 2.0**-power for power in range(_SHORTER))
    steps = (step, *(shorten(domain.manifold, step, length) for length in lengths))
    tries = (_reach(domain, w, place, tried) for tried in steps)
    return next((found for found in tries if found is not None), w)


def _reach(domain: Domain, w: Any, place: Any, step: np.ndarray) -> Any | None:
    manifold = domain.manifold
    with np.errstate(all="ignore"), contextlib.suppress(np.linalg.LinAlgError, NotOnManifoldError):
        following = clip_point(domain, move(manifold, w, step, False))
        if following is None:
            return None
        seen = manifold.dist(place, following), _transport(manifold, place, following)
        if is_finite(following) and is_finite(seen):
            return following
    return None


def _plans(
    budget: Budget, share: float, outer: dict[str, Any], within: dict[str, Any]
) -> tuple[DescentPlan, DescentPlan]:
    """Two plans whose exact composition fits the budget: a plain split first, then less noise on both, by bisection."""
    if checked_budget(budget).bounded_loss:
        raise ArgumentError(f"budget must be ApproxDP, GaussianDP, zCDP or RenyiDP here; got {shown(budget)}.")
    if share in (0.0, 1.0):
        raise ArgumentError(f"anchor_share must leave something for both parts: above 0 and below 1; got {share:g}.")
    # whatever is wrong with other arguments shows here
    plan_descent(sigma=1.0, **within)
    found = []
    for first, second in split(budget, [share, 1 - share]):
        # a part of another kind may allow no plan
        with contextlib.suppress(ArgumentError):
            found.append((plan_descent(budget=first, **outer), plan_descent(budget=second, **within)))
    if not found:
        raise ArgumentError(f"no noise was found that keeps {budget} here. Use fewer steps or a larger budget.")
    full, short = min(found, key=lambda plans: plans[0].sigma)

    def at(factor: float) -> tuple[DescentPlan, DescentPlan]:
        return (
            plan_descent(sigma=full.sigma * factor, **outer),
            plan_descent(sigma=short.sigma * factor, **within),
        )

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = middle > 0 and compose(*(plan.guarantee for plan in at(middle))).fits(budget, strict=True)
        low, high = (low, middle) if fits else (middle, high)
    return at(high) if high < 1 else (full, short)
