"""Promises against the truth: random profiles and divergences, ours against mpmath's; none may be below.

    python -m tests.redteam.profiles --comparisons 10000

Every comparison has a number and a seed of its own, so that a failure can be looked at alone (`--only number`).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

from dpmanifolds import Hyperbolic, Sphere
from dpmanifolds.privacy import Guarantee
from dpmanifolds.privacy.batches import SubsampledGaussianTerm, SubsampledLaplaceTerm
from tests.redteam import truths

__all__ = ["ADVERSARIAL", "KINDS", "Comparison", "Report", "compare", "run"]

DIGITS = 50
SLACK = mp.mpf(10) ** -20
"""Of the truth: what quadrature may be off by; promises are rounded up by 1e−14 or more."""
SAMPLINGS = ("poisson", "fixed-size", "poisson-add-remove")
HARD = Path(__file__).parents[1] / "privacy" / "frozen" / "hard_profiles.json"
ADVERSARIAL = [
    ("hyperbolic", 1000, 2.3969508095419494, 2.89954429250718e-05, 1.941721764882664e-10, "3.65522e-4"),
    ("sphere", 2, 100.0, 1.0, 0.0002641566237663257, "3.974e-20"),
]
"""Where a promise was once below the truth: the last is δ to its digits, rounded down."""

Rng = np.random.Generator


class Comparison(NamedTuple):
    """One promise, what it was asked, and the truth."""

    what: str
    told: float
    truth: mp.mpf


def _log_uniform(rng: Rng, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _profile(what: str, promise: Guarantee, epsilon: float, truth: mp.mpf) -> Comparison:
    return Comparison(f"{what}, ε = {epsilon!r}", promise.delta(epsilon), truth)


def gaussian(rng: Rng) -> Comparison:
    mu = _log_uniform(rng, 1e-6, 30)
    epsilon = abs(mu * mu / 2 + mu * rng.uniform(-6, 30)) * rng.choice([1.0, 1e-3])
    return _profile(f"gaussian({mu!r})", Guarantee.gaussian(mu), epsilon, truths.gaussian_delta(mu, epsilon))


def pure(rng: Rng) -> Comparison:
    bound = _log_uniform(rng, 1e-6, 50)
    epsilon = bound * rng.uniform(0, 1)
    return _profile(
        f"pure({bound!r})", Guarantee.pure(bound), epsilon, truths.randomised_response_delta(bound, epsilon)
    )


def laplace(rng: Rng) -> Comparison:
    bound = _log_uniform(rng, 1e-6, 50)
    epsilon = bound * (1 - _log_uniform(rng, 1e-9, 1))
    return _profile(f"laplace({bound!r})", Guarantee.laplace(bound), epsilon, truths.laplace_delta(bound, epsilon))


def laplace_twice(rng: Rng) -> Comparison:
    bound = _log_uniform(rng, 0.05, 5)
    epsilon = 2 * bound * rng.uniform(0, 0.95)
    truth = truths.laplace_twice_delta(bound, epsilon)
    return _profile(f"laplace({bound!r}) twice", Guarantee.laplace(bound).k_fold(2), epsilon, truth)


def l2_laplace(rng: Rng) -> Comparison:
    dim, shift = int(rng.integers(2, 40)), _log_uniform(rng, 0.05, 20)
    epsilon = shift * rng.uniform(0, 0.98)
    truth = truths.l2_laplace_delta(dim, shift, epsilon)
    return _profile(f"l2_laplace({shift!r}, {dim})", Guarantee.l2_laplace(shift, dim), epsilon, truth)


def _discrete_gaussian(rng: Rng) -> tuple[float, int]:
    sigma = _log_uniform(rng, 0.2, 12)
    return sigma, int(rng.integers(1, max(2, int(4 * sigma))))


def discrete_gaussian(rng: Rng) -> Comparison:
    sigma, shift = _discrete_gaussian(rng)
    epsilon = _at_or_near(rng, shift * (shift - 2 * int(rng.integers(-4, 5))) / (2 * sigma**2), 6 * shift / sigma)
    promise = Guarantee.discrete_gaussian(float(shift), sigma, 1)
    truth = truths.discrete_gaussian_delta(sigma, shift, epsilon)
    return _profile(f"discrete_gaussian({shift}, {sigma!r})", promise, epsilon, truth)


def _discrete_laplace(rng: Rng) -> tuple[float, int]:
    return _log_uniform(rng, 0.1, 60), int(rng.integers(1, 40))


def discrete_laplace(rng: Rng) -> Comparison:
    scale, shift = _discrete_laplace(rng)
    epsilon = _at_or_near(rng, (shift - 2 * int(rng.integers(0, shift + 1))) / scale, shift / scale)
    promise = Guarantee.discrete_laplace(shift, scale)
    truth = truths.discrete_laplace_delta(scale, shift, epsilon)
    return _profile(f"discrete_laplace({shift}, {scale!r})", promise, epsilon, truth)


def _at_or_near(rng: Rng, corner: float, top: float) -> float:
    """A corner of the profile, where rounding is on a knife's edge, or anywhere up to `top`."""
    return corner if corner >= 0 and rng.random() < 0.3 else float(top * rng.uniform(0, 1))


