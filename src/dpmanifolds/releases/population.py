"""From a released mean and spread to what they say about the population: the arithmetic, all of it post-processing.

A release (`releases.spread`) holds, for records seen from a public point p as v = log_p x, their noisy mean m̂ and their
noisy centred second moment Ŝ. With m the population's Fréchet mean, E v = H·log_p m to first order, H the average
Hessian of half the squared distance; so (the delta method)

    log_p m − H⁻¹m̂  ≈  N(0, H⁻¹(Σ/n + σ²I)H⁻¹),

Σ the covariance of v, σ² the known variance of the noise on m̂. Every step between p and m that is left out is of third
order in their distance. H is that of points which have the released second moment (`average_hessian_at`), Σ is what
noise left of Ŝ (`fit_covariance`), and regions {u : uᵀWu ≤ t} are made for Σ being uncertain (`region_law`). Where only
the trace of Ŝ was released, all of it is put into the worst direction. Functions broadcast over leading axes, so that
coverage can be studied for many data sets at once (`benchmarks/coverage.py`). Derivations: docs/proofs/regions.md.

>>> import numpy as np
>>> part = mean_part(np.diag([0.04, 0.01]), n=200, noise=SpreadNoise("covariance", 0.005, 0.001, "gaussian", 6))
>>> law = region_law([part])
>>> np.round(np.sqrt(law.threshold(0.95) / np.linalg.eigvalsh(law.weight)), 3).tolist()  # semi-axes
[0.036, 0.022]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from scipy import special

from dpmanifolds._arrays import Array
from dpmanifolds._validate import choice, positive_integer, positive_number
from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds import Manifold

KINDS, LAWS = ("covariance", "variance"), ("gaussian", "laplace", "wishart")
_RIDGE = 2.0
"""How many deviations of a noisy entry, times √d, are added to all variances in the shape of a region: small ones that
noise hides then decide nothing. In simulations over spectra, d, n and noise, 1 covers up to 2 % too much, 2 up to 1 %
too little."""
_LEAST_HESSIAN, _MOST_HESSIAN = 0.2, 20.0
_DRAWS = 40_000
_NODES, _NEWTON_STEPS = 21, 8
_LEAST_DEGREES = 1.0
_MOST_SCALE = 0.5
"""Beyond it a factor that may be anything is no longer made up for: noise drowns the spread."""


@dataclass(frozen=True)
class SpreadNoise:
    """What is known of the noise on a mean and a spread that were released together: a part of a `Release`."""

    kind: str
    """"covariance": the centred second moment was released; "variance": its trace alone."""
    mean: float
    """The standard deviation of the noise in each coordinate of the mean."""
    moment: float
    """That of an entry off the diagonal of the centred second moment (√2 times as much on it), or of its trace."""
    law: str
    """"gaussian", "laplace" (ℓ2, in `numbers` dimensions) or "wishart" (the difference of two)."""
    numbers: int
    """How many numbers got noise together."""

    def __post_init__(self) -> None:
        choice("kind", self.kind, KINDS)
        choice("law", self.law, LAWS)
        positive_number("mean", self.mean)
        positive_number("moment", self.moment)
        positive_integer("numbers", self.numbers)

    def mixture(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Variances of which the noise in one coordinate of the mean is a Gaussian mixture, over their mean.

        ℓ2-Laplace noise in R^D is N(0, w) with w ∝ χ² of D + 1 degrees; a column of a difference of Wishart matrices of
        d + 1 columns, off the diagonal, has χ² of 2(d + 2) degrees.
        """
        if self.law == "gaussian":
            return np.ones(count)
        degrees = self._degrees(dim)
        return np.asarray(rng.chisquare(degrees, count) / degrees)

    def mixture_at(self, dim: int, places: np.ndarray) -> np.ndarray:
        """The quantiles of these variances at Φ(place)."""
        if self.law == "gaussian":
            return np.ones(len(places))
        half = self._degrees(dim) / 2
        low, high = special.gammaincinv(half, special.ndtr(places)), special.gammainccinv(half, special.ndtr(-places))
        return np.asarray(np.where(places < 0, low, high) / half)

    def _degrees(self, dim: int) -> int:
        return self.numbers + 1 if self.law == "laplace" else 2 * (dim + 2)


