"""`private_mean(kind="extrinsic")`: the target, persons, streams, the told error, and refusals before any draw."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifolds as dpm
from dpmanifolds import ApproxDP, ArgumentError, Ball, GaussianDP, PureDP, WholeSpace, private_mean
from dpmanifolds.cli import app
from dpmanifolds.ledger import Ledger

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


def test_wide_spheres_err_less_than_by_tangent_steps_in_one_shot():
    space = dpm.Sphere(10)
    center = np.eye(11)[0]
    ball = Ball(space, center, 2.4)
    points = around(space, center, 0.8, n=2000)
    targets = {
        "extrinsic": space.unembed(points.mean(axis=0)),
        "frechet": dpm.frechet_mean(space, points).point,
    }
    errors = {
        kind: [
            float(space.dist(private_mean(points, ball, GaussianDP(1.0), kind=kind, refine=0, rng=seed).value, target))
            for seed in range(12)
        ]
        for kind, target in targets.items()
    }
    assert np.mean(errors["extrinsic"]) < 0.6 * np.mean(errors["frechet"])
    assert "Another target" in str(dpm.plan(ball, 2000, GaussianDP(1.0)))
    assert "Another target" not in str(dpm.plan(Ball(space, center, 0.3), 2000, GaussianDP(1.0)))
    planned = dpm.plan(ball, 2000, GaussianDP(1.0), kind="extrinsic")
    assert "extrinsic mean" in str(planned)
    assert planned.best().error.mean < 0.5 * dpm.plan(ball, 2000, GaussianDP(1.0)).best().error.mean


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


def test_the_command_line_has_both_kinds(tmp_path):
    np.save(tmp_path / "directions.npy", around(dpm.Sphere(2), np.eye(3)[2]))
    line = ["mean", str(tmp_path / "directions.npy"), "--manifold", "sphere:2", "--center", "0,0,1", "--radius", "2"]
    line += ["--epsilon", "1", "--kind", "extrinsic", "--yes", "--out", str(tmp_path / "out")]
    released = CliRunner().invoke(app, line)
    assert released.exit_code == 0, released.output
    assert dpm.Release.from_json((tmp_path / "out" / "release.json").read_text()).statistic == "extrinsic mean"
