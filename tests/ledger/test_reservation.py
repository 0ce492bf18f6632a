"""Plans: one release with the composed promise, each part used once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpmanifolds.errors import ArgumentError, BudgetExceededError, LedgerError, NotAvailableError
from dpmanifolds.ledger import Ledger, Reservation, as_ledger
from dpmanifolds.privacy import ApproxDP, GaussianDP, Guarantee, PureDP, compose


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    return ledger


def test_a_plan_is_charged_once_as_its_composition(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("survey", GaussianDP(10.0))
    plan = ledger.reserve("survey", [Guarantee.gaussian(3.0), Guarantee.gaussian(4.0)], what="two means")
    assert ledger.spent("survey") == GaussianDP(5.0)
    plan.use(0)
    plan.use(1)
    assert ledger.spent("survey") == GaussianDP(5.0)
    assert ledger.entries()[1].guarantee == compose(Guarantee.gaussian(3.0), Guarantee.gaussian(4.0))
    assert ledger.verify() == 4


def test_a_plan_that_only_a_privacy_loss_distribution_fits_takes_the_whole_budget(ledger):
    parts = [Guarantee.laplace(0.04)] * 36
    limit = ledger.datasets()[0].limit
    assert compose(*parts).as_renyi(limit.alpha).epsilon > limit.epsilon
    plan = ledger.reserve("survey", parts, what="many means")
    assert plan.unused() == tuple(range(36))
    assert (ledger.spent("survey"), ledger.remaining("survey")) == (ApproxDP(1.0, 1e-6), None)
    with pytest.raises(BudgetExceededError):
        ledger.spend("survey", Guarantee.pure(1e-6), what="one more")


def test_a_plan_the_filter_cannot_read_takes_an_untouched_budget_only(ledger):
    parts = [Guarantee.approx(0.2, 1e-7)] * 2
    ledger.open_dataset("other", ApproxDP(1.0, 1e-6))
    ledger.reserve("survey", parts, what="two means")
    assert ledger.remaining("survey") is None
    ledger.spend("other", Guarantee.pure(1e-6), what="a little")
    with pytest.raises(NotAvailableError, match="cannot read"):
        ledger.reserve("other", parts, what="two means")


def test_a_plan_above_the_budget_is_refused_and_leaves_no_trace(ledger):
    with pytest.raises(BudgetExceededError, match="spent nothing"):
        ledger.reserve("survey", [Guarantee.pure(0.6)] * 2, what="too much")
    assert len(ledger.entries()) == 1


def test_each_part_is_used_once(ledger):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)] * 3, what="three")
    assert plan.use(1, what="the second").what == "the second"
    with pytest.raises(BudgetExceededError, match="part 1 of entry 2 is used up; unused parts: 0, 2"):
        plan.use(1)
    assert pickle.loads(pickle.dumps(plan)).unused() == (0, 2)
    with pytest.raises(ArgumentError, match="from 0 to 2"):
        plan.use(3)
    with pytest.raises(ArgumentError, match="seed"):
        plan.use(2, reproducible=True)
    assert plan.unused() == (0, 2)


def test_a_plan_stands_where_a_ledger_does(ledger):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01), Guarantee.pure(0.02)], what="two")
    assert as_ledger(plan) is plan
    receipt = plan.spend("survey", Guarantee.pure(0.02), what="median", parameters={"n": 3})
    assert ledger.entries()[-1].parameters == {"n": 3}
    assert plan.unused() == (0,)
    ledger.verify([receipt])
    with pytest.raises(BudgetExceededError, match="no unused part"):
        plan.spend("survey", Guarantee.pure(0.02), what="median")
    with pytest.raises(ArgumentError, match="reserved on 'survey'"):
        plan.spend("other", Guarantee.pure(0.01), what="mean")


def test_threads_that_want_the_same_part_get_it_once(ledger):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)] * 2, what="two")

    def grab(_):
        try:
            return plan.use(0).number
        except BudgetExceededError:
            return None

    with ThreadPoolExecutor(4) as pool:
        grabbed = [number for number in pool.map(grab, range(8)) if number is not None]
    assert grabbed == [3]


def test_a_plan_is_known_to_its_own_file_only(ledger, tmp_path):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)], what="one")
    other = Ledger(tmp_path / "other.ledger")
    other.open_dataset("survey", PureDP(1.0))
    strange = type(plan)(other.path, plan.dataset, plan.number, plan.parts)
    with pytest.raises(LedgerError, match="is not this plan"):
        strange.use(0)


def test_an_empty_plan_is_refused(ledger):
    with pytest.raises(ArgumentError, match="one or more guarantees"):
        ledger.reserve("survey", [], what="nothing")


@pytest.mark.parametrize("number", [0, -1, -2, True, 2.0, float("nan"), "2", None])
def test_a_plan_has_the_number_of_its_entry_and_no_other(ledger, number):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)] * 2, what="two")
    with pytest.raises(ArgumentError, match="number must be a whole number from 1 up"):
        Reservation(plan.path, plan.dataset, number, plan.parts)
    # a number that got past the constructor, from a pickle for instance, opens no second account of parts
    forged = pickle.loads(pickle.dumps(plan))
    object.__setattr__(forged, "number", number)
    used = 0
    for act in (forged.use, forged.use, plan.use, plan.use, forged.use):
        for part in (0, 1):
            try:
                act(part)
                used += 1
            except (BudgetExceededError, LedgerError):
                continue
    assert used == 2


@pytest.mark.parametrize("wrong", [{"path": ""}, {"dataset": ""}, {"dataset": 3}, {"parts": [1]}, {"parts": ("pure",)}])
def test_a_plan_is_made_of_what_reserve_returned(ledger, wrong):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)] * 2, what="two")
    with pytest.raises(ArgumentError):
        Reservation(**({"path": plan.path, "dataset": "survey", "number": 2, "parts": plan.parts} | wrong))


@pytest.mark.parametrize("part", [-1, 2, True, 1.0, float("nan"), "0"])
def test_a_part_is_a_whole_number(ledger, part):
    plan = ledger.reserve("survey", [Guarantee.pure(0.01)] * 2, what="two")
    with pytest.raises(ArgumentError, match="part must be a whole number from 0 to 1"):
        plan.use(part)
    assert plan.unused() == (0, 1)
