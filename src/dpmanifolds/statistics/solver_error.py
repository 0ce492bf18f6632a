"""How close to the true mean a computed one is promised to be: a public number, charged before any record is read.

Solver error (docs/proofs/sensitivity_of_mean.md): F = (1/2n)Σρ²(·, x_i) has Hessian at least avg_i g(ρ_i + δ) within δ
of x̂, with g(s) = √κs·cot(√κs) for curvature ≤ κ, κ > 0, and 1 for κ ≤ 0. A gradient of length at most δ times that puts
the mean within δ. At the mean avg_i g(ρ_i) ≥ √κr·cot(√κr), so that a δ exists that every data set reaches.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmanifolds._arrays import Array
from dpmanifolds._points import on_host
from dpmanifolds._validate import positive_integer, shown
from dpmanifolds.domains import Domain
from dpmanifolds.domains.domain import check_domain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.statistics.passes import longest_sum_of_arrays

_PRECISIONS = ("float32", "float64", "complex64", "complex128")


def solver_tolerance(domain: Domain, n: int, dtype: Any = "float64") -> float:
    """A distance δ from the true mean that `frechet_mean` reaches for every data set of n records in the domain.

    Accept a computed mean when it lies in the ball and its `error_bound` is at most δ/2 (the other half pays for the
    order of summation); it is then within δ of the mean, and the sensitivity grows by 2δ. A function of public facts
    alone: with λ = √κr·cot(√κr) less what g loses over the certificate's step (1 where the curvature is at most 0),

        δ = 2(2·tol + 4·rounding + (b + n/b)·eps·2r)/λ,

    tol = 1e−10 (1e−5 in single precision) the solver's default, `rounding` the largest that the solver can report in
    the domain (the ball of its `radius` around its centre), b = min(n, 32768) the records it adds up in one block of
    NumPy arrays. Where no such δ is below the radius, or the certificate cannot hold, an `ArgumentError` says so before
    any record is read.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball, frechet_mean
    >>> ball = Ball(SPD(3), np.eye(3), radius=1.0)
    >>> delta = solver_tolerance(ball, 200)
    >>> records = ball.clip(SPD(3).random_point(200, rng=0))
    >>> frechet_mean(SPD(3), records).error_bound <= delta / 2 < 1e-9
    True
    """
    n = positive_integer("n", n)
    precision = _precision(dtype)
    extent = _extent(domain)
    delta = _tolerance(domain.manifold, on_host(domain.center), extent, n, precision)
    if not delta < domain.radius:
        raise ArgumentError(
            f"no solver tolerance below the radius {domain.radius:.4g} is certain on {domain.manifold!r} in precision "
            f"{precision:.1e} with n = {n}. Use double precision, a smaller domain or a better conditioned centre."
        )
    return delta


def coordinate_rounding(domain: Domain, dtype: Any = "float64") -> float:
    """How far the computed coordinates at the centre of a computed mean can be from the exact ones of that mean.

    The point is written down in `dtype` and read again through log: two passes of the arithmetic that the solver's
    own rounding bounds, each with twice that bound.
    """
    manifold, center, extent = domain.manifold, on_host(domain.center), _extent(domain)
    return 4 * _precision(dtype) * math.hypot(*_roundings(manifold, center, extent))


class _Extent(NamedTuple):
    """Distance from the centre, and the condition number of matrices, at most."""

    radius: float
    condition: float


def _extent(domain: Domain) -> _Extent:
    check_domain(domain)
    return _Extent(domain.radius, domain.largest_condition)


def _roundings(manifold: Manifold, center: Array, extent: _Extent) -> list[float]:
    """The largest rounding of each factor and copy."""
    return [factor.mean_rounding(part, *extent) for factor, part in manifold.factors_of(center)]


def _tolerance(manifold: Manifold, center: Array, extent: _Extent, n: int, precision: float) -> float:
    """δ, infinite where none is certain; over the factors of a product the errors add in squares."""
    radius = extent.radius
    if manifold.has_parts:
        parts = zip(manifold.factors, center, strict=True)
        return math.hypot(*(_tolerance(factor, part, extent, n, precision) for factor, part in parts))
    inner = manifold.single
    summation = longest_sum_of_arrays(n) * precision * 2 * radius
    target = 1e-10 if precision < 1e-10 else 1e-5
    rounding = max(_roundings(manifold, center, extent))
    if precision == np.finfo(np.float64).eps:
        rounding += inner.rounding_in_double
    needed = 2 * target + math.sqrt(manifold.copies) * (4 * precision * rounding + summation)
    convexity, reach = _convexity(inner, radius, precision)
    half = needed / convexity if convexity > 0 else math.inf
    return 2 * half if half <= reach else math.inf


def _convexity(manifold: Manifold, radius: float, precision: float) -> tuple[float, float]:
    """A lower bound of avg_i g(ρ_i + δ₀) within δ₀ of any mean, and the certificate's step δ₀ (or infinity)."""
    lower, upper = manifold.curvature_bounds
    if manifold.is_hadamard:
        return 1.0, math.inf
    step = (1e-6 if precision < 1e-10 else 2e-3) / math.sqrt(max(abs(lower), abs(upper)) or 1.0)
    if upper <= 0:
        return 1.0, step
    root = math.sqrt(upper)
    farthest = root * 2 * (radius + step)
    if farthest >= math.pi:
        return 0.0, step
    slope = (farthest - math.sin(farthest) * math.cos(farthest)) / math.sin(farthest) ** 2
    angle = root * radius
    # a radius below all others underflows here
    near = angle / math.tan(angle) if angle > 0 else 1.0
    return near - 2 * root * step * slope, step


def _precision(dtype: Any) -> float:
    """eps of a real or complex dtype of NumPy, or of its name."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind.name not in _PRECISIONS:
        raise ArgumentError(f"dtype must be one of {', '.join(_PRECISIONS)}; got {shown(dtype)}.")
    return float(np.finfo(kind).eps)
