"""The custodian's own check of records against a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import to_numpy
from dpmanifolds._points import leaves, like_parts, on_host, taken
from dpmanifolds.domains.domain import Domain, check_domain
from dpmanifolds.errors import ArgumentError


@dataclass(frozen=True)
class ValidationReport:
    """What `validate` found. Private: it tells indices and distances of records.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=1.0)
    >>> report = dpm.validate(np.array([[0.5, 0.0], [3.0, 4.0]]), ball)
    >>> report.ok, report.outside, report.largest_distance
    (True, (1,), 5.0)
    """

    records: int
    not_finite: tuple[int, ...]
    off_manifold: tuple[int, ...]
    outside: tuple[int, ...]
    largest_distance: float

    @property
    def ok(self) -> bool:
        """Whether every record is usable as it is (records outside the domain will be clipped, which is fine)."""
        return not self.not_finite and not self.off_manifold

    def __str__(self) -> str:
        return (
            f"{self.records} records: {len(self.not_finite)} not finite, {len(self.off_manifold)} off the manifold, "
            f"{len(self.outside)} outside the domain (to be clipped); largest distance to the centre "
            f"{self.largest_distance:.4g}. This report is private: do not publish it."
        )


def validate(points: Any, domain: Domain) -> ValidationReport:
    """The custodian's own check of records against a domain: NOT private, it tells all.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean, validate
    >>> print(validate(np.array([[0.0], [9.0], [np.nan]]), Ball(Euclidean(1), [0.0], 2.0)))
    3 records: 1 not finite, 1 off the manifold, 1 outside the domain (to be clipped); largest distance to the
    centre 9. This report is private: do not publish it.
    """
    check_domain(domain)
    manifold = domain.manifold
    array = on_host(manifold.take_form(points))
    if len(manifold.batch_shape(array)) != 1:
        raise ArgumentError(
            f"must have one leading axis of records; got {manifold.batch_shape(array)}.", argument="points"
        )
    count = manifold.batch_shape(array)[0]
    finite = np.ones(count, dtype=bool)
    for leaf in leaves(array):
        finite &= np.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim)))
    usable = finite.copy()
    usable[finite] = to_numpy(manifold.belongs(taken(array, finite)))
    good = taken(array, usable)
    distance = to_numpy(manifold.dist(like_parts(domain.center, good), good))
    outside = np.flatnonzero(usable)[~to_numpy(domain.contains(good))]
    return ValidationReport(
        records=count,
        not_finite=tuple(np.flatnonzero(~finite).tolist()),
        off_manifold=tuple(np.flatnonzero(~usable).tolist()),
        outside=tuple(outside.tolist()),
        largest_distance=float(distance.max(initial=0.0)),
    )
