"""The private extrinsic mean: the point of the manifold nearest to the mean of records in the flat space around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifolds._validate import refuse_empty
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import Request, warn_of_noise
from dpmanifolds.sums import Choice, Draw, choose
from dpmanifolds.sums.ambient import AmbientBody, body_of
from dpmanifolds.sums.stand_in import StandIn, find_stand_in
from dpmanifolds.sums.steps import is_wide
from dpmanifolds.sums.total import ExactSum, RecordSums
from dpmanifolds.sums.wrapped import WrappedMechanism

# about what a paid radius leaves of the error of tangent steps, for records that fill the ball as usual
_PAID = 0.85


def release_extrinsic_mean(request: Request, points: Any, group_by: Any) -> Release:
    """Plan, look, charge, draw; called by `private_mean(kind="extrinsic")`. One pass, whatever the manifold is."""
    body = body_of(request.domain, request.adjacency)
    records = request.read(points, group_by, once=True)
    # only the one pass that there is can tell how many records there are
    untold = request.guess is None and records.known_count is None
    n = 1 if untold else request.count_of(records)

    def chosen_for(count: int) -> tuple[Choice, WrappedMechanism]:
        facts = body.facts(count, adjacency=request.adjacency, unit=request.unit)
        found = choose(facts, request.budget, mechanism=request.mechanism, numerics=request.numerics)
        assert isinstance(found.mechanism, WrappedMechanism)
        if not body.has_room(found.mechanism):
            raise ScaleOutOfRangeError(
                f"points of {body.manifold!r} need a finer lattice than 64-bit integers leave for this budget: give a "
                "larger one, or fewer dimensions."
            )
        return found, found.mechanism

    chosen, law = chosen_for(n)
    total = _look(request, records, body, law)
    if untold:
        n, seen = total.rows, law
        refuse_empty(n)
        chosen, law = chosen_for(n)
        # noise is so many lattice steps, whatever n is
        assert law.exponent == seen.exponent
    warn_of_noise(request.domain, body.expected_error(law))
    made, noisy = _draw(request, body, law, total, n, chosen.reason)
    try:
        return replace(made, expected_error=body.expected_error(law, noisy))
    except np.linalg.LinAlgError:
        return replace(made, expected_error=None)


def find_extrinsic_mean(request: Request, n: int | None, rounds: int) -> StandIn | None:
    """The extrinsic mean where it stands in for the Fréchet mean; None where tangent steps are predicted to err less.

    By public facts alone: the ball, the budget and the number of records. Where a radius would be paid for, steps in
    the ball that it leaves err less than in the whole one.
    """
    if not n or request.steps != "auto" or not is_wide(request.domain):
        return None
    others = request.plan(n).predicted * (_PAID if rounds else 1.0)
    return find_stand_in(
        request.domain,
        others,
        n,
        request.budget,
        mechanism=request.mechanism,
        numerics=request.numerics,
        adjacency=request.adjacency,
        unit=request.unit,
    )


def release_stand_in(request: Request, records: RecordSums, stand_in: StandIn) -> Release:
    """Look, charge, draw; called by `private_mean`."""
    body, law = stand_in.body, stand_in.law
    n = request.count_of(records)
    total = _look(request, records, body, law)
    warn_of_noise(request.domain, stand_in.noise)
    made, noisy = _draw(request, body, law, total, n, stand_in.reason)
    try:
        return replace(made, expected_error=stand_in.tell_error(noisy, np.asarray(made.value)))
    except np.linalg.LinAlgError:
        return replace(made, expected_error=None)


def _look(request: Request, records: RecordSums, body: AmbientBody, law: WrappedMechanism) -> ExactSum:
    return request.refuse_malformed(records.total(body.contribution(law, body.center if request.mends else None)))


def _draw(
    request: Request, body: AmbientBody, law: WrappedMechanism, total: ExactSum, n: int, reason: str
) -> tuple[Release, np.ndarray]:
    """Charge, and let out the noisy mean of coordinates."""
    domain = request.domain
    request.spend("extrinsic mean", law.guarantee, n, mechanism=law.name, numerics=law.numerics, domain=domain)
    noisy = law.noisy_mean(total.integers, total.rows, request.account.rng)
    made = request.release(
        law,
        Draw(body.point_of(law, noisy), body.coordinates_of(law, noisy)),
        statistic="extrinsic mean",
        n=request.public_count(n),
        reason=reason,
        domain=domain,
    )
    return made, noisy
