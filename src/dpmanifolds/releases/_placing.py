"""Each record put exactly onto the manifold and into the domain, by rules that look at that record alone.

>>> import numpy as np
>>> from dpmanifolds import SPD, Ball
>>> from dpmanifolds.releases._placing import mended
>>> ball = Ball(SPD(2), np.eye(2), radius=1.0)
>>> hardly_positive = np.array([[1.0, 1.0 - 1e-16], [1.0 - 1e-16, 1.0]])
>>> mended(ball, np.stack([hardly_positive, np.diag([1.5, 1.0])])).tolist()
[[[1.0, 0.0], [0.0, 1.0]], [[1.5, 0.0], [0.0, 1.0]]]

`Manifold.belongs` forgives 1e−6. What is forgiven must not reach the statistic: a matrix that is symmetric up to 1e−6
is one matrix to a routine that reads its lower triangle, another to one that reads the upper one, and the one that was
clipped need not be the one that is averaged. So a record is first replaced by a point of the manifold to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpmanifolds._arrays import Array, namespace, to_numpy
from dpmanifolds._points import count_records, join, leaves, like_parts, records_at, replace_rows
from dpmanifolds.domains import Domain

__all__ = ["is_near", "mended"]

# what LAPACK says of a matrix that it cannot factorise, in NumPy and in PyTorch
_REFUSALS = (np.linalg.LinAlgError, RuntimeError)


def mended(domain: Domain, records: Array) -> Array:
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
