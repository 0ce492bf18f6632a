"""Rounds: JSON both ways, how far one record moves a sum, and rounds that no site could keep its promise with."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dpmanifolds import (
    ArgumentError,
    Ball,
    Coordinator,
    Euclidean,
    GaussianDP,
    PureDP,
    Round,
    RoundRefusedError,
    Study,
)
from dpmanifolds.errors import DPManifoldsError, NotAvailableError
from dpmanifolds.federated.round import Part
from dpmanifolds.federated.rules import body_of, read_rule, write_rule
from dpmanifolds.sums.joint_moment import JointContribution
from tests.federated.parties import FLAT, MATRICES, NAMES, ROUND, records, split_sites, study

LINE = Ball(Euclidean(1), np.zeros(1), 1.0)
STUDIES = {
    "mean": study(),
    "curved": study(ROUND, steps=2),
    "radius": study(FLAT, refine=1),
    "variance": study(MATRICES, "variance"),
    "covariance": study(FLAT, "covariance"),
    "second moment": study(FLAT, "second moment"),
    "second moment, secret n": study(FLAT, "second moment", n_guess=200, adjacency="add-remove-one"),
    "classes": study(FLAT, "class means", n=[100, 100], classes=["a", "b"]),
    "secret classes": study(FLAT, "class means", classes=["a", "b"], secret_labels=True),
    "secret n": study(FLAT, n_guess=200, adjacency="add-remove-one"),
}


def first_round(name="mean"):
    return Coordinator(STUDIES[name]).round


@pytest.mark.parametrize("name", STUDIES)
def test_rounds_and_studies_come_back_from_json_as_they_were(name):
    asked = first_round(name)
    again = Round.from_json(asked.to_json())
    assert again == asked
    assert again.to_json() == asked.to_json()
    assert (again.moved, again.mu, again.length) == (asked.moved, asked.mu, asked.length)
    assert Coordinator(Study.from_json(STUDIES[name].to_json())).round == asked


@pytest.mark.parametrize("name", STUDIES)
def test_a_round_claims_its_part_of_the_budget_and_spends_no_more(name):
    asked = first_round(name)
    assert 0.05 < asked.mu <= asked.claim <= 1.0
    assert asked.mu == pytest.approx(asked.moved / (asked.sigma * np.sqrt(len(NAMES))), rel=1e-9)


def altered(asked, **changes):
    """The same JSON with other fields, and the hash that it had."""
    data = json.loads(asked.to_json())
    for path, value in changes.items():
        *way, last = path.split("__")
        place = data
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"claim": 0.5},
        {"sigma": 10.0},
        {"sigma": -1.0},
        {"sigma": float("1e400")},
        {"tolerated": 4},
        {"tolerated": -1},
        {"transport": "pigeon"},
        {"modulus": "7"},
        {"modulus": 2**64},
        {"modulus": "many"},
        {"sites": []},
        {"sites": ["a", "a"]},
        {"sites": ["a", ""]},
        {"adjacency": "none"},
        {"weight": -3},
        {"parts": []},
        {"parts__0__rule__exponent": 31},
        {"parts__0__rule__exponent": 40.5},
        {"parts__0__rule__radius": -1.0},
        {"parts__0__rule__kind": "everything"},
        {"parts__0__rule__base": {"dtype": "float64", "values": [1.0, 2.0]}},
        {"parts__0__rule__offset": [1.0]},
        {"parts__0__rule__manifold": {"name": "Nowhere", "parameters": []}},
        {"schema": 99},
        {"more": 1},
        {"transport": "plain", "tolerated": 4},
        {"claim": 10**400},
        {"claim": True},
        {"sigma": "1e12"},
        {"number": True},
        {"count": 10**400},
        {"count": 200.0},
        {"weight": False},
        {"tolerated": False},
        {"secret_labels": 0},
        {"secret_labels": "no"},
        {"before": None},
        {"before": {}},
        {"before": "first"},
        {"study": "a" * 201},
        {"study": "\x1b[2J"},
        {"unit": "record "},
        {"unit": ["record"]},
        {"statistic": ["mean"]},
        {"sites": "north"},
        {"sites": {"north": 1, "east": 2}},
        {"sites": ["north", "a" * 100_000]},
        {"parts__0__label": True},
        {"parts__0__label": 1.5},
        {"parts__0__label": ["a"]},
        {"parts__0__block": 0},
        {"parts__0__rule__exponent": True},
        {"parts__0__rule__exponent": 2**64},
        {"parts__0__rule__radius": 10**400},
        {"parts__0__rule__base__values": [1.0, 2.0, float("inf")]},
        {"parts__0__rule__base__dtype": "object"},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_rounds_that_say_something_else_are_refused(changes, monkeypatch):
    """With a hash that fits: whoever asks can work it out."""
    text = altered(first_round(), **changes)
    monkeypatch.setattr(Round, "hash", json.loads(text)["hash"])
    assert Round.from_json(altered(first_round())).number == 1
    with pytest.raises(RoundRefusedError):
        Round.from_json(text)


@pytest.mark.parametrize("spoil", [True, 1.0])
def test_classes_and_blocks_are_what_they_look_like(spoil):
    """True would be the class 1, and 1.0 the block 1: two names of one thing."""
    asked = Coordinator(study(FLAT, "two-sample test", n=[100, 100], classes=[0, 1])).round
    for name, place in (("label", -1), ("block", 1)):
        parts = list(asked.parts)
        parts[place] = parts[place]._replace(**{name: spoil})
        with pytest.raises(RoundRefusedError, match="whole numbers"):
            replace(asked, parts=tuple(parts))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", '"round"', b"\xff", "[" * 5000])
def test_what_is_no_round_is_refused(text):
    with pytest.raises(RoundRefusedError):
        Round.from_json(text)


def test_an_altered_round_with_its_old_hash_is_refused():
    with pytest.raises(RoundRefusedError, match="hash"):
        Round.from_json(altered(first_round(), unit="visit"))


def test_a_round_cannot_be_made_that_spends_more_than_it_claims():
    asked = first_round()
    with pytest.raises(RoundRefusedError, match="claims to spend"):
        replace(asked, sigma=asked.sigma * 0.7)
    with pytest.raises(RoundRefusedError, match="claims to spend"):
        replace(asked, tolerated=1)
    # plain answers are seen one by one: a share of the noise is not enough for them
    with pytest.raises(RoundRefusedError, match="claims to spend"):
        replace(asked, transport="plain")


def test_where_class_counts_are_told_no_round_promises_for_a_change_of_class():
    with pytest.raises(RoundRefusedError, match="within class"):
        replace(first_round("classes"), unit="record")
    assert first_round("secret classes").unit == "record"


def integers(rule, points):
    return np.asarray(rule(rule.form(points))[0], dtype=object)


@pytest.mark.parametrize("name", ["mean", "curved", "radius", "variance"])
def test_no_two_records_are_farther_apart_than_a_body_says(name):
    """Random records, half of them far outside: exact integers."""
    rule, body = first_round(name).parts[0].rule, body_of(first_round(name).parts[0].rule)
    ball = {"curved": ROUND, "variance": MATRICES}.get(name, FLAT)
    whole = integers(rule, records(ball, 100, seed=3))
    for i in range(0, 100, 2):
        one, other = whole[:, i], whole[:, i + 1]
        assert sum(one * one) <= body.alone
        assert sum((one - other) ** 2) <= body.apart


def test_the_ends_of_a_ball_are_as_far_apart_as_a_body_says():
    asked = first_round()
    ends = integers(asked.parts[0].rule, np.array([[9.0, 0.0, 0.0], [-9.0, 0.0, 0.0]]))
    length = float(sum((ends[:, 0] - ends[:, 1]) ** 2)) ** 0.5
    assert 1 - 1e-6 < length / asked.moved <= 1


def test_labels_that_are_secret_move_two_parts():
    """A record that changes its class takes (z, c₀) from one part and adds it to another."""
    asked = first_round("secret classes")
    radius, weight = 2 ** asked.parts[0].rule.exponent, asked.weight
    assert asked.moved**2 >= max(4 * radius**2, 2 * (radius**2 + weight**2))
    assert asked.moved == 2 * radius


def test_one_more_record_moves_the_sum_and_the_count():
    asked = first_round("secret n")
    radius, weight = 2 ** asked.parts[0].rule.exponent, asked.weight
    assert weight > 0
    assert (asked.moved - 1) ** 2 < radius**2 + weight**2 <= asked.moved**2


@pytest.mark.parametrize("name", STUDIES)
def test_rules_come_back_as_they_were(name):
    coordinator = Coordinator(STUDIES[name])
    for part in coordinator.round.parts:
        assert write_rule(read_rule(write_rule(part.rule))) == write_rule(part.rule)


def test_squares_travel_alone():
    squares = next(
        asked for asked in _rounds(STUDIES["covariance"]) if write_rule(asked.parts[0].rule)["kind"] == "squares"
    )
    with pytest.raises(RoundRefusedError, match="round of their own"):
        replace(
            squares,
            unit="record within class",
            parts=(Part(squares.parts[0].rule, "a"), Part(squares.parts[0].rule, "b")),
        )


def _rounds(wanted):
    from dpmanifolds.federated import sum_in_process

    coordinator, sites = Coordinator(wanted), split_sites(records(FLAT))
    while coordinator.round is not None:
        yield coordinator.round
        coordinator.finish(sum_in_process(coordinator.round, sites))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"statistic": "mode"}, "statistic"),
        ({"sites": []}, "sites"),
        ({"sites": "abc"}, "sites"),
        ({"sites": ["a", "a"]}, "sites"),
        ({"sites": ["a", 3]}, "sites"),
        ({"tolerated": 4}, "tolerated"),
        ({"tolerated": 0.5}, "tolerated"),
        ({"n": None}, "n "),
        ({"n": 0}, "n "),
        ({"n": 10.5}, "n "),
        ({"n_guess": 10}, "n "),
        ({"adjacency": "add-remove-one"}, "n "),
        ({"classes": ["a"]}, "classes"),
        ({"transport": "smoke"}, "transport"),
        ({"refine": -1}, "refine"),
        ({"refine": 1, "statistic": "variance"}, "refine"),
        ({"steps": 0}, "steps"),
        ({"statistic": "class means", "classes": ["a", "b"], "n": [10]}, "n "),
        ({"modulus": 2**20}, "modulus"),
    ],
    ids=str,
)
def test_wrong_studies_are_told(options, said):
    options = {"statistic": "mean", "n": 200, "sites": NAMES, **options}
    with pytest.raises(DPManifoldsError, match=said):
        Coordinator(Study(options.pop("statistic"), FLAT, GaussianDP(1.0), **options))


def test_a_pure_budget_has_no_shares():
    with pytest.raises(NotAvailableError, match="Gaussian noise has unbounded privacy loss"):
        study(budget=PureDP(1.0))


def test_what_is_no_domain_is_told():
    with pytest.raises(ArgumentError, match="domain must be a Domain"):
        Study("mean", 3, GaussianDP(1.0), n=10, sites=NAMES)
    with pytest.raises(ArgumentError, match="Euclidean"):
        study(ROUND, "covariance")


def test_the_name_of_a_statistic_says_what_is_summed():
    """Policies go by it: class counts, or squares, under the name of a mean would get past them."""
    for name, called in [("classes", "mean"), ("variance", "class means"), ("mean", "class means"), ("mean", "mode")]:
        asked = first_round(name)
        if name == "variance":
            asked = list(_rounds(study(FLAT, "variance")))[-1]
        with pytest.raises(RoundRefusedError, match="not asked for"):
            replace(asked, statistic=called)
    squares = list(_rounds(STUDIES["covariance"]))[-1]
    with pytest.raises(RoundRefusedError, match="not asked for"):
        replace(squares, statistic="mean")


@pytest.mark.parametrize(
    "name",
    [
        "north ",
        "north\u200b",
        "north\ufe0f",
        "north\u034f",
        "\u2800",
        "\uff4eorth",
        "Zu\u0308rich",
        "\ud800",
        "\t",
        "n" * 201,
    ],
)
def test_names_of_sites_can_be_told_apart_by_reading_them(name):
    with pytest.raises(RoundRefusedError, match="different names"):
        replace(first_round(), sites=("north", name, "east", "south"))
    with pytest.raises(ArgumentError, match="letters that show"):
        study(sites=("north", name))


def test_squares_of_one_number_travel_alone_too():
    """With a noisy count beside them a site would fail after it has paid."""
    asked = Coordinator(Study("mean", LINE, GaussianDP(1.0), n_guess=90, adjacency="add-remove-one", sites=NAMES)).round
    rule = JointContribution(1, 1.0, 0.0, 20, np.zeros(1), np.zeros(1))
    with pytest.raises(RoundRefusedError, match="round of their own"):
        replace(asked, statistic="second moment", parts=(Part(rule),), sigma=2.0**58)


@pytest.mark.parametrize("label", [float("nan"), float("inf")])
def test_labels_that_json_has_no_word_for_are_refused(label):
    with pytest.raises(RoundRefusedError):
        Round.from_json(altered(first_round("classes"), parts__0__label=label))


def test_a_unit_so_large_that_the_number_of_records_would_show_is_refused():
    """Records of persons are summed in 64 bits: whether they fit must not depend on how many there are."""
    with pytest.raises(RoundRefusedError, match="unit"):
        Round.from_json(altered(first_round("radius"), parts__0__rule__unit=2**31))
