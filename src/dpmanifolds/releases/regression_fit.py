"""A geodesic fitted to noisy joint moments, look by look: all of it is post-processing (docs/proofs/regression.md)."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from dpmanifolds._arrays import Array
from dpmanifolds.manifolds import Manifold
from dpmanifolds.sums.estimate import shrink_length
from dpmanifolds.sums.regression import Moments, RegressionView
from dpmanifolds.sums.walk import Walk

# of covariates from −1 to 1 that fill their bounds evenly
EVEN_VARIANCE = 1 / 3
# of residuals that scatter evenly, what a second look does not shorten
_KEPT = 0.98
_LEAST_VARIANCE = 1e-3
_SURE = 1.5
_SMALL = 1e-4


class FitState(NamedTuple):
    """A fit so far: all of it released."""

    base: Array
    slopes: np.ndarray
    """(q, dim) at the base, for covariates from −1 to 1."""
    variances: np.ndarray
    """Of the noise in each coordinate of the base, and of each slope: (q + 1,)."""
    gains: np.ndarray
    """The inverse covariance of the covariates."""
    middle: np.ndarray
    """Their mean."""
    residual: float
    """The mean squared distance to the fit."""
    doubt: float
    """The standard deviation of the noise on it."""
    covariates: tuple[np.ndarray, np.ndarray] | None
    """Their moments so far, and the variance of the noise on them."""


def start_fit(view: RegressionView) -> FitState:
    """What is known before the first look: nothing."""
    q, nothing = view.count, np.zeros((view.count, view.space.dim))
    return FitState(view.base, nothing, np.full(q + 1, math.inf), np.eye(q), np.zeros(q), math.inf, 0.0, None)


def next_view(walk: Walk, view: RegressionView, state: FitState) -> RegressionView:
    """What is left beyond the released geodesic, in a ball as small as the released spread allows."""
    domain, dim = walk.domain, view.space.dim
    radius = smaller_radius(state.residual, state.doubt, dim * float(np.sum(state.variances)), dim, domain.radius)
    # so that every point below is one that floating point tells, and none lies beyond the cut locus of another
    inner = 0.9 * view.space.injectivity_radius
    longest = min(2 * domain.radius, inner / 2)
    slopes = state.slopes * min(1.0, longest / max(float(np.sum(np.linalg.norm(state.slopes, axis=1))), 1e-300))
    away = float(np.linalg.norm(view.space.log_coordinates(walk.center, state.base)))
    reach = min(domain.radius + away, inner - float(np.sum(np.linalg.norm(slopes, axis=1))))
    return RegressionView(view.space, state.base, view.bounds, radius, slopes, reach=reach, substitute=view.substitute)


def smaller_radius(residual: float, doubt: float, error: float, dim: int, most: float) -> float:
    """A radius that holds nearly all of what the first fit leaves of records, in doubt the public one."""
    square = max(residual, 0.0) + _SURE * doubt + 2 * error
    return float(min(most, math.sqrt(square * float(stats.chi2.ppf(_KEPT, dim)) / dim)))


def update_fit(walk: Walk, view: RegressionView, state: FitState, seen: Moments, noise: Moments) -> FitState:
    """The fit after one more look: least squares from noisy moments, weighted with what was known before."""
    own = noise.covariates**2
    known = (seen.covariates, own)
    if state.covariates is not None:
        before, variance = state.covariates
        share = variance / np.maximum(variance + own, 1e-300)
        known = (before + share * (seen.covariates - before), variance * (1 - share))
    middle, gains = _inverse(*known)
    mean = seen.products[0]
    slopes = gains @ (seen.products[1:] - middle[:, None] * mean)
    base = mean - middle @ slopes
    fresh = _variances(gains, middle, noise, slopes)
    share = state.variances / (state.variances + fresh) if math.isfinite(state.variances[0]) else np.ones_like(fresh)
    old = np.where(np.isfinite(state.variances), state.variances, 0.0)
    left = seen.square - float(mean @ mean) - float(np.sum(slopes * (seen.products[1:] - middle[:, None] * mean)))
    left = max(left, 0.0) if view.slopes is None else _uncut(left, view.radius, view.space.dim)
    point, moved = _moved(walk, view, state, share[0] * base, share[1:, None] * slopes)
    variances = np.where(np.isfinite(state.variances), (1 - share) * old, fresh)
    return FitState(point, moved, variances, gains, middle, left, noise.square, known)


def _uncut(square: float, radius: float, dim: int) -> float:
    """The mean squared length of residuals from that of residuals shortened to a radius, if they are Gaussian."""
    found = square = min(max(square, 0.0), radius * radius)
    for _ in range(10):
        most = radius * radius * dim / max(found, 1e-12 * radius * radius)
        kept = float(stats.chi2.cdf(most, dim + 2)) + most / dim * float(stats.chi2.sf(most, dim))
        found = min(square / kept, radius * radius)
    return found


@cache
def hidden_share(dim: int) -> float:
    """By how much more records scatter than they seem to, if along one of `dim` directions, after the second look.

    It shortens residuals to a length √c that even ones of mean square 1 seldom have: E min(f·Z², c) = 1 gives f.
    """
    most = float(stats.chi2.ppf(_KEPT, dim)) / dim
    seen = lambda f: f * stats.chi2.cdf(most / f, 3) + most * stats.chi2.sf(most / f, 1) - 1  # noqa: E731
    return float(optimize.brentq(seen, 1.0, 1e9))


def _inverse(moments: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of covariates, and the inverse of their covariance: eigenvalues below their noise are lifted to it."""
    middle = np.clip(moments[0, 1:], -1.0, 1.0)
    covariance = moments[1:, 1:] - np.outer(middle, middle)
    values, vectors = np.linalg.eigh(covariance)
    least = max(_LEAST_VARIANCE, 2 * math.sqrt(float(np.max(variances))))
    return middle, (vectors / np.clip(values, min(least, EVEN_VARIANCE), 1.0)) @ vectors.T


