"""The private covariance: positive definite, near the true one, with the noise that is promised and no more."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import (
    SPD,
    ApproxDP,
    ArgumentError,
    Ball,
    Euclidean,
    GaussianDP,
    NotOnManifoldError,
    PureDP,
    ZeroConcentratedDP,
    private_covariance,
)
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.releases.covariance import released_mean

METHODS = ("one-shot", "radius", "center")
ONE = {"about": "origin", "method": "one-shot"}
"""The noise of the squares alone, at the public bound."""


def vectors(n, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dim)) / math.sqrt(dim)


def clipped_moment(rows, radius):
    short = rows * np.minimum(1, radius / np.linalg.norm(rows, axis=1))[:, None]
    return short.T @ short / len(short)


def error(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


@pytest.mark.grid
@pytest.mark.parametrize("about", ["mean", "origin"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove-one"])
@pytest.mark.parametrize("budget", [GaussianDP(400.0), ZeroConcentratedDP(700.0), PureDP(700.0)], ids=repr)
def test_with_a_large_budget_it_is_the_covariance_whatever_was_paid_for(about, method, adjacency, budget):
    """Around a centre that is not 0, within a bound that holds all; noise and lattice leave less than 1 %."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4000, 4)) * [3.0, 1.0, 0.5, 0.5] + [2.0, -1.0, 0.0, 4.0]
    center = np.array([1.0, 0.0, 0.5, 2.0])
    ball = Ball(Euclidean(4), center, 40.0)
    count = {} if adjacency == "replace-one" else {"n_guess": 3000}
    release = private_covariance(table, ball, budget, about=about, method=method, adjacency=adjacency, rng=1, **count)
    truth = np.cov(table.T, bias=True) if about == "mean" else (table - center).T @ (table - center) / 4000
    assert error(release.value, truth) < 0.01
    assert bool(SPD(4).belongs(release.value))
    assert release.guarantee.fits(budget)
    assert release.guarantee.adjacency == adjacency
    assert len(release.stages) == METHODS.index(method)
    assert (release.n, release.domain) == (4000 if adjacency == "replace-one" else None, ball)
    assert dpm.Release.from_json(release.to_json()) == release
    if about == "mean":
        assert np.allclose(released_mean(release), table.mean(axis=0), atol=0.01)


def test_centre_first_reaches_what_it_is_for_on_digits():
    """64 columns, 1797 rows, the public bound 128, ρ = 0.1: on average at most 0.055, where noise alone has 0.35.

    8 releases; one of them has a standard deviation of 0.005, so that their mean is 0.005 below the limit by four.
    """
    table = pytest.importorskip("sklearn.datasets").load_digits().data
    truth = table.T @ table / len(table)
    rng = np.random.default_rng(0)
    found = [private_covariance(table, 128.0, ZeroConcentratedDP(0.1), about="origin", rng=rng) for _ in range(8)]
    assert np.mean([error(each.value, truth) for each in found]) <= 0.055
    assert [stage.statistic for stage in found[0].stages] == ["mean", "counts"]
    plain = private_covariance(table, 128.0, ZeroConcentratedDP(0.1), rng=rng, **ONE)
    assert error(from_upper_triangle(plain.coordinates, 64), truth) > 0.4


