"""Regions hold what they promise to hold, as often as they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmanifolds as dpm
from dpmanifolds import SPD, ApproxDP, Ball, Euclidean, Hyperbolic, PureDP, Sphere
from dpmanifolds.sums import calibrate, mean_facts
from tests.selection import thorough

SPACES = [Euclidean(3), SPD(2), SPD(2, "log-euclidean"), Sphere(2), Hyperbolic(2), dpm.SpecialOrthogonal(3)]


def covered(region_of, truth, count):
    return sum(bool(region_of().contains(truth)) for _ in range(count))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize(
    ("mechanism", "numerics"), [("auto", "safe"), ("auto", "lattice"), ("riemannian-laplace", "idealized")]
)
def test_the_answer_without_privacy_is_covered_as_often_as_stated(space, mechanism, numerics):
    """400 releases of a fixed seed at level 0.8 against Binomial(400, 0.8): false alarm below 1e−6 for each case.

    Projection only adds coverage.
    """
    center = space.random_point(rng=1)
    ball = Ball(space, center, 0.6)
    records = ball.clip(space.random_point(60, rng=0))
    truth = dpm.frechet_mean(space, records).point
    rng = np.random.default_rng(4)
    if mechanism == "auto":
        logs = space.log_coordinates(center, records).mean(axis=0)
        truth = space.exp(center, space.from_coordinates(center, logs))
        drawn = [dpm.private_mean(records, ball, PureDP(2.0), numerics=numerics, steps=1, rng=rng) for _ in range(400)]
        region = dpm.confidence_region(drawn[0], 0.8)
    else:
        release = dpm.private_mean(records, ball, PureDP(2.0), mechanism=mechanism, numerics=numerics)
        law = calibrate(release.mechanism, mean_facts(ball, 60), PureDP(2.0), release.numerics)
        region = dpm.confidence_region(release, 0.8)
        draws = (law.draw(truth, rng=rng) for _ in range(400))
        drawn = [replace(release, value=draw.point, coordinates=draw.coordinates) for draw in draws]
    hits = sum(bool(replace(region, release=one).contains(truth)) for one in drawn)
    assert hits >= stats.binom.ppf(5e-7, 400, 0.8)
    assert hits <= stats.binom.ppf(1 - 5e-7, 400, 0.8) or region.radius > 0.3 * ball.radius


def test_a_smaller_level_gives_a_smaller_region():
    ball = Ball(SPD(2), np.eye(2), 1.0)
    release = dpm.private_mean(SPD(2).random_point(60, rng=0), ball, ApproxDP(1.0, 1e-6))
    radii = [dpm.confidence_region(release, level).radius for level in (0.5, 0.9, 0.99)]
    assert radii == sorted(radii)


@thorough("draws", 100, 200)
def test_a_released_number_has_an_interval(draws):
    """Variances at level 0.5 against Binomial(draws, 0.5): false alarm below 1e−6."""
    ball = Ball(SPD(2), np.eye(2), 2.0)
    records = ball.clip(SPD(2).random_point(400, rng=0))
    truth = np.mean(SPD(2).dist(dpm.frechet_mean(SPD(2), records).point, records) ** 2)
    hits = covered(lambda: dpm.confidence_region(dpm.private_variance(records, ball, PureDP(1.0)), 0.5), truth, draws)
    assert stats.binom.ppf(5e-7, draws, 0.5) <= hits <= stats.binom.ppf(1 - 5e-7, draws, 0.5)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("space", [Euclidean(2), SPD(2), Sphere(2)], ids=repr)
def test_the_population_mean_is_covered(space):
    """A conservative region: 60 fresh samples at level 0.9, at least Binomial's 1e−6 quantile of hits."""
    truth = space.random_point(rng=3)
    ball = Ball(space, truth, 0.7)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        vectors = space.from_coordinates(truth, rng.uniform(-0.3, 0.3, size=(300, space.dim)))
        release = dpm.private_mean(space.exp(truth, vectors), ball, PureDP(1.0))
        spread = 0.3 / np.sqrt(3) * np.sqrt(space.dim)
        hits += bool(dpm.population_region(release, spread=spread, level=0.9).contains(truth))
    assert hits >= stats.binom.ppf(1e-6, 60, 0.9)


def test_regions_are_refused_where_none_is_known():
    ball = Ball(Sphere(2), np.array([0.0, 0.0, 1.0]), 1.2)
    records = ball.clip(Sphere(2).random_point(100, rng=0))
    release = dpm.private_mean(records, ball, PureDP(1.0))
    with pytest.raises(dpm.NotAvailableError, match="convex"):
        dpm.population_region(release, spread=0.5)
    with pytest.raises(dpm.ArgumentError, match="level"):
        dpm.confidence_region(release, 1.0)
    with pytest.raises(dpm.ArgumentError, match="Release"):
        dpm.confidence_region("release", 0.9)
    kng = dpm.private_mean(records, ball, PureDP(1.0), mechanism="k-norm-gradient", numerics="idealized")
    with pytest.raises(dpm.NotAvailableError, match="depends on the records"):
        dpm.confidence_region(kng)
    with pytest.raises(dpm.NotAvailableError, match="means only"):
        dpm.population_region(dpm.private_variance(records, ball, PureDP(1.0)), spread=0.5)
