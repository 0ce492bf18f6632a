"""A user's own manifold-valued summary, with a user's own sensitivity."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, to_numpy
from dpmanifolds._points import host, leaves
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.privacy import Budget, Sensitivity
from dpmanifolds.releases.release import Release
from dpmanifolds.releases.statistic import check_domain, check_terms, warn_of_noise
from dpmanifolds.sums import choose, value_facts


def privatize(
    value: Any,
    domain: Domain,
    sensitivity: float | Sensitivity,
    budget: Budget,
    *,
    mechanism: str = "auto",
    numerics: str = "safe",
    adjacency: str = "replace-one",
    unit: str = "record",
    statistic: str = "value",
    ledger: Any = None,
    dataset: str | None = None,
    rng: Any = None,
) -> Release:
    """`value`, one point of the domain, with noise for a statistic that moves by at most `sensitivity`.

    The sensitivity is a geodesic distance, and its proof is yours; the release says so. It must hold for values inside
    of the domain: where the curvature is at most 0 a value outside is projected onto a ball, which never makes it
    larger. Elsewhere, and in domains that are no balls, it is refused; that a value was refused is outside of the
    promise, so clip before you bound the sensitivity.

    >>> import dpmanifolds as dpm
    >>> import numpy as np
    >>> line = dpm.Ball.from_bounds(dpm.Euclidean(1), [0.0], [120.0])
    >>> release = dpm.privatize(np.array([37.5]), line, sensitivity=0.5, budget=dpm.PureDP(1.0))
    >>> release.sensitivity.theorem, round(release.expected_error.mean, 6)
    ('stated by the user', 0.5)
    """
    check_domain(domain)
    terms = check_terms(budget, unit=unit, ledger=ledger, dataset=dataset, rng=rng)
    point = _point_of(domain, value)
    facts = value_facts(domain, sensitivity, adjacency=adjacency, unit=terms.unit)
    chosen = choose(facts, budget, mechanism=mechanism, numerics=numerics)
    law, account = chosen.mechanism, terms.account
    warn_of_noise(domain, law.expected_error)
    account.spend(statistic, law.guarantee, mechanism=law.name, numerics=law.numerics, domain=domain)
    return terms.release(law, law.draw(point, rng=account.rng), statistic=statistic, n=None, reason=chosen.reason)


def _point_of(domain: Domain, value: Any) -> Any:
    """One point of the domain, or an error that says nothing about the value."""
    manifold = domain.manifold
    point = manifold.as_points(value, "value")
    if manifold.batch_shape(point) != ():
        raise ArgumentError(
            f"value must be one point of {manifold!r}; got leading axes {manifold.batch_shape(point)}. For several, "
            "use Power(manifold, m), one ball and one sensitivity."
        )
    finite = all(np.all(np.isfinite(to_numpy(leaf))) for leaf in leaves(point))
    if not finite or not bool(manifold.belongs(point)):
        raise NotOnManifoldError(f"value must lie on {manifold!r}, and it does not.")
    point = manifold.place(host(point))
    if isinstance(domain, Ball) and manifold.is_hadamard:
        return _nearest(domain, point)
    if not bool(domain.contains(point)):
        raise NotOnManifoldError(
            "value must lie in the domain, and it does not: on this manifold projecting it could break the "
            "sensitivity. Clip before you bound the sensitivity, or promise a larger ball."
        )
    return point


def _nearest(ball: Ball, point: Array) -> Array:
    """The nearest point of a ball of a Hadamard manifold, a map that brings no two points farther apart.

    `Ball.clip` is not that: it goes a hair inside of the edge, and two values on both sides of it would part.
    """
    center = host(ball.center)
    distance = float(ball.manifold.dist(center, point))
    return point if distance <= ball.radius else ball.manifold.geodesic(center, point, ball.radius / distance)
