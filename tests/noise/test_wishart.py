"""The difference of two Wishart matrices: exact integers, the right law, the promise that was proven."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmanifolds import ArgumentError
from dpmanifolds.noise.symmetric import WishartDifference, exact_gram


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**31), st.integers(1, 200))
def test_products_of_integers_of_any_size_are_exact(rows, columns, seed, bits):
    rng = np.random.default_rng(seed)
    entries = np.array(
        [[int.from_bytes(rng.bytes(26)) % 2**bits * int(rng.choice([-1, 1])) for _ in range(columns)]
         for _ in range(rows)], dtype=object,
    )  # fmt: skip
    assert np.array_equal(exact_gram(entries), (entries @ entries.T)[np.triu_indices(rows)])


@pytest.mark.parametrize("start", [2, 5, 17, 200])
def test_the_precision_at_which_it_starts_changes_nothing(start):
    """Coarse starts cannot decide all cells, so they must reveal the bits that finer starts begin with."""
    zero = np.zeros((4, 4), dtype=np.int64)
    for seed in range(5):
        noise = WishartDifference(4, 2.0**30)
        assert np.array_equal(noise.release(zero, rng=seed, start=start), noise.release(zero, rng=seed))


def test_the_law_is_that_of_two_wishart_matrices():
    """n = 1200 draws: variances of both kinds of entries within 5 standard errors; 30 % more or less scale is seen.

    Off the diagonal s²(d+1)/2, on it s²(d+1). A kurtosis below 9 bounds the relative error of a variance by √(8/n) =
    0.082: 0.41 at 5 errors, a false-alarm rate below 1e−6; scale ±30 % moves variances by a half and more.
    """
    dim, draws, rng = 3, 1200, np.random.default_rng(5)
    noise = WishartDifference(dim, 2.0**20)
    zero = np.zeros((dim, dim), dtype=np.int64)
    found = np.stack([noise.release(zero, rng=rng) for _ in range(draws)]).astype(float) / 2.0**20
    assert np.array_equal(found, found.swapaxes(1, 2))
    assert np.mean(found[:, 0, 1] ** 2) == pytest.approx((dim + 1) / 2, rel=0.41)
    assert np.mean(found[:, 2, 2] ** 2) == pytest.approx(dim + 1, rel=0.41)
    assert noise.spread == pytest.approx(2.0**20 * math.sqrt(2))


@pytest.mark.long
def test_in_one_dimension_it_is_the_laplace_law():
    """n = 4000 draws against the Laplace law: the Kolmogorov distance exceeds 0.043 with probability below 1e−6."""
    rng = np.random.default_rng(1)
    noise = WishartDifference(1, 2.0**20)
    found = np.sort([noise.release(np.zeros((1, 1), dtype=np.int64), rng=rng)[0, 0] / 2.0**20 for _ in range(4000)])
    law = np.where(found < 0, np.exp(-np.abs(found)) / 2, 1 - np.exp(-np.abs(found)) / 2)
    assert np.max(np.abs(law - (np.arange(4000) + 0.5) / 4000)) < 0.043
    wrong = np.where(found < 0, np.exp(-np.abs(found) / 1.3) / 2, 1 - np.exp(-np.abs(found) / 1.3) / 2)
    assert np.max(np.abs(wrong - (np.arange(4000) + 0.5) / 4000)) > 0.043


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_event_is_likelier_than_the_promise_allows(dim):
    """ε = 2 at the worst pair, orthogonal replacements: halfspaces of the statistic that tells them apart.

    With 20,000 draws each side an estimated probability is off by less than 0.0175 with probability 1 − 1e−5 per event.
    """
    rng = np.random.default_rng(dim)
    factors = rng.standard_normal((2, 2, 20_000, dim, dim + 1))
    difference = (factors[:, 0] @ factors[:, 0].swapaxes(-1, -2) - factors[:, 1] @ factors[:, 1].swapaxes(-1, -2)) / 2
    shift = np.zeros((dim, dim))
    shift[0, 0], shift[-1, -1] = (1.0, -1.0) if dim > 1 else (2.0, 2.0)
    there, here = difference[0] + shift, difference[1]
    seen = [np.einsum("nij,ij->n", part, shift) for part in (there, here)]
    largest = 0.0
    for level in np.quantile(seen[0], np.linspace(0.02, 0.98, 49)):
        above, plain = (float(np.mean(part > level)) for part in seen)
        largest = max(largest, above - math.exp(2.0) * plain, (1 - plain) - math.exp(2.0) * (1 - above))
    assert largest < 0.02 * (1 + math.exp(2.0))
    if dim == 1:
        # the Laplace law attains its ε, so 30 % less noise must show
        above, plain = (float(np.mean(part > 4)) for part in (0.7 * (seen[0] - 4) + 4, 0.7 * seen[1]))
        assert above - math.exp(2.0) * plain > 0.02 * (1 + math.exp(2.0))


def log_density(matrices, cell=0.04):
    """log h, up to a constant, of A − B for 2×2 matrices and s = 1, by quadrature (docs/proofs/second_moment.md, P3).

    With z = diag(m + k, m − k): −2m + log ∫∫ exp(−4·max(|r|, |r + ke₁| − m)) dr over the plane.
    """
    low, high = np.linalg.eigvalsh(matrices).T
    middle, half = (low + high) / 2, (high - low) / 2
    x, y = np.meshgrid(np.arange(-16, 8, cell) + cell / 2, np.arange(0, 8, cell) + cell / 2)
    found = []
    for m, k in zip(middle, half, strict=True):
        heights = -4 * np.maximum(np.hypot(x, y), np.hypot(x + k, y) - m)
        top = heights.max()
        found.append(-2 * m + top + math.log(np.sum(np.exp(heights - top))))
    return np.array(found)


def test_in_two_dimensions_the_loss_reaches_the_nuclear_norm_over_the_scale_and_no_more():
    """Likelihood ratios for replaced records in any directions, at points of all sizes: |loss| ≤ ‖vvᵀ − wwᵀ‖_*."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((40, 2, 2)) * rng.choice([0.1, 0.5, 1.0], (40, 1, 1))
    z = z + z.swapaxes(1, 2)
    v, w = rng.standard_normal((2, 40, 2)) / 2
    shift = v[:, :, None] * v[:, None] - w[:, :, None] * w[:, None]
    nuclear = np.abs(np.linalg.eigvalsh(shift)).sum(axis=1)
    assert np.all(np.abs(log_density(z) - log_density(z + shift)) <= nuclear + 0.02)
    far, worst = np.diag([6.0, -6.0]), np.diag([1.0, -1.0])
    (loss,) = log_density(far[None]) - log_density((far + worst)[None])
    assert 0.94 * 2 < loss <= 2


