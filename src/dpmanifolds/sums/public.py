"""What a public sample knows about private records: where they are, which directions matter, how much noise to bear.

>>> import numpy as np
>>> rows = np.random.default_rng(0).normal(size=(40, 5)) * [3.0, 1.0, 0.3, 0.1, 0.1]
>>> fit = fit_sample(rows, 200, noise=lambda count: (2 / 200) ** 2)
>>> fit.lengths.size, bool(fit.predicted < fit.of_center)
(5, True)

Records have coordinates c at the centre of a public sample of m, with a covariance Σ = U·diag(λ)·Uᵀ. Each of n private
ones adds z, where U·diag(a)·z is the point of the ellipsoid E = {U·diag(a)·w : |w| ≤ 1} that is nearest to c; the mean
of z is released with noise of variance ν in each coordinate; and U·diag(a)·(released − mean of the sample's own z) is
the guess of the difference between the two means. Means that are clipped alike hardly differ by what clipping does.
With τ = 1/n + 1/m the mean square error of the guess is (docs/proofs/sums.md, section 8)

    τ·E dist²(c, E) + ν·Σa²,

and the axes that make it least are a_i² = (t√λ_i − t²ν/τ)₊ with Σ(√λ_i/t − ν/τ)₊ = 1: directions whose signal the
noise would drown have none and stay at the public centre. So an ellipsoid that is small enough needs no other
shrinkage. Where ν is small, a_i² = √λ_i·Σ√λ_j.

Σ is (1 − w)·(covariance of the sample) + w·T, T isotropic, or what the manifold says about neighbouring coordinates.
T, w and a common factor of all axes are those for which cross-validation in the sample predicts the least error.
Everything is made of the sample, n and ν; the records are never compared with the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpmanifolds.domains.axes import nearest_in_ellipsoid
from dpmanifolds.errors import ArgumentError

Noise = Callable[[int], float]
"""The variance of the noise in each coordinate of the mean of vectors of length at most 1, by their dimension."""

LEAST_RECORDS = 3
"""Of a sample: fewer have no covariance to be left out of."""

MOST_DIRECTIONS = 2048
"""Beyond it directions in which the sample does not vary stay at the centre: a basis of all would not fit memory."""

_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_FACTORS = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)
_MOST_FOLDS = 10
_UNIT = 2.0**-52
_KEPT_TRACE = 0.99
_SHORTEST = 1e-6  # of the longest axis
# how many times wider than the sample says the difference may be, and what log-likelihood must be gained to believe it
_WIDER, _CLEARLY = tuple(2.0**power for power in range(1, 25)), 4.0


@dataclass(frozen=True)
class SampleFit:
    """An ellipsoid for records like those of a public sample, and how to read the noisy mean of what they add."""

    basis: np.ndarray
    """U (dim, k): the directions that are asked for; all others stay at the centre."""
    lengths: np.ndarray
    """a: semi-axes in these directions."""
    own_mean: np.ndarray
    """The mean of the sample's own z."""
    noise: float
    """ν."""
    drowned: float
    """t²ν/τ: the squared semi-axis that the noise takes off each direction."""
    predicted: float
    """The root mean square error that cross-validation predicts, if records are like those of the sample."""
    of_center: float
    """That of the sample's centre alone."""
    weight: float
    """w: what of the covariance is structure rather than seen."""
    structure: str
    """"isotropic" or "neighbours"."""

    @property
    def noise_error(self) -> float:
        """The root mean square of what the noise alone moves the guess by."""
        return math.sqrt(self.noise) * float(np.linalg.norm(self.lengths))

    def guess(self, released: np.ndarray) -> np.ndarray:
        """Coordinates (dim,) of the mean, from the noisy mean of z (k,): post-processing.

        diag(a)·(released − own mean). Where that is far longer than records like those of the sample make it, the
        sample is off by a factor f in variance, found by likelihood, and the best guess is f·a(a² + b)/(fa² + b) times,
        b = t²ν/τ: what clipping takes off a signal is given back.
        """
        seen = released - self.own_mean
        squared, factor = self.lengths**2, self._width(seen)
        gains = self.lengths * factor * (squared + self.drowned) / (factor * squared + self.drowned)
        return np.asarray(self.basis @ (gains * seen))

    def _width(self, seen: np.ndarray) -> float:
        """f under N(0, ν·(1 + f·a²/b)); 1 unless another is clearly more likely."""
        ratio = self.lengths**2 / self.drowned

        def log_likelihood(factor: float) -> float:
            variance = self.noise * (1 + factor * ratio)
            return -0.5 * float(np.sum(np.log(variance) + seen**2 / variance))

        best = max(_WIDER, key=log_likelihood)
        return best if log_likelihood(best) > log_likelihood(1.0) + _CLEARLY else 1.0


