"""Argument checks in one voice: what was given, what is allowed, what to do; and no word of a record."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmanifolds._arrays import Array, as_array, holds_complex, plain_numpy
from dpmanifolds.errors import ArgumentError, DPManifoldsError

_LARGEST_INTEGER = 2**63 - 1
_LONGEST_TEXT = 80


def shown(value: Any) -> str:
    """A wrong argument in an error: a number, a short text or an object of ours as it is, of others only the type.

    >>> shown("poison"), shown(3), shown([1.5, 2.5])
    ("'poison'", '3', 'an object of type list')
    """
    plain = value is None or isinstance(value, bool | int | float | complex | str | np.number)
    if type(value).__module__.split(".")[0] == "dpmanifolds" or (plain and len(repr(value)) <= _LONGEST_TEXT):
        return repr(value)
    return f"an object of type {type(value).__name__}"


@contextmanager
def hide_records() -> Iterator[None]:
    """While records are read, errors that are not ours become one with their kind alone: they may quote a record.

    PyTorch numbers the matrix of a batch that it cannot factorise, NumPy prints the text that is no number. What a hard
    record does to floating point is not told either: NumPy warns of a signalling NaN that is only read.

    >>> with hide_records():
    ...     float("86420 years")
    Traceback (most recent call last):
    ...
    dpmanifolds.errors.DPManifoldsError: the records could not be processed (ValueError); what was said is left out, as
    it may quote a record. Check them with dpmanifolds.validate.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (DPManifoldsError, MemoryError):
        raise
    except Exception as error:
        raise DPManifoldsError(
            f"the records could not be processed ({type(error).__name__}); what was said is left out, as it may quote "
            "a record. Check them with dpmanifolds.validate."
        ) from None


def positive_integer(name: str, value: Any, *, at_least: int = 1) -> int:
    """`value` as an int, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"must be a whole number of at least {at_least}; got {shown(value)}.", argument=name
        ) from None
    if number < at_least:
        raise ArgumentError(f"must be at least {at_least}; got {number}.", argument=name)
    if number > _LARGEST_INTEGER:
        raise ArgumentError(f"must be at most 2^63 − 1; got a number of {number.bit_length()} bits.", argument=name)
    return number


def auto_or_integer(name: str, value: Any, *, at_least: int = 1) -> int | str:
    """`value` if it is "auto", else as an int, or an error that names the argument.

    >>> auto_or_integer("steps", "auto"), auto_or_integer("steps", 3)
    ('auto', 3)
    """
    if isinstance(value, str):
        if value == "auto":
            return value
        raise ArgumentError(f"must be 'auto' or a whole number of at least {at_least}; got {value!r}.", argument=name)
    return positive_integer(name, value, at_least=at_least)


def as_float(name: str, value: Any, allowed: str) -> float:
    """`value` as a float, or an error that says what is allowed."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be a number {allowed}; got {shown(value)}.", argument=name) from None


def positive_number(name: str, value: Any) -> float:
    """`value` as a finite float above zero, or an error that names the argument."""
    number = as_float(name, value, "above 0")
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(f"must be finite and above 0; got {number}.", argument=name)
    return number


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of `allowed`, or an error that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"must be one of {', '.join(map(repr, allowed))}; got {shown(value)}.", argument=name)
    return str(value)


def text(name: str, value: Any, meaning: str = "a text that is not empty") -> str:
    """`value` if it is a text that says something, or an error that says what it stands for."""
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"must be {meaning}; got {shown(value)}.", argument=name)
    return value


def negative_number(name: str, value: Any) -> float:
    """`value` as a finite float below zero, or an error that names the argument."""
    number = as_float(name, value, "below 0")
    if not (math.isfinite(number) and number < 0):
        raise ArgumentError(f"must be finite and below 0; got {number}.", argument=name)
    return number


def probability(name: str, value: Any) -> float:
    """`value` as a float strictly between 0 and 1, or an error that names the argument."""
    number = as_float(name, value, "strictly between 0 and 1")
    if not 0 < number < 1:
        raise ArgumentError(
            f"must lie strictly between 0 and 1; got {number}. Choose {name} far below 1/n, for instance 1e-6.",
            argument=name,
        )
    return number


def non_negative_epsilons(epsilon: Any) -> np.ndarray:
    """`epsilon` as an array of numbers of at least 0 (infinity allowed), or an error."""
    try:
        values = np.asarray(epsilon, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"must be a number or an array of numbers; got {epsilon!r}.", argument="epsilon") from None
    if not np.all(values >= 0):
        raise ArgumentError(f"must be at least 0; got {epsilon!r}.", argument="epsilon")
    return values


def refuse_empty(count: int, name: str = "points") -> None:
    """An error where there is no record at all."""
    if count == 0:
        raise ArgumentError("is empty: at least one record is needed.", argument=name)


def numeric_array(name: str, value: Any) -> Array:
    """`value` as an array of floating-point or complex numbers, or an error that names the argument."""
    try:
        return as_array(value)
    except (TypeError, ValueError, OverflowError):
        raise _no_array(name, value) from None


def _no_array(name: str, value: Any) -> ArgumentError:
    return ArgumentError(
        f"must be an array of numbers (NumPy, PyTorch, JAX or CuPy); got {type(value).__name__}. "
        "Turn lists of unequal length, strings, objects or generators into one array first.",
        argument=name,
    )