def lattice_composed(rng: Rng) -> Comparison:
    """Two or three releases of discrete noise."""
    copies = int(rng.integers(2, 4))
    if rng.random() < 0.5:
        sigma = _log_uniform(rng, 0.3, 1.5)
        shift = int(rng.integers(1, 3))
        (losses, unit), promise = (
            truths.discrete_gaussian_losses(sigma, shift),
            Guarantee.discrete_gaussian(float(shift), sigma, 1),
        )
        what, top = f"discrete_gaussian({shift}, {sigma!r})", 5 * shift / sigma * copies
    else:
        scale, shift = _log_uniform(rng, 0.5, 20), int(rng.integers(1, 20))
        (losses, unit), promise = truths.discrete_laplace_losses(scale, shift), Guarantee.discrete_laplace(shift, scale)
        what, top = f"discrete_laplace({shift}, {scale!r})", shift / scale * copies
    epsilon = float(top * rng.uniform(0, 1))
    truth = truths.composed_loss_delta([losses] * copies, unit, epsilon)
    return _profile(f"{what}, {copies} times", promise.k_fold(copies), epsilon, truth)


def _step(rng: Rng, least: float = 0.2) -> tuple[str, float, float]:
    return str(rng.choice(SAMPLINGS)), _log_uniform(rng, 1e-6, 0.99), _log_uniform(rng, least, 30)


def _of(term: Any) -> Guarantee:
    return Guarantee((term,), term.adjacency)


def sampled_gaussian(rng: Rng) -> Comparison:
    sampling, rate, noise = _step(rng)
    term = SubsampledGaussianTerm(sampling=sampling, rate=rate, noise_multiplier=noise)
    epsilon = 10 ** rng.uniform(-2, 1) * rate / noise
    backward = sampling == "poisson-add-remove" and rng.random() < 0.5
    told = float(term.directed(np.asarray(epsilon), backward=backward))
    truth = truths.sampled_gaussian_delta(sampling, rate, noise, epsilon, backward=backward)
    return Comparison(f"{term}, backward {backward}, ε = {epsilon!r}", told, truth)


def sampled_laplace(rng: Rng) -> Comparison:
    sampling, rate, noise = _step(rng)
    term = SubsampledLaplaceTerm(sampling=sampling, rate=rate, noise_multiplier=noise)
    epsilon = term.pure_epsilon * rng.uniform(0, 1)
    backward = sampling == "poisson-add-remove" and rng.random() < 0.5
    told = float(term.directed(np.asarray(epsilon), backward=backward))
    truth = truths.sampled_laplace_delta(sampling, rate, noise, epsilon, backward=backward)
    return Comparison(f"{term}, backward {backward}, ε = {epsilon!r}", told, truth)


def sampled_twice(rng: Rng) -> Comparison:
    sampling, rate, noise = str(rng.choice(SAMPLINGS)), _log_uniform(rng, 1e-3, 0.9), _log_uniform(rng, 0.7, 4)
    promise = _of(SubsampledGaussianTerm(sampling=sampling, rate=rate, noise_multiplier=noise)).k_fold(2)
    epsilon = 10 ** rng.uniform(-1, 1) * rate / noise
    truth = truths.sampled_gaussian_twice_delta(sampling, rate, noise, epsilon)
    return _profile(f"{promise.terms}", promise, epsilon, truth)


