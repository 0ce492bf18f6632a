"""How far a statistic can move when one record is replaced: numbers with their theorems.

Every bound is for replace-one neighbours with the same public n, and for records inside the public domain (clip them
first). Where one record is added or removed n is no public number, and a statistic of n records has no bound. The
proofs are in `docs/proofs/`; the bounds are computed a few units in the last place upwards.

>>> import numpy as np
>>> from dpmanifolds import Ball, Sphere
>>> from dpmanifolds.privacy import sensitivity_of_mean
>>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
>>> sensitivity = sensitivity_of_mean(ball, n=100)
>>> round(float(sensitivity), 8)
0.00828427
>>> sensitivity.theorem, sensitivity.tag
('S1', 'P (certified)')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpmanifolds._validate import as_float, choice, positive_integer, positive_number, shown
from dpmanifolds.domains import Ball, Domain
from dpmanifolds.domains.domain import check_domain
from dpmanifolds.errors import ArgumentError, RadiusTooLargeError
from dpmanifolds.privacy.guarantee import ADJACENCIES
from dpmanifolds.privacy.rounding import up

_PROVEN = "P"
_CERTIFIED = "P (certified)"
_BITS = 49
# what Ball.contains forgives in double precision
_CONTAINS_SLACK = 1 + 2.0**-46


@dataclass(frozen=True)
class Sensitivity:
    """The most that a statistic can move between neighbours, and why.

    >>> float(Sensitivity(0.5, "S4", "P", "clipped gradients"))
    0.5
    """

    value: float
    """The bound, in the units of the manifold's metric."""
    theorem: str
    """Its name in MATH.md and docs/proofs."""
    tag: str
    """"P": proven; "P (certified)": proven, the last step by interval arithmetic (`make certify`)."""
    statement: str
    """The formula, and where it holds."""
    adjacency: str = "replace-one"
    """The neighbours it holds for."""

    @property
    def reason(self) -> str:
        """The theorem, and how sure it is.

        >>> Sensitivity(0.5, "S4", "P", "clipped gradients").reason
        'theorem S4 (proven in docs/proofs): clipped gradients'
        """
        proven = self.tag.replace(_CERTIFIED, f"{_PROVEN}, the last step by interval arithmetic")
        return f"theorem {self.theorem} ({proven.replace(_PROVEN, 'proven in docs/proofs', 1)}): {self.statement}"

    def __post_init__(self) -> None:
        choice("adjacency", self.adjacency, ADJACENCIES)
        for name in ("theorem", "tag", "statement"):
            if not isinstance(getattr(self, name), str):
                raise ArgumentError(f"must be a text; got {shown(getattr(self, name))}.", argument=name)
        object.__setattr__(self, "value", positive_number("value", self.value))

    def __float__(self) -> float:
        return self.value


def sensitivity_of_mean(ball: Ball, n: int, *, solver_tolerance: float = 0.0, rounding: float = 0.0) -> Sensitivity:
    """The largest distance between the Fréchet means of neighbours in a ball (Theorem S1).

    Curvature ≤ κ: Δ = 2·tan(√κ r)/(√κ n) for κ > 0, Δ = 2r/n for κ ≤ 0 (Hadamard manifolds, and flat or negatively
    curved ones with a finite injectivity radius such as the circle and tori, for r below half of it), never more
    than the diameter 2r.

    `solver_tolerance` δ: the mean is known up to a public distance δ; `rounding` e: what is released sits within e of
    what the solver found. Both sides of a pair of neighbours may be off: Δ + 2δ + 2e.

    >>> import numpy as np
    >>> from dpmanifolds import SPD, Ball
    >>> ball = Ball(SPD(3), np.eye(3), radius=1.5)
    >>> round(float(sensitivity_of_mean(ball, 1000)), 9)
    0.003
    """
    root, angle = _scaled_radius(ball)
    value = _mean_bound(ball, root, angle, positive_integer("n", n))
    extra = 2 * _error_bound("solver_tolerance", solver_tolerance) + 2 * _error_bound("rounding", rounding)
    return Sensitivity(up(value + extra, _BITS), "S1", *_mean_statement(root))


