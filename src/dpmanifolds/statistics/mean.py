"""The Fréchet mean: the point with the smallest mean squared distance to the records. Not private."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpmanifolds._arrays import Array, dot, eps, like, namespace, norm, to_numpy
from dpmanifolds._validate import hide_records, positive_number
from dpmanifolds.errors import ConvergenceError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold, SPDAffineInvariant
from dpmanifolds.manifolds.base import check_manifold
from dpmanifolds.manifolds.linearization import HessianBlock, Linearization, certificate_step
from dpmanifolds.records.blocks import record_array
from dpmanifolds.records.source import ArraySource
from dpmanifolds.statistics.kernels.device import fits_device, linearize_on_device, longest_device_sum
from dpmanifolds.statistics.passes import Preparation, Records, extrinsic_mean, flat_mean, not_finite, records_of

_MOST_PASSES = 50
_MOST_SHORTENINGS = 8
_LARGEST_SAMPLE = 65536
_DEVICE_SAMPLE = 1024


@dataclass(frozen=True)
class MeanResult:
    """A point, and how far it can be from the true one. NOT private.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> result = dpm.frechet_mean(dpm.SPD(3), dpm.SPD(3).random_point(100, rng=0))
    >>> result.converged, result.error_bound < 1e-9, result.is_global
    (True, True, True)
    """

    point: Array
    """The computed mean (or median)."""
    gradient_norm: float
    """Length of the gradient of half the mean squared distance at `point`."""
    error_bound: float
    """Certified distance from `point` to the stationary point it approximates, rounding included; infinite where
    the certificate does not hold."""
    passes: int
    """How often the records were read."""
    converged: bool
    """Whether the tolerance was met; False means that the floating-point floor of the data came first."""
    is_global: bool
    """Whether the stationary point is known to be the unique minimum (all records within `max_radius` of it)."""


@hide_records()
def frechet_mean(
    manifold: Manifold, points: Any, *, sample_weight: Any = None, tolerance: float | None = None
) -> MeanResult:
    """argmin_x Σ w_i ρ²(x, x_i), by Newton's method with the closed-form Hessian. Not private: this is the bare mean.

    Stops when the gradient's length is at most `tolerance` (default 1e−10 in float64, 1e−5 in float32), or at the
    floating-point floor of badly conditioned data, which `converged=False` tells. Flat metrics need one pass and no
    iteration. `error_bound`: F is strongly convex with modulus λ = Σ w g(ρ_i + δ₀) within δ₀ of the result (g = 1 on
    Hadamard manifolds, s·cot s scaled by the upper curvature otherwise), so a gradient of length G ≤ λδ₀ puts a
    stationary point within G/λ.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, frechet_mean
    >>> result = frechet_mean(SPD(2), np.stack([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])]))
    >>> np.round(result.point, 9) + 0.0
    array([[2., 0.],
           [0., 2.]])
    """
    check_manifold(manifold)
    if tolerance is not None:
        tolerance = positive_number("tolerance", tolerance)
    if manifold.has_parts:
        parts = [
            frechet_mean(factor, part, sample_weight=sample_weight, tolerance=tolerance)
            for factor, part in zip(manifold.factors, record_array(manifold, points), strict=True)
        ]
        return _joined(parts)
    return mean_of(records_of(manifold, points, sample_weight=sample_weight), tolerance)


def mean_of(records: Records, tolerance: float | None = None) -> MeanResult:
    """The Fréchet mean of records that may be streamed and clipped on their way in."""
    inner = records.manifold.single
    if inner.is_product:
        raise NotOnManifoldError(f"no mean is offered on powers of {inner!r}; use a product of powers.")
    if inner.has_chart:
        point, error = flat_mean(records)
        return MeanResult(point, error, error, 1, error <= (tolerance or _default_tolerance(point)), True)
    goal = tolerance or _default_tolerance(records.reference)
    return _newton_on_device(inner, records, goal) or _newton(inner, _BlockPasses(inner, records), goal)


def _default_tolerance(reference: Array) -> float:
    return 1e-10 if eps(reference) < 1e-10 else 1e-5


def _joined(parts: list[MeanResult]) -> MeanResult:
    """The mean on a product is the tuple of the means."""
    return MeanResult(
        point=tuple(part.point for part in parts),
        gradient_norm=math.hypot(*(part.gradient_norm for part in parts)),
        error_bound=math.hypot(*(part.error_bound for part in parts)),
        passes=max(part.passes for part in parts),
        converged=all(part.converged for part in parts),
        is_global=all(part.is_global for part in parts),
    )


class _Passes(ABC):
    """The records as Newton's method sees them: what one pass over them tells at a base."""

    longest_sum: int
    """How many numbers one total of a pass adds up, at most."""

    @abstractmethod
    def start(self) -> tuple[Array, int]:
        """A base, and the passes it took."""

    @abstractmethod
    def full(self, base: Array) -> Linearization:
        """One pass with Hessian."""

    @abstractmethod
    def gradient(self, base: Array, nearby: Linearization, allowance: float) -> Linearization:
        """One pass for the gradient alone, with what was kept of a pass at a base nearby."""


