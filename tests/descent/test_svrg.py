"""Variance reduction: what it costs is the composition of its parts, and it finds minima."""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifolds import SPD, ApproxDP, ArgumentError, Ball, Euclidean, GaussianDP, PureDP, Sphere, Stiefel, frechet_mean
from dpmanifolds.descent import private_svrg
from dpmanifolds.descent.losses import FrechetMeanLoss, PCALoss
from dpmanifolds.privacy import Guarantee, compose, full_batch_descent, poisson_descent

SPACE = SPD(2)
BALL = Ball(SPACE, np.eye(2), 1.5)
RECORDS = BALL.clip(SPACE.random_point(2000, rng=0))
BUDGET = ApproxDP(2.0, 1e-6)


def run(loss=None, records=RECORDS, manifold=SPACE, **options):
    given = {
        "start": BALL.center, "budget": BUDGET, "anchors": 2, "inner": 3, "step_size": 0.4, "smoothness": 2.0,
        "batch_size": 200, "rng": 0,
    }  # fmt: skip
    return private_svrg(FrechetMeanLoss(BALL) if loss is None else loss, records, manifold, **(given | options))


@pytest.mark.parametrize("budget", [BUDGET, GaussianDP(1.0)], ids=["approximate", "gaussian"])
def test_every_full_gradient_and_every_correction_is_paid(budget):
    result = run(budget=budget)
    full, short = result.anchor_plan, result.inner_plan
    outer = full_batch_descent(n=2000, steps=2, clip=1.5, sigma=full.sigma)
    inner = poisson_descent(n=2000, rate=short.rate, steps=6, clip=1.0, sigma=short.sigma)
    assert result.guarantee == compose(outer, inner)
    assert result.guarantee.fits(budget)


def test_hardly_less_noise_would_break_the_budget():
    result = run()
    full, short = result.anchor_plan, result.inner_plan
    outer = full_batch_descent(n=2000, steps=2, clip=1.5, sigma=0.99 * full.sigma)
    inner = poisson_descent(n=2000, rate=short.rate, steps=6, clip=1.0, sigma=0.99 * short.sigma)
    assert not compose(outer, inner).fits(BUDGET)


def test_the_noise_of_a_correction_follows_its_public_clip(monkeypatch):
    """Given the past, an inner step is one Gaussian mechanism of the planned noise multiplier, whatever its clip."""
    from dpmanifolds.descent import svrg

    seen = []

    class Watched(svrg.NoisyGradient):
        def private(self, w, total):
            seen.append((type(self.loss).__name__, self.sigma_steps / 2**self.exponent, self.length))
            return super().private(w, total)

    monkeypatch.setattr(svrg, "NoisyGradient", Watched)
    result = run()
    assert [name for name, _, _ in seen] == (["FrechetMeanLoss"] + 3 * ["_Difference"]) * 2
    ratios = [ratio for name, ratio, _ in seen if name == "_Difference"]
    assert ratios == pytest.approx([result.inner_plan.sigma * result.inner_plan.divisor] * 6)
    assert len({clip for name, _, clip in seen if name == "_Difference"}) == 6


def test_it_finds_the_mean():
    seen = []
    result = run(budget=GaussianDP(20.0), anchors=5, inner=5, callback=seen.append)
    exact = frechet_mean(SPACE, RECORDS).point
    assert SPACE.dist(result.point, exact) < 0.02
    assert len(seen) == 30
    assert np.array_equal(seen[-1], result.point)
    sphere = Sphere(2)
    cap = Ball(sphere, np.array([0.0, 0.0, 1.0]), 0.8)
    points = cap.clip(sphere.random_point(2000, rng=1))
    found = run(FrechetMeanLoss(cap), points, sphere, start=cap.center, budget=GaussianDP(20.0), anchors=4).point
    assert sphere.dist(found, frechet_mean(sphere, points).point) < 0.03


def test_corrections_are_exact_where_the_gradient_is_affine():
    """In flat space g(w) − g(w̃) = w − w̃ for every record: after the clip L = 1 nothing is lost but the noise."""
    space = Euclidean(3)
    ball = Ball(space, np.zeros(3), 2.0)
    records = np.random.default_rng(0).standard_normal((500, 3)) / 4
    options = {"start": np.ones(3), "budget": GaussianDP(500.0), "smoothness": 1.0, "batch_size": 499}
    found = run(FrechetMeanLoss(ball), records, space, sampling="without-replacement", **options).point
    # eight steps of length 0.4, each of which leaves six tenths of the way
    mean = records.mean(axis=0)
    assert np.allclose(found, mean + 0.6**8 * (1 - mean), atol=1e-3)


def test_a_seed_repeats_a_run_and_a_ledger_is_asked_first():
    assert np.array_equal(run().point, run().point)
    assert run().reproducible

    class Refuses:
        def spend(self, dataset, guarantee, **told):
            assert dataset == "study"
            assert told["what"] == "svrg"
            raise PermissionError

    seen = []
    with pytest.raises(PermissionError):
        run(ledger=Refuses(), dataset="study", callback=seen.append)
    assert not seen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": PureDP(1.0)}, "budget must be"),
        ({"budget": 1.0}, "budget must be"),
        ({"anchors": 0}, "anchors"),
        ({"inner": 0}, "inner"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"step_size": -1.0}, "step_size"),
        ({"anchor_share": 1.0}, "anchor_share"),
        ({"ledger": object()}, "needs dataset"),
        ({"batch_size": 2001}, "at most the number of records"),
        ({"loss": PCALoss(Stiefel(3, 2), 1.0), "manifold": Stiefel(3, 2), "start": np.eye(3)[:, :2],
          "records": np.zeros((5, 3))}, "transports"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        run(**options)


def test_persons_with_several_records_are_protected_as_persons():
    """Every person's visits twice: the same mean gradients, so the same run up to rounding, and n counts persons."""
    budget = GaussianDP(5.0)
    alone = run(budget=budget)
    twice = run(records=np.repeat(RECORDS, 2, axis=0), group_by=np.repeat(np.arange(2000), 2), budget=budget)
    assert twice.anchor_plan.n == 2000
    assert twice.guarantee.fits(budget)
    assert twice.inner_plan.sigma == alone.inner_plan.sigma
    assert SPACE.dist(alone.point, twice.point) < 1e-3


def test_persons_need_no_bound_on_gradients():
    class Unbounded(FrechetMeanLoss):
        bound = None

    assert run(Unbounded(BALL), clip_norm=1.5, group_by=np.arange(2000)).guarantee.fits(BUDGET)


def test_the_noise_is_found_without_the_slack_of_a_sum(monkeypatch):
    """A composition 1e−12 above the budget was taken for one within it."""
    asked = []
    fits = Guarantee.fits

    def watched(self, budget, *, strict=False):
        asked.append(strict)
        return fits(self, budget, strict=strict)

    monkeypatch.setattr(Guarantee, "fits", watched)
    budget = GaussianDP(0.3)
    result = run(budget=budget)
    assert asked
    assert all(asked)
    assert compose(result.anchor_plan.guarantee, result.inner_plan.guarantee).fits(budget, strict=True)
