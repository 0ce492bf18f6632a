"""Matrices of given eigenvalues, and their logarithms in fifty digits."""

import mpmath
import numpy as np


def matrices_with(spectra, seed=0):
    """Symmetric matrices with these eigenvalues (n, k), in random frames."""
    spectra = np.asarray(spectra, dtype=np.float64)
    frames = np.linalg.qr(np.random.default_rng(seed).standard_normal((*spectra.shape, spectra.shape[-1])))[0]
    made = (frames * spectra[:, None, :]) @ frames.swapaxes(1, 2)
    return (made + made.swapaxes(1, 2)) / 2


def exact_log(matrix):
    """In 50 digits."""
    with mpmath.workdps(50):
        values, vectors = mpmath.eigsy(mpmath.matrix(matrix.tolist()))
        logs = vectors * mpmath.diag([mpmath.log(value) for value in values]) * vectors.T
        return np.array(logs.tolist(), dtype=np.float64)
