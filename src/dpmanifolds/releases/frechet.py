"""Noise around the Fréchet mean itself, as a solver finds it: the papers' way, used only by name.

The laws on the curved space ("idealized") are promised for real numbers. The direct release adds rounded noise to the
mean in the tangent space at the centre, and charges a proven bound on the solver's error and on all rounding: it is
refused where that bound is not known, and dear where the bound is loose. Records are held in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpmanifolds.intrinsic.frechet import by_person, clipped_records, computed_mean
from dpmanifolds.releases.mean import release_mean
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, warn_of_noise
from dpmanifolds.sums import choose, mean_facts


def private_frechet_mean(request: Request, points: Any, group_by: Any, mechanism: str) -> Release:
    """The mechanism with the smallest expected error among those asked for; called by `private_mean`."""
    domain = request.domain
    records = by_person(domain, clipped_records(points, domain, request.on_invalid), group_by)
    n = domain.manifold.batch_shape(records)[0]
    facts = mean_facts(domain, n, unit=request.unit)
    chosen = choose(facts, request.budget, mechanism=mechanism, numerics=request.numerics)
    law = chosen.mechanism
    if law.facts.shape is not None:
        sums = replace(request, mechanism=law.name, numerics=law.numerics)
        return release_mean(sums, sums.read(points, group_by, once=True))
    statistic = computed_mean(domain, records).point
    warn_of_noise(domain, law.expected_error)
    request.spend("mean", law.guarantee, n, mechanism=law.name, numerics=law.numerics, domain=domain)
    drawn = law.draw(statistic, records=records, rng=request.account.rng)
    return request.release(law, drawn, statistic="mean", n=n, reason=chosen.reason)
