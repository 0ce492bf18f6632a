"""What private descent is compared with: projected descent in the ambient space, and output perturbation.

>>> import numpy as np
>>> from papers.descent_baselines import projected_descent
>>> records = np.random.default_rng(0).standard_normal((500, 3)) * [1.0, 0.3, 0.3] / 4
>>> w = projected_descent(records, np.ones(3) / np.sqrt(3), steps=20, step_size=1.0, noise=1e-3, clip=1.0, rng=0)
>>> abs(float(w[0])) > 0.9
True

Both carry the promise their noise is calibrated for: `projected_descent` that of `full_batch_descent` with the same
clip, steps and noise (its gradients are clipped in the ambient norm), `perturbed_mean` that of its budget, up to the
error of the solver. Noise is floating-point: for comparison only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds.descent import plan_descent
from dpmanifolds.domains import Ball
from dpmanifolds.noise import as_generator
from dpmanifolds.privacy import Budget, sensitivity_of_mean_at_center
from dpmanifolds.statistics import frechet_mean

__all__ = ["perturbed_mean", "projected_descent"]


def projected_descent(
    records: np.ndarray,
    start: np.ndarray,
    *,
    steps: int,
    step_size: float,
    noise: float,
    clip: float,
    rng: Any = None,
) -> np.ndarray:
    """The leading eigenvector by Euclidean descent: w ← (w − ηζ)/|w − ηζ|, ζ the mean clipped −2(xᵀw)x plus N(0, σ²I).

    The noise lives in all d + 1 ambient directions, and the clip is on the ambient gradient, up to twice as long as the
    Riemannian one (Han et al. 2022, section 5.1, "DP-PGD").
    """
    generator, w = as_generator(rng), np.asarray(start, dtype=np.float64)
    for _ in range(steps):
        along = records @ w
        lengths = 2 * np.abs(along) * np.linalg.norm(records, axis=1)
        shares = along * clip / np.maximum(lengths, clip)
        gradient = -2 * shares @ records / len(records) + noise * generator.standard_normal(w.size)
        w = w - step_size * gradient
        w = w / np.linalg.norm(w)
    return w


def perturbed_mean(records: Any, ball: Ball, budget: Budget, *, rng: Any = None) -> Any:
    """The Fréchet mean, found without privacy and then noised once in the tangent space at the centre of the ball.

    Gaussian noise at the sensitivity of S1w (ℓ2-Laplace under a pure budget); the solver's error, far below it, is not
    charged here.
    """
    manifold = ball.manifold
    clipped = ball.clip(records)
    n = manifold.batch_shape(clipped)[0]
    # one "step" of contributions C = Δn/2 is a Gaussian mechanism of sensitivity Δ
    plan = plan_descent(n=n, clip_norm=float(sensitivity_of_mean_at_center(ball, n)) * n / 2, budget=budget, steps=1)
    seen = manifold.to_coordinates(ball.center, manifold.log(ball.center, frechet_mean(manifold, clipped).point))
    generator = as_generator(rng)
    draw = generator.standard_normal(manifold.dim)
    if plan.law == "laplace":
        draw *= generator.standard_gamma(manifold.dim) / np.linalg.norm(draw)
    released = manifold.exp(ball.center, manifold.from_coordinates(ball.center, seen + plan.sigma * draw))
    return ball.clip(released[None])[0]
