"""The data of the league: real records with a public fifth, and simulated ones in a ball that is stated.

What is public is the same for every competitor: the ball, and in the second block of the page the public fifth too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from dpmanifolds import (
    SPD,
    Ball,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Sphere,
    frechet_mean,
    image_descriptors,
)
from dpmanifolds._points import host

__all__ = ["Case", "Task", "real_cases", "simulated_cases"]


@dataclass(frozen=True)
class Task:
    """One split or one simulated data set: what is public, what is private, and what is to be found."""

    ball: Ball
    records: np.ndarray
    public: np.ndarray | None
    """The public fifth; None for simulated records."""

    @property
    def manifold(self) -> Manifold:
        return self.ball.manifold

    @property
    def n(self) -> int:
        return len(self.records)

    @property
    def dim(self) -> int:
        return self.manifold.dim

    @property
    def center(self) -> np.ndarray:
        return np.asarray(host(self.ball.center))

    @cached_property
    def truth(self) -> np.ndarray:
        """The Fréchet mean of the records as they are, unclipped."""
        return np.asarray(frechet_mean(self.manifold, self.records).point)

    @cached_property
    def clipped(self) -> np.ndarray:
        return np.asarray(self.ball.clip(self.records))

    @cached_property
    def clipped_mean(self) -> np.ndarray:
        """The Fréchet mean of the clipped records, which S1 is about."""
        return np.asarray(frechet_mean(self.manifold, self.clipped).point)

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Of the clipped records, at the centre (n, d)."""
        return shorten(np.asarray(self.manifold.log_coordinates(self.center, self.records)), self.ball.radius)

    @cached_property
    def public_coordinates(self) -> np.ndarray:
        """Of the public fifth, at the centre."""
        assert self.public is not None
        return np.asarray(self.manifold.log_coordinates(self.center, self.public))

    def place(self, coordinates: np.ndarray) -> np.ndarray:
        """Points of the ball from coordinates at the centre: projection onto the ball is free."""
        return np.asarray(self.manifold.move(self.center, shorten(coordinates, self.ball.radius * (1 - 1e-9))))

    def squares(self, points: np.ndarray) -> np.ndarray:
        """Squared distances to the truth."""
        return np.asarray(self.manifold.dist(self.truth, points)) ** 2


@dataclass(frozen=True)
class Case:
    """A named source of tasks."""

    name: str
    kind: str
    make: Callable[[np.random.Generator], Task]


