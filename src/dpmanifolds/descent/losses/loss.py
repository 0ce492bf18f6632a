"""What a loss must bring to be descended privately: per-record Riemannian gradients in orthonormal coordinates.

>>> import numpy as np
>>> from dpmanifolds import Ball, SPD
>>> from dpmanifolds.descent.losses import FrechetMeanLoss
>>> loss = FrechetMeanLoss(Ball(SPD(2), np.eye(2), 1.0))
>>> loss.gradients(np.eye(2), np.array([[[2.0, 0.0], [0.0, 1.0]]])).round(6).tolist()
[[-0.693147, -0.0, -0.0]]

The mean loss is F(w) = (1/n)Σf(w, x_i). A step needs Σ over records of the gradients, each pulled to within C of a
public vector a(w), the `anchor` (zero unless the loss says otherwise), and made integers (`noisy_step`). One
record moves that sum by at most 2C, and takes part in it with at most C, in exact arithmetic. What a loss promises for
that: the row of a record is a function of that record and of public values alone, bit for bit, and no record makes it
raise. An error in computing a row costs nothing; a row that is not finite counts as zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpmanifolds._arrays import Array, like, namespace, to_numpy
from dpmanifolds._points import has_parts, in_double, leaves, like_parts, map_parts, replace_rows
from dpmanifolds._validate import record_numbers
from dpmanifolds.domains import Domain
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold


class Loss(ABC):
    """f(w, x) for w on `manifold` and one record x; a value that holds no records.

    >>> import numpy as np
    >>> from dpmanifolds import Euclidean
    >>> from dpmanifolds.descent.losses import Loss
    >>> class Offset(Loss):  # ½|w − x|²
    ...     manifold = Euclidean(2)
    ...
    ...     def value(self, w, records):
    ...         return float(np.mean(np.sum((w - records) ** 2, axis=-1)) / 2)
    ...
    ...     def gradients(self, w, records):
    ...         return w - records
    >>> Offset().gradients(np.zeros(2), np.array([[1.0, 0.0], [0.0, 1.0]])).sum(axis=0).tolist()
    [-1.0, -1.0]
    """

    manifold: Manifold
    """Where w lives."""

    statistic: str = "minimiser"
    """What a release of its minimum is called."""

    unit: str = "record"
    """What one record is, in the words of the guarantee."""

    record_manifold: Manifold | None = None
    """Where records live, if that is a manifold: they may then come in every form that a mean takes."""

    rules: tuple[str, ...] = ("all numbers must be finite, not NaN or inf",)
    """What a record must keep; `bring` counts them from 1."""

    any_company: bool = False
    """Whether the row of a record is the same, bit for bit, in any company and place among tiles of one shape. Where
    the number of rows can change (persons, add/remove) the records of other losses are worked on one by one."""

    @property
    def domain(self) -> Domain | None:
        """The public promise about where records live; None where there is none."""
        return None

    @property
    def name(self) -> str:
        """What ledgers and files of state call it."""
        return type(self).__name__

    @property
    def bound(self) -> float | None:
        """A proven C with ‖grad f(w, x) − a(w)‖ ≤ C for all w and prepared x: clipping there changes nothing."""
        return None

    @property
    def filler(self) -> Any:
        """A public record that keeps the rules, for malformed ones and to fill up tiles; None: there is none."""
        return None

    def form(self, records: Any) -> Array:
        """The records as arrays with one leading axis: shapes are checked, no number is."""
        if has_parts(records):
            shapes = [np.shape(part) for part in self.filler] if has_parts(self.filler) else []
            wanted = shapes if len(shapes) == len(records) else [None] * len(records)
            parts = tuple(record_numbers("records", *each) for each in zip(records, wanted, strict=True))
            if not parts or any(part.ndim == 0 or part.shape[0] != parts[0].shape[0] for part in parts):
                raise ArgumentError("records given as a tuple must be arrays with the same leading axis.")
            return in_double(parts)
        array = record_numbers("records", records, None if self.filler is None else np.shape(self.filler))
        if array.ndim == 0:
            raise ArgumentError("records must be an array with one leading axis of records; got a single number.")
        return in_double(array)

    def bring(self, block: Array) -> tuple[Array, Array]:
        """Formed records, each brought into the domain of the loss on its own, and the rule that each breaks (0: none).

        A record that breaks one is replaced by `filler`, where there is one.
        """
        broken = None
        for leaf in leaves(block):
            xp = namespace(leaf)
            bad = ~xp.all(xp.reshape(xp.isfinite(leaf), (leaf.shape[0], -1)), axis=-1)
            broken = bad if broken is None else broken | bad
        assert broken is not None
        if self.filler is not None:
            block = replace_rows(block, like_parts(self.filler, block), broken)
        return block, xp.astype(broken, xp.int64)

    def prepare(self, records: Any) -> Array:
        """The records as `gradients` and `value` take them; malformed ones raise an error that names none."""
        with np.errstate(all="ignore"):
            block, broken = self.bring(self.form(records))
        refuse_malformed(self, np.bincount(to_numpy(broken), minlength=1 + len(self.rules)))
        return block

    def for_records(self, reference: Array) -> Loss:
        """The same loss for records like this one."""
        return self

    def anchor(self, w: Array) -> np.ndarray | None:
        """The public vector a(w) around which gradients are clipped, in coordinates; None for zero."""
        return None

    @abstractmethod
    def value(self, w: Array, records: Array) -> float:
        """F(w) over these records. Not private."""

    @abstractmethod
    def gradients(self, w: Array, records: Array) -> Array:
        """Coordinates (n, dim) of the Riemannian gradients at w, one row per record. Not private."""

    def at(self, w: Array) -> Callable[[Array], Array]:
        """`gradients` at one public point, with what all records need there worked out once."""
        return partial(self.gradients, w)


class OuterLoss(Loss):
    """A loss whose Euclidean gradient is a bᵀ with short vectors a and b for each record: no row is ever formed."""

    shape: tuple[int, int]
    """Of a bᵀ, which is a point as a matrix."""

    @abstractmethod
    def factors(self, w: np.ndarray, records: Array, product: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
        """a (n, shape[0]) and b (n, shape[1]) of each record; rows are multiplied by matrices by `product`."""

    @abstractmethod
    def coordinates(self, w: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """Coordinates (dim,) of the orthogonal projection of a matrix to where gradients live."""


def refuse_malformed(loss: Loss, counts: np.ndarray) -> None:
    """An error that names a broken rule and no record, outside of every promise; `counts` by number of the rule."""
    for number, rule in enumerate(loss.rules, start=1):
        if counts[number]:
            where = "" if loss.record_manifold is None else f" on {loss.record_manifold!r}"
            raise NotOnManifoldError(
                f"records must be well-formed{where}, and at least one is not: {rule}. Check them with "
                "dpmanifolds.validate; repair, project or drop such records."
            )


def clip_factors(lengths: Array, clip: float) -> Array:
    """min(1, C/length): rows times this have length ≤ C; not a number where the length is none."""
    xp = namespace(lengths)
    return clip / xp.maximum(lengths, xp.full_like(lengths, clip))


def row_product(rows: Array, matrix: Array) -> Array:
    """rows @ matrix (d, e) or (d,), each row on its own: a large product rounds a row by its place among others."""
    if matrix.ndim == 1:
        return row_product(rows, matrix[:, None])[:, 0]
    return (rows[:, None, :] @ matrix)[:, 0, :]


def like_point(w: Any, records: Array) -> Any:
    """The public point w in the library, device and precision of the records."""
    reference = leaves(records)[0]
    return map_parts(lambda part: like(part, reference), w)
