"""Private tests through the front door: what they find, refuse, promise and write."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds import ArgumentError, Ball, Decision, PureDP
from dpmanifolds.domains import WholeSpace
from dpmanifolds.ledger import Ledger

PLANE = Ball(dpm.Euclidean(2), [0.0, 0.0], radius=3.0)
ONE = PureDP(1.0)
YEARS = Ball.from_bounds(dpm.Euclidean(1), [0.0], [100.0])


def two(n: int = 60, m: int = 50, shift: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=(m, 2)) + np.array([shift, 0.0])


def compared(x, y, domain=PLANE, budget=ONE, **options) -> Decision:
    return dpm.private_two_sample_test(x, y, domain, budget, **{"rng": 0, **options})


def depends(points, covariates, **options) -> Decision:
    options = {"covariate_domain": YEARS, "rng": 0, **options}
    if "classes" in options:
        del options["covariate_domain"]
    return dpm.private_independence_test(points, covariates, PLANE, PureDP(1.0), **options)


@pytest.mark.parametrize("kernel", ["auto", "directions", "gaussian", "linear"])
@pytest.mark.parametrize(
    "budget", [PureDP(1.0), dpm.ApproxDP(1.0, 1e-6), dpm.GaussianDP(1.0), dpm.ZeroConcentratedDP(0.5)]
)
def test_a_large_difference_is_found_and_none_is_not(kernel, budget):
    x, y = two(300, 200, 2.0)
    assert compared(x, y, budget=budget, kernel=kernel).rejected
    assert not compared(x[:150], x[150:], budget=budget, kernel=kernel, rng=3).rejected


def test_a_difference_in_spread_is_found_by_all_kernels_but_the_linear_one():
    rng = np.random.default_rng(1)
    x, y = 0.3 * rng.normal(size=(600, 2)), 1.5 * rng.normal(size=(600, 2))
    assert compared(x, y, budget=PureDP(3.0)).rejected
    assert compared(x, y, budget=PureDP(3.0), kernel="gaussian").rejected
    assert not compared(x, y, budget=PureDP(3.0), kernel="linear").rejected


@pytest.mark.parametrize(
    "manifold",
    [
        dpm.SPD(2),
        dpm.SPD(2, "log-euclidean"),
        dpm.Sphere(2),
        dpm.Hyperbolic(2),
        dpm.PlanarShapes(4),
        dpm.SpecialOrthogonal(3),
    ],
    ids=repr,
)
def test_groups_at_two_places_of_a_ball_are_told_apart_on_every_manifold(manifold):
    center = manifold.random_point(rng=5) if manifold.natural_center is None else manifold.natural_center
    ball = Ball(manifold, center, 0.6)
    rng = np.random.default_rng(2)
    rows = 0.1 * rng.normal(size=(2, 200, manifold.dim))
    rows[1, :, 0] += 0.4
    x, y = (np.asarray(manifold.move(np.asarray(ball.center), each)) for each in rows)
    assert compared(x, y, ball).rejected
    assert not compared(x[:100], x[100:], ball, rng=4).rejected
    if manifold.ambient_dim:
        assert compared(x, y, ball, kernel="exponential").rejected
        assert compared(x, y, WholeSpace(manifold, ball.center), budget=PureDP(3.0), bandwidth=0.3).rejected


def test_there_are_more_directions_in_high_dimension_and_fewer_for_many_records():
    ball = Ball(dpm.Euclidean(50), np.zeros(50), 8.5)
    x, y = np.random.default_rng(1).normal(size=(2, 100, 50))
    found = [compared(x, y + 1.6 / np.sqrt(50), ball, budget=ONE, rng=seed) for seed in range(4)]
    assert all(each.rejected for each in found)
    assert found[0].kernel.startswith("8,192 directions, bandwidth")
    assert compared(*two(3000, 3000, 1.0)).kernel.startswith("512 directions")


def test_a_decision_comes_back_from_json_and_says_what_it_is():
    x, y = two(shift=1.0)
    for options in ({}, {"pvalue": True}, {"budget": dpm.GaussianDP(0.5)}):
        made = compared(x, y, **options)
        again = Decision.from_json(made.to_json())
        assert again == made
        assert hash(again) == hash(made)
        assert again.spent == made.budget
        assert again.rejected is made.rejected
    assert "Do the two groups come from one law?" in made.summary()
    assert "NOT FOR REAL RECORDS" in made.summary()
    assert "60 and 50" in repr(made)


def test_a_decision_tells_no_statistic():
    told = json.loads(compared(*two()).to_json())
    assert set(told) == {
        *(
            "schema",
            "question",
            "rejected",
            "pvalue",
            "level",
            "permutations",
            "kernel",
            "mechanism",
            "numerics",
            "sigma",
        ),
        *("reach", "reproducible", "version", "sizes", "guarantee", "budget", "sensitivity", "domain"),
    }


def test_json_of_something_else_is_refused():
    for text in ("", "{}", "[1]", '{"schema": 9}', compared(*two()).to_json().replace("two-sample", "other")):
        with pytest.raises(ArgumentError):
            Decision.from_json(text)


def test_the_promise_is_that_of_root_two_over_the_smaller_group():
    made = compared(*two(60, 50))
    assert float(made.sensitivity) == pytest.approx(np.sqrt(2) / 50, rel=1e-6)
    assert made.sigma == pytest.approx(2 * np.sqrt(2) / 50, rel=1e-6)
    assert made.reach == pytest.approx(made.sigma * np.log(25), rel=1e-6)
    assert made.guarantee.unit == "record within class"
    assert compared(*two(60, 50), pvalue=True).sigma == pytest.approx(2 * made.sigma, rel=1e-6)


def test_a_pvalue_is_a_rank_and_agrees_with_the_decision():
    x, y = two(300, 300, 2.0)
    made = compared(x, y, pvalue=True, permutations=99)
    assert made.rejected
    assert made.pvalue == 0.01
    nothing = compared(x[:150], x[150:], pvalue=True)
    assert nothing.rejected == (nothing.pvalue <= 0.05)
    assert nothing.spent == PureDP(1.0)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 2.0, np.nan, "high", None])
def test_a_level_outside_of_0_and_1_is_refused(level):
    with pytest.raises(ArgumentError, match="level must be a number between 0 and 1"):
        compared(*two(), level=level)


def test_so_few_permutations_that_nothing_can_be_found_are_refused():
    with pytest.raises(ArgumentError, match=r"permutations must be at least 19 at level 0\.05"):
        compared(*two(), permutations=18)
    assert compared(*two(), permutations=19).permutations == 19
    assert compared(*two(), permutations=99, level=0.07).level == 0.07
    for wrong in (0, -1, 2.5, "many", 10**9):
        with pytest.raises(ArgumentError, match="permutations"):
            compared(*two(), permutations=wrong)


@pytest.mark.parametrize("few", [np.zeros((0, 2)), np.zeros((1, 2))])
def test_a_group_of_less_than_two_is_refused(few):
    x, _ = two()
    for pair in ((few, x), (x, few)):
        with pytest.raises(ArgumentError, match=r"group must have at least two|at least one record"):
            compared(*pair)


def test_records_of_another_shape_are_refused_with_the_name_of_their_group():
    x, y = two()
    with pytest.raises(ArgumentError, match="y must have shape"):
        compared(x, np.zeros((20, 3)))
    with pytest.raises(ArgumentError, match="x "):
        compared("text", y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_malformed_records_are_told_or_become_the_centre(bad):
    x, y = two()
    broken = y.copy()
    broken[3] = bad
    with pytest.raises(dpm.NotOnManifoldError, match="at least one does not"):
        compared(x, broken)
    mended = y.copy()
    mended[3] = 0.0
    assert compared(x, broken, on_invalid="center") == compared(x, mended, on_invalid="center")


@pytest.mark.parametrize(
    "options", [{"pvalue": 1}, {"on_invalid": "drop"}, {"kernel": "geodesic"}, {"bandwidth": -1.0}, {"unit": ""}]
)
def test_other_wrong_options_are_refused(options):
    with pytest.raises(ArgumentError):
        compared(*two(), **options)
    with pytest.raises(ArgumentError):
        compared(*two(), budget=1.0)
    with pytest.raises(ArgumentError):
        compared(*two(), domain="ball")


def test_float32_read_only_and_strided_records_are_taken():
    x, y = two(shift=3.0)
    x, y = (np.round(16 * each) / 16 for each in (x, y))
    usual = compared(x, y)
    frozen = np.asfortranarray(x)
    frozen.flags.writeable = False
    assert compared(frozen, np.repeat(y, 2, axis=0)[::2]) == usual
    assert compared(x.astype(np.float32), y.astype(np.float32)) == usual
    assert compared(x.tolist(), y.tolist()) == usual


def test_persons_are_one_term_each_and_somebody_in_both_groups_is_refused():
    x, y = two(60, 60, 2.5)
    names = (np.repeat(np.arange(30), 2), np.repeat(np.arange(100, 130), 2))
    made = compared(x, y, group_by=names, budget=PureDP(3.0))
    assert made.sizes == (30, 30)
    assert made.guarantee.unit == "person within class"
    assert made.rejected
    once = compared(np.repeat(x[:30], 2, axis=0), np.repeat(y[:30], 2, axis=0), group_by=names)
    assert once.rejected == compared(x[:30], y[:30]).rejected
    with pytest.raises(ArgumentError, match="somebody in both groups"):
        compared(x, y, group_by=(names[0], names[0]))
    for wrong in (names[0], "ann", (names[0],), 3):
        with pytest.raises(ArgumentError, match="group_by must be a pair"):
            compared(x, y, group_by=wrong)
    with pytest.raises(ArgumentError, match="group_by"):
        compared(x, y, group_by=(names[0][:-1], names[1]))


@pytest.mark.parametrize(
    "spell",
    [
        iter,
        lambda names: map(str, names),
        lambda names: [str(name) for name in names],
        lambda names: [f"{name} ".encode() for name in names],
        lambda names: names.astype(float),
        lambda names: [f"{name:04d}" for name in names],
    ],
)
def test_somebody_in_both_groups_is_refused_under_every_spelling_and_from_iterators(spell):
    x, y = two(60, 60)
    names = np.repeat(np.arange(30), 2)
    with pytest.raises(ArgumentError, match="somebody in both groups"):
        compared(x, y, group_by=(names, spell(names)))
    with pytest.raises(ArgumentError, match="somebody in both groups"):
        compared(x, y, group_by=(spell(names), spell(names)))
    assert compared(x, y, group_by=(spell(names), spell(names + 100))).sizes == (30, 30)
    long = 2_000_000_000_000_000_000 + 4096 * names
    with pytest.raises(ArgumentError, match="somebody in both groups"):
        compared(x, y, group_by=(long, spell(long)))


@pytest.mark.parametrize("odd", ["abc", b"7", 1j, [1.0, 2.0], [], {}, None, np.zeros((2, 1)), 10**400])
def test_an_odd_covariate_in_a_list_is_one_malformed_record_and_changes_no_other(odd):
    x, _ = two()
    ages = np.random.default_rng(3).uniform(0, 100, size=60).astype(np.float32).tolist()
    mended = [*ages[:7], 50.0, *ages[8:]]
    given = [*ages[:7], odd, *ages[8:]]
    found = depends(x, given, on_invalid="center", pvalue=True)
    assert found == depends(x, mended, on_invalid="center", pvalue=True)
    with pytest.raises(dpm.NotOnManifoldError, match="at least one does not"):
        depends(x, given)


def test_covariates_come_in_blocks_and_what_can_be_read_once_is_refused_by_name():
    x, y = two()
    ages = np.random.default_rng(3).uniform(0, 100, size=60)
    usual = depends(x, ages, pvalue=True)
    assert depends(x, [ages[:25, None], ages[25:, None]], pvalue=True) == usual
    assert depends(x, tuple(ages), pvalue=True) == usual
    with pytest.raises(ArgumentError, match="covariates is an iterator"):
        depends(x, iter([ages[:, None]]))
    with pytest.raises(ArgumentError, match="y is an iterator"):
        compared(x, iter([y]))


def test_a_ledger_is_charged_once_before_the_answer_and_refuses_what_does_not_fit(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.open_dataset("clinic", PureDP(1.0), unit="record within class")
    x, y = two()
    options = {"ledger": ledger, "dataset": "clinic", "rng": None}
    with pytest.raises(ArgumentError):
        compared(x, np.zeros((1, 2)), budget=PureDP(0.6), **options)
    assert ledger.remaining("clinic") == PureDP(1.0)
    compared(x, y, budget=PureDP(0.6), **options)
    assert ledger.remaining("clinic").epsilon == pytest.approx(0.4)
    with pytest.raises(dpm.BudgetExceededError):
        compared(x, y, budget=PureDP(0.6), **options)


def test_dependence_is_found_and_independence_is_not():
    rng = np.random.default_rng(4)
    ages = rng.uniform(0, 100, size=400)
    points = 0.3 * rng.normal(size=(400, 2))
    assert not depends(points, ages).rejected
    assert depends(points + np.outer(ages / 50 - 1, [1.5, 0.0]), ages).rejected
    assert depends(points + np.outer(np.cos(ages / 10), [1.5, 0.0]), ages[:, None], covariate_bandwidth=10.0).rejected
    labels = rng.choice(["left", "right"], size=400)
    assert depends(points + np.outer(labels == "left", [2.0, 0.0]), labels, classes=["left", "right"]).rejected
    assert not depends(points, labels, classes=["left", "right"]).rejected


def test_independence_has_its_own_sensitivity_and_counts_persons():
    rng = np.random.default_rng(5)
    points, ages = rng.normal(size=(40, 2)), rng.uniform(0, 100, size=40)
    made = depends(points, ages)
    assert float(made.sensitivity) == pytest.approx(4 * 39 / 40**2, rel=1e-6)
    assert made.sigma == pytest.approx((4 + np.sqrt(6)) * 39 / 40**2, rel=1e-6)
    assert made.guarantee.unit == "record"
    grouped = depends(points, ages, group_by=np.repeat(np.arange(20), 2))
    assert grouped.sizes == (20,)
    assert grouped.guarantee.unit == "person"
    classes = depends(points, ["a", "b"] * 20, classes=["a", "b"], group_by=np.repeat(np.arange(20), 2))
    assert classes.sizes == (20,)
    assert Decision.from_json(grouped.to_json()) == grouped


def test_a_constant_covariate_is_not_told():
    points = np.random.default_rng(6).normal(size=(60, 2))
    assert sum(depends(points, np.full(60, 50.0), rng=seed).rejected for seed in range(40)) <= 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"covariate_domain": None}, "say what covariates are"),
        ({"classes": ["only"]}, "at least two labels"),
        ({"classes": ["a", "a"]}, "each label once"),
        ({"classes": ["a", "b"]}, "every label must be one of classes"),
        ({"covariate_bandwidth": [1.0, 2.0]}, "covariate_bandwidth must be one number"),
        ({"covariate_kernel": "geodesic"}, "kernel must be one of"),
    ],
)
def test_wrong_covariates_are_refused(options, words):
    points = np.zeros((20, 2))
    with pytest.raises(ArgumentError, match=words):
        depends(points, np.zeros(20), **options)


def test_covariates_of_another_number_and_too_few_records_are_refused():
    with pytest.raises(ArgumentError, match="covariates must be as many"):
        depends(np.zeros((20, 2)), np.zeros(19))
    with pytest.raises(ArgumentError, match="at least four"):
        depends(np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(dpm.NotOnManifoldError):
        depends(np.zeros((20, 2)), np.full(20, np.nan))
    with pytest.raises(ArgumentError):
        Ball.from_bounds(dpm.Euclidean(1), [5.0], [5.0])


def _no_noise(*_: object) -> None:
    raise AssertionError("noise was drawn")


X, AGES = two()[0], np.random.default_rng(3).uniform(0, 100, size=60)
WRONG = {
    "a group of none": (compared, {"y": np.zeros((0, 2))}),
    "a group of one": (compared, {"x": np.zeros((1, 2))}),
    "another dimension": (compared, {"y": np.zeros((20, 3))}),
    "a malformed record": (compared, {"y": np.where(np.arange(40).reshape(20, 2) == 7, np.nan, 0.0)}),
    "a level of 0": (compared, {"level": 0.0}),
    "a level of 1": (compared, {"level": 1.0}),
    "a kernel without proof": (compared, {"kernel": "geodesic"}),
    "permutations that find nothing": (compared, {"permutations": 18}),
    "somebody in both groups": (compared, {"y": X, "group_by": (np.arange(60), np.arange(60))}),
    "three pairs": (depends, {"points": X[:3], "covariates": AGES[:3]}),
    "covariates of another number": (depends, {"covariates": AGES[:59]}),
    "a covariate that is no number": (depends, {"covariates": np.where(np.arange(60) == 7, np.inf, AGES)}),
    "a label of no class": (depends, {"covariates": ["a"] * 59 + ["c"], "classes": ["a", "b"]}),
    "a covariate's kernel without proof": (depends, {"covariate_kernel": "geodesic"}),
    "an independence level of 2": (depends, {"level": 2.0}),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_refused_before_noise_is_drawn_or_budget_spent(what, tmp_path, monkeypatch):
    ask, given = WRONG[what]
    unit = "record within class" if ask is compared else "record"
    usual = {"x": X, "y": X + 1} if ask is compared else {"points": X, "covariates": AGES}
    ledger = Ledger(tmp_path / "a.ledger")
    ledger.open_dataset("clinic", PureDP(1.0), unit=unit)
    monkeypatch.setattr("dpmanifolds.sums.decision_noise.DecisionNoise.add_to", _no_noise)
    with pytest.raises(dpm.DPManifoldsError):
        ask(**{**usual, **given}, ledger=ledger, dataset="clinic", rng=None)
    assert ledger.remaining("clinic") == PureDP(1.0)
    with pytest.raises(AssertionError, match="noise was drawn"):
        ask(**usual, ledger=ledger, dataset="clinic", rng=None)
