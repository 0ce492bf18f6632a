"""Private descent: what clipping, noise and bookkeeping add to a bare gradient, and pymanopt on the same step.

    python benchmarks/descent.py [--repeats 7] [--records 100000] [--jax [--steps 1000]]

"bare" is the mean of the per-record gradients without clipping or noise, by the pass that `frechet_mean` itself uses
where there is one; "step" is one step of `private_descent`, from the difference of a long and a short run. pymanopt's
step is its manifold's logarithm of all records, the mean, and its exponential map: no clipping, no noise, no promise.

`--jax` times T full-batch steps of the mean on SPD(3) with the records as JAX arrays in double precision, on whatever
device JAX has, against the jitted gradient alone (by our fused kernel and by `jnp.linalg.eigh`), in wall time. It needs
NumPy, SciPy, JAX and array-api-compat; its noise is seeded, as the secure source would need randomgen too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifolds import SPD, Ball, GaussianDP, Grassmann, Manifold, Sphere
from dpmanifolds.descent.losses import EigenvectorLoss, FrechetMeanLoss, FrechetMedianLoss, Loss, PCALoss
from dpmanifolds.records.blocks import block_size
from dpmanifolds.releases import private_descent

STEPS = 10


def over_blocks(part: Callable[[np.ndarray], Any], records: np.ndarray) -> Callable[[], object]:
    """The sum of `part` over blocks of records that stay in the cache, over their number."""
    size = block_size(records[0].nbytes)
    return lambda: sum(part(records[at : at + size]) for at in range(0, len(records), size)) / len(records)


def mean_pass(manifold: Manifold, w: np.ndarray, records: np.ndarray) -> Callable[[], object]:
    """Σ log_w(x)/n by the non-private pass."""
    ones = np.ones(len(records))
    return over_blocks(lambda x: manifold.linearize(w, x, ones[: len(x)], False).pull, records)


def rows_pass(loss: Loss, w: np.ndarray, records: np.ndarray) -> Callable[[], object]:
    """Per-record gradients and their mean, block by block."""
    return over_blocks(lambda x: loss.gradients(w, x).sum(axis=0), records)


def second_moment_pass(w: np.ndarray, records: np.ndarray) -> Callable[[], object]:
    """xᵀ(xw)/n: the least that a step on a subspace needs."""
    return lambda: records.T @ (records @ w) / len(records)


def descent(loss: Loss, w: np.ndarray, records: np.ndarray, steps: int) -> Callable[[], object]:
    """A run of `steps` steps."""
    return lambda: private_descent(loss, records, loss.manifold, GaussianDP(1.0), start=w, steps=steps, step_size=0.1)


def pymanopt_step(k: int, w: np.ndarray, records: np.ndarray) -> Callable[[], object] | None:
    """pymanopt's logarithm, mean and exponential, if it is installed."""
    try:
        from pymanopt.manifolds import SymmetricPositiveDefinite
    except ImportError:
        return None
    manifold = SymmetricPositiveDefinite(k)
    everywhere = np.broadcast_to(w, records.shape)
    return lambda: manifold.exp(w, 0.1 * manifold.log(everywhere, records).mean(axis=0))


