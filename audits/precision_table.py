"""The attack on low-order bits against our mechanisms, plain NumPy noise, diffprivlib and OpenDP."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.precision import PrecisionReport, precision_attack
from dpmanifolds._points import count_records, leaves
from dpmanifolds.auditing.audit import adds_to_sums, noisy_sums, reached_points, releases, worst_of
from dpmanifolds.auditing.neighbours import Neighbours, worst_neighbours
from dpmanifolds.domains import Ball
from dpmanifolds.manifolds import Euclidean, Manifold, Sphere
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import ApproxDP, Budget, PureDP, gaussian_sigma, sensitivity_of_mean
from dpmanifolds.sums import calibrate, mean_facts

__all__ = ["attack_diffprivlib", "attack_mechanism", "attack_numpy", "attack_opendp", "numbers_of", "precision_lines"]

_N = 100
_PURE, _APPROX = PureDP(1.0), ApproxDP(1.0, 1e-6)
_OURS: tuple[tuple[str, str, Budget], ...] = (
    ("wrapped-laplace", "rounded", _PURE),
    ("wrapped-laplace", "lattice", _PURE),
    ("wrapped-gaussian", "rounded", _APPROX),
    ("wrapped-gaussian", "lattice", _APPROX),
    ("direct-laplace", "rounded", _PURE),
    ("direct-gaussian", "rounded", _APPROX),
    ("riemannian-laplace", "idealized", _PURE),
    ("riemannian-gaussian", "idealized", _APPROX),
    ("k-norm-gradient", "idealized", _PURE),
)


def _ball(manifold: Manifold) -> Ball:
    center = np.zeros(manifold.dim) if isinstance(manifold, Euclidean) else np.eye(manifold.dim + 1)[-1]
    return Ball(manifold, center, math.pi / 8)


def numbers_of(points: Any) -> np.ndarray:
    """Every real number in points (count, …), as (count, entries)."""
    flat = [np.asarray(part).reshape((count_records(points), -1)) for part in leaves(points)]
    return np.concatenate([np.hstack([part.real, part.imag]) if np.iscomplexobj(part) else part for part in flat], 1)


def _attack(sample: Callable[[int], Any], exact: tuple[Any, ...], budget: Budget) -> PrecisionReport:
    """Draws of both neighbours, with what they would be without noise as offsets."""
    first, second = (numbers_of(sample(which)) for which in (0, 1))
    offsets = [numbers_of(each[None])[0] for each in exact]
    promise = (budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else (_PURE.epsilon, 0.0)
    return precision_attack(first, second, epsilon=promise[0], delta=promise[1], offsets=offsets)


def attack_mechanism(
    name: str, numerics: str, budget: Budget, manifold: Manifold, draws: int, rng: Any = None
) -> PrecisionReport:
    """One of our mechanisms, at its worst neighbours."""
    ball = _ball(manifold)
    mechanism = calibrate(name, mean_facts(ball, _N), budget, numerics)
    pair = worst_of(worst_neighbours(ball, _N, rng=0), mechanism)
    source = None if rng is None else as_generator(rng)
    if not adds_to_sums(mechanism):
        return _attack(lambda which: releases(mechanism, pair, which, draws, source), pair.means, budget)

    def shown(sums: np.ndarray) -> np.ndarray:
        """All numbers of the release: the point, and the noisy coordinates that it was made of."""
        coordinates = sums * mechanism.step
        return np.concatenate([numbers_of(reached_points(mechanism, coordinates)), coordinates], axis=1)

    exact = tuple(shown(np.array([total], dtype=np.int64))[0] for total in pair.sums(mechanism))
    return _attack(lambda which: shown(noisy_sums(mechanism, pair, which, draws, source)), exact, budget)


@dataclass(frozen=True)
class _OnTheLine:
    """The mean of numbers in [−π/8, π/8]; one record moves from one end to the other."""

    pair: Neighbours
    moved: float

    @classmethod
    def made(cls) -> _OnTheLine:
        ball = _ball(Euclidean(1))
        return cls(worst_neighbours(ball, _N, rng=0)[0], float(sensitivity_of_mean(ball, _N)))


def attack_numpy(kind: str, draws: int, rng: Any = None) -> PrecisionReport:
    """mean + generator.laplace(…), or .normal(…), as it is written everywhere."""
    line, source = _OnTheLine.made(), as_generator(rng)

    def sample(which: int) -> np.ndarray:
        mean = line.pair.means[which]
        if kind == "laplace":
            return np.asarray(mean + source.laplace(scale=line.moved, size=(draws, 1)))
        return np.asarray(mean + source.normal(scale=gaussian_sigma(line.moved, 1.0, 1e-6), size=(draws, 1)))

    return _attack(sample, line.pair.means, _PURE if kind == "laplace" else _APPROX)


def attack_opendp(kind: str, draws: int) -> PrecisionReport:
    """OpenDP's measurements on floating-point numbers, which it snaps to a lattice itself."""
    import opendp.prelude as dp

    line = _OnTheLine.made()
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    if kind == "laplace":
        measure = dp.m.make_laplace(*space, scale=line.moved)
    else:
        measure = dp.m.make_gaussian(*space, scale=gaussian_sigma(line.moved, 1.0, 1e-6))

    def sample(which: int) -> np.ndarray:
        mean = float(line.pair.means[which][0])
        return np.array([[measure(mean)] for _ in range(draws)])

    return _attack(sample, line.pair.means, _PURE if kind == "laplace" else _APPROX)


