"""Finished releases of several sites, each with its own noise, put together afterwards: post-processing.

>>> import numpy as np
>>> import dpmanifolds as dpm
>>> ball = dpm.Ball(dpm.SPD(2, "log-euclidean"), np.eye(2), radius=2.0)
>>> parts = np.split(dpm.SPD(2).random_point(900, rng=0), 3)
>>> alone = [dpm.private_mean(part, ball, dpm.GaussianDP(1.0), rng=seed) for seed, part in enumerate(parts)]
>>> both = dpm.combine(alone)
>>> both.n, both.guarantee == alone[0].guarantee, both.expected_error.mean < alone[0].expected_error.mean
(900, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._points import stack
from dpmanifolds._validate import shown
from dpmanifolds.errors import ArgumentError, NotAvailableError
from dpmanifolds.privacy import Budget, Guarantee
from dpmanifolds.releases import Release
from dpmanifolds.releases.written import domain_to_json
from dpmanifolds.statistics import frechet_mean
from dpmanifolds.sums import point_at
from dpmanifolds.sums.estimate import shrink_lengths

_THEOREM = "post-processing of releases of other records each: a record is in one of them"


def combine(releases: Sequence[Release]) -> Release:
    """One mean from the private means of several sites, weighted by their precision, 1/(expected error)².

    Each record is in one of the releases, so that what all of them promise is what the weakest of them does: neighbours
    differ in one record of one site. The noise is that of its parts: for k sites alike √k times that of one place with
    all records. Sites count by their precision, not by their number of records: where their means differ, the result
    estimates that weighted mean. One-step releases of the same ball are combined before they are shrunk; others as
    points, by their weighted Fréchet mean.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.0)
    >>> budget = dpm.GaussianDP(1.0)
    >>> large, small = (dpm.private_mean(np.zeros((n, 2)), ball, budget, refine=0, rng=n) for n in (900, 100))
    >>> together = dpm.combine([large, small])
    >>> round(together.expected_error.mean / large.expected_error.mean, 3)
    0.994
    """
    given = list(releases)
    _check(given)
    first = given[0]
    errors = [release.expected_error.mean for release in given if release.expected_error is not None]
    weights = np.array([1 / error**2 for error in errors])
    shrink = 1 / math.sqrt(float(np.sum(weights))) / errors[0]
    weights = weights / np.sum(weights)
    value, coordinates = _combined(given, weights, shrink * first.sigma)
    error = first.expected_error
    assert error is not None
    names = ("mean", "radius_90", "mean_at_edge", "clipping")
    known = [release.n for release in given if release.n is not None]
    promise = _weakest([release.guarantee for release in given])
    return replace(
        first,
        value=value,
        coordinates=coordinates,
        guarantee=promise,
        budget=next((release.budget for release in given if _holds(release.budget, promise)), None),
        theorem=_THEOREM,
        sigma=shrink * first.sigma,
        step=None,
        n=sum(known) if len(known) == len(given) else None,
        expected_error=replace(error, **{name: shrink * getattr(error, name) for name in names}),
        reason=f"{len(given)} finished releases, weighted by precision",
        reproducible=any(release.reproducible for release in given),
        stages=(),
        public=None,
        sites=None,
        base=None if coordinates is not None else first.base,
    )


def _check(given: list[Release]) -> None:
    if not given or not all(isinstance(release, Release) for release in given):
        raise ArgumentError(f"must be one or more releases; got {shown(given)}.", argument="releases")
    first = given[0]
    for release in given:
        if release.statistic != "mean" or release.expected_error is None:
            raise NotAvailableError(f"means with an expected error are combined; got a {release.statistic}.")
        if release.manifold != first.manifold or release.budget is None:
            raise ArgumentError("must be of one manifold, within budgets.", argument="releases")
    names = [name for release in given if release.sites is not None for name in release.sites.names]
    if len(set(names)) < len(names) or len(set(given)) < len(given):
        raise ArgumentError(
            "must be of different records each: two of them are of the same site, or the same release. Promises about "
            "the same records add up, see compose.",
            argument="releases",
        )


def _combined(given: list[Release], weights: np.ndarray, sigma: float) -> tuple[Any, np.ndarray | None]:
    """The point, and its coordinates before shrinking where all were looked at from one centre."""
    first, domain = given[0], given[0].domain
    plain = all(release.mechanism == "wrapped-gaussian" and not release.stages for release in given)
    same = all(domain_to_json(release.domain) == domain_to_json(domain) for release in given)
    shown_ = [release.coordinates for release in given if release.coordinates is not None]
    if not (plain and same and len(shown_) == len(given)) or domain.body is not None or first.base is not None:
        return frechet_mean(
            first.manifold, stack(*(release.value for release in given)), sample_weight=weights
        ).point, None
    coordinates = np.asarray(weights @ np.stack(shown_))
    length = np.linalg.norm(coordinates, axis=-1, keepdims=True)
    wanted = shrink_lengths(length, dim=coordinates.size, radius=domain.radius, sigma=sigma, gaussian=True)
    return point_at(domain, coordinates * (wanted / np.maximum(length, 1e-300))), coordinates


def _holds(budget: Budget | None, promise: Guarantee) -> bool:
    """Whether a budget has room for what all of them promise together."""
    return budget is not None and promise.fits(budget)


def _weakest(guarantees: list[Guarantee]) -> Guarantee:
    """What holds for a record, whichever of them it is in."""
    first = guarantees[0]
    labels = {(each.adjacency, each.unit) for each in guarantees}
    if len(labels) > 1:
        raise ArgumentError("promise different things: adjacency and unit must agree.", argument="releases")
    if all(each == first for each in guarantees):
        return first
    named = {"adjacency": first.adjacency, "unit": first.unit}
    pure = [each.total_pure() for each in guarantees]
    if all(epsilon is not None for epsilon in pure):
        return Guarantee.pure(max(epsilon for epsilon in pure if epsilon is not None), **named)
    try:
        return Guarantee.gaussian(max(each.as_gaussian().mu for each in guarantees), **named)
    except NotAvailableError:
        raise NotAvailableError("these releases have no kind of promise in common; use one kind of budget.") from None
