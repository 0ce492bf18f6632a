"""Bounds and noise levels as the papers print them, for comparison: proven, and larger than need be.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere, sensitivity_of_mean
>>> from papers.published import published_sensitivity_of_mean
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> round(100 * published_sensitivity_of_mean(ball, 100), 4), round(100 * float(sensitivity_of_mean(ball, 100)), 4)
(1.2146, 0.8284)
"""

from __future__ import annotations

import math

from dpmanifolds import Ball
from dpmanifolds.errors import ArgumentError, RadiusTooLargeError

__all__ = ["classical_gaussian_sigma", "published_sensitivity_of_mean", "published_sensitivity_of_mean_gradient"]


def published_sensitivity_of_mean(ball: Ball, n: int) -> float:
    """2r(2−h)/(n·h), h = 2√κr·cot(2√κr), for √κr < π/4 (Reimherr et al., Theorem 2).

    `sensitivity_of_mean` is 2·tan(√κr)/(√κn), and holds up to √κr < π/2.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> published_sensitivity_of_mean(Ball(SPD(3), np.eye(3), radius=1.5), 1000)
    0.003
    """
    return published_sensitivity_of_mean_gradient(ball, n) / _convexity(ball)


def published_sensitivity_of_mean_gradient(ball: Ball, n: int) -> float:
    """2r(2−h)/n, with the same h and for the same radii (Soto et al.).

    >>> import numpy as np
    >>> from dpmanifolds import Sphere
    >>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
    >>> round(published_sensitivity_of_mean_gradient(ball, 1), 5)
    0.95395
    """
    return 2 * ball.radius * (2 - _convexity(ball)) / n


def classical_gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    """σ = Δ√(2 ln(1.25/δ))/ε (Dwork and Roth 2014, Theorem 3.22), proven for ε ≤ 1 only.

    `gaussian_sigma` asks for less noise, and holds for every ε.

    >>> round(classical_gaussian_sigma(1.0, 1.0, 1e-5), 6)
    4.844805
    """
    if epsilon > 1:
        raise ArgumentError(f"the classical Gaussian rule is proven for epsilon up to 1 only; got {epsilon}.")
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _convexity(ball: Ball) -> float:
    """h = 2√κr·cot(2√κr), and 1 for curvature ≤ 0."""
    angle = math.sqrt(max(ball.manifold.curvature_bounds[1], 0.0)) * ball.radius
    if angle >= math.pi / 4:
        raise RadiusTooLargeError(
            f"the published bound needs √κ·radius below π/4; got {angle:.6g} on {ball.manifold!r}. Use a smaller ball."
        )
    return 2 * angle / math.tan(2 * angle) if angle > 0 else 1.0
