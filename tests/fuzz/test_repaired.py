"""What the fuzzer has found, as claims of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.errors import ArgumentError
from dpmanifolds.privacy.terms import ApproxTerm
from tests.fuzz import engine
from tests.fuzz.calls import TARGETS


def test_what_a_call_writes_does_not_stay(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TARGETS, "write", (1e9, lambda _: Path("x").write_text("left behind")))
    assert engine.call(0, 0)[:2] == ("write", "done")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("manifold", [dpm.SPD(2), dpm.Sphere(2), dpm.Power(dpm.Euclidean(1), 2)])
def test_complex_numbers_are_no_points_of_a_real_manifold(manifold):
    point = manifold.random_point(rng=0)
    with pytest.raises(ArgumentError, match="real"):
        manifold.as_points(point.astype(complex))
    with pytest.raises(ArgumentError, match="real"):
        dpm.WrappedGaussian(manifold, point.astype(complex), 1.0)


def test_shapes_and_their_powers_stay_complex():
    shapes = dpm.PlanarShapes(3)
    for manifold in (shapes, dpm.Power(shapes, 2)):
        assert manifold.as_points(manifold.random_point(4, rng=0)).dtype == np.complex128


def test_extended_precision_is_read_as_double():
    assert dpm.SPD(2).as_points(np.eye(2, dtype=np.longdouble)).dtype == np.float64


@pytest.mark.parametrize("value", [10**400, 2**63, np.zeros(2), [1], 1j, "x"])
def test_no_wrong_number_reaches_the_computation(value):
    with pytest.raises(ArgumentError):
        dpm.SPD(value)
    with pytest.raises(ArgumentError):
        dpm.PureDP(value)
    with pytest.raises(ArgumentError):
        dpm.SPD(2, value)


@pytest.mark.parametrize("kind", [dpm.PureDP, dpm.GaussianDP, dpm.ZeroConcentratedDP])
def test_a_budget_of_less_than_noise_can_keep_is_refused(kind):
    assert kind(1e-100) == kind(1e-100)
    for size in (1e-101, 1e-300, 5e-324):
        with pytest.raises(ArgumentError, match="1e-100"):
            kind(size)


def test_conversions_of_small_budgets_are_raised_and_not_refused():
    assert dpm.GaussianDP(1e-60).as_zcdp().rho == 1e-100
    assert dpm.GaussianDP(1e-9).as_approx(1e-3).epsilon == 2.0**-1022
    assert dpm.Guarantee.gaussian(1e-60).as_zcdp().rho == 1e-100


def test_terms_too_unequal_for_one_grid_are_still_accounted_for():
    both = dpm.compose(dpm.Guarantee.pure(1e-12), dpm.Guarantee.gaussian(1.0))
    alone = dpm.Guarantee.gaussian(1.0)
    assert alone.delta(1.0) <= both.delta(1.0) <= alone.delta(1.0) * (1 + 1e-6)
    mixed = dpm.Guarantee((ApproxTerm(epsilon=1e-12, delta=1e-9), *alone.terms))
    assert alone.delta(1.0) < mixed.delta(1.0) <= 1.0


@pytest.mark.parametrize("metric", ["affine-invariant", "log-cholesky", "log-euclidean"])
def test_noise_beyond_floats_does_not_lose_a_paid_median(metric):
    ball = dpm.Ball(dpm.SPD(3, metric), np.eye(3), 50.0)
    for seed in range(5):
        value = dpm.private_median(
            ball.manifold.random_point(5, rng=0), ball, dpm.PureDP(1e-4), steps=3, rng=seed
        ).value
        assert np.all(ball.contains(value[None]))


@pytest.mark.parametrize("circle", [dpm.SpecialOrthogonal(2), dpm.Grassmann(2, 1)])
def test_all_mechanisms_are_offered_on_circles_without_roots(circle):
    ball = dpm.Ball(circle, circle.random_point(rng=0), 0.5)
    assert dpm.private_mean(circle.random_point(9, rng=1), ball, dpm.PureDP(1.0), numerics="idealized", rng=0).n == 9


def test_the_median_on_a_product_of_products_is_clipped_part_by_part():
    line = dpm.Euclidean(1)
    manifold = dpm.Product(dpm.Product(line, dpm.Sphere(2)), line)
    ball = dpm.Ball(manifold, manifold.random_point(rng=0), 1.0)
    points = manifold.random_point(6, rng=1)
    assert dpm.private_median(points, ball, dpm.PureDP(1.0), steps=2, rng=0).n == 6


@pytest.mark.parametrize("name", [np.array([]), np.zeros(2), None, 1])
def test_a_ledger_has_no_data_set_of_a_name_that_is_no_text(name, tmp_path):
    ledger = dpm.Ledger(tmp_path / "account")
    ledger.open_dataset("people", dpm.PureDP(1.0))
    with pytest.raises(ArgumentError, match="no data set"):
        ledger.spend(name, dpm.Guarantee.pure(0.1), what="mean")
    assert ledger.remaining("people") == dpm.PureDP(1.0)


@pytest.mark.parametrize("name", ["mechanism", "numerics", "refine", "steps", "kind", "on_invalid"])
def test_arrays_in_place_of_words_are_refused(name):
    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
    with pytest.raises(ArgumentError, match=name):
        dpm.private_mean(dpm.SPD(2).random_point(9, rng=0), ball, dpm.PureDP(1.0), **{name: np.zeros(2)})


def test_an_array_is_no_kind_of_budget():
    with pytest.raises(ArgumentError, match="to must be one of"):
        dpm.convert(dpm.PureDP(1.0), np.zeros(2))


@pytest.mark.parametrize("points", ["text", {}, None, 3])
def test_what_holds_no_records_is_no_shape(points):
    ball = dpm.Ball(dpm.PlanarShapes(3), dpm.PlanarShapes(3).random_point(rng=0), 0.3)
    with pytest.raises(ArgumentError):
        dpm.validate(points, ball)


@pytest.mark.parametrize("radius", [1e155, 1e200, 1e300])
def test_a_mean_whose_noise_has_no_square_in_floats_is_refused(radius):
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), radius)
    with pytest.raises(dpm.ScaleOutOfRangeError, match="rescale"):
        dpm.private_mean(np.zeros((20, 2)), ball, dpm.GaussianDP(0.8), mechanism="wrapped-laplace", numerics="lattice")


@pytest.mark.parametrize("radius", [1e-100, 1e55, 1e100, 1e160])
@pytest.mark.parametrize("metric", ["log-euclidean", "affine-invariant"])
def test_a_spread_that_leaves_floats_is_refused_before_it_is_paid(radius, metric, tmp_path):
    ledger = dpm.Ledger(tmp_path / "account")
    ledger.open_dataset("people", dpm.PureDP(1.0))
    space = dpm.SPD(2, metric)
    with pytest.raises(dpm.ScaleOutOfRangeError, match="rescale"):
        dpm.private_mean_and_spread(
            space.random_point(9, rng=0), dpm.Ball(space, np.eye(2), radius), dpm.PureDP(1.0), ledger=ledger,
            dataset="people",
        )  # fmt: skip
    assert ledger.remaining("people") == dpm.PureDP(1.0)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("sensitivity", {"tag": None}),
        ("sensitivity", {"statement": [1]}),
        ("value", {"point": {"dtype": "float64", "values": [1.0]}}),
        ("value", {"point": []}),
        ("domain", {"center": {"dtype": "float64", "values": [[[1.0]]]}}),
    ],
)
def test_a_release_that_cannot_be_told_is_not_read(name, changed):
    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
    data = json.loads(dpm.private_mean(dpm.SPD(2).random_point(20, rng=0), ball, dpm.PureDP(1.0), rng=0).to_json())
    data[name] |= changed
    with pytest.raises(dpm.DPManifoldsError):
        dpm.Release.from_json(json.dumps(data))
