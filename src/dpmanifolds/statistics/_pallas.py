"""The formulas of `_device_formulas.py` as one Pallas kernel, for JAX on an accelerator."""

from __future__ import annotations

from functools import cache
from typing import Any

from dpmanifolds._arrays import Array
from dpmanifolds.statistics._device_formulas import column_sums, log_terms

__all__ = ["pallas_sums"]

_ROWS = 128


@cache
def pallas_sums(k: int, unit: float, *, weighted: bool, whitened: bool, hessian: bool, interpret: bool = False) -> Any:
    """A jitted function (points, weights, given, count) → sums over all records, then the two peaks.

    `given`: M, the centre, the radius and the weight of every record unless `weighted`. `count` of the records are
    real, the others only fill the array up.
    """
    import jax
    import jax.numpy as xp
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    dim = k * (k + 1) // 2
    sums = dim + 3 + (dim * (dim + 1) // 2 if hessian else 0)

    def kernel(points: Any, weights: Any, given: Any, count: Any, total: Any, peak: Any) -> None:
        block = pallas.program_id(0)
        rows = block * _ROWS + xp.arange(_ROWS)
        there = rows < count[0]
        x = {
            (i, j): triton.load(points.at[rows * (k * k) + (k * i + j)], mask=there, other=float(i == j))
            for i in range(k)
            for j in range(k)
        }
        if weighted:
            shares = triton.load(weights.at[rows], mask=there, other=0.0)
        else:
            shares = xp.where(there, given[k * k + dim + 1], 0.0)
        matrix = {(i, j): given[k * i + j] for i in range(k) for j in range(k)} if whitened else None
        center = [given[k * k + i] for i in range(dim)]
        terms = log_terms(xp, k, unit, x, shares, matrix, center, given[k * k + dim], hessian=hessian)
        for at, entry in enumerate(terms.summed):
            total[block * sums + at] = xp.sum(entry.astype(total.dtype))
        for at, entry in enumerate(terms.peaks):
            peak[2 * block + at] = xp.max(xp.where(there, entry, xp.zeros_like(entry)))

    def run(points: Array, weights: Array, given: Array, count: Array) -> Array:
        blocks = -(-points.shape[0] // _ROWS)
        exact = xp.float64 if jax.config.jax_enable_x64 else xp.float32
        total, peak = pallas.pallas_call(
            kernel,
            grid=(blocks,),
            out_shape=(
                jax.ShapeDtypeStruct((blocks * sums,), exact),
                jax.ShapeDtypeStruct((blocks * 2,), points.dtype),
            ),
            compiler_params=triton.CompilerParams(num_warps=4),
            interpret=interpret,
        )(points.reshape(-1), weights, given, count.reshape(1))
        peaks = xp.max(peak.reshape(blocks, 2), axis=0)
        return xp.concat([column_sums(xp, total.reshape(blocks, sums)), peaks.astype(exact)])

    return jax.jit(run)
