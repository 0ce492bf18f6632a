"""What to make of a noisy symmetric matrix: eigenvalues that fit the eigenvectors which noise left.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> truth = np.diag([4.0] + [1.0] * 99)
>>> noise = rng.standard_normal((100, 100)) * 0.1
>>> noisy = truth + (noise + noise.T) / np.sqrt(2)
>>> shrunk = shrink_spectrum(noisy, BulkNoise(0.1))
>>> bool(np.linalg.norm(shrunk - truth) < 0.25 * np.linalg.norm(noisy - truth))
True

Noise W of a law that is the same in every orthonormal basis turns eigenvectors and spreads eigenvalues. Among all
matrices with the eigenvectors of M + W the one that is nearest to M in Frobenius norm has the eigenvalues vᵢᵀMvᵢ, and
in high dimension these are known without M (Bun, Allez, Bouchaud and Potters 2016): with g(λ) = h + iπρ the limit of
(1/d)Σ 1/(λ − λ_j − i0) over the noisy eigenvalues, and R the R-transform of the noise,

    ξ(λ) = λ − Re R(g) − Im R(g)·h/(πρ).

Noise of independent Gaussian entries with the standard deviation s off the diagonal has R(g) = s²d·g, so that ξ = λ −
2s²d·h: for one eigenvalue far out of the bulk that is √(λ² − 4s²d), the shrinkage of Donoho and Gavish. The difference
of two Wishart matrices has R(g) = 2a²g/(1 − a²g²), a = s√(d/2). Σξ = Σλ: what large eigenvalues lose the bulk gets.
What is known beyond doubt is put in last: order, no eigenvalue below 0, and a trace of at most `most`. All of this is
post-processing.

The length that vectors are shortened to before their squares are summed is chosen by noisy counts of their lengths.

>>> edges = np.array([1.0, 2.0, 4.0, 8.0])
>>> found = best_moment_radius(np.array([42.0, 57.0, 10.0, 1.5]), 2.0, edges, 100.0, noise=0.1, dim=4)
>>> found.radius, round(found.growth, 3)
(2.0, 1.18)

Shortening to r takes Σ(|y|² − r²)⁺/n from the trace; what counts say that it has lost is put back by one factor, which
is right where long vectors point where short ones do, and multiplies the noise: `noise`·r²·factor in Frobenius norm
before eigenvalues are shrunk. A matrix of d columns whose eigenvalues fall in no special way has d^{−1/4} of its trace
in Frobenius norm. The radius with the least of lost trace and noise together is taken. All of it is post-processing of
the counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

# the width over which eigenvalues repel each other, in standard deviations off the diagonal: in simulations over
# spectra, dimensions and noise smaller ones are noisy, and larger ones shrink too little
_WIDTH = 0.3
_DENSITY_WIDTH = 0.1
"""The same for the density of eigenvalues, in units of s√d."""


@dataclass(frozen=True)
class BulkNoise:
    """What noise does to eigenvalues: its standard deviation s off the diagonal, √2·s on it, and its kind."""

    spread: float
    wishart: bool = False
    """The difference of two Wishart matrices; else Gaussian."""

    def oracle(self, values: np.ndarray) -> np.ndarray:
        """ξ for each of these noisy eigenvalues."""
        # in units of a power of two, so that no square leaves floats
        power = math.frexp(max(float(np.max(np.abs(values))), self.spread))[1]
        found = self._oracle(np.ldexp(values, -power), math.ldexp(self.spread, -power))
        return np.asarray(np.ldexp(found, power))

    def _oracle(self, values: np.ndarray, spread: float) -> np.ndarray:
        dim = len(values)
        gaps = values[:, None] - values[None, :]
        width = _WIDTH * spread
        repelled = np.sum(gaps / (gaps * gaps + width * width), axis=1) / dim
        if not self.wishart:
            return np.asarray(values - 2 * spread**2 * dim * repelled)
        blur = _DENSITY_WIDTH * spread * math.sqrt(dim)
        density = np.sum(blur / (gaps * gaps + blur * blur), axis=1) / dim
        seen, squared = repelled + 1j * density, spread**2 * dim / 2
        transform = 2 * squared * seen / (1 - squared * seen * seen)
        return np.asarray(values - transform.real - transform.imag / density * repelled)


def shrink_spectrum(noisy: np.ndarray, noise: BulkNoise, most: float = math.inf) -> np.ndarray:
    """The positive semidefinite matrix with the eigenvectors of `noisy` that is nearest to what was there before noise.

    Its trace is that of the noisy matrix, cut to [0, most].

    >>> shrink_spectrum(np.array([[2.0]]), BulkNoise(0.5), most=1.5)
    array([[1.5]])
    """
    values, frame = np.linalg.eigh(noisy)
    likely = isotonic_regression(noise.oracle(values)).x
    likely = fit_total(likely, min(max(float(np.sum(values)), 0.0), most))
    return np.asarray((frame * likely) @ frame.T)


def fit_total(numbers: np.ndarray, total: float) -> np.ndarray:
    """The nearest numbers that are not negative and sum to `total`: (number − shift)⁺ for one shift.

    >>> fit_total(np.array([3.0, 1.0, -2.0]), 2.0)
    array([2., 0., 0.])
    """
    falling = np.sort(numbers)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(numbers) + 1)
    kept = np.flatnonzero(falling > shifts)
    return np.maximum(numbers - shifts[kept[-1]], 0.0) if kept.size else np.zeros_like(numbers)


def lift_spectrum(matrix: np.ndarray, least: float, most: float) -> np.ndarray:
    """The nearest symmetric matrix with all eigenvalues in [least, most].

    >>> lift_spectrum(np.array([[1.0, 0.0], [0.0, -1.0]]), 0.25, 2.0)
    array([[1.  , 0.  ],
           [0.  , 0.25]])
    """
    values, frame = np.linalg.eigh((matrix + matrix.T) / 2)
    lifted = (frame * np.clip(values, least, most)) @ frame.T
    return np.asarray((lifted + lifted.T) / 2)


_KEPT_NOISE = 0.7
"""How much of the noise is left after eigenvalues are shrunk, for spectra and noise in typical places."""


class MomentRadius(NamedTuple):
    """A length for vectors, and what it takes off their squares."""

    radius: float
    growth: float
    """The mean squared length over what shortening leaves of it, as the counts have it; at least 1."""


def best_moment_radius(
    counts: np.ndarray, deviation: float, edges: np.ndarray, total: float, *, noise: float, dim: int
) -> MomentRadius:
    """The best of the edges, for counts (with this noise each) of vectors with lengths up to each edge, in all `total`.

    Beyond an edge where all counts together are within one standard deviation of none, nobody is: there noise on a few
    counts would weigh more than all that is there.
    """
    beyond = np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)
    top = int(np.flatnonzero(beyond <= deviation * np.sqrt(np.arange(len(edges))[::-1]))[0])
    edges, likely = edges[: top + 1], fit_total(counts[: top + 1], total)
    squares = edges * np.append(edges[0] / 2, edges[:-1])
    left = np.array([np.sum(likely * np.minimum(squares, edge * edge)) for edge in edges.tolist()]) / total
    whole = float(np.sum(likely * squares)) / total
    growth = whole / left
    errors = np.hypot((whole - left) / dim**0.25, _KEPT_NOISE * noise * edges * edges * growth)
    best = int(np.argmin(errors))
    return MomentRadius(float(edges[best]), max(1.0, float(growth[best])))
