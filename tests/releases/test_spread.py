"""Private means with spreads: what is released, by which sums, and whether regions hold the population's mean."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import GaussianDP, NotAvailableError, NotOnManifoldError, PureDP
from dpmanifolds.auditing.front_door import overheard_noise
from dpmanifolds.releases.population import region_law
from dpmanifolds.releases.spread import estimate_mean, read_spread

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from coverage_simulation import Population, Simulation

NORTH = np.array([0.0, 0.0, 1.0])
BALL = dpm.Ball(dpm.Sphere(2), NORTH, radius=1.0)
RECORDS = BALL.clip(dpm.Sphere(2).random_point(400, rng=0))


def released(records=RECORDS, ball=BALL, budget=GaussianDP(1.0), **options):  # noqa: B008
    return dpm.private_mean_and_spread(records, ball, budget, **{"rng": 0, **options})


@pytest.mark.parametrize(
    "budget",
    [
        PureDP(2.0),
        GaussianDP(1.0),
        dpm.ZeroConcentratedDP(0.5),
        pytest.param(dpm.ApproxDP(1.0, 1e-6), marks=pytest.mark.long),
    ],
)
def test_the_promise_of_all_sums_together_keeps_the_budget(budget):
    release = released(budget=budget)
    assert release.guarantee.fits(budget)
    assert release.guarantee.adjacency == "replace-one"
    assert dpm.compose(*(stage.guarantee for stage in release.stages)).fits(budget)


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize(
    ("space", "center", "radius"),
    [
        (dpm.SPD(3), np.eye(3), 1.5),
        (dpm.Hyperbolic(3), dpm.Hyperbolic(3).origin, 1.5),
        (dpm.PlanarShapes(8), dpm.PlanarShapes(8).random_point(rng=0), 0.6),
        (dpm.Euclidean(2), np.zeros(2), 3.0),
        (dpm.Sphere(2), NORTH, 1.0),
    ],
    ids=["SPD(3)", "H3", "shapes", "plane", "S2"],
)
@pytest.mark.parametrize("n", [60, 120])  # it looks at large data sets one by one
def test_many_data_sets_at_once_are_released_as_one_by_one(space, center, radius, n):
    people = Population.of(space, center, radius)
    points = people.draw(3, n, np.random.default_rng(4))
    simulation = Simulation.of(people.ball, n, GaussianDP(3.0))
    made, noises = [], []
    for each in points:
        with overheard_noise() as tap:
            made.append(released(each, people.ball, GaussianDP(3.0), rng=len(made)))
        noises.append([(said.noisy - said.values).astype(np.float64) for said in tap.said])
    plan, scaled = simulation.plan, []
    laws = () if plan.rough is None else plan.rough.laws
    for number, law in enumerate(laws):
        scaled.append(np.stack([noise[number] for noise in noises]) * law.step)
    assert plan.squares is not None
    scaled.append(np.stack([noise[-1] for noise in noises]) / plan.squares.steps / n)
    batch = simulation.release(points, scaled, space.log_coordinates(people.ball.center, points))
    for row, release in enumerate(made):
        assert release.spread is not None
        assert batch.deviations[1][row] == pytest.approx(release.spread.moment, rel=1e-5)
        mean, noisy = read_spread(release)
        place, _ = estimate_mean(release)
        assert np.allclose(batch.noisy[row], noisy, atol=1e-6)
        assert np.allclose(batch.place[row], place, atol=1e-6)
        assert mean.shape == place.shape


def test_regions_hold_the_mean_of_the_population_and_would_not_with_30_per_cent_less_noise():
    # 4,000 data sets: a true 95 % leaves [93.4 %, 96.6 %] once in 500,000 times
    people = Population.of(dpm.Sphere(2), NORTH, 1.0)
    simulation = Simulation.of(people.ball, 60, GaussianDP(0.7))
    rng = np.random.default_rng(0)
    space, points = dpm.Sphere(2), people.draw(4000, 60, rng)
    seen = space.log_coordinates(people.ball.center, points)
    batch = simulation.release(points, simulation.noises(4000, rng), seen)
    gaps = space.to_coordinates(batch.base, space.log(batch.base, people.center)) - batch.place

    def covered(part):
        law = region_law([part])
        return np.mean(np.einsum("bi,bij,bj->b", gaps, law.weight, gaps) <= law.threshold(0.95))

    assert 0.934 < covered(batch.part) < 0.975
    assert covered(batch.part._replace(noise=0.49 * batch.part.noise)) < 0.91
    assert covered(batch.part._replace(noise=1.69 * batch.part.noise)) > 0.975


def test_a_region_says_what_it_is_about_and_what_it_assumes():
    release = released()
    region = dpm.population_region(release, level=0.95)
    assert region.contains(release.value)
    assert not region.contains(-NORTH)
    assert region.shape is not None
    assert region.radius == pytest.approx(np.sqrt(np.linalg.eigvalsh(region.shape)[-1]))
    assert "independent" in region.assumption
    assert "95% region for the population mean: an ellipsoid" in str(region)
    assert dpm.population_region(release, level=0.5).radius < region.radius
    assert "tested from n = 50" in dpm.population_region(released(RECORDS[:20]), level=0.9).assumption
    stated = dpm.population_region(dpm.private_mean(RECORDS, dpm.Ball(dpm.Sphere(2), NORTH, 0.5), PureDP(1.0)), 0.4)
    assert "For every n" in stated.assumption


def test_the_trace_alone_gives_a_ball_that_is_too_large_rather_than_too_small():
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 3.0)
    rng = np.random.default_rng(0)
    hits = []
    for seed in range(20):
        records = rng.standard_normal((40, 2)) * [1.0, 0.1]
        release = released(records, ball, PureDP(1.0), rng=seed)
        assert release.spread.kind == "variance"
        region = dpm.population_region(release, level=0.9)
        hits.append(bool(region.contains(np.zeros(2))))
        assert np.allclose(region.shape, region.radius**2 * np.eye(2))
    # at a true 90 % fewer than 10 of 20 once in 1,000,000 times
    assert sum(hits) >= 10
    assert "larger than need be" in region.assumption


def test_json_goes_both_ways_with_the_spread():
    release = released()
    again = dpm.Release.from_json(release.to_json())
    assert again == release
    assert again.spread == release.spread
    assert dpm.population_region(again).radius == dpm.population_region(release).radius
    assert "mean and spread of 400 records" in release.summary()


def test_records_come_in_every_form_and_malformed_ones_are_told_or_count_as_the_centre():
    blocks = np.array_split(RECORDS, 3)
    for points in (blocks, lambda: iter(blocks), RECORDS.astype(np.float64)[::1], np.asfortranarray(RECORDS)):
        assert np.array_equal(released(points).coordinates, released().coordinates)
    frozen = RECORDS.copy()
    frozen.flags.writeable = False
    assert np.array_equal(released(frozen).coordinates, released().coordinates)
    assert released(RECORDS.astype(np.float32)).value.shape == (3,)
    spoiled, mended = RECORDS.copy(), RECORDS.copy()
    spoiled[5], mended[5] = np.nan, NORTH
    with pytest.raises(NotOnManifoldError):
        released(spoiled)
    assert np.array_equal(released(spoiled, on_invalid="center").coordinates, released(mended).coordinates)


@pytest.mark.parametrize(
    ("points", "ball", "options", "error", "words"),
    [
        (RECORDS[:1], BALL, {}, dpm.ArgumentError, "at least 2 records"),
        (RECORDS[:0], BALL, {}, dpm.DPManifoldsError, "at least|empty"),
        (RECORDS[:, :2], BALL, {}, dpm.DPManifoldsError, "shape"),
        (iter([RECORDS]), BALL, {}, dpm.ArgumentError, "once"),
        (RECORDS, dpm.Ellipsoid(dpm.Sphere(2), NORTH, [0.5, 0.2]), {}, dpm.ArgumentError, "Ball"),
        (RECORDS, BALL, {"budget": 1.0}, dpm.ArgumentError, "budget"),
        (RECORDS, BALL, {"on_invalid": "drop"}, dpm.ArgumentError, "on_invalid"),
        (RECORDS, BALL, {"dataset": "x"}, dpm.ArgumentError, "ledger"),
    ],
)
def test_bad_input_is_refused_with_words(points, ball, options, error, words):
    with pytest.raises(error, match=words):
        released(points, ball, **options)


def test_a_refusal_spends_nothing_and_a_release_is_charged_once(tmp_path):
    ledger = dpm.Ledger(tmp_path / "book.sqlite")
    ledger.open_dataset("study", GaussianDP(1.0))
    spoiled = RECORDS.copy()
    spoiled[0] = np.nan
    account = {"ledger": ledger, "dataset": "study"}
    for refused in (spoiled, RECORDS[:1]):
        with pytest.raises(dpm.DPManifoldsError):
            dpm.private_mean_and_spread(refused, BALL, GaussianDP(1.0), **account)
    dpm.private_mean_and_spread(RECORDS, BALL, GaussianDP(1.0), **account)
    with pytest.raises(dpm.BudgetExceededError):
        dpm.private_mean_and_spread(RECORDS, BALL, GaussianDP(0.1), **account)


def test_regions_of_other_releases_say_what_is_missing():
    mean = dpm.private_mean(RECORDS, BALL, PureDP(1.0))
    with pytest.raises(NotAvailableError, match="private_mean_and_spread"):
        dpm.population_region(mean)
    with pytest.raises(dpm.ArgumentError, match="spread of its own"):
        dpm.population_region(released(), 0.5)
    with pytest.raises(NotAvailableError, match="population_region"):
        dpm.confidence_region(released())
    with pytest.raises(dpm.ArgumentError, match="Release"):
        read_spread("release")


def test_the_value_is_in_the_domain_however_large_the_noise_is():
    with pytest.warns(dpm.NoiseExceedsDomainWarning):
        release = released(RECORDS[:5], budget=GaussianDP(0.05))
    assert BALL.contains(release.value)
    assert np.isfinite(dpm.population_region(release).radius)
    assert replace(release, reproducible=False).noise_warning


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("space", [dpm.Product(dpm.Sphere(2), dpm.SPD(2)), dpm.Power(dpm.Hyperbolic(2), 2)], ids=repr)
def test_products_are_released_and_each_factor_bends_on_its_own(space):
    rng, center = np.random.default_rng(0), space.random_point(rng=1)
    ball = dpm.Ball(space, center, radius=1.0)
    points = space.exp_coordinates(center, 0.2 * rng.normal(size=(300, space.dim)))
    release = dpm.private_mean_and_spread(points, ball, GaussianDP(1.0), rng=0)
    assert ball.contains(release.value)
    assert dpm.population_region(release).radius > 0
    inverse = np.linalg.inv(estimate_mean(release)[1])
    (first, _), *_ = space.factors_of(release.viewpoint)
    # records of one factor move the gradient of another by nothing
    assert not np.any(inverse[: first.dim, first.dim :].round(12))
    both = dpm.private_difference(points, points.copy(), ball, GaussianDP(1.0), rng=0)
    assert both.zero_inside
    assert dpm.synthesize(release, 3, rng=0).is_synthetic


def test_a_spread_beyond_what_floating_point_holds_is_released_all_the_same():
    """In so wide a ball no matrix at the released spread can be factorised: the budget is spent by then."""
    space = dpm.SPD(4)
    ball, rng = dpm.Ball(space, np.eye(4), radius=60.0), np.random.default_rng(0)
    for seed in range(8):
        rows = rng.normal(size=(20, space.dim))
        points = space.exp_coordinates(np.eye(4), rows * (54 / np.linalg.norm(rows, axis=1))[:, None])
        release = dpm.private_mean_and_spread(points, ball, GaussianDP(3.0), on_invalid="center", rng=seed)
        assert np.all(np.isfinite(release.value))


@pytest.mark.parametrize("budget", [PureDP(3.0), GaussianDP(3.0)], ids=repr)  # a trace alone, and a covariance
def test_persons_with_several_records_count_with_their_means(budget):
    rows = 0.4 + 0.2 * np.random.default_rng(1).standard_normal((80, 2))
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius=1.5)
    release = dpm.private_mean_and_spread(rows, ball, budget, group_by=np.arange(80) // 2, rng=0)
    assert release.n == 40
    mean, spread = read_spread(release)
    # six deviations of the noise
    assert np.linalg.norm(mean - rows.mean(axis=0)) < 6 * release.spread.mean * np.sqrt(2)
    truth = np.sum(np.var(rows, axis=0))
    assert abs(float(np.trace(spread)) - truth) < 6 * release.spread.moment * 2
    assert np.linalg.norm(rows.mean(axis=0)) > 6 * release.spread.mean * np.sqrt(2)
