"""The domain of descriptors: its diameter, its ball, and the rule that moves records onto it."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmanifolds import validate
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import sensitivity_of_flat_mean
from dpmanifolds.statistics import frechet_mean

ETAS = [1e-6, 1e-3, 0.05, 1.0, 100.0]


def turned(values, rng):
    """Matrices with these eigenvalues in random frames."""
    frames = np.linalg.qr(rng.standard_normal((*values.shape, values.shape[-1])))[0]
    matrices = (frames * values[..., None, :]) @ np.swapaxes(frames, -1, -2)
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2


def spectra(domain, count, rng):
    """Eigenvalues of points of the domain, most of them on its boundary: few or many share the whole trace."""
    k = domain.manifold.k
    shares = rng.exponential(size=(count, k)) ** rng.choice([0.05, 1.0, 4.0], size=(count, 1))
    shares *= rng.uniform(size=(count, k)) < rng.uniform(size=(count, 1))
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return domain.eta + domain.trace_bound * shares * rng.choice([1.0, 1.0, 1e-3], size=(count, 1))


def test_the_constants_are_those_of_an_independent_computation_in_forty_digits():
    with mpmath.workdps(40):
        touch = mpmath.findroot(lambda x: 2 * x / (1 + x) - mpmath.log(1 + x), 3.9)

        def majorant(x):
            return mpmath.log(1 + x) ** 2 if x >= touch else x * mpmath.log(1 + touch) ** 2 / touch

        for channels, k in ((1, 9), (3, 11)):
            trace = mpmath.mpf(k - 2) / 4 + mpmath.mpf(5) / 16 + mpmath.pi**2 / 16
            for eta in ETAS:
                ratio = trace / mpmath.mpf(eta)
                sums = (sum(part * majorant(ratio / part) for part in (m, k - m) if part) for m in range(k + 1))
                exact = float(mpmath.sqrt(max(sums)))
                domain = DescriptorDomain(channels, eta)
                assert exact <= domain.diameter <= exact * (1 + 1e-6)
                assert float(trace) <= domain.trace_bound <= float(trace) * (1 + 1e-12)


def test_frozen_diameters_at_the_usual_floor():
    assert math.ceil(DescriptorDomain(1).diameter * 1e4) / 1e4 == 39.8739
    assert math.ceil(DescriptorDomain(3).diameter * 1e4) / 1e4 == 43.9905


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("channels", [1, 3])
def test_no_two_points_are_farther_apart_than_the_diameter(channels, eta):
    rng = np.random.default_rng(0)
    domain = DescriptorDomain(channels, eta)
    space = domain.manifold
    a, b = (turned(spectra(domain, 3000, rng), rng) for _ in range(2))
    assert np.all(domain.contains(a))
    assert np.max(space.dist(a, b)) <= domain.diameter
    assert np.max(space.dist(domain.center, a)) <= domain.radius
    # the worst pairs are diagonal: one matrix large where the other is at the floor
    large = spectra(domain, 3000, rng)
    split = rng.integers(0, space.k + 1, size=(3000, 1))
    left, right = (np.where(side, large, eta) for side in (np.arange(space.k) < split, np.arange(space.k) >= split))
    gaps = np.linalg.norm(np.log(left) - np.log(right), axis=1)
    assert np.max(gaps) <= domain.diameter


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("eta", [1e-6, 1e-3, 0.05])
def test_the_diameter_is_attained_where_the_floor_is_low(channels, eta):
    domain = DescriptorDomain(channels, eta)
    k = domain.manifold.k

    def gap(m):
        left = np.where(np.arange(k) < m, eta + domain.trace_bound / m, eta)
        right = np.where(np.arange(k) >= m, eta + domain.trace_bound / (k - m), eta)
        assert np.all(domain.contains(np.stack([np.diag(left), np.diag(right)])))
        return float(domain.manifold.dist(np.diag(left), np.diag(right)))

    assert max(gap(m) for m in range(1, k)) == pytest.approx(domain.diameter, rel=1e-6)


def test_the_plain_square_of_logarithms_would_be_too_small_for_a_high_floor():
    """At η=1 spreading the trace evenly over a part is not the worst: the concave majorant is needed."""
    domain = DescriptorDomain(1, 1.0)
    trace = domain.trace_bound
    plain = max(sum(part * math.log1p(trace / part) ** 2 for part in (m, 9 - m) if part) for m in range(10)) ** 0.5
    left, right = np.ones(9), np.ones(9)
    left[0] += trace
    right[1] += trace
    attained = float(domain.manifold.dist(np.diag(left), np.diag(right)))
    assert plain < 1.539
    assert plain < attained <= domain.diameter


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("eta", [1e-6, 1e-3])
def test_the_ball_is_barely_larger_than_the_domain(channels, eta):
    """radius ≥ diameter/2 always; the centre is where it is smallest among multiples of the identity."""
    domain = DescriptorDomain(channels, eta)
    k = domain.manifold.k
    assert domain.diameter / 2 <= domain.radius <= 1.02 * domain.diameter / 2
    logs = math.log(domain.center[0, 0])
    farthest = max(
        math.sqrt(m * (math.log(eta + domain.trace_bound / m) - logs) ** 2 + (k - m) * (math.log(eta) - logs) ** 2)
        for m in range(1, k + 1)
    )
    assert farthest == pytest.approx(domain.radius, rel=1e-6)
    assert bool(domain.contains(domain.center))


def test_the_noise_is_less_than_half_of_that_of_the_published_ball():
    for channels, k in ((1, 9), (3, 11)):
        published = 2 * math.sqrt(k) * abs(math.log(1e-6))
        sensitivity = sensitivity_of_flat_mean(DescriptorDomain(channels), 1000)
        assert published / 1000 / float(sensitivity) > 2.07


def test_means_of_neighbours_move_by_at_most_the_sensitivity_and_can_come_close():
    rng = np.random.default_rng(1)
    domain = DescriptorDomain(1)
    records = turned(spectra(domain, 20, rng), rng)
    sensitivity = float(sensitivity_of_flat_mean(domain, 20))
    moves = []
    for _ in range(30):
        changed = records.copy()
        changed[0] = turned(spectra(domain, 1, rng), rng)[0]
        first, second = (frechet_mean(domain.manifold, domain.clip(each)).point for each in (records, changed))
        moves.append(float(domain.manifold.dist(first, second)))
    worst = [
        np.diag(np.where(side, 1e-6 + domain.trace_bound / size, 1e-6))
        for side, size in ((np.arange(9) < 4, 4), (np.arange(9) >= 4, 5))
    ]
    ends = [frechet_mean(domain.manifold, np.concatenate([each[None], records[1:]])).point for each in worst]
    assert max(moves) <= sensitivity
    assert 0.9999 * sensitivity < float(domain.manifold.dist(*ends)) <= sensitivity


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3]), st.sampled_from(ETAS), st.floats(-12, 12))
def test_clipping_lands_in_the_domain_and_stays_there(seed, channels, eta, exponent):
    rng = np.random.default_rng(seed)
    domain = DescriptorDomain(channels, eta)
    matrices = turned(10.0**exponent * rng.exponential(size=(5, domain.manifold.k)) ** 3, rng)
    clipped = domain.clip(matrices)
    assert np.all(domain.contains(clipped))
    assert np.array_equal(domain.clip(clipped), clipped)
    assert np.array_equal(clipped, np.swapaxes(clipped, 1, 2)) or np.all(domain.contains(matrices))
    assert np.array_equal(domain.clip(matrices[3]), clipped[3])


def test_records_inside_stay_bit_for_bit_beside_records_outside(backend):
    rng = np.random.default_rng(2)
    domain = DescriptorDomain(1)
    inside = turned(spectra(domain, 40, rng), rng)
    inside = inside[np.asarray(domain.contains(inside))]
    assert len(inside) == 40
    mixed = np.concatenate([inside, 1e3 * inside[:5], -inside[:5]])
    clipped = backend.numpy(domain.clip(backend.array(mixed)))
    assert np.array_equal(clipped[:40], inside)
    assert np.all(domain.contains(clipped))
    assert not np.any(backend.numpy(domain.contains(backend.array(mixed[40:]))))


def test_what_clipping_does_to_eigenvalues():
    domain = DescriptorDomain(1, 0.01)
    trace = domain.trace_bound
    low = np.diag([1e-9, 0.5, *[0.1] * 7])
    assert np.allclose(domain.clip(low), np.diag([0.01, 0.5, *[0.1] * 7]), rtol=0, atol=1e-15)
    high = np.diag([0.01 + 3 * trace, 0.01 + trace, *[0.01] * 7])
    expected = np.diag([0.01 + 0.75 * trace, 0.01 + 0.25 * trace, *[0.01] * 7])
    assert np.allclose(domain.clip(high), expected, rtol=0, atol=1e-14)


def test_odd_records_are_handled_one_by_one():
    domain = DescriptorDomain(1)
    good = domain.center
    lopsided = good.copy()
    lopsided[0, 1] = 1e-7
    broken = np.full((9, 9), np.nan)
    endless = np.where(np.eye(9) > 0, np.inf, 0.0)
    huge = 1e308 * (np.eye(9) + 0.5)
    records = np.stack([good, lopsided, broken, endless, huge, np.zeros((9, 9)), -huge])
    assert domain.contains(records).tolist() == [True, False, False, False, False, False, False]
    clipped = domain.clip(records)
    assert domain.contains(clipped).tolist() == [True, True, False, False, True, True, True]
    assert np.array_equal(clipped[2:4], records[2:4], equal_nan=True)
    assert np.array_equal(clipped[0], good)
    report = validate(records[:4], domain)
    assert report.not_finite == (2, 3)


def test_single_precision_records_become_double():
    domain = DescriptorDomain(1)
    records = np.broadcast_to(0.1 * np.eye(9, dtype=np.float32), (3, 9, 9))
    clipped = domain.clip(records)
    assert clipped.dtype == np.float64
    assert np.array_equal(clipped, records.astype(float))


def test_bad_domains_are_refused():
    for channels in (0, 2, 9, "grey"):
        with pytest.raises(ArgumentError, match="channels"):
            DescriptorDomain(channels)
    for eta in (0.0, -1.0, 1e-12, math.nan, math.inf, "low"):
        with pytest.raises(ArgumentError, match="eta"):
            DescriptorDomain(1, eta)
    with pytest.raises(ArgumentError, match="shape"):
        DescriptorDomain(1).clip(np.eye(11))
    assert repr(DescriptorDomain(3, 1e-4)) == "DescriptorDomain(channels=3, eta=0.0001)"
