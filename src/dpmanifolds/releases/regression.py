"""Private geodesic regression: joint moments of records and covariates, and again of what the first fit left.

Two bounded sums (docs/proofs/regression.md). The first looks from the public centre and gives a linear fit in its
tangent space: a base, slopes and the spread around them. The second looks from the released geodesic: what is left of a
record beyond it, carried back to the base, in a ball as small as the released spread allows. All that follows the noise
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._points import count_records
from dpmanifolds._validate import hide_records, numeric_array, record_numbers
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.manifolds import Euclidean, Product
from dpmanifolds.privacy import Budget, compose
from dpmanifolds.records.blocks import record_form
from dpmanifolds.releases.geodesic_regression import GeodesicRegression
from dpmanifolds.releases.regression_fit import (
    EVEN_VARIANCE,
    FitState,
    carried,
    next_view,
    shrunk,
    smaller_radius,
    start_fit,
    update_fit,
)
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, best_cut, check_request, domain_first, warn_of_noise
from dpmanifolds.sums import Draw, ExpectedError, horizon
from dpmanifolds.sums.regression import Moments, RegressionView, count_moments, regression_facts
from dpmanifolds.sums.total import RecordSums, check_rules, read_records
from dpmanifolds.sums.walk import Walk
from dpmanifolds.sums.wrapped import WrappedGaussianMechanism, WrappedMechanism

_CUTS = ([1.0], [0.2, 0.8], [0.35, 0.65])
# of records that a ball chosen in good faith holds, over its radius
_SPREAD = 0.3
_LARGEST = 1e50
# what variances to first order leave out, as benchmarks/regression.py finds it
_MARGIN = 1.02


@domain_first
def private_geodesic_regression(
    points: Any,
    covariates: Any,
    domain: Ball,
    budget: Budget,
    *,
    covariate_bounds: Any,
    steps: int | str = "auto",
    mechanism: str = "auto",
    numerics: str = "safe",
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> GeodesicRegression:
    """How records change with covariates: y ≈ exp_p(Σ v_j·(x_j − middle_j)), base p and velocities v, within `budget`.

    `covariates` (n,) or (n, q) belong to the records and are protected with them. `covariate_bounds` are a public pair
    (low, high), or one for each covariate; covariates beyond are clipped to them. Each record adds the joint moments of
    (1, t, log y), t the covariates on a scale from −1 to 1, to one sum, whose diameter is that of (1, t)ᵀ log y alone
    (docs/proofs/regression.md). `steps` is 1, 2 (a second look at what the first fit left, in a smaller ball), or
    "auto", the one that errs less by public facts. n is public, and neighbours differ in one record with its
    covariates. Other arguments as in `private_mean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> rng, north = np.random.default_rng(0), np.array([0.0, 0.0, 1.0])
    >>> age = rng.uniform(20, 80, 1000)
    >>> ahead = np.stack([0.01 * (age - 50), 0 * age], axis=1) + 0.05 * rng.normal(size=(1000, 2))
    >>> y = dpm.Sphere(2).exp_coordinates(north, ahead)
    >>> ball = dpm.Ball(dpm.Sphere(2), north, radius=0.6)
    >>> fit = dpm.private_geodesic_regression(y, age, ball, dpm.GaussianDP(1.0), covariate_bounds=(20, 80), rng=0)
    >>> abs(fit.slopes.round(3)).tolist(), fit.slope_region().excludes_zero.tolist()
    ([[0.01, 0.0]], [True])
    """
    request = check_request(
        domain,
        budget,
        mechanism=mechanism,
        numerics=numerics,
        steps=steps,
        ball_for="regression",
        group_by=group_by,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    bounds = read_bounds(covariate_bounds)
    cuts = _allowed_cuts(request, domain)
    records = _read(request, points, covariates, len(bounds), group_by)
    n, q = records.count, len(bounds)
    if n < q + 2:
        raise ArgumentError(
            f"must be at least {q + 2} records, or persons, to tell slopes: n_samples = {n}.", argument="points"
        )
    plan = best_cut(budget, cuts, partial(_plan, request, n, q), lambda found: found.predicted)
    promise = compose(*(law.guarantee for law in plan.laws))
    walk = request.walk()
    view = RegressionView(domain.manifold, walk.center, bounds, domain.radius, substitute=request.substitute)
    law = plan.laws[0]
    assert law.exponent is not None
    total = records.total(view.contribution(law.exponent))
    if not request.mends:
        space = Product(domain.manifold, Euclidean(q))
        check_rules(total, space.rules, space)
    warn_of_noise(domain, plan.error)
    request.spend("geodesic regression", promise, n, covariates=q, steps=len(plan.laws), domain=domain)
    state, moments, made = start_fit(view), None, list[Release]()
    for law in plan.laws:
        assert law.exponent is not None
        if made:
            view = next_view(walk, view, state)
            total = records.total(view.contribution(law.exponent))
        noisy = law.noisy_mean(total.integers, total.rows, request.account.rng)
        made.append(
            request.release(law, Draw(noisy, noisy), statistic="regression moments", n=n, reason=plan.reason, base=None)
        )
        seen, noise = view.read(noisy, law.exponent), view.deviations(law.deviation, law.exponent)
        moments = seen if moments is None else moments
        state = update_fit(walk, view, state, seen, noise)
    assert moments is not None
    return _finish(request, walk, bounds, state, moments, n, made, plan.laws[-1], promise)


def read_bounds(covariate_bounds: Any) -> np.ndarray:
    """Public bounds as a table (q, 2), or an error."""
    try:
        bounds = np.asarray(numeric_array("covariate_bounds", covariate_bounds), dtype=np.float64)
    except TypeError:
        bounds = np.zeros(0)
    bounds = bounds[None] if bounds.ndim == 1 else bounds
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds) or not np.all(np.isfinite(bounds)):
        raise ArgumentError(
            "must be a pair (low, high) of public numbers, or a list with one pair for each covariate. Take them from "
            "knowledge, such as ages from 18 to 100, and not from the records.",
            argument="covariate_bounds",
        )
    if not np.all(np.diff(bounds, axis=1) > 0):
        raise ArgumentError("must have low < high in every pair.", argument="covariate_bounds")
    if np.max(np.abs(bounds)) > _LARGEST or np.min(np.diff(bounds, axis=1)) < 1 / _LARGEST:
        raise ArgumentError("are so large, or so close, that slopes leave floats.", argument="covariate_bounds")
    return bounds


def _allowed_cuts(request: Request, domain: Ball) -> Sequence[list[float]]:
    """Ways to cut the budget into steps. A second one needs room around the ball in floating point, which is public."""
    if not 1 / _LARGEST < domain.radius < _LARGEST:
        raise ScaleOutOfRangeError(f"moments in a ball of radius {domain.radius:g} leave floats: rescale the data.")
    if request.steps not in ("auto", 1, 2):
        raise ArgumentError(f"must be 'auto', 1 or 2; got {request.steps!r}.", argument="steps")
    roomy = domain.manifold.is_flat or horizon(domain) >= 3 * domain.radius
    if request.steps == 2 and not roomy:
        raise ArgumentError(
            f"2 need points at three times the radius, which floating point does not tell on {domain.manifold!r}: use "
            "1, or a smaller ball.",
            argument="steps",
        )
    wanted = (1, 2) if request.steps == "auto" else (request.steps,)
    return [cut for cut in _CUTS if len(cut) in wanted and (len(cut) == 1 or roomy)]


def _read(request: Request, points: Any, covariates: Any, q: int, group_by: Any) -> RecordSums:
    """Records as pairs of a point and its covariates: arrays, as both must be there together."""
    manifold = request.domain.manifold
    with hide_records():
        array = record_form(manifold, points, allow_empty=False)
        count = count_records(array)
        given = covariates.to_numpy() if hasattr(covariates, "to_numpy") else covariates
        given = given[:, None] if getattr(given, "ndim", 0) == 1 else given
        if getattr(given, "ndim", 0) == 0 and q == 1:
            given = [[entry] if not isinstance(entry, list | tuple) else entry for entry in _listed(given)]
        table = np.asarray(record_numbers("covariates", given, (q,)))
    if table.ndim != 2 or table.shape[1] != q or np.iscomplexobj(table):
        raise ArgumentError(
            f"must be real numbers, with {q} for each record, as there are {q} pairs of covariate_bounds; got shape "
            f"{table.shape}.",
            argument="covariates",
        )
    if len(table) != count:
        raise ArgumentError(f"must be as many as there are records: {count}; got {len(table)}.", argument="covariates")
    return read_records(Product(manifold, Euclidean(q)), (array, table), group_by=group_by)


def _listed(covariates: Any) -> list[Any]:
    try:
        return list(covariates)
    except TypeError:
        raise ArgumentError("must be an array or a list of numbers.", argument="covariates") from None


class _Plan(NamedTuple):
    laws: tuple[WrappedMechanism, ...]
    predicted: float
    error: ExpectedError
    reason: str


def _plan(request: Request, n: int, q: int, *parts: Budget) -> _Plan:
    """Calibrated noise for each step, and the error of slopes that public facts predict."""
    domain, manifold = request.domain, request.domain.manifold
    laws = list[WrappedMechanism]()
    radius, variance, spread = domain.radius, math.inf, _SPREAD * domain.radius
    bounds = np.tile([-1.0, 1.0], (q, 1))
    for part in parts:
        facts = regression_facts(manifold.dim, q, n, request.unit)
        law = request.choose(facts, part)
        assert law.exponent is not None
        noise = RegressionView(manifold, domain.center, bounds, radius).deviations(law.deviation, law.exponent)
        own = (float(noise.products[1, 0]) / EVEN_VARIANCE) ** 2
        variance = 1 / (1 / variance + 1 / own)
        radius = smaller_radius(spread**2, noise.square, manifold.dim * own, manifold.dim, domain.radius)
        laws.append(law)
    # one look from the centre takes records that scatter off a curve for ones that lie on another
    bend = max(map(abs, manifold.curvature_bounds)) * spread**2 * domain.radius / 6 if len(parts) == 1 else 0.0
    error = math.sqrt(manifold.dim * variance)
    reason = f"{len(parts)} of 1 or 2 looks, by the error of slopes that public facts predict"
    return _Plan(tuple(laws), math.hypot(error, bend), ExpectedError(error, 1.7 * error, error), reason)


def _finish(
    request: Request,
    walk: Walk,
    bounds: np.ndarray,
    state: FitState,
    first: Moments,
    n: int,
    made: list[Release],
    law: WrappedMechanism,
    promise: Any,
) -> GeodesicRegression:
    """Shrink the fit by what is known of its noise, and say how far off it is, in the units of the covariates."""
    domain, manifold, dim = request.domain, request.domain.manifold, request.domain.manifold.dim
    seen = np.asarray(manifold.log_coordinates(walk.center, state.base))
    base = walk.reach(walk.center, shrunk(seen, float(state.variances[0]), domain.radius))
    raw = carried(manifold, state.base, base, state.slopes)
    slopes = np.stack(
        [shrunk(row, float(own), domain.radius) for row, own in zip(raw, state.variances[1:], strict=True)]
    )
    half = np.diff(bounds, axis=1) / 2
    spread = first.square - float(first.products[0] @ first.products[0])
    explained = 1 - state.residual / spread if spread > 0 else 0.0
    sampling = _MARGIN * np.diag(state.gains) * state.residual / dim / max(n - len(bounds) - 1, 1)
    gaussian = isinstance(law, WrappedGaussianMechanism) or law.is_coordinatewise
    return GeodesicRegression(
        base=base,
        slopes=slopes / half,
        raw_slopes=raw / half,
        covariate_bounds=bounds,
        noise_variances=state.variances[1:] / half[:, 0] ** 2,
        sampling_variances=sampling / half[:, 0] ** 2,
        noise_tail=None if gaussian else count_moments(dim, len(bounds)),
        residual_spread=math.sqrt(state.residual),
        r_squared=float(np.clip(explained, 0.0, 1.0)),
        releases=tuple(made),
        guarantee=promise,
        budget=request.budget,
        domain=domain,
        n=n,
    )
