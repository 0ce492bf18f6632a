"""Step sizes from public constants: the rules of Theorems 2 to 5 of Han et al. 2022, and plain schedules.

>>> from dpmanifolds.descent import StronglyConvexSteps
>>> StronglyConvexSteps(strength=2.0).sizes(steps=3, sigma=0.1, dim=6).round(6).tolist()
[0.5, 0.25, 0.166667]

L₀ bounds the per-record gradients, L₁ the Hessian, D the diameter of the region W where w moves; all must be public. A
constant estimated from the records leaks them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.descent.noise_plan import plan_descent
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import Budget
from dpmanifolds.privacy.budget import checked_budget

_FIRST = 0.5
_FINEST = 1e-4
_COARSEST = 0.1


def curvature_constant(diameter: float, lowest_curvature: float) -> float:
    """ς = √|κ|D·coth(√|κ|D) for a lowest curvature κ < 0, else 1: how much triangles open (Lemma 1 of the paper).

    >>> round(curvature_constant(2.0, -0.5), 6)
    1.591892
    """
    if lowest_curvature >= 0:
        return 1.0
    scaled = math.sqrt(-lowest_curvature) * positive_number("diameter", diameter)
    return scaled / math.tanh(scaled)


@dataclass(frozen=True)
class StepRule(ABC):
    """Step sizes as a public function of the plan.

    >>> from dpmanifolds.descent import SmoothSteps, StepRule
    >>> isinstance(SmoothSteps(smoothness=4.0), StepRule)
    True
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "lowest_curvature":
                object.__setattr__(self, field.name, positive_number(field.name, getattr(self, field.name)))

    @abstractmethod
    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        """η_0, …, η_{T−1}."""


@dataclass(frozen=True)
class ConvexSteps(StepRule):
    """Theorem 2: geodesically convex, L₀-Lipschitz. η = D/√((L₀² + dσ²)ςT); use output="average".

    >>> from dpmanifolds.descent import ConvexSteps
    >>> ConvexSteps(diameter=2.0, lipschitz=1.0).sizes(steps=4, sigma=0.0, dim=3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    diameter: float
    lipschitz: float
    lowest_curvature: float = 0.0

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        opening = curvature_constant(self.diameter, self.lowest_curvature)
        return np.full(steps, self.diameter / math.sqrt((self.lipschitz**2 + dim * sigma**2) * opening * steps))


@dataclass(frozen=True)
class StronglyConvexSteps(StepRule):
    """Theorem 3: β-strongly convex (β = 1 for ½ρ² on Hadamard manifolds). η_t = 1/(β(t + 1)); "weighted-average".

    >>> from dpmanifolds.descent import StronglyConvexSteps
    >>> StronglyConvexSteps(strength=1.0).sizes(steps=3, sigma=0.1, dim=6).round(6).tolist()
    [1.0, 0.5, 0.333333]
    """

    strength: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        return 1 / (self.strength * np.arange(1, steps + 1))


@dataclass(frozen=True)
class PolyakSteps(StepRule):
    """Theorem 4: F − F* ≤ τ‖grad F‖², L₁-smooth. η = ½·min(1/L₁, 1/τ), strictly below the limit; output="last".

    >>> from dpmanifolds.descent import PolyakSteps
    >>> PolyakSteps(smoothness=2.0, tau=1.0).sizes(steps=2, sigma=0.1, dim=6).tolist()
    [0.25, 0.25]
    """

    smoothness: float
    tau: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        return np.full(steps, min(1 / self.smoothness, 1 / self.tau) / 2)


@dataclass(frozen=True)
class SmoothSteps(StepRule):
    """Theorem 5: L₁-smooth, not convex. η = 1/L₁; output="random" is what the theorem speaks about.

    >>> from dpmanifolds.descent import SmoothSteps
    >>> SmoothSteps(smoothness=4.0).sizes(steps=2, sigma=0.1, dim=6).tolist()
    [0.25, 0.25]
    """

    smoothness: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        return np.full(steps, 1 / self.smoothness)


@dataclass(frozen=True)
class GeometricSteps(StepRule):
    """From `first` down to `last` in equal ratios.

    >>> from dpmanifolds.descent import GeometricSteps
    >>> GeometricSteps(first=1.0, last=0.25).sizes(steps=3, sigma=0.1, dim=6).round(6).tolist()
    [1.0, 0.5, 0.25]
    """

    first: float
    last: float

    def sizes(self, steps: int, sigma: float, dim: int) -> np.ndarray:
        return np.geomspace(self.first, self.last, steps)


def step_sizes(
    rule: float | StepRule | Callable[[int], float] | Any, *, steps: int, sigma: float, dim: int
) -> np.ndarray:
    """The η of every step from a number, an array of at least `steps` numbers, a function of t or a rule."""
    steps = positive_integer("steps", steps)
    if isinstance(rule, StepRule):
        sizes = rule.sizes(steps, sigma, dim)
    elif callable(rule):
        sizes = np.array([rule(t) for t in range(steps)], dtype=np.float64)
    elif np.ndim(rule) == 0:
        sizes = np.full(steps, positive_number("step_size", rule))
    else:
        sizes = np.asarray(rule, dtype=np.float64)
        if sizes.ndim != 1 or sizes.size < steps:
            raise ArgumentError(
                f"must hold one number per step, {steps} here; got shape {sizes.shape}.", argument="step_size"
            )
        sizes = sizes[:steps]
    if not (np.all(np.isfinite(sizes)) and np.all(sizes > 0)):
        raise ArgumentError("every step size must be finite and above 0.")
    return sizes


def median_schedule(ball: Ball, n: int, budget: Budget, steps: int | None = None) -> tuple[int, GeometricSteps]:
    """T and the step sizes of a descent to the median, from the ball, n and the budget alone.

    Let a be the typical length of the noise of a single-step run: 2√d/(nμ), or 2d/(nε) under a pure budget. Steps
    shrink geometrically from r/2 to a·r/2 (a cut to [1e−4, 0.1]). Gaussian noise per step grows as √T while averaging
    wins it back, so T = 8 steps per factor e costs nothing; ℓ2-Laplace noise grows as T, so there T = 2 per factor e.

    >>> import numpy as np
    >>> from dpmanifolds import ApproxDP, Ball, Sphere
    >>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
    >>> median_schedule(ball, 1000, ApproxDP(1.0, 1e-6))[0]
    36
    """
    pure = checked_budget(budget).bounded_loss
    sigma = plan_descent(n=n, clip_norm=1.0, budget=budget, steps=1).sigma
    typical = sigma * (ball.manifold.dim if pure else math.sqrt(ball.manifold.dim))
    last = _FIRST * min(max(typical, _FINEST), _COARSEST)
    if steps is None:
        steps = math.ceil((2 if pure else 8) * math.log(_FIRST / last))
    return steps, GeometricSteps(_FIRST * ball.radius, last * ball.radius)
