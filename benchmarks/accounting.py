"""Gaussian DP on the sphere: ours against the published Monte-Carlo Algorithm 2, and the time to calibrate σ.

    PYTHONPATH=. python benchmarks/accounting.py [--repeats 7]

Algorithm 2 runs at the paper's settings (n = 1000 draws, m = 100 repeats, 1000 values of ε up to πΔ/2σ²), three times:
with arrays throughout and this package's exact sampler (its best case), with arrays and the paper's Metropolis chain,
and in the order in which it is printed. Errors are measured against 30 digits of mpmath.
"""

from __future__ import annotations

import argparse
import time

import mpmath as mp
from rich.console import Console
from rich.table import Table
from timing import best_times, one_core, record

from dpmanifolds import Hyperbolic, Manifold, Sphere
from dpmanifolds.privacy import gaussian_dp_mu, sigma_for_mu
from papers.jiang_algorithms import algorithm_2, algorithm_2_step_by_step

SCALES = (0.25, 0.5, 1.0, 2.0)


def reference(sigma: float) -> float:
    """μ on S² at Δ = 1, where the supremum over ε is at ε = 0: −2Φ⁻¹(P₂(A)), A the half-sphere nearer to the first."""
    mp.mp.dps = 30
    sigma, delta = mp.mpf(sigma), mp.mpf(1)

    def weight(s: mp.mpf) -> mp.mpf:
        return mp.exp(-(s**2) / (2 * sigma**2)) * mp.sin(s)

    def share(s: mp.mpf) -> mp.mpf:
        # directions within the angle whose cosine is tan(Δ/2)·cot(s)
        return weight(s) * mp.acos(mp.tan(delta / 2) / mp.tan(s)) / mp.pi

    edges = [delta / 2, delta / 2 + sigma / 4, delta / 2 + sigma, mp.pi - delta / 2]
    inside = mp.quad(share, sorted(edges)) + mp.quad(weight, [mp.pi - delta / 2, mp.pi])
    total = mp.quad(weight, mp.linspace(0, mp.pi, 12))
    return float(-2 * mp.findroot(lambda z: mp.ncdf(z) - inside / total, -delta / sigma / 2))


def against_algorithm_2(repeats: int) -> Table:
    """Ours and the three versions of Algorithm 2 on S², Δ = 1."""
    space = Sphere(2)
    title = f"μ of the Riemannian Gaussian on S², Δ = 1: CPU time on one core, best of {repeats} (as printed: one run)"
    table = Table(title=title)
    headings = ("σ", "μ", "ours", "error", "arrays, exact", "error", "ratio", "arrays, chain", "error", "ratio")
    for heading in (*headings, "as printed", "error", "ratio"):
        table.add_column(heading, justify="right")
    for sigma in SCALES:
        exact = reference(sigma)
        times = best_times(
            {
                "ours": lambda s=sigma: gaussian_dp_mu(space, s, 1.0),
                "exact": lambda s=sigma: algorithm_2(space, s, 1.0, sampler="exact", rng=1),
                "chain": lambda s=sigma: algorithm_2(space, s, 1.0, sampler="chain", rng=1),
            },
            repeats,
        )
        started = time.process_time()
        printed = algorithm_2_step_by_step(space, sigma, 1.0, rng=1)
        times["printed"] = time.process_time() - started
        estimates = {
            "exact": algorithm_2(space, sigma, 1.0, sampler="exact", rng=1),
            "chain": algorithm_2(space, sigma, 1.0, sampler="chain", rng=1),
            "printed": printed,
        }
        ours = gaussian_dp_mu(space, sigma, 1.0)
        row = [f"{sigma:g}", f"{exact:.9f}", f"{1e3 * times['ours']:.1f} ms", f"{ours - exact:.0e}"]
        for name, estimate in estimates.items():
            label = {"exact": "vectorised, exact draws", "chain": "vectorised", "printed": "as printed"}[name]
            record("μ", f"S², Δ = 1, σ = {sigma:g}", times["ours"], f"Algorithm 2, {label}", times[name])
            row += [f"{times[name]:.2f} s", f"{100 * (estimate / exact - 1):+.1f} %"]
            row.append(f"{times[name] / times['ours']:,.0f}")
        table.add_row(*row)
    return table


def calibration(repeats: int) -> Table:
    """Time of σ for a given μ, and how well it inverts."""
    table = Table(title=f"σ for a given μ: CPU time on one core, best of {repeats}")
    for heading in ("space", "Δ", "μ", "σ", "σ·μ/Δ", "time", "μ − μ(σ)"):
        table.add_column(heading, justify="right")
    cases: list[tuple[Manifold, float, float]] = [
        (space, delta, mu)
        for space in (Sphere(1), Sphere(2), Hyperbolic(2), Sphere(10), Hyperbolic(10), Sphere(300))
        for delta, mu in ((0.03, 1.0), (0.5, 2.0))
    ]
    for space, delta, mu in cases:
        times = best_times({"sigma": lambda m=space, d=delta, u=mu: sigma_for_mu(m, u, d)}, repeats)
        sigma = sigma_for_mu(space, mu, delta)
        back = mu - gaussian_dp_mu(space, sigma, delta)
        numbers = [f"{delta:g}", f"{mu:g}", f"{sigma:.6f}", f"{sigma * mu / delta:.4f}"]
        table.add_row(repr(space), *numbers, f"{1e3 * times['sigma']:.0f} ms", f"{back:.0e}")
    return table


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    one_core()
    console = Console(width=170)
    console.print(against_algorithm_2(repeats))
    console.print(calibration(repeats))


if __name__ == "__main__":
    main()