def sensitivity_of_mean_at_center(
    ball: Ball, n: int, *, solver_tolerance: float = 0.0, rounding: float = 0.0
) -> Sensitivity:
    """The largest ‖log_m₀(x̄) − log_m₀(x̄')‖ in the tangent space at the public centre m₀ (Theorem S1w).

    The same number as `sensitivity_of_mean`. A solver tolerance δ (a distance on the manifold) costs
    2δ·√κr/sin(√κr) for κ > 0 and 2δ otherwise; `rounding` is measured in the tangent space and costs twice itself.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
    >>> round(float(sensitivity_of_mean_at_center(ball, 100)), 8)
    0.00828427
    """
    root, angle = _scaled_radius(ball)
    value = _mean_bound(ball, root, angle, positive_integer("n", n))
    delta, e = _error_bound("solver_tolerance", solver_tolerance), _error_bound("rounding", rounding)
    if root == 0:
        value = value + 2 * delta + 2 * e
    else:
        value += 2 * delta * angle / math.sin(angle) + 2 * e
    return Sensitivity(up(value, _BITS), "S1w", *_mean_statement(root))


def sensitivity_of_mean_gradient(ball: Ball, n: int) -> Sensitivity:
    """The largest change of ∇F(x) = −(1/n)Σ log_x(x_i) at any x of the ball (Theorem S2).

    κ > 0: L(√κr)/(√κn), L(a) = max_ψ 2(s/sin s)·sin a·sin ψ, cos s = cos²a − sin²a·cos ψ; it fails for x outside the
    ball. κ ≤ 0: 2r/n, on Hadamard manifolds at every x.

    >>> import numpy as np
    >>> from dpmanifolds import Ball, Sphere
    >>> ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), radius=np.pi / 8)
    >>> round(float(sensitivity_of_mean_gradient(ball, 1)), 4)
    0.8062
    """
    root, angle = _scaled_radius(ball)
    n = positive_integer("n", n)
    if root == 0:
        value = ball.diameter * _CONTAINS_SLACK / n
        return Sensitivity(up(value, _BITS), "S2", _PROVEN, "2r/n where the curvature is at most 0, x in the ball")
    value = max(ball.diameter * _CONTAINS_SLACK, _log_image_diameter(angle) / root) / n
    return Sensitivity(up(value, _BITS), "S2", _PROVEN, "L(√κr)/(√κn) where the curvature is at most κ, x in the ball")


def sensitivity_of_flat_mean(
    domain: Domain, n: int, *, solver_tolerance: float = 0.0, rounding: float = 0.0
) -> Sensitivity:
    """The largest move of the mean over any domain of a flat space: diam/n (Theorem S1d).

    For spaces that a chart maps isometrically onto R^d. The domain need be neither convex nor a ball.

    >>> from dpmanifolds import Ball, Euclidean
    >>> round(float(sensitivity_of_flat_mean(Ball(Euclidean(2), [0.0, 0.0], 5.0), 100)), 9)
    0.1
    """
    diameter = _diameter(domain)
    if not domain.manifold.is_flat:
        raise ArgumentError(
            f"a mean moves by at most diam/n in a flat space without closed geodesics; {domain.manifold!r} is not one. "
            "Use a Ball and sensitivity_of_mean."
        )
    extra = 2 * _error_bound("solver_tolerance", solver_tolerance) + 2 * _error_bound("rounding", rounding)
    value = diameter / positive_integer("n", n) + extra
    return Sensitivity(up(value, _BITS), "S1d", _PROVEN, "diam/n in a flat space isometric to R^d")


def sensitivity_of_variance(ball: Ball, n: int, *, solver_tolerance: float = 0.0, rounding: float = 0.0) -> Sensitivity:
    """The largest change of the Fréchet variance min_x (1/n)Σρ²(x, x_i), n ≥ 2 (Theorem S1v).

    Δ = (4r²/n)·(n−1)H/((n−1)H + 1), where H = 1 if the curvature is nowhere negative and H = a·coth(a),
    a = 2r√|κ₋|, if it is at least κ₋ < 0; below the plain 4r²/n, and attained in flat spaces: 4r²(n−1)/n².

    A solver that stops within δ of the mean overestimates the variance by at most Hδ², and never underestimates it:
    Δ + Hδ². `rounding` e bounds the error of one computed variance: Δ + 2e.

    >>> from dpmanifolds import Ball, Euclidean
    >>> round(float(sensitivity_of_variance(Ball(Euclidean(2), [0.0, 0.0], 1.0), 10)), 9)
    0.36
    """
    _scaled_radius(ball)
    n = positive_integer("n", n)
    if n == 1:
        raise ArgumentError(
            "must be at least 2: the variance of one record is 0, and there is nothing to release.", argument="n"
        )
    delta, e = _error_bound("solver_tolerance", solver_tolerance), _error_bound("rounding", rounding)
    diameter = ball.diameter * _CONTAINS_SLACK
    steepness = _largest_hessian(ball, diameter)
    share = (n - 1) * steepness / ((n - 1) * steepness + 1)
    value = diameter * diameter / n * share + steepness * delta * delta + 2 * e
    statement = "(4r²/n)·(n−1)H/((n−1)H+1), H = 1 or 2r√|κ₋|·coth(2r√|κ₋|), where r < ½·min(inj, π/√κ)"
    return Sensitivity(up(value, _BITS), "S1v", _PROVEN, statement)


