"""Beyond the papers: every mechanism on every manifold at the same promise, and which one a user should take.

>>> from papers import names, reproduce
>>> "comparison" in names()  # reproduce("comparison", quick=True) runs it
True

The Fréchet mean of n = 2,000 records in a public ball. Errors are expected geodesic distances, before anything is
drawn and before projection to the ball, for a mean at the centre, and relative to the best mechanism with safe
numerics. What is left out is not offered there: no proof, no sampler, or a budget that its noise cannot keep.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.errors import ConvergenceError, NotAvailableError, RadiusTooLargeError
from dpmanifolds.manifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.privacy import ApproxDP, Budget, GaussianDP, PureDP, sensitivity_of_mean
from dpmanifolds.sums import MECHANISMS, calibrate, mean_facts
from papers._checks import inside, near
from papers._plots import legend_below
from papers._study import Claim, Numbers, Result, Setting, claim
from papers.published import published_sensitivity_of_mean

__all__ = ["PANELS", "SIZE", "draw", "run"]

PANELS, SIZE = (1, 3), (9.0, 6.6)
_N = 2_000
_KINDS = {
    ("wrapped-laplace", "rounded"): ("wrapped Laplace, rounded", "o", "#E69F00"),
    ("wrapped-laplace", "lattice"): ("wrapped Laplace, lattice", "s", "#E69F00"),
    ("wrapped-gaussian", "rounded"): ("wrapped Gaussian, rounded", "o", "#0072B2"),
    ("wrapped-gaussian", "lattice"): ("wrapped Gaussian, lattice", "s", "#0072B2"),
    ("riemannian-laplace", "idealized"): ("Riemannian Laplace, idealized", "x", "#D55E00"),
    ("riemannian-gaussian", "idealized"): ("Riemannian Gaussian, idealized", "x", "#009E73"),
    ("k-norm-gradient", "idealized"): ("K-norm gradient, idealized", "x", "#CC79A7"),
}
_PUBLISHED = "Riemannian Laplace, published Δ"
_TAIL = math.erfc(0.25 / math.sqrt(2)) / 2
_FLAT = math.sqrt(8 / math.pi) / 0.5 * -2 * math.log(2 * _TAIL) / 3
"""The Gaussian's error over the Laplace's in R³ at μ = ½, where Laplace noise of pure ε has e^{−ε/2} = 2Φ(−¼)."""
_BUDGETS: dict[str, Budget] = {
    "ε = 1": PureDP(1.0),
    "ε = 1, δ = 1e−6": ApproxDP(1.0, 1e-6),
    "μ = 0.5 (Gaussian DP)": GaussianDP(0.5),
}


def _cases() -> dict[str, tuple[Manifold, float]]:
    return {
        "R³, r = 1": (Euclidean(3), 1.0),
        "S², r = π/8": (Sphere(2), math.pi / 8),
        "S¹⁰, r = 0.7": (Sphere(10), 0.7),
        "H², r = 1": (Hyperbolic(2), 1.0),
        "SPD(2) affine-invariant, r = 1.5": (SPD(2), 1.5),
        "SPD(5) affine-invariant, r = 1.5": (SPD(5), 1.5),
        "SPD(5) log-Euclidean, r = 1.5": (SPD(5, "log-euclidean"), 1.5),
        "SPD(20) log-Euclidean, r = 1.5": (SPD(20, "log-euclidean"), 1.5),
        "shapes of 9 landmarks, r = 0.15": (PlanarShapes(9), 0.15),
        "rotations SO(3), r = 0.7": (SpecialOrthogonal(3), 0.7),
        "planes in R⁵, r = 0.5": (Grassmann(5, 2), 0.5),
    }


def run(setting: Setting) -> Result:
    """Calibrate everything that is offered."""
    numbers = Numbers()
    cases = _cases()
    chosen = setting.pick(list(cases)[:2], list(cases), list(cases))
    budgets = setting.pick(list(_BUDGETS)[:2], list(_BUDGETS), list(_BUDGETS))
    errors: dict[tuple[str, str], dict[str, float]] = {}
    for case in setting.each(chosen, "manifolds"):
        space, radius = cases[case]
        ball = Ball(space, _center(space), radius)
        for label in budgets:
            errors[case, label] = found = _errors(ball, _BUDGETS[label])
            safe = min(error for name, error in found.items() if "idealized" not in name and name != _PUBLISHED)
            for name, error in found.items():
                numbers.add(label, f"{case}: {name}", error, error / safe)
    title = f"Every mechanism at the same promise: expected error of the private mean of n = {_N:,} records"
    return Result("comparison", title, numbers, tuple(_claims(setting, errors, cases)), setting.size)


def _center(space: Manifold) -> Any:
    if isinstance(space, Grassmann | SpecialOrthogonal):
        return np.eye(space.point_shape[0])[:, : space.point_shape[1]]
    if isinstance(space, Sphere | Hyperbolic):
        return np.eye(space.dim + 1)[0] if isinstance(space, Sphere) else space.origin
    if isinstance(space, PlanarShapes):
        return space.project(np.exp(2j * np.pi * np.arange(space.k) / space.k))
    return np.zeros(space.dim) if isinstance(space, Euclidean) else np.eye(space.point_shape[0])


def _errors(ball: Ball, budget: Budget) -> dict[str, float]:
    """Expected errors of what is offered; the published Laplace where its bound differs from ours."""
    facts, found = mean_facts(ball, _N), {}
    for name in MECHANISMS:
        for numerics in ("rounded", "lattice", "idealized"):
            if (name, numerics) not in _KINDS:
                continue
            try:
                found[_KINDS[name, numerics][0]] = calibrate(name, facts, budget, numerics).expected_error.mean
            except (NotAvailableError, ConvergenceError):
                continue
    laplace = _KINDS["riemannian-laplace", "idealized"][0]
    if laplace in found and isinstance(budget, PureDP) and ball.manifold.curvature_bounds[1] > 0:
        try:
            share = published_sensitivity_of_mean(ball, _N) / float(sensitivity_of_mean(ball, _N))
        except RadiusTooLargeError:
            return found
        # far below the size of the space, the error is proportional to the scale
        found[_PUBLISHED] = share * found[laplace]
    return found


def _moves(space: Manifold, radius: float) -> float:
    """How far the Fréchet mean moves, over how far the mean of tangent vectors does."""
    return float(sensitivity_of_mean(Ball(space, _center(space), radius), _N)) * _N / (2 * radius)


def _edge(ball: Ball) -> float:
    """How much more the wrapped Laplace errs for a mean at the edge of the ball."""
    expected = calibrate("wrapped-laplace", mean_facts(ball, _N), PureDP(1.0), "rounded").expected_error
    return expected.mean_at_edge / expected.mean


def _claims(setting: Setting, errors: dict[tuple[str, str], dict[str, float]], cases: Any) -> list[Claim]:
    laplace, gradient = _KINDS["riemannian-laplace", "idealized"][0], _KINDS["k-norm-gradient", "idealized"][0]
    wrapped, gaussian = "wrapped Laplace, rounded", "wrapped Gaussian, rounded"
    pure = {case: found for (case, label), found in errors.items() if label == "ε = 1"}
    both = {case: found[gradient] / found[laplace] for case, found in pure.items() if {gradient, laplace} <= set(found)}
    inside_ball = {case: found[wrapped] / found[laplace] for case, found in pure.items() if laplace in found}
    edges = [_edge(Ball(cases[case][0], _center(cases[case][0]), cases[case][1])) for case in pure]
    approximate = {
        case: (cases[case][0].dim, found[gaussian] / found[wrapped])
        for (case, label), found in errors.items()
        if label == "ε = 1, δ = 1e−6"
    }
    wins = sorted(dim for dim, ratio in approximate.values() if ratio < 1)
    loses = sorted(dim for dim, ratio in approximate.values() if ratio >= 1)
    riemannian = _KINDS["riemannian-gaussian", "idealized"][0]
    gdp = {
        case: (found[riemannian] / found[laplace], found[riemannian] / found[gaussian])
        for (case, label), found in errors.items()
        if label.startswith("μ") and {riemannian, laplace} <= set(found)
    }
    result = [
        claim(
            "Soto, section 5",
            "the K-norm gradient outperforms the manifold Laplace",
            f"with honest noise it errs less on {sum(r < 1 for r in both.values())} of {len(both)} manifolds; "
            f"{min(both.values()):.2f} to {max(both.values()):.2f} times the Laplace's error. Take it only where "
            "the space is not "
            "homogeneous",
            all(ratio < 1 for ratio in both.values()),
            # twice the scale, with the gradient's Δ, which is a little smaller
            inside("smallest", min(both.values()), 1.75, 2.0),
            inside("largest", max(both.values()), 1.9, 2.1),
        ),
        claim(
            "Reimherr, section 3",
            "noise in another tangent space risks more serious distortions than noise on the manifold",
            f"for a mean at the public centre the wrapped Laplace errs {min(inside_ball.values()):.3f} to "
            f"{max(inside_ball.values()):.3f} times the Riemannian one over {len(inside_ball)} manifolds; at the "
            "edge of the "
            "ball up to "
            f"{max(edges):.2f} times, where the curvature is negative. Its floating-point law is exact",
            max(edges) > 1.1,
            inside("at the centre", max(inside_ball.values()), 0.999, 1.01),
            setting.above_smoke(inside("at the edge", max(edges), 1.15, 1.25)),
        ),
        claim(
            "Utpala, abstract",
            "the tangent Gaussian errs less than the Laplace",
            f"at (1, 1e−6) in {'no dimension tried' if not wins else f'dimension {wins[0]} and above'}; the Laplace, "
            f"calibrated by its exact profile, errs less up to dimension {loses[-1] if loses else '–'}",
            not loses,
            setting.above_smoke(near("won from", wins[0] if wins else 0, 0)),
            setting.above_smoke(near("lost up to", loses[-1] if loses else 0, 210)),
        ),
    ]
    if gdp:
        result.append(
            claim(
                "Jiang, section 6",
                "for μ-GDP the Riemannian Gaussian outperforms the Laplace",
                "error over the Riemannian Laplace's: "
                + ", ".join(f"{one:.2f} ({case})" for case, (one, _) in gdp.items())
                + "; over the wrapped Gaussian's, which has safe numerics: "
                + ", ".join(f"{other:.3f}" for _, other in gdp.values()),
                all(one < 1 for one, _ in gdp.values()),
                near("on R³", gdp["R³, r = 1"][0], _FLAT, slack=0.002),
                # noise on the manifold pays for the move of the Fréchet mean, noise on a sum for 2r/n
                *(
                    near(f"wrapped, {case}", other, _moves(*cases[case]), slack=0.005)
                    for case, (_, other) in gdp.items()
                ),
            )
        )
    return result


def draw(result: Result, axes: Any) -> None:
    """One row for each manifold, one mark for each mechanism."""
    looks = {name: (marker, code) for name, marker, code in _KINDS.values()}
    looks[_PUBLISHED] = ("D", "#888888")
    cases = list(dict.fromkeys(key.split(": ")[0] for panel in result.panels for key in result.series(panel)))
    for index, (axis, panel) in enumerate(zip(axes, result.panels, strict=False)):
        shown = set()
        for key, points in result.series(panel).items():
            case, name = key.split(": ")
            marker, code = looks[name]
            fill = {} if marker == "x" else {"markerfacecolor": "none"}
            label = None if name in shown else name
            shown.add(name)
            axis.plot(points[0, 1], cases.index(case), marker, color=code, label=label, markersize=6, **fill)
        axis.set_xscale("log")
        axis.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
        axis.minorticks_off()
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_yticks(range(len(cases)), cases if index == 0 else [""] * len(cases))
        axis.invert_yaxis()
        axis.set_title(panel)
    axes[len(result.panels) // 2].set_xlabel("expected error over that of the best safe mechanism")
    legend_below(axes, 2)
    for axis in axes[len(result.panels) :]:
        axis.remove()
