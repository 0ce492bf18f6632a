"""The fused kernels: as exact as the general code, and out of the way where a record needs more care."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest

from dpmanifolds import SPD, Ball, NotOnManifoldError, PureDP, frechet_mean, private_mean
from dpmanifolds.statistics.kernels import device
from dpmanifolds.statistics.kernels.device import log_sums, longest_device_sum


@pytest.fixture
def everywhere(monkeypatch):
    """The kernels without an accelerator: run as they are, which is what PyTorch and JAX compile."""
    monkeypatch.setattr(device, "on_accelerator", lambda array: not isinstance(array, np.ndarray))


def matrices(k: int, count: int, condition: float, seed: int = 0, gap: float | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    frames = np.linalg.qr(rng.standard_normal((count, k, k)))[0]
    values = np.exp(rng.uniform(0, math.log(condition), (count, k)))
    if gap is not None and k > 1:
        values[:, 1] = values[:, 0] * (1 + gap)
    result = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
    return (result + result.swapaxes(1, 2)) / 2


def exact_log(matrix: np.ndarray) -> np.ndarray:
    with mpmath.workdps(50):
        values, vectors = mpmath.eigsy(mpmath.matrix(matrix.tolist()))
        log = vectors * mpmath.diag([mpmath.log(value) for value in values]) * vectors.T
        return np.array(log.tolist(), dtype=float)


@pytest.mark.parametrize("gap", [None, 0.0, 1e-12, 1e-8])
@pytest.mark.parametrize("condition", [1.001, 1e2, 1e5, 1e9])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_error_of_a_logarithm_is_within_what_is_charged_for_it(k, condition, gap):
    """4k²·cond·eps, at eigenvalues that coincide too."""
    for matrix in matrices(k, 6, condition, gap=gap):
        sums = log_sums(matrix[None])
        assert sums is not None
        log = exact_log(matrix)
        coordinates = np.concatenate([np.diag(log), math.sqrt(2) * log[np.triu_indices(k, 1)]])
        allowed = 2.0**-52 * (4 * k * k * np.linalg.cond(matrix) + 32 * np.linalg.norm(log))
        assert np.linalg.norm(sums.total - coordinates) <= allowed
        assert float(sums.spread) == pytest.approx(np.linalg.cond(matrix), rel=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sums_are_those_of_the_general_code(k):
    space, records = SPD(k), matrices(k, 3000, 50.0)
    base = matrices(k, 1, 3.0, seed=1)[0]
    whitener = np.linalg.inv(np.linalg.cholesky(base))
    weights = np.full(3000, 1 / 3000)

    expected = space.linearize(base, records, weights, True)
    sums = log_sums(records, weights, whitener=whitener, hessian=True)
    assert sums is not None
    assert np.allclose(sums.total, expected.pull, atol=1e-13)
    assert float(sums.squared) / 2 == pytest.approx(float(expected.value), rel=1e-12)
    assert float(sums.farthest) == pytest.approx(float(expected.farthest), rel=1e-12)
    hessian = expected.convexity * np.eye(space.dim) + sums.hessian
    assert np.allclose(hessian, expected.hessian, atol=1e-6)


def test_records_outside_are_clipped_in_the_chart():
    records = matrices(3, 2000, 1e4)
    space = SPD(3, "log-euclidean")
    center = np.diag([2.0, 3.0, 5.0])
    ball = Ball(space, center, 2.0)
    sums = log_sums(records, center=space.chart(center), radius=2.0)
    assert sums is not None
    expected = (space.chart(ball.clip(records)) - space.chart(center)).mean(axis=0)
    assert np.allclose(sums.total, expected, atol=1e-11)
    assert float(sums.farthest) <= 2.0


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -5.0, 0.0], ids=["not a number", "infinite", "negative", "singular"])
def test_malformed_records_raise_the_flag(spoil):
    records = matrices(3, 100, 5.0)
    records[50] = np.diag([1.0, spoil, 1.0])
    with np.errstate(all="ignore"):
        assert log_sums(records) is None
    skew = matrices(3, 100, 5.0)
    skew[50, 0, 1] += 0.1
    assert log_sums(skew) is None


def test_few_rotations_finish_for_every_shape_of_matrix():
    """None of 100 000 random matrices of condition up to 1e9 needs the general code."""
    records = np.concatenate([matrices(3, 50_000, 1e9), matrices(3, 50_000, 1e4, gap=1e-7)])
    records = records[np.linalg.eigvalsh(records)[:, 0] > 0]
    assert log_sums(records) is not None


@pytest.mark.parametrize("backend", ["array_api_strict", "torch", "jax"], indirect=True)
@pytest.mark.parametrize("metric", ["log-euclidean", "affine-invariant"])
@pytest.mark.usefixtures("everywhere")
def test_means_and_releases_on_other_libraries_take_the_kernels(metric, backend):
    space, records = SPD(3, metric), matrices(3, 3000, 100.0)
    ball = Ball(space, np.eye(3) * 3, 2.0)
    expected = frechet_mean(space, records)
    found = frechet_mean(space, backend.array(records))
    assert np.allclose(backend.numpy(found.point), expected.point, rtol=1e-10)
    assert found.error_bound < 1e-8
    release = private_mean(backend.array(records), ball, PureDP(1.0), numerics="rounded", rng=4)
    assert np.allclose(release.value, private_mean(records, ball, PureDP(1.0), numerics="rounded", rng=4).value)
    records[7, 1, 1] = -1.0
    with pytest.raises(NotOnManifoldError):
        frechet_mean(space, backend.array(records))


def test_sums_stay_short_for_any_number_of_records():
    """Far below the block of the host plus the number of blocks, which the tolerance pays for."""
    for count in (10, 10**4, 10**6, 10**8, 10**9):
        assert longest_device_sum(count) <= min(count, 32768) + -(-count // 32768) + 64


@pytest.mark.needs("jax")
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_pallas_kernel_computes_the_formulas(k):
    """Interpreted here; compiled on an accelerator."""
    jax = pytest.importorskip("jax")
    from dpmanifolds.statistics.kernels.pallas import pallas_sums

    with jax.experimental.enable_x64() if hasattr(jax.experimental, "enable_x64") else jax.enable_x64(True):
        records, weights = matrices(k, 300, 50.0), np.random.default_rng(0).uniform(size=300)
        matrix, center = matrices(k, 1, 3.0, seed=1)[0], np.full(k * (k + 1) // 2, 0.3)
        expected = log_sums(records, weights, whitener=matrix, center=center, radius=2.0, hessian=True)
        padded = np.concatenate([records, np.full((84, k, k), np.nan)])
        kernel = pallas_sums(k, 2.0**-52, weighted=True, whitened=True, hessian=True, interpret=True)
        given = np.concatenate([matrix.ravel(), center, [2.0, 0.0]])
        shares = np.concatenate([weights, np.full(84, np.nan)])
        found = np.asarray(kernel(*map(jax.numpy.asarray, (padded, shares, given, np.asarray(300)))))
        sums, peaks = found[:-2], found[-2:]
    d = len(center)
    assert expected is not None
    assert np.allclose(sums[:d], expected.total, rtol=1e-12, atol=1e-12)
    assert np.allclose(sums[d : d + 3], [expected.size, expected.squared, expected.spread], rtol=1e-12)
    assert np.allclose(sums[d + 3 :], expected.hessian[np.triu_indices(d)], rtol=1e-10, atol=1e-10)
    assert peaks.tolist() == pytest.approx([float(expected.farthest), 0.0])


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_kernels_of_an_accelerator_compute_the_formulas(k, dtype, library):
    """Where there is one."""
    module = pytest.importorskip(library)
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("no accelerator")
        put = functools.partial(module.asarray, device="cuda")
    else:
        if module.default_backend() == "cpu":
            pytest.skip("no accelerator")
        module.config.update("jax_enable_x64", True)
        put = module.numpy.asarray
    rng = np.random.default_rng(0)
    records, weights = matrices(k, 5003, 50.0).astype(dtype), rng.uniform(size=5003).astype(dtype)
    matrix, center = matrices(k, 1, 3.0, seed=1)[0], 0.1 * rng.standard_normal(k * (k + 1) // 2)
    close = {"rtol": 1e-11, "atol": 1e-11} if dtype == np.float64 else {"rtol": 2e-3, "atol": 2e-3}
    for options in ({}, {"whitener": matrix, "hessian": True}, {"whitener": matrix, "center": center, "radius": 1.0}):
        expected = log_sums(records, weights, **options)
        found = log_sums(put(records), put(weights), **options)
        for name in expected._fields:
            if getattr(expected, name) is not None:
                assert np.allclose(getattr(found, name), getattr(expected, name), **close), name
    assert library not in device._unavailable
