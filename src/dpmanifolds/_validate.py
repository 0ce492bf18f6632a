"""Argument checks in one voice: what was given, what is allowed, what to do."""

from __future__ import annotations

import math
import operator
from typing import Any

from dpmanifolds._arrays import Array, as_array
from dpmanifolds.errors import ArgumentError

__all__ = ["choice", "negative_number", "number_between", "numeric_array", "positive_integer", "positive_number"]

_LARGEST_INTEGER = 2**63 - 1


def positive_integer(name: str, value: Any, *, at_least: int = 1) -> int:
    """`value` as an int, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be a whole number of at least {at_least}; got {value!r}.") from None
    if number < at_least:
        raise ArgumentError(f"{name} must be at least {at_least}; got {number}.")
    if number > _LARGEST_INTEGER:
        raise ArgumentError(f"{name} must be at most 2^63 − 1; got a number of {number.bit_length()} bits.")
    return number


def positive_number(name: str, value: Any) -> float:
    """`value` as a finite float above zero, or an error that names the argument."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a number above 0; got {value!r}.") from None
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(f"{name} must be finite and above 0; got {number}.")
    return number


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is one of `allowed`, or an error that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return str(value)


def negative_number(name: str, value: Any) -> float:
    """`value` as a finite float below zero, or an error that names the argument."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a number below 0; got {value!r}.") from None
    if not (math.isfinite(number) and number < 0):
        raise ArgumentError(f"{name} must be finite and below 0; got {number}.")
    return number


def numeric_array(name: str, value: Any) -> Array:
    """`value` as an array of floating-point or complex numbers, or an error that names the argument."""
    try:
        return as_array(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name} must be an array of numbers (NumPy, PyTorch, JAX or CuPy); got {type(value).__name__}. "
            "Turn lists of unequal length, strings, objects or generators into one array first."
        ) from None


def number_between(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float within [low, high], or an error that names the argument."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.") from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} must be from {low:g} to {high:g}; got {number}.")
    return number
