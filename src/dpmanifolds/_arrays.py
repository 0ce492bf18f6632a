"""Array-API glue: the few functions that the standard lacks, accurate where the naive formula loses digits.

Everything takes and returns arrays of the caller's library (NumPy, PyTorch, JAX, CuPy, array-api-strict), in the
caller's dtype and on the caller's device.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

import array_api_compat.numpy
import numpy as np
from array_api_compat import (
    array_namespace,
    is_cupy_array,
    is_jax_array,
    is_numpy_array,
    is_numpy_namespace,
    is_torch_array,
)
from array_api_compat import device as device_of

Array: TypeAlias = Any
"""An array of any library that follows the array API standard."""


def namespace(*arrays: Array) -> Any:
    """The array-API namespace that all of `arrays` belong to."""
    for array in arrays:
        # functions of NumPy make numbers of arrays without axes
        if type(array) is not np.ndarray and type(array) is not np.float64:
            return array_namespace(*arrays)
    return array_api_compat.numpy


def is_numpy(array: Array) -> bool:
    """Whether `array` is an ordinary NumPy array (the case with threads and fast paths)."""
    return type(array) is np.ndarray or bool(is_numpy_array(array))


def is_traced(array: Array) -> bool:
    """Whether `array` is seen inside of a transformation (jit, vmap, grad), where its numbers may decide nothing."""
    if is_torch_array(array):
        return bool(sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(array))
    return is_jax_array(array) and isinstance(array, sys.modules["jax"].core.Tracer)


def holds_complex(array: Any) -> bool:
    """Whether `array` is an array of complex numbers."""
    dtype = getattr(array, "dtype", None)
    kind = getattr(dtype, "kind", None)
    return kind == "c" if kind is not None else "complex" in str(dtype)


def on_accelerator(array: Array) -> bool:
    """Whether an array of JAX, PyTorch or CuPy lives on another device than the processor, as far as can be told."""
    if is_jax_array(array):
        if is_traced(array):
            return False
        return bool(next(iter(array.devices())).platform != "cpu")
    return is_cupy_array(array) or bool(is_torch_array(array) and array.is_cuda)


def call_compiled(routine: Callable[..., Any], *arrays: Any) -> Any:
    """routine(*arrays), compiled as a whole where they are arrays of JAX, which else takes its steps one by one."""
    return _compiled(routine)(*arrays) if is_jax_array(arrays[0]) else routine(*arrays)


@cache
def _compiled(routine: Callable[..., Any]) -> Any:
    import jax

    return jax.jit(routine)


def has_doubles(array: Array) -> bool:
    """Whether the array's library computes in double precision: JAX has to be told."""
    return not is_jax_array(array) or bool(sys.modules["jax"].config.jax_enable_x64)


def as_array(value: Array) -> Array:
    """`value` itself if it is an array of a known library, else a NumPy array of floats.

    Lists and Python numbers become float64; integers are promoted to the library's float64; NumPy's
    half precision and extended precision become float64 (complex128).
    """
    try:
        xp = namespace(value)
    except TypeError:
        value = np.asarray(value)
        xp = namespace(value)
    if is_numpy_namespace(xp):
        value = plain_numpy(value)
        if value.dtype == object or value.dtype.kind not in "biufc":
            raise TypeError(f"an array of dtype {value.dtype} holds no numbers")
        if value.dtype == np.float16 or value.dtype.kind in "biu":
            return value.astype(np.float64)
        if value.dtype.itemsize > (16 if value.dtype.kind == "c" else 8):
            # nothing below computes in extended precision
            with np.errstate(over="ignore", under="ignore"):
                return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        return value
    if not xp.isdtype(value.dtype, ("real floating", "complex floating")):
        return xp.astype(value, xp.asarray(1.0, device=device_of(value)).dtype)
    return value


def plain_numpy(array: Any) -> np.ndarray:
    """A NumPy array of no subclass. What a masked array holds back is NaN, or None where there is no NaN, and not
    what is behind its mask.

    >>> plain_numpy(np.ma.masked_array([1, 2], mask=[False, True])).tolist()
    [1.0, nan]
    """
    if not isinstance(array, np.ma.MaskedArray):
        return np.asarray(array)
    entries, masked = np.ma.getdata(array), np.ma.getmaskarray(array)
    if entries.dtype.kind not in "fc":
        entries = entries.astype(np.float64 if entries.dtype.kind in "biu" else object)
    held_back = np.array(None if entries.dtype.kind == "O" else math.nan, dtype=entries.dtype)
    return np.where(masked, held_back, entries)


