"""The private second moment: the right law on and off the diagonal, what is promised, what is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, ArgumentError, GaussianDP, NotOnManifoldError, PureDP
from dpmanifolds.manifolds._symmetric import from_upper_triangle, upper_triangle
from dpmanifolds.releases.second_moment import (
    nuclear_sensitivity_of_second_moment,
    private_second_moment,
    private_tangent_moment,
    sensitivity_of_second_moment,
)


def vectors(n, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dim)) / math.sqrt(dim)


def clipped_moment(rows, radius):
    short = rows * np.minimum(1, radius / np.linalg.norm(rows, axis=1))[:, None]
    return short.T @ short / len(short)


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
    release = private_second_moment(vectors(500, dim), 1.0, budget, rng=0)
    assert release.mechanism == mechanism
    assert release.numerics == "rounded"
    assert release.n == 500
    assert release.guarantee.fits(budget)
    assert dpm.Release.from_json(release.to_json()) == release


def test_scale_and_step_are_told_in_the_units_of_the_records():
    release = private_second_moment(3 * vectors(500, 10), 3.0, PureDP(2.0), rng=0)
    assert release.scale == pytest.approx(9 * 2 / 500 / 2.0, rel=1e-12)
    assert release.guarantee.as_pure().epsilon == 2.0
    assert float(release.sensitivity) == pytest.approx(9 * 2 / 500, rel=1e-12)
    assert float(nuclear_sensitivity_of_second_moment(3.0, 500, 10)) == float(release.sensitivity)
    assert release.step == 9 / 500 / 4**24
    gaussian = private_second_moment(3 * vectors(500, 10), 3.0, GaussianDP(2.0), rng=0)
    assert gaussian.scale == pytest.approx(9 * math.sqrt(2) / 500 / 2.0, rel=1e-12)
    assert float(gaussian.sensitivity) == float(sensitivity_of_second_moment(3.0, 500, 10))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("budget", "dim", "off_diagonal"),
    [
        (GaussianDP(1.0), 3, 1.0),
        (PureDP(1.0), 2, 2.0),
        (PureDP(1.0), 4, math.sqrt(10)),
    ],
    ids=["gaussian", "laplace", "wishart"],
)
def test_noise_has_its_known_deviation_off_the_diagonal_and_root_two_of_it_on_it(budget, dim, off_diagonal):
    """In units of C²/n: 1/μ; √2·√((D+1)/2)/ε with D = 3; √(2(d+1))/ε. 1200 releases of one table.

    Kurtosis is below 9 for each of them, so that a mean of 1200 squares, of entries that are uncorrelated in their
    squares or nearly so, has a relative error of at most √(8/1200) = 0.082: 5 of them are 0.41, at a false-alarm rate
    below 1e−6; noise that is 30 % smaller has 0.49 of the square, and 0.51 is missing.
    """
    table, rng = vectors(50, dim, seed=5), np.random.default_rng(7)
    exact = clipped_moment(table, 2.0)
    gaps = np.stack(
        [
            from_upper_triangle(private_second_moment(table, 2.0, budget, rng=rng).coordinates, dim) - exact
            for _ in range(1200)
        ]
    ) / (4.0 / 50)
    above, diagonal = np.mean(gaps[:, 0, 1] ** 2), np.mean(gaps[:, 1, 1] ** 2)
    assert above == pytest.approx(off_diagonal**2, rel=0.41)
    assert diagonal == pytest.approx(2 * off_diagonal**2, rel=0.41)
    pooled = np.mean([np.mean(gaps[:, i, j] ** 2) for i in range(dim) for j in range(i)])
    assert pooled == pytest.approx(off_diagonal**2, rel=0.41)
    assert 0.49 * pooled != pytest.approx(off_diagonal**2, rel=0.41)


def test_with_a_large_budget_it_is_the_second_moment_around_the_centre():
    table = 3 * vectors(20_000, 4, seed=1) + 5
    release = private_second_moment(table, 2.0, GaussianDP(500.0), center=np.full(4, 5.0), rng=0)
    assert np.allclose(release.coordinates, upper_triangle(clipped_moment(table - 5, 2.0)), atol=5e-5)


def test_streams_and_arrays_give_the_same_release(tmp_path):
    table = vectors(3000, 3)
    np.save(tmp_path / "table.npy", table)
    forms = [
        table,
        table.astype(np.float64)[:, :],
        np.array_split(table, 7),
        lambda: iter(np.array_split(table, 11)),
        np.load(tmp_path / "table.npy", mmap_mode="r"),
    ]
    released = [private_second_moment(form, 1.0, GaussianDP(1.0), rng=3).value for form in forms]
    assert all(np.array_equal(value, released[0]) for value in released)
    with pytest.raises(ArgumentError, match="read only once"):
        private_second_moment(iter(np.array_split(table, 7)), 1.0, GaussianDP(1.0))


def test_vectors_that_are_not_finite_raise_or_count_as_the_centre():
    table = vectors(300, 3)
    spoiled, mended = table.copy(), table.copy()
    spoiled[[4, 9]] = [[np.nan], [np.inf]]
    mended[[4, 9]] = 0.0
    with pytest.raises(NotOnManifoldError, match="finite"):
        private_second_moment(spoiled, 1.0, GaussianDP(1.0))
    one = private_second_moment(spoiled, 1.0, GaussianDP(1.0), on_invalid="center", rng=2)
    assert np.array_equal(one.value, private_second_moment(mended, 1.0, GaussianDP(1.0), rng=2).value)


def test_a_refusal_spends_nothing_and_a_release_is_charged_once(tmp_path):
    ledger = dpm.Ledger(tmp_path / "book.sqlite")
    ledger.open_dataset("tables", GaussianDP(1.0))
    spoiled = vectors(30, 3)
    spoiled[0, 0] = np.nan
    with pytest.raises(NotOnManifoldError):
        private_second_moment(spoiled, 1.0, GaussianDP(0.9), ledger=ledger, dataset="tables")
    private_second_moment(vectors(30, 3), 1.0, GaussianDP(0.9), ledger=ledger, dataset="tables")
    with pytest.raises(dpm.DPManifoldsError):
        private_second_moment(vectors(30, 3), 1.0, GaussianDP(0.9), ledger=ledger, dataset="tables")


@pytest.mark.parametrize("budget", [GaussianDP(20.0), PureDP(40.0)], ids=repr)
def test_the_number_of_records_can_be_protected(budget):
    table = vectors(4000, 5, seed=2)
    release = private_second_moment(table, 1.0, budget, adjacency="add-remove-one", n_guess=3000, rng=1)
    assert (release.n, release.guarantee.adjacency) == (None, "add-remove-one")
    assert release.guarantee.fits(budget)
    assert "4000" not in release.to_json()
    assert np.allclose(release.coordinates, upper_triangle(clipped_moment(table, 1.0)), atol=2e-3)
    empty = private_second_moment(table[:0], 1.0, budget, adjacency="add-remove-one", n_guess=3000, rng=1)
    assert empty.guarantee == release.guarantee
    assert empty.scale == release.scale
    with pytest.raises(ArgumentError, match="n_guess"):
        private_second_moment(table, 1.0, budget, adjacency="add-remove-one")


def test_the_number_of_records_plays_no_part_in_the_lattice_or_the_promise():
    found = [private_second_moment(vectors(n, 3), 1.0, GaussianDP(1.0), rng=1) for n in (1, 10**5)]
    assert found[0].guarantee == found[1].guarantee
    assert found[0].step == pytest.approx(10**5 * found[1].step)


@pytest.mark.parametrize("form", ["array", "blocks", "function"])
def test_tangent_moments_take_records_in_any_form(form):
    space = dpm.SPD(2)
    records = space.random_point(400, rng=0)
    ball = dpm.Ball(space, np.eye(2), 2.0)
    blocks = np.array_split(records, 3)
    points = {"array": records, "blocks": blocks, "function": lambda: iter(blocks)}[form]
    one = private_tangent_moment(records, ball, PureDP(1.0), rng=0)
    other = private_tangent_moment(points, ball, PureDP(1.0), rng=0)
    assert np.array_equal(one.moment.value, other.moment.value)
    assert np.array_equal(one.base, other.base)


def test_malformed_points_raise_before_anything_is_drawn_or_count_as_the_centre():
    space = dpm.SPD(2)
    ball = dpm.Ball(space, 2 * np.eye(2), 2.0)
    spoiled = space.random_point(200, rng=0)
    mended = spoiled.copy()
    spoiled[[3, 60]] = [-np.eye(2), np.full((2, 2), np.nan)]
    mended[[3, 60]] = 2 * np.eye(2)
    with pytest.raises(NotOnManifoldError):
        private_tangent_moment(spoiled, ball, GaussianDP(1.0))
    one = private_tangent_moment(spoiled, ball, GaussianDP(1.0), on_invalid="center", rng=4)
    other = private_tangent_moment(mended, ball, GaussianDP(1.0), rng=4)
    assert np.array_equal(one.moment.value, other.moment.value)


def test_in_high_dimension_pure_noise_is_that_of_wishart_matrices():
    space = dpm.SPD(5)
    found = private_tangent_moment(space.random_point(60, rng=0), dpm.Ball(space, np.eye(5), 2.0), PureDP(1.0), rng=0)
    assert found.moment.mechanism == "wishart-difference"
    assert found.guarantee.fits(PureDP(1.0))
    assert found.moment.scale == pytest.approx(2 * 4.0 / 60 / 0.7, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": np.zeros(4)}, "table"),
        ({"vectors": np.zeros((4, 2, 2))}, "table"),
        ({"vectors": np.zeros((0, 2))}, "empty"),
        ({"clip_norm": 0.0}, "clip_norm"),
        ({"center": [1.0]}, "center"),
        ({"budget": 1.0}, "budget"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"group_by": [1, 2]}, "group_by"),
    ],
)
def test_wrong_arguments_are_told(options, message):
    given = {"vectors": np.zeros((4, 2)), "clip_norm": 1.0, "budget": GaussianDP(1.0)} | options
    with pytest.raises(ArgumentError, match=message):
        private_second_moment(**given)
