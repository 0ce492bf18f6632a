"""The contract of every sum: a record's integers are a function of that record and of public values, bit for bit.

`make contract` runs it with more records, libraries and sizes; the variable DPMANIFOLDS_CONTRACT says how many.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from scipy import optimize

from dpmanifolds import (
    SPD,
    Correlation,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    Product,
    Sphere,
)
from dpmanifolds._points import host, taken
from dpmanifolds.records.source import source_of
from dpmanifolds.releases.discriminant import ScoreContribution
from dpmanifolds.sums import rounding
from dpmanifolds.sums.contribution import Axes, DistanceContribution, TangentContribution
from dpmanifolds.sums.counts import DistanceBins
from dpmanifolds.sums.rounding import ball_integers, finest_exponent, fitting_integers
from dpmanifolds.sums.squares import SquaresContribution
from dpmanifolds.sums.total import integers_of as integers_in_tiles
from dpmanifolds.sums.total import sum_block, sum_records
from tests.manifolds.cases import SMOOTH
from tests.selection import thorough
from tests.sums.hard import hard_records

FULL = "DPMANIFOLDS_CONTRACT" in os.environ
COUNT = int(os.environ.get("DPMANIFOLDS_CONTRACT", "40"))
SOME = [
    SPD(10),
    SPD(6, "log-euclidean"),
    SPD(5, "log-cholesky"),
    Correlation(6),
    Sphere(50),
    PlanarShapes(20),
    Hyperbolic(20),
]
LARGE = [
    SPD(10),
    SPD(10, "log-euclidean"),
    SPD(10, "log-cholesky"),
    Correlation(28),
    SPD(30),
    SPD(64),
    Sphere(50),
    Euclidean(300),
    PlanarShapes(64),
    Hyperbolic(20),
    Grassmann(12, 4),
    Power(SPD(5), 3),
    Product(SPD(6), Sphere(3)),
]
MANIFOLDS = SMOOTH + LARGE if FULL else SMOOTH[1::2] + SOME


def bases(manifold: Manifold):
    """A centre, and a point that was reached from it."""
    return manifold.random_point(rng=11), manifold.random_point(rng=12)


def contributions(manifold: Manifold):
    center, moved = bases(manifold)
    exponent = finest_exponent(manifold.dim)
    offset = np.linspace(-0.3, 0.3, manifold.dim)
    along = np.cos(np.arange(manifold.dim))
    yield ScoreContribution(manifold, moved, center, direction=along, radius=0.7, exponent=29)
    yield TangentContribution(manifold, center, None, radius=2.0, exponent=exponent)
    yield TangentContribution(manifold, moved, center, radius=0.7, offset=offset, exponent=exponent)
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((manifold.dim, manifold.dim)))[0]
    axes = Axes(np.geomspace(0.01, 1.0, manifold.dim), basis)
    yield TangentContribution(manifold, moved, None, radius=1.3, offset=offset, exponent=exponent, axes=axes)
    few = Axes(np.geomspace(0.1, 1.0, (manifold.dim + 1) // 2), basis[:, : (manifold.dim + 1) // 2])
    yield TangentContribution(manifold, center, center, radius=0.5, exponent=exponent, axes=few)
    yield DistanceContribution(manifold, moved, None, radius=1.5, exponent=29)
    yield DistanceBins(manifold, center, None, edges=np.geomspace(0.01, 4.0, 12), unit=1)
    yield SquaresContribution(manifold, center, None, radius=0.7, basis=basis)
    yield DistanceBins(manifold, moved, center, edges=np.geomspace(0.1, 9.0, 8), unit=1, axes=axes)


def integers_of(contribution, records):
    """In tiles for so many records, of however many they are."""
    return integers_in_tiles(contribution, records, COUNT)


def records_of(manifold: Manifold, count: int = COUNT, seed: int = 0):
    return hard_records(manifold, bases(manifold)[0], count, seed)


def at(records, rows):
    return taken(records, np.atleast_1d(rows))


def mixed(first, second, keep: np.ndarray):
    """The records of `first` where `keep` says so, those of `second` elsewhere."""
    if isinstance(first, tuple):
        return tuple(mixed(*parts, keep) for parts in zip(first, second, strict=True))
    return np.where(keep.reshape(-1, *[1] * (first.ndim - 1)), first, second)


@pytest.mark.grid
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_integers_do_not_depend_on_the_other_records(manifold):
    first, second = records_of(manifold), records_of(manifold, seed=5)
    keep = np.random.default_rng(0).random(COUNT) < 0.5
    both = mixed(first, second, keep)
    for contribution in contributions(manifold):
        one, other = integers_of(contribution, first), integers_of(contribution, second)
        seen = integers_of(contribution, both)
        assert np.array_equal(seen[0], np.where(keep, one[0], other[0]))
        assert np.array_equal(seen[1], np.where(keep, one[1], other[1]))


@pytest.mark.grid(at_most=7)
@thorough("sizes", (3, 17, COUNT - 1), (1, 3, 17, COUNT - 1))
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_integers_are_the_same_alone_first_last_and_in_any_cut(manifold, sizes):
    records = records_of(manifold)
    order = np.random.default_rng(1).permutation(COUNT)
    for contribution in contributions(manifold):
        together = integers_of(contribution, records)[0]
        for row in range(0, COUNT, 7):
            assert np.array_equal(integers_of(contribution, at(records, row))[0][:, 0], together[:, row])
        assert np.array_equal(integers_of(contribution, at(records, order))[0], together[:, order])
        for size in sizes:
            parts = [
                integers_of(contribution, at(records, np.arange(first, min(first + size, COUNT))))[0]
                for first in range(0, COUNT, size)
            ]
            assert np.array_equal(np.concatenate(parts, axis=1), together)


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_integers_are_the_same_in_short_and_in_long_tiles(manifold):
    records = records_of(manifold)
    for contribution in contributions(manifold):
        assert np.array_equal(integers_in_tiles(contribution, records)[0], integers_of(contribution, records)[0])


@pytest.mark.grid
@pytest.mark.parametrize("manifold", MANIFOLDS, ids=repr)
def test_integers_lie_in_the_body_and_the_check_never_has_to_step_in(manifold, monkeypatch):
    fired = []

    def watched(scaled, exponent, usable=None):
        whole = np.rint(np.where(np.isfinite(scaled).all(axis=0), scaled, 0.0)).astype(np.int64)
        whole = whole if usable is None else whole * usable
        fits = np.array([sum(int(z) ** 2 for z in column) <= 4**exponent for column in whole.T], dtype=bool)
        fired.append(int((~fits).sum()))
        found = fitting_integers(scaled, exponent, usable)
        assert np.array_equal(found, whole * fits)
        return found

    monkeypatch.setattr(rounding, "fitting_integers", watched)
    records = records_of(manifold, min(COUNT, 60))
    for contribution in contributions(manifold):
        assert contribution.fits(integers_of(contribution, records)[0]).all()
    assert fired
    assert sum(fired) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("manifold", MANIFOLDS[::3], ids=repr)
def test_every_library_gives_the_integers_that_numpy_gives(manifold, dtype, backend):
    def as_dtype(part):
        if isinstance(part, tuple):
            return tuple(map(as_dtype, part))
        kind = {"float32": np.complex64, "float64": np.complex128}[dtype] if np.iscomplexobj(part) else dtype
        with np.errstate(all="ignore"):
            return part.astype(kind)

    records = as_dtype(records_of(manifold))
    for contribution in contributions(manifold):
        expected = integers_of(contribution, records)
        found = integers_of(contribution, backend.array(records))
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("manifold", MANIFOLDS[::4], ids=repr)
def test_sums_are_the_same_however_records_come(manifold):
    records = records_of(manifold, 300)
    if isinstance(records, tuple):
        records = tuple(np.ascontiguousarray(part) for part in records)
    for contribution in contributions(manifold):
        whole = sum_block(contribution, records, 300)
        assert whole.integers == sum(integers_of(contribution, records)[0].astype(object).T).tolist()
        if not isinstance(records, tuple):
            cut = [records[:7], records[7:8], records[8:250], records[250:]]
            for points in (records, cut, lambda cut=cut: iter(cut), iter(cut), np.asfortranarray(records)):
                found = sum_records(source_of(manifold, points), contribution, terms=300)
                assert found.integers == whole.integers
                assert found.rows == 300


@pytest.mark.parametrize("dim", [1, 2, 3, 17, 1000, 4097])
def test_long_rows_reach_the_edge_and_no_farther(dim):
    exponent = finest_exponent(dim)
    rows = np.random.default_rng(dim).standard_normal((50, dim)) * np.geomspace(1e-3, 1e150, 50)[:, None]
    whole = ball_integers(rows / np.sqrt(dim), exponent)
    lengths = [sum(int(z) ** 2 for z in column) for column in whole.T]
    assert max(lengths) <= 4**exponent
    assert lengths[-1] >= 4**exponent * (1 - 3 * dim**0.5 * 2.0**-exponent)


def _sum_of_squares(total: int, terms: int) -> list[int]:
    """Integers whose squares add up to this number, or to a little less."""
    found = []
    for _ in range(terms):
        found.append(math.isqrt(total))
        total -= found[-1] ** 2
    return found


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dim", [1, 2, 6, 40])
def test_columns_are_kept_if_and_only_if_they_lie_in_the_ball_whatever_floating_point_left(dim, layout):
    exponent = finest_exponent(dim)
    rng, most = np.random.default_rng(dim), 2.0**exponent
    near = rng.standard_normal((dim, 2000))
    near *= most / np.linalg.norm(near, axis=0) * (1 + 10.0 ** rng.uniform(-17, -7, 2000) * rng.choice([-1, 1], 2000))
    edge = np.zeros((dim, 8))
    # at the edge, beyond it by one, by half of one, and where the last bits mean something else
    edge[0] = [most, -most, most + 1, most + 0.5, 2.0**51, 1.5 * 2.0**52, 1e300, 2.0**50 + most]
    broken = np.full((dim, 4), 0.25)
    broken[-1] = [np.nan, np.inf, -np.inf, -0.0]
    squares = [_sum_of_squares(4**exponent + more, dim) for more in range(-40, 41)]
    columns = np.concatenate([near, edge, broken, np.array(squares, dtype=np.float64).T], axis=1)
    usable = rng.random(columns.shape[1]) < 0.9

    def expected(column):
        whole = [round(number) for number in column.tolist()] if np.isfinite(column).all() else [0] * dim
        return whole if sum(z * z for z in whole) <= 4**exponent else [0] * dim

    wanted = np.array([expected(column) for column in columns.T]).T
    assert np.array_equal(fitting_integers(columns.copy(order=layout), exponent), wanted)
    assert np.array_equal(fitting_integers(columns.copy(order=layout), exponent, usable), wanted * usable)
    assert 0 < (wanted != 0).any(axis=0).sum() < len(columns.T)


def test_an_ellipsoid_keeps_what_lies_inside_and_moves_the_rest_to_its_nearest_point():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    axes = Axes(np.array([0.01, 0.1, 1.0, 10.0]), basis)
    pull = TangentContribution(Euclidean(4), np.zeros(4), radius=2.0, exponent=29, axes=axes)
    inside = axes.restore(np.random.default_rng(1).uniform(-0.4, 0.4, (50, 4))) * 2.0
    assert np.allclose(axes.restore(integers_of(pull, inside)[0].T * 2.0**-29) * 2.0, inside, atol=1e-7)
    outside, lengths = 100 * inside, 2.0 * axes.lengths
    for record, column in zip(outside @ basis, integers_of(pull, outside)[0].T * 2.0**-29, strict=True):
        # the multiplier of Lagrange, by bisection
        excess = optimize.brentq(
            lambda e, c=record: np.sum((lengths * c / (lengths**2 + e)) ** 2) - 1, 0.0, 1e9, rtol=1e-14
        )
        assert np.allclose(column, lengths * record / (lengths**2 + excess), atol=3e-8)


@pytest.mark.parametrize("dim", [1, 2, 50])
def test_the_antipode_of_a_first_axis_moves_no_other_record_and_no_record_is_written_to(dim):
    """Coordinates are a view of the records there, until one of them has no direction."""
    sphere, base = Sphere(dim), np.eye(dim + 1)[0]
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))[0]
    pull = TangentContribution(sphere, base, radius=2.0, exponent=20, axes=Axes(np.linspace(0.3, 1.0, dim), turned))
    records = sphere.random_point(60, rng=1)
    other = records.copy()
    other[7] = -base
    order = "C" if sphere.in_rows else "F"
    seen = np.array(other, order=order)
    one, two = pull(np.array(records, order=order))[0], pull(seen)[0]
    assert np.array_equal(seen, other)
    assert np.array_equal(np.delete(one, 7, axis=1), np.delete(two, 7, axis=1))
    assert two[:, 7].any()


def test_rounding_favours_no_side():
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (200_000, 1))
    errors = ball_integers(rows, 10)[0] - rows[:, 0] * 1024
    assert abs(errors.mean()) < 6 * np.sqrt(1 / 12 / len(rows))


def test_a_far_record_is_clipped_along_its_geodesic():
    ball_center, far = np.array([0.0, 0.0, 1.0]), Sphere(2).project(np.array([[3.0, 0.0, 1.0]]))
    pull = TangentContribution(Sphere(2), ball_center, radius=0.5, exponent=20)
    seen = integers_of(pull, far)[0][:, 0] * 0.5 / 2**20
    assert np.allclose(np.linalg.norm(seen), 0.5, rtol=1e-5)
    assert np.allclose(seen / 0.5, Sphere(2).log_coordinates(host(ball_center), far)[0] / np.arctan(3.0), atol=1e-5)
