"""The private Fréchet mean."""

from __future__ import annotations

from typing import Any

from dpmanifolds._arrays import Array
from dpmanifolds._validate import choice, positive_integer
from dpmanifolds.domains import Domain
from dpmanifolds.manifolds import Product
from dpmanifolds.mechanisms import NUMERICS, Choice, choose, mean_facts
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.entry import (
    Account,
    by_person,
    certain_mean,
    checked_budget,
    checked_domain,
    clipped_records,
    computed_mean,
    open_account,
    precision_of,
    streamed_records,
)
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.statistics.mean import mean_of
from dpmanifolds.statistics.streaming import Records

__all__ = ["private_mean"]


def private_mean(
    points: Any,
    domain: Domain,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    refine: int = 0,
    group_by: Any = None,
    on_invalid: str = "raise",
    unit: str = "person",
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The Fréchet mean of `points` (n, *point_shape), clipped to the public `domain`, within `budget`.

    Neighbours differ in one record of the same public n. The mechanism with the smallest expected error is taken
    unless one is named; only numbers that are public enter the choice. `numerics="safe"` keeps the promise down to
    the last bit; "idealized" also allows the laws on the curved space itself, whose promise is for real numbers.

    `points` may also be a memory map, a Zarr array, a Dask array, a list of blocks, or a function that returns a fresh
    iterator over blocks: they are read, clipped and summed block by block. An iterator that can be read only once will
    do where the mean takes one pass (flat metrics). n is the number of records found, and public. `refine`, `group_by`
    and "idealized" hold all records in memory.

    - `refine`: rounds that spend part of the budget on a smaller ball first, for public balls that are far too large.
    - `group_by`: a person's name for each record; a person with several records counts as one (n is then the number
      of persons, and public).
    - `on_invalid="raise"` tells that some record is malformed (outside of the promise); "center" takes the centre for
      such records, inside of it.
    - `ledger`, `dataset`: charge this account before anything is drawn.
    - `rng`: a seed, for tests and teaching; the release is marked, and a ledger refuses it.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), radius=0.5)
    >>> X = ball.clip(dpm.Sphere(2).random_point(1000, rng=0))
    >>> release = dpm.private_mean(X, ball, dpm.PureDP(1.0))
    >>> release.value.shape, release.mechanism, release.numerics
    ((3,), 'wrapped-laplace', 'rounded')
    """
    checked_domain(domain)
    checked_budget(budget)
    refine = positive_integer("refine", refine, at_least=0)
    choice("numerics", numerics, NUMERICS)
    account = open_account(ledger, dataset, rng)
    if group_by is None and not refine and numerics != "idealized" and not isinstance(domain.manifold, Product):
        stream = streamed_records(points, domain, on_invalid)
        return _streamed_mean(stream, domain, budget, mechanism, numerics, unit, account)
    records = by_person(domain, clipped_records(points, domain, on_invalid), group_by)
    dtype = precision_of(records)
    n = domain.manifold.batch_shape(records)[0]
    if refine:
        from dpmanifolds.releases.refine import refined_mean

        return refined_mean(
            records, domain, budget, rounds=refine, mechanism=mechanism, numerics=numerics, unit=unit, account=account
        )
    chosen = choose(mean_facts(domain, n, dtype, unit=unit), budget, mechanism=mechanism, numerics=numerics)
    statistic = computed_mean(domain, records, dtype).point
    return _drawn(chosen, statistic, records, n, domain, budget, account)


def _streamed_mean(
    records: Records, domain: Domain, budget: Budget, mechanism: str, numerics: str, unit: str, account: Account
) -> Release:
    """One or more passes over blocks, the noise drawn once afterwards."""
    # where only a pass can tell how many records there are, it comes first; nothing is spent if the choice fails then
    result = mean_of(records) if records.source.count is None else None
    n, dtype = records.source.counted(), precision_of(records.reference if result is None else result.point)
    chosen = choose(mean_facts(domain, n, dtype, unit=unit), budget, mechanism=mechanism, numerics=numerics)
    statistic = certain_mean(result or mean_of(records), domain, n, dtype).point
    return _drawn(chosen, statistic, None, n, domain, budget, account)


def _drawn(
    chosen: Choice, statistic: Array, records: Array | None, n: int, domain: Domain, budget: Budget, account: Account
) -> Release:
    """Charge, then draw once."""
    law = chosen.mechanism
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
