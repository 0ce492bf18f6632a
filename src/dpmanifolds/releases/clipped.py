"""The private share of records that a ball clips: whether a public ball serves, inside of the promise."""

from __future__ import annotations

from typing import Any

from dpmanifolds._arrays import Array, eps, namespace
from dpmanifolds.domains import Ball
from dpmanifolds.privacy import Budget
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import check_request, domain_first
from dpmanifolds.sums.contribution import OnLine


class BeyondContribution(OnLine):
    """1 for a record farther than the radius from the base, −1 for others; one out of reach counts as farther."""

    def measured(self, rows: Array) -> Array:
        xp = namespace(rows)
        length = xp.sqrt(xp.sum(rows * rows, axis=-1))
        inside = length <= self.radius * (1 + 64 * eps(rows))
        return xp.where(inside, -xp.ones_like(length), xp.ones_like(length))


@domain_first
def private_clipped_share(
    points: Any,
    domain: Ball,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    group_by: Any = None,
    adjacency: str = "replace-one",
    n_guess: int | None = None,
    on_invalid: str = "raise",
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """The share of records that lie outside of the ball, and would be clipped: a number from 0 to 1, with noise.

    A record's bit depends on that record and the ball alone, so that replacing one moves the share by at most 1/n
    (docs/proofs/sums.md, B1, for the interval [0, 1]); of a person with several records it is the average. A small
    budget will do: at ε = 0.1 and n = 1000 the error is 0.01. Choose the ball first; a ball that is chosen by this
    answer is paid for, one chosen by looking at records is not. Arguments as in `private_mean`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.SPD(3), np.eye(3), radius=3.0)
    >>> in_other_units = 1e-3 * dpm.SPD(3).random_point(1000, rng=0)
    >>> release = dpm.private_clipped_share(in_other_units, ball, dpm.PureDP(0.1))
    >>> release.value > 0.8
    True
    """
    request = check_request(
        domain,
        budget,
        mechanism=mechanism,
        numerics=numerics,
        ball_for="the share of clipped records",
        group_by=group_by,
        adjacency=adjacency,
        n_guess=n_guess,
        on_invalid=on_invalid,
        unit=unit,
        ledger=ledger,
        dataset=dataset,
        rng=rng,
    )
    records = request.read(points, group_by)
    n = request.count_of(records)
    law = request.choose(request.number_facts(0.5, n), request.budget)
    assert law.exponent is not None
    walk = request.walk()
    rule = BeyondContribution(
        domain.manifold, walk.center, request.substitute, radius=domain.radius, exponent=law.exponent
    )
    total = request.refuse_malformed(records.total(rule))
    request.spend("clipped share", law.guarantee, n, mechanism=law.name, numerics=law.numerics, domain=domain)
    return request.release(
        law,
        request.draw_number(law, total, 0.5, most=1.0),
        statistic="clipped share",
        n=request.public_count(n),
        reason="smallest expected error from public facts",
        domain=domain,
    )