def renyi(rng: Rng) -> Comparison:
    """D_α of discrete noise, and of a sampled step."""
    alpha = 1 + _log_uniform(rng, 0.05, 30)
    which = rng.integers(3)
    if which == 0:
        sigma, shift = _discrete_gaussian(rng)
        promise = Guarantee.discrete_gaussian(float(shift), sigma, 1)
        truth = truths.renyi_of_losses(*truths.discrete_gaussian_losses(sigma, shift), alpha)
    elif which == 1:
        scale, shift = _discrete_laplace(rng)
        promise = Guarantee.discrete_laplace(shift, scale)
        truth = truths.renyi_of_losses(*truths.discrete_laplace_losses(scale, shift), alpha)
    else:
        sampling, rate, noise = str(rng.choice(SAMPLINGS)), _log_uniform(rng, 1e-3, 0.9), _log_uniform(rng, 0.7, 4)
        alpha = min(alpha, 12.0)
        promise = _of(SubsampledGaussianTerm(sampling=sampling, rate=rate, noise_multiplier=noise))
        truth = truths.sampled_gaussian_renyi(sampling, rate, noise, alpha)
    return Comparison(f"{promise.terms}, α = {alpha!r}", promise.as_renyi(alpha).epsilon, truth)


def threshold(rng: Rng) -> Comparison:
    """The μ that a test by a threshold between discrete laws attains."""
    if rng.random() < 0.5:
        sigma, shift = _discrete_gaussian(rng)
        sigma = max(sigma, 0.5)
        losses, _ = truths.discrete_gaussian_losses(sigma, shift)
        promise = Guarantee.discrete_gaussian(float(shift), sigma, 1)
        at = shift - 2 * round(sigma * rng.uniform(-3, 3) + shift / 2)
    else:
        scale, shift = _discrete_laplace(rng)
        losses, _ = truths.discrete_laplace_losses(scale, shift)
        promise = Guarantee.discrete_laplace(shift, scale)
        at = shift - 2 * int(rng.integers(0, shift))
    # the other law has the mirrored losses
    missed = mp.fsum(mass for loss, mass in losses.items() if loss < at)
    level = mp.fsum(mass for loss, mass in losses.items() if -loss >= at)
    attained = -truths.probit(missed) - truths.probit(level)
    return Comparison(f"{promise.terms}, loss ≥ {at}", promise.as_gaussian().mu, attained)


@lru_cache(maxsize=1)
def _hard_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(HARD.read_text(encoding="utf-8"))
    return rows


def _riemannian(kind: str, dim: int, sigma: float, sensitivity: float) -> Guarantee:
    family = Sphere if kind == "sphere" else Hyperbolic
    return Guarantee.riemannian_gaussian(family(dim), sigma, sensitivity)


def riemannian_hard(rng: Rng) -> Comparison:
    """S^d near its largest loss and H^d of high dimension: δ of 25 digits, worked out once."""
    row = _hard_rows()[int(rng.integers(len(_hard_rows())))]
    promise = _riemannian(row["manifold"], row["dim"], row["sigma"], row["sensitivity"])
    truth = mp.mpf(row["delta"]) * (1 - mp.mpf(10) ** -23)
    return _profile(f"{promise.terms}", promise, row["epsilon"], truth)


def riemannian(rng: Rng) -> Comparison:
    """H² and H³, S² and S³, anywhere."""
    kind, dim = str(rng.choice(["sphere", "hyperbolic"])), int(rng.integers(2, 4))
    sigma = _log_uniform(rng, 0.1, 5)
    sensitivity = min(sigma * _log_uniform(rng, 1e-3, 3), 2.5)
    epsilon = sensitivity / sigma * rng.uniform(0, 4)
    if kind == "sphere":
        epsilon = min(epsilon, 0.95 * sensitivity * (2 * math.pi - sensitivity) / 2 / sigma**2)
    promise = _riemannian(kind, dim, sigma, sensitivity)
    truth = truths.riemannian_delta(kind, dim, sigma, sensitivity, epsilon)
    # the oracle's own quadrature is good to some 20 digits of P₁, of which a small δ keeps few
    return _profile(f"{promise.terms}", promise, epsilon, truth * (1 - mp.mpf("1e-9")) - mp.mpf("1e-18"))


