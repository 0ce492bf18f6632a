"""Inverses and products of many small matrices as Pallas kernels, for `_device_logs.py` and JAX on an accelerator.

One program works on one matrix, as in `_triton_products.py`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as xp
from jax.experimental import pallas
from jax.experimental.pallas import triton

from dpmanifolds._arrays import Array

LARGEST_SWEPT, LARGEST_MULTIPLIED = 32, 16


def swept_inverses(matrices: Array) -> Array:
    """By Gauss and Jordan, of positive definite ones (n, k, k), k ≤ 32."""
    k = matrices.shape[-1]

    def kernel(source: Any, target: Any) -> None:
        at = _Places(k)
        first = pallas.program_id(0) * (k * k)
        a = triton.load(source.at[first + at.place], mask=at.inside, other=0.0)
        a = xp.where(at.inside, a, (at.i == at.j).astype(a.dtype))

        def step(pivot: Any, a: Array) -> Array:
            across, down = at.i == pivot, at.j == pivot
            along, column = xp.sum(xp.where(across, a, 0.0), axis=0), xp.sum(xp.where(down, a, 0.0), axis=1)
            share = 1.0 / xp.sum(xp.where(at.line == pivot, along, 0.0))
            along = along * share
            swept = xp.where(across, along[None, :], a - column[:, None] * along[None, :])
            return xp.where(down, xp.where(across, share, -share * column[:, None]), swept)

        triton.store(target.at[first + at.place], jax.lax.fori_loop(0, k, step, a), mask=at.inside)

    return _for_each(kernel, matrices)


def products(a: Array, b: Array, added: Array | None = None, *, add: bool = False) -> Array:
    """ab of (n, k, k) each, k ≤ 16; or added to a third."""
    k = a.shape[-1]

    def kernel(*given: Any) -> None:
        at = _Places(k)
        left, right, *third, target = given
        first = pallas.program_id(0) * (k * k)
        total = xp.zeros(at.inside.shape, dtype=a.dtype)
        if add:
            total = triton.load(third[0].at[first + at.place], mask=at.inside, other=0.0)
        for step in range(k):
            column = triton.load(left.at[first + at.i * k + step], mask=at.i < k, other=0.0)
            total = total + column * triton.load(right.at[first + step * k + at.j], mask=at.j < k, other=0.0)
        triton.store(target.at[first + at.place], total, mask=at.inside)

    return _for_each(kernel, a, b, *([added] if add else []))


class _Places:
    """Where the numbers of a k×k matrix are in a tile whose width is a power of two."""

    def __init__(self, k: int) -> None:
        self.line = xp.arange(pallas.next_power_of_2(k), dtype=xp.int32)
        self.i, self.j = self.line[:, None], self.line[None, :]
        self.inside, self.place = (self.i < k) & (self.j < k), self.i * k + self.j


def _for_each(kernel: Any, *arrays: Array) -> Array:
    """One program for each matrix, on flattened arrays."""
    made = pallas.pallas_call(
        kernel,
        grid=(arrays[0].shape[0],),
        out_shape=jax.ShapeDtypeStruct((arrays[0].size,), arrays[0].dtype),
        compiler_params=triton.CompilerParams(num_warps=1),
    )(*(array.reshape(-1) for array in arrays))
    return made.reshape(arrays[0].shape)
