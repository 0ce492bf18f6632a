"""Integers of logarithms of matrices from 4×4 on, for PyTorch on an accelerator: products, and a kernel at either end.

One program looks at one matrix after the other, in registers. All variants are compiled for the size of the matrices
alone, so that a record has the same integers in every place.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from dpmanifolds.manifolds._device_logs import device_logs
from dpmanifolds.manifolds._symmetric import from_upper_triangle
from dpmanifolds.manifolds._triton_products import on_its_device
from dpmanifolds.statistics.kernels.integers import BallRule

_HELD = 1 << 22


def large_integers(
    points: torch.Tensor, rule: BallRule, rows: int, *, each: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `integers.large_integers` has it."""
    points = points.contiguous()
    codes = torch.empty(len(points), dtype=torch.int64, device=points.device)
    k = points.shape[-1]
    settings = {"SIZE": k, "WIDTH": triton.next_power_of_2(k)}
    settings["num_warps"] = max(1, settings["WIDTH"] ** 2 // 1024)
    with on_its_device(points):
        _look[(len(points),)](points, codes, **settings)
    whitener = None if rule.whitener is None else torch.as_tensor(rule.whitener, device=points.device)
    logs = device_logs(points, whitener).contiguous()
    seen = torch.empty(len(points), dtype=torch.bool, device=points.device)
    programs = min(len(points), max(1, _HELD // settings["WIDTH"] ** 2))
    # over √2 off the diagonal, as the logarithm is
    middle = from_upper_triangle(rule.center, k)
    numbers = torch.as_tensor(
        np.concatenate([middle.ravel(), [1 / rule.radius, rule.limit, float(1 << rule.exponent), 2.0]]),
        device=points.device,
    )
    shape = (k * (k + 1) // 2, len(points)) if each else (programs, k, k)
    out = torch.zeros(shape, dtype=torch.int64, device=points.device)
    steps = triton.cdiv(len(points), programs)
    with on_its_device(points):
        _round[(programs,)](
            logs,
            codes,
            numbers,
            out,
            seen,
            len(points),
            rows,
            steps,
            programs,
            EACH=each,
            enable_fp_fusion=False,
            **settings,
        )
    if each:
        return out, codes, seen
    at = torch.triu_indices(k, k, 1, device=points.device)
    total = out.sum(dim=0)
    return torch.cat([total.diagonal(), total[at[0], at[1]]]), codes, seen


@triton.jit(do_not_specialize_on_alignment=["points", "codes"])
def _look(points, codes, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    matrix = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    inside = (i < SIZE) & (j < SIZE)
    first = points + matrix * (SIZE * SIZE)
    x = tl.load(first + i * SIZE + j, mask=inside, other=0.0)
    y = tl.load(first + j * SIZE + i, mask=inside, other=0.0)
    odd = tl.sum(tl.sum(tl.where(tl.abs(x) < float("inf"), 0, 1), axis=1), axis=0)
    size = tl.max(tl.max(tl.abs(x), axis=1), axis=0)
    skew = tl.max(tl.max(tl.abs(x - y), axis=1), axis=0)
    code = tl.where(odd > 0, 1, tl.where(skew <= 1e-6 * size, 0, 2))
    tl.store(codes + matrix, code.to(tl.int64))


@triton.jit(
    do_not_specialize=["count", "rows", "steps", "programs"],
    do_not_specialize_on_alignment=["logs", "codes", "numbers", "out", "seen"],
)
def _round(
    logs,
    codes,
    numbers,
    out,
    seen,
    count,
    rows,
    steps,
    programs,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    EACH: tl.constexpr,
):
    # as `ball_terms`: shortened, rounded, cut, and checked in exact integers
    program = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    upper = (i <= j) & (j < SIZE)
    place = i * SIZE + j
    other = numbers + SIZE * SIZE
    inverse_radius, limit, scale = tl.load(other), tl.load(other + 1), tl.load(other + 2)
    radius = scale.to(tl.int64)
    # an entry off the diagonal is √2 times as long as it is large
    weight = tl.where(i == j, 1.0, libdevice.sqrt(tl.load(other + 3)))
    total = tl.zeros((WIDTH, WIDTH), tl.int64)
    for step in range(steps):
        record = step * programs.to(tl.int64) + program
        there = record < count
        log = tl.load(logs + record * (SIZE * SIZE) + place, mask=upper & there, other=0.0)
        middle = tl.load(numbers + place, mask=upper, other=0.0)
        y = (log - middle) * weight * inverse_radius
        squared = tl.sum(tl.sum(y * y, axis=1), axis=0)
        known = squared < float("inf")
        code = tl.load(codes + record, mask=there, other=1)
        usable = known & (code == 0) & (record < rows)
        length = libdevice.sqrt(tl.where(known, squared, 0.0))
        long = length > limit
        factor = scale * tl.where(long, limit / tl.where(long, length, 1.0), 1.0)
        scaled = libdevice.floor(tl.where(usable, y * factor, 0.0) + 0.5)
        z = tl.minimum(tl.maximum(scaled, -scale), scale).to(tl.int64)
        fits = tl.sum(tl.sum(z * z, axis=1), axis=0) <= radius * radius
        z = tl.where(fits, z, 0)
        tl.store(seen + record, known, mask=there)
        if EACH:
            row = tl.where(i == j, i, SIZE + i * (2 * SIZE - i - 1) // 2 + j - i - 1)
            tl.store(out + row.to(tl.int64) * count + record, z, mask=upper & there)
        else:
            total += z
    if not EACH:
        tl.store(out + program * (SIZE * SIZE) + place, total, mask=upper)
