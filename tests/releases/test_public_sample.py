"""A mean with a public sample: what the sample may touch, the law of the noise, neighbours, words and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    DPManifoldsError,
    Ellipsoid,
    Euclidean,
    GaussianDP,
    PlanarShapes,
    PureDP,
    Sphere,
    frechet_mean,
    private_mean,
)
from dpmanifolds.auditing.front_door import find_difference, overheard_noise
from dpmanifolds.releases.confidence import confidence_region, population_region
from dpmanifolds.releases.second_moment import private_tangent_moment
from dpmanifolds.sums.rounding import length_fits
from tests.releases.test_bad_input import Spy
from tests.selection import thorough

SPACE, SCALES = Euclidean(4), np.array([2.0, 0.5, 0.2, 0.05])
BALL = Ball(SPACE, np.zeros(4), 12.0)
RNG = np.random.default_rng(0)
SAMPLE, RECORDS = RNG.standard_normal((40, 4)) * SCALES, RNG.standard_normal((200, 4)) * SCALES
MU = GaussianDP(1.0)


def released(records, rng=1, budget=MU, **options):
    return private_mean(records, BALL, budget, public_sample=SAMPLE, rng=rng, **options)


def sums_of(records, budget=MU, **options):
    """The integers that noise was added to, and the scale of it."""
    with overheard_noise() as tap:
        released(records, budget=budget, **options)
    [said] = tap.said
    return said.values, said.law


def test_nothing_public_depends_on_the_records():
    one, other = released(RECORDS), released(100 * RECORDS[::-1] + 5)
    assert np.array_equal(one.domain.axes, other.domain.axes)
    assert np.array_equal(one.domain.basis, other.domain.basis)
    assert np.array_equal(one.domain.center, other.domain.center)
    assert one.public == other.public
    assert (one.sigma, one.guarantee, one.reason) == (other.sigma, other.guarantee, other.reason)


@pytest.mark.parametrize("budget", [MU, PureDP(1.0), ApproxDP(1.0, 1e-6)], ids=repr)
def test_one_record_moves_the_sum_by_two_radii_at_most_and_noise_is_made_for_that(budget):
    far = np.array([1e9, 0.0, 0.0, 0.0])
    first, second = RECORDS.copy(), RECORDS.copy()
    first[7], second[7] = far, -far
    one, law = sums_of(first, budget)
    other, _ = sums_of(second, budget)
    release = released(first, budget=budget)
    radius = release.sensitivity.value / 2 / release.step
    moved = float(np.linalg.norm((one - other).astype(float)))
    assert moved <= 2 * radius * (1 + 1e-12)
    assert moved > 2 * radius * 0.99
    assert release.guarantee.fits(budget)
    assert float(law.sigma) == pytest.approx(release.sigma / release.step, rel=1e-12)


@pytest.mark.parametrize("end", [1e9, 30.0, 3.0])
def test_neighbours_at_the_edge_differ_in_their_sums_alone(end):
    first, second = RECORDS.copy(), RECORDS.copy()
    first[0], second[0] = end * SCALES, -end * SCALES
    assert find_difference(released, first, second, rng=3) is None


def test_every_contribution_lies_in_the_body():
    exponent = 29
    for record in ([1e300, 1.0, 0.0, 0.0], [np.inf, 0.0, 0.0, 0.0], [1e-300] * 4, [7.0, 7.0, 7.0, 7.0]):
        values, _ = sums_of(np.array([record]), on_invalid="center")
        assert bool(length_fits(values[:, None], exponent)[0])


def test_the_sum_knows_no_order_of_the_records():
    whole, _ = sums_of(RECORDS)
    turned, _ = sums_of(RECORDS[::-1])
    assert np.array_equal(whole, turned)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("budget", "marginal"), [(MU, stats.norm.cdf), (PureDP(1.0), None)], ids=["gaussian", "pure"])
def test_noise_has_the_shape_of_the_ellipsoid(budget, marginal):
    """3,000 releases at 1e−6: whitened noise is isotropic with the promised scale, 0.7 and 1.3 of it are rejected."""
    one = released(RECORDS, budget=budget)
    body = one.domain
    with overheard_noise() as tap:
        released(RECORDS, budget=budget)
    law = tap.said[0].law
    noise = np.stack([law.release(np.zeros(4, dtype=np.int64), np.random.default_rng(seed)) for seed in range(3000)])
    coordinates = body.body.restore(noise * one.step)
    whitened = coordinates @ body.basis / (body.axes / body.radius) / one.sigma
    lengths = np.linalg.norm(whitened, axis=1)
    exact = stats.chi(4).cdf if marginal else stats.gamma(4).cdf
    assert stats.kstest(lengths, exact).pvalue > 1e-6
    for wrong in (0.7, 1.3):
        assert stats.kstest(lengths / wrong, exact).pvalue < 1e-6
    directions = whitened / lengths[:, None]
    assert np.all(np.abs(np.mean(directions, axis=0)) < 6 / math.sqrt(4 * 3000))
    longest = np.argmax(body.axes)
    spread = np.std(coordinates @ body.basis, axis=0)
    assert np.allclose(spread / spread[longest], body.axes / body.radius, rtol=0.15)


def test_the_release_is_nearer_than_the_ball_and_the_sample_alone():
    truth = RECORDS.mean(axis=0)
    ours = np.mean([np.linalg.norm(released(RECORDS, rng=seed).value - truth) for seed in range(20)])
    ball = np.mean(
        [np.linalg.norm(private_mean(RECORDS, BALL, MU, refine=0, rng=seed).value - truth) for seed in range(20)]
    )
    assert ours < 0.5 * ball
    assert ours < np.linalg.norm(SAMPLE.mean(axis=0) - truth)


def test_the_ball_is_taken_where_it_is_expected_to_do_better():
    small = Ball(SPACE, np.zeros(4), 1e-3)
    release = private_mean(1e-6 * RECORDS, small, MU, public_sample=np.clip(SAMPLE, -1e-3, 1e-3), rng=0)
    assert release.public is None or release.public.predicted < release.expected_error.mean * 2
    many = np.zeros((200_000, 1))
    sample = np.array([[-1.0], [1.0], [0.5]])
    release = private_mean(many, Ball(Euclidean(1), [0.0], 1.0), GaussianDP(5.0), public_sample=sample, rng=0)
    assert release.public is None
    assert isinstance(release.domain, Ball)


def test_a_sample_is_held_against_the_radius_that_would_be_paid_for_without_it():
    """Five public records, none like another, in a ball far too large: one shot is worse, a paid radius better."""
    space = Euclidean(3)
    records = np.random.default_rng(0).standard_normal((20_000, 3))
    sample, ball = records[:5] * [[1.0], [5.0], [1.0], [0.1], [1.0]], Ball(space, np.zeros(3), 100.0)
    assert private_mean(records, ball, MU, public_sample=sample, refine=0, rng=0).public is not None
    alone = private_mean(records, ball, MU, public_sample=sample, rng=0)
    assert alone.public is None
    assert [stage.statistic for stage in alone.stages] == ["counts"]
    for refine in (0, "auto"):
        both = [private_mean(scale * records, ball, MU, public_sample=sample, refine=refine, rng=0) for scale in (1, 9)]
        assert len({each.public is None for each in both}) == 1


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("manifold", [SPD(3), Sphere(5), PlanarShapes(6)], ids=repr)
def test_on_curved_spaces_the_release_comes_to_the_frechet_mean(manifold):
    """With much budget and many records what is left is far below the distance between the two means."""
    center = manifold.random_point(rng=1)
    rng = np.random.default_rng(2)
    scales = np.geomspace(0.3, 0.02, manifold.dim)
    points = manifold.exp_coordinates(center, rng.standard_normal((3050, manifold.dim)) * scales)
    ball = Ball(manifold, center, 1.2)
    truth = frechet_mean(manifold, points[50:]).point
    release = private_mean(points[50:], ball, GaussianDP(20.0), public_sample=points[:50], rng=0)
    alone = float(manifold.dist(frechet_mean(manifold, points[:50]).point, truth))
    assert release.public is not None
    assert bool(ball.contains(release.value))
    assert float(manifold.dist(release.value, truth)) < 0.2 * alone


def test_the_release_says_what_the_sample_gave_and_is_written_down():
    release = released(RECORDS)
    assert dpm.Release.from_json(release.to_json()) == release
    text = release.summary()
    for words in ("public sample of 40 records", "mean of the sample alone", "ellipsoid of 4 axes", "noise alone"):
        assert words in text
    assert release.expected_error.mean == release.public.predicted
    assert isinstance(release.domain, Ellipsoid)
    assert release.n == 200


@thorough(("releases", "least"), (30, 16), (60, 40))
def test_confidence_regions_hold_the_mean_of_the_clipped_records(releases, least):
    held = []
    for seed in range(releases):
        release = released(RECORDS, rng=seed)
        clipped = release.domain.clip(RECORDS).mean(axis=0)
        held.append(bool(confidence_region(release, 0.9).contains(clipped)))
    # nine tenths on average; so few once in 10⁶
    assert sum(held) > least
    noise = np.random.default_rng(9).standard_normal((20_000, 4)) * release.sigma * release.domain.body.lengths
    lengths = np.linalg.norm(noise, axis=1)
    assert np.isclose(confidence_region(release, 0.9).radius, np.quantile(lengths, 0.9), rtol=0.03)
    with pytest.raises(DPManifoldsError, match="sample"):
        population_region(released(RECORDS), spread=1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"adjacency": "add-remove-one", "n_guess": 150},
        {"group_by": np.arange(200) // 2},
        {"on_invalid": "center"},
        {"numerics": "lattice"},
        {"mechanism": "wrapped-gaussian"},
        {"steps": 1},
    ],
    ids=str,
)
def test_every_other_option_works_with_a_sample(options):
    if options.get("numerics") == "lattice":
        pytest.importorskip("opendp")
    release = released(RECORDS, budget=ApproxDP(1.0, 1e-6), **options)
    assert release.public is not None
    assert np.all(np.isfinite(release.value))
    assert release.n == (None if "n_guess" in options else 100 if "group_by" in options else 200)


def test_records_may_come_in_blocks_and_samples_as_lists():
    whole = released(RECORDS)
    blocks = private_mean([RECORDS[:70], RECORDS[70:]], BALL, MU, public_sample=SAMPLE.tolist(), rng=1)
    assert np.allclose(whole.value, blocks.value)


BAD = {
    "one record": (SAMPLE[:1], "at least 3"),
    "no records": (SAMPLE[:0], "at least 3"),
    "no variation": (np.zeros((9, 4)), "does not vary"),
    "wrong shape": (np.ones((9, 3)), "shape"),
    "one axis too many": (SAMPLE[None], "leading axis"),
    "nan": (np.where(np.arange(40)[:, None] == 3, np.nan, SAMPLE), "finite"),
    "infinite": (np.where(np.arange(40)[:, None] == 3, np.inf, SAMPLE), "finite"),
    "words": ("public", "public_sample|array|number"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_sample_is_refused_before_anything_is_spent_or_drawn(case, monkeypatch):
    sample, words = BAD[case]
    spy = Spy()
    monkeypatch.setattr("dpmanifolds.ledger.as_ledger", lambda given: given)
    with overheard_noise() as tap, pytest.raises(DPManifoldsError, match=words):
        private_mean(RECORDS, BALL, MU, public_sample=sample, ledger=spy, dataset="people")
    assert spy.charged == []
    assert tap.said == []


def test_a_sample_off_the_manifold_is_refused():
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.0)
    with pytest.raises(DPManifoldsError, match="public_sample must lie on"):
        private_mean(Sphere(2).random_point(20, rng=0), ball, MU, public_sample=2 * np.eye(3))


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (Ellipsoid(SPACE, np.zeros(4), np.ones(4)), {}),
        (BALL, {"refine": 1}),
        (BALL, {"steps": 2}),
        (BALL, {"mechanism": "direct"}),
    ],
    ids=["ellipsoid", "refine", "steps", "direct"],
)
def test_a_sample_goes_with_a_ball_and_one_step(domain, options):
    with pytest.raises(DPManifoldsError, match="public_sample"):
        private_mean(RECORDS, domain, MU, public_sample=SAMPLE, **options)


def test_an_ellipsoid_of_ones_own_is_a_domain_like_any_other():
    body = Ellipsoid.from_sample(SPACE, SAMPLE, source="last year's survey")
    release = private_mean(RECORDS, body, PureDP(1.0), rng=0)
    assert dpm.Release.from_json(release.to_json()) == release
    assert "last year's survey" in repr(release.domain)
    assert bool(body.contains(release.value))
    with pytest.raises(DPManifoldsError, match="steps"):
        private_mean(RECORDS, body, PureDP(1.0), steps=2)
    held = [
        bool(confidence_region(drawn, 0.9).contains(body.clip(RECORDS).mean(axis=0)))
        for drawn in (private_mean(RECORDS, body, PureDP(1.0), rng=seed) for seed in range(60))
    ]
    assert sum(held) > 40


def test_class_means_take_ellipsoids_and_what_needs_a_ball_says_so():
    body = Ellipsoid(SPACE, np.zeros(4), 4 * SCALES)
    means = dpm.private_class_means(RECORDS, np.arange(200) % 2, body, GaussianDP(20.0), rng=0)
    for number, release in enumerate(means.releases):
        assert np.allclose(release.value, body.clip(RECORDS[number::2]).mean(axis=0), atol=0.2)
    for function in (dpm.private_variance, dpm.private_median, private_tangent_moment):
        with pytest.raises(DPManifoldsError, match="Ball"):
            function(RECORDS, body, MU)
