"""The Fréchet mean of records in memory, as a solver finds it: what the papers' laws and the direct release stand on.

Each record is put exactly onto the manifold and into the domain, by rules that look at that record alone.
`Manifold.belongs` forgives 1e−6. What is forgiven must not reach the statistic: a matrix that is symmetric up to 1e−6
is one matrix to a routine that reads its lower triangle, another to one that reads the upper one, and the one that was
clipped need not be the one that is averaged. So a record is first replaced by a point of the manifold to the last bit.

>>> import numpy as np
>>> from dpmanifolds import SPD, Ball
>>> ball = Ball(SPD(2), np.eye(2), radius=1.0)
>>> hardly_positive = np.array([[1.0, 1.0 - 1e-16], [1.0 - 1e-16, 1.0]])
>>> mend_records(ball, np.stack([hardly_positive, np.diag([1.5, 1.0])])).tolist()
[[[1.0, 0.0], [0.0, 1.0]], [[1.5, 0.0], [0.0, 1.0]]]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, namespace, to_numpy
from dpmanifolds._points import count_records, host, join, leaves, like_parts, records_at, replace_rows, stack, taken
from dpmanifolds._validate import hide_records
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ConvergenceError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.records.blocks import check_block, record_array
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.records.source import source_of
from dpmanifolds.statistics import MeanResult, frechet_mean
from dpmanifolds.statistics.solver_error import solver_tolerance

# what LAPACK says of a matrix that it cannot factorise, in NumPy and in PyTorch
_REFUSALS = (np.linalg.LinAlgError, RuntimeError)


@hide_records()
def clipped_records(points: Any, domain: Domain, on_invalid: str) -> Array:
    """All records in memory, NumPy in double precision, on the manifold and in the domain, each by itself.

    Malformed ones raise, or become the centre.
    """
    manifold = domain.manifold
    if not manifold.has_parts:
        source = source_of(manifold, points)
        source.refuse_single_use()
        points = np.concatenate(source.reduce(partial(_formed, manifold), operator.add))
    records = host(record_array(manifold, manifold.take_form(points)))
    if on_invalid == "center":
        return mend_records(domain, records)
    check_block(manifold, records)
    with np.errstate(all="ignore"):
        return domain.clip(manifold.place(records))


def _formed(manifold: Manifold, _: int, __: int, block: Array) -> list[np.ndarray]:
    return [host(manifold.take_form(block))]


def _grouped(domain: Domain, records: Array, persons: Persons) -> Array:
    """One point per person: the Fréchet mean of that person's clipped records, which lies in the domain like them.

    Balls up to `max_radius` are convex, and so is every other domain here: whatever a person's records are, they become
    one point of the domain, and replacing a person replaces one point. Every theorem for n records holds for n persons.
    """
    parts = [taken(records, persons.rows(each)) for each in np.flatnonzero(persons.sizes > 1).tolist()]
    points = taken(records, persons.order[persons.starts[:-1][persons.sizes == 1]])
    if parts:
        means = stack(*(frechet_mean(domain.manifold, part).point for part in parts))
        places = np.argsort(np.argsort(persons.sizes > 1, kind="stable"))
        points = taken(join(points, means), places)
    return domain.clip(points)


@hide_records()
def by_person(domain: Domain, records: Array, group_by: Any) -> Array:
    """Clipped records as they are, or one point per person where `group_by` names the persons."""
    if group_by is None:
        return records
    return _grouped(domain, records, persons_of(group_by, domain.manifold.batch_shape(records)[0]))


@hide_records()
def computed_mean(domain: Domain, records: Array) -> MeanResult:
    """The Fréchet mean of clipped records to the public tolerance that the sensitivity pays for.

    Where the metric is flat it is a mean of coordinates at the centre, whose rounding is in units of the radius
    wherever the centre lies, and below that tolerance for all records.
    """
    manifold = domain.manifold
    if manifold.is_flat:
        center = host(domain.center)
        mean = np.mean(manifold.log_coordinates(center, records), axis=0)
        return MeanResult(manifold.move(center, mean), 0.0, solver_tolerance(domain, len(records)) / 2, 1, True, True)
    result = frechet_mean(manifold, records)
    error = solver_tolerance(domain, manifold.batch_shape(records)[0]) / 2
    if result.error_bound > error or not (manifold.is_hadamard or is_near(domain, result.point, error)):
        raise ConvergenceError(
            "the mean was not found to the public tolerance, and nothing was released. Use double precision or a "
            "smaller ball."
        )
    return result


def mend_records(domain: Domain, records: Array) -> Array:
    """Records placed and clipped; the public centre instead of those that are malformed.

    Malformed is a record with a number that is not finite, that does not lie on the manifold, whose decomposition
    fails (a matrix so close to singular that LAPACK refuses it), or whose clipped point is not finite. Whether it is
    depends on nothing but that record, so neighbours stay neighbours and no data set makes this fail.
    """
    manifold = domain.manifold

    def rule(block: Array) -> Array:
        tame = _replaced(block, domain.center, ~_finite(block))
        with np.errstate(all="ignore"):
            usable = to_numpy(manifold.belongs(tame))
            clipped = domain.clip(manifold.place(_replaced(tame, domain.center, ~usable)))
        return _replaced(clipped, domain.center, ~_finite(clipped))

    return _apart(rule, records, domain.center)


def is_near(domain: Domain, point: Array, error: float) -> bool:
    """Whether a stationary point within `error` of this one can only be the mean of records of the domain.

    The mean of records at the edge lies at the edge, and its computed position may be outside by the error. That is as
    good while the ball enlarged by it is one where stationary points are unique; without this room a small ball
    would be left by rounding alone, and the refusal would tell that records crowd at its edge.
    """
    if bool(domain.contains(point)):
        return True
    distance = float(to_numpy(domain.manifold.dist(like_parts(domain.center, point), point)))
    return distance <= domain.radius + error and domain.radius + 2 * error < domain.manifold.max_radius


def _apart(rule: Callable[[Array], Array], records: Array, center: Array) -> Array:
    """rule(records), by halves where it raises; a record for which it raises alone becomes the centre."""
    try:
        return rule(records)
    except _REFUSALS:
        count = count_records(records)
        if count == 1:
            return _replaced(records, center, np.ones(1, dtype=bool))
    middle = count // 2
    return join(
        _apart(rule, records_at(records, slice(None, middle)), center),
        _apart(rule, records_at(records, slice(middle, None)), center),
    )


def _finite(records: Array) -> np.ndarray:
    """Which records hold finite numbers only."""
    count = count_records(records)
    finite = np.ones(count, dtype=bool)
    for leaf in leaves(records):
        finite &= np.isfinite(to_numpy(leaf)).reshape(count, -1).all(axis=1)
    return finite


def _replaced(records: Array, center: Array, rows: np.ndarray) -> Array:
    if not rows.any():
        return records
    return replace_rows(records, like_parts(center, records), namespace(*leaves(records)).asarray(rows))
