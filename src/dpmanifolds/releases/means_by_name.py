"""Means that are asked for by name: the extrinsic one, and noise around the Fréchet mean itself.

The extrinsic mean is the point of the manifold nearest to the mean of records in the flat space around it, by one sum.

Noise around the Fréchet mean as a solver finds it is the papers' way. The laws on the curved space ("idealized") are
promised for real numbers. The direct release adds rounded noise to the mean in the tangent space at the centre, and
charges a proven bound on the solver's error and on all rounding: it is refused where that bound is not known, and dear
where the bound is loose. Records are held in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._validate import refuse_empty
from dpmanifolds.intrinsic.frechet import by_person, clipped_records, computed_mean
from dpmanifolds.releases.mean import release_mean
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, warn_of_noise
from dpmanifolds.sums import Choice, Draw, choose, mean_facts
from dpmanifolds.sums.ambient import body_of
from dpmanifolds.sums.total import check_rules
from dpmanifolds.sums.wrapped import WrappedMechanism


def release_extrinsic_mean(request: Request, points: Any, group_by: Any) -> Release:
    """Plan, look, charge, draw; called by `private_mean(kind="extrinsic")`. One pass, whatever the manifold is."""
    domain, body = request.domain, body_of(request.domain, request.adjacency)
    records = request.read(points, group_by, once=True)
    # only the one pass that there is can tell how many records there are
    untold = request.guess is None and records.known_count is None
    n = 1 if untold else request.guess or records.count
    refuse_empty(n)

    def chosen_for(count: int) -> tuple[Choice, WrappedMechanism]:
        facts = body.facts(count, adjacency=request.adjacency, unit=request.unit)
        found = choose(facts, request.budget, mechanism=request.mechanism, numerics=request.numerics)
        assert isinstance(found.mechanism, WrappedMechanism)
        return found, found.mechanism

    chosen, law = chosen_for(n)
    total = records.total(body.contribution(law, body.center if request.mends else None))
    if not request.mends:
        check_rules(total, domain.manifold.rules, domain.manifold)
    if untold:
        n, seen = total.rows, law
        refuse_empty(n)
        chosen, law = chosen_for(n)
        # noise is so many lattice steps, whatever n is
        assert law.exponent == seen.exponent
    request.spend("extrinsic mean", law.guarantee, n, mechanism=law.name, numerics=law.numerics, domain=domain)
    noisy = law.noisy_mean(total.integers, total.rows, request.account.rng)
    made = request.release(
        law,
        Draw(body.point_of(law, noisy), body.coordinates_of(law, noisy)),
        statistic="extrinsic mean",
        n=request.public_count(n),
        reason=chosen.reason,
        domain=domain,
    )
    try:
        return replace(made, expected_error=body.expected_error(law, noisy))
    except np.linalg.LinAlgError:
        return replace(made, expected_error=None)


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
