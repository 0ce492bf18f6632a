"""What `private_descent` lets out: a release like any other, with the public numbers of its steps."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.domains import WholeSpace

BALL = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
RECORDS = dpm.SPD(2).random_point(400, rng=0)
BUDGET = dpm.ApproxDP(1.0, 1e-6)
LOSS = dpm.losses.FrechetMeanLoss(BALL)


def run(domain=BALL, budget=BUDGET, records=RECORDS, loss=LOSS, **options):
    return dpm.private_descent(loss, records, domain, budget, **({"steps": 3, "step_size": 0.5, "rng": 0} | options))


def test_over_a_domain_it_starts_at_the_centre_and_stays_inside():
    seen = []
    release = run(sigma=3.0, budget=None, callback=lambda _, w: seen.append(w))
    assert bool(np.all(BALL.contains(np.stack(seen))))
    assert release.domain is BALL
    again = run(sigma=3.0, budget=None, start=BALL.center)
    assert np.array_equal(release.value, again.value)
    assert not np.array_equal(release.value, run(sigma=3.0, budget=None, start=2 * np.eye(2)).value)


def test_over_a_manifold_it_needs_a_start_and_goes_anywhere():
    with pytest.raises(dpm.ArgumentError, match="start is needed"):
        run(BALL.manifold)
    release = run(BALL.manifold, start=np.eye(2), sigma=30.0, budget=None)
    assert not bool(BALL.contains(release.value))
    assert isinstance(release.domain, WholeSpace)
    assert release.manifold == BALL.manifold
    assert np.array_equal(release.viewpoint, np.eye(2))


CASES = {
    "ball": run,
    "manifold": lambda: run(BALL.manifold, start=np.eye(2)),
    "batches": lambda: run(batch_size=40),
    "sets": lambda: run(batch_size=40, sampling="without-replacement"),
    "sigma": lambda: run(budget=None, sigma=0.1, batch_size=40),
    "pure": lambda: run(budget=dpm.PureDP(1.0)),
    "median": lambda: dpm.private_median(RECORDS, BALL, BUDGET, rng=0),
    "protected": lambda: run(adjacency="add-remove-one", n_guess=300),
    "frames": lambda: run(
        dpm.Stiefel(4, 2),
        records=np.random.default_rng(0).standard_normal((90, 4)),
        loss=dpm.losses.PCALoss(dpm.Stiefel(4, 2), 1.0),
        start=np.eye(4)[:, :2],
    ),
}


@pytest.mark.grid(at_most=4)
@pytest.mark.parametrize("name", CASES)
def test_it_is_written_to_json_and_read_again(name):
    release = CASES[name]()
    again = dpm.Release.from_json(release.to_json())
    assert again == release
    assert again.descent == release.descent
    assert again.domain.radius == release.domain.radius
    assert np.array_equal(again.value, release.value)
    assert again.spent == release.spent
    assert f"{release.descent.steps} steps" in again.summary()
    assert "clip_norm" in again.summary()


@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_a_value_of_another_library_is_written_as_its_numbers(name):
    library = pytest.importorskip(name)
    release = run(records=library.asarray(RECORDS))
    assert type(release.value) is type(library.asarray(RECORDS))
    again = dpm.Release.from_json(release.to_json())
    assert np.array_equal(again.value, np.asarray(release.value))
    assert again == release


def test_details_are_those_of_the_run():
    found = run(batch_size=40, sampling="without-replacement", output="average").descent
    assert (found.steps, found.clip_norm, found.law, found.output) == (3, 2.0, "gaussian", "average")
    assert (found.batch_size, found.sampling, found.lost_steps) == (40, "without-replacement", 0)
    whole = run().descent
    assert (whole.batch_size, whole.sampling) == (None, None)


def test_without_a_budget_the_gaussian_promise_is_what_was_spent():
    release = run(budget=None, sigma=0.1)
    assert release.budget is None
    assert release.spent.mu == pytest.approx(2 * 2.0 * np.sqrt(3) / (400 * 0.1))


def test_a_run_almost_without_noise_ends_and_claims_nothing():
    release = run(budget=None, sigma=1e-12)
    assert "no promise" in repr(release)
    assert "no promise" in release.summary()
    assert dpm.Release.from_json(release.to_json()) == release
    with pytest.raises(dpm.ArgumentError, match="promises nothing"):
        _ = release.spent


def test_the_loss_names_the_statistic():
    assert run().statistic == "mean"
    assert run(loss=dpm.losses.FrechetMedianLoss(BALL)).statistic == "median"
    vectors = np.random.default_rng(0).standard_normal((90, 3))
    loss = dpm.losses.EigenvectorLoss(3, 1.0)
    assert run(loss.manifold, records=vectors, loss=loss, start=[1.0, 0.0, 0.0]).statistic == "minimiser"


@pytest.mark.parametrize(("field", "value"), [("steps", "many"), ("law", 3), ("sampling", 3), ("more", 1)])
def test_other_details_are_refused(field, value):
    data = json.loads(run().to_json())
    data["descent"][field] = value
    with pytest.raises(dpm.ArgumentError):
        dpm.Release.from_json(json.dumps(data))


def test_no_sum_is_released_over_a_whole_space():
    everywhere = run(BALL.manifold, start=np.eye(2)).domain
    for entry in (dpm.private_mean, dpm.private_variance):
        with pytest.raises(dpm.DPManifoldsError):
            entry(RECORDS, everywhere, BUDGET)


def test_losses_are_public_names():
    assert "losses" in dpm.__all__
    assert set(dpm.losses.__all__) >= {"FrechetMeanLoss", "PCALoss", "AutogradLoss", "Loss"}
    assert all(getattr(dpm.losses, name).__doc__ for name in dpm.losses.__all__)


def test_details_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        run().descent.steps = 4
