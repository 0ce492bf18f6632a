"""Noise around the Fréchet mean itself, as a solver finds it: the papers' way, used only by name.

The laws on the curved space ("idealized") are promised for real numbers. The direct release adds rounded noise to the
mean in the tangent space at the centre, and charges a proven bound on the solver's error and on all rounding: it is
refused where that bound is not known, and dear where the bound is loose. Records are held in memory.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import host, join, stack, taken
from dpmanifolds._validate import choice, hide_records
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy import Budget
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.prepare import check_block, record_array
from dpmanifolds.records.source import source_of
from dpmanifolds.releases._placing import is_near, mended
from dpmanifolds.releases.entry import ON_INVALID, Account
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.releases.tangent import TangentMean
from dpmanifolds.statistics import MeanResult, frechet_mean
from dpmanifolds.statistics.solver_error import solver_tolerance
from dpmanifolds.sums import choose, mean_facts
from dpmanifolds.sums.steps import is_flat

__all__ = ["by_person", "clipped_records", "computed_mean", "private_frechet_mean"]


def private_frechet_mean(
    points: Any,
    domain: Domain,
    budget: Budget,
    *,
    mechanism: str,
    numerics: str,
    group_by: Any,
    on_invalid: str,
    unit: str,
    account: Account,
) -> Release:
    """The mechanism with the smallest expected error among those asked for; called by `private_mean`."""
    records = by_person(domain, clipped_records(points, domain, on_invalid), group_by)
    n = domain.manifold.batch_shape(records)[0]
    chosen = choose(mean_facts(domain, n, unit=unit), budget, mechanism=mechanism, numerics=numerics)
    law = chosen.mechanism
    if law.facts.shape is not None:
        sums = TangentMean(
            domain, budget, law.name, law.numerics, "auto", "replace-one", None, on_invalid, unit, account
        )
        return sums.release(points, group_by, 0)
    statistic = computed_mean(domain, records).point
    account.spend("mean", law.guarantee, n=n, mechanism=law.name, numerics=law.numerics, domain=repr(domain))
    return release_of(
        law,
        law.draw(statistic, records=records, rng=account.rng),
        statistic="mean",
        budget=budget,
        n=n,
        reason=chosen.reason,
        reproducible=account.reproducible,
    )


@hide_records()
def clipped_records(points: Any, domain: Domain, on_invalid: str) -> Array:
    """All records in memory, NumPy in double precision, on the manifold and in the domain, each by itself.

    Malformed ones raise, or become the centre.
    """
    manifold = domain.manifold
    if not manifold.has_parts:
        source = source_of(manifold, points)
        source.refuse_single_use()
        points = np.concatenate(source.reduce(partial(_formed, manifold), operator.add))
    records = host(record_array(manifold, manifold.take_form(points)))
    if choice("on_invalid", on_invalid, ON_INVALID) == "center":
        return mended(domain, records)
    check_block(manifold, records)
    with np.errstate(all="ignore"):
        return domain.clip(manifold.place(records))


def _formed(manifold: Manifold, _: int, __: int, block: Array) -> list[np.ndarray]:
    return [host(manifold.take_form(block))]


def _grouped(domain: Domain, records: Array, persons: Persons) -> Array:
    """One point per person: the Fréchet mean of that person's clipped records, which lies in the domain like them.

    Balls up to `max_radius` are convex, and so is every other domain here: whatever a person's records are, they become
    one point of the domain, and replacing a person replaces one point. Every theorem for n records holds for n persons.
    """
    parts = [taken(records, persons.rows(each)) for each in np.flatnonzero(persons.sizes > 1).tolist()]
    points = taken(records, persons.order[persons.starts[:-1][persons.sizes == 1]])
    if parts:
        means = stack(*(frechet_mean(domain.manifold, part).point for part in parts))
        places = np.argsort(np.argsort(persons.sizes > 1, kind="stable"))
        points = taken(join(points, means), places)
    return domain.clip(points)


@hide_records()
def by_person(domain: Domain, records: Array, group_by: Any) -> Array:
    """Clipped records as they are, or one point per person where `group_by` names the persons."""
    if group_by is None:
        return records
    return _grouped(domain, records, persons_of(group_by, domain.manifold.batch_shape(records)[0]))


@hide_records()
def computed_mean(domain: Domain, records: Array) -> MeanResult:
    """The Fréchet mean of clipped records to the public tolerance that the sensitivity pays for.

    Where the metric is flat it is a mean of coordinates at the centre, whose rounding is in units of the radius
    wherever the centre lies, and below that tolerance for all records.
    """
    manifold = domain.manifold
    if is_flat(manifold):
        center = host(domain.center)
        mean = np.mean(manifold.log_coordinates(center, records), axis=0)
        return MeanResult(manifold.move(center, mean), 0.0, solver_tolerance(domain, len(records)) / 2, 1, True, True)
    n = domain.manifold.batch_shape(records)[0]
    return _certain(frechet_mean(domain.manifold, records), domain, n)


def _certain(result: MeanResult, domain: Domain, n: int) -> MeanResult:
    """The result, or an error where it is not certain to be within the public tolerance."""
    error = solver_tolerance(domain, n) / 2
    if result.error_bound > error or not (domain.manifold.is_hadamard or is_near(domain, result.point, error)):
        raise ConvergenceError(
            "the mean was not found to the public tolerance, and nothing was released. Use double precision or a "
            "smaller ball."
        )
    return result