def center_moment(moment: np.ndarray, mean: np.ndarray, deviation: np.ndarray | float, n: int) -> np.ndarray:
    """(M̂ − ŷŷᵀ + s²I)·n/(n − 1): an unbiased estimate of the covariance from noisy M = (1/n)Σyyᵀ and ŷ = ȳ + N(0, s²I).

    >>> center_moment(np.array([[2.0]]), np.array([1.0]), 0.0, 2).tolist()
    [[2.0]]
    """
    dim = mean.shape[-1]
    own = np.asarray(deviation)[..., None, None] ** 2 * np.eye(dim)
    return np.asarray((moment - mean[..., :, None] * mean[..., None, :] + own) * (n / (n - 1)))


def fit_covariance(noisy: np.ndarray, deviation: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """The covariance that a noisy one (..., d, d) speaks for, and the deviation of an entry that is left.

    What differs from a multiple of the identity is taken for a signal of variance q in each entry, estimated from all
    of them, beside noise s²: a share q/(q + s²) of it is kept, which leaves an error of s²q/(q + s²). Then eigenvalues
    are moved to the nearest ones that are not negative and have the same sum.
    """
    dim, variance = noisy.shape[-1], np.asarray(deviation, dtype=np.float64) ** 2
    middle = np.trace(noisy, axis1=-2, axis2=-1)[..., None, None] / dim * np.eye(dim)
    rest = noisy - middle
    signal = np.maximum(np.sum(rest * rest, axis=(-2, -1)) / max(dim * (dim + 1) - 2, 1) - variance, 0.0)
    kept = signal / np.maximum(signal + variance, 1e-300)
    values, frame = np.linalg.eigh(middle + kept[..., None, None] * rest)
    values = _fit_totals(values)
    fitted = (frame * values[..., None, :]) @ np.swapaxes(frame, -1, -2)
    return np.asarray(fitted), np.sqrt(kept * variance)


def _fit_totals(values: np.ndarray) -> np.ndarray:
    """Of each row the nearest numbers that are not negative and have its sum; zeros where that is negative."""
    total = np.maximum(np.sum(values, axis=-1, keepdims=True), 0.0)
    falling = np.sort(values, axis=-1)[..., ::-1]
    shifts = (np.cumsum(falling, axis=-1) - total) / np.arange(1, values.shape[-1] + 1)
    count = np.sum(falling > shifts, axis=-1, keepdims=True)
    shift = np.take_along_axis(shifts, np.maximum(count - 1, 0), axis=-1)
    return np.asarray(np.where((count > 0) & (total > 0), np.maximum(values - shift, 0.0), 0.0))


def average_hessian_at(manifold: Manifold, base: Array, covariance: np.ndarray, reach: float) -> np.ndarray:
    """H (..., d, d): the average Hessian of half the squared distance at a public point, for such records.

    The average over the 2d points ±√d·√λ_j·e_j, which have this `covariance` as second moment: the Hessian is
    1 − (1/3)R(·, v)v to second order in v, and its average a linear function of it. Points lie within `reach`. For one
    base, or a batch of them. Where there is no Hessian in floating point, it is 1. At one base of a product it has a
    block for each factor.
    """
    if manifold.is_product and manifold.batch_shape(base) == ():
        return _blocks_of_factors(manifold.factors_of(base), covariance, reach)
    values, frame = np.linalg.eigh(covariance)
    dim = values.shape[-1]
    lengths = np.minimum(np.sqrt(dim * np.maximum(values, 0.0)), reach)
    ways = np.moveaxis(frame * lengths[..., None, :], -1, 0)
    eye = np.broadcast_to(np.eye(dim), covariance.shape)
    try:
        with np.errstate(all="ignore"):
            points = manifold.exp_coordinates(base, np.concatenate([ways, -ways]))
            here = manifold.linearize(base, points, np.full(2 * dim, 0.5 / dim), True)
            columns = [here.apply(np.ascontiguousarray(eye[..., number])) for number in range(dim)]
        found = np.stack(columns, axis=-1)
        found = (found + np.swapaxes(found, -1, -2)) / 2
        broken = ~np.all(np.isfinite(found), axis=(-2, -1))
        bends, turned = np.linalg.eigh(np.where(broken[..., None, None], eye, found))
    except (np.linalg.LinAlgError, NotOnManifoldError):
        return np.array(eye)
    bends = np.clip(bends, _LEAST_HESSIAN, _MOST_HESSIAN)
    return np.asarray((turned * bends[..., None, :]) @ np.swapaxes(turned, -1, -2))


def _blocks_of_factors(factors: Sequence[tuple[Manifold, Array]], covariance: np.ndarray, reach: float) -> np.ndarray:
    """Distances of a product add up in squares: what one factor sees of records is its own block of the covariance."""
    found, first = np.array(np.broadcast_to(np.eye(covariance.shape[-1]), covariance.shape)), 0
    for factor, point in factors:
        own = slice(first, first + factor.dim)
        if not factor.is_flat:
            found[..., own, own] = average_hessian_at(factor, point, covariance[..., own, own], reach)
        first += factor.dim
    return found


class MeanPart(NamedTuple):
    """What one released mean adds to the uncertainty of an answer, in the coordinates of the answer; (..., d, d)."""

    sampling: np.ndarray
    """J(Σ/n)Jᵀ, J the derivative of the answer by this mean."""
    noise: np.ndarray
    """σ²JJᵀ."""
    entry: np.ndarray
    """The deviation of an entry of `sampling` from noise on the spread, (...,)."""
    scale: np.ndarray
    """The deviation of a common factor of `sampling` and `noise`, over their mean, from noise on the trace, (...,)."""
    n: int
    facts: SpreadNoise
    seen: np.ndarray
    """`sampling` before the noise was taken out of its shape."""
    doubt: np.ndarray
    """The deviation of an entry of `seen` from noise, (...,)."""


def mean_part(
    noisy: np.ndarray,
    *,
    n: int,
    noise: SpreadNoise,
    derivative: np.ndarray | None = None,
    deviations: tuple[np.ndarray, np.ndarray] | None = None,
) -> MeanPart:
    """The part of a mean whose noisy covariance (..., d, d), or its trace (..., 1, 1), was released.

    `derivative` is J (..., d, d), the identity if left out. `deviations` of many data sets, (...,) each, take the place
    of the noise's own `mean` and `moment`.
    """
    jacobian = np.eye(noisy.shape[-1]) if derivative is None else derivative
    dim = jacobian.shape[-1]
    mean, moment = (np.asarray(each, dtype=np.float64) for each in deviations or (noise.mean, noise.moment))
    if noise.kind == "covariance":
        fitted, left = fit_covariance(noisy, moment)
        # of a d-th of the trace
        even = moment * math.sqrt(2 / dim)
    else:
        fitted, left, even = _worst_shape(noisy, dim), np.zeros(noisy.shape[:-2]), moment / dim
    turned = np.swapaxes(jacobian, -1, -2)
    sampling = jacobian @ fitted @ turned / n
    known = mean[..., None, None] ** 2 * (jacobian @ turned)
    size = _trace(jacobian @ turned) / dim
    # where noise drowns the trace, one deviation more of it stands for what was cut at 0
    off = even * size / n
    scale = off / np.maximum(_trace(sampling + known) / dim + off, 1e-300)
    seen = jacobian @ noisy @ turned / n if noise.kind == "covariance" else sampling
    return MeanPart(sampling, known, size * left / n, scale, n, noise, seen, size * moment / n)


def _worst_shape(noisy: np.ndarray, dim: int) -> np.ndarray:
    """All of a trace in one direction: the first, as a ball does not care which."""
    first = np.zeros((dim, dim))
    first[0, 0] = 1.0
    return np.asarray(np.maximum(noisy[..., :1, :1], 0.0) * first)


class RegionLaw(NamedTuple):
    """Regions {u : uᵀWu ≤ t} around an answer that errs by N(0, C), where C was estimated; (..., d, d)."""

    covariance: np.ndarray
    """C."""
    weight: np.ndarray
    """W."""
    mean: np.ndarray
    """E uᵀWu = tr(WC), (...,)."""
    degrees: np.ndarray
    """Those of the χ² that uᵀWu is a multiple of in mean and variance, (...,)."""
    known: np.ndarray
    """How many degrees of freedom C is known with, (...,)."""
    scale: np.ndarray
    """The variance of a common factor of C, over its square, (...,)."""
    parts: tuple[MeanPart, ...]

    def threshold(self, level: float) -> np.ndarray:
        """t: P(uᵀWu ≤ t) ≈ level, W and t computed from the same estimate of C.

        Where C has the law of a Wishart matrix of ν degrees, and W is its inverse, this is the quantile of Hotelling's
        T². A common factor of variance 2/ν multiplies it by the ratio of the quantile of F, of ν degrees, to that of
        χ²; noise that is not Gaussian by the ratio of its quantile to the Gaussian's.
        """
        rest = np.maximum(self.known - self.degrees + 1, _LEAST_DEGREES)
        quantile = special.fdtri(self.degrees, np.minimum(rest, 1e9), level)
        gaussian = self.mean * np.maximum(self.known / rest, 1.0) * quantile * self._taken_off(quantile)
        factor = special.fdtri(self.degrees, 2 / np.clip(self.scale, 2e-9, _MOST_SCALE), level)
        factor = factor * self.degrees / special.chdtri(self.degrees, 1 - level)
        return np.asarray(gaussian * factor * self._tail(level))

    def _taken_off(self, quantile: np.ndarray) -> np.ndarray | float:
        """Where a trace alone was released: the larger the noise in a mean is, the more its square takes off the trace.

        By |e|²/n − E|e|²/n, hence at the edge of the region by (quantile − 1)/n of the noise's share of C.
        """
        factor: np.ndarray | float = 1.0
        for part in self.parts:
            if part.facts.kind == "variance":
                share = _trace(self.weight @ part.noise) / np.maximum(self.mean, 1e-300)
                factor = factor + np.maximum(quantile - 1, 0.0) * share / part.n
        return factor

    def _tail(self, level: float) -> np.ndarray | float:
        """The quantile of uᵀWu for noise of the true law over that for Gaussian noise, by quadrature.

        Given the variances that the noise is a mixture of, uᵀWu is taken for the multiple of χ² with its mean and
        variance; what is averaged over them is the probability to lie beyond t, and Newton's steps find t.
        """
        if all(part.facts.law == "gaussian" for part in self.parts):
            return 1.0
        dim = self.covariance.shape[-1]
        noises = [self.weight @ part.noise for part in self.parts]
        terms = [self.weight @ self.covariance - np.sum(noises, axis=0), *noises]
        nodes, shares = _mixture_nodes(tuple(part.facts for part in self.parts), dim)
        mean = np.stack([_trace(each) for each in terms], axis=-1) @ nodes.T
        products = np.stack([np.stack([_trace(a @ b) for a in terms], axis=-1) for b in terms], axis=-1)
        square = np.einsum("ki,...ij,kj->...k", nodes, products, nodes)
        half, scale = mean * mean / (2 * square), 2 * square / mean
        gaussian = self.mean * special.chdtri(self.degrees, 1 - level) / self.degrees
        found = gaussian
        for _ in range(_NEWTON_STEPS):
            places = found[..., None] / scale
            beyond = special.gammaincc(half, places) @ shares
            density = np.exp(special.xlogy(half - 1, places) - places - special.gammaln(half)) / scale @ shares
            step = beyond * np.log(beyond / (1 - level)) / np.maximum(density, 1e-300)
            found = np.clip(found + step, found / 2, found * 2)
        return np.asarray(found / gaussian)

    def draw_errors(self, count: int = _DRAWS) -> np.ndarray:
        """Errors u (count, d) of one answer as if C were known, by a fixed seed."""
        normal, mixed = _standard_draws(self.covariance.shape[-1], count, tuple(part.facts for part in self.parts))
        sampling = np.sum([part.sampling for part in self.parts], axis=0)
        drawn = normal[0] @ _root(sampling)
        for number, part in enumerate(self.parts):
            drawn = drawn + np.sqrt(mixed[number])[:, None] * (normal[1 + number] @ _root(part.noise))
        return np.asarray(drawn)


def region_law(parts: Sequence[MeanPart]) -> RegionLaw:
    """The law of regions for the sum of independent parts.

    W = (C + ρI)⁻¹, ρ of the size of what noise on the spread does to eigenvalues of C, so that those below it, which
    are not known, do not decide. W and C err together: to second order E uᵀŴu exceeds tr(WC) by E tr(WEWEWC), E the
    error of C, which for noise of deviation s in each entry is s²(tr W·tr W²C + tr W³C), and for a sample covariance P
    of n Gaussian records (tr WP·tr WPWC + tr WPWPWC)/(n − 1). A Wishart matrix of ν degrees with W = C⁻¹ exceeds by
    d(d + 1)/ν: that is the ν which is taken, with the degrees of uᵀWu for d.
    """
    dim = parts[0].sampling.shape[-1]
    covariance = np.sum([part.sampling + part.noise for part in parts], axis=0)
    covariance = (covariance + np.swapaxes(covariance, -1, -2)) / 2
    entry = np.sum([part.entry**2 for part in parts], axis=0)
    ridge = _RIDGE * np.sqrt(dim * entry)
    tiny = 1e-300 + 1e-12 * np.trace(covariance, axis1=-2, axis2=-1) / dim
    balls = any(part.facts.kind == "variance" for part in parts)
    even = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / dim * np.eye(dim)
    weight = np.linalg.inv((even if balls else covariance) + (ridge + tiny)[..., None, None] * np.eye(dim))
    seen = weight @ covariance
    mean, square = _trace(seen), _trace(seen @ seen)
    excess = entry * (_trace(weight) * _trace(weight @ seen) + _trace(weight @ weight @ seen))
    scale = np.zeros_like(mean)
    for part in parts:
        own = weight @ part.sampling
        excess = excess + (_trace(own) * _trace(own @ seen) + _trace(own @ own @ seen)) / (part.n - 1)
        share = _trace(weight @ (part.sampling + part.noise)) / np.maximum(mean, 1e-300)
        scale = scale + (share * part.scale) ** 2
    degrees = mean * mean / np.maximum(square, 1e-300)
    known = (degrees + 1) * mean / np.maximum(excess, 1e-300)
    return RegionLaw(covariance, weight, mean, degrees, known, scale, tuple(parts))


def _trace(matrices: np.ndarray) -> np.ndarray:
    return np.asarray(np.trace(matrices, axis1=-2, axis2=-1))


def _root(matrix: np.ndarray) -> np.ndarray:
    values, frame = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((frame * np.sqrt(np.maximum(values, 0.0))) @ frame.T)


@lru_cache(maxsize=8)
def _standard_draws(dim: int, count: int, facts: tuple[SpreadNoise, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((1 + len(facts), count, dim))
    return normal, [noise.mixture(dim, count, rng) for noise in facts]


@lru_cache(maxsize=8)
def _mixture_nodes(facts: tuple[SpreadNoise, ...], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (points, 1 + parts), 1 for what is no noise, and their probabilities: Gauss and Hermite, part by part."""
    places, shares = np.polynomial.hermite_e.hermegauss(_NODES)
    columns = [noise.mixture_at(dim, places) for noise in facts]
    nodes = np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, len(facts))
    weights = reduce(np.multiply.outer, [shares / np.sum(shares)] * len(facts)).reshape(-1)
    return np.concatenate([np.ones((len(nodes), 1)), nodes], axis=1), np.asarray(weights)