@dataclass(frozen=True)
class PublicPart:
    """What a public sample contributed to a release: its field `public`.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> points = np.random.default_rng(0).normal(size=(500, 3)) * [2.0, 0.5, 0.1]
    >>> ball = dpm.Ball(dpm.Euclidean(3), np.zeros(3), radius=10.0)
    >>> release = dpm.private_mean(points[100:], ball, dpm.GaussianDP(1.0), public_sample=points[:100], rng=0)
    >>> release.public.records, release.public.axes, release.public.predicted < release.public.of_center
    (100, 3, True)
    """

    records: int
    """Of the sample."""
    axes: int
    """In how many directions the private records were asked; in all others the value is the sample's."""
    dim: int
    predicted: float
    """The root mean square error of the release, clipping and noise, if the records are like those of the sample."""
    of_center: float
    """That of the sample's mean alone."""
    noise: float
    """What the noise alone adds to the error."""
    structure: str
    weight: float
    """How much of the covariance is this structure rather than seen."""

    def __str__(self) -> str:
        return (
            f"A public sample of {self.records} records gave the centre, {self.axes} axes in {self.dim} dimensions and "
            f"what to expect: if the records are like it, an error of {self.predicted:.4g} (root mean square; "
            f"{self.noise:.4g} by noise alone), where the mean of the sample alone has {self.of_center:.4g}. If they "
            "are not, the promise of privacy holds and these figures do not."
        )


@dataclass(frozen=True)
class Spectrum:
    """A covariance U·diag(values)·Uᵀ + bulk·(I − UUᵀ)."""

    values: np.ndarray
    basis: np.ndarray
    """U (dim, k), orthonormal columns."""
    bulk: float
    rest: int
    """In how many directions the bulk counts."""


@dataclass(frozen=True)
class _Axes:
    """Semi-axes of a body in the directions of a spectrum, the bulk's last."""

    lengths: np.ndarray
    noise: float
    drowned: float


@dataclass(frozen=True)
class _Structure:
    """A covariance up to scale, with trace 1: leading directions and an isotropic rest."""

    basis: np.ndarray
    values: np.ndarray
    rest: float


def fit_sample(
    rows: np.ndarray, n: int, noise: Noise, structure: np.ndarray | None = None, *, longest: float = math.inf
) -> SampleFit:
    """The fit for n private records, from coordinates (m, dim) of a public sample at its own centre.

    `structure`: a covariance (dim, dim), up to scale, that may be true for reasons of geometry. No axis is longer than
    `longest`.
    """
    count, dim = rows.shape
    if count < LEAST_RECORDS:
        raise ArgumentError(
            f"needs at least {LEAST_RECORDS} public records; got {count}. Use a ball instead.",
            argument="public_sample",
        )
    spread = _unbiased(rows)
    if not float(np.sum(spread**2)) > 0:
        raise ArgumentError("does not vary: all its records are the same point.", argument="public_sample")
    tau = 1 / n + 1 / count
    kinds = {"isotropic": _Structure(np.zeros((dim, 0)), np.zeros(0), 1 / dim)}
    if structure is not None:
        kinds["neighbours"] = _leading(structure)
    found = [
        (risk, name, weight, factor)
        for name, kind in kinds.items()
        for risk, weight, factor in _risks(rows, kind, tau, noise)
    ]
    risk, name, weight, factor = min(found)
    spectrum = next(_spectra(spread, kinds[name], (weight,)))
    axes = axes_for_spectrum(spectrum, tau, noise)
    basis, lengths = _spelled_out(spectrum, np.minimum(factor * axes.lengths, longest))
    return SampleFit(
        basis=basis,
        lengths=lengths,
        own_mean=np.mean(nearest_in_ellipsoid((rows - rows.mean(axis=0)) @ basis, lengths), axis=0),
        noise=axes.noise,
        drowned=factor**2 * axes.drowned,
        predicted=math.sqrt(risk),
        of_center=math.sqrt(tau * float(np.mean(np.sum(spread**2, axis=1)))),
        weight=weight,
        structure=name,
    )


def _unbiased(rows: np.ndarray) -> np.ndarray:
    """Differences to their mean, so long that their second moment is the covariance."""
    return np.asarray((rows - rows.mean(axis=0)) * math.sqrt(len(rows) / (len(rows) - 1)))


def _leading(structure: np.ndarray) -> _Structure:
    """The directions that hold nearly all of the trace; the rest counts as isotropic."""
    values, vectors = np.linalg.eigh(structure)
    values, vectors = np.maximum(values[::-1], 0.0) / float(np.sum(np.maximum(values, 0.0))), vectors[:, ::-1]
    kept = int(np.searchsorted(np.cumsum(values), _KEPT_TRACE)) + 1
    rest = float(np.sum(values[kept:])) / max(values.size - kept, 1)
    return _Structure(vectors[:, :kept], values[:kept], rest)


def _spectra(rows: np.ndarray, structure: _Structure, weights: tuple[float, ...]) -> Iterator[Spectrum]:
    """(1 − w)·S + w·tr(S)·T for each weight, S the second moment of the rows.

    Beyond the span of the rows and of T's leading directions all directions are alike.
    """
    count, dim = rows.shape
    if count + structure.values.size < dim:
        span, _ = np.linalg.qr(np.concatenate([structure.basis, rows.T], axis=1))
    else:
        span = np.eye(dim)
    inside = rows @ span
    second = inside.T @ inside / count
    trace = float(np.trace(second))
    leading = span.T @ structure.basis
    target = (leading * (structure.values - structure.rest)) @ leading.T + structure.rest * np.eye(len(second))
    rest = dim - span.shape[1] if dim <= MOST_DIRECTIONS else 0
    for weight in weights:
        values, vectors = np.linalg.eigh((1 - weight) * second + weight * trace * target)
        yield Spectrum(np.maximum(values, 0.0), span @ vectors, weight * trace * structure.rest, rest)


