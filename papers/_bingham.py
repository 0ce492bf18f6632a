"""Eigenvectors by the exponential mechanism, one after the other: the algorithm of Amin et al. 2019, as a baseline.

>>> import numpy as np
>>> from papers._bingham import sequential_eigenvectors
>>> rows = sequential_eigenvectors(np.diag([9e5, 1.0, 0.0]), 1, epsilon=1.0, radius=1.0, rng=0)
>>> bool(abs(rows[0, 0]) > 0.99)
True

diffprivlib draws u of density ∝ exp(ε'·uᵀSu/(4R²)), S = Σxxᵀ, ε' = ε/(k+1) (one share goes to the eigenvalues), then
goes on in the orthogonal complement. Its sampler is the rejection of Kent, Ganeiber and Mardia 2018, whose acceptance
probability is e^{−uᵀAu}(uᵀΩu)^{d/2}/M; version 0.6.6 divides by (uᵀΩu)^{d/2} instead, which changes the law and hardly
ever accepts beyond a few columns. Here the probability is the right one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq

from dpmanifolds.noise import as_generator

__all__ = ["bingham", "sequential_eigenvectors"]

_BLOCK = 64


def bingham(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A unit vector of density ∝ exp(Σ values_i·u_i²), drawn without error but that of floating point."""
    excess = values.max() - values
    dim = excess.size
    spread = float(brentq(lambda b: float(np.sum(1 / (b + 2 * excess))) - 1, 0.5, dim + 1.0))
    shape = 1 + 2 * excess / spread
    log_most = -(dim - spread) / 2 + dim / 2 * math.log(dim / spread)
    while True:
        proposals = rng.standard_normal((_BLOCK, dim)) / np.sqrt(shape)
        proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
        squares = proposals * proposals
        log_share = -squares @ excess + dim / 2 * np.log(squares @ shape) - log_most
        accepted = np.flatnonzero(np.log(rng.random(_BLOCK)) < log_share)
        if accepted.size:
            return np.asarray(proposals[accepted[0]])


def sequential_eigenvectors(moment: np.ndarray, count: int, *, epsilon: float, radius: float, rng: Any) -> np.ndarray:
    """Orthonormal rows (count, d): each is drawn in the complement of those before it, with ε/(count + 1)."""
    source = as_generator(rng)
    strength = epsilon / (count + 1) / (4 * radius**2)
    basis, found = np.eye(len(moment)), []
    for _ in range(count):
        values, vectors = np.linalg.eigh(basis.T @ moment @ basis)
        drawn = vectors @ bingham(strength * values, source)
        found.append(basis @ drawn)
        # the rows of vᵀ beyond the first span the complement of the first
        basis = basis @ np.linalg.svd(drawn[None])[2][1:].T
    return np.array(found)
