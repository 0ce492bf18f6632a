"""Laplace noise on random batches, batches that are cut, trees: against explicit neighbours and dp-accounting 0.6.0."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import (
    LaplaceDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    TruncatedSubsampledGaussianDpEvent,
)
from dp_accounting.pld import PLDAccountant
from scipy import stats

from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy import (
    ApproxDP,
    Guarantee,
    PureDP,
    compose,
    fixed_size_descent,
    full_batch_descent,
    poisson_descent,
)
from dpmanifolds.privacy.batches import SubsampledLaplaceTerm, TruncatedGaussianTerm
from tests.redteam.truths import sampled_laplace_delta

ADD_REMOVE, REPLACE_ONE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
DELTAS = (1e-3, 1e-6, 1e-9)


def told(event, steps, relation, interval=1e-4):
    accountant = PLDAccountant(relation, interval)
    accountant.compose(SelfComposedDpEvent(event, steps))
    return np.array([accountant.get_epsilon(delta) for delta in DELTAS])


def ours(promise):
    return np.array([promise.epsilon(delta) for delta in DELTAS])


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("sampling", ["poisson", "fixed-size", "poisson-add-remove"])
def test_profiles_of_sampled_laplace_noise_are_exact(sampling):
    rng = np.random.default_rng(5)
    with mp.workdps(50):
        for _ in range(60):
            rate, noise = 10 ** rng.uniform(-5, -0.01), 10 ** rng.uniform(-1, 2)
            term = SubsampledLaplaceTerm(sampling=sampling, rate=rate, noise_multiplier=noise)
            epsilon = rng.uniform(0, 1.05) * term.pure_epsilon
            for backward in (False, True):
                truth = sampled_laplace_delta(sampling, rate, noise, epsilon, backward=backward)
                bound = mp.mpf(float(term.directed(np.asarray(epsilon), backward=backward)))
                assert truth <= bound <= truth * (1 + mp.mpf("1e-9")) + rate * mp.mpf("1e-11")
                assert truth == 0 or epsilon <= term.pure_epsilon


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize(
    ("rate", "scale", "steps"), [(0.01, 1.0, 100), (0.01, 0.5, 1000), (0.1, 2.0, 100), (0.3, 1.0, 10), (0.2, 1.0, 1)]
)
def test_sampled_laplace_noise_agrees_with_the_pld_accountant_under_add_remove(rate, scale, steps):
    promise = poisson_descent(
        n=1000, rate=rate, steps=steps, clip=1.0, sigma=scale / rate / 1000, law="laplace", adjacency="add-remove-one"
    )
    theirs = told(PoissonSampledDpEvent(rate, LaplaceDpEvent(scale)), steps, ADD_REMOVE)
    assert ours(promise) == pytest.approx(theirs, rel=5e-4)
    assert Guarantee.from_json(promise.to_json()) == promise


@pytest.mark.parametrize(("rate", "scale"), [(0.01, 1.0), (0.3, 0.5)])
def test_sampled_laplace_noise_reads_as_every_kind_of_budget(rate, scale):
    for sampling in ("poisson", "fixed-size", "poisson-add-remove"):
        term = SubsampledLaplaceTerm(sampling=sampling, rate=rate, noise_multiplier=scale)
        promise = Guarantee((term,), term.adjacency).k_fold(20)
        pure = promise.as_pure().epsilon
        assert pure <= 20 * (2 if term.is_symmetric else 1) / scale
        assert promise.epsilon(1e-6) < pure
        assert promise.epsilon(1e-6) <= min(
            promise.as_renyi(8.0).as_approx(1e-6).epsilon, promise.as_gaussian().as_approx(1e-6).epsilon
        )
        assert promise.fits(PureDP(pure))
        assert promise.fits(ApproxDP(promise.epsilon(1e-6) * (1 + 1e-9), 1e-6))


def test_all_records_with_laplace_noise_are_ordinary_laplace_noise():
    common = {"n": 100, "steps": 3, "clip": 1.0, "sigma": 0.1, "law": "laplace"}
    full = full_batch_descent(**common)
    assert full.as_pure().epsilon == pytest.approx(3 * 2 / 10, rel=1e-12)
    for other in (poisson_descent(rate=1.0, **common), fixed_size_descent(batch=100, **common)):
        assert other.as_pure().epsilon == pytest.approx(full.as_pure().epsilon, rel=1e-12)
    removed = full_batch_descent(**common, adjacency="add-remove-one")
    assert removed.as_pure().epsilon == pytest.approx(full.as_pure().epsilon / 2, rel=1e-12)


def cut_laws(n, rate, largest, record, others):
    """Means and weights of the sum where all others are the same number and one record is `record`, or missing."""
    drawn = stats.binom.pmf(np.arange(n), n - 1, rate)
    law: dict[float, float] = {}
    for count, weight in enumerate(drawn):
        kept = min(count, largest)
        law[kept * others] = law.get(kept * others, 0.0) + weight * (1 if record is None else 1 - rate)
        if record is None:
            continue
        stays = 1.0 if count < largest else largest / (count + 1)
        with_it = min(count, largest - 1) * others + record
        law[with_it] = law.get(with_it, 0.0) + weight * rate * stays
        law[kept * others] += weight * rate * (1 - stays)
    return law


def divergence(first, second, noise, epsilon):
    x = np.arange(-12 * noise - 12, 12 * noise + 12, noise / 400)
    p, q = (sum(w * stats.norm.pdf(x, mean, noise) for mean, w in law.items()) for law in (first, second))
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)) * noise / 400)


@pytest.mark.parametrize(("n", "rate", "largest", "noise"), [(4, 0.5, 2, 1.0), (8, 0.3, 3, 0.7), (6, 0.9, 2, 2.0)])
def test_explicit_neighbours_of_cut_batches_stay_below_the_claim(n, rate, largest, noise):
    common = {"n": n, "rate": rate, "steps": 1, "clip": 1.0, "sigma": noise / rate / n, "largest_batch": largest}
    replaced = poisson_descent(**common)
    removed = poisson_descent(**common, n_cap=n, adjacency="add-remove-one")
    for others in (-1.0, 0.0, 1.0):
        up, down, none = (cut_laws(n, rate, largest, record, others) for record in (1.0, -1.0, None))
        for epsilon in (0.0, 0.5, 2.0, 4.0):
            assert divergence(up, down, noise, epsilon) <= replaced.delta(epsilon) * (1 + 1e-4)
            for pair in ((up, none), (none, up)):
                assert divergence(*pair, noise, epsilon) <= removed.delta(epsilon) * (1 + 1e-4)


@pytest.mark.parametrize(("n", "rate", "largest"), [(40, 0.3, 20), (300, 0.02, 30), (2000, 0.5, 990)])
def test_how_often_batches_are_cut_is_above_the_exact_sum_by_little(n, rate, largest):
    term = TruncatedGaussianTerm(sampling="poisson", records=n, rate=rate, largest_batch=largest, noise_multiplier=1.0)
    with mp.workdps(50):
        q = mp.mpf(rate)
        drawn = [mp.binomial(n - 1, m) * q**m * (1 - q) ** (n - 1 - m) for m in range(n)]
        full = mp.fsum(drawn[largest:])
        kept = mp.fsum(w * q * largest / (m + 1) for m, w in enumerate(drawn) if m >= largest) / full
        for told, truth in zip((*term.cut_chances, term.plain_chance), (full, kept, 1 - full), strict=True):
            assert truth <= told <= truth * (1 + mp.mpf("1e-8"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "rate", "largest", "noise", "steps"),
    [(1000, 0.01, 30, 1.0, 100), (1000, 0.01, 20, 1.0, 100), (10_000, 0.01, 130, 2.0, 500), (1000, 0.1, 110, 1.0, 10)],
)
def test_cut_batches_cost_no_more_than_dp_accounting_says(n, rate, largest, noise, steps):
    event = TruncatedSubsampledGaussianDpEvent(n, rate, largest, noise)
    common = {"n": n, "rate": rate, "steps": steps, "clip": 1.0, "sigma": noise / rate / n, "largest_batch": largest}
    removed = ours(poisson_descent(**common, n_cap=n, adjacency="add-remove-one"))
    removed /= told(event, steps, ADD_REMOVE, 5e-4)
    replaced = ours(poisson_descent(**common)) / told(event, steps, REPLACE_ONE, 5e-4)
    assert np.all((replaced > 0.95) & (replaced < 1.0001))
    # here for every number of records up to n, there for exactly n
    assert np.all((removed > 0.95) & (removed < 1.02))


def test_a_batch_that_is_often_cut_costs_less_than_dp_accounting_says_but_more_than_one_that_is_not():
    common = {"n": 1000, "rate": 0.05, "steps": 100, "clip": 1.0, "sigma": 3.0 / 50}
    cut = ours(poisson_descent(**common, largest_batch=50))
    assert np.all(cut < 0.8 * told(TruncatedSubsampledGaussianDpEvent(1000, 0.05, 50, 3.0), 100, REPLACE_ONE))
    assert np.all(cut > ours(poisson_descent(**common)))
    never = poisson_descent(**common, largest_batch=1000)
    assert never == poisson_descent(**common)


def test_a_cut_full_batch_is_a_batch_of_fixed_size():
    cut = poisson_descent(n=100, rate=1.0, steps=5, clip=1.0, sigma=0.05, largest_batch=20)
    fixed = fixed_size_descent(n=100, batch=20, steps=5, clip=1.0, sigma=0.25)
    assert ours(cut) == pytest.approx(ours(fixed), rel=1e-4)


def test_renyi_of_a_cut_step_lies_between_that_of_the_plain_step_and_that_of_all_records():
    for sampling in ("poisson", "poisson-add-remove"):
        term = TruncatedGaussianTerm(sampling=sampling, records=50, rate=0.1, largest_batch=9, noise_multiplier=2.0)
        plain = poisson_descent(n=50, rate=0.1, steps=1, clip=1.0, sigma=2.0 / 5, adjacency=term.adjacency)
        for alpha in (1.5, 4.0, 16.0):
            assert plain.as_renyi(alpha).epsilon < term.renyi(alpha) <= alpha * 2 / 4 * (1 + 1e-12)


def test_batches_compose_with_other_promises_for_the_same_neighbours():
    plain = Guarantee.gaussian(0.13, adjacency="add-remove-one")
    common = {"n": 100, "rate": 0.1, "steps": 5, "clip": 1.0, "adjacency": "add-remove-one"}
    cut = poisson_descent(**common, sigma=0.3, largest_batch=30, n_cap=200)
    laplace = poisson_descent(**common, sigma=0.5, law="laplace")
    together = compose(plain, cut, laplace)
    assert max(each.epsilon(1e-6) for each in (plain, cut, laplace)) < together.epsilon(1e-6)
    assert together.epsilon(3e-6) < sum(each.epsilon(1e-6) for each in (plain, cut, laplace))
    assert Guarantee.from_json(together.to_json()) == together
    with pytest.raises(ArgumentError, match="adjacency and unit agree"):
        compose(plain, poisson_descent(n=100, rate=0.1, steps=5, clip=1.0, sigma=0.5, law="laplace"))
    with pytest.raises(ArgumentError, match="'replace-one' neighbours; got adjacency"):
        Guarantee((SubsampledLaplaceTerm(sampling="fixed-size", rate=0.1, noise_multiplier=1.0),), "add-remove-one")


BASE = {"n": 100, "rate": 0.1, "steps": 5, "clip": 1.0, "sigma": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: poisson_descent(**BASE, law="cauchy"), "law"),
        (lambda: poisson_descent(**BASE, largest_batch=0), "largest_batch"),
        (lambda: poisson_descent(**BASE, largest_batch=20, law="laplace"), "law='gaussian' only"),
        (lambda: poisson_descent(**BASE, largest_batch=20, n_cap=100), "n_cap is for"),
        (lambda: poisson_descent(**BASE, n_cap=100, adjacency="add-remove-one"), "n_cap is for"),
        (lambda: poisson_descent(**BASE, largest_batch=20, adjacency="add-remove-one"), "needs n_cap"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
