"""The noise of one step is N(0, σ²I) in the Riemannian metric, and T steps separate neighbours by μ and no more."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import SPD, Ball, Euclidean, Grassmann
from dpmanifolds.descent import plan_descent
from dpmanifolds.descent.losses import FrechetMeanLoss, Loss, PCALoss
from dpmanifolds.descent.noisy_step import NoisyGradient
from dpmanifolds.descent.records import hold_records
from dpmanifolds.releases import private_descent
from dpmanifolds.sums.noisy import NoiseSource
from tests.manifolds.cases import MANIFOLDS
from tests.selection import thorough

SIGMA = 0.37


class _Silent(Loss):
    """A loss without gradient: all that is left of a step is its noise."""

    def __init__(self, manifold):
        self.manifold = manifold

    def value(self, w, records):
        return 0.0

    def gradients(self, w, records):
        return np.zeros((records.shape[0], self.manifold.dim))


def source_at(manifold, law="gaussian", sigma=SIGMA):
    plan = plan_descent(n=10, clip_norm=1.0, steps=1, sigma=sigma)
    object.__setattr__(plan, "law", law)
    loss = _Silent(manifold)
    return NoisyGradient(loss, hold_records(loss, np.zeros((10, 1))), plan, NoiseSource.of(8))


def noise_at(manifold, w, count, law="gaussian"):
    source = source_at(manifold, law)
    total = source.total(w)
    return np.stack([source.private(w, total) for _ in range(count)])


def accepts(squares, dim, sigma):
    return stats.kstest(squares / sigma**2, stats.chi2(dim).cdf).pvalue > 1e-7


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_squared_lengths_in_the_metric_are_chi_square(manifold):
    """3000 draws; false alarm 1e−7 per manifold; rejects 30 % more or less noise."""
    w = manifold.random_point(rng=4)
    vectors = manifold.from_coordinates(w, noise_at(manifold, w, 3000))
    squares = manifold.inner(w, vectors, vectors)
    assert accepts(squares, manifold.dim, SIGMA)
    assert not accepts(squares, manifold.dim, 1.3 * SIGMA)
    assert not accepts(squares, manifold.dim, 0.7 * SIGMA)


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_noise_is_white_along_a_basis_that_is_not_ours(manifold):
    """Components along tangent vectors that the metric alone makes orthonormal (Gram matrix of d random ones).

    1500 draws: a variance is off by more than 6√(2/1500) = 0.22 with probability 2e−9, a covariance hardly ever, and
    there are some hundred of them; scale ±30 % moves variances by 0.4 and more.
    """
    w = manifold.random_point(rng=4)
    given = manifold.from_coordinates(w, np.random.default_rng(2).standard_normal((manifold.dim, manifold.dim)))
    gram = np.stack([manifold.inner(w, given, _at(given, i)) for i in range(manifold.dim)])
    drawn = manifold.from_coordinates(w, noise_at(manifold, w, 1500))
    along = np.stack([manifold.inner(w, drawn, _at(given, i)) for i in range(manifold.dim)])
    covariance = np.cov(np.linalg.solve(np.linalg.cholesky(gram), along)).reshape(gram.shape)
    assert np.max(np.abs(covariance / SIGMA**2 - np.eye(manifold.dim))) < 6 * math.sqrt(2 / 1500)
    for wrong in (0.7, 1.3):
        assert np.max(np.abs(covariance / (wrong * SIGMA) ** 2 - np.eye(manifold.dim))) > 6 * math.sqrt(2 / 1500)


def _at(vectors, i):
    return tuple(_at(part, i) for part in vectors) if isinstance(vectors, tuple) else vectors[i]


def test_noise_at_a_badly_conditioned_matrix_is_white_in_its_own_metric():
    """⟨v,v⟩ = tr(p⁻¹vp⁻¹v) through plain inverses at condition 1e6; components along an orthonormal basis of T_p
    that is not ours (p^½ E p^½); 3000 draws, false alarm below 1e−6."""
    manifold = SPD(3)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    p = turn @ np.diag([1e3, 1.0, 1e-3]) @ turn.T
    vectors = manifold.from_coordinates(p, noise_at(manifold, p, 3000))
    inverse = turn @ np.diag([1e-3, 1.0, 1e3]) @ turn.T
    lifted = inverse @ vectors
    squares = np.trace(lifted @ lifted, axis1=1, axis2=2)
    assert accepts(squares, 6, SIGMA)
    assert not accepts(squares, 6, 1.3 * SIGMA)
    assert not accepts(squares, 6, 0.7 * SIGMA)
    root = turn @ np.diag(np.sqrt([1e3, 1.0, 1e-3])) @ turn.T
    components = []
    for i in range(3):
        for j in range(i, 3):
            unit = np.zeros((3, 3))
            unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
            along = inverse @ (root @ unit @ root)
            components.append(np.trace(lifted @ along, axis1=1, axis2=2))
    covariance = np.cov(np.stack(components)) / SIGMA**2
    assert np.max(np.abs(covariance - np.eye(6))) < 6 * math.sqrt(2 / 3000)


@pytest.mark.parametrize("sampler", ["gaussian", "laplace"])
def test_noise_has_the_law_of_the_plan(sampler):
    """Lengths of 3000 draws in R^3; false alarm 1e−7; rejects 30 %."""
    lengths = np.linalg.norm(noise_at(Euclidean(3), np.zeros(3), 3000, sampler), axis=1)
    law = stats.gamma(3) if sampler == "laplace" else stats.chi(3)
    assert stats.kstest(lengths / SIGMA, law.cdf).pvalue > 1e-7
    assert stats.kstest(lengths / SIGMA / 1.3, law.cdf).pvalue < 1e-7
    assert stats.kstest(lengths / SIGMA / 0.7, law.cdf).pvalue < 1e-7


def test_noisy_gradients_lie_on_the_lattice_and_the_noise_is_no_less_than_promised():
    for sigma in (0.37, 1e-9, 3.0):
        source = source_at(SPD(3), sigma=sigma)
        step = 1.0 / 2**source.exponent / 10
        draws = np.stack([source.private(np.eye(3), source.total(np.eye(3))) for _ in range(5)]) / step
        assert np.allclose(draws, np.rint(draws), rtol=1e-15, atol=1e-6)
        assert Fraction(source.sigma_steps) >= Fraction(sigma) * 10 * 2**source.exponent
        assert source.sigma_steps == pytest.approx(sigma * 10 * 2**source.exponent, rel=1e-15)


def test_noise_of_outer_products_is_white_on_the_tangent_space():
    """Zero records: 3000 draws of the projected ambient noise on Gr(5, 2); false alarm 1e−7; rejects 30 %."""
    loss = PCALoss(Grassmann(5, 2), 1.0)
    plan = plan_descent(n=10, clip_norm=loss.bound, steps=1, sigma=SIGMA)
    source = NoisyGradient(loss, hold_records(loss, np.zeros((10, 5))), plan, NoiseSource.of(8))
    w = loss.manifold.random_point(rng=4)
    total = source.total(w)
    draws = np.stack([source.private(w, total) for _ in range(3000)])
    squares = np.sum(draws**2, axis=1)
    assert accepts(squares, 6, SIGMA)
    assert not accepts(squares, 6, 1.3 * SIGMA)
    assert not accepts(squares, 6, 0.7 * SIGMA)
    assert np.max(np.abs(np.cov(draws.T) / SIGMA**2 - np.eye(6))) < 6 * math.sqrt(2 / 3000)


def test_poisson_batches_hold_each_record_with_the_rate_independently():
    """4000 batches of 30 records: counts binomial within 5.5 sd, sizes with binomial variance."""
    plan = plan_descent(n=30, clip_norm=1.0, steps=1, sigma=1.0, batch_size=6)
    source = NoiseSource.of(1)
    batches = [plan.draw_batch(30, source) for _ in range(4000)]
    counts = np.bincount(np.concatenate(batches), minlength=30)
    assert np.all(np.abs(counts - 800) < 5.5 * math.sqrt(4000 * 0.2 * 0.8))
    sizes = np.array([batch.size for batch in batches])
    assert abs(sizes.var() / (30 * 0.2 * 0.8) - 1) < 5.5 * math.sqrt(2 / 4000)


@pytest.mark.grid(at_most=1)
@thorough("batches", 800, 2000)
@pytest.mark.parametrize("sampling", ["poisson", "without-replacement"])
def test_gradients_of_random_batches_are_unbiased_also_far_from_the_records(sampling, batches):
    """Batches of mean size 6 of 30, w at distance 5 from a ball of radius 1: each coordinate within 6 sd."""
    manifold = SPD(2)
    ball = Ball(manifold, np.eye(2), 1.0)
    loss = FrechetMeanLoss(ball)
    records = loss.prepare(manifold.random_point(30, rng=0))
    plan = plan_descent(n=30, clip_norm=loss.bound, steps=1, sigma=1.0, batch_size=6, sampling=sampling)
    source = NoisyGradient(loss, hold_records(loss, records), plan, NoiseSource.of(2))
    w = np.diag([np.exp(4.0), np.exp(-3.0)])
    unit = loss.bound / 2.0**source.exponent / plan.divisor
    means = np.array([source.total(w).integers for _ in range(batches)], dtype=float) * unit + loss.anchor(w)
    exact = loss.gradients(w, records).mean(axis=0)
    assert np.all(np.abs(means.mean(axis=0) - exact) < 6 * means.std(axis=0) / math.sqrt(batches))


def test_fixed_batches_have_their_size_and_favour_no_one():
    plan = plan_descent(n=30, clip_norm=1.0, steps=1, sigma=1.0, batch_size=6, sampling="without-replacement")
    source = NoiseSource.of(1)
    batches = [plan.draw_batch(30, source) for _ in range(4000)]
    assert all(np.unique(batch).size == 6 for batch in batches)
    counts = np.bincount(np.concatenate(batches), minlength=30)
    assert np.all(np.abs(counts - 800) < 5.5 * math.sqrt(4000 * 0.2 * 0.8))


def _seen_by_an_attacker(last, noise, runs):
    """Σ_t(ζ_t − w_t) of 4-step runs on the line: the sufficient statistic for the last record."""
    manifold = Euclidean(1)
    loss, records = FrechetMeanLoss(Ball(manifold, [0.0], 1.0)), np.array([[0.0], [last]])
    found = []
    for _ in range(runs):
        iterates = [0.0]
        private_descent(
            loss, records, manifold, None, start=[0.0], steps=4, sigma=noise, step_size=0.5,
            callback=lambda _, w, iterates=iterates: iterates.append(float(w[0])),
        )  # fmt: skip
        path = np.array(iterates)
        found.append(np.sum((path[:-1] - path[1:]) / 0.5 - path[:-1]))
    return np.array(found)


@pytest.mark.parametrize(
    ("share", "caught", "runs"),
    [
        (1.0, False, 300),
        (0.5, True, 300),
        pytest.param(1.0, False, 1300, marks=pytest.mark.long),
        pytest.param(0.7, True, 1300, marks=pytest.mark.long),
    ],
)
def test_an_attacker_who_sees_every_iterate_learns_what_the_promise_says(share, caught, runs):
    """Worst-case pair x = ±1 among two records, T = 4, μ = 2; some runs on each side. The attacker's two error rates,
    each at confidence 1 − 2.5e−7, must not beat f(α) = Φ(Φ⁻¹(1−α) − μ); with half the noise they do in 300 runs, with
    30 % less noise in 1300."""
    claim = plan_descent(n=2, clip_norm=1.0, steps=4, sigma=1.0).guarantee
    one, other = (_seen_by_an_attacker(last, share, runs) for last in (1.0, -1.0))
    false_alarms, misses = int(np.sum(one > 0)), int(np.sum(other <= 0))
    most = [stats.beta.ppf(1 - 2.5e-7, k + 1, runs - k) for k in (false_alarms, misses)]
    assert bool(most[1] < claim.tradeoff(most[0])) is caught
    if not caught:
        separation = (other.mean() - one.mean()) / math.sqrt((one.var() + other.var()) / 2)
        assert separation == pytest.approx(2.0, abs=5.5 * math.sqrt(2 / runs) * 1.5)


@pytest.mark.long
@pytest.mark.parametrize(("share", "caught"), [(1.0, False), (0.5, True)])
def test_an_attacker_learns_of_a_record_in_a_poisson_batch_what_the_promise_says(share, caught):
    """No record at all against one at the edge, q = ½, one step; 4,000 steps on each side.

    P(A) ≤ e^ε·P'(A) + δ(ε) for half-lines A, both ways round, each rate at confidence 1 − 1e−7; with half of the noise
    that is claimed one of them is beaten.
    """
    line, runs = Euclidean(1), 4_000
    loss = FrechetMeanLoss(Ball(line, [0.0], 1.0))
    options = {"n": 2, "clip_norm": 1.0, "steps": 1, "batch_size": 1, "adjacency": "add-remove-one"}
    claim, plan = plan_descent(**options, sigma=0.5).guarantee, plan_descent(**options, sigma=0.5 * share)
    seen = []
    for number, records in enumerate((np.empty((0, 1)), np.array([[1.0]]))):
        held = hold_records(loss, records, may_be_empty=True)
        source = NoisyGradient(loss, held, plan, NoiseSource.of(number))
        seen.append(np.array([source.private(np.zeros(1), source.total(np.zeros(1)))[0] for _ in range(runs)]))
    beaten = False
    for epsilon in (0.3, 0.6, 1.0, 1.5):
        for one, other in (seen, seen[::-1]):
            for cut in np.linspace(-2.0, 1.0, 13):
                for side in (1, -1):
                    hits, misses = (int(np.sum(side * values > side * cut)) for values in (one, other))
                    least = stats.beta.ppf(1e-7, hits, runs - hits + 1) if hits else 0.0
                    most = stats.beta.ppf(1 - 1e-7, misses + 1, runs - misses)
                    beaten |= bool(least > math.exp(epsilon) * most + claim.delta(epsilon))
    assert beaten is caught
