"""How long noise is, where no law in closed form says it: of an ellipsoid, by coordinates, or near the edge of a ball.

>>> import numpy as np
>>> from dpmanifolds.noise.norms import GaussianNorm
>>> found = noise_lengths(np.array([1.0, 1.0, 1.0]), "gaussian")
>>> bool(abs(np.mean(found) / GaussianNorm(3, 1.0).moment(1) - 1) < 0.01)
True
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import integrate, special

from dpmanifolds.domains import Domain

_MOST_NUMBERS, _TOGETHER = 4_000_000, 100_000
_LEAST_DRAWS, _MOST_DRAWS = 1000, 40_000
_MOST_INTEGRATED = 1000


def noise_lengths(lengths: np.ndarray, law: str, counted: bool = False) -> np.ndarray:
    """|diag(a)·y| of draws with a fixed seed, y of scale 1 in R^k; `counted`: beside one more coordinate.

    "gaussian": N(0, I). "laplace": density ∝ e^{−|y|}, so that |y| is Gamma(k) and independent of its direction.
    "coordinatewise": independent, each of density ½e^{−|y|}.
    """
    return _drawn(tuple(lengths.tolist()), law, counted)


@lru_cache(maxsize=16)
def _drawn(axes: tuple[float, ...], law: str, counted: bool) -> np.ndarray:
    """The same, drawn once for noise of one shape, whatever its scale."""
    lengths, dim = np.array(axes), len(axes)
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_NUMBERS // dim))
    rng, found = np.random.default_rng(0), np.empty(draws)
    rows = max(1, _TOGETHER // dim)
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        if law == "coordinatewise":
            long = np.linalg.norm(lengths * rng.laplace(size=(size, dim)), axis=1)
        else:
            normal = rng.standard_normal((size, dim + counted))
            long = np.linalg.norm(lengths * normal[:, :dim], axis=1)
        if law == "laplace":
            long *= rng.gamma(dim + counted, size=size) / np.linalg.norm(normal, axis=1)
        found[start : start + size] = long
    found.flags.writeable = False
    return found


def share_of_length(part: int, dim: int) -> float:
    """E|first `part` coordinates| of a uniform direction in R^dim: its square is Beta(part/2, (dim − part)/2)."""
    if part == dim:
        return 1.0
    logs = [special.gammaln(x / 2) for x in (part + 1, dim, part, dim + 1)]
    return math.exp(logs[0] + logs[1] - logs[2] - logs[3])


@lru_cache(maxsize=256)
def quantile_of_laplaces(dim: int, probability: float) -> float:
    """Of √(y₁² + … + y_d²) for independent y_i with density ½e^{−|y|}, from draws with a fixed seed."""
    return float(np.quantile(noise_lengths(np.ones(dim), "coordinatewise"), probability))


@lru_cache(maxsize=64)
def mean_of_laplaces(dim: int) -> float:
    """E√(y₁² + … + y_d²) for independent y_i with density ½e^{−|y|}.

    E√S = (2√π)⁻¹∫(1 − E e^{−tS})t^{−3/2}dt, and with t = 1/4u² one coordinate has E e^{−ty²} = √π·u·erfcx(u). Beyond
    1,000 dimensions √(2d)·(1 − 5/8d), from E S = 2d and Var S = 20d.

    >>> round(mean_of_laplaces(1), 9)
    1.0
    """
    if dim > _MOST_INTEGRATED:
        return math.sqrt(2 * dim) * (1 - 5 / (8 * dim))

    def integrand(u: float) -> float:
        one = min(math.sqrt(math.pi) * u * float(special.erfcx(u)), 1.0)
        return -math.expm1(dim * math.log(one)) if one > 0 else 1.0

    knee = math.sqrt(dim)
    near, _ = integrate.quad(integrand, 0.0, knee, limit=400, epsabs=1e-12, epsrel=1e-11)
    far, _ = integrate.quad(lambda v: integrand(knee / v) * knee / (v * v), 0.0, 1.0, limit=400, epsabs=1e-10)
    return float(2 / math.sqrt(math.pi) * (near + far))


def edge_factor(domain: Domain) -> float:
    """How much larger the mean geodesic error is at the edge of the domain than at its centre, for small noise.

    exp at the centre stretches directions across the radius r by at most f = sinh(ar)/(ar), a² = −(lowest
    curvature), and not along it. For an isotropic direction u₁² ~ Beta(½, (d−1)/2), hence E√(u₁² + f²(1 − u₁²)); 1
    where the curvature is nowhere negative.

    >>> from dpmanifolds import Ball, Hyperbolic
    >>> round(edge_factor(Ball(Hyperbolic(2), Hyperbolic(2).origin, 3.0)), 2)
    2.33
    """
    manifold = domain.manifold
    lower = manifold.curvature_bounds[0]
    if lower >= 0 or manifold.dim == 1:
        return 1.0
    reach = math.sqrt(-lower) * domain.radius
    if reach > 300:
        return math.inf
    stretch = math.sinh(reach) / reach if reach > 1e-6 else 1.0
    a, b = 0.5, (manifold.dim - 1) / 2
    log_beta = float(special.betaln(a, b))

    # u₁² = sin²t takes away both singularities of the Beta density
    def integrand(t: float) -> float:
        across = math.cos(t) ** 2
        weight = 2 * math.cos(t) ** (2 * b - 1) / math.exp(log_beta) if across > 0 else 0.0
        return weight * math.sqrt(1 - across + stretch * stretch * across)

    value, _ = integrate.quad(integrand, 0.0, math.pi / 2, limit=200)
    return max(float(value), 1.0)