def axes_for_spectrum(spectrum: Spectrum, tau: float, noise: Noise) -> _Axes:
    """a² = (t√λ − t²ν/τ)₊ with Σ(√λ/t − ν/τ)₊ = 1.

    Where the noise grows with the number of directions, those that remain are looked at again.
    """
    roots = np.sqrt(np.append(spectrum.values, spectrum.bulk))
    counts = np.append(np.ones(spectrum.values.size), spectrum.rest)
    order = np.argsort(-roots, kind="stable")
    order = order[roots[order] * counts[order] > 0]
    while True:
        many, long = np.cumsum(counts[order]), np.cumsum(counts[order] * roots[order])
        variance = noise(int(many[-1]))
        levels = long / (1 + many * variance / tau)
        asked = roots[order] > levels * variance / tau
        # the longest always is; noise without end lets floating point doubt it
        asked[0] = True
        if asked[-1]:
            break
        order = order[: int(np.flatnonzero(asked)[-1]) + 1]
    level, lengths = float(levels[-1]), np.zeros_like(roots)
    drowned = level**2 * variance / tau
    lengths[order] = np.sqrt(np.maximum(level * roots[order] - drowned, _UNIT * level * roots[order]))
    return _Axes(lengths, variance, drowned)


def _risks(rows: np.ndarray, structure: _Structure, tau: float, noise: Noise) -> Iterator[tuple[float, float, float]]:
    """(predicted squared error, w, common factor of the axes), by cross-validation."""
    count = len(rows)
    folds = min(count, _MOST_FOLDS)
    factors, sums = np.array(_FACTORS), np.zeros((len(_WEIGHTS), len(_FACTORS)))
    for fold in range(folds):
        left = np.arange(count) % folds == fold
        kept = rows[~left]
        # as far from the mean of the others as records are from the true one, on average
        held = (rows[left] - kept.mean(axis=0)) / math.sqrt(1 + 1 / len(kept))
        total = np.sum(held**2, axis=1)
        seen, bodies, power = [], [], []
        for spectrum in _spectra(_unbiased(kept), structure, _WEIGHTS):
            axes = axes_for_spectrum(spectrum, tau, noise)
            inside = held @ spectrum.basis
            # all directions of the bulk have the same axis: their length is what counts
            beyond = np.sqrt(np.maximum(total - np.sum(inside**2, axis=1), 0.0))
            seen.append(np.concatenate([inside, beyond[:, None]], axis=1))
            bodies.append(axes.lengths)
            squares = float(np.sum(axes.lengths[:-1] ** 2) + spectrum.rest * axes.lengths[-1] ** 2)
            power.append(axes.noise * squares)
        gaps = _squared_gaps(np.stack(seen), np.stack(bodies), factors)
        sums += tau * gaps + len(held) * factors**2 * np.array(power)[:, None]
    for i, weight in enumerate(_WEIGHTS):
        for j, factor in enumerate(_FACTORS):
            yield float(sums[i, j]) / count, weight, factor


def _squared_gaps(seen: np.ndarray, bodies: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Sums over the rows (weights, rows, k) of the squared distance to f times a body (weights, k), for each factor f.

    What lies along an axis of length 0 is missed whole. All bodies are asked at once: there are many and small ones.
    """
    asked = bodies > 0
    missed = np.sum(np.where(asked[:, None], 0.0, seen) ** 2, axis=(1, 2))
    unit = np.max(bodies, axis=1)[:, None]
    # the body f·E is as far from c as f times E is from c/f; a direction that nothing lies along may have any axis
    points = np.where(asked[:, None], seen, 0.0)[:, None] / (factors * unit)[..., None, None]
    lengths = np.broadcast_to(np.where(asked, bodies / unit, 1.0)[:, None, None], points.shape)
    whitened = nearest_in_ellipsoid(points.reshape(-1, points.shape[-1]), lengths.reshape(-1, points.shape[-1]))
    gaps = np.sum((points - lengths * whitened.reshape(points.shape)) ** 2, axis=(2, 3))
    return np.asarray((factors * unit) ** 2 * gaps + missed[:, None])


def _spelled_out(spectrum: Spectrum, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions that have an axis, with the bulk's among them, and their semi-axes."""
    basis, long = spectrum.basis, lengths[:-1]
    if lengths[-1] > 0 and spectrum.rest:
        whole, _ = np.linalg.qr(basis, mode="complete")
        basis = np.concatenate([basis, whole[:, basis.shape[1] :]], axis=1)
        long = np.append(long, np.full(spectrum.rest, lengths[-1]))
    asked = long > _SHORTEST * float(np.max(long))
    return basis[:, asked], long[asked]
