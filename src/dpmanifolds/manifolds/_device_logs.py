"""Logarithms of many positive definite matrices on a device: one inverse and 11 products for each matrix.

No routine looks at more than one matrix, and none raises. Array code for PyTorch, JAX and CuPy.

>>> import numpy as np
>>> logs = device_logs(np.array([np.diag([1.0, 2.0, 3.0, 4.0])]))
>>> bool(np.allclose(logs[0], np.diag(np.log([1.0, 2.0, 3.0, 4.0])), atol=1e-10))
True
"""

from __future__ import annotations

import math
import operator
from functools import cache, reduce
from typing import Any

import numpy as np
from array_api_compat import device as device_of
from array_api_compat import is_jax_array, is_torch_array

from dpmanifolds._arrays import Array, call_compiled, eye, is_traced, namespace, on_accelerator, to_numpy, transpose
from dpmanifolds.manifolds._logarithms import Reach, coefficient_table, matrix_logs

# a device takes less accuracy from few products, up to 1e−10
DEVICE_REACH = Reach(5, 0.8, 0.3)
# matrices are inverted by halves down to this size
_LARGEST_SWEPT = 8


def device_logs(matrices: Array, whitener: Array | None = None) -> Array:
    """log MXMᵀ for each X of (n, k, k) on a device, up to 1e−10 of it; NaN where X is not positive.

    As `matrix_logs` has it from products, of degree 24: one inverse and 11 products, the same for every matrix, each in
    its own place: libraries may work on odd places by other code. Those out of their reach, each by its own ‖Y²‖, go to
    the host, which takes them one by one: on a device they would stand in places that depend on how many there are. No
    routine looks at more than one matrix, and none raises.
    """
    if is_torch_array(matrices):
        matrices = matrices.contiguous()
    # tried before anything is compiled that uses them
    _kernels(matrices)
    logs, right = call_compiled(_by_products, matrices, whitener)
    hard = np.flatnonzero(~to_numpy(right))
    if not hard.size:
        return logs
    # JAX compiles something for every number of them: up to a power of two the first one is repeated
    rows = np.concatenate([hard, np.full((1 << (hard.size - 1).bit_length()) - hard.size, hard[0])])
    xp = namespace(matrices)
    at = xp.asarray(rows, device=device_of(matrices))
    with np.errstate(all="ignore"):
        found = to_numpy(xp.take(matrices, at, axis=0))[: hard.size]
        if whitener is not None:
            matrix = to_numpy(whitener)
            found = matrix @ found @ matrix.T
        found = matrix_logs(found)[0]
    values = xp.asarray(found[np.searchsorted(hard, rows)], device=device_of(matrices))
    if is_jax_array(logs):
        return logs.at[at].set(values)
    logs[at] = values
    return logs


def _whitened(matrices: Array, whitener: Array | None) -> Array:
    """MXMᵀ by products of one matrix each: a large one for all of them may be cut anywhere."""
    if whitener is None:
        return matrices
    each = namespace(matrices).broadcast_to(whitener, matrices.shape)
    return _product(_product(each, matrices), transpose(each))