def _variances(gains: np.ndarray, middle: np.ndarray, noise: Moments, slopes: np.ndarray) -> np.ndarray:
    """Of the noise in each coordinate of the base and of each slope, to first order."""
    on_products, dim = noise.products[:, 0] ** 2, slopes.shape[1]
    inner = np.diag(on_products[1:]) + np.outer(middle, middle) * on_products[0]
    # noise on the covariates' moments moves the fit along its slopes, by as much as there are beyond noise: in one
    # direction of dim, which counts more than an even share of it
    length = max(float(np.sum(slopes**2)) - dim * float(np.trace(gains @ inner @ gains.T)), 0.0)
    crossed = np.max(noise.covariates[1:, 1:] ** 2, axis=1) * length * min(1.0, 2 / dim)
    spread = gains @ (inner + np.diag(crossed)) @ gains.T
    along = gains @ middle
    base = on_products[0] * (1 + middle @ along) ** 2 + along @ (on_products[1:] * along)
    return np.append(base, np.diag(spread))


def _moved(
    walk: Walk, view: RegressionView, state: FitState, base: np.ndarray, slopes: np.ndarray
) -> tuple[Array, np.ndarray]:
    """The fit in tangent coordinates at the base of the view, as a point and slopes there: post-processing."""
    manifold = view.space
    if view.slopes is not None:
        point = walk.reach(view.base, base)
        return point, carried(manifold, view.base, point, view.slopes + slopes)
    point = walk.reach(view.base, base)
    if manifold.is_flat:
        return point, carried(manifold, view.base, point, slopes)
    # the curve exp(base + t·slope) is no geodesic: its velocity where it starts
    start = np.asarray(manifold.log_coordinates(view.base, point))
    step = _SMALL / max(1.0, float(np.max(np.linalg.norm(slopes, axis=1), initial=0.0)))
    ends = [
        manifold.log_coordinates(point, manifold.exp_coordinates(view.base, start + sign * step * slopes))
        for sign in (1, -1)
    ]
    found = np.asarray(ends[0] - ends[1]) / (2 * step)
    return point, np.where(np.all(np.isfinite(found), axis=-1, keepdims=True), found, 0.0)


def carried(manifold: Manifold, start: Array, end: Array, rows: np.ndarray) -> np.ndarray:
    """Coordinates at one public point, carried along the geodesic to another."""
    vectors = manifold.transport(start, end, manifold.from_coordinates(start, rows))
    return np.asarray(manifold.to_coordinates(end, vectors))


def shrunk(coordinates: np.ndarray, variance: float, radius: float) -> np.ndarray:
    """The best guess of coordinates of at most this length."""
    length = float(np.linalg.norm(coordinates))
    sigma = max(math.sqrt(variance), 1e-12 * radius)
    wanted = shrink_length(length, dim=len(coordinates), radius=radius, sigma=sigma, gaussian=True)
    return np.asarray(coordinates * (wanted / max(length, 1e-300)))
