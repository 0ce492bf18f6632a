"""The rivals: published mechanisms with the tightest constants that are proven for them, noise in floating point.

A rival is a function of a task, a budget, a number of releases and a generator; it returns points (count, …), or
raises `NotAvailableError` where the publication has no such mechanism. All of them clip to the same public ball, may
project onto it, and are calibrated exactly: a pure ε, the exact profile of ℓ2-Laplace noise, or Gaussian DP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.league.cases import Task, shorten
from benchmarks.league.noises import best_noise, gaussian_noise, laplace_noise, paid_radii, symmetric
from dpmanifolds import Budget, Euclidean, Grassmann, Hyperbolic, PlanarShapes, Sphere
from dpmanifolds.errors import NotAvailableError
from dpmanifolds.intrinsic import KNormGradientLaw, gaussian_law, laplace_law
from dpmanifolds.intrinsic.knorm_gradient import acceptance_bound
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.privacy import (
    PureDP,
    affordable_epsilon,
    affordable_mu,
    sensitivity_of_mean,
    sensitivity_of_mean_at_center,
    sensitivity_of_mean_gradient,
)
from dpmanifolds.sums import calibrate, mean_facts

__all__ = ["RIVALS", "WITH_SAMPLE", "Rival"]

Rival = Callable[[Task, Budget, int, np.random.Generator], np.ndarray]


def l2_mechanism(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The K-norm mechanism of the Euclidean ball (Hardt and Talwar 2010) on the mean of tangent coordinates."""
    noise = laplace_noise(2 * task.ball.radius / task.n, budget, task.dim, count, rng)
    return task.place(task.coordinates.mean(axis=0) + noise)


