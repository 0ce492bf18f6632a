"""The mean Jacobian of SPD(k) under Gaussian noise, for real and complex variances.

Let J(X) = ∏_{i<j} sinh(y_ij)/y_ij, y_ij = (r_i − r_j)/2, be the Jacobian of exp at a symmetric matrix X with
eigenvalues r (MATH.md section 1), and f(v) = E J(X) for X ~ N(0, v·I) in orthonormal coordinates. With
a_i = i − (k+1)/2, S = Σa_i² = k(k²−1)/12 and N = k(k−1)/2:

1. *f is a mean of exponentials.* J(X) = ∫_{U(k)} exp(tr(A U X U*)) dU for A = diag(a) (Harish-Chandra, Itzykson and
   Zuber, as det[e^{a_j r_i}] = ∏ 2 sinh y_ij). Only B = Re(U*AU) meets the real symmetric X, and
   E e^{tr BX} = e^{v|B|²/2}. So f(v) = E e^{v|B|²/2} with 0 ≤ |B|² ≤ S: log f is convex, 1 ≤ f(v) ≤ e^{vS/2}.
2. *f is a probability.* e^{−|r|²/2v} det[e^{a_j r_i}] is, up to a constant, the Karlin–McGregor density of k Brownian
   motions that start at v·a_i and have not met until time v. Integrating it over r_1 < … < r_k:
   f(v) = C_k v^{−N/2} e^{vS/2} P(v), P(v) = P(no meeting) = Pf[erf(√v (j−i)/2)] (de Bruijn), and f(0) = 1 fixes C_k by
   Mehta's integral.
3. *log P is concave.* P(v) = h(√v·a), h(x) = the probability of no meeting until time 1 from x; h is log-concave on
   the convex cone x_1 < … < x_k (Brascamp–Lieb) and does not fall along the rays t·a, and √v is concave.

The Pfaffian loses its digits for small v. There the same integral is taken in functions e^{−x²/2}·p(x) that span the
same space, with p even and odd polynomials of sinh(√v x/2), orthonormalised by Stieltjes' procedure: no cancellation is
left. As even functions meet only odd ones in de Bruijn's formula, the Pfaffian is a determinant of half the size.

*Over spheres* the mean of the Jacobian is A(R) = E J(R·U) for a uniform direction U. With z = 1/2v and h(R²) = π^{d/2}
R^{d−2} A(R)/Γ(d/2), integrating over spheres gives the Laplace transform (π/z)^{d/2}·f(1/2z) = ∫₀^∞ e^{−zs} h(s) ds.
Its inverse is Bromwich's integral; along the parabola z = z₀(1+iu)² it reads

A(R) = Γ(d/2)/π · R^{2−d} z₀^{1−d/2} ∫_{−∞}^{∞} (1+iu)^{1−d}·e^{z₀R²(1+iu)²}·f(v₀/(1+iu)²) du,  v₀ = 1/2z₀.

Its integrand is analytic and falls like e^{−z₀R²u²}, so that the trapezoidal rule converges geometrically; with v₀
such that the Gaussian law has its radius near R nothing cancels. One contour serves all R within a standard deviation.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from dpmanifolds._arrays import sinhc
from dpmanifolds.errors import NotAvailableError

_PFAFFIAN_FROM = 1.0
_LARGEST_REACH = 45.0
_LIFT = 2.0**490
_BLOCK = 1 << 21

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def _antiderivative_matrix() -> np.ndarray:
    """Takes the values of a polynomial at the nodes to its integrals from −1 to each node."""
    legendre = np.polynomial.legendre
    coefficients = np.linalg.inv(legendre.legvander(_NODES, _NODES.size - 1))
    return np.asarray(legendre.legval(_NODES, legendre.legint(coefficients, lbnd=-1)).T)


_ANTIDERIVATIVE = _antiderivative_matrix()


def squared_half_sum(k: int) -> float:
    """S = k(k²−1)/12, the squared norm of the half sum of the positive roots."""
    return k * (k * k - 1) / 12


def available_below(k: int) -> float:
    """The variance up to which f can be computed in float64: infinite for k ≤ 47; above, f is known from v = 1 on too.

    Below 1 the functions reach out to (k−1)√v/2 + 2√k + 8, where e^{−x²/2} must still be a float.
    """
    room = _LARGEST_REACH - float(_reach(k, np.zeros(())))
    limit = (2 * max(room, 0.0) / (k - 1)) ** 2 if k > 1 else math.inf
    return limit if limit < _PFAFFIAN_FROM else math.inf


def is_available(k: int, v: np.ndarray) -> np.ndarray:
    """Whether f(v) can be computed in float64."""
    return np.asarray((v >= _PFAFFIAN_FROM) | (v < available_below(k)))


def _reach(k: int, root: np.ndarray) -> np.ndarray:
    """Where the last of the k functions has fallen to rounding: its bulk ends at (k−1)√v/2 + 2√k."""
    return np.asarray((k - 1) / 2 * root + 2 * math.sqrt(k) + 8)


def log_no_meeting(k: int, v: np.ndarray) -> np.ndarray:
    """log P(v) for an array v > 0: concave, increasing, 0 at infinity."""
    return np.asarray(_log_p(k, v, np.zeros(v.shape)).real)


def no_meeting_slope(k: int, v: np.ndarray) -> np.ndarray:
    """d log P/dv, by a complex step."""
    step = 1e-30
    return np.asarray(_log_p(k, v, np.full(v.shape, step)).imag / (step * v))


def log_mean_jacobian(k: int, v: np.ndarray, turn: np.ndarray | None = None) -> np.ndarray:
    """log f(v) for an array v > 0, or with `turn` the complex log f(v·e^{i·turn}) (its imaginary part modulo 2π)."""
    if turn is None:
        return np.asarray(log_no_meeting(k, v) + _log_growth(k, v, np.zeros(v.shape)).real)
    return np.asarray(_log_p(k, v, turn) + _log_growth(k, v, turn))


def _log_growth(k: int, size: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """log of C_k v^{−N/2} e^{vS/2}."""
    j = np.arange(1, k + 1)
    mehta = np.sum(special.gammaln(1 + j / 2) - special.gammaln(1.5)) - special.gammaln(k + 1)
    linear = squared_half_sum(k) / 2 * size * np.exp(1j * turn)
    return np.asarray(linear - k * (k - 1) / 4 * (np.log(size) + 1j * turn) - mehta)


def _log_p(k: int, size: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Complex log P(size·e^{i·turn})."""
    result = np.zeros(size.shape, dtype=complex)
    if k == 1 or not size.size:
        return result
    by_pfaffian = np.flatnonzero(size >= _PFAFFIAN_FROM)
    result[by_pfaffian] = _by_pfaffian(k, size[by_pfaffian], turn[by_pfaffian])
    rest = np.flatnonzero(size < _PFAFFIAN_FROM)
    block = _BLOCK // (k * _Grid.covering(k, 1.0).points.size) + 1
    for start in range(0, rest.size, block):
        part = rest[start : start + block]
        mean = _by_functions(k, size[part], turn[part]) - _at_zero(k)
        result[part] = mean - _log_growth(k, size[part], turn[part])
    return result


