"""Inverses and sums of many matrices as Triton kernels, for `_device_logs.py` and PyTorch on an accelerator.

One program works on one matrix, or on some numbers of them; none looks at a second one.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

LARGEST_SWEPT = 32
"""Matrices up to this size have their inverse in the registers of one warp."""
LARGEST_MULTIPLIED = 16
"""Beyond, cuBLAS is as fast as memory is read."""
_LENGTH = 512


def on_its_device(points: torch.Tensor) -> Any:
    """Where Triton launches: on the device of the records."""
    return torch.cuda.device(points.device) if points.is_cuda else nullcontext()


def swept_inverses(matrices: torch.Tensor) -> torch.Tensor:
    """By Gauss and Jordan, of positive definite ones (n, k, k), k ≤ 32, in any layout."""
    count, k, _ = matrices.shape
    out = torch.empty((count, k, k), dtype=torch.float64, device=matrices.device)
    with on_its_device(matrices):
        _sweep[(count,)](matrices, out, *matrices.stride(), SIZE=k, WIDTH=triton.next_power_of_2(k), num_warps=1)
    return out


def combinations(powers: torch.Tensor, constants: np.ndarray, factors: np.ndarray) -> torch.Tensor:
    """c_j·I + Σ f_ji·powers_i for every j: (j, n, k, k) of five powers (5, n, k, k), read and written once."""
    count, k = powers.shape[1], powers.shape[-1]
    out = powers.new_empty((len(factors), *powers.shape[1:]))
    table = torch.as_tensor(np.column_stack([constants, factors]), device=powers.device)
    length = count * k * k
    with on_its_device(powers):
        _combine[(triton.cdiv(length, _LENGTH),)](
            powers, table, out, length, SIZE=k, PARTS=len(factors), LENGTH=_LENGTH
        )
    return out


def products(a: torch.Tensor, b: torch.Tensor, place: torch.Tensor | None = None, *, add: bool = False) -> torch.Tensor:
    """ab of (n, k, k) each, in any layout, put where it is told; or added to what is there."""
    count, k, _ = a.shape
    out = torch.empty((count, k, k), dtype=torch.float64, device=a.device) if place is None else place
    with on_its_device(a):
        _multiply[(count,)](
            a, b, out, *a.stride(), *b.stride(), SIZE=k, WIDTH=triton.next_power_of_2(k), ADD=add, num_warps=1
        )
    return out


@triton.jit(
    do_not_specialize=["a_batch", "a_row", "a_column", "b_batch", "b_row", "b_column"],
    do_not_specialize_on_alignment=["a", "b", "out"],
)
def _multiply(
    a,
    b,
    out,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    ADD: tl.constexpr,
):
    matrix = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    inside = (i < SIZE) & (j < SIZE)
    place = out + matrix * (SIZE * SIZE) + i * SIZE + j
    total = tl.load(place, mask=inside, other=0.0) if ADD else tl.zeros((WIDTH, WIDTH), tl.float64)
    left, right = a + matrix * a_batch + i * a_row, b + matrix * b_batch + j * b_column
    for step in tl.static_range(SIZE):
        # from the cache: each number of a matrix is in it after the first
        column = tl.load(left + step * a_column, mask=i < SIZE, other=0.0)
        total += column * tl.load(right + step * b_row, mask=j < SIZE, other=0.0)
    tl.store(place, total, mask=inside)


@triton.jit(do_not_specialize=["batch", "row", "column"], do_not_specialize_on_alignment=["source", "target"])
def _sweep(source, target, batch, row, column, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    matrix = tl.program_id(0).to(tl.int64)
    line = tl.arange(0, WIDTH)
    i, j = line[:, None], line[None, :]
    inside = (i < SIZE) & (j < SIZE)
    one = (i == j).to(tl.float64)
    a = tl.where(inside, tl.load(source + matrix * batch + i * row + j * column, mask=inside, other=0.0), one)
    for pivot in range(SIZE):
        across, down = i == pivot, j == pivot
        along = tl.sum(tl.where(across, a, 0.0), axis=0)
        below = tl.sum(tl.where(down, a, 0.0), axis=1)
        share = 1.0 / tl.sum(tl.where(line == pivot, along, 0.0), axis=0)
        along = along * share
        swept = a - below[:, None] * along[None, :]
        swept = tl.where(across, along[None, :], swept)
        a = tl.where(down, tl.where(across, share, -share * below[:, None]), swept)
    tl.store(target + matrix * (SIZE * SIZE) + i * SIZE + j, a, mask=inside)


@triton.jit(do_not_specialize=["length"], do_not_specialize_on_alignment=["powers", "table", "out"])
def _combine(powers, table, out, length, SIZE: tl.constexpr, PARTS: tl.constexpr, LENGTH: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * LENGTH + tl.arange(0, LENGTH)
    there, step = at < length, length.to(tl.int64)
    on_diagonal = (at % (SIZE * SIZE)) % (SIZE + 1) == 0
    p0 = tl.load(powers + at, mask=there, other=0.0)
    p1 = tl.load(powers + step + at, mask=there, other=0.0)
    p2 = tl.load(powers + 2 * step + at, mask=there, other=0.0)
    p3 = tl.load(powers + 3 * step + at, mask=there, other=0.0)
    p4 = tl.load(powers + 4 * step + at, mask=there, other=0.0)
    for part in tl.static_range(PARTS):
        own = table + 6 * part
        total = p0 * tl.load(own + 1) + p1 * tl.load(own + 2) + p2 * tl.load(own + 3)
        total += p3 * tl.load(own + 4) + p4 * tl.load(own + 5)
        total += tl.where(on_diagonal, tl.load(own), 0.0)
        tl.store(out + part * step + at, total, mask=there)