def _scaled_radius(ball: Ball) -> tuple[float, float]:
    """√κ (0 for curvature ≤ 0) and √κr, a hair upwards: a radius that is within rounding of π/2 is refused."""
    if not isinstance(ball, Ball):
        raise ArgumentError(f"ball must be a Ball, the public promise about where records live; got {shown(ball)}.")
    root = math.sqrt(max(ball.manifold.curvature_bounds[1], 0.0))
    angle = root * ball.radius * _CONTAINS_SLACK
    if angle >= math.pi / 2 or not ball.has_unique_mean:
        raise RadiusTooLargeError(
            f"the Fréchet mean is unique for radii below {ball.manifold.max_radius:.17g} on {ball.manifold!r}; got "
            f"{ball.radius:.17g}. Use a smaller ball."
        )
    return root, angle


def _mean_bound(ball: Ball, root: float, angle: float, n: int) -> float:
    """S1: 2·tan(√κr)/(√κn), or 2r/n, at most 2r; the first is never below the second, whatever underflows."""
    diameter = ball.diameter * _CONTAINS_SLACK
    return min(diameter / n if root == 0 else max(diameter / n, 2 * math.tan(angle) / root / n), diameter)


def _mean_statement(root: float) -> tuple[str, str]:
    """The tag of S1, and where it holds."""
    if root == 0:
        return _PROVEN, "2r/n where the curvature is at most 0 and r < inj/2"
    return _CERTIFIED, "2·tan(√κr)/(√κn) where the curvature is at most κ and r < ½·min(inj, π/√κ)"


def _log_image_diameter(angle: float) -> float:
    """L(a): the largest diameter of log_x(ball of radius a) over x in the ball, on the unit sphere (Theorem S2).

    L = 4·atan(T)·√(1 − T²/tan²a) at the only T > 0 with T² + T·atan(T)·(1 + T²) = tan²a: the pair of points that is
    symmetric about the axis, x on the boundary. With T = x·tan(a) nothing overflows; an error of T enters squared.
    For small a, L ≤ 2·sin(a)·2a/sin(2a) ≤ 2a(1 + a²).
    """
    tangent = math.tan(angle)
    if tangent < 1e-6:
        return 2 * angle * (1 + angle * angle)
    low, high = 0.0, 1.0
    while True:
        x = (low + high) / 2
        if not low < x < high:
            break
        square = x * tangent * x * tangent
        if x * x + x * math.atan(x * tangent) / tangent * (1 + square) > 1:
            high = x
        else:
            low = x
    return 4 * math.atan(x * tangent) * math.sqrt((1 - x) * (1 + x))


def _largest_hessian(ball: Ball, reach: float) -> float:
    """An upper bound of the Hessian of ½ρ² at distances up to `reach`: s·coth(s), s = reach·√|κ₋|, or 1."""
    lower = ball.manifold.curvature_bounds[0]
    if lower >= 0:
        return 1.0
    scaled = reach * math.sqrt(-lower)
    return scaled / math.tanh(scaled) if scaled > 1e-9 else 1 + scaled


def _diameter(domain: Domain) -> float:
    check_domain(domain)
    slack = _CONTAINS_SLACK if isinstance(domain, Ball) else 1.0
    return positive_number("domain.diameter", domain.diameter) * slack


def _error_bound(name: str, value: Any) -> float:
    """`value` as a finite float of at least 0, or an error that names the argument."""
    number = as_float(name, value, "of at least 0")
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(f"must be finite and at least 0; got {number}.", argument=name)
    return number