def james_stein(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The better of ℓ2 and Gaussian noise, then positive-part James–Stein (1961) towards the centre."""
    noise, deviation = best_noise(2 * task.ball.radius / task.n, budget, task.dim, count, rng)
    drawn = task.coordinates.mean(axis=0) + noise
    squares = np.sum(drawn**2, axis=-1, keepdims=True)
    return task.place(drawn * np.maximum(0.0, 1 - max(task.dim - 2, 0) * deviation**2 / squares))


def tangent_gaussian(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian noise on the mean of tangent coordinates (Utpala et al. 2022; log-Euclidean there)."""
    if isinstance(budget, PureDP):
        raise NotAvailableError("no Gaussian keeps a pure ε.")
    noise = gaussian_noise(2 * task.ball.radius / task.n, budget, task.dim, count, rng)
    return task.place(task.coordinates.mean(axis=0) + noise)


def wrapped_laplace(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The Fréchet mean seen from the centre plus ℓ2-Laplace noise, wrapped by exp; Δ of S1w."""
    moved = _moved(task, at_center=True)
    seen = task.manifold.log_coordinates(task.center, task.clipped_mean)
    return task.place(seen + laplace_noise(moved, budget, task.dim, count, rng))


def wrapped_gaussian(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The same with Gaussian noise."""
    if isinstance(budget, PureDP):
        raise NotAvailableError("no Gaussian keeps a pure ε.")
    moved = _moved(task, at_center=True)
    seen = task.manifold.log_coordinates(task.center, task.clipped_mean)
    return task.place(seen + gaussian_noise(moved, budget, task.dim, count, rng))


def _moved(task: Task, *, at_center: bool = False) -> float:
    """S1 or S1w, for real numbers."""
    if not task.ball.has_unique_mean:
        raise NotAvailableError("the Fréchet mean need not be unique.")
    bound = sensitivity_of_mean_at_center if at_center else sensitivity_of_mean
    return float(bound(task.ball, task.n))


def _around_mean(task: Task, noise: np.ndarray) -> np.ndarray:
    """exp of the noise at the Fréchet mean, projected into the ball."""
    if task.manifold.curvature_bounds == (0.0, 0.0):
        return task.place(np.asarray(task.manifold.log_coordinates(task.center, task.clipped_mean)) + noise)
    # what lies beyond four radii is projected onto the edge anyway, and may be no floating-point number
    points = task.manifold.move(task.clipped_mean, shorten(noise, _reach(task)))
    return np.asarray(task.ball.clip(points))


def _reach(task: Task) -> float:
    return 4 * task.ball.radius if task.manifold.is_hadamard else math.inf


def riemannian_laplace(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Density ∝ e^{−ρ/σ} around the Fréchet mean, σ = Δ/ε (Reimherr et al. 2021), Δ of S1 instead of theirs."""
    if not task.manifold.is_homogeneous:
        raise NotAvailableError("the normaliser depends on the footpoint.")
    scale = _moved(task) / affordable_epsilon(budget, on_the_line=True)
    return _around_mean(task, laplace_law(task.manifold, scale).sample_coordinates(count, rng))


def riemannian_gaussian(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Density ∝ e^{−ρ²/2σ²} around the Fréchet mean (Jiang et al. 2023), with its own profile."""
    if not isinstance(task.manifold, Sphere | Hyperbolic | Euclidean) or isinstance(budget, PureDP):
        raise NotAvailableError("no profile is known.")
    scale = calibrate("riemannian-gaussian", mean_facts(task.ball, task.n), budget, "idealized").sigma
    return _around_mean(task, gaussian_law(task.manifold, scale).sample_coordinates(count, rng))


def knorm_gradient(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Density ∝ e^{−‖∇F‖/σ} on the ball (Soto et al. 2022), σ = 2Δ/ε, without which it is not ε-private."""
    if task.dim > 14 or not isinstance(budget, PureDP) or not task.ball.has_unique_mean:
        raise NotAvailableError("no exact draws.")
    scale = 2 * float(sensitivity_of_mean_gradient(task.ball, task.n)) / budget.epsilon
    if acceptance_bound(task.ball, scale) < 1e-3:
        raise NotAvailableError("no exact draws in time.")
    near = task.ball.clip(task.clipped_mean)
    law = KNormGradientLaw(task.manifold, task.clipped, task.center, task.ball.radius, scale, near, clipped=True)
    return np.asarray(law.sample(min(count, 60), rng))


def ambient_noise(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The Fréchet mean as a matrix or vector, noise on its entries (vech), and back: the papers' baseline.

    On the sphere the chord is below the arc. On SPD(k) geodesics of the ball have ‖dX‖_F ≤ λ_max(m₀)e^r‖V‖, so that
    Δ grows by that factor.
    """
    moved = _moved(task)
    if isinstance(task.manifold, Sphere):
        noise, _ = best_noise(moved, budget, task.dim + 1, count, rng)
        return np.asarray(task.ball.clip(task.manifold.project(task.clipped_mean + noise)))
    if isinstance(task.manifold, SPDBase):
        return _noisy_matrices(task, task.clipped_mean, _stretch(task) * moved, budget, count, rng)
    raise NotAvailableError("no ambient coordinates of a point.")


def _stretch(task: Task) -> float:
    """λ_max of the ball's matrices."""
    return float(np.linalg.eigvalsh(task.center)[-1]) * math.exp(task.ball.radius)


def _noisy_matrices(
    task: Task, matrix: np.ndarray, moved: float, budget: Budget, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Symmetric noise, eigenvalues put back into the public range, then the ball."""
    k = matrix.shape[-1]
    noise, _ = best_noise(moved, budget, k * (k + 1) // 2, count, rng)
    values, vectors = np.linalg.eigh(matrix + symmetric(noise, k))
    ends = np.linalg.eigvalsh(task.center)[[0, -1]]
    low, high = float(ends[0]) * math.exp(-task.ball.radius), float(ends[1]) * math.exp(task.ball.radius)
    values = np.clip(values, low, high)
    points = (vectors * values[:, None, :]) @ np.swapaxes(vectors, -1, -2)
    return np.asarray(task.ball.clip((points + np.swapaxes(points, -1, -2)) / 2))


def extrinsic_mean(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """A noisy mean in the ambient space, projected (Chaudhuri et al. 2013 for subspaces): another target, less noise.

    Sphere: unit vectors, chords up to 2 sin r. Grassmann: projectors, ‖P − Q‖_F = √2·‖sin θ‖. Planar shapes: xx*,
    √2·sin ρ. SPD: the arithmetic mean, 2λ_max(m₀)(e^r − 1).
    """
    space, radius, n = task.manifold, task.ball.radius, task.n
    if isinstance(space, Sphere):
        moved = 2 * math.sin(min(radius, math.pi / 2)) / n
        noise, _ = best_noise(moved, budget, space.dim + 1, count, rng)
        return np.asarray(space.project(task.clipped.mean(axis=0) + noise))
    if isinstance(space, Grassmann):
        fewer = min(space.p, space.n - space.p)
        moved = math.sqrt(2 * fewer) * math.sin(min(2 * radius / math.sqrt(fewer), math.pi / 2)) / n
        noise, _ = best_noise(moved, budget, space.n * (space.n + 1) // 2, count, rng)
        mean = np.mean(task.clipped @ np.swapaxes(task.clipped, -1, -2), axis=0)
        return np.asarray(np.linalg.eigh(mean + symmetric(noise, space.n))[1][..., -space.p :])
    if isinstance(space, PlanarShapes):
        moved = math.sqrt(2) * math.sin(min(2 * radius, math.pi / 2)) / n
        return _noisy_procrustes(task, moved, budget, count, rng)
    if isinstance(space, SPDBase) and radius < 20:
        moved = 2 * float(np.linalg.eigvalsh(task.center)[-1]) * math.expm1(radius) / n
        return _noisy_matrices(task, task.clipped.mean(axis=0), moved, budget, count, rng)
    raise NotAvailableError("no bounded ambient mean.")


def _noisy_procrustes(task: Task, moved: float, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The leading eigenvector of the mean of xx* plus Hermitian noise, on the space of centred configurations."""
    k = task.clipped.shape[-1]
    helmert = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:]
    inside = task.clipped @ helmert
    size = k - 1
    noise, _ = best_noise(moved, budget, size * size, count, rng)
    half = size * (size + 1) // 2
    real = symmetric(noise[:, :half], size)
    rows, columns = np.triu_indices(size, 1)
    skew = np.zeros((count, size, size))
    skew[:, rows, columns] = noise[:, half:] * math.sqrt(0.5)
    hermitian = real + 1j * (skew - np.swapaxes(skew, -1, -2))
    mean = inside.T @ inside.conj() / task.n
    leading = np.linalg.eigh(mean + hermitian)[1][..., -1]
    return np.asarray(task.ball.clip(task.manifold.project(leading @ helmert.T)))


def coinpress(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """CoinPress (Biswas et al. 2020), t = 2, shares ¼ and ¾, β = .01, in tangent coordinates.

    It takes a bound on the covariance: s² per coordinate is read off a paid radius (a twentieth of μ²) that holds
    nine tenths.
    """
    return _coinpress(task, budget, count, rng, None)


def coinpress_sample(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The same, s² from the public fifth (as Bie et al. 2022 start from public data)."""
    return _coinpress(task, budget, count, rng, float(np.sqrt(np.mean(task.public_coordinates**2))))


def _coinpress(task: Task, budget: Budget, count: int, rng: np.random.Generator, spread: float | None) -> np.ndarray:
    if isinstance(budget, PureDP):
        raise NotAvailableError("published for zCDP.")
    mu, dim, n, radius, c = affordable_mu(budget), task.dim, task.n, task.ball.radius, task.coordinates
    if spread is None:
        radii = paid_radii(np.linalg.norm(c, axis=-1), radius, 0.9, math.sqrt(0.05) * mu, count, rng)
        spreads, mu = radii / math.sqrt(dim), math.sqrt(0.95) * mu
    else:
        spreads = np.full(count, spread)
    log = math.log(2 / 0.01)
    tail, side = math.sqrt(dim + 2 * math.sqrt(dim * log) + 2 * log), math.sqrt(2 * log)
    found = []
    for s in spreads:
        middle, reach = np.zeros(dim), radius
        for share in (0.25, 0.75):
            cut = math.sqrt(reach**2 + 2 * reach * s * side + (tail * s) ** 2)
            cut = min(cut, reach + tail * s, radius if share == 0.25 else math.inf)
            sigma = 2 * cut / n / (math.sqrt(share) * mu)
            middle = middle + shorten(c - middle, cut).mean(axis=0) + sigma * rng.standard_normal(dim)
            reach = tail * math.sqrt(s * s / n + sigma**2)
        found.append(middle)
    return task.place(np.stack(found))


def plan_ellipsoid(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """PLAN (Aumüller et al. 2023), simplified: a quarter of μ² on Σc_j², a twentieth on a radius, the rest on the mean.

    Noise ∝ λ_j^{1/4} per coordinate of the tangent space at the public centre; its own search for a rough mean and
    the random rotation are left out, since the centre and the coordinates are public.
    """
    if isinstance(budget, PureDP):
        raise NotAvailableError("published for zCDP.")
    mu, n, radius, c = affordable_mu(budget), task.n, task.ball.radius, task.coordinates
    sigma = math.sqrt(2) * radius**2 / n / (math.sqrt(0.25) * mu)
    moments = np.mean(c**2, axis=0) + sigma * rng.standard_normal((count, task.dim))
    found = []
    for noisy in moments:
        lam = np.maximum(noisy, sigma)
        axes = lam**0.25
        scaled = c / axes
        largest = radius / float(axes.min())
        cut = paid_radii(np.linalg.norm(scaled, axis=-1), largest, 0.95, math.sqrt(0.05) * mu, 1, rng)[0]
        mean = shorten(scaled, cut).mean(axis=0)
        noise = 2 * cut / n / (math.sqrt(0.7) * mu) * rng.standard_normal(task.dim)
        found.append(axes * (mean + noise))
    return task.place(np.stack(found))


def geometric_median(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Private geometric median by localised gradient descent (Haghifam et al. 2024), in tangent coordinates.

    A twentieth of μ² on the radius of half of the records, the rest on 16 full gradients (each record's has length 1);
    the average of the second half of the iterates. The median is another target than the mean.
    """
    if isinstance(budget, PureDP):
        raise NotAvailableError("published for zCDP.")
    mu, n, radius, c = affordable_mu(budget), task.n, task.ball.radius, task.coordinates
    reach = paid_radii(np.linalg.norm(c, axis=-1), radius, 0.5, math.sqrt(0.05) * mu, count, rng)[:, None]
    steps = 16
    sigma = 2 / n * math.sqrt(steps / 0.95) / mu
    squares, points, kept = np.sum(c**2, axis=-1), np.zeros((count, task.dim)), []
    for step in range(steps):
        apart = squares - 2 * points @ c.T + np.sum(points**2, axis=-1, keepdims=True)
        weights = 1 / np.sqrt(np.maximum(apart, 1e-18 * radius**2))
        gradient = (points * weights.sum(axis=-1, keepdims=True) - weights @ c) / n
        noisy = gradient + sigma * rng.standard_normal(points.shape)
        pace = reach * min(1.0, 1 / (sigma * math.sqrt(task.dim * steps) + 1e-12))
        points = shorten(points - pace * noisy, 2 * reach)
        if step >= steps // 2:
            kept.append(points)
    return task.place(np.mean(kept, axis=0))


def pooled(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """The better of ℓ2 and Gaussian noise, weighted against the public mean by inverse variances from the fifth."""
    noise, deviation = best_noise(2 * task.ball.radius / task.n, budget, task.dim, count, rng)
    public = task.public_coordinates
    prior = float(np.sum(np.var(public, axis=0, ddof=1))) * (1 / len(public) + 1 / task.n)
    drawn = task.coordinates.mean(axis=0) + noise
    return task.place(prior / (prior + task.dim * deviation**2) * drawn)


def public_shape(task: Task, budget: Budget, count: int, rng: np.random.Generator) -> np.ndarray:
    """Noise shaped by the public covariance (as PLAN, λ from the fifth): a_i² ∝ √λ_i, holding 95 % of the fifth."""
    public = task.public_coordinates
    covariance = public.T @ public / len(public)
    even = np.trace(covariance) / task.dim
    weight = min(0.9, task.dim / (task.dim + len(public)))
    values, basis = np.linalg.eigh((1 - weight) * covariance + weight * even * np.eye(task.dim))
    axes = np.maximum(values, 1e-6 * even) ** 0.25
    cut = float(np.quantile(np.linalg.norm(public @ basis / axes, axis=-1), 0.95)) * 1.1
    mean = shorten(task.coordinates @ basis / axes, cut).mean(axis=0)
    noise, _ = best_noise(2 * cut / task.n, budget, task.dim, count, rng)
    return task.place((mean + noise) * axes @ basis.T)


RIVALS: Mapping[str, Rival] = {
    "ℓ2 mechanism": l2_mechanism,
    "ℓ2/Gaussian + James–Stein": james_stein,
    "tangent Gaussian": tangent_gaussian,
    "wrapped Laplace": wrapped_laplace,
    "wrapped Gaussian": wrapped_gaussian,
    "Riemannian Laplace": riemannian_laplace,
    "Riemannian Gaussian": riemannian_gaussian,
    "K-norm gradient": knorm_gradient,
    "ambient noise": ambient_noise,
    "extrinsic mean": extrinsic_mean,
    "CoinPress": coinpress,
    "PLAN": plan_ellipsoid,
    "geometric median": geometric_median,
}
WITH_SAMPLE: Mapping[str, Rival] = {
    "CoinPress, public scale": coinpress_sample,
    "pooled with the public mean": pooled,
    "public covariance": public_shape,
}