def shorten(vectors: np.ndarray, lengths: float | np.ndarray) -> np.ndarray:
    """Each row (..., d) cut to at most this length."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors * np.minimum(1.0, lengths / np.maximum(norms, 1e-300))


def real_cases(folder: Path | None) -> list[Case]:
    """The data sets that are there, each split at random: a fifth is public, and gives the ball."""
    if folder is None or not folder.is_dir():
        return []
    found = []
    for name, (kind, file, read) in _REAL.items():
        path = folder / file
        if path.is_file():
            found.append(Case(name, kind, _Split(path, read)))
    return found


@dataclass(frozen=True)
class _Split:
    """Reads a file and splits it."""

    path: Path
    read: Callable[[dict[str, np.ndarray]], tuple[Manifold, np.ndarray]]

    def __call__(self, rng: np.random.Generator) -> Task:
        with np.load(self.path) as arrays:
            manifold, records = self.read(dict(arrays))
        order = rng.permutation(len(records))
        fifth = len(records) // 5
        public, private = records[order[:fifth]], records[order[fifth:]]
        return Task(Ball.from_sample(manifold, public), private, public)


def _shapes(
    points: int | None = None, key: str = "x"
) -> Callable[[dict[str, np.ndarray]], tuple[Manifold, np.ndarray]]:
    """Planar landmarks; outlines thinned to so many points."""

    def read(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
        landmarks = arrays[key].astype(np.float64)
        count = points or landmarks.shape[1]
        space = PlanarShapes(count)
        rows = np.linspace(0, landmarks.shape[1], count, endpoint=False).astype(int)
        return space, np.asarray(space.from_landmarks(landmarks[:, rows]))

    return read


def _matrices(metric: str, scale: float = 1.0) -> Callable[[dict[str, np.ndarray]], tuple[Manifold, np.ndarray]]:
    def read(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
        matrices = scale * arrays["x"]
        return SPD(matrices.shape[-1], metric), (matrices + np.swapaxes(matrices, -1, -2)) / 2

    return read


def _compositions(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
    """Square roots of proportions."""
    counts = arrays["counts"]
    return Sphere(counts.shape[1] - 1), np.sqrt(counts / counts.sum(axis=1, keepdims=True))


def _comets(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
    """Orbit normals of the Jupiter-family comets."""
    normals = arrays["x"][arrays["cls"] == "JFc"]
    return Sphere(2), normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def _digits(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
    """Grey covariance descriptors of the threes."""
    return SPD(9, "log-euclidean"), np.asarray(image_descriptors(arrays["x"][arrays["y"] == 3]))


def _fashion(arrays: dict[str, np.ndarray]) -> tuple[Manifold, np.ndarray]:
    return SPD(9, "log-euclidean"), np.asarray(image_descriptors(arrays["x"]))


_REAL = {
    "apes": ("shapes", "shapes/apes.npz", _shapes()),
    "fly wings": ("shapes", "shapes/drosophila_cactophilic_wings.npz", _shapes()),
    "honeybee wings": ("shapes", "shapes/honeybee_wings_lineages.npz", _shapes()),
    "mosquito wings": ("shapes", "shapes/mosquito_wings.npz", _shapes()),
    "mice vertebrae": ("shapes", "shapes/mice_vertebrae.npz", _shapes()),
    "rat calvaria": ("shapes", "shapes/rats_calvaria.npz", _shapes()),
    "tyrannus tails": ("shapes", "shapes/tyrannus_tails.npz", _shapes()),
    "mosquito outlines, 50 points": ("outlines", "shapes/mosquito_wing_outlines.npz", _shapes(50)),
    "cortical outlines, 50 points": ("outlines", "shapes/cortical_outline.npz", _shapes(50)),
    "cell outlines, 32 points": ("outlines", "shapes/osteosarcoma_cells_64pt.npz", _shapes(32)),
    "connectomes 28, affine": ("SPD", "spd/connectomes_fnc28.npz", _matrices("affine-invariant")),
    "connectomes 28, log": ("SPD", "spd/connectomes_fnc28.npz", _matrices("log-euclidean")),
    "EEG 32, affine": ("SPD", "spd/eeg_erp_cov32.npz", _matrices("affine-invariant", 1e26)),
    "EEG 32, log": ("SPD", "spd/eeg_erp_cov32.npz", _matrices("log-euclidean", 1e26)),
    "tensors, affine": ("SPD", "spd/dti_dipy_small_64D.npz", _matrices("affine-invariant", 1e3)),
    "tensors, log": ("SPD", "spd/dti_dipy_small_64D.npz", _matrices("log-euclidean", 1e3)),
    "Crohn compositions": ("directions", "sphere/compositional_crohn_microbiome.npz", _compositions),
    "HIV compositions": ("directions", "sphere/compositional_hiv_microbiome.npz", _compositions),
    "comet orbits (Jupiter family)": ("directions", "sphere/comet_orbit_normals.npz", _comets),
    "digit descriptors": ("descriptors", "images/mnist10k.npz", _digits),
    "fashion descriptors": ("descriptors", "images/fashion_mnist_sprite900.npz", _fashion),
}


def simulated_cases() -> list[Case]:
    """Wrapped Gaussians of rms distance `spread`·r, around a point at a third of the radius from a public centre."""
    planes = Grassmann(6, 2)
    sphere, wide = Sphere(2), Sphere(10)
    laws: list[tuple[str, Ball, float, float, int]] = [
        ("S², r=π/8, n=300", Ball(sphere, np.eye(3)[2], math.pi / 8), 0.33, 0.4, 300),
        ("S¹⁰, r=1.3, n=1000", Ball(wide, np.eye(11)[0], 1.3), 0.33, 0.4, 1000),
        ("S¹⁰, r=2.6 (no ball known), n=1000", Ball(wide, np.eye(11)[0], 2.6), 0.2, 0.3, 1000),
        ("SPD(3), eigenvalues [.1, 10], n=500", Ball.from_eigenvalues(SPD(3), 0.1, 10.0), 0.33, 0.4, 500),
        ("SPD(8), eigenvalues [.1, 10], n=1000", Ball.from_eigenvalues(SPD(8), 0.1, 10.0), 0.33, 0.4, 1000),
        ("Gr(6, 2), r=.75, n=500", Ball(planes, np.eye(6)[:, :2], 0.75), 0.33, 0.4, 500),
        ("Gr(6, 2), r=1.5, n=500", Ball(planes, np.eye(6)[:, :2], 1.5), 0.2, 0.3, 500),
        ("H³, r=2, n=500", Ball(Hyperbolic(3), Hyperbolic(3).origin, 2.0), 0.33, 0.4, 500),
    ]
    for dim, n in ((21, 1000), (253, 2000)):
        fits = Ball(Euclidean(dim), np.zeros(dim), 1.0)
        laws.append((f"R^{dim}, ball that fits, n={n}", fits, 0.33, 0.8, n))
        laws.append((f"R^{dim}, ball 3 times too large, n={n}", fits, 0.11, 0.27, n))
    return [Case(name, "simulated", _Draw(*rest)) for name, *rest in laws]


@dataclass(frozen=True)
class _Draw:
    """Draws a data set."""

    ball: Ball
    position: float
    spread: float
    n: int

    def __call__(self, rng: np.random.Generator) -> Task:
        ball, manifold = self.ball, self.ball.manifold
        direction = rng.standard_normal(manifold.dim)
        start = self.position * ball.radius * direction / np.linalg.norm(direction)
        middle = manifold.move(host(ball.center), start)
        around = rng.standard_normal((self.n, manifold.dim)) * self.spread * ball.radius / math.sqrt(manifold.dim)
        return Task(ball, np.asarray(manifold.move(middle, around)), None)
