"""The formulas of `formulas.py` and `integers.py` as Pallas kernels, for JAX on an accelerator."""

from __future__ import annotations

from functools import cache
from typing import Any

from dpmanifolds._arrays import Array
from dpmanifolds.statistics.kernels.formulas import column_sums, log_terms
from dpmanifolds.statistics.kernels.integers import RULES, ball_terms, gentle_terms, rule_counts

_ROWS = 128
_BLOCKS = 8


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


@cache
def pallas_integers(k: int, *, whiten: bool, each: bool, interpret: bool = False) -> Any:
    """A jitted function (points, numbers, count) → totals of the integers and of the broken rules, or all of them.

    `numbers`: those of `BallNumbers.flat`. `count` of the records are real, the others only fill the array up. Each
    program adds up eight blocks of records in registers.
    """
    import jax
    import jax.numpy as xp
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    dim = k * (k + 1) // 2
    sums = dim + RULES - 1
    blocks = 1 if each else _BLOCKS

    def terms(points: Any, numbers: Any, rows: Any, count: Any) -> tuple[list[Any], Any, Any]:
        there = rows < count[0]
        x = {
            (i, j): triton.load(points.at[rows * (k * k) + (k * i + j)], mask=there, other=float(i == j))
            for i in range(k)
            for j in range(k)
        }
        x = {at: entry.astype(xp.float64) for at, entry in x.items()}
        if k < 3:
            return *ball_terms(xp, k, x, numbers, whiten=whiten), there
        closed, gentle = gentle_terms(xp, x, numbers, whiten=whiten)
        none = xp.zeros(_ROWS, dtype=xp.int64)

        def rotated() -> tuple[list[Any], Any]:
            # each record takes what its own entries say; where all are gentle, this is not worked out
            whole, broken = ball_terms(xp, k, x, numbers, whiten=whiten)
            return [xp.where(gentle, *pair) for pair in zip(closed, whole, strict=True)], xp.where(gentle, none, broken)

        hard = xp.max(xp.where(gentle, none, none + 1)) > 0
        return *jax.lax.cond(hard, rotated, lambda: (closed, none)), there

    def total_kernel(points: Any, numbers: Any, count: Any, total: Any) -> None:
        program = pallas.program_id(0)

        def add(step: Any, sofar: tuple[Any, ...]) -> tuple[Any, ...]:
            rows = (program * blocks + step) * _ROWS + xp.arange(_ROWS)
            integers, broken, there = terms(points, numbers, rows, count)
            kinds = [*integers, *rule_counts(xp, broken)]
            return tuple(a + xp.where(there, b, zeros) for a, b in zip(sofar, kinds, strict=True))

        zeros = xp.zeros(_ROWS, dtype=xp.int64)
        for at, kind in enumerate(jax.lax.fori_loop(0, blocks, add, (zeros,) * sums)):
            total[program * sums + at] = xp.sum(kind)

    def each_kernel(points: Any, numbers: Any, count: Any, table: Any) -> None:
        rows = pallas.program_id(0) * _ROWS + xp.arange(_ROWS)
        integers, broken, there = terms(points, numbers, rows, count)
        length = table.shape[0] // (dim + 1)
        for at, kind in enumerate([*integers, broken]):
            triton.store(table.at[at * length + rows], kind, mask=there)

    def run(points: Array, numbers: Array, count: Array) -> Array:
        programs = -(-points.shape[0] // (_ROWS * blocks))
        width = (dim + 1) * points.shape[0] if each else programs * sums
        found = pallas.pallas_call(
            each_kernel if each else total_kernel,
            grid=(programs,),
            out_shape=jax.ShapeDtypeStruct((width,), xp.int64),
            compiler_params=triton.CompilerParams(num_warps=4),
            interpret=interpret,
        )(points.reshape(-1), numbers, count.reshape(1))
        return found.reshape(dim + 1, -1) if each else xp.sum(found.reshape(programs, sums), axis=0)

    return jax.jit(run)