def to_numpy(array: Array) -> np.ndarray:
    """A NumPy view or host copy of `array`."""
    if is_numpy_array(array):
        return array
    if hasattr(array, "detach"):
        return cast(np.ndarray, array.detach().cpu().numpy())
    if hasattr(array, "get"):
        return cast(np.ndarray, array.get())
    return np.asarray(array)


def like(value: Any, reference: Array) -> Array:
    """`value` (NumPy or nested lists) as an array of `reference`'s library, device and precision.

    A complex value keeps being complex and a real one real; only the precision follows the reference.
    """
    xp = namespace(reference)
    value = np.asarray(value)
    single = reference.dtype in (xp.float32, xp.complex64)
    if value.dtype.kind == "c":
        dtype = xp.complex64 if single else xp.complex128
    else:
        dtype = xp.float32 if single else xp.float64
    return xp.asarray(value, dtype=dtype, device=device_of(reference))


def eps(array: Array) -> float:
    """Distance from 1 to the next number in `array`'s precision."""
    xp = namespace(array)
    return float(xp.finfo(array.dtype).eps)


def eye(size: int, reference: Array) -> Array:
    """The identity matrix in `reference`'s library, device and dtype."""
    xp = namespace(reference)
    return xp.eye(size, dtype=reference.dtype, device=device_of(reference))


def astype_complex(array: Array) -> Array:
    """`array` with a complex dtype of the same precision."""
    xp = namespace(array)
    if xp.isdtype(array.dtype, "complex floating"):
        return array
    return xp.astype(array, xp.complex64 if array.dtype == xp.float32 else xp.complex128)


def transpose(matrix: Array) -> Array:
    """Swap the last two axes."""
    xp = namespace(matrix)
    return xp.matrix_transpose(matrix)


def sym(matrix: Array) -> Array:
    """The symmetric part, symmetric to the last bit."""
    return matrix / 2 + transpose(matrix) / 2


def dot(a: Array, b: Array) -> Array:
    """Real Euclidean inner product over the last axis (the real part of a*b for complex vectors)."""
    xp = namespace(a, b)
    if is_torch_array(a):
        # its vecdot moves axes, which torch.func.vmap refuses
        return row_dot(a, b)
    product = xp.vecdot(a, b, axis=-1)
    return xp.real(product) if xp.isdtype(product.dtype, "complex floating") else product


def contract(a: Array, b: Array) -> Array:
    """Frobenius inner product over the last two axes."""
    xp = namespace(a, b)
    return xp.sum(a * b, axis=(-2, -1))


def row_dot(a: Array, b: Array) -> Array:
    """`dot` as a plain sum of products, which reads records side by side where they lie so in memory."""
    xp = namespace(a, b)
    if xp.isdtype(a.dtype, "complex floating"):
        return xp.sum(xp.real(a) * xp.real(b) + xp.imag(a) * xp.imag(b), axis=-1)
    return xp.sum(a * b, axis=-1)


def root(square: Array) -> Array:
    """√x; at 0 its derivative is 0, not infinite, so that the derivative of its square is right there."""
    if is_numpy(square):
        return np.sqrt(square)
    xp = namespace(square)
    zero = square == 0
    return xp.where(zero, xp.zeros_like(square), xp.sqrt(xp.where(zero, xp.ones_like(square), square)))


def row_norm(vector: Array) -> Array:
    """Euclidean norm over the last axis, the same way."""
    return root(row_dot(vector, vector))


def norm(vector: Array) -> Array:
    """Euclidean norm over the last axis."""
    return root(dot(vector, vector))


def largest_entry(matrix: Array) -> Array:
    """max |a_ij| over the last two axes; not finite where an entry is not."""
    if is_numpy(matrix):
        return np.max(np.abs(matrix), axis=(-2, -1))
    # in one go over memory
    return namespace(matrix).linalg.vector_norm(matrix, axis=(-2, -1), ord=math.inf)


def safe_divide(a: Array, b: Array, otherwise: float = 0.0) -> Array:
    """a/b, and `otherwise` where b is zero."""
    xp = namespace(a, b)
    zero = b == 0
    if xp is array_api_compat.numpy:
        return np.where(zero, otherwise, a / np.where(zero, 1.0, b))
    quotient = a / xp.where(zero, xp.ones_like(b), b)
    return xp.where(zero, xp.full_like(quotient, otherwise), quotient)


def clamp(array: Array, least: float, most: float) -> Array:
    """The array with every number cut to [least, most]."""
    # the standard's clip costs NumPy a copy more
    return np.clip(array, least, most) if is_numpy(array) else namespace(array).clip(array, least, most)


