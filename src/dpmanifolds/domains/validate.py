"""The custodian's own check of records against a domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._arrays import to_numpy
from dpmanifolds._points import leaves, like_parts, on_host, taken
from dpmanifolds.domains.domain import Domain, check_domain
from dpmanifolds.domains.typical import guess_unit
from dpmanifolds.errors import ArgumentError

_EDGE, _MANY = 0.9, 0.2


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
    at_edge: int = 0
    """How many lie inside, in the outer tenth of the radius."""
    remark: str = ""
    """What units the records look like, where many are outside."""

    @property
    def ok(self) -> bool:
        """Whether every record is usable as it is (records outside the domain will be clipped, which is fine)."""
        return not self.not_finite and not self.off_manifold

    @property
    def inside(self) -> int:
        """How many lie in the domain."""
        return self.records - len(self.off_manifold) - len(self.outside)

    def __str__(self) -> str:
        return (
            f"{self.records} records: {self.inside} inside the domain, {self.at_edge} of them at its edge, "
            f"{len(self.outside)} outside (to be clipped), {len(self.not_finite)} not finite, "
            f"{len(self.off_manifold)} off the manifold; largest distance to the centre {self.largest_distance:.4g}."
            f"{self.remark and ' '}{self.remark} This report is private: do not publish it, and choose no ball by it."
        )


def validate(points: Any, domain: Domain, *, ledger: Any = None, dataset: str | None = None) -> ValidationReport:
    """The custodian's own check of records against a domain: NOT private, it tells all.

    How many records lie inside, at the edge (in the outer tenth of the radius) and outside, and where many do, which
    unit they may be in. A ball that is chosen after looking leaks: with a `ledger`, the domain is entered before the
    look, and a release of that `dataset` in another domain is marked and warned of. `private_clipped_share` is the
    same question inside of the promise.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Euclidean, validate
    >>> print(validate(np.array([[0.0], [9.0], [np.nan]]), Ball(Euclidean(1), [0.0], 2.0)))
    3 records: 1 inside the domain, 0 of them at its edge, 1 outside (to be clipped), 1 not finite, 1 off the manifold;
    largest distance to the centre 9. Many are outside: is the unit the right one? This report is private: do not
    publish it, and choose no ball by it.
    """
    check_domain(domain)
    manifold = domain.manifold
    array = on_host(manifold.take_form(points))
    if len(manifold.batch_shape(array)) != 1:
        raise ArgumentError(
            f"must have one leading axis of records; got {manifold.batch_shape(array)}.", argument="points"
        )
    if (ledger is None) != (dataset is None):
        raise ArgumentError("ledger= and dataset= go together: an account of a ledger.")
    if ledger is not None:
        if not hasattr(ledger, "note_look"):
            raise ArgumentError(f"must be a Ledger; got {type(ledger).__name__}.", argument="ledger")
        ledger.note_look(dataset, domain)
    count = manifold.batch_shape(array)[0]
    finite = np.ones(count, dtype=bool)
    for leaf in leaves(array):
        finite &= np.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim)))
    usable = finite.copy()
    usable[finite] = to_numpy(manifold.belongs(taken(array, finite)))
    good = taken(array, usable)
    distance = to_numpy(manifold.dist(like_parts(domain.center, good), good))
    outside = np.flatnonzero(usable)[~to_numpy(domain.contains(good))]
    near = (distance > _EDGE * domain.radius) & to_numpy(domain.contains(good))
    remark = ""
    if outside.size > _MANY * count:
        remark = guess_unit(manifold, domain.center, good) or "Many are outside: is the unit the right one?"
    return ValidationReport(
        records=count,
        not_finite=tuple(np.flatnonzero(~finite).tolist()),
        off_manifold=tuple(np.flatnonzero(~usable).tolist()),
        outside=tuple(outside.tolist()),
        largest_distance=float(distance.max(initial=0.0)),
        at_edge=int(np.count_nonzero(near)),
        remark=remark,
    )
