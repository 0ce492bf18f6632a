"""Neighbours at which formulas change: at the edge and beyond it, off the manifold by 1e−7, nearly singular, equal to
the centre."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from dpmanifolds import Ball
from dpmanifolds._arrays import Array
from dpmanifolds._points import as_block, host, join, map_parts, stack
from dpmanifolds.auditing import Neighbours
from dpmanifolds.errors import ScaleOutOfRangeError
from dpmanifolds.noise import as_generator

# matrices there are nearly singular, and at the larger distances are so to all but their last digits
FAR = (6.0, 12.0, 20.0, 34.0)
OFF = 1e-7


def hard_records(ball: Ball, rng: Any = 0) -> dict[str, Array]:
    """Records of the manifold, or off it by rounding, where formulas, branches and clipping change; by name."""
    manifold, center, source = ball.manifold, host(ball.center), as_generator(rng)
    axis, other = np.eye(manifold.dim)[0], source.standard_normal(manifold.dim)
    beyond = min(1.5 * ball.radius, (ball.radius + manifold.injectivity_radius) / 2)
    places = {
        "ordinary": 0.3 * ball.radius * other / np.linalg.norm(other),
        "at the edge": ball.radius * axis,
        "opposite": -ball.radius * axis,
        "beyond the edge": beyond * axis,
        "opposite and beyond": -beyond * axis,
    }
    places |= {f"at distance {far:g}": far * axis for far in FAR if far < manifold.injectivity_radius}
    found = {}
    for name, place in places.items():
        try:
            with np.errstate(all="ignore"):
                found[name] = manifold.move(center, place)
        except ScaleOutOfRangeError:
            continue
    return found | {"at the centre": center, "off the manifold": moved_off(found["ordinary"], source)}


def moved_off(point: Array, rng: np.random.Generator) -> Array:
    return map_parts(lambda part: part + OFF * np.max(np.abs(part)) * rng.uniform(-1, 1, size=part.shape), point)


def hard_neighbours(ball: Ball, n: int, rng: Any = 0) -> Iterator[Neighbours]:
    """Every pair of hard records, in the company of ordinary ones and of hard ones."""
    source = as_generator(rng)
    records = hard_records(ball, source)
    company = stack(*(records[name] for name in source.choice(list(records), size=n - 1)))
    for (name, one), (other_name, other) in combinations(records.items(), 2):
        told = f"one record moves from {name} to {other_name}"
        yield Neighbours(ball, join(company, as_block(one)), join(company, as_block(other)), told)