def _by_pfaffian(k: int, size: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """log P(v) = log det[erf(√v(b_j+b_i)/2) + erf(√v(b_j−b_i)/2)], b the exponents a_i ≥ 0.

    Rows belong to the even functions cosh(b_i r), columns to the odd sinh(b_j r), with a column of ones for odd k.
    """
    half_root = (np.sqrt(size) * np.exp(0.5j * turn) / 2)[:, None, None]
    odd = np.arange(1, k // 2 + 1) - (0.0 if k % 2 else 0.5)
    even = np.append(0.0, odd) if k % 2 else odd
    matrix = special.erf(half_root * (odd + even[:, None])) + special.erf(half_root * (odd - even[:, None]))
    if k % 2:
        matrix = np.concatenate([matrix, np.ones((*matrix.shape[:-1], 1))], axis=-1)
    return _log_determinant(matrix)


def _log_determinant(matrix: np.ndarray) -> np.ndarray:
    sign, log_size = np.linalg.slogdet(matrix)
    return np.asarray(log_size + 1j * np.angle(sign))


class _Grid(NamedTuple):
    """Gauss–Legendre panels on (0, reach)."""

    points: np.ndarray
    half_width: float

    @staticmethod
    def covering(k: int, v: float) -> _Grid:
        reach = float(_reach(k, np.sqrt(v)))
        # the functions oscillate about √(2k)/π times in a unit length
        panels = math.ceil(reach / min(1.8, 8 / math.sqrt(k)))
        half = reach / panels / 2
        return _Grid((half * (2 * np.arange(panels)[:, None] + 1 + _NODES)).ravel(), half)

    @property
    def weights(self) -> np.ndarray:
        return self.half_width * np.tile(_WEIGHTS, self.points.size // _NODES.size)

    def primitive(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Integrals of `values` (..., points, functions) from 0 to each point, and over the whole grid."""
        panels = values.reshape((*values.shape[:-2], -1, _NODES.size, values.shape[-1]))
        inside = self.half_width * (_ANTIDERIVATIVE @ panels)
        whole = self.half_width * (_WEIGHTS @ panels)
        until = np.cumsum(whole, axis=-2)
        return (inside + (until - whole)[..., None, :]).reshape(values.shape), until[..., -1, :]


def _by_functions(k: int, size: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """log f(v) up to its value at 0: de Bruijn's formula in orthonormal functions."""
    grid = _Grid.covering(k, float(np.max(size)))
    root = np.sqrt(size)[:, None]
    seeds, variable = _seeds(k, root, grid.points)
    counts = (k - k // 2, k // 2)
    bases = [_Recurrence.of(seed, variable, grid.weights, count) for seed, count in zip(seeds, counts, strict=True)]
    if np.any(turn):
        seeds, variable = _seeds(k, root * np.exp(0.5j * turn)[:, None], grid.points)
    even, odd = (basis.functions(seed, variable) for basis, seed in zip(bases, seeds, strict=True))
    primitive, total = grid.primitive(even)
    matrix = np.swapaxes(primitive, -1, -2) @ (grid.weights[:, None] * odd)
    if k % 2:
        matrix = np.concatenate([matrix, total[..., None]], axis=-1)
    return _log_determinant(matrix.astype(complex)) + sum(basis.log_norms for basis in bases)


@lru_cache(maxsize=64)
def _at_zero(k: int) -> complex:
    return complex(_by_functions(k, np.zeros(1), np.zeros(1))[0])


def _seeds(k: int, root: np.ndarray, x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The lowest even and odd function, and the variable 4sinh²(√v x/2)/v whose polynomials multiply them.

    The functions carry the weight e^{−x²/2} and the constant 2^490, which keeps the weight above the smallest float.
    """
    half = x * sinhc(root * x / 2)
    cosh = np.cosh(root * x / 2)
    root_of_weight = np.exp(-x * x / 4)
    weight = _LIFT * root_of_weight * root_of_weight
    seeds = [weight * np.ones_like(half), weight * half * cosh] if k % 2 else [weight * cosh, weight * half]
    return seeds, half * half


class _Recurrence(NamedTuple):
    """Orthonormal functions F_{j+1} = ((T − α_j) F_j − β_j F_{j−1})/β_{j+1}, F_0 = seed/β_0, F_{−1} = 0."""

    alphas: list[np.ndarray]
    betas: list[np.ndarray]

    @staticmethod
    def of(seed: np.ndarray, variable: np.ndarray, weights: np.ndarray, count: int) -> _Recurrence:
        """Stieltjes' procedure on the grid."""
        basis = _Recurrence([], [])
        before, current = np.zeros_like(seed), seed
        for step in range(count):
            if step:
                basis.alphas.append(((variable * current * current) @ weights)[:, None])
                raised = (variable - basis.alphas[-1]) * current
                before, current = current, raised - (basis.betas[-1] * before if step > 1 else 0.0)
            basis.betas.append(np.sqrt((current * current) @ weights)[:, None])
            current = current / basis.betas[-1]
        return basis

    def functions(self, seed: np.ndarray, variable: np.ndarray) -> np.ndarray:
        """The functions along a last axis; for a complex seed and variable their continuations."""
        found = [seed / self.betas[0]] if self.betas else []
        for step, alpha in enumerate(self.alphas):
            raised = (variable - alpha) * found[-1] - (self.betas[step] * found[-2] if step else 0.0)
            found.append(raised / self.betas[step + 1])
        return np.stack(found, axis=-1)

    @property
    def log_norms(self) -> np.ndarray:
        """log of the product of the norms of the monic functions, which are ∏β."""
        betas = np.concatenate([self.betas[0] / _LIFT, *self.betas[1:]], axis=1)
        return np.asarray(np.sum(np.cumsum(np.log(betas), axis=1), axis=1))


_STEP, _STEPS = 0.15, 45
_ROUNDS = 12
_CONTOUR_ROWS = 1 << 14
_LARGEST_EXPONENT = 1e8
"""Of e^{vS/2} in f, so that its rounding stays below 1e−8."""


def log_mean_over_sphere(k: int, radius: np.ndarray) -> np.ndarray:
    """log A(R) at each radius > 0, to about 1e−12·(1 + log A)."""
    flat = radius.ravel()
    result = np.empty(flat.size)
    window = np.round(_window_coordinate(k, flat)).astype(np.int64)
    order = np.argsort(window, kind="stable")
    edges = np.flatnonzero(np.diff(window[order])) + 1
    for members in np.split(order, edges):
        if members.size:
            contour = _contour(k, int(window[members[0]]))
            for start in range(0, members.size, _CONTOUR_ROWS):
                part = members[start : start + _CONTOUR_ROWS]
                result[part] = contour.log_mean(k, flat[part])
    return result.reshape(radius.shape)


def _window_coordinate(k: int, radius: np.ndarray) -> np.ndarray:
    """A coordinate in which the radius of the Gaussian law around R has a standard deviation of about ½.

    That deviation is about R/√(2d) for small R and √(R/√S) for large R.
    """
    steepest = math.sqrt(squared_half_sum(k))
    return np.asarray(math.sqrt(k * (k + 1)) / 2 * np.log(radius) + np.sqrt(steepest * radius))


class _Contour(NamedTuple):
    variance: float
    step: float
    points: np.ndarray
    logs: np.ndarray

    def log_mean(self, k: int, radius: np.ndarray) -> np.ndarray:
        dim = k * (k + 1) // 2
        half_square = radius * radius / (2 * self.variance)
        exponents = self.logs + half_square[:, None] * (self.points * self.points)
        top = exponents[:, 0].real
        terms = np.exp(exponents - top[:, None]).real
        total = self.step * (2 * np.sum(terms, axis=1) - terms[:, 0])
        powers = (2 - dim) * np.log(radius) - (1 - dim / 2) * math.log(2 * self.variance)
        return np.asarray(math.lgamma(dim / 2) - math.log(math.pi) + powers + top + np.log(total))


@lru_cache(maxsize=1 << 14)
def _contour(k: int, window: int) -> _Contour:
    """The contour through the saddle point of the middle of a window."""
    radius = _window_middle(k, window)
    variance = _variance_reaching(k, radius)
    step = _STEP * math.sqrt(2 * variance) / radius
    u = step * np.arange(_STEPS)
    points = 1 + 1j * u
    log_f = log_mean_jacobian(k, variance / (1 + u * u), -2 * np.arctan(u))
    return _Contour(variance, step, points, (1 - k * (k + 1) // 2) * np.log(points) + log_f)


def _window_middle(k: int, window: int) -> float:
    """The radius with this coordinate: a sum of an increasing concave function of log R and an exponential one."""
    slope, root = math.sqrt(k * (k + 1)) / 2, math.sqrt(math.sqrt(squared_half_sum(k)))
    found = optimize.brentq(lambda t: slope * t + root * math.exp(t / 2) - window, -1e3, 1e3)
    return math.exp(found)


def _variance_reaching(k: int, radius: float) -> float:
    """About the v with E R² = v²S + v(k + 2v·P'/P) = radius², by fixed-point steps in P'/P."""
    s, linear = squared_half_sum(k), k * (k + 1) / 2
    for _ in range(_ROUNDS):
        variance = 2 * radius * radius / (linear + math.sqrt(linear * linear + 4 * s * radius * radius))
        if variance * s > _LARGEST_EXPONENT or not is_available(k, np.array([variance]))[0]:
            raise NotAvailableError(
                f"the law of the distance on SPD({k}) is not computed where distances of about {radius:g} matter; "
                "estimate what you need from draws (`sample`)."
            )
        linear = k + 2 * variance * float(no_meeting_slope(k, np.array([variance]))[0])
    return variance