def _newton(manifold: Manifold, records: _Passes, tolerance: float) -> MeanResult:
    """Newton steps, shortened while the objective grows; one pass over the records per step."""
    base, passes = records.start()
    here = records.full(base)
    passes += 1
    gradient, contraction, stalled = _total(norm(here.pull)), 1.0, 0
    while gradient > tolerance and stalled < 2:
        if not here.has_second_order:
            here = records.full(base)
            passes += 1
        look: Callable[..., Linearization] = records.full
        if contraction * gradient * gradient < tolerance / 4:
            # the next gradient will do: that pass needs no Hessian
            look = partial(records.gradient, nearby=here, allowance=tolerance / 100)
        candidate, there, used = _step(manifold, base, here, gradient, tolerance, look)
        passes += used
        reached = _total(norm(there.pull))
        contraction = reached / (gradient * gradient)
        # far from the minimum the gradient may grow while the objective falls
        falling = _falls(here, there)
        stalled = stalled + 1 if reached > gradient / 2 and not falling else 0
        if reached < gradient or falling:
            base, here, gradient = candidate, there, reached
        elif gradient <= _total(here.rounding):
            break
        if passes >= _MOST_PASSES:
            raise ConvergenceError(
                f"the mean did not converge in {passes} passes: the records may be spread too far apart for it to be "
                "unique. Clip them to a ball below manifold.max_radius first."
            )
    bound, is_global = _certificate(manifold, here, records.longest_sum)
    return MeanResult(base, gradient, bound, passes, gradient <= tolerance, is_global)


def _newton_on_device(manifold: Manifold, records: Records, tolerance: float) -> MeanResult | None:
    """The same with small matrices on a device and the rest on the host; None where that does not do."""
    source = records.source
    if not isinstance(manifold, SPDAffineInvariant) or not fits_device(getattr(source, "array", None), manifold.k):
        return None
    points = manifold.as_points(getattr(source, "array", None))
    try:
        result = _newton(manifold, _DevicePasses(manifold, points, records.weights), tolerance)
    except _NeedsCareError:
        return None
    return replace(result, point=like(result.point, records.reference))


def _falls(here: Linearization, there: Linearization) -> bool:
    """Whether the objective falls beyond doubt."""
    xp = namespace(here.value)
    return bool(xp.sum(there.value) < xp.sum(here.value) * (1 - 1e-6) - xp.sum(here.rounding))


def _step(
    manifold: Manifold,
    base: Array,
    here: Linearization,
    gradient: float,
    tolerance: float,
    look: Callable[..., Linearization],
) -> tuple[Array, Linearization, int]:
    """The point after one Newton step, what is seen there, and how many looks that took.

    The step is shortened while the objective grows.
    """
    xp = namespace(here.pull)
    step = newton_direction(here, min(1e-3, max(gradient * gradient, tolerance / (8 * gradient))))
    size = norm(step)
    limit = min(manifold.injectivity_radius / 2, 4 / math.sqrt(max(map(abs, manifold.curvature_bounds)) or 1.0))
    step = step * (limit / xp.where(size > limit, size, xp.full_like(size, limit)))[..., None]
    looks = 0
    while True:
        candidate = manifold.exp(base, manifold.from_coordinates(base, step))
        there = look(base=candidate)
        looks += 1
        worse = there.value > here.value * (1 + 1e-9) + here.rounding
        if looks == _MOST_SHORTENINGS or not bool(xp.any(worse)):
            return candidate, there, looks
        step = xp.where(worse[..., None], step / 4, step)


