"""The private extrinsic mean: the point of the manifold nearest to the mean of records in the flat space around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request
from dpmanifolds.sums import Choice, Draw, choose
from dpmanifolds.sums.ambient import body_of
from dpmanifolds.sums.total import check_rules
from dpmanifolds.sums.wrapped import WrappedMechanism

__all__ = ["release_extrinsic_mean"]


def release_extrinsic_mean(request: Request, points: Any, group_by: Any) -> Release:
    """Plan, look, charge, draw; called by `private_mean(kind="extrinsic")`. One pass, whatever the manifold is."""
    domain, body = request.domain, body_of(request.domain, request.adjacency)
    records = request.read(points, group_by, once=True)
    # only the one pass that there is can tell how many records there are
    untold = request.guess is None and records.known_count is None
    n = 1 if untold else request.guess or records.count
    if n == 0:
        raise ArgumentError("is empty: at least one record is needed.", argument="points")

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
        if n == 0:
            raise ArgumentError("is empty: at least one record is needed.", argument="points")
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
