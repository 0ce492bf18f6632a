"""Records that are hard to look at: where formulas change, digits run out or a rule is broken."""

from __future__ import annotations

import numpy as np

from dpmanifolds import (
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.manifolds.spd import SPDBase

SIZES = (1e-300, 5e-324, 1e-160, 1e160, 1e300, np.nan, np.inf, -np.inf, 0.0)


def hard_records(manifold: Manifold, base, count: int, seed: int = 0):
    """`count` records, ordinary and hard ones mixed."""
    rng = np.random.default_rng(seed)
    if isinstance(manifold, Product):
        parts = [
            hard_records(factor, part, count, seed + number)
            for number, (factor, part) in enumerate(zip(manifold.factors, base, strict=True))
        ]
        return tuple(parts)
    ordinary = manifold.random_point(count, rng=rng)
    special = _special(manifold, base, rng)
    rows = rng.permutation(count)[: min(len(special), count // 2)]
    ordinary[rows] = special[rng.permutation(len(special))[: len(rows)]]
    return ordinary


def _special(manifold: Manifold, base, rng) -> np.ndarray:
    point = manifold.random_point(rng=rng)
    found = [base, point, point * (1 + 3e-7), point * (1 - 1e-9)]
    if isinstance(manifold, Power):
        inner = _special(manifold.manifold, base[0], rng)
        for each in inner:
            copy = point.copy()
            copy[0] = each
            found.append(copy)
        return np.stack(found)
    with np.errstate(all="ignore"):
        found += [point * size for size in SIZES]
    broken = point.copy()
    broken.ravel()[0] = np.nan
    found.append(broken)
    if isinstance(manifold, (Sphere, Hyperbolic)):
        found += [-base, -base * (1 + 1e-16), manifold.project(base + 1e-9 * point)]
    if isinstance(manifold, Hyperbolic):
        for reach in (15.0, 40.0, 300.0):
            direction = np.zeros(manifold.dim)
            direction[0] = reach * manifold.scale_length
            found.append(manifold.exp(manifold.origin, manifold.from_coordinates(manifold.origin, direction)))
    if isinstance(manifold, (SPDBase, Correlation)):
        found += _hard_matrices(manifold.k, point, rng)
    if isinstance(manifold, Grassmann):
        found.append(np.linalg.qr(base, mode="complete")[0][:, -manifold.p :])
    if isinstance(manifold, SpecialOrthogonal):
        turn = np.eye(manifold.n)
        turn[0, 0] = turn[1, 1] = -1.0
        found += [base @ turn, np.eye(manifold.n)]
    if isinstance(manifold, PlanarShapes):
        found += [np.ones(manifold.k, dtype=complex) / manifold.k, base * np.exp(1j)]
    if isinstance(manifold, Euclidean):
        found += [np.full(manifold.dim, 1e308), np.full(manifold.dim, 5e-324)]
    return np.stack([np.asarray(each, dtype=base.dtype) for each in found])


def _hard_matrices(k: int, point: np.ndarray, rng) -> list[np.ndarray]:
    frame = np.linalg.qr(rng.standard_normal((k, k)))[0]
    found = []
    for condition in (99.0, 101.0, 1e6, 1e12, 1e15, 1e17, 1e30):
        values = np.geomspace(1.0, 1 / condition, k) if k > 1 else np.array([1 / condition])
        matrix = (frame * values) @ frame.T
        found.append((matrix + matrix.T) / 2)
    repeated = np.ones(k)
    repeated[0] = 1 + 1e-12
    matrix = (frame * repeated) @ frame.T
    found += [np.eye(k), 2 * np.eye(k), (matrix + matrix.T) / 2, np.diag(np.arange(1.0, k + 1))]
    found += [-np.eye(k), np.ones((k, k)), np.zeros((k, k))]
    skew = point.copy()
    skew[0, -1] += 1e-7
    found += [skew, np.diag(np.where(np.arange(k) == 0, 1e-200, 1e200))]
    if k > 1:
        flipped = np.eye(k)
        flipped[0, 1] = flipped[1, 0] = 1 - 1e-16
        found.append(flipped)
        tilted = np.eye(k)
        tilted[0, 1] = 0.5
        found.append(tilted)
    with np.errstate(all="ignore"):
        scales = [np.sqrt(np.abs(np.diagonal(each))) for each in found]
        found += [each / np.outer(scale, scale) for each, scale in zip(found, scales, strict=True)]
    return found
