"""Where the number of records is protected, no records at all are released like any other number of them."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, Euclidean, GaussianDP, PlanarShapes, Sphere
from dpmanifolds.descent.losses import EigenvectorLoss, FrechetMeanLoss

PROTECTED = {"adjacency": "add-remove-one", "n_guess": 50, "rng": 0}
BUDGET = GaussianDP(1.0)
SPACES = {
    "flat": (Euclidean(3), np.zeros(3)),
    "sphere": (Sphere(2), np.array([0.0, 0.0, 1.0])),
    "matrices": (SPD(2), np.eye(2)),
    "shapes": (PlanarShapes(4), PlanarShapes(4).random_point(rng=0)),
}


def dask_forms(shape, dtype):
    da, db = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    return {
        "dask array": lambda: da.zeros((0, *shape), dtype=dtype),
        "dask array of several chunks": lambda: da.concatenate([da.zeros((0, *shape), dtype=dtype)] * 3),
        "dask array of unknown sizes": lambda: _unknown(da.ones((6, *shape), dtype=dtype)),
        "dask bag": lambda: db.from_sequence([1, 2, 3], npartitions=2).filter(lambda _: False),
    }


def _unknown(array):
    """The rows of a Dask array that are below 0: none, but who knows."""
    return array[array.reshape(array.shape[0], -1).real.min(axis=1) < 0]


def plain_forms(shape, dtype):
    none = np.empty((0, *shape), dtype=dtype)
    return {
        "array": lambda: none,
        "list": lambda: [],
        "list of blocks": lambda: [none, none],
        "function without a block": lambda: lambda: iter(()),
        "function with a block of no rows": lambda: lambda: iter([none]),
        "iterator": lambda: iter(()),
    }


def releases(space, center):
    ball = Ball(space, center, 0.5)
    yield "mean", lambda x: dpm.private_mean(x, ball, BUDGET, **PROTECTED).value
    yield "mean of one step", lambda x: dpm.private_mean(x, ball, BUDGET, steps=1, refine=0, **PROTECTED).value
    yield "variance", lambda x: dpm.private_variance(x, ball, BUDGET, **PROTECTED).value
    yield (
        "descent",
        lambda x: (
            dpm.private_descent(
                FrechetMeanLoss(ball), x, space, BUDGET, start=center, steps=2, step_size=0.5, **PROTECTED
            ).value
        ),
    )


@pytest.mark.parametrize("kind", ["plain", "dask"])
@pytest.mark.parametrize("where", SPACES)
def test_every_source_without_records_is_released(where, kind):
    space, center = SPACES[where]
    dtype = np.complex128 if space.is_complex else np.float64
    forms = (plain_forms if kind == "plain" else dask_forms)(space.point_shape, dtype)
    for name, release in releases(space, center):
        expected = release(np.empty((0, *space.point_shape), dtype=dtype))
        for form, make in forms.items():
            if form == "iterator" and name != "mean of one step":
                continue
            assert np.array_equal(release(make()), expected), (name, form)


def test_tables_without_rows_are_released():
    """Records that are no points of a manifold: streams, Dask arrays and pairs of them."""
    loss, none = EigenvectorLoss(dimension=3, radius=1.0), np.empty((0, 3))

    def descent(records):
        return dpm.private_descent(
            loss, records, loss.manifold, ApproxDP(1.0, 1e-6), start=[1.0, 0.0, 0.0], steps=2, step_size=1.0,
            **PROTECTED,
        ).value  # fmt: skip

    def moment(records, center=None):
        domain = 1.0 if center is None else Ball(Euclidean(3), center, 1.0)
        return dpm.private_covariance(records, domain, BUDGET, **PROTECTED).value

    expected = descent(none), moment(none)
    for records in (lambda: iter(()), lambda: iter([none]), lambda: iter([none, none])):
        assert np.array_equal(descent(records), expected[0])
        assert np.array_equal(moment(records, np.zeros(3)), moment(none, np.zeros(3)))
    assert np.array_equal(moment(lambda: iter([none])), expected[1])
    with pytest.raises(ArgumentError, match="no shape: hand out a block of no rows"):
        moment(lambda: iter(()))


@pytest.mark.needs("dask")
def test_dask_tables_without_rows_are_released():
    da = pytest.importorskip("dask.array")
    none = np.empty((0, 3))
    expected = dpm.private_covariance(none, 1.0, BUDGET, **PROTECTED).value
    for records in (da.zeros((0, 3)), da.from_array(np.zeros((0, 3)), chunks=(1, 2)), _unknown(da.ones((6, 3)))):
        assert np.array_equal(dpm.private_covariance(records, 1.0, BUDGET, **PROTECTED).value, expected)


def test_persons_without_records_are_released():
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    for names in ([], np.empty(0, dtype=np.int64)):
        release = dpm.private_mean(np.empty((0, 2)), ball, BUDGET, group_by=names, **PROTECTED)
        assert release.value.shape == (2,)


@pytest.mark.parametrize("form", ["array", "list", "list of blocks", "function without a block"])
def test_where_the_number_is_public_it_must_not_be_zero(form):
    points = plain_forms((2,), np.float64)[form]()
    with pytest.raises(ArgumentError, match="at least one record is needed"):
        dpm.private_mean(points, Ball(Euclidean(2), [0.0, 0.0], 1.0), BUDGET)
