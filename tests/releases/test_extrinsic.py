"""`private_mean(kind="extrinsic")`: the target, persons, streams, the told error, and refusals before any draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, ArgumentError, Ball, GaussianDP, PureDP, WholeSpace, private_mean
from dpmanifolds._points import host
from dpmanifolds.cli import app
from dpmanifolds.ledger import Ledger
from dpmanifolds.sums.projectors import decode_projector, projector_integers
from dpmanifolds.sums.stand_in import find_stand_in
from dpmanifolds.sums.steps import plan_steps

SPACES = [dpm.Sphere(3), dpm.Grassmann(5, 1), dpm.Grassmann(5, 2), dpm.SpecialOrthogonal(3), dpm.PlanarShapes(5)]
every_space = pytest.mark.parametrize("space", SPACES, ids=repr)
pytestmark = pytest.mark.grid
MUCH = GaussianDP(600.0)


def around(space, center, size=0.3, n=300, seed=0):
    steps = size * np.random.default_rng(seed).standard_normal((n, space.dim)) / np.sqrt(space.dim)
    return space.move(center, steps)


def domains(space, center):
    return WholeSpace(space, center), Ball(space, center, 0.9 * space.injectivity_radius), Ball(space, center, 0.7)


@every_space
def test_with_much_budget_it_is_the_point_nearest_to_the_mean_of_matrices(space):
    center = space.random_point(rng=1)
    points = around(space, center)
    if isinstance(space, dpm.Sphere):
        expected = points.mean(axis=0) / np.linalg.norm(points.mean(axis=0))
    elif isinstance(space, dpm.Grassmann):
        expected = np.linalg.eigh(np.mean(points @ np.swapaxes(points, 1, 2), axis=0))[1][:, -space.p :]
    elif isinstance(space, dpm.PlanarShapes):
        expected = np.linalg.eigh(np.einsum("na,nb->ab", points, np.conj(points)))[1][:, -1]
    else:
        left, _, right = np.linalg.svd(points.mean(axis=0))
        expected = left @ right
    for domain in domains(space, center):
        release = private_mean(points, domain, MUCH, kind="extrinsic", rng=0)
        assert release.statistic == "extrinsic mean"
        assert float(space.dist(release.value, expected)) < 1e-4
        assert bool(space.belongs(release.value))


@pytest.mark.long
@every_space
def test_the_told_error_is_what_releases_err_by(space):
    """60 releases; their mean error is within 40 % of the told one, with a failure rate below 1e−6."""
    center = space.random_point(rng=1)
    for size in (0.2, 0.7):
        points = around(space, center, size, n=3000)
        target = space.unembed(space.embed(points).mean(axis=0))
        made = [
            private_mean(points, WholeSpace(space, center), GaussianDP(1.0), kind="extrinsic", rng=r) for r in range(60)
        ]
        errors = [float(space.dist(release.value, target)) for release in made]
        assert np.mean(errors) == pytest.approx(made[0].expected_error.mean, rel=0.4)


WIDE = Ball(dpm.Sphere(10), np.eye(11)[0], 1.5)


def test_on_wide_spheres_it_stands_in_for_the_frechet_mean_and_errs_less_than_steps():
    middle = WIDE.manifold.move(np.eye(11)[0], 0.5 * np.eye(10)[0])
    points = around(WIDE.manifold, middle, 0.5, n=1000)
    truth = dpm.frechet_mean(WIDE.manifold, points).point
    made = {
        steps: [private_mean(points, WIDE, PureDP(1.0), steps=steps, refine="auto", rng=seed) for seed in range(20)]
        for steps in ("auto", 1, 2)
    }
    assert [each[0].statistic for each in made.values()] == ["extrinsic mean", "mean", "mean"]
    errors = {steps: [float(WIDE.manifold.dist(one.value, truth)) for one in each] for steps, each in made.items()}
    assert np.mean(errors["auto"]) < 0.9 * min(np.mean(errors[1]), np.mean(errors[2]))
    told = made["auto"][0].expected_error
    assert np.mean(errors["auto"]) == pytest.approx(told.mean, rel=0.25)
    assert 0 < told.target < told.radius_90
    assert "extrinsic" in str(told)
    assert dpm.Release.from_json(made["auto"][0].to_json()).expected_error == told


def test_what_is_told_covers_the_frechet_mean_of_records_that_are_as_lopsided_as_can_be():
    # three tenths of the records at the edge, the others balance them: both means are .12 apart
    sphere, far = WIDE.manifold, 1.3
    angles = np.array([far] * 300 + [-0.3 * far / 0.7] * 700)
    points = sphere.move(np.eye(11)[0], angles[:, None] * np.eye(10)[0])
    truth = dpm.frechet_mean(sphere, points).point
    made = [private_mean(points, WIDE, PureDP(1.0), rng=seed) for seed in range(20)]
    assert {one.statistic for one in made} == {"extrinsic mean"}
    apart = float(sphere.dist(truth, sphere.unembed(points.mean(axis=0))))
    assert apart > 0.1
    assert all(one.expected_error.target >= apart for one in made)
    assert all(float(sphere.dist(one.value, truth)) <= one.expected_error.radius_90 for one in made)


@pytest.mark.parametrize("space", [dpm.Grassmann(6, 2), dpm.PlanarShapes(6), dpm.SpecialOrthogonal(3)], ids=repr)
def test_the_bound_between_both_means_holds_on_every_manifold(space):
    ball = Ball(space, space.random_point(rng=3), 0.9 * space.max_radius)
    rng = np.random.default_rng(4)
    skewed = np.abs(rng.standard_normal((400, space.dim))) ** 3
    rows = ball.radius * skewed / np.max(np.linalg.norm(skewed, axis=1))
    points = space.move(host(ball.center), rows)
    truth = dpm.frechet_mean(space, points).point
    stand_in = find_stand_in(ball, math.inf, 400, MUCH)
    total = np.mean(np.asarray(space.embed(points)), axis=0)
    extrinsic = space.unembed(total)
    told = stand_in.tell_error(_coded(stand_in.body, total), extrinsic)
    assert 1e-4 < float(space.dist(extrinsic, truth)) <= told.target


def _coded(body, total):
    """The coordinates that integers stand for, without noise."""
    if body.projectors:
        size = body.manifold.projector_shape[1]
        found, *_ = np.linalg.lstsq(
            decode_projector(body.manifold, np.eye(projector_integers(body.manifold))).T, total, rcond=None
        )
        assert found.size >= size
        return found
    return total if body.offset is None else total - body.offset


def test_small_balls_and_large_numbers_keep_the_frechet_mean():
    small = Ball(dpm.Sphere(10), np.eye(11)[0], 0.5)
    points = around(small.manifold, np.eye(11)[0], 0.2, n=500)
    assert private_mean(points, small, PureDP(1.0), rng=0).statistic == "mean"
    many = plan_steps(WIDE, 10**7, GaussianDP(1.0)).predicted
    assert find_stand_in(WIDE, many, 10**7, GaussianDP(1.0)) is None
    # asked for by name, it is what is released
    wide = around(WIDE.manifold, np.eye(11)[0], 0.5, n=300)
    for options in ({"steps": 2}, {"refine": 0}, {"refine": 1}):
        assert private_mean(wide, WIDE, GaussianDP(1.0), rng=0, **options).statistic == "mean"


def test_the_planner_shows_the_other_target_beside_the_frechet_mean():
    space, center = dpm.Sphere(10), np.eye(11)[0]
    ball = Ball(space, center, 2.4)
    assert "Another target" in str(dpm.plan(ball, 2000, GaussianDP(1.0)))
    assert "Another target" not in str(dpm.plan(Ball(space, center, 0.3), 2000, GaussianDP(1.0)))
    planned = dpm.plan(ball, 2000, GaussianDP(1.0), kind="extrinsic")
    assert "extrinsic mean" in str(planned)
    assert planned.best().error.mean < 0.5 * dpm.plan(ball, 2000, GaussianDP(1.0)).best().error.mean


def test_the_planner_says_where_it_stands_in():
    for budget, ball, taken in ((PureDP(1.0), WIDE, True), (PureDP(1.0), Ball(WIDE.manifold, WIDE.center, 0.5), False)):
        points = around(ball.manifold, np.eye(11)[0], 0.3, n=700)
        assert (private_mean(points, ball, budget, rng=0).statistic == "extrinsic mean") == taken
        assert ("stands in" in str(dpm.plan(ball, 700, budget, steps="auto"))) == taken


@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
@pytest.mark.grid(at_most=2)
@every_space
def test_any_noise_leads_to_a_point_and_back_from_json(space):
    center = space.random_point(rng=1)
    for domain in domains(space, center):
        for budget in (PureDP(0.01), GaussianDP(0.01), ApproxDP(0.1, 1e-6)):
            for numerics in ("rounded", "lattice"):
                release = private_mean(
                    around(space, center, n=20), domain, budget, kind="extrinsic", numerics=numerics, rng=3
                )
                assert bool(space.belongs(release.value))
                assert bool(np.all(domain.contains(release.value)))
                assert dpm.Release.from_json(release.to_json()) == release
                assert release.guarantee.fits(budget)
                assert "private extrinsic mean" in release.summary()


@every_space
def test_blocks_persons_and_added_records_are_read_as_for_other_means(space):
    center = space.random_point(rng=1)
    points, domain = around(space, center, n=120), WholeSpace(space, center)
    how = {"kind": "extrinsic", "rng": 5}
    whole = private_mean(points, domain, MUCH, **how)
    assert private_mean(np.array_split(points, 5), domain, MUCH, **how) == whole
    assert private_mean(iter(np.array_split(points, 5)), domain, MUCH, **how) == whole
    names = np.arange(120) // 3
    grouped = private_mean(points, domain, MUCH, group_by=names, **how)
    assert (grouped.n, grouped.guarantee.unit) == (40, "person")
    assert float(space.dist(grouped.value, whole.value)) < 1e-3
    added = private_mean(points, domain, MUCH, adjacency="add-remove-one", n_guess=100, **how)
    assert added.n is None
    assert float(space.dist(added.value, whole.value)) < 1e-3


def test_a_mean_that_is_nowhere_is_released_all_the_same():
    space = dpm.Sphere(2)
    pair = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    release = private_mean(pair, WholeSpace(space, np.eye(3)[2]), PureDP(1.0), kind="extrinsic", rng=0)
    assert bool(space.belongs(release.value))
    for space in SPACES:
        assert bool(space.belongs(space.unembed(np.zeros(space.ambient_dim))))


def test_the_ledger_is_charged_once_and_says_what_for(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_dataset("directions", GaussianDP(2.0))
    space, center = dpm.Sphere(2), np.eye(3)[2]
    private_mean(
        around(space, center),
        WholeSpace(space, center),
        GaussianDP(1.0),
        kind="extrinsic",
        ledger=ledger,
        dataset="directions",
    )
    (entry,) = [each for each in ledger.entries("directions") if each.kind == "spend"]
    assert entry.details["what"] == "extrinsic mean"


@every_space
def test_malformed_records_are_told_or_replaced(space):
    center = space.random_point(rng=1)
    points = around(space, center, n=30)
    points[4] *= 2
    domain = WholeSpace(space, center)
    if isinstance(space, dpm.PlanarShapes):
        points[4] = np.nan
    with pytest.raises(dpm.NotOnManifoldError, match="at least one"):
        private_mean(points, domain, PureDP(1.0), kind="extrinsic")
    mended = private_mean(points, domain, MUCH, kind="extrinsic", on_invalid="center", rng=0)
    points[4] = center
    assert private_mean(points, domain, MUCH, kind="extrinsic", rng=0).value == pytest.approx(mended.value)


def test_bad_arguments_are_refused_before_anything_is_read():
    space, center = dpm.Sphere(2), np.eye(3)[2]
    ball, unread = Ball(space, center, 1.0), object()
    for wrong in ({"steps": 2}, {"refine": 1}, {"mechanism": "riemannian-laplace", "numerics": "idealized"}):
        with pytest.raises(ArgumentError, match="one sum"):
            private_mean(unread, ball, PureDP(1.0), kind="extrinsic", **wrong)
    with pytest.raises(ArgumentError, match="kind must be one of"):
        private_mean(unread, ball, PureDP(1.0), kind="median")
    points = space.random_point(10, rng=0)
    with pytest.raises(dpm.NotAvailableError, match="no extrinsic mean"):
        private_mean(dpm.SPD(2).random_point(9, rng=0), Ball(dpm.SPD(2), np.eye(2), 1.0), PureDP(1.0), kind="extrinsic")
    with pytest.raises(ArgumentError, match="WholeSpace"):
        private_mean(unread, dpm.DescriptorDomain(), PureDP(1.0), kind="extrinsic")
    for wrong in ([0.0, 0.0, 2.0], [[0.0, 0.0, 1.0]]):
        with pytest.raises(dpm.NotOnManifoldError, match="one point"):
            private_mean(points, WholeSpace(space, wrong), PureDP(1.0), kind="extrinsic")
    with pytest.raises(ArgumentError, match="empty"):
        private_mean(points[:0], ball, PureDP(1.0), kind="extrinsic")
    with pytest.raises(ArgumentError, match="bounded"):
        private_mean(points, WholeSpace(space, center), PureDP(1.0))
    with pytest.raises(ArgumentError, match="one step"):
        dpm.plan(ball, 100, errors=0.1, kind="extrinsic")
    with pytest.raises(dpm.NotAvailableError, match="no region"):
        dpm.confidence_region(private_mean(points, ball, PureDP(1.0), kind="extrinsic", rng=0))


def test_a_lattice_in_which_all_projectors_are_lost_is_refused_and_stands_in_for_nothing():
    """All records counted as nothing, and the centre was released as their mean."""
    for space, mu in ((dpm.Grassmann(60, 20), 1e-9), (dpm.Grassmann(40, 1), 3e-10)):
        points = space.random_point(5, rng=0)
        with pytest.raises(dpm.ScaleOutOfRangeError, match="finer lattice"):
            private_mean(points, WholeSpace(space, points[0]), GaussianDP(mu), kind="extrinsic")
    wide = Ball(space, points[0], 0.49 * np.pi)
    assert find_stand_in(wide, math.inf, 5, GaussianDP(1.0)) is not None
    assert find_stand_in(wide, math.inf, 5, GaussianDP(3e-10)) is None


def test_the_command_line_has_both_kinds(tmp_path):
    np.save(tmp_path / "directions.npy", around(dpm.Sphere(2), np.eye(3)[2]))
    line = ["mean", str(tmp_path / "directions.npy"), "--manifold", "sphere:2", "--center", "0,0,1", "--radius", "2"]
    line += ["--epsilon", "1", "--kind", "extrinsic", "--yes", "--out", str(tmp_path / "out")]
    released = CliRunner().invoke(app, line)
    assert released.exit_code == 0, released.output
    assert dpm.Release.from_json((tmp_path / "out" / "release.json").read_text()).statistic == "extrinsic mean"


def test_noise_beyond_the_ball_is_told_before_anything_is_spent():
    ball = dpm.Ball(dpm.Sphere(50), np.eye(51)[0], 0.5)
    records = ball.clip(dpm.Sphere(50).random_point(20, rng=0))
    dpm.spent(reset=True)
    with pytest.raises(dpm.NoiseExceedsDomainWarning):
        dpm.private_mean(records, ball, dpm.PureDP(0.5), kind="extrinsic")
    assert dpm.spent() == []
    with pytest.warns(dpm.NoiseExceedsDomainWarning):
        release = dpm.private_mean(records, ball, dpm.PureDP(0.5), kind="extrinsic")
    assert release.noise_warning == dpm.NoiseExceedsDomainWarning.words
