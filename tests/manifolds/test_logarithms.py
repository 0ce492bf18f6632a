"""Logarithms by products and by eigendecomposition."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmanifolds.errors import NotOnManifoldError
from dpmanifolds.manifolds._device_logs import DEVICE_REACH
from dpmanifolds.manifolds._logarithms import REACHES, largest_spread, matrix_logs, polynomials
from dpmanifolds.manifolds._near_logs import LARGEST, SCALE, SHIFT, near_logs, polynomial
from dpmanifolds.manifolds.spd import positive_matrix_logs
from tests.manifolds.fifty_digits import exact_log, matrices_with

EPS = np.finfo(np.float64).eps


@pytest.fixture
def paths(monkeypatch):
    """How many matrices eigh was given."""
    given_to_eigh = []
    real = np.linalg.eigh

    def counted(matrices):
        given_to_eigh.append(len(matrices))
        return real(matrices)

    monkeypatch.setattr(np.linalg, "eigh", counted)
    return given_to_eigh


@pytest.mark.grid(at_most=5)
@pytest.mark.parametrize("k", [4, 5, 10])
@pytest.mark.parametrize("condition", [1.0, 1.001, 10.0, 40.0])
def test_products_agree_with_fifty_digits_within_a_tenth_of_their_bound(k, condition, paths):
    rng = np.random.default_rng(k)
    spectra = condition ** rng.uniform(0, 1, (4, k))
    spectra[:, 0], spectra[:, -1] = 1.0, condition
    records = matrices_with(spectra / np.sqrt(condition))
    logs, spread = matrix_logs(records)
    assert paths == []
    assert np.all(spread >= condition * (1 - 1e-9))
    assert np.all(spread <= largest_spread(k))
    for record, log, bound in zip(records, logs, spread, strict=True):
        error = np.linalg.norm(log - exact_log(record))
        assert error <= 0.1 * 4 * k * k * EPS * bound
        assert error <= 2e-15 * k * condition + 1e-14


@pytest.mark.parametrize(
    ("reach", "error"),
    [*zip(REACHES, (7e-15, 4e-15), strict=True), (DEVICE_REACH, 1e-11)],
)
def test_the_polynomials_are_the_function_up_to_what_is_said(reach, error):
    coefficients = polynomials(reach.blocks, reach.square).ravel()
    worst = 0.0
    with mpmath.workdps(40):
        for t in np.linspace(-1, 1, 401):
            at = mpmath.mpf(float(t))
            z = mpmath.mpf(str(reach.square)) * (1 + at) / 2
            exact = 2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) if z else mpmath.mpf(2)
            value = mpmath.fsum(mpmath.mpf(float(each)) * at**power for power, each in enumerate(coefficients))
            worst = max(worst, abs(value - exact))
    assert worst < error
    # powers of t ≤ 1 with such coefficients magnify nothing
    assert np.sum(np.abs(coefficients)) < 4


@given(
    st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=8),
    st.integers(0, 1000),
    st.sampled_from([1e-29, 1e-3, 1.0, 1e5, 1e150]),
)
def test_any_spectrum_at_any_scale(exponents, seed, scale):
    """Condition up to 1e4: both ways are within what the bound says of the logarithms of the spectrum."""
    spectrum = scale * 10.0 ** np.array(exponents)
    record = matrices_with([spectrum], seed)[0]
    logs, spread = matrix_logs(np.stack([record, np.eye(len(spectrum))]))
    error = np.linalg.eigvalsh(logs[0]) - np.sort(np.log(spectrum))
    # the record itself is made with an error of some k·eps·λ_max, and eigenvalues are found up to eps of the largest
    slack = spectrum.max() / spectrum.min() + np.abs(np.log(spectrum)).max()
    assert np.linalg.norm(error) <= 4 * len(spectrum) ** 2 * EPS * (spread[0] + slack)


def test_a_badly_conditioned_record_among_good_ones_goes_to_eigh_alone(paths):
    spectra = np.ones((50, 5))
    spectra[:, 0] = np.linspace(0.5, 2, 50)
    spectra[7] = [1e-5, 1, 1, 1, 1e5]
    records = matrices_with(spectra)
    logs, spread = matrix_logs(records)
    assert paths == [1]
    values, vectors = np.linalg.eigh(records)
    expected = (vectors * np.log(values)[:, None, :]) @ vectors.swapaxes(1, 2)
    assert np.allclose(logs, expected, atol=1e-13)
    assert spread[7] == pytest.approx(1e10, rel=1e-4)


def test_however_many_are_badly_conditioned_each_is_decided_by_itself(paths):
    good, bad = np.tile([1.0, 2, 3, 4], (20, 1)), np.tile([1e-6, 1, 1, 1e6], (40, 1))
    records = matrices_with(np.concatenate([good, bad, good]))
    logs, _ = matrix_logs(records)
    assert paths == [40]
    values, vectors = np.linalg.eigh(records)
    assert np.allclose(logs, (vectors * np.log(values)[:, None, :]) @ vectors.swapaxes(1, 2), atol=1e-9)
    alone = [matrix_logs(record[None])[0][0] for record in records]
    assert np.array_equal(logs, np.stack(alone))


@pytest.mark.parametrize(
    "spectrum",
    [
        [-1.0, 1, 1, 1, 1],
        [-1e-14, 1, 1, 1, 1],
        [-1e-9, 1, 1, 1, 1],
        # no inverse of X + cI, by the one centre and by the other
        [-0.4, 1, 1, 1, 2.4],
        [-0.3, 1, 1, 1, 2.3],
        [-1.0, -1, -1, -1, -1],
        [0.0, 0, 0, 0, 0],
        [-0.6, 0, 0, 0, 5.6],
    ],
)
def test_what_is_not_positive_has_no_logarithm_and_the_others_keep_theirs(spectrum):
    spectra = np.ones((40, 5))
    expected = matrix_logs(matrices_with(spectra))[0]
    spectra[11] = spectrum
    logs, _ = matrix_logs(matrices_with(spectra))
    assert np.isnan(logs[11]).any()
    assert np.array_equal(np.delete(logs, 11, axis=0), np.delete(expected, 11, axis=0))
    with pytest.raises(NotOnManifoldError, match="positive definite"):
        positive_matrix_logs(matrices_with(spectra))


def test_maps_of_matrices_keep_their_shape():
    records = matrices_with(np.random.default_rng(0).uniform(0.5, 2, (12, 6))).reshape(4, 3, 6, 6)
    logs, spread = positive_matrix_logs(records)
    assert logs.shape == (4, 3, 6, 6)
    assert spread.shape == (4, 3)
    assert np.allclose(logs[2, 1], exact_log(records[2, 1]), atol=1e-14)


def test_single_precision_stays_single():
    logs, spread = positive_matrix_logs(matrices_with(np.full((3, 5), 2.0)).astype(np.float32))
    assert logs.dtype == spread.dtype == np.float32


def test_arrays_in_any_order_give_the_same():
    records = matrices_with(np.random.default_rng(0).uniform(0.5, 2, (30, 5)))
    expected = matrix_logs(records)[0]
    assert np.array_equal(matrix_logs(np.asfortranarray(records))[0], expected)
    assert np.array_equal(matrix_logs(np.repeat(records, 2, axis=0)[::2])[0], expected)
    wide = np.zeros((30, 7, 7))
    wide[:, 1:6, 1:6] = records
    assert np.array_equal(matrix_logs(wide[:, 1:6, 1:6])[0], expected)


def test_the_fitted_polynomial_is_the_logarithm_up_to_what_is_said():
    s = np.linspace(1, LARGEST, 4001)[1:, None, None]
    t = SCALE * (s - SHIFT)
    found = SCALE * polynomial(t, t * t, t**4, np.empty_like(t))
    assert np.abs(np.sqrt(s * s - 1) * found - np.arccosh(s)).max() < 8e-9


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("k", [4, 7, 10, 11, 23, 64, 65])
@pytest.mark.parametrize("condition", [1.0, 1.001, 10.0, 60.0, 1e4])
def test_near_logarithms_are_right_up_to_1e_8(k, condition):
    rng = np.random.default_rng(k)
    spectra = condition ** rng.uniform(-0.5, 0.5, (6, k))
    spectra[:, 0], spectra[:, -1] = condition**-0.5, condition**0.5
    for scale in (1e-40, 1.0, 1e100):
        records = scale * matrices_with(spectra)
        assert np.linalg.norm(near_logs(records) - matrix_logs(records)[0], 2, axis=(1, 2)).max() <= 1e-8


@pytest.mark.parametrize("low", np.geomspace(1e-3, 0.3, 7))
def test_near_logarithms_are_right_where_they_change_hands(low):
    """One small eigenvalue, one large one, on either side of the reach of the polynomial."""
    spectra = np.ones((40, 5))
    spectra[:, 0], spectra[:, -1] = low, np.geomspace(1.0, 100.0, 40)
    records = matrices_with(spectra)
    assert np.linalg.norm(near_logs(records) - matrix_logs(records)[0], 2, axis=(1, 2)).max() <= 1e-8


@pytest.mark.parametrize("k", [4, 5, 10, 12, 24])
def test_near_logarithms_are_each_of_one_matrix_and_of_positive_ones(k):
    rng = np.random.default_rng(k)
    spectra = rng.uniform(0.5, 2.0, (60, k))
    spectra[3, 0], spectra[9, 0], spectra[20, :2] = -0.5, 0.0, [-1e-9, 1e3]
    spectra[30, 0], spectra[31, 0], spectra[32] = 1e-7, -30.0, -spectra[32]
    records = matrices_with(spectra)
    records[40, 1, 2], records[41, 0, 0], records[42] = np.nan, np.inf, 0.0
    logs = near_logs(records)
    lost = np.isin(np.arange(60), [3, 9, 20, 31, 32, 40, 41, 42])
    assert np.array_equal(np.isnan(logs).any(axis=(1, 2)), lost)
    for cut in (1, 7, 59):
        parts = [near_logs(records[first : first + cut]) for first in range(0, 60, cut)]
        assert np.array_equal(np.concatenate(parts), logs, equal_nan=True)
    assert np.array_equal(near_logs(np.asfortranarray(records)), logs, equal_nan=True)