KINDS: dict[str, tuple[Callable[[Rng], Comparison], int]] = {
    "gaussian": (gaussian, 200),
    "pure": (pure, 60),
    "laplace": (laplace, 100),
    "laplace twice": (laplace_twice, 12),
    "ℓ2-laplace": (l2_laplace, 10),
    "discrete gaussian": (discrete_gaussian, 110),
    "discrete laplace": (discrete_laplace, 150),
    "lattice composed": (lattice_composed, 8),
    "sampled gaussian": (sampled_gaussian, 150),
    "sampled laplace": (sampled_laplace, 110),
    "sampled twice": (sampled_twice, 5),
    "renyi": (renyi, 30),
    "threshold": (threshold, 40),
    "riemannian, hard": (riemannian_hard, 14),
    "riemannian": (riemannian, 1),
}
"""What is compared, and how often in a thousand: the dear ones less."""


def compare(seed: int, number: int) -> tuple[str, Comparison]:
    """Comparison `number` of a seed."""
    rng = np.random.default_rng([seed, number])
    weights = np.array([weight for _, weight in KINDS.values()], dtype=float)
    name = list(KINDS)[int(rng.choice(len(KINDS), p=weights / weights.sum()))]
    with mp.workdps(DIGITS):
        return name, KINDS[name][0](rng)


@dataclass
class Report:
    """How many of each kind, how far above the truth the promises were, and which were below it.

    Far above are promises at a corner of the profile, which rounding puts on its upper side, and far out in the tail.
    """

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    above: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    below: list[str] = field(default_factory=list)

    def add(self, name: str, number: int, found: Comparison, seconds: float) -> None:
        self.counts[name] += 1
        self.seconds[name] += seconds
        with mp.workdps(DIGITS):
            told = mp.mpf(found.told)
            if not told >= found.truth * (1 - SLACK):
                self.below.append(
                    f"{number} ({name}): {found.what}: told {found.told!r}, true {mp.nstr(found.truth, 20)}"
                )
            if found.truth > mp.mpf("1e-280"):
                self.above[name].append(float(told / found.truth - 1))

    def __str__(self) -> str:
        lines = [
            f"{name:20} {count:6}  {self.seconds[name]:7.1f} s  above by {np.median(self.above[name] or [0.0]):.1e}, "
            f"{np.max(self.above[name] or [0.0]):.1e} at most"
            for name, count in sorted(self.counts.items())
        ]
        verdict = f"{len(self.below)} of {sum(self.counts.values())} promises below the truth"
        return "\n".join([*lines, verdict, *self.below])


def run(comparisons: int, seed: int = 0, first: int = 0) -> Report:
    """The adversarial cases, and so many random ones."""
    report = Report()
    for kind, dim, sigma, sensitivity, epsilon, delta in ADVERSARIAL:
        promise = _riemannian(kind, dim, sigma, sensitivity)
        with mp.workdps(DIGITS):
            found = _profile(f"{promise.terms}", promise, epsilon, mp.mpf(delta))
        report.add("adversarial", -1, found, 0.0)
    for number in range(first, first + comparisons):
        start = time.perf_counter()
        name, found = compare(seed, number)
        report.add(name, number, found, time.perf_counter() - start)
    return report


def main() -> int:
    """Print the report; 1 if a promise was below the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.profiles", description=__doc__)
    parser.add_argument("--comparisons", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other comparisons")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one, to share the work")
    parser.add_argument("--only", type=int, default=None, help="make this one comparison and show it")
    options = parser.parse_args()
    if options.only is not None:
        print(compare(options.seed, options.only))
        return 0
    report = run(options.comparisons, options.seed, options.first)
    print(report)
    return 1 if report.below else 0


if __name__ == "__main__":
    sys.exit(main())
