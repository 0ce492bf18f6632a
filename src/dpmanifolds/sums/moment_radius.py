"""The length that vectors are shortened to before their squares are summed, chosen by noisy counts of their lengths.

>>> import numpy as np
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

from typing import NamedTuple

import numpy as np

from dpmanifolds.sums.shrink_spectrum import fit_total

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