def on_jax(n: int, steps: int, repeats: int) -> None:
    """Print wall times of bare gradients and of private steps on JAX's device."""
    import jax
    import jax.numpy as jnp

    from dpmanifolds.statistics.kernels import device

    jax.config.update("jax_enable_x64", True)
    space, ball, w = SPD(3), Ball(SPD(3), np.eye(3), 4.0), 1.1 * np.eye(3)
    points = jnp.asarray(ball.clip(space.random_point(n, rng=0)))
    whitener = np.linalg.inv(np.linalg.cholesky(w))

    @jax.jit
    def by_eigh(x: Any, m: Any) -> Any:
        values, vectors = jnp.linalg.eigh(m @ x @ m.T)
        return jnp.mean((vectors * jnp.log(values)[:, None, :]) @ vectors.swapaxes(1, 2), axis=0)

    def best(call: Callable[[], object]) -> float:
        call()
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            call()
            times.append(time.perf_counter() - started)
        return min(times)

    fused = best(lambda: device.log_sums(points, whitener=whitener))
    eigh = best(lambda: np.asarray(by_eigh(points, whitener)))
    loss = FrechetMeanLoss(ball)
    run = {
        count: best(
            lambda count=count: private_descent(
                loss, points, space, GaussianDP(1.0), start=w, steps=count, step_size=0.1, rng=0
            )
        )
        for count in (1, 1 + steps)
    }
    step = (run[1 + steps] - run[1]) / steps
    print(f"JAX {jax.__version__} on {jax.devices()[0]}: mean on SPD(3), n = {n:,}, float64, {steps:,} steps")
    print(f"bare gradient, fused kernel {1e3 * fused:.3f} ms; jitted jnp.linalg.eigh {1e3 * eigh:.3f} ms")
    print(f"{steps:,} private steps {run[1 + steps] - run[1]:.2f} s, {1e3 * step:.3f} ms each")
    print(f"{step / fused:.2f} times the fused gradient, {step / eigh:.2f} times the one by eigh")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--jax", action="store_true", help="time the mean on JAX's device instead")
    parser.add_argument("--steps", type=int, default=1000, help="with --jax")
    arguments = parser.parse_args()
    if arguments.jax:
        on_jax(arguments.records, arguments.steps, arguments.repeats)
        return
    from rich.console import Console
    from rich.table import Table
    from timing import best_times, one_core, record

    one_core()
    n, rng = arguments.records, np.random.default_rng(0)
    table = Table(title=f"One step on {n:,} records: CPU time on one core, best of {arguments.repeats}")
    for heading in ("loss", "bare", "private step", "ratio", "pymanopt", "its ratio"):
        table.add_column(heading, justify="right")
    matrices = SPD(3).random_point(n, rng=0)
    vectors = rng.standard_normal((n, 50)) / 10
    directions = Sphere(10).random_point(n, rng=0)
    ball, cap = Ball(SPD(3), np.eye(3), 4.0), Ball(Sphere(10), np.eye(11)[0], 1.5)
    matrices, directions = ball.clip(matrices), cap.clip(directions)
    w, frame = 1.1 * np.eye(3), np.eye(50)[:, :3]
    pole = Sphere(10).project(np.ones(11))
    cases: list[tuple[str, Loss, np.ndarray, np.ndarray, Callable[[], object]]] = [
        ("mean, SPD(3)", FrechetMeanLoss(ball), w, matrices, mean_pass(SPD(3), w, matrices)),
        ("mean, S¹⁰", FrechetMeanLoss(cap), pole, directions, rows_pass(FrechetMeanLoss(cap), pole, directions)),
        ("median, SPD(3)", FrechetMedianLoss(ball), w, matrices, rows_pass(FrechetMedianLoss(ball), w, matrices)),
        ("eigenvector, S⁴⁹", EigenvectorLoss(50, 1.0), frame[:, 0], vectors, second_moment_pass(frame[:, 0], vectors)),
        ("PCA, Gr(50, 3)", PCALoss(Grassmann(50, 3), 1.0), frame, vectors, second_moment_pass(frame, vectors)),
    ]
    for name, loss, start, records, bare in cases:
        candidates = {"bare": bare, "short": descent(loss, start, records, 1)}
        candidates["long"] = descent(loss, start, records, 1 + STEPS)
        peer = pymanopt_step(3, w, matrices) if name == "mean, SPD(3)" else None
        if peer is not None:
            candidates["peer"] = peer
        times = best_times(candidates, arguments.repeats)
        step = (times["long"] - times["short"]) / STEPS
        record("descent", f"a step, {name}, n = {n:,}", step, "gradient alone", times["bare"])
        if peer is not None:
            record("descent", f"a step, {name}, n = {n:,}", step, "pymanopt, not private", times["peer"])
        row = [name, f"{1e3 * times['bare']:.2f} ms", f"{1e3 * step:.2f} ms", f"{step / times['bare']:.2f}"]
        row += [f"{1e3 * times['peer']:.1f} ms", f"{times['peer'] / step:.1f}"] if peer is not None else ["–", "–"]
        table.add_row(*row)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
