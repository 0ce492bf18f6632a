"""When a private mean is useful: what a plan says of noise, sampling and the public centre is what draws do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import SPD, ApproxDP, Ball, Euclidean, GaussianDP, PureDP, Sphere
from dpmanifolds.data import DescriptorDomain
from dpmanifolds.errors import ArgumentError
from dpmanifolds.planning import plan, split_plan
from dpmanifolds.planning.useful import guess_error
from dpmanifolds.sums import Mechanism, calibrate, mean_facts

BUDGETS = {"wrapped-gaussian": GaussianDP(1.0), "wrapped-laplace": PureDP(1.0)}
DRAWS = 1500


def unit_ball(dim: int) -> Ball:
    return Ball(Euclidean(dim), np.zeros(dim), 1.0)


def distances(mechanism: Mechanism, offset: float, draws: int = DRAWS, seed: int = 3) -> np.ndarray:
    """How far releases are from a mean at this distance from the centre of the unit ball."""
    shape: Any = mechanism.facts.shape
    mean = np.zeros(shape.dim)
    mean[0] = offset
    total = np.rint(mean / mechanism.step).astype(int).tolist()
    rng = np.random.default_rng(seed)
    noisy = np.stack([mechanism.noisy_mean(total, shape.count, rng) for _ in range(draws)])
    return np.linalg.norm(mechanism.point_of(noisy) - mean, axis=1)


def mechanism_of(name: str, dim: int, n: int) -> Mechanism:
    return calibrate(name, mean_facts(unit_ball(dim), n), BUDGETS[name], "rounded")


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("dim", [1, 6])
def test_the_ratio_is_that_of_noise_and_of_means_of_n_records(dim: int) -> None:
    """2000 samples of n records; five standard errors of both, and 1 %."""
    n, spread, rng = 200, 0.25, np.random.default_rng(1)
    found = plan(unit_ball(dim), n, PureDP(1.0), spread=spread).usefulness()
    samples = rng.standard_normal((2000, n, dim)) * (spread / np.sqrt(dim))
    squares = np.sum(np.mean(samples, axis=1) ** 2, axis=1)
    sampling = np.sqrt(squares.mean())
    noise = np.linalg.norm(
        [mechanism_of("wrapped-laplace", dim, n).noisy_mean([0] * dim, n, rng) for _ in range(2000)], axis=1
    )
    relative = 0.01 + 5 * np.hypot(squares.std() / squares.mean() / 2, noise.std() / noise.mean()) / np.sqrt(2000)
    assert found.sampling_error == pytest.approx(sampling, rel=relative)
    assert found.over_sampling == pytest.approx(noise.mean() / sampling, rel=relative)
    assert found.over_sampling != pytest.approx(1.3 * noise.mean() / sampling, rel=relative)


@pytest.mark.parametrize("budget", [PureDP(0.5), GaussianDP(1.0), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("ball", [unit_ball(6), Ball(SPD(3), np.eye(3), 2.0), Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)])
def test_privacy_error_equals_sampling_error_at_the_n_that_is_told(ball: Ball, budget: Any) -> None:
    told = plan(ball, 300, budget, spread=0.2).usefulness().equal_from
    assert plan(ball, told, budget, spread=0.2).best().over_sampling <= 1 + 1e-9
    assert plan(ball, told - 1, budget, spread=0.2).best().over_sampling > 1 - 1e-9


@pytest.mark.grid(at_most=2)
@pytest.mark.parametrize("name", BUDGETS)
@pytest.mark.parametrize(("dim", "n"), [(1, 5), (2, 40), (6, 20), (21, 60), (21, 1000)])
@pytest.mark.parametrize("offset", [0.05, 0.3, 0.9])
def test_releases_err_as_the_quadrature_says(name: str, dim: int, n: int, offset: float) -> None:
    """1500 draws; five standard errors and 1 %."""
    mechanism = mechanism_of(name, dim, n)
    found = distances(mechanism, offset)
    expected = guess_error(offset, mechanism.expected_error.mean, dim=dim, mechanism=name)
    assert abs(found.mean() - expected) <= 0.01 * expected + 5 * found.std() / np.sqrt(DRAWS)


@pytest.mark.grid
@pytest.mark.parametrize("name", BUDGETS)
@pytest.mark.parametrize(("dim", "n"), [(3, 100), (21, 400)])
def test_the_centre_is_better_within_the_distance_that_is_told_and_worse_beyond(name: str, dim: int, n: int) -> None:
    """Twice as far and half as far: the gap is more than five standard errors of 1500 draws."""
    within = plan(unit_ball(dim), n, BUDGETS[name], mechanisms=name, numerics="rounded").usefulness().center_within
    mechanism = mechanism_of(name, dim, n)
    for offset, sign in ((within / 2, 1), (2 * within, -1)):
        found = distances(mechanism, offset)
        assert sign * (found.mean() - offset) > 5 * found.std() / np.sqrt(DRAWS)


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", BUDGETS)
def test_the_private_mean_beats_the_centre_from_the_n_that_is_told(name: str) -> None:
    """At twice and at half of that number, by more than five standard errors."""
    dim, offset = 6, 0.1
    table = plan(unit_ball(dim), 50, BUDGETS[name], mechanisms=name, numerics="rounded", offset=offset)
    n = table.usefulness().beats_center_from
    assert plan(unit_ball(dim), n, BUDGETS[name], mechanisms=name).usefulness().center_within == pytest.approx(
        offset, rel=0.03
    )
    for count, sign in ((n // 2, 1), (2 * n, -1)):
        found = distances(mechanism_of(name, dim, count), offset)
        assert sign * (found.mean() - offset) > 5 * found.std() / np.sqrt(DRAWS)


def test_no_n_beats_the_centre_while_the_noise_is_larger_than_the_ball() -> None:
    """At E = r a guess is nearer to a mean at the edge than the centre is, by some per cent; beyond, by less."""
    table = plan(unit_ball(6), 5, PureDP(1.0), offset=1.0)
    found = table.usefulness()
    assert found.exceeds_domain
    assert found.beats_center_from == 12
    assert not plan(unit_ball(6), 13, PureDP(1.0)).usefulness().exceeds_domain
    assert 0.5 < guess_error(1.0, 1.0, dim=6, mechanism="wrapped-laplace") < 0.9
    assert guess_error(1.0, 10.0, dim=6, mechanism="wrapped-laplace") > 0.99


def test_noise_that_is_not_shrunk_beats_the_centre_where_it_is_smaller_than_the_offset() -> None:
    for table in (
        plan(unit_ball(3), 100, PureDP(1.0), numerics="lattice", offset=0.1),
        plan(DescriptorDomain(1), 100, PureDP(1.0), offset=0.1),
    ):
        found = table.usefulness()
        assert found.center_within == min(found.error, table.domain.radius)
        assert found.beats_center_from == np.ceil(100 * found.error / 0.1 * (1 - 1e-9))


def test_without_a_spread_the_ratio_is_left_out_and_the_words_say_why() -> None:
    table = plan(unit_ball(3), 100, PureDP(1.0))
    found = table.usefulness()
    assert (found.sampling_error, found.over_sampling, found.equal_from, found.beats_center_from) == (None,) * 4
    assert "left out: it takes spread=" in str(table)
    assert "× sampling" not in str(table)
    assert f"The public centre alone is better if the mean lies closer to it than {found.center_within:.3g}." in str(
        table
    )
    assert all(row["over_sampling"] is None for row in table.to_rows())


def test_with_spread_and_offset_the_table_tells_both_in_words() -> None:
    text = str(plan(unit_ball(3), 400, [PureDP(1.0), PureDP(2.0)], spread=0.3, offset=0.2))
    assert "× sampling" in text.splitlines()[1]
    assert "Sampling error: with 400 records at a spread of 0.3, 0.015 even without privacy." in text
    assert "errs as much at n = 400 (ε=1), 100 (ε=2), and less beyond." in text
    assert "If the mean lies 0.2 from the public centre, the private mean is expected to beat the centre alone" in text
    assert "left out" not in text


def test_a_spread_can_be_paid_for() -> None:
    ball = unit_ball(3)
    records = np.random.default_rng(0).uniform(-0.4, 0.4, (2000, 3))
    release = dpm.private_variance(records, ball, PureDP(1.0), rng=1)
    table = plan(ball, 2000, PureDP(1.0), spread=release)
    assert table.spread == np.sqrt(release.value)
    assert split_plan(ball, 2000, PureDP(1.0), 4, spread=release, offset=0.1).offset == 0.1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"spread": 0.0}, "spread must be"),
        ({"spread": "wide"}, "spread must be"),
        ({"offset": -1.0}, "offset must be"),
        ({"offset": 1.5}, "offset must be at most the radius 1,"),
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        plan(unit_ball(3), 100, PureDP(1.0), **wrong)


def test_another_release_is_no_spread() -> None:
    release = dpm.private_mean(np.zeros((500, 3)), unit_ball(3), PureDP(1.0), rng=0)
    with pytest.raises(ArgumentError, match="spread must be a number, or a release of private_variance"):
        plan(unit_ball(3), 100, PureDP(1.0), spread=release)
