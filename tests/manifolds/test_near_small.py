"""Logarithms of 3×3 matrices for integers: against fifty digits, where eigenvalues meet, and each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds.manifolds._log_triangle import see_small
from dpmanifolds.manifolds._near_small import entry_rows, log_hard, near_triples
from dpmanifolds.manifolds._symmetric import log_by_rotations, upper_triangle
from tests.manifolds.fifty_digits import exact_log, matrices_with

GAPS = (0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
LINES = 1003


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def entries(matrices):
    return {(i, j): matrices[:, i, j].copy() for i in range(3) for j in range(i, 3)}


def mixed_matrices(count=LINES, seed=0):
    """Of all conditions, with repeated eigenvalues, and what has no logarithm."""
    rng = np.random.default_rng(seed)
    spectra = 10.0 ** (rng.uniform(0, 9, (count, 1)) * rng.uniform(-1, 0, (count, 3)))
    spectra[::5, 1] = spectra[::5, 0] * (1 + 10.0 ** rng.uniform(-17, -4, len(spectra[::5])))
    spectra[::7] = spectra[::7, :1]
    matrices = matrices_with(spectra, seed)
    matrices[3::50], matrices[4::50, 1, 1] = 0.0, np.nan
    matrices[5::50, 0, 2] = matrices[5::50, 2, 0] = np.inf
    matrices[6::50], matrices[7::50] = -matrices[6::50], np.ones((3, 3))
    matrices[8::50] *= 1e160
    matrices[9::50] *= 1e-300
    return matrices


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1.0, 1e90, 1e150])
@pytest.mark.parametrize("condition", [1.0, 1.001, 10.0, 1e3, 2e3, 3e4, 4e4, 1e6])
def test_logarithms_for_integers_are_right_up_to_1e_9(condition, scale):
    middle = np.sqrt(condition)
    spectra = [
        *([condition, 1, 1 + gap] for gap in GAPS),
        *([1, condition, condition * (1 - gap)] for gap in GAPS),
        *([1, condition, middle * (1 + gap)] for gap in GAPS),
    ]
    records = scale * matrices_with(spectra)
    rows, lengths, sound = see_small(records)
    expected = upper_triangle(np.stack([exact_log(record) for record in records]))
    assert np.linalg.norm(rows - expected, axis=1).max() <= 1e-9
    assert np.allclose(lengths, np.linalg.norm(rows, axis=1), rtol=1e-14, atol=0)
    assert sound.all()


def test_ordinary_ones_are_right_up_to_1e_11():
    matrices = matrices_with(10.0 ** np.random.default_rng(0).uniform(-1, 1, (200, 3)))
    rows, near = near_triples(entries(matrices))
    assert near.all()
    expected = upper_triangle(np.stack([exact_log(matrix) for matrix in matrices]))
    assert np.linalg.norm(rows.T - expected, axis=1).max() <= 1e-11


def test_four_sweeps_leave_what_eight_do():
    rng = np.random.default_rng(0)
    spectra = 10.0 ** (12 * rng.uniform(-1, 0, (20_000, 3)))
    spectra[::3, 1] = spectra[::3, 0] * (1 + 10.0 ** rng.uniform(-17, -3, len(spectra[::3])))
    x = entries(matrices_with(spectra))
    found, expected = log_hard(x), entry_rows(log_by_rotations(x, 3, 8), 3)
    known = np.isfinite(expected).all(axis=0)
    assert known.mean() > 0.99
    assert np.abs(found - expected)[:, known].max() < 1e-13


def test_every_matrix_is_seen_by_itself_wherever_it_stands():
    matrices = mixed_matrices()
    rows, lengths, sound = see_small(matrices)
    order = np.random.default_rng(1).permutation(LINES)
    turned = see_small(matrices[order])
    assert np.array_equal(turned[0], rows[order], equal_nan=True)
    assert np.array_equal(turned[1], lengths[order], equal_nan=True)
    assert np.array_equal(turned[2], sound[order])
    for row in range(0, LINES, 9):
        for first in (row, max(row - 2, 0), max(row - 13, 0)):
            few = see_small(matrices[first : row + 3])
            assert np.array_equal(few[0][row - first], rows[row], equal_nan=True)
            assert np.array_equal(few[1][row - first], lengths[row], equal_nan=True)


def test_what_is_not_positive_has_no_logarithm():
    matrices = mixed_matrices()
    finite = np.isfinite(matrices).all(axis=(1, 2))
    size = np.abs(matrices).max(axis=(1, 2), keepdims=True)
    lowest = np.linalg.eigvalsh(np.where(finite[:, None, None] & (size > 0), matrices / size, 0.0))[:, 0]
    _, lengths, sound = see_small(matrices)
    assert np.isnan(lengths[~finite]).all()
    assert np.isnan(lengths[lowest < -1e-14]).all()
    assert np.isfinite(lengths[lowest > 1e-14]).all()
    assert np.array_equal(sound, np.isfinite(lengths))


@pytest.mark.parametrize("k", [2, 3])
def test_sound_is_what_is_symmetric_up_to_what_belongs_allows(k):
    matrices = np.tile(np.diag(np.arange(1.0, k + 1)), (6, 1, 1))
    matrices[1, 0, -1], matrices[2, -1, 0], matrices[3, 0, -1] = 1e-7, -1e-7, 1e-5
    matrices[4, -1, 0], matrices[5, 0, -1] = np.nan, np.inf
    assert see_small(matrices)[2].tolist() == [True, True, True, False, False, False]
