"""The balls, budgets and mechanisms that every test of this room runs on."""

from __future__ import annotations

import math

import numpy as np

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Euclidean,
    GaussianDP,
    Grassmann,
    Hyperbolic,
    NotAvailableError,
    PlanarShapes,
    Power,
    Product,
    PureDP,
    RenyiDP,
    SpecialOrthogonal,
    Sphere,
    ZeroConcentratedDP,
)
from dpmanifolds._points import host
from dpmanifolds.sums import calibrate, mean_facts, point_at


def ball_of(manifold, radius):
    return Ball(manifold, manifold.random_point(rng=3), radius)


BALLS = {
    "line": ball_of(Euclidean(1), 1.0),
    "space": ball_of(Euclidean(3), 1.0),
    "circle": ball_of(Sphere(1), 1.0),
    "sphere": ball_of(Sphere(2), math.pi / 8),
    "small sphere": ball_of(Sphere(3, curvature=4.0), 0.3),
    "hyperbolic": ball_of(Hyperbolic(2), 1.0),
    "spd": ball_of(SPD(2), 1.0),
    "spd log-euclidean": ball_of(SPD(3, "log-euclidean"), 1.0),
    "spd log-cholesky": ball_of(SPD(2, "log-cholesky"), 1.0),
    "shapes": ball_of(PlanarShapes(4), 0.4),
    "rotations": ball_of(SpecialOrthogonal(3), 0.8),
    "subspaces": ball_of(Grassmann(4, 2), 0.4),
    "product": ball_of(Product(Sphere(2), SPD(2)), 0.5),
    "power": ball_of(Power(Sphere(2), 2), 0.5),
}
LARGE = {
    "spd 10": Ball(SPD(10, "log-euclidean"), np.eye(10), 2.0),
    "power 4": Ball(Power(SPD(3), 4), np.broadcast_to(np.eye(3), (4, 3, 3)).copy(), 1.0),
    "sphere 20": ball_of(Sphere(20), 0.5),
}
BUDGETS = {
    "pure": PureDP(1.0),
    "approx": ApproxDP(1.0, 1e-6),
    "gaussian": GaussianDP(1.0),
    "zcdp": ZeroConcentratedDP(0.5),
    "renyi": RenyiDP(8.0, 1.0),
}
WRAPPED = [(name, kind) for name in ("wrapped-laplace", "wrapped-gaussian") for kind in ("rounded", "lattice")]
INTRINSIC = [(name, "idealized") for name in ("riemannian-laplace", "riemannian-gaussian", "k-norm-gradient")]
ALL = [*WRAPPED, *INTRINSIC]


def is_offered(name: str, numerics: str, where: str, budget: str) -> bool:
    """Written down apart from the code: which promises exist."""
    flat = where in ("line", "space", "spd log-euclidean", "spd log-cholesky", "spd 10")
    if name == "wrapped-laplace":
        return True
    if name == "wrapped-gaussian":
        return budget != "pure"
    if name == "riemannian-gaussian":
        return budget != "pure" and (flat or where in ("circle", "sphere", "small sphere", "hyperbolic", "sphere 20"))
    return where not in ("product", "power", "power 4")


def mechanism_for(name: str, numerics: str, ball: Ball, budget, n: int = 2000):
    """The mechanism, or None where no promise exists."""
    try:
        return calibrate(name, mean_facts(ball, n), budget, numerics)
    except NotAvailableError:
        return None


def drawn_point(mechanism, statistic, records=None, rng=None):
    """A draw for a statistic, not shrunk; of the sum of integers that stands for it, where the mechanism takes sums."""
    domain = mechanism.facts.domain
    if mechanism.facts.shape is None:
        drawn = mechanism.draw(statistic, records=records, rng=rng)
        return drawn.point if drawn.coordinates is None else point_at(domain, drawn.coordinates)
    seen = domain.manifold.log_coordinates(host(domain.center), host(statistic))
    total = np.rint(seen / mechanism.step).astype(int).tolist()
    return point_at(domain, mechanism.noisy_mean(total, mechanism.facts.shape.count, rng))
