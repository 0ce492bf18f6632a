"""The formulas of `formulas.py` and `integers.py` as Triton kernels, for PyTorch on an accelerator.

Two kernels share rotations and logarithm: float sums of all kinds for means without noise, and exact sums of integers.
Triton comes with PyTorch there. `torch.compile` makes the same of the formulas, in some twenty seconds for every number
of records, where this takes two once; a kernel of one's own also adds up what it has in registers.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from dpmanifolds.statistics.kernels.formulas import SWEEPS, TINY
from dpmanifolds.statistics.kernels.integers import INTEGER_SWEEPS
from dpmanifolds.statistics.kernels.triton_matrices import (
    axis,
    eliminates,
    excess,
    logarithm,
    read_entries,
    rotation,
    round_entry,
    sort_three,
    turn,
    whiten,
)

_ROWS = 128
_DIM = 6
_SUMS = 9
_HESSIAN = 21
_COUNTS = 3
_PROGRAMS = 4096


def triton_sums(
    points: torch.Tensor,
    weights: torch.Tensor | None,
    share: float,
    given: np.ndarray,
    *,
    whitened: bool,
    hessian: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums and peaks, as `Terms` lists them for k = 3, over blocks of records: arrays (blocks, …) in double precision.

    `given`: M, the centre and the radius of matrices padded to 3×3. Smaller matrices are padded too, with their first
    diagonal entry, which is none of the extreme eigenvalues; coordinates that belong to the padding are left out of
    distances and have to be left out of the result.
    """
    count, k = int(points.shape[0]), int(points.shape[-1])
    double = points.dtype == torch.float64
    unit = torch.finfo(points.dtype).eps
    constants = [math.sqrt(2), math.sqrt(unit) / 8, 1 - math.sqrt(unit) / 16, unit / 4, 1e-6 if double else 1e-3, share]
    numbers = torch.asarray(np.concatenate([given, [TINY[double]], constants]), dtype=points.dtype).to(points.device)
    blocks = -(-count // _ROWS)
    out = torch.empty((blocks, _SUMS + 2 + _HESSIAN * hessian), dtype=torch.float64, device=points.device)
    with _on(points):
        _log_sums[(blocks,)](
            points.contiguous(),
            points if weights is None else weights.contiguous(),
            numbers,
            out,
            count,
            K=k,
            WEIGHTED=weights is not None,
            WHITENED=whitened,
            HESSIAN=hessian,
            SWEEPS=SWEEPS + hessian,
            WIDTH=out.shape[1],
            ROWS=_ROWS,
            enable_fp_fusion=True,
        )
    return torch.cat([out[:, :_SUMS], out[:, _SUMS + 2 :]], dim=1), out[:, _SUMS : _SUMS + 2]


def triton_integers(points: torch.Tensor, given: np.ndarray, *, whitened: bool, each: bool) -> torch.Tensor:
    """Integers of records as `ball_terms` makes them: totals (6 + 3,), or all of them and their rules (6 + 1, n).

    `given`: M, the centre and the other numbers of a rule, of matrices padded to 3×3, and `constants`. Each of at most
    4096 programs adds up every 4096th block of records in registers.
    """
    count, k = int(points.shape[0]), int(points.shape[-1])
    numbers = torch.asarray(given, dtype=torch.float64).to(points.device)
    blocks = max(1, -(-count // _ROWS))
    programs = min(blocks, _PROGRAMS)
    shape = (_DIM + 1, count) if each else (programs, _DIM + _COUNTS)
    out = torch.empty(shape, dtype=torch.int64, device=points.device)
    with _on(points):
        _integers[(programs,)](
            points.contiguous(),
            numbers,
            out,
            count,
            -(-blocks // programs),
            programs,
            K=k,
            WHITENED=whitened,
            EACH=each,
            SWEEPS=INTEGER_SWEEPS,
            ROWS=_ROWS,
            # products and sums are rounded one by one, however a compiler arranges them: the same bits in every variant
            enable_fp_fusion=False,
        )
    return out if each else out.sum(dim=0)


def _on(points: torch.Tensor) -> Any:
    return torch.cuda.device(points.device) if points.is_cuda else nullcontext()


@triton.jit
def _log_sums(
    points,
    weights,
    numbers,
    out,
    count,
    K: tl.constexpr,
    WEIGHTED: tl.constexpr,
    WHITENED: tl.constexpr,
    HESSIAN: tl.constexpr,
    SWEEPS: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
):
    block = tl.program_id(0).to(tl.int64)
    at = block * ROWS + tl.arange(0, ROWS)
    there = at < count
    radius, tiny, root = tl.load(numbers + 15), tl.load(numbers + 16), tl.load(numbers + 17)
    small, hair, quarter = tl.load(numbers + 18), tl.load(numbers + 19), tl.load(numbers + 20)
    slack, share = tl.load(numbers + 21), tl.load(numbers + 22)
    x00, x01, x02, x10, x11, x12, x20, x21, x22 = read_entries(points, at, there, K)
    weight = tl.load(weights + at, mask=there, other=0.0) if WEIGHTED else tl.where(there, share, x00 * 0)
    everything = tl.abs(x00) + tl.abs(x01) + tl.abs(x02) + tl.abs(x10) + tl.abs(x11) + tl.abs(x12)
    everything += tl.abs(x20) + tl.abs(x21) + tl.abs(x22)
    largest = tl.maximum(tl.maximum(tl.abs(x00), tl.abs(x11)), tl.abs(x22))
    largest = tl.maximum(largest, tl.maximum(tl.maximum(tl.abs(x01), tl.abs(x02)), tl.abs(x12)))
    good = everything < float("inf")
    good = good & (tl.abs(x01 - x10) <= slack * largest) & (tl.abs(x02 - x20) <= slack * largest)
    good = good & (tl.abs(x12 - x21) <= slack * largest)
    w00, w01, w02, w11, w12, w22 = x00, x01, x02, x11, x12, x22
    if WHITENED:
        w00, w01, w02, w11, w12, w22 = whiten(numbers, x00, x01, x02, x10, x11, x12, x20, x21, x22, K)
    one, zero = x00 * 0 + 1, x00 * 0
    u00, u01, u02, u10, u11, u12, u20, u21, u22 = one, zero, zero, zero, one, zero, zero, zero, one
    a00, a01, a02, a11, a12, a22 = w00, w01, w02, w11, w12, w22
    for _ in tl.static_range(SWEEPS):
        a00, a11, a02, a12, c, s = rotation(a00, a11, a01, a02, a12, tiny)
        a01 = zero
        if HESSIAN:
            u00, u01 = turn(c, s, u00, u01)
            u10, u11 = turn(c, s, u10, u11)
            u20, u21 = turn(c, s, u20, u21)
        a00, a22, a01, a12, c, s = rotation(a00, a22, a02, a01, a12, tiny)
        a02 = zero
        if HESSIAN:
            u00, u02 = turn(c, s, u00, u02)
            u10, u12 = turn(c, s, u10, u12)
            u20, u22 = turn(c, s, u20, u22)
        a11, a22, a01, a02, c, s = rotation(a11, a22, a12, a01, a02, tiny)
        a12 = zero
        if HESSIAN:
            u01, u02 = turn(c, s, u01, u02)
            u11, u12 = turn(c, s, u11, u12)
            u21, u22 = turn(c, s, u21, u22)
    l1, l2, l3 = sort_three(a00, a11, a22)
    good = good & (l3 > 0) & (a01 * a01 <= quarter * tl.abs(a00 * a11))
    good = good & (a02 * a02 <= quarter * tl.abs(a00 * a22)) & (a12 * a12 <= quarter * tl.abs(a11 * a22))
    l1, l2, l3 = tl.where(good, l1, one), tl.where(good, l2, one), tl.where(good, l3, one)
    y0, y1, y2, y3, y4, y5 = logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root)
    y0, y1, y2 = y0 - tl.load(numbers + 9), y1 - tl.load(numbers + 10), y2 - tl.load(numbers + 11)
    y3, y4, y5 = y3 - tl.load(numbers + 12), y4 - tl.load(numbers + 13), y5 - tl.load(numbers + 14)
    squared = y0 * y0
    if K > 1:
        squared += y1 * y1 + y3 * y3
    if K > 2:
        squared += y2 * y2 + y4 * y4 + y5 * y5
    distance = libdevice.sqrt(squared)
    inside = distance <= radius
    shrink = tl.where(inside, one, hair * radius / tl.where(inside, one, distance))
    shares = weight * shrink
    place = out + block * WIDTH
    tl.store(place, tl.sum((shares * y0).to(tl.float64)))
    tl.store(place + 1, tl.sum((shares * y1).to(tl.float64)))
    tl.store(place + 2, tl.sum((shares * y2).to(tl.float64)))
    tl.store(place + 3, tl.sum((shares * y3).to(tl.float64)))
    tl.store(place + 4, tl.sum((shares * y4).to(tl.float64)))
    tl.store(place + 5, tl.sum((shares * y5).to(tl.float64)))
    tl.store(place + 6, tl.sum((shares * distance).to(tl.float64)))
    tl.store(place + 7, tl.sum((shares * shrink * squared).to(tl.float64)))
    tl.store(place + 8, tl.sum((weight * tl.where(inside, l1 / l3, zero)).to(tl.float64)))
    tl.store(place + 9, tl.max(tl.where(there, shrink * distance, zero).to(tl.float64)))
    tl.store(place + 10, tl.max(tl.where(there & ~good, one, zero).to(tl.float64)))
    if HESSIAN:
        s01 = weight * excess(a00, a11, small)
        s02 = weight * excess(a00, a22, small)
        s12 = weight * excess(a11, a22, small)
        p = axis(u00, u10, u20, u01, u11, u21, root)
        q = axis(u00, u10, u20, u02, u12, u22, root)
        r = axis(u01, u11, u21, u02, u12, u22, root)
        position = place + 11
        for i in tl.static_range(6):
            for j in tl.static_range(i, 6):
                term = s01 * p[i] * p[j] + s02 * q[i] * q[j] + s12 * r[i] * r[j]
                tl.store(position, tl.sum(term.to(tl.float64)))
                position += 1


@triton.jit(
    do_not_specialize=["count", "steps", "programs"],
    do_not_specialize_on_alignment=["points", "numbers", "out"],
)
def _integers(
    points,
    numbers,
    out,
    count,
    steps,
    programs,
    K: tl.constexpr,
    WHITENED: tl.constexpr,
    EACH: tl.constexpr,
    SWEEPS: tl.constexpr,
    ROWS: tl.constexpr,
):
    # one compiled kernel for every number of records and every place in memory: the same bits in any cut
    program = tl.program_id(0).to(tl.int64)
    inverse_radius, limit, scale = tl.load(numbers + 15), tl.load(numbers + 16), tl.load(numbers + 17)
    tiny, root, slack = tl.load(numbers + 18), tl.load(numbers + 19), tl.load(numbers + 20)
    radius = scale.to(tl.int64)
    zeros = tl.zeros((ROWS,), tl.int64)
    s0, s1, s2, s3, s4, s5 = zeros, zeros, zeros, zeros, zeros, zeros
    # three counts of ten bits each: a program sees fewer than 1024 blocks
    counts = tl.zeros((ROWS,), tl.int32)
    for step in range(steps):
        at = (step * programs.to(tl.int64) + program) * ROWS + tl.arange(0, ROWS)
        there = at < count
        x00, x01, x02, x10, x11, x12, x20, x21, x22 = read_entries(points, at, there, K)
        x00, x01, x02 = x00.to(tl.float64), x01.to(tl.float64), x02.to(tl.float64)
        x10, x11, x12 = x10.to(tl.float64), x11.to(tl.float64), x12.to(tl.float64)
        x20, x21, x22 = x20.to(tl.float64), x21.to(tl.float64), x22.to(tl.float64)
        # sixteenths: nine numbers that are finite have a finite sum
        all_of_it = tl.abs(x00) / 16 + tl.abs(x01) / 16 + tl.abs(x02) / 16 + tl.abs(x10) / 16 + tl.abs(x11) / 16
        all_of_it += tl.abs(x12) / 16 + tl.abs(x20) / 16 + tl.abs(x21) / 16 + tl.abs(x22) / 16
        finite = all_of_it < float("inf")
        zero = tl.zeros((ROWS,), tl.float64)
        one = zero + 1
        x00, x11, x22 = tl.where(finite, x00, one), tl.where(finite, x11, one), tl.where(finite, x22, one)
        x01, x02, x12 = tl.where(finite, x01, zero), tl.where(finite, x02, zero), tl.where(finite, x12, zero)
        x10, x20, x21 = tl.where(finite, x10, zero), tl.where(finite, x20, zero), tl.where(finite, x21, zero)
        size = tl.maximum(tl.maximum(tl.abs(x00), tl.abs(x11)), tl.abs(x22))
        size = tl.maximum(size, tl.maximum(tl.maximum(tl.abs(x01), tl.abs(x02)), tl.abs(x12)))
        size = tl.maximum(size, tl.maximum(tl.maximum(tl.abs(x10), tl.abs(x20)), tl.abs(x21)))
        symmetric = finite & (tl.abs(x01 - x10) <= slack * size) & (tl.abs(x02 - x20) <= slack * size)
        symmetric = symmetric & (tl.abs(x12 - x21) <= slack * size)
        # squares must neither overflow nor vanish
        large, small = size > tl.load(numbers + 21), size < tl.load(numbers + 22)
        factor = tl.where(large, tl.load(numbers + 23), tl.where(small, tl.load(numbers + 24), one))
        shift = tl.load(numbers + 25) * tl.where(large, one, tl.where(small, -one, zero))
        x00, x01, x02 = factor * x00, factor * x01, factor * x02
        x11, x12, x22 = factor * x11, factor * x12, factor * x22
        w00, w01, w02, w11, w12, w22 = x00, x01, x02, x11, x12, x22
        if WHITENED:
            w00, w01, w02, w11, w12, w22 = whiten(numbers, x00, x01, x02, x01, x11, x12, x02, x12, x22, K)
        a00, a01, a02, a11, a12, a22 = w00, w01, w02, w11, w12, w22
        for _ in tl.static_range(SWEEPS if K > 2 else 1):
            a00, a11, a02, a12, _c, _s = rotation(a00, a11, a01, a02, a12, tiny)
            a01 = zero
            if K > 2:
                a00, a22, a01, a12, _c, _s = rotation(a00, a22, a02, a01, a12, tiny)
                a02 = zero
                a11, a22, a01, a02, _c, _s = rotation(a11, a22, a12, a01, a02, tiny)
                a12 = zero
        l1, l2, l3 = sort_three(a00, a11, a22)
        positive = l3 > 0
        l1, l2, l3 = tl.where(positive, l1, one), tl.where(positive, l2, one), tl.where(positive, l3, one)
        y0, y1, y2, y3, y4, y5 = logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root)
        y0, y1, y2 = y0 + shift, y1 + shift, y2 + shift
        all_of_it = tl.abs(y0)
        if K > 1:
            all_of_it += tl.abs(y1) + tl.abs(y3)
        if K > 2:
            all_of_it += tl.abs(y2) + tl.abs(y4) + tl.abs(y5)
        seen = positive & (all_of_it < float("inf"))
        belongs = eliminates(x00, x01, x02, x11, x12, x22, tl.load(numbers + 26) * factor * size)
        y0 = (y0 - tl.load(numbers + 9)) * inverse_radius
        y1 = (y1 - tl.load(numbers + 10)) * inverse_radius
        y2 = (y2 - tl.load(numbers + 11)) * inverse_radius
        y3 = (y3 - tl.load(numbers + 12)) * inverse_radius
        y4 = (y4 - tl.load(numbers + 13)) * inverse_radius
        y5 = (y5 - tl.load(numbers + 14)) * inverse_radius
        squared = y0 * y0
        if K > 1:
            squared += y1 * y1 + y3 * y3
        if K > 2:
            squared += y2 * y2 + y4 * y4 + y5 * y5
        usable = there & symmetric & seen & (squared < float("inf"))
        length = libdevice.sqrt(tl.where(usable, squared, zero))
        long = length > limit
        factor = scale * tl.where(long, limit / tl.where(long, length, one), one)
        z0 = round_entry(y0, factor, usable, scale)
        z1, z2, z3, z4, z5 = zeros, zeros, zeros, zeros, zeros
        if K > 1:
            z1, z3 = round_entry(y1, factor, usable, scale), round_entry(y3, factor, usable, scale)
        if K > 2:
            z2, z4 = round_entry(y2, factor, usable, scale), round_entry(y4, factor, usable, scale)
            z5 = round_entry(y5, factor, usable, scale)
        fits = z0 * z0 + z1 * z1 + z2 * z2 + z3 * z3 + z4 * z4 + z5 * z5 <= radius * radius
        z0, z1, z2 = tl.where(fits, z0, zeros), tl.where(fits, z1, zeros), tl.where(fits, z2, zeros)
        z3, z4, z5 = tl.where(fits, z3, zeros), tl.where(fits, z4, zeros), tl.where(fits, z5, zeros)
        broken = tl.where(seen | belongs, zeros, zeros + 3)
        broken = tl.where(symmetric, broken, tl.where(finite, zeros + 2, zeros + 1))
        if EACH:
            tl.store(out + at, z0, mask=there)
            tl.store(out + count.to(tl.int64) + at, z1, mask=there)
            tl.store(out + 2 * count.to(tl.int64) + at, z2, mask=there)
            tl.store(out + 3 * count.to(tl.int64) + at, z3, mask=there)
            tl.store(out + 4 * count.to(tl.int64) + at, z4, mask=there)
            tl.store(out + 5 * count.to(tl.int64) + at, z5, mask=there)
            tl.store(out + 6 * count.to(tl.int64) + at, broken, mask=there)
        else:
            s0, s1, s2, s3, s4, s5 = s0 + z0, s1 + z1, s2 + z2, s3 + z3, s4 + z4, s5 + z5
            places = tl.where(broken == 1, 1, tl.where(broken == 2, 1 << 10, 1 << 20))
            counts += tl.where(there & (broken > 0), places, 0)
    if not EACH:
        place = out + program * 9
        tl.store(place, tl.sum(s0))
        tl.store(place + 1, tl.sum(s1))
        tl.store(place + 2, tl.sum(s2))
        tl.store(place + 3, tl.sum(s3))
        tl.store(place + 4, tl.sum(s4))
        tl.store(place + 5, tl.sum(s5))
        tl.store(place + 6, tl.sum((counts & 1023).to(tl.int64)))
        tl.store(place + 7, tl.sum(((counts >> 10) & 1023).to(tl.int64)))
        tl.store(place + 8, tl.sum((counts >> 20).to(tl.int64)))
