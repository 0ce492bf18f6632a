"""Laws on rotations and subspaces: symmetric spaces of compact type.

In tangent coordinates X at the footpoint the law has density ∝ e^{k(|X|)}·J(X), k(R) = −R/σ or −R²/2σ², on the X whose
angles θ_1 ≥ … ≥ θ_rank (of rotation, or principal angles) all lie below the cut locus (π on SO(n), π/2 on Grassmann
manifolds). With y over the roots a(θ_i ± θ_j), each m-fold, and aθ_i, each l-fold, J = ∏ sin(y)/y.

>>> import numpy as np
>>> from dpmanifolds import SpecialOrthogonal
>>> from dpmanifolds.intrinsic import RiemannianLaplace
>>> law = RiemannianLaplace(SpecialOrthogonal(3), np.eye(3), sigma=0.2)
>>> law.sample(2, rng=0).shape
(2, 3, 3)
>>> round(law.mean_distance, 6)
0.584594
"""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from dpmanifolds._arrays import log_sinc
from dpmanifolds._validate import checked_order, positive_number
from dpmanifolds.errors import ArgumentError, ScaleOutOfRangeError
from dpmanifolds.intrinsic.law import TangentLaw, identity_of, log_sphere_area
from dpmanifolds.intrinsic.proposals import collect
from dpmanifolds.manifolds import Manifold
from dpmanifolds.noise import uniform_directions
from dpmanifolds.privacy.radial import (
    ExponentialKernel,
    Kernel,
    LogConcaveIntegral,
    QuadraticKernel,
    RadialDensity,
    Root,
)

_SMALLEST_ACCEPTANCE = 2e-4
_PILOT = 1 << 11
_BLOCK = 1 << 21
_ROWS = 1 << 12
_ANGLE_NODES, _ANGLE_WEIGHTS = np.polynomial.legendre.leggauss(64)


