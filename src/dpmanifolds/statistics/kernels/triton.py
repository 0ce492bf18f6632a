"""The formulas of `formulas.py` as a Triton kernel, for PyTorch on an accelerator.

Float sums of all kinds, for means without noise; `triton_integers.py` has exact ones.
Triton comes with PyTorch there. `torch.compile` makes the same of the formulas, in some twenty seconds for every number
of records, where this takes two once; a kernel of one's own also adds up what it has in registers.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from dpmanifolds.manifolds._triton_products import on_its_device
from dpmanifolds.statistics.kernels.formulas import SWEEPS, TINY
from dpmanifolds.statistics.kernels.triton_matrices import (
    axis,
    excess,
    logarithm,
    read_entries,
    rotation,
    sort_three,
    turn,
    whiten,
)

_ROWS = 128
_SUMS = 9
_HESSIAN = 21


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
    with on_its_device(points):
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
