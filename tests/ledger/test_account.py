"""The account: what is entered, what is refused, and that a refusal leaves no trace."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpmanifolds.errors import ArgumentError, BudgetExceededError, DPManifoldsError, LedgerError, NotAvailableError
from dpmanifolds.ledger import Ledger, as_ledger, keyed_fingerprint
from dpmanifolds.privacy import (
    ApproxDP,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    compose,
    mu_for,
)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "privacy.ledger")


def fill(ledger, release, most=1000):
    """How many such releases are taken before one is refused."""
    for count in range(most):
        try:
            ledger.spend("survey", release, what="mean")
        except BudgetExceededError:
            return count
    raise AssertionError


def test_ten_tenths_fit_into_one_and_no_more(ledger):
    ledger.open_dataset("survey", PureDP(1.0))
    assert fill(ledger, Guarantee.pure(0.1)) == 10
    assert ledger.spent("survey") == PureDP(1.0)
    assert ledger.remaining("survey") is None


def test_gaussian_releases_add_in_squares(ledger):
    ledger.open_dataset("survey", GaussianDP(1.0))
    assert fill(ledger, Guarantee.gaussian(0.2)) == 25


def test_a_release_above_the_slack_is_refused_and_one_within_it_is_not(ledger):
    for name, epsilon in (("within", 0.5 + 4e-13), ("above", 0.5 + 2e-12)):
        ledger.open_dataset(name, PureDP(1.0))
        ledger.spend(name, Guarantee.pure(0.5), what="first half")
        if name == "within":
            ledger.spend(name, Guarantee.pure(epsilon), what="second half")
        else:
            with pytest.raises(BudgetExceededError):
                ledger.spend(name, Guarantee.pure(epsilon), what="second half")


@pytest.mark.parametrize(
    ("total", "name", "release", "count"),
    [
        (ZeroConcentratedDP(0.5), "auto", Guarantee.gaussian(0.25), 16),
        (RenyiDP(4.0, 1.0), "auto", Guarantee.zcdp(0.0625), 4),
        (ApproxDP(1.0, 1e-6), "basic", Guarantee.approx(0.125, 1e-7), 8),
        (ApproxDP(1.0, 1e-6), "basic", Guarantee.approx(0.01, 2.5e-7), 4),
        (ApproxDP(1.0, 1e-6), "pure", Guarantee.laplace(0.25), 4),
        (ApproxDP(1.0, 1e-6), "gaussian", Guarantee.gaussian(mu_for(1.0, 1e-6) / 4), 16),
        (ApproxDP(1.0, 1e-6), "zcdp", Guarantee.gaussian(mu_for(1.0, 1e-6) / 4), 13),
        (ApproxDP(1.0, 1e-6), "renyi", Guarantee.gaussian(mu_for(1.0, 1e-6) / 4), 13),
    ],
    ids=str,
)
def test_each_filter_stops_where_its_sum_ends(ledger, total, name, release, count):
    ledger.open_dataset("survey", total, filter=name)
    assert fill(ledger, release) == count
    taken = compose(*(entry.guarantee for entry in ledger.entries("survey") if entry.kind == "spend"))
    assert taken.fits(total)


def test_a_refusal_says_spent_asked_and_remaining_and_writes_nothing(ledger):
    ledger.open_dataset("survey", PureDP(1.0))
    ledger.spend("survey", Guarantee.pure(0.75), what="mean")
    before = Path(ledger.path).read_bytes()
    with pytest.raises(BudgetExceededError) as caught:
        ledger.spend("survey", Guarantee.pure(0.5), what="median")
    assert str(caught.value) == (
        "data set 'survey': spent PureDP(epsilon=0.75), asked PureDP(epsilon=0.5), remaining PureDP(epsilon=0.25), "
        "of a total of PureDP(epsilon=1.0). Nothing was recorded; ask for a smaller budget."
    )
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.dataset, error.spent, error.asked, error.remaining) == (
        "survey",
        PureDP(0.75),
        PureDP(0.5),
        PureDP(0.25),
    )
    assert Path(ledger.path).read_bytes() == before


def test_a_promise_beyond_every_budget_is_refused_like_any_other(ledger):
    ledger.open_dataset("survey", ZeroConcentratedDP(1.0))
    with pytest.raises(BudgetExceededError, match=r"spent nothing, asked what no budget holds .*rho = 1250"):
        ledger.spend("survey", Guarantee.gaussian(50.0), what="mean")


def test_a_reproducible_release_is_refused_before_the_file_is_touched(ledger):
    with pytest.raises(ArgumentError, match="seed"):
        ledger.spend("survey", Guarantee.pure(0.1), what="mean", reproducible=True)
    assert not Path(ledger.path).exists()


def test_the_entry_holds_what_was_promised(ledger):
    ledger.open_dataset("survey", GaussianDP(1.0))
    promise = Guarantee.gaussian(0.1 + 0.2)
    receipt = ledger.spend(
        "survey", promise, what="mean", parameters={"n": np.int64(7), "scale": np.float64(0.1), "center": np.eye(2)}
    )
    opened, entry = ledger.entries("survey")
    assert (opened.number, opened.kind, opened.guarantee, opened.charged, opened.what) == (1, "open", None, None, None)
    assert (entry.number, entry.kind, entry.what, entry.when) == (receipt.number, "spend", "mean", receipt.when)
    assert (entry.guarantee, entry.charged, entry.hash) == (promise, GaussianDP(0.1 + 0.2), receipt.hash)
    assert entry.parameters == {"n": 7, "scale": 0.1, "center": [[1.0, 0.0], [0.0, 1.0]]}


@pytest.mark.parametrize(
    "parameters",
    [{"x": float("nan")}, {"x": object()}, ["x"], "x", {"x": {1, 2}}],
    ids=["nan", "object", "list", "text", "set"],
)
def test_parameters_that_json_cannot_hold_are_refused(ledger, parameters):
    ledger.open_dataset("survey", PureDP(1.0))
    with pytest.raises(ArgumentError, match="public facts"):
        ledger.spend("survey", Guarantee.pure(0.1), what="mean", parameters=parameters)
    assert ledger.spent("survey") is None


@pytest.mark.parametrize("labels", [{"unit": "household"}, {"adjacency": "add-remove-one"}], ids=str)
def test_another_unit_or_adjacency_does_not_add_up(ledger, labels):
    ledger.open_dataset("survey", PureDP(1.0))
    with pytest.raises(ArgumentError, match="only when both agree"):
        ledger.spend("survey", Guarantee.pure(0.1, **labels), what="mean")
    ledger.open_dataset("other", PureDP(1.0), **labels)
    ledger.spend("other", Guarantee.pure(0.1, **labels), what="mean")


def test_what_the_filter_cannot_read_is_refused_and_leaves_no_trace(ledger):
    ledger.open_dataset("survey", GaussianDP(1.0))
    with pytest.raises(NotAvailableError, match="it reads releases with a μ"):
        ledger.spend("survey", Guarantee.approx(0.1, 1e-9), what="mean")
    assert len(ledger.entries()) == 1


def test_delta_names_where_the_basic_filter_reads_a_release(ledger):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6), filter="basic")
    ledger.spend("survey", Guarantee.gaussian(0.05), what="mean", delta=1e-7)
    assert ledger.spent("survey") == Guarantee.gaussian(0.05).as_approx(1e-7)
    with pytest.raises(NotAvailableError, match="delta="):
        ledger.spend("survey", Guarantee.gaussian(0.05), what="mean")


@pytest.mark.parametrize("name", ["renyi", "zcdp", "gaussian", "basic", "pure"])
def test_pure_releases_of_a_quarter_fit_four_times_whatever_the_filter(ledger, name):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6), filter=name)
    assert ledger.remaining("survey", pure=True) == PureDP(1.0)
    assert fill(ledger, Guarantee.laplace(0.25)) == 4
    assert (ledger.spent("survey"), ledger.remaining("survey", pure=True)) == (PureDP(1.0), None)
    assert ledger.verify() == 5


def test_beyond_the_filter_only_pure_releases_go_on(ledger):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    for _ in range(3):
        ledger.spend("survey", Guarantee.pure(0.25), what="mean")
    assert ledger.remaining("survey") == ledger.remaining("survey", pure=True) == PureDP(0.25)
    with pytest.raises(BudgetExceededError):
        ledger.spend("survey", Guarantee.gaussian(1e-6), what="mean")
    ledger.spend("survey", Guarantee.pure(0.25), what="mean")


def test_a_release_without_a_pure_promise_closes_the_way_by_pure_sums(ledger):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    ledger.spend("survey", Guarantee.gaussian(1e-6), what="mean")
    assert ledger.remaining("survey", pure=True) is None
    assert fill(ledger, Guarantee.pure(0.25)) == 2


def test_a_refusal_also_tells_the_pure_remainder(ledger):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    ledger.spend("survey", Guarantee.pure(0.25), what="mean")
    with pytest.raises(BudgetExceededError, match=r"remaining RenyiDP\(.*\) \(or PureDP\(epsilon=0.75\)\), of a total"):
        ledger.spend("survey", Guarantee.gaussian(0.5), what="mean")


def test_a_first_release_of_the_whole_budget_is_the_only_one(ledger):
    total = ApproxDP(1.0, 1e-6)
    ledger.open_dataset("survey", total)
    ledger.spend("survey", Guarantee.gaussian(mu_for(1.0, 1e-6)), what="mean")
    assert ledger.entries()[-1].takes_whole
    assert (ledger.spent("survey"), ledger.remaining("survey")) == (total, None)
    with pytest.raises(BudgetExceededError, match="remaining nothing"):
        ledger.spend("survey", Guarantee.pure(1e-9), what="one more")


def test_a_second_release_never_takes_the_whole(ledger):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-6))
    ledger.spend("survey", Guarantee.pure(1e-9), what="a little")
    with pytest.raises(BudgetExceededError):
        ledger.spend("survey", Guarantee.gaussian(mu_for(1.0, 1e-6)), what="mean")


def test_opening_again_changes_nothing(ledger):
    fingerprint = keyed_fingerprint(np.arange(3.0), b"k" * 32)
    first = ledger.open_dataset("survey", ApproxDP(1.0, 1e-6), fingerprint=fingerprint)
    again = ledger.open_dataset("survey", ApproxDP(1.0, 1e-6), filter="renyi", fingerprint=fingerprint)
    assert first == again == ledger.datasets()[0]
    assert (first.filter, first.unit, len(ledger.entries())) == ("renyi", "record", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": ApproxDP(1.5, 1e-6)},
        {"budget": PureDP(1.0)},
        {"filter": "zcdp"},
        {"alpha": 30.0},
        {"fingerprint": "f" * 64},
        {"unit": "household"},
        {"adjacency": "add-remove-one"},
    ],
    ids=str,
)
def test_opening_otherwise_is_refused(ledger, arguments):
    ledger.open_dataset("survey", ApproxDP(1.0, 1e-2))
    with pytest.raises(ArgumentError, match="is open already"):
        ledger.open_dataset("survey", **{"budget": ApproxDP(1.0, 1e-2), **arguments})
    assert len(ledger.entries()) == 1


def test_data_sets_have_accounts_of_their_own(ledger):
    ledger.open_dataset("a", PureDP(1.0))
    ledger.open_dataset("b", PureDP(1.0))
    ledger.spend("a", Guarantee.pure(1.0), what="all of a")
    assert (ledger.remaining("a"), ledger.remaining("b")) == (None, PureDP(1.0))
    assert [dataset.name for dataset in ledger.datasets()] == ["a", "b"]
    assert [entry.kind for entry in ledger.entries("b")] == ["open"]


def test_an_unknown_data_set_is_named_with_the_known_ones(ledger):
    ledger.open_dataset("survey", PureDP(1.0))
    for ask in (ledger.spent, ledger.remaining, ledger.entries):
        with pytest.raises(ArgumentError, match="no data set 'servey'; it has 'survey'"):
            ask("servey")
    with pytest.raises(ArgumentError, match="no data set"):
        ledger.spend("servey", Guarantee.pure(0.1), what="mean")


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_name_must_say_something(ledger, name):
    with pytest.raises(ArgumentError, match="must be a text"):
        ledger.open_dataset(name, PureDP(1.0))
    with pytest.raises(ArgumentError, match="must be a text"):
        ledger.spend("survey", Guarantee.pure(0.1), what=name)


def test_export_holds_every_entry(ledger):
    ledger.open_dataset("survey", PureDP(1.0))
    ledger.spend("survey", Guarantee.pure(0.25), what="mean, of the north", parameters={"n": 10})
    exported = json.loads(ledger.export())["ledger"]
    assert [row["hash"] for row in exported] == [entry.hash for entry in ledger.entries()]
    assert exported[1]["details"]["parameters"] == {"n": 10}
    rows = list(csv.DictReader(io.StringIO(ledger.export("csv"))))
    assert [row["what"] for row in rows] == ["", "mean, of the north"]
    assert json.loads(rows[1]["details"]) == exported[1]["details"]
    with pytest.raises(ArgumentError, match="format must be one of"):
        ledger.export("xml")


def test_a_ledger_is_its_path(ledger, tmp_path, monkeypatch):
    ledger.open_dataset("survey", PureDP(1.0))
    assert pickle.loads(pickle.dumps(ledger)) == copy.deepcopy(ledger) == ledger == as_ledger(ledger.path)
    assert as_ledger(ledger) is ledger
    assert as_ledger(Path(ledger.path)).remaining("survey") == PureDP(1.0)
    monkeypatch.chdir(tmp_path)
    assert Ledger("privacy.ledger") == ledger


def test_scikit_learn_can_clone_an_estimator_that_holds_a_ledger(ledger):
    class Estimator(BaseEstimator):
        def __init__(self, ledger=None):
            self.ledger = ledger

    assert clone(Estimator(ledger)).ledger == ledger


@pytest.mark.parametrize("path", ["", ":memory:", b"bytes", None, 3])
def test_a_ledger_is_a_file(path):
    with pytest.raises(ArgumentError, match="must name a file"):
        Ledger(path)


def test_as_ledger_takes_ledgers_plans_and_paths_only():
    with pytest.raises(ArgumentError, match="the path of a file"):
        as_ledger(3)


def test_paths_with_odd_characters_work(tmp_path):
    ledger = Ledger(tmp_path / "a b?c#d%20é.ledger")
    ledger.open_dataset("survey", PureDP(1.0))
    assert [path.name for path in tmp_path.iterdir()] == ["a b?c#d%20é.ledger"]
    assert ledger.verify() == 1


def test_errors_are_of_the_family():
    assert issubclass(BudgetExceededError, DPManifoldsError)
    assert issubclass(LedgerError, DPManifoldsError)