def test_spectra_that_fall_as_one_over_i_are_found_at_two_hundred_columns():
    """Eigenvalues 1/i, n = 4000, scaled so that the longest vector has length 1, ρ = 0.1: at most 0.42."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((4000, 200)) / np.sqrt(np.arange(1, 201))
    table /= np.linalg.norm(table, axis=1).max()
    release = private_covariance(table, 1.0, ZeroConcentratedDP(0.1), about="origin", rng=1)
    assert error(release.value, table.T @ table / 4000) <= 0.42


@pytest.mark.parametrize(
    ("budget", "dim", "mechanism"),
    [
        (PureDP(1.0), 1, "wrapped-laplace"),
        (PureDP(1.0), 2, "wrapped-laplace"),
        (PureDP(1.0), 10, "wishart-difference"),
        (ApproxDP(1.0, 1e-6), 5, "wishart-difference"),
        (ApproxDP(1.0, 1e-6), 40, "wrapped-gaussian"),
        (GaussianDP(0.5), 5, "wrapped-gaussian"),
    ],
)
def test_the_noise_that_is_smaller_off_the_diagonal_is_taken(budget, dim, mechanism):
    release = private_covariance(vectors(500, dim), 1.0, budget, rng=0, **ONE)
    assert release.mechanism == mechanism
    assert release.numerics == "rounded"
    assert release.n == 500
    assert release.guarantee.fits(budget)
    assert dpm.Release.from_json(release.to_json()) == release
    assert bool(SPD(dim).belongs(release.value))


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("dim", [1, 2, 3, 20])
@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("budget", [GaussianDP(0.1), PureDP(0.1), ApproxDP(0.5, 1e-9)], ids=repr)
def test_the_value_is_positive_definite_however_loud_the_noise_is(dim, n, budget):
    for about in ("mean", "origin"):
        for method in ("auto", *METHODS):
            release = private_covariance(vectors(n, dim), 3.0, budget, about=about, method=method, rng=0)
            assert release.value.shape == (dim, dim)
            assert bool(SPD(dim).belongs(release.value))
            assert np.linalg.eigvalsh(release.value)[-1] <= 9.0 * (1 + 1e-9)
            assert release.guarantee.fits(budget)


def test_scale_and_step_are_told_in_the_units_of_the_records():
    release = private_covariance(3 * vectors(500, 10), 3.0, PureDP(2.0), rng=0, **ONE)
    assert release.sigma == pytest.approx(9 * 2 / 500 / 2.0, rel=1e-6)
    assert release.guarantee.as_pure().epsilon == 2.0
    assert float(release.sensitivity) == pytest.approx(9 * 2 / 500, rel=1e-6)
    assert release.step == pytest.approx(9 / 500 / 4**24, rel=1e-6)
    gaussian = private_covariance(3 * vectors(500, 10), 3.0, GaussianDP(2.0), rng=0, **ONE)
    assert gaussian.sigma == pytest.approx(9 * math.sqrt(2) / 500 / 2.0, rel=1e-6)
    assert float(gaussian.sensitivity) == pytest.approx(9 * math.sqrt(2) / 500, rel=1e-6)
    joint = private_covariance(3 * vectors(500, 10), 3.0, GaussianDP(2.0), method="one-shot", rng=0)
    assert joint.sigma == pytest.approx(9 * 1.25 * math.sqrt(2) / 500 / 2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("budget", "dim", "off_diagonal", "releases"),
    [
        pytest.param(GaussianDP(1.0), 3, 1.0, 300, id="gaussian"),
        pytest.param(PureDP(1.0), 2, 2.0, 1200, id="laplace", marks=pytest.mark.long),
        pytest.param(PureDP(1.0), 4, math.sqrt(10), 1200, id="wishart", marks=pytest.mark.long),
    ],
)
def test_noise_has_its_known_deviation_off_the_diagonal_and_root_two_of_it_on_it(budget, dim, off_diagonal, releases):
    """In units of C²/n: 1/μ; √2·√((D+1)/2)/ε with D = 3; √(2(d+1))/ε. Many releases of one table.

    Kurtosis is 3 of Gaussian noise and below 9 of the others, so that a mean of 300 or of 1200 squares, of entries that
    are uncorrelated in their squares or nearly so, has a relative error of at most √(2/300) = √(8/1200) = 0.082: 5 of
    them are 0.41, at a false-alarm rate below 1e−6; noise that is 30 % smaller has 0.49 of the square, and 0.51 is
    missing.
    """
    table, rng = vectors(50, dim, seed=5), np.random.default_rng(7)
    exact = clipped_moment(table, 2.0)
    gaps = np.stack(
        [
            from_upper_triangle(private_covariance(table, 2.0, budget, rng=rng, **ONE).coordinates, dim) - exact
            for _ in range(releases)
        ]
    ) / (4.0 / 50)
    above, diagonal = np.mean(gaps[:, 0, 1] ** 2), np.mean(gaps[:, 1, 1] ** 2)
    assert above == pytest.approx(off_diagonal**2, rel=0.41)
    assert diagonal == pytest.approx(2 * off_diagonal**2, rel=0.41)
    pooled = np.mean([np.mean(gaps[:, i, j] ** 2) for i in range(dim) for j in range(i)])
    assert pooled == pytest.approx(off_diagonal**2, rel=0.41)
    assert 0.49 * pooled != pytest.approx(off_diagonal**2, rel=0.41)


def test_the_mean_that_comes_along_has_the_noise_of_the_theorem():
    """κ = r/2 and L² = r² + κ²: a number of the mean has the deviation L²/(nμκ), one of the squares L²/(nμ) off the
    diagonal. 150 releases of 3 numbers each: 450 squares are within 0.35 of 1 at a false-alarm rate of 1e−6; with 30 %
    less noise they are at 0.49."""
    table, rng = vectors(50, 3, seed=5), np.random.default_rng(8)
    found = np.stack(
        [private_covariance(table, 2.0, GaussianDP(1.0), method="one-shot", rng=rng).coordinates for _ in range(150)]
    )
    unit = 4.0 * 1.25 / 50
    means = (found[:, 6:] - table.mean(axis=0)) / (unit / 1.0)
    above = (found[:, 3:6] - upper_triangle(table.T @ table / 50)[3:]) / (unit * math.sqrt(2))
    for gaps in (means, above):
        assert np.mean(gaps**2) == pytest.approx(1.0, abs=0.35)


def test_streams_and_arrays_give_the_same_release(tmp_path):
    table = vectors(3000, 3)
    np.save(tmp_path / "table.npy", table)
    frozen = table.copy()
    frozen.flags.writeable = False
    forms = [
        table,
        frozen,
        np.asfortranarray(table),
        np.array_split(table, 7),
        lambda: iter(np.array_split(table, 11)),
        np.load(tmp_path / "table.npy", mmap_mode="r"),
        table.tolist(),
    ]
    released = [private_covariance(form, 3.0, GaussianDP(1.0), rng=3).value for form in forms]
    assert all(np.array_equal(value, released[0]) for value in released)
    with pytest.raises(ArgumentError, match="read only once"):
        private_covariance(iter(np.array_split(table, 7)), 3.0, GaussianDP(1.0))
    short = private_covariance(table.astype(np.float32), 3.0, GaussianDP(1.0), rng=3).value
    assert np.allclose(short, released[0], atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_vectors_that_are_not_finite_raise_or_count_as_the_centre(method):
    table = vectors(300, 3)
    spoiled, mended = table.copy(), table.copy()
    spoiled[[4, 9]] = [[np.nan], [np.inf]]
    mended[[4, 9]] = 0.25
    ball = Ball(Euclidean(3), np.full(3, 0.25), 3.0)
    with pytest.raises(NotOnManifoldError, match="finite"):
        private_covariance(spoiled, ball, GaussianDP(1.0), method=method)
    one = private_covariance(spoiled, ball, GaussianDP(1.0), method=method, on_invalid="center", rng=2)
    assert np.array_equal(one.value, private_covariance(mended, ball, GaussianDP(1.0), method=method, rng=2).value)


@pytest.mark.parametrize("method", METHODS)
def test_a_refusal_spends_nothing_and_a_release_is_charged_once(tmp_path, method):
    ledger = dpm.Ledger(tmp_path / "book.sqlite")
    ledger.open_dataset("tables", GaussianDP(1.0))
    account = {"method": method, "ledger": ledger, "dataset": "tables"}
    spoiled = vectors(30, 3)
    spoiled[0, 0] = np.nan
    with pytest.raises(NotOnManifoldError):
        private_covariance(spoiled, 1.0, GaussianDP(0.9), **account)
    private_covariance(vectors(30, 3), 1.0, GaussianDP(0.9), **account)
    with pytest.raises(dpm.DPManifoldsError):
        private_covariance(vectors(30, 3), 1.0, GaussianDP(0.9), **account)
    assert ledger.remaining("tables").mu == pytest.approx(math.sqrt(0.19), rel=1e-6)


@pytest.mark.parametrize("budget", [GaussianDP(20.0), PureDP(40.0)], ids=repr)
def test_the_number_of_records_can_be_protected(budget):
    table = vectors(4000, 5, seed=2)
    protected = {"adjacency": "add-remove-one", "n_guess": 3000}
    for method in METHODS:
        release = private_covariance(table, 1.0, budget, about="origin", method=method, rng=1, **protected)
        assert (release.n, release.guarantee.adjacency) == (None, "add-remove-one")
        assert release.guarantee.fits(budget)
        assert "4000" not in release.to_json()
        empty = private_covariance(table[:0], 1.0, budget, about="origin", method=method, rng=1, **protected)
        assert empty.guarantee == release.guarantee
    one = private_covariance(table, 1.0, budget, rng=1, **ONE, **protected)
    assert np.allclose(one.coordinates[:15], upper_triangle(clipped_moment(table, 1.0)), atol=4e-3)
    with pytest.raises(ArgumentError, match="n_guess"):
        private_covariance(table, 1.0, budget, adjacency="add-remove-one")


def test_the_number_of_records_plays_no_part_in_the_lattice_or_the_promise():
    found = [private_covariance(vectors(n, 3), 1.0, GaussianDP(1.0), rng=1, **ONE) for n in (1, 10**5)]
    assert found[0].guarantee == found[1].guarantee
    assert found[0].step == pytest.approx(10**5 * found[1].step)


@pytest.mark.parametrize("method", METHODS)
def test_persons_count_once_each(method):
    """Those with many vectors weigh as much as those with one, and n is their number."""
    rng = np.random.default_rng(3)
    names = np.repeat(np.arange(600), rng.integers(1, 8, 600))
    table = rng.standard_normal((len(names), 3)) + 1
    release = private_covariance(table, 20.0, GaussianDP(500.0), about="origin", method=method, group_by=names, rng=0)
    own = [table[names == name] for name in range(600)]
    truth = sum(rows.T @ rows / len(rows) for rows in own) / 600
    assert error(release.value, truth) < 0.02
    assert (release.n, release.guarantee.unit) == (600, "person")


def test_a_mean_is_there_only_where_it_was_drawn():
    with pytest.raises(ArgumentError, match="holds no mean"):
        released_mean(private_covariance(vectors(100, 2), 1.0, GaussianDP(1.0), rng=0, **ONE))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": np.zeros(4)}, "table"),
        ({"vectors": np.zeros((4, 2, 2))}, "table"),
        ({"vectors": np.zeros((4, 0))}, "table"),
        ({"vectors": np.zeros((0, 2))}, "at least one record"),
        ({"domain": 0.0}, "domain"),
        ({"domain": -1.0}, "domain"),
        ({"domain": math.inf}, "domain"),
        ({"domain": 1e160}, "domain"),
        ({"domain": Ball(Euclidean(3), np.zeros(3), 1.0)}, "shape"),
        ({"domain": Ball(SPD(2), np.eye(2), 1.0)}, "Euclidean"),
        ({"about": "median"}, "about"),
        ({"method": "best"}, "method"),
        ({"budget": 1.0}, "budget"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"group_by": [1, 2]}, "group_by"),
        ({"dataset": "study"}, "ledger"),
    ],
)
def test_wrong_arguments_are_told(options, message):
    given = {"vectors": np.zeros((4, 2)), "domain": 1.0, "budget": GaussianDP(1.0)} | options
    with pytest.raises(ArgumentError, match=message):
        private_covariance(**given)
