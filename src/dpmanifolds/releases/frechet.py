"""Noise around the Fréchet mean itself, as a solver finds it: the papers' way, used only by name.

The laws on the curved space ("idealized") are promised for real numbers. The direct release adds rounded noise to the
mean in the tangent space at the centre, and charges a proven bound on the solver's error and on all rounding: it is
refused where that bound is not known, and dear where the bound is loose. Records are held in memory.
"""

from __future__ import annotations

from typing import Any

from dpmanifolds.domains import Domain
from dpmanifolds.mechanisms import choose, mean_facts
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.entry import Account, by_person, clipped_records, computed_mean, precision_of
from dpmanifolds.releases.release import Release, release_of
from dpmanifolds.releases.tangent import TangentMean

__all__ = ["private_frechet_mean"]


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
    dtype, n = precision_of(records), domain.manifold.batch_shape(records)[0]
    chosen = choose(mean_facts(domain, n, dtype, unit=unit), budget, mechanism=mechanism, numerics=numerics)
    law = chosen.mechanism
    if law.facts.shape is not None:
        sums = TangentMean(
            domain, budget, law.name, law.numerics, "auto", "replace-one", None, on_invalid, unit, account
        )
        return sums.release(points, group_by, 0)
    statistic = computed_mean(domain, records, dtype).point
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
