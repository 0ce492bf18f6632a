"""Tiny symmetric matrices, one array per entry: against LAPACK, and where eigenvalues meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmanifolds.manifolds._symmetric import jacobi_eigen, log_entries


def entries(matrices: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    k = matrices.shape[-1]
    return {(i, j): matrices[:, i, j].copy() for i in range(k) for j in range(i, k)}


def assembled(found: dict[tuple[int, int], np.ndarray], k: int) -> np.ndarray:
    return np.stack([np.stack([found[min(i, j), max(i, j)] for j in range(k)], -1) for i in range(k)], -2)


def rotated(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    k = values.shape[-1]
    frames = np.linalg.qr(rng.standard_normal((len(values), k, k)))[0]
    product = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
    return (product + product.swapaxes(1, 2)) / 2


def reference_log(matrices: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.log(values)[:, None, :]) @ vectors.swapaxes(1, 2)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_jacobi_reproduces_the_matrix_with_orthonormal_vectors(k):
    rng = np.random.default_rng(k)
    matrices = rotated(rng.standard_normal((5000, k)), rng)
    values, vectors = jacobi_eigen(entries(matrices), k)
    frame = np.stack([np.stack(row, -1) for row in vectors], -2)
    again = (frame * np.stack(values, -1)[:, None, :]) @ frame.swapaxes(1, 2)
    assert np.abs(again - matrices).max() < 1e-14
    assert np.abs(frame.swapaxes(1, 2) @ frame - np.eye(k)).max() < 1e-14


def test_jacobi_keeps_small_eigenvalues_of_a_graded_matrix():
    """D·(well-conditioned)·D with D = diag(1e-6, 1, 1e6): every eigenvalue to many digits (LAPACK loses the small)."""
    rng = np.random.default_rng(0)
    scale = np.array([1e-6, 1.0, 1e6])
    middle = np.eye(3) + 0.2 * rotated(rng.uniform(-1, 1, (50, 3)), rng)
    matrices = scale[:, None] * middle * scale
    values = np.sort(np.stack(jacobi_eigen(entries(matrices), 3)[0], -1), axis=-1)
    assert np.allclose(values.prod(axis=-1), np.linalg.det(middle), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), spread=st.floats(0.0, 12.0), k=st.sampled_from([1, 2, 3]))
def test_closed_form_logarithms_agree_with_lapack(seed, spread, k):
    rng = np.random.default_rng(seed)
    matrices = rotated(np.exp(rng.uniform(-spread / 2, spread / 2, (40, k))), rng)
    found = log_entries(entries(matrices), k)
    assert found is not None
    tolerance = 36 * 2.3e-16 * np.exp(spread) + 1e-14
    assert np.abs(assembled(found, k) - reference_log(matrices)).max() < tolerance


@pytest.mark.parametrize("gap", [0.0, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("values", [(1.0, 1.0, 1.0), (1.0, 1.0, 3.0), (3.0, 1.0, 1.0)])
def test_closed_form_logarithms_are_right_where_eigenvalues_meet(values, gap):
    rng = np.random.default_rng(1)
    spectrum = np.array(values) * (1 + gap * rng.uniform(-1, 1, (200, 3)))
    matrices = rotated(spectrum, rng)
    found = log_entries(entries(matrices), 3)
    assert found is not None
    assert np.abs(assembled(found, 3) - reference_log(matrices)).max() < 1e-14


@pytest.mark.parametrize("small", [0.3, 0.1, 0.011, 0.009, 1e-3, 1e-5])
def test_a_small_double_eigenvalue_costs_no_more_than_its_condition(small):
    rng = np.random.default_rng(2)
    for gap in (0.0, 1e-14, 1e-10, 1e-8, 1e-6, 1e-2):
        matrices = rotated(np.broadcast_to([1.0, small * (1 + gap), small], (300, 3)), rng)
        found = log_entries(entries(matrices), 3)
        assert found is not None
        assert np.abs(assembled(found, 3) - reference_log(matrices)).max() < 36 * 2.3e-16 / small


@pytest.mark.parametrize("k", [1, 2, 3])
def test_matrices_that_are_not_positive_have_no_logarithm(k):
    matrices = np.stack([np.eye(k)] * 3)
    expected = log_entries(entries(matrices), k)[0, 0]
    for value in (-1.0, 0.0):
        matrices[1, 0, 0] = value
        found = log_entries(entries(matrices), k)[0, 0]
        assert np.isnan(found[1])
        assert np.array_equal(found[[0, 2]], expected[[0, 2]])
