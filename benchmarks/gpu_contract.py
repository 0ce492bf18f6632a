"""Exact integer sums on a GPU: whether the real kernels keep the contract, and how fast they are.

    python benchmarks/gpu_contract.py [--records 100000000] [--part torch|jax]

Each library runs in a process of its own, under a time limit. First PASS or FAIL for every manifold, size of matrix and
precision: a record's integers are the same in any company, place and cut (tests/sums/device_cases.py), hard records
among them, near those of the host where a record is ordinary, and sums are those of the integers. Then times, beside
what reading the records once takes at the bandwidth of a device-to-device copy. With a folder in the environment
variable OUT, everything is written there as JSON too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "benchmarks")]

from gpu import PIECE, attempt, best, tell  # noqa: E402

LIMIT = 200
EXPONENT = 28


def pull_at(k: int, metric: str) -> Any:
    """Tangent vectors at a public point, in a ball of radius 6."""
    import dpmanifolds as dpm
    from dpmanifolds.sums.contribution import TangentContribution
    from dpmanifolds.sums.rounding import finest_exponent
    from tests.sums.device_cases import ordinary_records

    base = ordinary_records(k, 1, 3.0, seed=5)[0]
    exponent = min(EXPONENT, finest_exponent(k * (k + 1) // 2))
    return TangentContribution(dpm.SPD(k, metric), base, radius=6.0, exponent=exponent)


def check(library: str, put: Callable[[np.ndarray], Any]) -> None:
    """The contract on the real kernels, one line per case."""
    from dpmanifolds.statistics.kernels.integers import _kernel_works
    from dpmanifolds.sums.total import integers_of, sum_block
    from tests.sums.device_cases import breaches, hard_records, ordinary_records

    def one(k: int, metric: str, dtype: Any) -> None:
        pull = pull_at(k, metric)

        def integers(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with np.errstate(over="ignore"):
                return integers_of(pull, put(records.astype(dtype)), fixed_rows=True)

        # JAX compiles something for every number of records; larger matrices keep their places
        torch = library == "torch"
        problems = breaches(integers, k, pull.exponent, every_nth=3 if torch else 8, places=k <= 3)
        with np.errstate(over="ignore"):
            hard = np.stack(list(hard_records(k).values())).astype(dtype)
            records = np.concatenate([hard, ordinary_records(k, 20_000, 50.0).astype(dtype)])
        whole, broken = integers(records)
        expected, rules = integers_of(pull, records)
        apart = int(np.abs(whole - expected)[:, len(hard) :].max())
        # Triton works on single precision in single precision
        if apart > (2e-5 * 2**EXPONENT / pull.radius if torch and dtype == np.float32 else 2):
            problems.append(f"{apart} steps from the host")
        total = sum_block(pull, put(records), fixed_rows=True)
        if total.integers != whole.sum(axis=1).tolist():
            problems.append("sums are not those of the integers")
        if total.broken[:4].tolist() != np.bincount(broken, minlength=4).tolist():
            problems.append("counts of broken rules are not those of the integers")
        cut = (
            [sum_block(pull, put(part), fixed_rows=True) for part in np.array_split(records, 7)] if k <= 3 else [total]
        )
        if np.sum([part.integers for part in cut], axis=0).tolist() != total.integers:
            problems.append("sums depend on the cut")
        other = [name for name, a, b in zip(hard_records(k), broken, rules, strict=False) if a != b]
        tell(
            library=library,
            case=f"contract {metric} {k}×{k} {np.dtype(dtype).name}",
            result="FAIL" if problems else "PASS",
            steps_from_host=apart,
            problems=sorted(set(problems))[:6],
            rules_unlike_the_host=other,
        )

    for metric in ("log-euclidean", "affine-invariant"):
        for k, dtype in (
            (1, np.float64),
            (2, np.float64),
            (3, np.float64),
            (3, np.float32),
            (9, np.float64),
            (30, np.float64),
            (33, np.float64),
        ):
            attempt(f"contract {metric} {k}×{k}", lambda k=k, metric=metric, dtype=dtype: one(k, metric, dtype))
    works = [_kernel_works(library, k, "float64", whiten) for k in (1, 2, 3) for whiten in (0, 1)]
    tell(library=library, case="fused kernels", result="PASS" if all(works) else "FAIL")


def measure(library: str, records: int, make: Any, wait: Callable[[], Any], rate: float) -> None:
    """Times of sums beside the read limit, and what a hundred hard records add."""
    from dpmanifolds.sums.total import sum_block

    def larger(k: int, count: int) -> Callable[[], None]:
        def run() -> None:
            points = make(k, count)
            limit, pull = 1e3 * points.nbytes / rate, pull_at(k, "affine-invariant")
            # the last rows are of condition 1e6 or more
            for case, hard in (("", 0), (", 100 hard", 100)):
                if hard:
                    points = make.spoil(points, hard)
                spent = best(lambda points=points: sum_block(pull, points, fixed_rows=True), wait, 2)
                tell(
                    library=library,
                    case=f"integers, affine-invariant {k}×{k}{case}",
                    n=count,
                    ms=spent,
                    limit_ms=limit,
                    over_limit=spent / limit,
                )

        return run

    for k, count in ((3, records), (10, records // 100), (30, records // 1000), (64, records // 5000)):
        attempt(f"{k}×{k}", larger(k, count))


def part_torch(records: int) -> None:
    """PyTorch on its first GPU."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tell(library="torch", case="device", name=torch.cuda.get_device_name() if device == "cuda" else "cpu")

    class Make:
        def __call__(self, k: int, count: int) -> Any:
            result = torch.empty((count, k, k), dtype=torch.float64, device=device)
            size = max(1, PIECE * 9 // (k * k))
            for first in range(0, count, size):
                rows = min(size, count - first)
                factors = torch.randn((rows, k, 6 * k), dtype=torch.float64, device=device)
                result[first : first + rows] = factors @ factors.transpose(1, 2) / (6 * k)
            return result

        @staticmethod
        def spoil(points: Any, rows: int) -> Any:
            points[-rows:, 0, 0] *= 1e6
            return points

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def bandwidth() -> float:
        source = torch.ones(1 << (29 if device == "cuda" else 20), dtype=torch.float64, device=device)
        target = torch.empty_like(source)
        return 2 * source.nbytes / (best(lambda: target.copy_(source), wait) / 1e3)

    rate = bandwidth()
    tell(library="torch", case="copy", gigabytes_per_second=round(rate / 1e9))
    check("torch", lambda array: torch.asarray(array, device=device))
    measure("torch", records, Make(), wait, rate)


def part_jax(records: int) -> None:
    """JAX on its first GPU."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    tell(library="jax", case="device", name=str(jax.devices()[0]), version=jax.__version__)

    class Make:
        def __call__(self, k: int, count: int) -> Any:
            def piece(seed: int, rows: int) -> Any:
                factors = jax.random.normal(jax.random.key(seed), (rows, k, 6 * k), dtype=jnp.float64)
                return factors @ jnp.swapaxes(factors, 1, 2) / (6 * k)

            size = max(1, PIECE * 9 // (k * k))
            parts = [piece(first, min(size, count - first)) for first in range(0, count, size)]
            return jax.block_until_ready(jnp.concatenate(parts))

        @staticmethod
        def spoil(points: Any, rows: int) -> Any:
            return points.at[-rows:, 0, 0].multiply(1e6)

    def wait() -> None:
        jax.block_until_ready(jnp.zeros(()) + 0)

    def bandwidth() -> float:
        source = jnp.ones(1 << (29 if jax.default_backend() != "cpu" else 20))
        copy = jax.jit(lambda x: x + 1)
        return 2 * source.nbytes / (best(lambda: jax.block_until_ready(copy(source)), wait) / 1e3)

    rate = bandwidth()
    tell(library="jax", case="copy", gigabytes_per_second=round(rate / 1e9))
    check("jax", jnp.asarray)
    measure("jax", records, Make(), wait, rate)


def main() -> None:
    """Run the parts and print what they find as they find it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--part", choices=("torch", "jax"))
    given = parser.parse_args()
    if given.part:
        {"torch": part_torch, "jax": part_jax}[given.part](given.records)
        return
    lines: list[str] = []
    for part in ("torch", "jax"):
        command = [sys.executable, "-W", "ignore", __file__, "--part", part, "--records", str(given.records)]
        try:
            done = subprocess.run(command, check=False, timeout=LIMIT, stdout=subprocess.PIPE, text=True)
            printed = done.stdout
            if done.returncode:
                printed += json.dumps({"library": part, "error": f"stopped with {done.returncode}"})
        except subprocess.TimeoutExpired as stopped:
            printed = (stopped.stdout or b"").decode() + json.dumps({"library": part, "case": "stopped", "s": LIMIT})
        print(printed, flush=True)
        lines += [line for line in printed.splitlines() if line.startswith("{")]
        if os.environ.get("OUT"):
            Path(os.environ["OUT"], "gpu_contract.json").write_text(f"[{','.join(lines)}]", encoding="utf-8")
    print("FAIL" if any('"FAIL"' in line or '"error"' in line for line in lines) else "PASS")


if __name__ == "__main__":
    main()