_DIFFPRIVLIB = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.mechanisms import GaussianAnalytic, Laplace
kind, draws, sensitivity, *means = sys.argv[1:]
noise = Laplace(epsilon=1.0, sensitivity=float(sensitivity))
if kind == "gaussian":
    noise = GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=float(sensitivity))
drawn = [[noise.randomise(float(mean)) for _ in range(int(draws))] for mean in means]
sys.stdout.buffer.write(np.array(drawn, dtype="<f8").tobytes())
"""


def attack_diffprivlib(kind: str, draws: int, python: str) -> PrecisionReport:
    """diffprivlib's mechanisms, run by an interpreter that has it: it does not live with current scikit-learn."""
    line = _OnTheLine.made()
    means = [float(mean[0]) for mean in line.pair.means]
    arguments = [python, "-c", _DIFFPRIVLIB, kind, str(draws), repr(line.moved), *map(repr, means)]
    drawn = np.frombuffer(subprocess.run(arguments, check=True, capture_output=True).stdout, dtype="<f8")
    outputs = drawn.reshape((2, draws, 1))
    return _attack(lambda which: outputs[which], line.pair.means, _PURE if kind == "laplace" else _APPROX)


def _rows(draws: int, diffprivlib: str | None) -> Iterator[tuple[str, str, PrecisionReport]]:
    where = "Euclidean(1)"
    for kind, method in (("laplace", "laplace"), ("gaussian", "normal")):
        yield f"NumPy: `mean + rng.{method}(…)`", where, attack_numpy(kind, draws)
    for kind in ("laplace", "gaussian") if diffprivlib else ():
        name = "Laplace" if kind == "laplace" else "GaussianAnalytic"
        yield f"diffprivlib: `{name}`", where, attack_diffprivlib(kind, draws, str(diffprivlib))
    for kind in ("laplace", "gaussian"):
        yield f"OpenDP: `make_{kind}` on floats", where, attack_opendp(kind, draws)
    for manifold in (Euclidean(1), Sphere(2)):
        for name, numerics, budget in _OURS:
            yield f"{name} ({numerics})", repr(manifold), attack_mechanism(name, numerics, budget, manifold, draws)


def precision_lines(draws: int, diffprivlib: str | None = None) -> list[str]:
    """A table in Markdown; `diffprivlib` is a Python interpreter that has that library."""
    lines = [
        "| noise | manifold | claimed ε | best event | seen under one | under the other | ε shown at 95 % | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for noise, manifold, report in _rows(draws, diffprivlib):
        claimed = f"{report.claim.value:g}" + (f" (δ = {report.claim.delta:g})" if report.claim.delta else "")
        seen = ["" if math.isnan(rate) else f"{rate:.4f}" for rate in report.rates]
        verdict = "**separated**" if report.separated else "not separated"
        lines.append(
            f"| {noise} | `{manifold}` | {claimed} | {report.event} | {seen[0]} | {seen[1]} | "
            f"{report.bound:.3f} | {verdict} |"
        )
    return lines
