"""Records that are simulated, to try things on: public, as nobody is in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer


def simulate_tensors(n: int, *, anisotropy: float = 1.0, rng: Any = None) -> np.ndarray:
    """n diffusion tensors (n, 3, 3) in mm²/s as in white matter: eigenvalues near 1.2e−3, 5e−4, 4e−4, axes near x.

    Logarithms of eigenvalues spread by 0.2, axes by some 10 degrees; `anisotropy` scales the contrast of eigenvalues.

    >>> simulate_tensors(100, rng=0).shape
    (100, 3, 3)
    """
    count = positive_integer("n", n)
    generator = np.random.default_rng(rng)
    middle = np.log([1.2e-3, 5e-4, 4e-4])
    middle = middle.mean() + anisotropy * (middle - middle.mean())
    values = np.exp(middle + 0.2 * generator.standard_normal((count, 3)))
    axes = np.linalg.qr(np.eye(3) + 0.18 * generator.standard_normal((count, 3, 3)))[0]
    tensors: np.ndarray = np.einsum("nij,nj,nkj->nik", axes, values, axes)
    symmetric: np.ndarray = (tensors + np.swapaxes(tensors, 1, 2)) / 2
    return symmetric