def record_numbers(name: str, records: Any, shape: tuple[int, ...] | None = None, *, of_complex: bool = False) -> Array:
    """Records as an array of numbers, each entry looked at on its own: what is no number becomes NaN.

    Arrays of numbers stay as they are. In lists, tables and arrays of objects an odd entry (None, a text, a complex
    number among real ones) would change the type of all others, or make NumPy refuse: it becomes NaN, and so does all
    of a record that has not the `shape` of one, where that is known. A list whose records all have one shape is an
    array of that shape.

    >>> record_numbers("points", [[1, 2.5], [None, 3], [4]], (2,)).tolist()
    [[1.0, 2.5], [nan, 3.0], [nan, nan]]
    """
    records = fill_masked(records)
    if has_one_type(records, of_complex=of_complex):
        return numeric_array(name, records)
    entries = _objects(records)
    if entries is None:
        return numeric_array(name, records)
    if shape is None or entries.shape[1:] == shape:
        return _each_number(entries, of_complex)
    return each_record(records, shape, of_complex=of_complex)


def fill_masked(records: Any) -> Any:
    """Records with NaN, or None among objects, for what masked arrays hold back, inside of lists too.

    NumPy would take what is behind a mask, and warn of a masked entry of a list: of one record.

    >>> fill_masked([[1.0, np.ma.masked], np.ma.masked_array([1.0, 2.0], mask=[True, False])])
    [[1.0, nan], array([nan,  2.])]
    """
    if isinstance(records, list | tuple):
        return [fill_masked(record) for record in records]
    if records is np.ma.masked:
        return math.nan
    return plain_numpy(records) if isinstance(records, np.ma.MaskedArray) else records


def real_numbers(name: str, array: Array) -> Array:
    """The array, or an error if it holds complex numbers: its type is public."""
    if holds_complex(array):
        raise ArgumentError("must hold real numbers; got complex ones. Take their real part first.", argument=name)
    return array


def each_record(records: Any, shape: tuple[int, ...], *, of_complex: bool = False) -> np.ndarray:
    """Records of this shape (n, *shape), each looked at by itself; NaN for those that have another one.

    >>> each_record([[[1, 0], [0, 1]], [[1, 0], None], [[1, 0], [0]]], (2, 2))[:, 0, 0].tolist()
    [1.0, nan, nan]
    """
    rows = records if isinstance(records, list | tuple) else _objects(records)
    if rows is None:
        raise _no_array("points", records)
    made = np.full((len(rows), *shape), math.nan, dtype=np.complex128 if of_complex else np.float64)
    for number, record in enumerate(rows):
        # what one odd record made of the array that it is in says nothing about this one
        row = _objects(record.tolist() if isinstance(record, np.ndarray) else record)
        if row is not None and row.shape in (shape, (1, *shape)):
            made[number] = _each_number(row, of_complex).reshape(shape)
    return made


def has_one_type(records: Any, *, of_complex: bool = False) -> bool:
    """Whether records are numbers of one type: an array, or a list that NumPy makes one of, entry by entry."""
    dtype = getattr(records, "dtype", None)
    if dtype is not None:
        return getattr(dtype, "kind", "") != "O"
    try:
        return len(records) > 0 and np.asarray(records).dtype.kind in ("biufc" if of_complex else "biuf")
    except Exception:
        return False


def _objects(value: Any) -> np.ndarray | None:
    """An array of Python's own objects, as many axes as there are; None of what has no entries."""
    if isinstance(value, str | bytes | dict | set | frozenset) or not hasattr(value, "__len__"):
        return None
    try:
        return np.asarray(value, dtype=object)
    except Exception:
        rows = np.empty(len(value), dtype=object)
        # one by one: together NumPy asks each of them to be an array, which one may refuse
        for number, row in enumerate(value):
            rows[number] = row
        return rows


def _each_number(entries: np.ndarray, of_complex: bool) -> np.ndarray:
    kind: Any = np.complex128 if of_complex else np.float64
    numbers = [_number(entry, of_complex) for entry in entries.ravel().tolist()]
    return np.array(numbers, dtype=kind).reshape(entries.shape)


def _number(entry: Any, of_complex: bool) -> complex:
    # NumPy warns of an array that is taken for a number, or refuses it
    if isinstance(entry, str | bytes) or entry is np.ma.masked or (isinstance(entry, np.ndarray) and entry.ndim):
        return math.nan
    try:
        if isinstance(entry, complex | np.complexfloating):
            whole = complex(entry)
            return whole if of_complex else whole.real if whole.imag == 0 else math.nan
        return float(entry)
    except Exception:
        return math.nan


def number_between(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float within [low, high], or an error that names the argument."""
    number = as_float(name, value, f"from {low:g} to {high:g}")
    if not low <= number <= high:
        raise ArgumentError(f"must be from {low:g} to {high:g}; got {number}.", argument=name)
    return number


def checked_order(order: float) -> float:
    """The order of a moment, or an error if it is negative or not finite."""
    if not (math.isfinite(order) and order >= 0):
        raise ArgumentError(f"the order of a moment must be finite and at least 0; got {order}.")
    return float(order)


def checked_probabilities(probability: ArrayLike) -> np.ndarray:
    """`probability` as float64, or an error if one is outside [0, 1]."""
    given = np.asarray(probability, dtype=np.float64)
    if not np.all((given >= 0) & (given <= 1)):
        raise ArgumentError("a probability must lie between 0 and 1.")
    return given


def float_or_array(values: Any) -> Any:
    """A float where a number was asked for, else the array."""
    return float(values) if np.ndim(values) == 0 else values