@dataclass(frozen=True)
class _BlockPasses(_Passes):
    """Records that come in blocks."""

    manifold: Manifold
    records: Records

    @property
    def longest_sum(self) -> int:  # type: ignore[override]
        return self.records.longest_sum

    def start(self) -> tuple[Array, int]:
        """The extrinsic mean of all records, or for many SPD matrices the mean of a part of them: less than a pass."""
        count = self.records.source.counted()
        enough = 8 * self.manifold.dim + 64
        if isinstance(self.manifold, SPDAffineInvariant) and self.records.weights is None and count >= 4 * enough:
            part = self.records.sample(max(enough, min(count // 16, _LARGEST_SAMPLE)))
            return _newton(self.manifold, _BlockPasses(self.manifold, part), 1e-2).point, 0
        return extrinsic_mean(self.manifold, self.records), 1

    def full(self, base: Array) -> Linearization:
        return _collected(self.records, _FullPart(self.manifold, base, self.records.memory))

    def gradient(self, base: Array, nearby: Linearization, allowance: float) -> Linearization:
        kept = {block.number: block for block in nearby.blocks} if self.records.source.is_local else {}
        return _collected(self.records, _GradientPart(self.manifold, base, kept, allowance))


class _NeedsCareError(Exception):
    """A record is malformed, or beyond what a kernel without decisions can do."""


@dataclass(frozen=True)
class _DevicePasses(_Passes):
    """Matrices up to 3×3 on a device: a kernel per pass, everything else in NumPy."""

    manifold: SPDAffineInvariant
    points: Array
    weights: Array | None

    @property
    def longest_sum(self) -> int:  # type: ignore[override]
        return longest_device_sum(int(self.points.shape[0]))

    def start(self) -> tuple[Array, int]:
        """The mean of some records, on the host."""
        some = to_numpy(self.points[:_DEVICE_SAMPLE, ...])
        part = Records(ArraySource(some), Preparation(self.manifold))
        return _newton(self.manifold, _BlockPasses(self.manifold, part), 1e-2).point, 0

    def full(self, base: Array) -> Linearization:
        return self._linearized(base, True)

    def gradient(self, base: Array, nearby: Linearization, allowance: float) -> Linearization:
        return self._linearized(base, False)

    def _linearized(self, base: Array, hessian: bool) -> Linearization:
        found = linearize_on_device(self.manifold, base, self.points, self.weights, hessian)
        if found is None:
            raise _NeedsCareError
        return found


@dataclass(frozen=True)
class _FullPart:
    """The sums of one block, with Hessian."""

    manifold: Manifold
    base: Array
    memory: int
    """How much the blocks may keep of their Hessian together: the first ones do, and stand for the others."""

    def __call__(self, number: int, block: Array, weights: Array) -> Linearization:
        result = self.manifold.linearize(self.base, block, weights, True)
        for kept in result.blocks:
            kept.number = number
        return (
            result
            if number == 0 or all((number + 1) * k.memory <= self.memory for k in result.blocks)
            else result.without_blocks()
        )


@dataclass(frozen=True)
class _GradientPart:
    """The sums of one block without Hessian."""

    manifold: Manifold
    base: Array
    kept: dict[int, HessianBlock]
    allowance: float

    def __call__(self, number: int, block: Array, weights: Array) -> Linearization:
        known = self.kept.get(number)
        short_cut = known.nearby(self.base, block, weights, self.allowance) if known else None
        return short_cut or self.manifold.linearize(self.base, block, weights, False)


def _collected(records: Records, part: Callable[[int, Array, Array], Linearization]) -> Linearization:
    total = records.reduce(part, Linearization.plus)
    xp = namespace(total.pull)
    if not bool(xp.all(xp.isfinite(total.pull))):
        raise not_finite()
    return total


def newton_direction(here: Linearization, accuracy: float) -> Array:
    """Solve Hess·step = pull by conjugate gradients, to a residual of `accuracy` times the right-hand side."""
    xp = namespace(here.pull)
    residual, step = here.pull, xp.zeros_like(here.pull)
    direction = residual
    squared = dot(residual, residual)
    goal = accuracy * accuracy * squared
    for _ in range(4 * here.pull.shape[-1] + 8):
        active = squared > goal
        if not bool(xp.any(active)):
            break
        image = here.apply(direction)
        bend = dot(direction, image)
        # a direction of no curvature, or a finished copy: keep what there is
        active = active & (bend > 0)
        length = xp.where(active, squared / xp.where(active, bend, xp.ones_like(bend)), xp.zeros_like(bend))
        step = step + length[..., None] * direction
        residual = residual - length[..., None] * image
        following = xp.where(active, dot(residual, residual), xp.zeros_like(squared))
        direction = residual + (following / xp.where(active, squared, xp.ones_like(squared)))[..., None] * direction
        squared = following
    nothing = (dot(step, step) == 0)[..., None]
    return xp.where(nothing, here.pull, step)


def _certificate(manifold: Manifold, here: Linearization, terms: int) -> tuple[float, bool]:
    """The error bound, and whether the minimum is known to be global.

    A sum of `terms` numbers in any order is off by at most terms·eps times the sum of their sizes, here
    Σ w ρ ≤ √(Σ w ρ²).
    """
    xp = namespace(here.pull)
    reach = certificate_step(manifold, here.pull)
    certain = here.convexity > 0
    summation = terms * eps(here.pull) * xp.sqrt(2 * here.value)
    measured = norm(here.pull) + here.rounding + summation
    bounds = measured / xp.where(certain, here.convexity, xp.ones_like(here.convexity))
    bound = _total(bounds) if bool(xp.all(certain)) else math.inf
    if not manifold.is_hadamard and bound > reach:
        bound = math.inf
    is_global = manifold.is_hadamard or float(xp.max(here.farthest)) + reach < manifold.max_radius
    return bound, is_global


def _total(values: Array) -> float:
    """Euclidean norm over the copies of a power manifold."""
    xp = namespace(values)
    return float(xp.sqrt(xp.sum(values * values)))
