"""The formulas of `_device_formulas.py` and `_device_integers.py` as Triton kernels, for PyTorch on an accelerator.

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
    x00, x01, x02, x10, x11, x12, x20, x21, x22 = _read(points, at, there, K)
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
        w00, w01, w02, w11, w12, w22 = _whitened(numbers, x00, x01, x02, x10, x11, x12, x20, x21, x22, K)
    one, zero = x00 * 0 + 1, x00 * 0
    u00, u01, u02, u10, u11, u12, u20, u21, u22 = one, zero, zero, zero, one, zero, zero, zero, one
    a00, a01, a02, a11, a12, a22 = w00, w01, w02, w11, w12, w22
    for _ in tl.static_range(SWEEPS):
        a00, a11, a02, a12, c, s = _rotation(a00, a11, a01, a02, a12, tiny)
        a01 = zero
        if HESSIAN:
            u00, u01 = _turned(c, s, u00, u01)
            u10, u11 = _turned(c, s, u10, u11)
            u20, u21 = _turned(c, s, u20, u21)
        a00, a22, a01, a12, c, s = _rotation(a00, a22, a02, a01, a12, tiny)
        a02 = zero
        if HESSIAN:
            u00, u02 = _turned(c, s, u00, u02)
            u10, u12 = _turned(c, s, u10, u12)
            u20, u22 = _turned(c, s, u20, u22)
        a11, a22, a01, a02, c, s = _rotation(a11, a22, a12, a01, a02, tiny)
        a12 = zero
        if HESSIAN:
            u01, u02 = _turned(c, s, u01, u02)
            u11, u12 = _turned(c, s, u11, u12)
            u21, u22 = _turned(c, s, u21, u22)
    l1, l2, l3 = _sorted(a00, a11, a22)
    good = good & (l3 > 0) & (a01 * a01 <= quarter * tl.abs(a00 * a11))
    good = good & (a02 * a02 <= quarter * tl.abs(a00 * a22)) & (a12 * a12 <= quarter * tl.abs(a11 * a22))
    l1, l2, l3 = tl.where(good, l1, one), tl.where(good, l2, one), tl.where(good, l3, one)
    y0, y1, y2, y3, y4, y5 = _logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root)
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
        s01 = weight * _excess(a00, a11, small)
        s02 = weight * _excess(a00, a22, small)
        s12 = weight * _excess(a11, a22, small)
        p = _axis(u00, u10, u20, u01, u11, u21, root)
        q = _axis(u00, u10, u20, u02, u12, u22, root)
        r = _axis(u01, u11, u21, u02, u12, u22, root)
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
        x00, x01, x02, x10, x11, x12, x20, x21, x22 = _read(points, at, there, K)
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
            w00, w01, w02, w11, w12, w22 = _whitened(numbers, x00, x01, x02, x01, x11, x12, x02, x12, x22, K)
        a00, a01, a02, a11, a12, a22 = w00, w01, w02, w11, w12, w22
        for _ in tl.static_range(SWEEPS if K > 2 else 1):
            a00, a11, a02, a12, _c, _s = _rotation(a00, a11, a01, a02, a12, tiny)
            a01 = zero
            if K > 2:
                a00, a22, a01, a12, _c, _s = _rotation(a00, a22, a02, a01, a12, tiny)
                a02 = zero
                a11, a22, a01, a02, _c, _s = _rotation(a11, a22, a12, a01, a02, tiny)
                a12 = zero
        l1, l2, l3 = _sorted(a00, a11, a22)
        positive = l3 > 0
        l1, l2, l3 = tl.where(positive, l1, one), tl.where(positive, l2, one), tl.where(positive, l3, one)
        y0, y1, y2, y3, y4, y5 = _logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root)
        y0, y1, y2 = y0 + shift, y1 + shift, y2 + shift
        all_of_it = tl.abs(y0)
        if K > 1:
            all_of_it += tl.abs(y1) + tl.abs(y3)
        if K > 2:
            all_of_it += tl.abs(y2) + tl.abs(y4) + tl.abs(y5)
        seen = positive & (all_of_it < float("inf"))
        belongs = _eliminates(x00, x01, x02, x11, x12, x22, tl.load(numbers + 26) * factor * size)
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
        z0 = _rounded(y0, factor, usable, scale)
        z1, z2, z3, z4, z5 = zeros, zeros, zeros, zeros, zeros
        if K > 1:
            z1, z3 = _rounded(y1, factor, usable, scale), _rounded(y3, factor, usable, scale)
        if K > 2:
            z2, z4 = _rounded(y2, factor, usable, scale), _rounded(y4, factor, usable, scale)
            z5 = _rounded(y5, factor, usable, scale)
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


@triton.jit
def _read(points, at, there, K: tl.constexpr):
    """All nine entries; a smaller matrix is padded with its first one, which is none of the extreme eigenvalues."""
    first = points + at * (K * K)
    x00 = tl.load(first, mask=there, other=1.0)
    x01, x02, x12, x11, x22 = x00 * 0, x00 * 0, x00 * 0, x00, x00
    x10, x20, x21 = x01, x02, x12
    if K > 1:
        x01 = tl.load(first + 1, mask=there, other=0.0)
        x10 = tl.load(first + K, mask=there, other=0.0)
        x11 = tl.load(first + K + 1, mask=there, other=1.0)
    if K > 2:
        x02 = tl.load(first + 2, mask=there, other=0.0)
        x12 = tl.load(first + 5, mask=there, other=0.0)
        x20 = tl.load(first + 6, mask=there, other=0.0)
        x21 = tl.load(first + 7, mask=there, other=0.0)
        x22 = tl.load(first + 8, mask=there, other=1.0)
    return x00, x01, x02, x10, x11, x12, x20, x21, x22


@triton.jit
def _whitened(numbers, x00, x01, x02, x10, x11, x12, x20, x21, x22, K: tl.constexpr):
    m00, m01, m02 = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    m10, m11, m12 = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    m20, m21, m22 = tl.load(numbers + 6), tl.load(numbers + 7), tl.load(numbers + 8)
    h00, h01, h02 = _product(m00, m01, m02, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    h10, h11, h12 = _product(m10, m11, m12, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    h20, h21, h22 = _product(m20, m21, m22, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    w00 = h00 * m00 + h01 * m01 + h02 * m02
    w01 = h00 * m10 + h01 * m11 + h02 * m12
    w02 = h00 * m20 + h01 * m21 + h02 * m22
    w11 = h10 * m10 + h11 * m11 + h12 * m12
    w12 = h10 * m20 + h11 * m21 + h12 * m22
    w22 = h20 * m20 + h21 * m21 + h22 * m22
    if K < 2:
        w11 = w00
    if K < 3:
        w22 = w00
    return w00, w01, w02, w11, w12, w22


@triton.jit
def _sorted(a, b, c):
    low, high = tl.minimum(a, b), tl.maximum(a, b)
    return tl.maximum(high, c), tl.maximum(low, tl.minimum(high, c)), tl.minimum(low, c)


@triton.jit
def _logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root):
    """Newton interpolation of log at the eigenvalues, in orthonormal coordinates."""
    one = l1 * 0 + 1
    slope = _log_slope(l1, l2, one)
    width = l1 - l3
    bend = (slope - _log_slope(l2, l3, one)) / tl.where(width > 0, width, one)
    f00, f11, f22 = w00 - l1, w11 - l1, w22 - l1
    g00, g11, g22 = w00 - l2, w11 - l2, w22 - l2
    top = libdevice.log(l1)
    y0 = slope * f00 + top + bend * (f00 * g00 + w01 * w01 + w02 * w02)
    y1 = slope * f11 + top + bend * (w01 * w01 + f11 * g11 + w12 * w12)
    y2 = slope * f22 + top + bend * (w02 * w02 + w12 * w12 + f22 * g22)
    y3 = root * (slope * w01 + bend * (f00 * w01 + w01 * g11 + w02 * w12))
    y4 = root * (slope * w02 + bend * (f00 * w02 + w01 * w12 + w02 * g22))
    y5 = root * (slope * w12 + bend * (w01 * w02 + f11 * w12 + w12 * g22))
    return y0, y1, y2, y3, y4, y5


@triton.jit
def _eliminates(a00, a01, a02, a11, a12, a22, floor):
    """Whether Gaussian elimination of a − floor·I has positive pivots."""
    a00, a11, a22 = a00 - floor, a11 - floor, a22 - floor
    first, second = a01 / a00, a02 / a00
    b11, b12, b22 = a11 - first * a01, a12 - first * a02, a22 - second * a02
    return (a00 > 0) & (b11 > 0) & (b22 - b12 / b11 * b12 > 0)


@triton.jit
def _rounded(entry, factor, usable, scale):
    """Integers for usable rows, 0 for the others; cut to what a coordinate of the ball can be."""
    nearest = libdevice.floor(tl.where(usable, entry * factor, tl.zeros_like(entry)) + 0.5)
    return tl.minimum(tl.maximum(nearest, -scale), scale).to(tl.int64)


@triton.jit
def _product(a, b, c, x00, x01, x02, x10, x11, x12, x20, x21, x22):
    return a * x00 + b * x10 + c * x20, a * x01 + b * x11 + c * x21, a * x02 + b * x12 + c * x22


@triton.jit
def _rotation(p, q, off, left, right, tiny):
    """Make the entry between p and q zero; `left` and `right` stand beside p and q in the third row."""
    gap = q - p
    twice = 2 * off
    root = libdevice.sqrt(gap * gap + twice * twice) + tiny
    tangent = twice / (gap + tl.where(gap < 0, -root, root))
    cosine = libdevice.rsqrt(1 + tangent * tangent)
    sine = tangent * cosine
    change = tangent * off
    left, right = cosine * left - sine * right, sine * left + cosine * right
    return p - change, q + change, left, right, cosine, sine


@triton.jit
def _turned(cosine, sine, a, b):
    return cosine * a - sine * b, sine * a + cosine * b


@triton.jit
def _log_slope(a, b, one):
    x = (a - b) / b
    apart = tl.abs(x) > 0
    safe = tl.where(apart, x, one)
    return tl.where(apart, libdevice.log1p(safe) / safe, one) / b


@triton.jit
def _excess(p, q, small):
    half = tl.abs(libdevice.log(p) - libdevice.log(q)) / 2
    return (half + small) * (p + q) / (tl.abs(p - q) + small * (p + q)) - 1


@triton.jit
def _axis(a0, a1, a2, b0, b1, b2, root):
    return root * a0 * b0, root * a1 * b1, root * a2 * b2, a0 * b1 + a1 * b0, a0 * b2 + a2 * b0, a1 * b2 + a2 * b1