@pytest.mark.long
def test_in_two_dimensions_the_sampler_has_that_density():
    """3000 draws of the size √(tr Z²) against its law, found by quadrature over (m, k): Kolmogorov distance.

    Of draws from that law it exceeds 0.05 with probability 2·exp(−2·3000·0.05²) = 6e−7, and the grid moves it by less
    than 0.01, so the limit is 0.06; 30 % more or less scale moves it further.
    """
    m, k = (part.ravel() for part in np.meshgrid(np.arange(-6, 6, 0.25), np.arange(0, 9, 0.25) + 0.125))
    # a symmetric 2×2 matrix has volume ∝ k dm dk dangle in these numbers
    density = k * np.exp(log_density(np.eye(2) * np.stack([m + k, m - k], axis=-1)[:, None], cell=0.2))
    sizes = np.sqrt(2 * (m * m + k * k))
    order = np.argsort(sizes)
    law = np.cumsum(density[order]) / density.sum()
    rng, noise, zero = np.random.default_rng(3), WishartDifference(2, 2.0**20), np.zeros((2, 2), dtype=np.int64)
    found = np.sort([np.linalg.norm(noise.release(zero, rng=rng).astype(float) / 2.0**20) for _ in range(3000)])
    empirical = (np.arange(3000) + 0.5) / 3000
    gaps = [np.max(np.abs(np.interp(found / scale, sizes[order], law) - empirical)) for scale in (1.0, 0.7, 1.3)]
    assert gaps[0] < 0.06 < min(gaps[1:])


def test_what_is_no_integer_matrix_is_refused():
    for values in (np.zeros((2, 2)), np.zeros(3, dtype=np.int64), np.array([[0, 1], [2, 0]])):
        with pytest.raises(ArgumentError, match="whole numbers"):
            WishartDifference(2, 2.0**20).release(values)
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="sigma"):
            WishartDifference(2, scale)


def test_integers_of_any_size_keep_every_step():
    """2¹⁰⁰ and 2¹⁰⁰ + 1 get the same noise and stay one apart: nothing is cut at 64 bits."""
    noise = WishartDifference(2, 2.0**80)
    far = np.full((2, 2), 2**100, dtype=object)
    one, other = noise.release(far, rng=3), noise.release(far + 1, rng=3)
    assert (other - one == 1).all()
    assert all(isinstance(entry, int) for entry in one.ravel().tolist())
