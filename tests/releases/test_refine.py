"""A radius that is paid for: much better in balls that are too large, hardly worse in those that fit, and honest."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    ApproxDP,
    Ball,
    Euclidean,
    GaussianDP,
    PureDP,
    Release,
    RenyiDP,
    ZeroConcentratedDP,
    frechet_mean,
    private_mean,
)
from dpmanifolds.auditing import audit_release, find_difference
from dpmanifolds.releases.refine import best_radius, moved_at_most
from dpmanifolds.releases.refine_plan import plan_rounds, rounds_for
from dpmanifolds.releases.statistic import check_request
from dpmanifolds.sums.counts import counts_noise
from tests.selection import thorough

DATA = Path(__file__).parents[3] / "shared" / "data" / "spd" / "dti_dipy_small_64D.npz"


def cloud(dim, n, extent, rng):
    """Records uniform in a ball of this radius, whose middle is at .2 of it from 0."""
    rows = rng.standard_normal((n, dim))
    rows *= rng.random((n, 1)) ** (1 / dim) / np.linalg.norm(rows, axis=-1, keepdims=True)
    return extent * (0.8 * rows + 0.2 * np.eye(dim)[0])


def errors(dim, n, extent, budget, count, **options):
    rng = np.random.default_rng(5)
    ball, found = Ball(Euclidean(dim), np.zeros(dim), 1.0), []
    for seed in range(count):
        points = cloud(dim, n, extent, rng)
        release = private_mean(points, ball, budget, rng=seed, **options)
        # the draw itself: what shrinkage makes of it is the same for both
        found.append(
            np.linalg.norm(
                release.coordinates + (0.0 if release.base is None else release.base) - np.mean(points, axis=0)
            )
        )
    return float(np.mean(found))


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(1.0)], ids=repr)
@pytest.mark.parametrize(("dim", "n"), [(6, 300), (6, 3000), (45, 1000), (100, 300)])
def test_a_ball_three_times_too_large_is_1_3_times_better_with_a_paid_radius(dim, n, budget):
    assert 1.3 * errors(dim, n, 1 / 3, budget, 20, refine=1) < errors(dim, n, 1 / 3, budget, 20, refine=0)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("dim", "n"), [(6, 1000), (45, 1000)])
def test_a_ball_that_fits_costs_little_more_with_a_paid_radius(dim, n):
    # the same seeds draw other noise: 60 releases each are known to ±4 % at d=6
    ratio = errors(dim, n, 1.0, GaussianDP(1.0), 60) / errors(dim, n, 1.0, GaussianDP(1.0), 60, refine=0)
    assert ratio < 1.06 + 0.15 / math.sqrt(dim)


@pytest.mark.skipif(not DATA.exists(), reason="the data set is not there")
def test_diffusion_tensors_err_by_what_is_told():
    points = np.load(DATA)["x"]
    points = points[np.all(np.linalg.eigvalsh(points) > 0, axis=-1)][:600]
    ball = Ball.from_eigenvalues(SPD(3), 1e-5, 1e-2)
    truth = frechet_mean(SPD(3), ball.clip(points)).point
    releases = [private_mean(points, ball, PureDP(1.0), refine=2, rng=seed) for seed in range(12)]
    error = np.mean([float(SPD(3).dist(truth, release.value)) for release in releases])
    told = np.mean([release.expected_error.mean for release in releases])
    assert error < 1.3 * told < 0.25


def test_empty_bins_beyond_the_records_do_not_keep_the_ball_large():
    edges = 2.0 ** (-np.arange(12)[::-1] / 2)
    counts = np.random.default_rng(0).normal(0, 6, 12)
    counts[7] += 500
    assert best_radius(counts, edges, 500.0, error=0.02)[0] == pytest.approx(edges[7])


def test_a_tail_that_is_noise_alone_does_not_keep_the_ball_large_and_one_of_records_does():
    """Of 24 bins the last is beyond the public ball. 100 histograms: the radius in the middle."""
    edges, rng = 2.0 ** (-np.arange(24)[::-1] / 2 + 0.5), np.random.default_rng(0)

    def middle(far):
        counts = np.zeros(24)
        counts[10], counts[21] = 1000 - far, far
        drawn = counts + 8 * rng.standard_normal((100, 24))
        return np.median([best_radius(row, edges, 1000.0, 0.01, reach=1.0, deviation=8.0)[0] for row in drawn])

    assert middle(0) == pytest.approx(edges[10])
    assert middle(200) > 0.7


def test_records_beyond_the_public_ball_count_as_at_its_edge_where_clipping_brings_them():
    edges = 2.0 ** (-np.arange(24)[::-1] / 2 + 0.5)
    counts = np.zeros(24)
    counts[21], counts[23] = 90, 10
    radius, moved = best_radius(counts, edges, 100.0, error=0.2, reach=1.0)
    assert radius == pytest.approx(2**-0.5)
    assert moved == pytest.approx(0.1 * (1 - 2**-0.5))


def test_a_ball_a_third_too_large_shrinks_to_its_records():
    """All within .7 of the radius: the bin beyond the ball is empty, and what is far is known to be near its edge."""
    rows = np.random.default_rng(0).uniform(-0.35, 0.35, (1000, 4))
    radii = [
        private_mean(rows, Ball(Euclidean(4), np.zeros(4), 1.0), GaussianDP(1.0), rng=s).domain.radius for s in range(8)
    ]
    assert np.median(radii) == pytest.approx(2**-0.5)


def test_auto_is_one_shot_where_what_a_histogram_leaves_of_the_budget_costs_more_than_six_per_cent():
    """In three dimensions a point (ε, δ) is nearly all ε, and a histogram as fine as the mean takes a sixth of it."""
    budget = ApproxDP(3.0, 1e-6)
    points = np.random.default_rng(0).normal(0, 0.05, (500, 3))
    ball = Ball(Euclidean(3), np.zeros(3), 1.0)
    auto, paid, plain = (private_mean(points, ball, budget, refine=way, rng=0) for way in ("auto", 1, 0))
    assert not auto.stages
    assert paid.stages
    assert auto.sigma == plain.sigma


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(1.0), ApproxDP(1.0, 1e-6), ApproxDP(3.0, 1e-6)], ids=repr)
@pytest.mark.parametrize("dim", [2, 3, 6, 21])
def test_where_auto_pays_the_rest_of_the_budget_is_worth_six_per_cent_less_at_most(budget, dim):
    for n in (50, 300, 2000):
        request = check_request(Ball(Euclidean(dim), np.zeros(dim), 1.0), budget)
        if rounds_for(request, n):
            paid, once = plan_rounds(request, n, 1, 1), request.plan(n)
            assert paid.plans[0].expected_error.mean <= 1.06 * once.expected_error.mean


def test_the_floor_is_kept():
    edges = 2.0 ** (-np.arange(12)[::-1] / 2)
    assert best_radius(np.eye(12)[0] * 100, edges, 100.0, error=0.1, floor=0.3) == (0.3, 0.0)


UNIT = Ball(Euclidean(3), np.zeros(3), 1.0)


def is_paid(n, budget, dim=6, scale=0.1):
    points = np.random.default_rng(n).normal(0, scale, (n, dim))
    return bool(private_mean(points, Ball(Euclidean(dim), np.zeros(dim), 1.0), budget, rng=0).stages)


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize(
    ("budget", "dim", "least"),
    [
        (GaussianDP(1.0), 2, 26),
        (GaussianDP(4.0), 6, 7),
        (PureDP(1.0), 6, 283),
        (ApproxDP(1.0, 1e-6), 21, 107),
    ],
    ids=repr,
)
def test_auto_pays_for_a_radius_from_4_deviations_of_a_count_on(budget, dim, least):
    assert not is_paid(least - 1, budget, dim)
    assert is_paid(least, budget, dim)


def test_auto_pays_for_no_radius_where_counts_are_coarser_than_the_noise_of_the_mean():
    assert [dim for dim in range(2, 9) if is_paid(5000, PureDP(1.0), dim)] == [5, 6, 7, 8]


def test_auto_is_decided_without_the_records():
    for n in (25, 26):
        assert len({is_paid(n, GaussianDP(1.0), scale=scale) for scale in (1e-6, 0.1, 10.0, 1e6)}) == 1


def test_auto_is_one_shot_where_a_radius_cannot_be_paid_for():
    blocks = [np.full((400, 3), 0.1)] * 2
    for points, options in (
        (iter(blocks), {}),
        (lambda: iter(blocks), {}),
        (np.concatenate(blocks), {"numerics": "lattice"}),
        (np.concatenate(blocks), {"refine": 0}),
    ):
        release = private_mean(points, UNIT, GaussianDP(1.0), rng=0, **options)
        assert (release.stages, release.domain, release.n) == ((), UNIT, 800)


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize(
    "budget",
    [
        PureDP(2.0),
        GaussianDP(1.0),
        ZeroConcentratedDP(0.5),
        RenyiDP(8.0, 1.0),
        ApproxDP(1.0, 1e-6),
        ApproxDP(3.0, 1e-6),
    ],
    ids=repr,
)
def test_histogram_and_mean_together_are_within_the_budget(budget):
    ball = Ball(Euclidean(21), np.zeros(21), 1.0)
    points = cloud(21, 1000, 0.2, np.random.default_rng(0))
    releases = [private_mean(points, ball, budget, rng=seed) for seed in range(5)]
    release = releases[0]
    assert [stage.statistic for stage in release.stages] == ["counts"]
    assert release.guarantee.fits(budget)
    assert np.median([each.domain.radius for each in releases]) <= 0.25
    assert Release.from_json(release.to_json()) == release


def test_a_point_epsilon_delta_is_cut_for_less_than_six_hundredths_of_the_error():
    """The mean keeps noise of its own profile: cut as a Gaussian μ it would err by a fifth more."""
    ball, points = Ball(Euclidean(21), np.zeros(21), 1.0), np.zeros((1000, 21))
    points[:, 0] = 1.0
    paid, once = (private_mean(points, ball, ApproxDP(1.0, 1e-6), refine=refine, rng=0) for refine in ("auto", 0))
    assert paid.mechanism == once.mechanism == "wrapped-laplace"
    assert paid.domain.radius == 1.0
    assert 1.0 < paid.sigma / once.sigma < 1.06


def test_secret_numbers_and_persons_get_a_paid_radius_too():
    points = cloud(3, 1200, 0.1, np.random.default_rng(0))
    for options in ({"adjacency": "add-remove-one", "n_guess": 1000}, {"group_by": np.arange(1200) // 2}):
        release = private_mean(points, UNIT, GaussianDP(1.0), rng=3, **options)
        assert len(release.stages) == 1
        assert release.domain.radius < 1.0


def test_neighbours_at_the_edges_of_bins_differ_in_noisy_sums_alone():
    edges = 2.0 ** (-np.arange(6) / 2)
    ball, rest = Ball(Euclidean(2), np.zeros(2), 1.0), np.tile([[0.3, 0.0]], (23, 1))

    def released(points, rng):
        return private_mean(points, ball, GaussianDP(8.0), rng=rng)

    for edge in edges:
        for other in (np.nextafter(edge, 2), np.nextafter(edge, 0), np.inf, np.nan, 1e300):
            one, two = (np.vstack([rest, [[place, 0.0]]]) for place in (edge, other))
            if np.isfinite(other):
                assert find_difference(released, one, two, rng=0) is None


@thorough("histograms", 500, 2000)
@pytest.mark.parametrize("budget", [PureDP(0.05), GaussianDP(0.2)], ids=repr)
def test_clipping_moves_the_mean_by_more_than_is_told_in_one_release_of_twenty_at_most(budget, histograms):
    """At the worst edge of all, in 500 histograms or more: far below 5 %, as 24 edges share it."""
    rng, edges = np.random.default_rng(3), 2.0 ** (-np.arange(24)[::-1] / 2)
    noise = counts_noise(24, budget, "record")
    lengths = rng.uniform(0, 1, 500) ** 3
    places = np.searchsorted(edges, lengths)
    counts = np.bincount(places, minlength=24)
    truth = {edge: np.mean(np.maximum(lengths - edge, 0)) for edge in edges.tolist()}
    missed = 0
    for _ in range(histograms):
        noisy = noise.draw(counts, rng)
        missed += any(moved_at_most(noisy, edges, 500.0, edge, noise) < true for edge, true in truth.items())
    assert missed <= histograms / 20


@pytest.mark.parametrize(("dim", "n", "share"), [(2, 400, 0.0), (6, 400, 0.02), (6, 3000, 0.02)])
def test_the_told_ninety_per_cent_hold_the_mean_of_the_unclipped_records(dim, n, share):
    """A share of the records far out on one side: what is cut off there all points one way. 60 releases each."""
    points = cloud(dim, n, 0.2, np.random.default_rng(1))
    points[: round(share * n)] = 0.95 * np.eye(dim)[0]
    ball, held = Ball(Euclidean(dim), np.zeros(dim), 1.0), []
    for seed in range(60):
        release = private_mean(points, ball, GaussianDP(1.0), rng=seed)
        held.append(np.linalg.norm(release.value - np.mean(points, axis=0)) <= release.expected_error.radius_90)
    assert np.mean(held) >= 0.88
    assert ("paid for" in release.clipping_statement) == (release.domain.radius < 1.0)


@pytest.mark.long
@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (0.7, True)])
def test_an_audit_of_the_paid_radius_catches_three_tenths_too_little_noise(factor, caught):
    """μ = 2 on the line, n = 80, from one bin to another and across; 700 calls on each neighbour."""
    line = Ball(Euclidean(1), np.zeros(1), 1.0)

    def released(records, rng):
        return private_mean(records, line, GaussianDP(2.0), mechanism="wrapped-gaussian", rng=rng)

    one, two = (np.vstack([np.zeros((79, 1)), [[end]]]) for end in (1.3, -0.6))
    report = audit_release(released, one, two, draws=700, noise_factor=factor, rng=5)
    assert report.flagged is caught
