"""Many private tests at once: the formulas of `private_two_sample_test` on charts, with noise in floating point.

    python benchmarks/permutation_simulation.py charts.npz --out found.json   # NumPy, or PyTorch where it sees a GPU

It needs no other file of this repository, so that it runs where nothing can be installed. `benchmarks/two_sample.py`
writes the charts, reads the answers, and holds this program against the package itself.
"""

from __future__ import annotations

import argparse
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_AT_ONCE = 3e7


def library(gpu: bool) -> Any:
    """PyTorch on a GPU, or NumPy."""
    if gpu:
        import torch

        if torch.cuda.is_available():
            torch.set_default_dtype(torch.float64)
            return torch
    return np


def features(chart: Any, directions: Any, xp: Any, *, separate: bool = False) -> Any:
    """Rows of which any two are at most √2 apart, in each entry where they are separate: the package's kernels."""
    length = (chart * chart).sum(-1)[..., None] ** 0.5
    chart = chart / xp.where(length > 1, length, xp.ones_like(length))
    if directions is None:
        return chart / math.sqrt(2)
    inner = chart @ directions
    if separate:
        cut = xp.clip(inner, -1, 1)
        return xp.concatenate([cut, 1 - 2 * xp.abs(cut[..., : cut.shape[-1] // 2])], -1) / math.sqrt(2)
    grown = xp.concatenate([xp.exp(inner), xp.exp(-inner)], -1)
    return grown / (grown * grown).sum(-1)[..., None] ** 0.5


def simulate(case: dict[str, Any], pools: Any, repeats: int, rng: np.random.Generator, xp: Any) -> list[dict[str, Any]]:
    """How often the test rejects, with noise and without, over data sets drawn from the rows of a pool, those of the
    second group moved by a shift, along the first axis or along all alike: for each ε of the case, on the same data.

    Also told, of the data sets whose T is above the threshold of the test without noise by σ·ln(1.25/level): how many
    there are, and how many of them are found.
    """
    n, m, count = case["n"], case["m"], case["permutations"] + 1
    rank = math.floor(case["level"] * count + 1e-9)
    directions = pools.get(case["directions"])
    # single precision is enough to compare statistics, where there are many of them
    kind = np.float32 if xp is np and case.get("separate", False) else np.float64
    moved = (lambda a: xp.asarray(a, device="cuda")) if xp is not np else partial(np.asarray, dtype=kind)
    directions = None if directions is None else moved(directions)
    pool, separate = pools[case["pool"]], case.get("separate", False)
    dim = pool.shape[1]
    shift = case["shift"] * (np.full(dim, 1 / math.sqrt(dim)) if case.get("even") else np.eye(dim)[0])
    width = dim if directions is None else 2 * directions.shape[1]
    size = max(1, min(repeats, int(_AT_ONCE * (20 if xp is not np else 1) / (count * (n + m + 3 * width)))))
    found = [{"epsilon": epsilon, "private": 0.0, "clear": 0.0, "seen": 0.0} for epsilon in case["epsilons"]]
    plain, done = 0.0, 0
    while done < repeats:
        batch = min(size, repeats - done)
        first, second = (pool[rng.integers(len(pool), size=(batch, many))] for many in (n, m))
        both = np.concatenate([first, second + shift], 1)
        both = features(moved(case["scale"] * both), directions, xp, separate=separate)
        seed = int(rng.integers(2**31))
        if xp is np:
            order = np.argsort(rng.random((batch, count, n + m), dtype=np.float32), axis=-1)
            noises = rng.laplace(size=(len(found), batch, count))
        else:
            generator = xp.Generator(device="cuda").manual_seed(seed)
            order = xp.rand((batch, count, n + m), generator=generator, device="cuda", dtype=xp.float32).argsort(-1)
            noises = xp.rand((len(found), batch, count), generator=generator, device="cuda")
            noises = -xp.sign(noises - 0.5) * xp.log(1 - 2 * xp.abs(noises - 0.5))
        # the place of a record in the shuffled order decides its group
        weights = xp.where(order < n, moved(1 / n), moved(-1 / m))
        weights[:, 0, :n], weights[:, 0, n:] = 1 / n, -1 / m
        gaps = weights @ both
        values = xp.abs(gaps).max(-1) if separate else (gaps**2).sum(-1) ** 0.5
        values = values if xp is np or not separate else values.values
        plain += float(((values[:, 1:] >= values[:, :1]).sum(-1) < rank).sum())
        for each, noise in zip(found, noises, strict=True):
            sigma = 2 * math.sqrt(2) / min(n, m) / each["epsilon"]
            noisy, reach = values + sigma * noise, sigma * math.log(1.25 / case["level"])
            rejected = (noisy[:, 1:] >= noisy[:, :1]).sum(-1) < rank
            beyond = (values[:, 1:] >= values[:, :1] - reach).sum(-1) < rank
            each["private"] += float(rejected.sum())
            each["clear"] += float(beyond.sum())
            each["seen"] += float((beyond & rejected).sum())
        done += batch
    return [each | {"plain": plain / repeats, "private": each["private"] / repeats} for each in found]


def main(arguments: list[str] | None = None) -> None:
    """Run all cases of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("charts", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    pools = dict(np.load(options.charts, allow_pickle=False))
    cases, xp, rng = json.loads(str(pools.pop("cases"))), library(gpu=True), np.random.default_rng(options.seed)
    found = []
    for case in cases:
        found += [case | each for each in simulate(case, pools, case["repeats"], rng, xp)]
        print(found[-1], flush=True)
        options.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
