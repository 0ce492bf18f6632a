"""One small release per manifold, for the tests of what people see."""

from __future__ import annotations

from functools import cache

import numpy as np

import dpmanifolds as dpm

__all__ = ["NAMES", "example"]

_NORTH = np.array([0.0, 0.0, 1.0])


def _shape_ball() -> dpm.Ball:
    angles = np.linspace(0, 2 * np.pi, 9)[:-1]
    return dpm.Ball(dpm.PlanarShapes(8), (2 + np.cos(2 * angles)) * np.exp(1j * angles) / np.sqrt(36), 0.2)


_BALLS = {
    "spd2": lambda: dpm.Ball(dpm.SPD(2), np.eye(2), 1.5),
    "spd3": lambda: dpm.Ball(dpm.SPD(3), np.eye(3), 1.5),
    "spd5": lambda: dpm.Ball(dpm.SPD(5, "log-euclidean"), np.eye(5), 1.5),
    "sphere2": lambda: dpm.Ball(dpm.Sphere(2), _NORTH, 0.6),
    "sphere4": lambda: dpm.Ball(dpm.Sphere(4), np.eye(5)[0], 0.6),
    "hyperbolic2": lambda: dpm.Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.5),
    "hyperbolic3": lambda: dpm.Ball(dpm.Hyperbolic(3), dpm.Hyperbolic(3).origin, 1.5),
    "shapes": _shape_ball,
    "euclidean2": lambda: dpm.Ball(dpm.Euclidean(2), np.zeros(2), 3.0),
    "euclidean5": lambda: dpm.Ball(dpm.Euclidean(5), np.zeros(5), 3.0),
    "rotations": lambda: dpm.Ball(dpm.SpecialOrthogonal(3), np.eye(3), 0.7),
    "grassmann": lambda: dpm.Ball(dpm.Grassmann(4, 2), np.eye(4)[:, :2], 0.5),
    "map": lambda: dpm.Ball(dpm.Power(dpm.SPD(3, "log-euclidean"), 6), np.broadcast_to(np.eye(3), (6, 3, 3)), 3.0),
    "map of directions": lambda: dpm.Ball(dpm.Power(dpm.Sphere(2), 3), np.broadcast_to(_NORTH, (3, 3)), 0.5),
    "product": lambda: dpm.Ball(dpm.Product(dpm.Sphere(2), dpm.Euclidean(1)), (_NORTH, np.zeros(1)), 0.5),
}
NAMES = (*_BALLS, "variance", "median")


@cache
def example(name: str) -> dpm.Release:
    """The release of that name, always the same."""
    ball = _BALLS["spd2" if name in ("variance", "median") else name]()
    points = ball.clip(ball.manifold.random_point(300, rng=0))
    if name == "variance":
        return dpm.private_variance(points, ball, dpm.PureDP(1.0), rng=1)
    if name == "median":
        return dpm.private_median(points, ball, dpm.ApproxDP(1.0, 1e-6), rng=1)
    return dpm.private_mean(points, ball, dpm.PureDP(1.0), refine=0, rng=1)
