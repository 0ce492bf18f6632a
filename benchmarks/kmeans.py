"""Private k-means against Lloyd's algorithm without privacy, and against noisy Lloyd steps as others take them.

    python benchmarks/kmeans.py --repeats 20

Mean squared distances to the nearest centre (medians over repeats). "Lloyd": scikit-learn, ten starts; on the sphere
Lloyd's algorithm with Fréchet means from the same public start. "one centre": the mean alone. "Laplace steps": the
recipe of common libraries for Euclidean records under a pure ε (Su and others, arXiv 1504.05998): coordinates clipped
to a box, five rounds of ε/5, each split between sums (ℓ1 sensitivity twice the box's half width times d, replace-one)
and counts, from the same public start.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine

import dpmanifolds as dpm
from dpmanifolds.releases.clusters import spread_centers


def data_sets() -> list[tuple[str, Any, dpm.Ball, int]]:
    """Names, records, public balls, numbers of clusters."""
    rng = np.random.default_rng(0)
    plane = np.concatenate([rng.normal(at, 0.25, (500, 2)) for at in ((2, 2), (-2, 1), (0, -2), (2, -1), (-1, 2.4))])
    cloud = np.concatenate([rng.normal(rng.normal(0, 1.2, 5), 0.4, (1000, 5)) for _ in range(5)])
    wine = load_wine().data[:, [0, 6, 9]] / [1.0, 1.0, 3.0]
    north, sphere = np.array([0.0, 0.0, 1.0]), dpm.Sphere(2)
    ways = rng.uniform(-0.9, 0.9, (4, 2))
    caps = sphere.exp_coordinates(north, (ways + 0.12 * rng.normal(size=(400, 4, 2))).reshape(-1, 2))
    return [
        ("blobs, n=2500, d=2", plane, dpm.Ball(dpm.Euclidean(2), np.zeros(2), 4.0), 5),
        ("blobs, n=5000, d=5", cloud, dpm.Ball(dpm.Euclidean(5), np.zeros(5), 5.0), 5),
        ("iris, n=150, d=4", load_iris().data, dpm.Ball(dpm.Euclidean(4), [5.8, 3.0, 3.8, 1.2], 4.0), 3),
        ("wine, n=178, d=3", wine, dpm.Ball(dpm.Euclidean(3), [13.0, 2.0, 1.7], 4.0), 3),
        ("caps on the sphere, n=1600", caps, dpm.Ball(sphere, north, 1.4), 4),
    ]


def inertia(manifold: Any, centers: Any, points: Any) -> float:
    """The mean squared distance to the nearest centre."""
    return float(np.mean(np.min([manifold.dist(center, points) ** 2 for center in centers], axis=0)))


def lloyd(ball: dpm.Ball, points: Any, count: int) -> float:
    """Without privacy."""
    if isinstance(ball.manifold, dpm.Euclidean):
        return float(KMeans(count, n_init=10, random_state=0).fit(points).inertia_) / len(points)
    centers = spread_centers(ball, count)[0]
    for _ in range(20):
        nearest = np.argmin([ball.manifold.dist(center, points) for center in centers], axis=0)
        centers = [
            dpm.frechet_mean(ball.manifold, points[nearest == k]).point if np.any(nearest == k) else centers[k]
            for k in range(count)
        ]
    return inertia(ball.manifold, centers, points)


def laplace_steps(ball: dpm.Ball, points: np.ndarray, count: int, epsilon: float, rng: np.random.Generator) -> float:
    """Noisy sums and counts with coordinates in a box; NaN where records are no vectors."""
    if not isinstance(ball.manifold, dpm.Euclidean):
        return float("nan")
    half, dim, middle = ball.radius, points.shape[1], np.asarray(ball.center)
    rows = np.clip(points - middle, -half, half)
    centers = np.array(spread_centers(ball, count)[0]) - middle
    for _ in range(5):
        nearest = np.argmin(((rows[:, None] - centers) ** 2).sum(axis=-1), axis=1)
        for k in range(count):
            own = rows[nearest == k]
            total = own.sum(axis=0) + rng.laplace(scale=2 * half * dim / (0.8 * epsilon / 5), size=dim)
            number = max(1.0, len(own) + rng.laplace(scale=2 / (0.2 * epsilon / 5)))
            centers[k] = np.clip(total / number, -half, half)
    return inertia(ball.manifold, centers + middle, points)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print("| records | clusters | Lloyd | one centre | ε = 1 | ε = 3 | μ = 1 | Laplace steps, ε = 1 | ε = 3 |")
    print("|---|---|---|---|---|---|---|---|---|")
    warnings.simplefilter("ignore", dpm.NoiseExceedsDomainWarning)
    for name, points, ball, count in data_sets():
        told = [lloyd(ball, points, count)]
        told.append(inertia(ball.manifold, [dpm.frechet_mean(ball.manifold, points).point], points))
        for budget in (dpm.PureDP(1.0), dpm.PureDP(3.0), dpm.GaussianDP(1.0)):
            models = (dpm.PrivateKMeans(count, ball, budget, random_state=seed) for seed in range(repeats))
            told.append(np.median([inertia(ball.manifold, m.fit(points).cluster_centers_, points) for m in models]))
        for epsilon in (1.0, 3.0):
            rng = np.random.default_rng(0)
            told.append(np.median([laplace_steps(ball, points, count, epsilon, rng) for _ in range(repeats)]))
        print(
            f"| {name} | {count} | {' | '.join('-' if np.isnan(each) else f'{each:.3g}' for each in told)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
