"""Han, Mishra, Jawanpuria and Gao 2022, Figure 1: private descent for an eigenvector and for a Fréchet mean.

>>> from papers import names, reproduce
>>> "han-1" in names()  # reproduce("han-1", quick=True) runs it
True

(a) The leading eigenvector of 50-dimensional records, gap ν = 1e−3, η = 0.2, T = log(n²ε²/(50·L₀²·log(1/δ))); (b) the
Fréchet mean on SPD(2), T = n, η = 0.01, D = 1. Both at ε = 0.1, δ = 1e−3. The published noise has variance
T·log(1/δ)L₀²/(nε)², a constant c = 1 that the theorem leaves open; with it, and L₀ read off the records, nothing is
promised. Honest runs take σ from the exact account and a public clip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifolds.descent.losses import EigenvectorLoss, FrechetMeanLoss
from dpmanifolds.domains import Ball
from dpmanifolds.intrinsic import laplace_law
from dpmanifolds.manifolds import SPD, Manifold, Sphere
from dpmanifolds.privacy import ApproxDP, Budget, full_batch_descent, mu_for
from dpmanifolds.releases import private_descent
from dpmanifolds.sums import calibrate, mean_facts
from papers._checks import inside, near
from papers._draws import means_of, wishart_records
from papers._plots import curves
from papers._study import Claim, Numbers, Result, Setting, claim, compared, log_slope, mean_and_error
from papers.descent_baselines import projected_descent

__all__ = ["PANELS", "SIZE", "draw", "run"]

PANELS, SIZE = (1, 2), (9.0, 5.4)
_BUDGET = ApproxDP(0.1, 1e-3)
_LOG = math.log(1 / _BUDGET.delta)
_EIGENVECTOR = "(a) Leading eigenvector in R⁵⁰, ε = 0.1, δ = 1e−3"
_MEAN = "(b) Fréchet mean on SPD(2), D = 1, ε = 0.1, δ = 1e−3"
_RIEMANNIAN, _PROJECTED = (
    "Riemannian descent, published noise (not private)",
    "projected descent, published noise (not private)",
)
_HONEST, _OURS = "Riemannian descent, honest noise, T steps", "ours (output perturbation)"
_PUBLIC_RADIUS = 3.5


def run(setting: Setting) -> Result:
    """Both applications."""
    numbers = Numbers()
    claims = [*_promise(), *_eigenvector(setting, numbers), *_mean(setting, numbers)]
    title = "Han et al. 2022, Figure 1: excess risk of private Riemannian descent"
    return Result("han-1", title, numbers, tuple(claims), setting.size)


def _promise() -> list[Claim]:
    """What the published noise really keeps: μ = 2L₀√T/(nσ) whatever n, T and L₀ are."""
    mu = 2 * _BUDGET.epsilon / math.sqrt(_LOG)
    epsilon = full_batch_descent(n=1, steps=1, clip=0.5, sigma=1 / mu).as_approx(_BUDGET.delta).epsilon
    exact = (mu / mu_for(_BUDGET.epsilon, _BUDGET.delta)) ** 2
    other = (2 / math.sqrt(math.log(1e5)) / mu_for(1.0, 1e-5)) ** 2
    return [
        claim(
            "Han, Theorem 1 and section 5",
            "σ² = T·log(1/δ)L₀²/(nε)² (c = 1) is (0.1, 1e−3)-private",
            f"it is ({epsilon:.4f}, 1e−3)-private; the exact constant is c = {exact:.3f} here and {other:.2f} at "
            "(1, 1e−5)",
            epsilon <= _BUDGET.epsilon,
            near("ε", epsilon, 0.1416, slack=2e-4),
            near("c at (0.1, 1e−3)", exact, 1.754, slack=1e-3),
            near("c at (1, 1e−5)", other, 4.84, slack=0.01),
        )
    ]


def _spectrum_records(n: int, rng: np.random.Generator, dimension: int = 50, gap: float = 1e-3) -> np.ndarray:
    """Z = UΣV with Σ = diag(1, 1 − 1.1ν, …, 1 − 1.4ν, |x|/50, …), U and V random with orthonormal columns."""
    head = np.concatenate([[1.0], 1 - gap * np.array([1.1, 1.2, 1.3, 1.4])])
    spectrum = np.concatenate([head, np.abs(rng.standard_normal(dimension - 5)) / dimension])
    left = np.linalg.qr(rng.standard_normal((n, dimension)))[0]
    right = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return np.asarray((left * spectrum) @ right)


def _steps(n: int, lipschitz: float) -> int:
    """T of Theorem 4 as in section 5.1."""
    return max(1, round(math.log((n * _BUDGET.epsilon) ** 2 / (50 * lipschitz**2 * _LOG))))


def _eigenvector(setting: Setting, numbers: Numbers) -> list[Claim]:
    """Records are scaled by √n so that the second moment has the spectrum Σ², on which the gap ν is defined."""
    sizes = setting.pick(
        (2_000,), (2_000, 5_000, 10_000, 20_000, 50_000), (2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
    )
    runs, rng = setting.pick(2, 8, 20), setting.rng
    sphere, table, frozen, differences = Sphere(49), [], [], []
    for n in setting.each(sizes, "eigenvector"):
        small = _spectrum_records(n, rng)
        records = math.sqrt(n) * small
        lipschitz = float(np.max(np.sum(records**2, axis=1)))
        steps = _steps(n, lipschitz)
        noise = math.sqrt(steps * _LOG) * lipschitz / (n * _BUDGET.epsilon)
        best = float(np.linalg.eigvalsh(records.T @ records / n)[-1])

        def excess(w: np.ndarray, records: np.ndarray = records, best: float = best) -> float:
            return best - float(np.mean((records @ w) ** 2))

        leaky, public = EigenvectorLoss(50, math.sqrt(lipschitz)), EigenvectorLoss(50, _PUBLIC_RADIUS)
        found: dict[str, list[float]] = {_RIEMANNIAN: [], _PROJECTED: [], _HONEST: []}
        for _ in range(runs):
            start = sphere.random_point(rng=rng)
            fixed = {"start": start, "step_size": 0.2, "rng": rng}
            free = private_descent(leaky, records, sphere, None, steps=steps, sigma=noise, **fixed)
            found[_RIEMANNIAN].append(excess(free.value))
            flat = projected_descent(
                records, start, steps=steps, step_size=0.2, noise=noise, clip=2 * lipschitz, rng=rng
            )
            found[_PROJECTED].append(excess(flat))
            kept = private_descent(public, records, sphere, _BUDGET, steps=steps, **fixed)
            found[_HONEST].append(excess(kept.value))
        for name, risks in found.items():
            numbers.add_sample(_EIGENVECTOR, name, n, np.array(risks))
        differences.append(mean_and_error(np.subtract(found[_PROJECTED], found[_RIEMANNIAN])))
        table.append({name: float(np.mean(risks)) for name, risks in found.items()})
        frozen.append(_as_printed(small, sphere.random_point(rng=rng), rng))
    gain = [1 - row[_RIEMANNIAN] / row[_PROJECTED] for row in table]
    last = table[-1]
    growth = last[_RIEMANNIAN] * sizes[-1] ** 2 / (table[0][_RIEMANNIAN] * sizes[0] ** 2)
    shrunk = (sizes[0] / sizes[-1]) ** 2
    total = sum(middle for middle, _ in differences) / math.hypot(*(error for _, error in differences))
    return [
        claim(
            "Han, section 5.1, Figure 1a",
            "Riemannian descent errs less than projected descent",
            f"{gain[0]:+.1%} at n = {sizes[0]}, {gain[-1]:+.1%} at n = {sizes[-1]} (noise in 49 instead of 50 "
            f"directions), {total:.1f} standard errors over all n and {runs} runs with the same starts; "
            f"with honest noise and a public clip {last[_HONEST]:.3g} against {last[_RIEMANNIAN]:.3g} at the largest n",
            total > 3,
            setting.above_smoke(inside("gain at the largest n", gain[-1], -0.35, 0.7)),
        ),
        claim(
            "Han, section 5.1",
            "records Z = UΣV as printed, η = 0.2, T steps find the eigenvector",
            f"Z has rows of length about √(5/n), gradients are of order 1/n and T steps leave "
            f"{min(frozen):.2f} to {max(frozen):.2f} of the starting risk: the figure needs records scaled by √n",
            max(frozen) < 0.5,
            inside("smallest share left", min(frozen), 0.95, 1.01),
        ),
        claim(
            "Han, Theorem 6 and section 5.1",
            "excess risk of order 1/(nε)² up to logarithms",
            f"risk times n² grows {growth:.3g}-fold from n = {sizes[0]} to {sizes[-1]} at the published T and η (T "
            f"is {_steps(sizes[-1], 20.0)} steps at "
            "L₀ = 20)",
            last[_RIEMANNIAN] * sizes[-1] ** 2 < 4 * table[0][_RIEMANNIAN] * sizes[0] ** 2,
            setting.above_smoke(
                inside("log10 of risk at the largest n over the first", math.log10(growth * shrunk), -1.6, 0.6)
            ),
        ),
    ]


def _as_printed(records: np.ndarray, start: np.ndarray, rng: np.random.Generator) -> float:
    """The share of the starting risk that is left without the scaling."""
    n = len(records)
    lipschitz = float(np.max(np.sum(records**2, axis=1)))
    steps = _steps(n, lipschitz)
    noise = math.sqrt(steps * _LOG) * lipschitz / (n * _BUDGET.epsilon)
    loss = EigenvectorLoss(50, math.sqrt(lipschitz))
    w = private_descent(
        loss, records, Sphere(49), None, start=start, steps=steps, sigma=noise, step_size=0.2, rng=rng
    ).value
    best = float(np.linalg.eigvalsh(records.T @ records)[-1])
    return (best - float(np.sum((records @ w) ** 2))) / (best - float(np.sum((records @ start) ** 2)))


def _mean(setting: Setting, numbers: Numbers) -> list[Claim]:
    """Records within ½ of the identity, so that D = 1 is the diameter."""
    sizes = setting.pick((40,), (25, 50, 100, 200, 400), (25, 50, 100, 200, 400, 800))
    runs, rng, space = setting.pick(2, 6, 20), setting.rng, SPD(2)
    ball = Ball(space, np.eye(2), 0.5)
    loss = FrechetMeanLoss(ball)
    table, promised, centre = [], [], []
    for n in setting.each(sizes, "SPD(2)"):
        records = wishart_records(0.5, (1, n), rng)
        best = means_of(space, records)[0]
        published = math.sqrt(n * _LOG) / (n * _BUDGET.epsilon)
        ours = calibrate("direct-gaussian", mean_facts(ball, n), _BUDGET, "rounded")
        draws: dict[str, Callable[[], Any]] = {
            _RIEMANNIAN: _descent(loss, records[0], n, rng, sigma=published),
            _HONEST: _descent(loss, records[0], n, rng, budget=_BUDGET),
            "Riemannian descent, honest noise, 20 steps": _descent(
                loss, records[0], 20, rng, budget=_BUDGET, step=0.25
            ),
            "Riemannian Laplace, published Δ = 2D/n": _laplace(space, best, 2 / (n * _BUDGET.epsilon), rng),
            "Riemannian Laplace, Δ = D/n": _laplace(space, best, 1 / (n * _BUDGET.epsilon), rng),
            _OURS: lambda ours=ours, best=best: ours.release(best, rng=rng),  # type: ignore[misc]
        }
        row = {}
        centre.append(_risk(space, records[0], best, np.eye(2)))
        numbers.add(_MEAN, "public centre alone: no information", n, centre[-1])
        for name, one in draws.items():
            slow = "descent" in name
            risks = np.array([_risk(space, records[0], best, one()) for _ in range(runs if slow else 20 * runs)])
            numbers.add_sample(_MEAN, name, n, risks)
            row[name] = float(risks.mean())
        table.append(row)
        spent = full_batch_descent(n=n, steps=n, clip=loss.bound, sigma=published)
        promised.append(spent.as_approx(_BUDGET.delta).epsilon)
    laplace = "Riemannian Laplace, published Δ = 2D/n"
    against = [row[_RIEMANNIAN] / row[laplace] for row in table]
    fair = [row[_RIEMANNIAN] / row["Riemannian Laplace, Δ = D/n"] for row in table]
    to_ours = [row[_HONEST] / row[_OURS] for row in table]
    ends = np.diag(np.exp([-0.5, 0.0])), np.diag(np.exp([0.5, 0.0]))
    nearby = np.diag(np.exp([0.5 + 1e-6, 0.0]))
    slope_of_square = float(space.dist(ends[0], nearby) ** 2 - space.dist(*ends) ** 2) / 1e-6
    (slope, slope_error), squared = _rate(setting, space, ball), _many_steps(setting, space, ball)
    early = float(np.polyfit(np.log(sizes), np.log([row[_OURS] for row in table]), 1)[0]) if len(sizes) > 1 else -2.0
    return [
        claim(
            "Han, section 5.2, Figure 1b",
            "descent has a better utility than the Laplace mean, particularly when n is small",
            f"{against[0]:.2g} of its risk at n = {sizes[0]}, {against[-1]:.2g} at n = {sizes[-1]}; but 2D/n takes the "
            f"diameter for the radius: at Δ = D/n {fair[0]:.2g} and {fair[-1]:.2g}",
            against[0] < 1 and against[0] < against[-1],
            setting.above_smoke(inside("log10 of the share at n = 25", math.log10(against[0]), -3.6, -0.2)),
        ),
        claim(
            "Han, section 5.2",
            "T = n steps are empirically better than the T = n² of Theorem 3",
            f"{squared:.2g} times the risk with n² steps of the same η; one release of the mean itself has "
            f"{1 / max(to_ours):.2g} to {1 / min(to_ours):.2g} of the risk of T = n honest steps "
            f"(it shrinks towards the public centre, whose own risk is {centre[0]:.2g} at n = {sizes[0]} and "
            f"{centre[-1]:.2g} at "
            f"n = {sizes[-1]}: nothing in this figure beats the centre unless its risk is below that)",
            squared < 1,
            setting.above_smoke(inside("log10 of risk of n over n² steps", math.log10(squared), -4.0, 0.0)),
        ),
        claim(
            "Han, section 5.2",
            "L₀ = D bounds the gradient of dist²",
            f"its slope reaches {slope_of_square:.3f} at D = 1 (grad ρ² = −2·log); with ½ρ² and records in a ball of "
            f"diameter D the mean gradient moves by D/n only, and the published noise keeps ({max(promised):.3f}, "
            "1e−3), "
            "more than the paper's own proof gives",
            slope_of_square <= 1 + 1e-6,
            near("slope", slope_of_square, 2.0, slack=1e-4),
            near("ε of ½ρ²", max(promised), 0.0590, slack=5e-4),
        ),
        compared(
            "Han, Theorem 3",
            "excess risk falls like 1/n²",
            slope,
            (-2.1, -1.9),
            error=slope_error,
            note="slope of log risk against log n, 20 honest steps, n from 800 up; over the n of the figure one "
            "release has "
            f"{early:.2f}, because the ball cuts off errors at small n",
            checks=[near("slope", slope, -2.0, error=slope_error, slack=0.1)],
        ),
    ]


def _risk(space: Manifold, records: np.ndarray, best: np.ndarray, w: np.ndarray) -> float:
    return float(np.mean(space.dist(w, records) ** 2) - np.mean(space.dist(best, records) ** 2))


def _rate(setting: Setting, space: Manifold, ball: Ball) -> tuple[float, float]:
    """How fast the risk of 20 honest steps falls with n, and the standard error of that."""
    sizes, runs = setting.pick((800, 1600), (800, 1600, 3200), (800, 1600, 3200, 6400)), setting.pick(4, 60, 200)
    risks = []
    for n in setting.each(sizes, "rate"):
        records = wishart_records(ball.radius, (1, n), setting.rng)
        best = means_of(space, records)[0]
        once = _descent(FrechetMeanLoss(ball), records[0], 20, setting.rng, budget=_BUDGET, step=0.25)
        risks.append([_risk(space, records[0], best, once()) for _ in range(runs)])
    return log_slope(sizes, risks)


def _many_steps(setting: Setting, space: Manifold, ball: Ball) -> float:
    """The risk of T = n steps over that of T = n², both with the published noise for their T."""
    n, runs = setting.pick(10, 40, 60), setting.pick(2, 8, 20)
    records = wishart_records(ball.radius, (1, n), setting.rng)
    best = means_of(space, records)[0]
    risks = []
    for steps in (n, n * n):
        noise = math.sqrt(steps * _LOG) / (n * _BUDGET.epsilon)
        once = _descent(FrechetMeanLoss(ball), records[0], steps, setting.rng, sigma=noise)
        risks.append(np.mean([_risk(space, records[0], best, once()) for _ in range(runs)]))
    return float(risks[0] / risks[1])


def _descent(
    loss: FrechetMeanLoss,
    records: np.ndarray,
    steps: int,
    rng: Any,
    *,
    step: float = 0.01,
    budget: Budget | None = None,
    sigma: float | None = None,
) -> Callable[[], Any]:
    """A run on ½ρ², whose gradient −log is the one that the paper prints for ρ²."""

    def once() -> Any:
        settings: dict[str, Any] = {"start": loss.ball.center, "steps": steps, "step_size": step, "rng": rng}
        return private_descent(loss, records, loss.manifold, budget, sigma=sigma, **settings).value

    return once


def _laplace(space: Manifold, mean: np.ndarray, sigma: float, rng: np.random.Generator) -> Callable[[], Any]:
    law = laplace_law(space, sigma)
    return lambda: space.move(mean, law.sample_coordinates(1, rng)[0])


def draw(result: Result, axes: Any) -> None:
    """Excess risk against n."""
    for axis, panel in zip(axes, (_EIGENVECTOR, _MEAN), strict=True):
        curves(axis, result, panel, x="sample size n", y="excess risk, mean ± 2 SE")
        axis.set_title(panel.replace(", ", "\n", 1))