def gather(array: Array, positions: np.ndarray) -> Array:
    """The entries at `positions` along the last axis."""
    xp = namespace(array)
    return xp.take(array, xp.asarray(positions, device=device_of(array)), axis=-1)


def stack_last(*arrays: Array) -> Array:
    """Stack arrays of one shape along a new last axis."""
    xp = namespace(*arrays)
    return xp.stack(arrays, axis=-1)


def sinc(x: Array) -> Array:
    """sin(x)/x, and 1 at 0."""
    xp = namespace(x)
    return safe_divide(xp.sin(x), x, 1.0)


def sinhc(x: Array) -> Array:
    """sinh(x)/x, and 1 at 0."""
    xp = namespace(x)
    return safe_divide(xp.sinh(x), x, 1.0)


_SERIES_BELOW = 0.1
# log(sin x/x) = −Σ c_j x^(2j): ten terms reach rounding at 0.5, from where on log(1 + small) loses nothing
_LOG_SINC_BELOW = 0.5
_LOG_SINC_SERIES = (
    1 / 6,
    1 / 180,
    1 / 2835,
    1 / 37800,
    1 / 467775,
    691 / 3831077250,
    2 / 127702575,
    3617 / 2605132530000,
    43867 / 350813659321125,
    174611 / 15313294652906250,
)


def _even_series(x: Array, coefficients: tuple[float, ...]) -> Array:
    square = x * x
    total = square * 0 + coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * square + coefficient
    return total


def _near_and_far(x: Array, coefficients: tuple[float, ...], far: Any, below: float = _SERIES_BELOW) -> Array:
    """A power series in x² near 0, `far` elsewhere, with no invalid operation on either side."""
    xp = namespace(x)
    near = xp.abs(x) < below
    series = _even_series(xp.where(near, x, xp.zeros_like(x)), coefficients)
    return xp.where(near, series, far(xp.where(near, xp.ones_like(x), x)))


def log_sinc(x: Array) -> Array:
    """log(sin(x)/x) for |x| < π; minus infinity from there on (beyond the cut locus)."""

    def far(value: Array) -> Array:
        xp = namespace(value)
        value = xp.abs(value)
        inside = value < np.pi
        ratio = xp.sin(xp.where(inside, value, xp.ones_like(value))) / value
        return xp.where(inside, xp.log(ratio), xp.full_like(value, -np.inf))

    coefficients = (0.0, *(-c for c in _LOG_SINC_SERIES))
    return _near_and_far(x, coefficients, far, _LOG_SINC_BELOW)


def log_sinhc(x: Array) -> Array:
    """log(sinh(x)/x), without overflow for large x."""

    def far(value: Array) -> Array:
        xp = namespace(value)
        value = xp.abs(value)
        return value + xp.log1p(-xp.exp(-2 * value)) - xp.log(2 * value)

    coefficients = (0.0, *(c if j % 2 == 0 else -c for j, c in enumerate(_LOG_SINC_SERIES)))
    return _near_and_far(x, coefficients, far, _LOG_SINC_BELOW)


def x_cot_x(x: Array) -> Array:
    """x·cot(x), and 1 at 0: the smallest Hessian eigenvalue of half the squared distance on the unit sphere."""

    def far(value: Array) -> Array:
        return value / namespace(value).tan(value)

    return _near_and_far(x, (1.0, -1 / 3, -1 / 45, -2 / 945, -1 / 4725, -2 / 93555), far)


def x_coth_x(x: Array) -> Array:
    """x·coth(x), and 1 at 0."""

    def far(value: Array) -> Array:
        xp = namespace(value)
        return value / xp.tanh(value)

    return _near_and_far(x, (1.0, 1 / 3, -1 / 45, 2 / 945, -1 / 4725, 2 / 93555), far)


def curvature_factor(curvature: float, distance: Array) -> Array:
    """√κρ·cot(√κρ), or its hyperbolic sister: Hess ½ρ² across the direction to a record; held positive."""
    if curvature == 0:
        return namespace(distance).ones_like(distance)
    angle = distance / (1 / math.sqrt(abs(curvature)))
    return x_coth_x(angle) if curvature < 0 else x_cot_x(clamp(angle, 0.0, 1.5))


def bytes_per_record(array: Array) -> int:
    """Bytes of one record of an array, in any library; as much as in double precision, which it may be read in."""
    numbers: int = math.prod(array.shape[1:])
    return max(1, numbers * max(8, int(getattr(array.dtype, "itemsize", 8))))