class RootSystemLaw(TangentLaw):
    """A law of rank two or more, by rejection from a radius and a uniform direction, or from uniform points.

    *Near.* log(sin√q/√q) = Σ_n log(1 − q/π²n²) is concave in q, so J ≤ (sin κR/κR)^M over the M roots, with κ²R² the
    mean of y² (Jensen); κR < π up to the farthest point. The radius with density ∝ e^k·R^{rank−1}·sin(κR)^M is
    log-concave and drawn exactly; the proposal is accepted with J/(sin κR/κR)^M if its angles lie below the cut locus.
    *Uniform.* Points uniform on the manifold are accepted with e^{k(R)} ≤ 1.

    The one that is accepted more often in 2,048 trial proposals from a fixed seed is taken: the choice, and the refusal
    where both fall below 2e−4, depend on the manifold and σ alone. For rank two the law of the distance is
    a double integral; beyond, normaliser and distribution of the distance are not computed.

    >>> from dpmanifolds import Grassmann
    >>> from dpmanifolds.intrinsic import laplace_law
    >>> law = laplace_law(Grassmann(5, 2), 0.1)
    >>> round(law.distance_moment(1), 6)
    0.561286
    """

    def __init__(self, manifold: Manifold, sigma: float, kernel: Kernel, name: str) -> None:
        super().__init__(manifold, sigma)
        if manifold.root_system is None:
            raise ArgumentError(f"{manifold!r} is neither a rotation group nor a Grassmann manifold.")
        self._kernel, self._roots = kernel, manifold.root_system
        trial = np.random.default_rng(0)
        rates = [float(np.mean(np.exp(-propose(_PILOT, trial)[1]))) for propose in (self._near, self._uniform)]
        self.acceptance = max(rates)
        if self.acceptance < _SMALLEST_ACCEPTANCE:
            raise ScaleOutOfRangeError(
                f"sigma = {self.sigma:g} on {manifold!r}: an exact draw of the Riemannian {name} law would take more "
                f"than {1 / _SMALLEST_ACCEPTANCE:g} proposals. Use a smaller or a larger sigma, or Wrapped{name}, "
                "which is drawn at any scale."
            )
        self._proposals = self._near if rates[0] == self.acceptance else self._uniform

    @cached_property
    def _radius(self) -> RadialDensity:
        roots = self._roots
        return RadialDensity(self._kernel, (Root(roots.count, roots.frequency),), roots.reach, roots.rank - 1)

    def _angles(self, coordinates: np.ndarray) -> np.ndarray:
        """Angles (n, rank), largest first."""
        copies = self._roots.angle_copies
        vectors = self.manifold.from_coordinates(identity_of(self.manifold), coordinates)
        return np.asarray(np.linalg.svd(vectors, compute_uv=False)[:, : copies * self._roots.rank : copies])

    def _near(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, and minus the log of the probability to accept them."""
        radius = self._radius.sampler.sample(count, rng)
        coordinates = radius[:, None] * uniform_directions(count, self.manifold.dim, rng)
        angles = self._angles(coordinates)
        inside = angles[:, 0] < self._roots.limit
        bound = self._roots.count * log_sinc(self._roots.frequency * radius)
        excess = bound - self._roots.log_jacobian(np.where(inside[:, None], angles, 0.0))
        return coordinates, np.where(inside, excess, math.inf)

    def _uniform(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, and minus the log of the probability to accept them."""
        base = identity_of(self.manifold)
        points = self.manifold.random_point(count, rng=rng)
        coordinates = self.manifold.to_coordinates(base, self.manifold.log(base, points))
        return coordinates, -self._kernel.difference(np.linalg.norm(coordinates, axis=1), 0.0)

    def sample_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        def propose(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            coordinates, excess = self._proposals(size, rng)
            return coordinates, rng.standard_exponential(size) >= excess

        return collect(
            count,
            self.manifold.dim,
            propose,
            rng,
            batch=_BLOCK // self.manifold.dim + 1,
            most=64 / _SMALLEST_ACCEPTANCE,
            failure=f"draws on {self.manifold!r} were accepted far less often than predicted.",
        )

    @property
    def log_normalizer(self) -> float:
        return self._log_weight + self._distance.log_total

    def distance_moment(self, order: float) -> float:
        moment = self._integral(checked_order(order), f"the moment of order {order:g} of the distance")
        with np.errstate(over="ignore"):
            return float(np.exp(moment.log_total - self._distance.log_total))

    def distance_cdf(self, radius: ArrayLike) -> Any:
        return self._distance.cdf(radius)

    def distance_quantile(self, probability: ArrayLike) -> Any:
        return self._distance.quantile(probability)

    @cached_property
    def _distance(self) -> LogConcaveIntegral:
        return self._integral(0.0, "the law of the distance")

    @property
    def _log_weight(self) -> float:
        """log of |S^{d−1}|/∫₀^{π/4} cos(2φ)^m (sin φ cos φ)^l dφ: the volume of the orbits of angles (cos φ, sin φ)."""
        m, single = self._roots.pair_multiplicity, self._roots.single_multiplicity
        log_angular = float(special.betaln((m + 1) / 2, (single + 1) / 2)) - (single + 2) * math.log(2)
        return log_sphere_area(self.manifold.dim) - log_angular

    def _integral(self, order: float, what: str) -> LogConcaveIntegral:
        """∫ of the density of the distance times R^order, up to `_log_weight`."""
        if self._roots.rank != 2:
            self._not_available(what)
        log_density = partial(self._log_density, order=order)
        high = min(self._kernel.largest_mode(self.manifold.dim - 1 + order), self._roots.reach)
        peak = optimize.minimize_scalar(
            lambda t: -log_density(np.exp(np.array([t])))[0],
            bounds=(math.log(high) - 7, math.log(high) - 1e-9),
            method="bounded",
        )
        mode = math.exp(peak.x)
        return LogConcaveIntegral(log_density, mode=mode, scale=mode, lower=1e-14 * mode, upper=self._roots.reach)

    def _log_density(self, radius: np.ndarray, order: float) -> np.ndarray:
        return np.asarray(self._kernel.difference(radius, 0.0) + self._log_shell(radius) + order * np.log(radius))

    def _log_shell(self, radius: np.ndarray) -> np.ndarray:
        """log of R^{d−1} ∫ cos(2φ)^m (sin φ cos φ)^l J dφ over the φ in (0, π/4) with R cos φ below the cut locus.

        With θ = R(cos φ, sin φ) the integrand is the product of sin(y)/aR over the roots y.
        """
        flat = radius.ravel()
        parts = [self._log_shell_part(flat[start : start + _ROWS]) for start in range(0, flat.size, _ROWS)]
        return np.concatenate([*parts, np.empty(0)]).reshape(radius.shape)

    def _log_shell_part(self, radius: np.ndarray) -> np.ndarray:
        first = np.arccos(np.minimum(self._roots.limit / radius, 1.0))[:, None]
        width = (math.pi / 4 - first) / 2
        phi = first + width * (_ANGLE_NODES + 1)
        cosine, sine, size = np.cos(phi), np.sin(phi), self._roots.scale * radius[:, None]
        pairs = np.sin(size * (cosine - sine)) * np.sin(size * (cosine + sine)) / (size * size)
        singles = np.sin(size * cosine) * np.sin(size * sine) / (size * size)
        weight = pairs**self._roots.pair_multiplicity * singles**self._roots.single_multiplicity
        return np.asarray((self.manifold.dim - 1) * np.log(radius) + np.log(width[:, 0] * (weight @ _ANGLE_WEIGHTS)))


def compact_laplace(manifold: Manifold, sigma: float) -> RootSystemLaw:
    """Density ∝ e^{−R/σ}."""
    return RootSystemLaw(manifold, sigma, ExponentialKernel(1 / positive_number("sigma", sigma)), "Laplace")


def compact_gaussian(manifold: Manifold, sigma: float) -> RootSystemLaw:
    """Density ∝ e^{−R²/2σ²}."""
    return RootSystemLaw(manifold, sigma, QuadraticKernel(0.0, positive_number("sigma", sigma)), "Gaussian")
