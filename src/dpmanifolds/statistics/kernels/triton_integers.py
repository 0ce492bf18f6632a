"""Exact sums of integers of `integers.py` as Triton kernels, for PyTorch on an accelerator.

Matrices 3×3 that are plainly symmetric, positive and not too stretched take the closed form of `triton_gentle.py`, or,
where they come in single precision, of `triton_single.py`. The others are marked, each by its own entries, and take
rotations afterwards. Smaller matrices always do.
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
from dpmanifolds.statistics.kernels.integers import INTEGER_SWEEPS
from dpmanifolds.statistics.kernels.triton_gentle import gentle_logarithm, high_word, number, reciprocal_root
from dpmanifolds.statistics.kernels.triton_matrices import (
    eliminates,
    logarithm,
    read_entries,
    rotation,
    round_entry,
    sort_three,
    whiten,
)
from dpmanifolds.statistics.kernels.triton_single import single_logarithm

# a warp of its own for each block of records: none waits for another
_ROWS = 32
_DIM = 6
_COUNTS = 3
_PROGRAMS = 1 << 14


def triton_integers(points: torch.Tensor, given: np.ndarray, *, whitened: bool, each: bool) -> torch.Tensor:
    """Integers of records as `ball_terms` makes them: totals (6 + 3,), or all of them and their rules (6 + 1, n).

    `given`: M, the centre and the other numbers of a rule, of matrices padded to 3×3, and `constants`.
    """
    numbers = torch.asarray(given, dtype=torch.float64).to(points.device)
    points = points.contiguous()
    count, k = int(points.shape[0]), int(points.shape[-1])
    # the numbers of those that are marked, in any order, and how many there are
    listed = torch.empty(count if k == 3 else 0, dtype=torch.int32, device=points.device)
    blocks = max(1, -(-count // _ROWS))
    programs = min(blocks, _PROGRAMS)
    shape = (_DIM + 1, count) if each else (2 * programs, _DIM + _COUNTS)
    held = torch.zeros(1 + math.prod(shape), dtype=torch.int64, device=points.device)
    marked, out = held[:1], held[1:].view(shape)
    arguments = (points, numbers, listed, marked, count, -(-blocks // programs), programs)
    # products and sums are rounded one by one, however a compiler arranges them: the same bits in every variant
    settings = {"WHITENED": whitened, "EACH": each, "ROWS": _ROWS, "num_warps": 1, "enable_fp_fusion": False}
    with on_its_device(points):
        if k == 3:
            _gentle_integers[(programs,)](out, *arguments, SINGLE=points.dtype == torch.float32, **settings)
        _integers[(programs,)](
            out if each else out[programs:], *arguments, K=k, LISTED=k == 3, SWEEPS=INTEGER_SWEEPS, **settings
        )
    return out if each else out.sum(dim=0)


@triton.jit(
    do_not_specialize=["count", "steps", "programs"],
    do_not_specialize_on_alignment=["out", "points", "numbers", "listed", "marked"],
)
def _gentle_integers(
    out,
    points,
    numbers,
    listed,
    marked,
    count,
    steps,
    programs,
    WHITENED: tl.constexpr,
    SINGLE: tl.constexpr,
    EACH: tl.constexpr,
    ROWS: tl.constexpr,
):
    # as `_integers`, without its rules: what might break one is marked
    program = tl.program_id(0).to(tl.int64)
    inverse_radius, limit, scale = tl.load(numbers + 15), tl.load(numbers + 16), tl.load(numbers + 17)
    turned = inverse_radius * tl.load(numbers + 19)
    m0, m1, m2 = tl.load(numbers + 9), tl.load(numbers + 10), tl.load(numbers + 11)
    m3, m4, m5 = tl.load(numbers + 12), tl.load(numbers + 13), tl.load(numbers + 14)
    m0, m1, m2 = m0 * inverse_radius, m1 * inverse_radius, m2 * inverse_radius
    m3, m4, m5 = m3 * inverse_radius, m4 * inverse_radius, m5 * inverse_radius
    radius, most = scale.to(tl.int64), scale.to(tl.int32)
    zeros = tl.zeros((ROWS,), tl.int64)
    s0, s1, s2, s3, s4, s5 = zeros, zeros, zeros, zeros, zeros, zeros
    for step in range(steps):
        at = (step * programs.to(tl.int64) + program) * ROWS + tl.arange(0, ROWS)
        there = at < count
        x00, x01, x02, x10, x11, x12, x20, x21, x22 = read_entries(points, at, there, 3)
        if SINGLE:
            size = tl.maximum(tl.maximum(tl.abs(x00), tl.abs(x11)), tl.abs(x22))
            size = tl.maximum(size, tl.maximum(tl.maximum(tl.abs(x01), tl.abs(x02)), tl.abs(x12)))
            slack = size * 2.0**-21
            plain = there & (size < 2.0**60) & (size > 2.0**-60)
            plain = plain & (tl.abs(x01 - x10) <= slack) & (tl.abs(x02 - x20) <= slack) & (tl.abs(x12 - x21) <= slack)
        else:
            x00, x01, x02 = x00.to(tl.float64), x01.to(tl.float64), x02.to(tl.float64)
            x10, x11, x12 = x10.to(tl.float64), x11.to(tl.float64), x12.to(tl.float64)
            x20, x21, x22 = x20.to(tl.float64), x21.to(tl.float64), x22.to(tl.float64)
            size = tl.maximum(tl.maximum(_size(x00), _size(x11)), _size(x22))
            size = tl.maximum(size, tl.maximum(tl.maximum(_size(x01), _size(x02)), _size(x12)))
            size = tl.maximum(size, tl.maximum(tl.maximum(_size(x10), _size(x20)), _size(x21)))
            # exponents with twenty bits behind: sizes between 2⁻⁵⁰⁰ and 2⁵⁰⁰, and entries as like as one part in 2²¹
            slack = size - (21 << 20)
            plain = there & (size < (1523 << 20)) & (size > (523 << 20))
            plain = plain & (_size(x01 - x10) <= slack) & (_size(x02 - x20) <= slack) & (_size(x12 - x21) <= slack)
        if WHITENED:
            x00, x01, x02 = x00.to(tl.float64), x01.to(tl.float64), x02.to(tl.float64)
            x11, x12, x22 = x11.to(tl.float64), x12.to(tl.float64), x22.to(tl.float64)
            x00, x01, x02, x11, x12, x22 = whiten(numbers, x00, x01, x02, x01, x11, x12, x02, x12, x22, 3)
        if SINGLE:
            x00, x01, x02 = x00.to(tl.float32), x01.to(tl.float32), x02.to(tl.float32)
            x11, x12, x22 = x11.to(tl.float32), x12.to(tl.float32), x22.to(tl.float32)
            y0, y1, y2, y3, y4, y5, gentle = single_logarithm(x00, x01, x02, x11, x12, x22)
            y0, y1, y2 = y0.to(tl.float64), y1.to(tl.float64), y2.to(tl.float64)
            y3, y4, y5 = y3.to(tl.float64), y4.to(tl.float64), y5.to(tl.float64)
        else:
            y0, y1, y2, y3, y4, y5, gentle = gentle_logarithm(x00, x01, x02, x11, x12, x22)
        y0, y1, y2 = y0 * inverse_radius - m0, y1 * inverse_radius - m1, y2 * inverse_radius - m2
        y3, y4, y5 = y3 * turned - m3, y4 * turned - m4, y5 * turned - m5
        squared = y0 * y0 + y1 * y1 + y2 * y2 + y3 * y3 + y4 * y4 + y5 * y5
        # single precision holds its root; what is not a number is no less
        plain = plain & gentle & (squared < 2.0**100)
        squared = tl.where(plain, squared, number(squared, 1.0))
        long = squared > limit * limit
        shortened = scale * limit * reciprocal_root(tl.where(long, squared, number(squared, 1.0)))
        factor = tl.where(long, shortened, scale)
        z0, z1 = _nearest(y0 * factor, plain, most), _nearest(y1 * factor, plain, most)
        z2, z3 = _nearest(y2 * factor, plain, most), _nearest(y3 * factor, plain, most)
        z4, z5 = _nearest(y4 * factor, plain, most), _nearest(y5 * factor, plain, most)
        fits = _square(z0) + _square(z1) + _square(z2) + _square(z3) + _square(z4) + _square(z5) <= radius * radius
        z0, z1, z2 = tl.where(fits, z0, 0), tl.where(fits, z1, 0), tl.where(fits, z2, 0)
        z3, z4, z5 = tl.where(fits, z3, 0), tl.where(fits, z4, 0), tl.where(fits, z5, 0)
        hard = (there & (plain == 0)).to(tl.int32)
        few = tl.sum(hard)
        if few > 0:
            place = tl.atomic_add(marked, few.to(tl.int64)) + tl.cumsum(hard, 0) - 1
            tl.store(listed + place, at.to(tl.int32), mask=hard > 0)
        if EACH:
            column = count.to(tl.int64)
            tl.store(out + at, z0.to(tl.int64), mask=there)
            tl.store(out + column + at, z1.to(tl.int64), mask=there)
            tl.store(out + 2 * column + at, z2.to(tl.int64), mask=there)
            tl.store(out + 3 * column + at, z3.to(tl.int64), mask=there)
            tl.store(out + 4 * column + at, z4.to(tl.int64), mask=there)
            tl.store(out + 5 * column + at, z5.to(tl.int64), mask=there)
            tl.store(out + 6 * column + at, zeros, mask=there)
        else:
            s0, s1, s2, s3, s4, s5 = s0 + z0, s1 + z1, s2 + z2, s3 + z3, s4 + z4, s5 + z5
    if not EACH:
        place = out + program * 9
        tl.store(place, tl.sum(s0))
        tl.store(place + 1, tl.sum(s1))
        tl.store(place + 2, tl.sum(s2))
        tl.store(place + 3, tl.sum(s3))
        tl.store(place + 4, tl.sum(s4))
        tl.store(place + 5, tl.sum(s5))


@triton.jit
def _size(x):
    """The high word of |x|: infinite and undefined numbers have the largest."""
    return high_word(x) & 0x7FFFFFFF


@triton.jit
def _nearest(entry, plain, most):
    """The nearest integer, the last 32 bits of entry + 1.5·2⁵², cut to what a coordinate can be; 0 where not plain."""
    shifted = tl.where(plain, entry, number(entry, 0.0)) + 6755399441055744.0
    nearest = shifted.to(tl.int64, bitcast=True).to(tl.int32)
    return tl.minimum(tl.maximum(nearest, -most), most)


@triton.jit
def _square(z):
    """Of 32 bits, in 64."""
    return z.to(tl.int64) * z.to(tl.int64)


@triton.jit(
    do_not_specialize=["count", "steps", "programs"],
    do_not_specialize_on_alignment=["out", "points", "numbers", "listed", "marked"],
)
def _integers(
    out,
    points,
    numbers,
    listed,
    marked,
    count,
    steps,
    programs,
    K: tl.constexpr,
    WHITENED: tl.constexpr,
    EACH: tl.constexpr,
    LISTED: tl.constexpr,
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
    if LISTED:
        here = tl.load(marked)
        steps = tl.cdiv(tl.cdiv(here, ROWS), programs)
    else:
        here = count
    for step in range(steps):
        at = (step * programs.to(tl.int64) + program) * ROWS + tl.arange(0, ROWS)
        there = at < here
        if LISTED:
            at = tl.load(listed + at, mask=there, other=0).to(tl.int64)
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