def _by_products(matrices: Array, whitener: Array | None = None) -> tuple[Array, Array]:
    """Logarithms, and for which matrices they are right: (tr Y⁴⁰)^{1/20} is above ‖Y²‖, by a root of k at most."""
    xp = namespace(matrices)
    matrices = _whitened(matrices, whitener)
    k = matrices.shape[-1]
    one, (blocks, square, middle) = eye(k, matrices), DEVICE_REACH
    center = (middle / k) * xp.linalg.trace(matrices)
    # an entry that is not finite spoils its own matrix, which is not right then
    usable = (center > 0) & (center < math.inf)
    center = xp.where(usable, center, xp.ones_like(center))[:, None, None]
    moved = _plus_diagonal(xp.where(usable[:, None, None], matrices, one), center, one)
    cayley = _plus_diagonal(_scaled(_inverses(moved), -2 * center), 1.0, one)
    held, powers = _room(blocks, cayley)
    powers[0] = _plus_diagonal(_scaled(_product(cayley, cayley, powers[0]), 2 / square), -1.0, one)
    for number in range(2, blocks + 1):
        a, b = powers[number // 2 - 1], powers[number - number // 2 - 1]
        powers[number - 1] = _product(a, b, powers[number - 1])
    *parts, tenth = _combinations(*coefficient_table(DEVICE_REACH), one, powers, held)
    largest = xp.linalg.vector_norm(_product(tenth, tenth), axis=(-2, -1)) ** (1 / 10)
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = _product_plus(total, powers[-1], part)
    return _plus_diagonal(_product(cayley, total), xp.log(center), one), usable & (largest <= square)


def _inverses(matrices: Array) -> Array:
    """Of the positive ones, by halves: with A⁻¹ and the complement C = D − BᵀA⁻¹B of [A B; Bᵀ D].

    Batched routines for inverses take as long as ten products and more.
    """
    k = matrices.shape[-1]
    kernels = _kernels(matrices)
    if kernels is not None and k <= kernels.LARGEST_SWEPT:
        return kernels.swept_inverses(matrices)
    if k <= _LARGEST_SWEPT:
        return _swept(matrices)
    xp, h = namespace(matrices), k // 2
    top = _inverses(matrices[:, :h, :h])
    leading = top @ matrices[:, :h, h:]
    last = _inverses(matrices[:, h:, h:] - matrices[:, h:, :h] @ leading)
    trailing = leading @ last
    upper = xp.concat([top + trailing @ transpose(leading), -trailing], axis=-1)
    return xp.concat([upper, xp.concat([-transpose(trailing), last], axis=-1)], axis=-2)


def _swept(matrices: Array) -> Array:
    """By Gauss and Jordan, as many passes over the matrices as they have rows."""
    xp = namespace(matrices)
    places = xp.arange(matrices.shape[-1], device=device_of(matrices))

    def without(pivot: Any, held: Array) -> Array:
        here = places[pivot] == places
        across, down = here[None, :, None], here[None, None, :]
        at = places[pivot][None]
        row, column = xp.take(held, at, axis=1), xp.take(held, at, axis=2)
        share = 1 / xp.take(row, at, axis=2)
        edge = xp.where(across & down, share, xp.where(across, row * share, -column * share))
        return xp.where(across | down, edge, held - column * (row * share))

    if is_jax_array(matrices):
        import jax

        return jax.lax.fori_loop(0, len(places), without, matrices)
    return reduce(lambda held, pivot: without(pivot, held), range(len(places)), matrices)


@cache
def _working_kernels(library: str) -> Any:
    """Those of a library, tried once on public matrices; None where they cannot be compiled or run."""
    kernels: Any
    try:
        if library == "torch":
            import torch

            from dpmanifolds.manifolds import _triton_products

            kernels = _triton_products
            ones = torch.eye(2, dtype=torch.float64, device="cuda").repeat(5, 1, 1, 1)
        else:
            import jax.numpy

            from dpmanifolds.manifolds import _pallas_products

            kernels = _pallas_products
            ones = jax.numpy.tile(jax.numpy.eye(2), (5, 1, 1, 1))
        found = [kernels.swept_inverses(ones[0]), kernels.products(ones[0], ones[0])]
        if library == "torch":
            found.append(kernels.combinations(ones, np.ones(1), np.ones((1, 5)))[0] / 6)
    except Exception:
        # an old library, or none of its compiler
        return None
    return kernels if all(np.array_equal(to_numpy(each), np.eye(2)[None]) for each in found) else None


def _kernels(matrices: Array) -> Any:
    """What is faster than the library's own routines, where they live on an accelerator."""
    if is_torch_array(matrices) and on_accelerator(matrices):
        return _working_kernels("torch")
    if is_jax_array(matrices) and (is_traced(matrices) or on_accelerator(matrices)):
        import jax

        return _working_kernels("jax") if jax.default_backend() == "gpu" else None
    return None


def _plus_diagonal(array: Array, added: Array | float, one: Array) -> Array:
    """A + aI; PyTorch writes to the diagonal alone, of what nobody else holds."""
    if is_torch_array(array):
        array.diagonal(dim1=-2, dim2=-1).add_(added if isinstance(added, float) else added[..., 0])
        return array
    return array + added * one


def _room(count: int, reference: Array) -> tuple[Array | None, list[Any]]:
    """Where PyTorch puts so many matrices for each one, and the places; nowhere elsewhere."""
    if not is_torch_array(reference):
        return None, [None] * count
    held = reference.new_empty((count, *reference.shape))
    return held, list(held.unbind(0))


def _product(a: Array, b: Array, place: Array | None = None) -> Array:
    """ab, where PyTorch is told to put it."""
    kernels = _kernels(a)
    if kernels is not None and a.shape[-1] <= kernels.LARGEST_MULTIPLIED:
        return kernels.products(a, b, place)
    if place is None:
        return a @ b
    import torch

    return torch.bmm(a, b, out=place)


def _scaled(array: Array, factor: Array | float) -> Array:
    # what nobody else holds
    return array.mul_(factor) if is_torch_array(array) else factor * array


def _combinations(
    constants: np.ndarray, factors: np.ndarray, one: Array, powers: list[Array], held: Array | None
) -> list[Array]:
    """c_j·I + Σ f_ji·powers_i for every j."""
    kernels = _kernels(one)
    if kernels is not None and held is not None:
        return list(kernels.combinations(held, constants, factors).unbind(0))
    return [
        reduce(operator.add, (factor * power for factor, power in zip(row, powers, strict=True)), constant * one)
        for constant, row in zip(constants.tolist(), factors.tolist(), strict=True)
    ]


def _product_plus(a: Array, b: Array, added: Array) -> Array:
    """ab + c, where PyTorch puts it into c, which nobody else holds."""
    kernels = _kernels(a)
    if kernels is not None and a.shape[-1] <= kernels.LARGEST_MULTIPLIED:
        return kernels.products(a, b, added, add=True)
    return added.baddbmm_(a, b) if is_torch_array(a) else a @ b + added
