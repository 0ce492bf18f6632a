"""Sites: they check first, pay before they draw, and never draw twice; answers are the exact sum and one share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import numpy as np
import pytest

from dpmanifolds import (
    SPD,
    Answer,
    ArgumentError,
    BudgetExceededError,
    Coordinator,
    GaussianDP,
    Ledger,
    LedgerError,
    PureDP,
    Round,
    RoundRefusedError,
    Site,
    SitePolicy,
)
from dpmanifolds.federated import sum_in_process
from dpmanifolds.federated.rules import body_of
from dpmanifolds.sums.outer import sum_outer
from dpmanifolds.sums.shares import NoiseShares, center_residues
from dpmanifolds.sums.total import RecordSums, read_records
from tests.federated.parties import FLAT, MATRICES, NAMES, ROUND, records, split_sites, study


@pytest.fixture
def silent(monkeypatch):
    """Shares of nothing, so that sums show; and how often they were drawn."""
    drawn = []
    monkeypatch.setattr(NoiseShares, "draw", lambda shares, rng=None: drawn.append(shares) or [0] * shares.dim)
    return drawn


@pytest.fixture
def ledger(tmp_path):
    book = Ledger(tmp_path / "site.ledger")
    book.open_dataset("patients", GaussianDP(1.5))
    return book


def asked_of(**options):
    return Coordinator(study(**options)).round


def sum_of(asked, sites):
    summed = sum_in_process(asked, sites)
    return center_residues(list(summed.residues[: asked.shares.dim]), asked.modulus), summed.residues


@pytest.mark.parametrize("ball", [FLAT, ROUND, MATRICES], ids=repr)
@pytest.mark.parametrize("options", [{}, {"statistic": "variance"}, {"refine": 1}], ids=str)
def test_without_noise_the_sum_over_sites_is_that_of_one_place_bit_for_bit(ball, options, silent):
    asked, points = asked_of(ball=ball, **options), records(ball)
    found, residues = sum_of(asked, split_sites(points))
    assert found == read_records(ball.manifold, points).total(asked.parts[0].rule).integers
    assert residues[asked.shares.dim :] == (4, 4 * asked.tag % asked.modulus, 200)


def test_without_noise_squares_are_those_of_one_place(silent):
    points, coordinator = records(FLAT), Coordinator(study(statistic="covariance"))
    while not body_of(coordinator.round.parts[0].rule).halved:
        coordinator.finish(sum_in_process(coordinator.round, split_sites(points)))
    asked = coordinator.round
    rule = asked.parts[0].rule
    found, _ = sum_of(asked, split_sites(points))
    matrix = np.array(sum_outer(read_records(None, points).source, rule).integers, dtype=object)
    matrix = matrix.reshape(rule.width, rule.width)
    above = np.triu_indices(rule.width, 1)
    assert found == [*np.diag(matrix).tolist(), *matrix[above].tolist()]


def test_persons_count_once_at_their_site(silent):
    asked, points = asked_of(n=10, unit="person"), records(FLAT, 12)
    names = np.repeat(["ann", "bob", "cy"], 4)
    site = Site("north", points, group_by=names, rng=0)
    answer = site.answer(asked)
    whole = read_records(FLAT.manifold, points, group_by=names).total(asked.parts[0].rule)
    assert center_residues(list(answer.residues[:3]), asked.modulus) == whole.integers
    assert answer.residues[-1] == 3


def test_classes_are_summed_side_by_side_and_other_labels_count_nowhere(silent):
    asked = asked_of(statistic="class means", classes=["a", "b"], n=[4, 4])
    points, labels = records(FLAT, 6), ["a", "b", "c", None, "a", "b"]
    answer = Site("north", points, labels=labels, rng=0).answer(asked)
    parts = [read_records(FLAT.manifold, points[rows]).total(asked.parts[0].rule).integers for rows in ([0, 4], [1, 5])]
    assert center_residues(list(answer.residues[:6]), asked.modulus) == [*parts[0], *parts[1]]
    assert answer.residues[-2:] == (2, 2)


def test_a_site_without_records_answers_where_their_number_is_secret(silent):
    asked = asked_of(n_guess=50, adjacency="add-remove-one")
    answer = Site("north", np.zeros((0, 3)), rng=0).answer(asked)
    assert answer.residues == (0, 0, 0, 0, 1, asked.tag)
    one = Site("north", np.zeros((7, 3)), rng=0).answer(asked)
    assert one.residues == (0, 0, 0, 7 * asked.weight, 1, asked.tag)


def test_malformed_records_count_as_the_centre(silent):
    asked, points = asked_of(), records(FLAT, 5)
    broken = np.array([*points, [np.nan, 0.0, 0.0], [np.inf, 1.0, 0.0]])
    mended = np.array([*points, FLAT.center, FLAT.center])
    answers = [Site("north", each, rng=0).answer(asked).residues for each in (broken, mended)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 3), dtype=np.float32), np.zeros((5, 6))[:, ::2], np.broadcast_to(np.zeros(3), (5, 3))],
    ids=["float32", "not contiguous", "read-only"],
)
def test_arrays_of_all_kinds_are_summed(points):
    assert Site("north", points, rng=0).answer(asked_of()).residues[-1] == 5


@pytest.mark.parametrize(
    ("points", "kind"),
    [(np.zeros((5, 2)), ArgumentError), (iter([np.zeros((5, 3))]), ArgumentError), (np.zeros((0, 3)), ArgumentError)],
    ids=["shape", "iterator", "empty"],
)
def test_records_that_cannot_be_summed_are_told_before_anything_is_spent(points, kind, ledger, silent):
    site = Site("north", points, ledger=ledger, dataset="patients")
    with pytest.raises(kind):
        site.answer(asked_of())
    assert silent == []
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("policy", "options", "said"),
    [
        ({"most": GaussianDP(0.9)}, {}, "it spends μ = 1, more than μ = 0.9"),
        ({"transports": ("secure-sum",)}, {"transport": "plain"}, "transport is 'plain'"),
        ({"least_tolerated": 1}, {}, "tolerates t = 0"),
        ({"least_sites": 5}, {}, "4 sites take part"),
        ({"statistics": ("variance",)}, {}, "asks for 'mean'"),
        ({"manifold": SPD(2)}, {}, "not about records of SPD"),
        ({"sites": ("north", "east")}, {}, "not known here"),
        ({"adjacency": "add-remove-one"}, {}, "adjacency is 'replace-one'"),
        ({"unit": "person"}, {}, "unit is 'record'"),
    ],
    ids=str,
)
def test_a_round_against_the_policy_of_a_site_is_refused_and_nothing_is_spent(policy, options, said, ledger, silent):
    site = Site("north", records(FLAT, 20), SitePolicy(**policy), ledger=ledger, dataset="patients")
    with pytest.raises(RoundRefusedError, match=said):
        site.answer(asked_of(**options))
    assert silent == []
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"most": 1.0}, "most"),
        ({"transports": "plain"}, "list of names"),
        ({"transports": ("pigeon",)}, "transports"),
        ({"transports": None}, "list of names"),
        ({"statistics": "class means"}, "list of names"),
        ({"statistics": ["means"]}, "statistics"),
        ({"sites": "north"}, "list of names"),
        ({"manifold": "SPD(2)"}, "manifold"),
        ({"adjacency": "replace"}, "adjacency"),
        ({"unit": 3}, "unit"),
        ({"least_sites": 2.5}, "least_sites"),
        ({"least_tolerated": -1}, "least_tolerated"),
    ],
    ids=str,
)
def test_a_policy_that_would_not_say_what_was_meant_is_told(policy, said):
    """A text for a list allows what is a part of it: "mean" is in "class means"."""
    with pytest.raises(ArgumentError, match=said):
        SitePolicy(**policy)


def test_rounds_for_others_and_about_classes_without_labels_are_refused():
    with pytest.raises(RoundRefusedError, match="for others"):
        Site("elsewhere", records(FLAT, 5)).answer(asked_of())
    with pytest.raises(RoundRefusedError, match="no labels"):
        Site("north", records(FLAT, 5)).answer(asked_of(statistic="class means", classes=["a"], n=[200]))
    with pytest.raises(ArgumentError, match="must be a Round"):
        Site("north", records(FLAT, 5)).answer("round")


def test_whoever_asks_does_not_say_alone_what_neighbours_differ_in(ledger, silent):
    asked, points = Coordinator(study(n=10, unit="person")).round, records(FLAT, 12)
    with pytest.raises(RoundRefusedError, match="for each person"):
        Site("north", points).answer(asked)
    assert not silent
    Site("north", points, SitePolicy(unit="person")).answer(asked)
    Site("north", points, group_by=np.arange(12) // 3).answer(asked)
    # the account of the ledger is one of records
    with pytest.raises(ArgumentError, match="one 'record' at a time"):
        Site("north", points, ledger=ledger, dataset="patients").answer(asked)
    assert len(silent) == 2


def test_a_site_pays_before_it_draws(ledger, monkeypatch):
    seen = []
    monkeypatch.setattr(
        NoiseShares, "draw", lambda shares, rng=None: seen.append(len(ledger.entries())) or [0] * shares.dim
    )
    asked = asked_of()
    answer = Site("north", records(FLAT, 20), ledger=ledger, dataset="patients").answer(asked)
    assert seen == [2]
    entry = ledger.entries()[-1]
    assert entry.hash == answer.receipt
    assert entry.parameters["round"] == asked.hash
    assert entry.guarantee == asked.guarantee
    assert 20 not in entry.parameters.values()


def test_what_does_not_fit_the_ledger_is_not_answered(ledger, silent):
    site = Site("north", records(FLAT, 20), ledger=ledger, dataset="patients")
    site.answer(asked_of())
    with pytest.raises(BudgetExceededError):
        site.answer(asked_of(budget=GaussianDP(1.2)))
    assert len(silent) == 1


def test_a_summed_round_is_never_answered_again(ledger, silent):
    """Two secure sums, with and without a site, would show that site's answer."""
    asked = asked_of()
    sites = [Site("north", records(FLAT, 20), ledger=ledger, dataset="patients") for _ in range(2)]
    sites[0].answer(asked)
    for site in sites:
        with pytest.raises(RoundRefusedError, match="answered before"):
            site.answer(Round.from_json(asked.to_json()))
    assert len(silent) == 1
    assert len(ledger.entries()) == 2


def test_a_plain_round_gets_the_very_same_answer_again_or_none(ledger):
    asked = asked_of(transport="plain")
    site = Site("north", records(FLAT, 20), ledger=ledger, dataset="patients")
    assert site.answer(asked) == site.answer(asked)
    with pytest.raises(RoundRefusedError, match="answered before"):
        Site("north", records(FLAT, 20), ledger=ledger, dataset="patients").answer(asked)
    assert len(ledger.entries()) == 2


def test_a_site_that_dies_after_paying_does_not_draw_later(ledger, monkeypatch):
    asked = asked_of()
    site = Site("north", records(FLAT, 20), ledger=ledger, dataset="patients")

    def fail(shares, rng=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NoiseShares, "draw", fail)
        with pytest.raises(KeyboardInterrupt):
            site.answer(asked)
    assert len(ledger.entries()) == 2
    with pytest.raises(RoundRefusedError, match="answered before"):
        site.answer(asked)


def test_shares_are_drawn_with_the_scale_that_the_round_says():
    """1,000 shares of three numbers, seeded: false alarms in 1e−6 of cases, and ±30 % are twenty deviations off."""
    asked = asked_of(tolerated=1)
    points, rng = np.zeros((2, 3)), np.random.default_rng(0)
    drawn = [
        center_residues(list(Site("north", points, rng=rng).answer(asked).residues[:3]), asked.modulus)
        for _ in range(1000)
    ]
    ratio = np.mean(np.array(drawn, dtype=float) ** 2) / asked.sigma**2
    assert abs(ratio - 1) < 4.9 * np.sqrt(2 / 3000)
    assert asked.sigma == pytest.approx(asked.moved / np.sqrt(3), rel=1e-9)


def test_seeds_and_ledgers_do_not_go_together(ledger):
    with pytest.raises(ArgumentError, match="rng"):
        Site("north", records(FLAT, 5), ledger=ledger, dataset="patients", rng=0)
    with pytest.raises(ArgumentError, match="dataset"):
        Site("north", records(FLAT, 5), ledger=ledger)
    with pytest.raises(ArgumentError, match="must be a text"):
        Site(" ", records(FLAT, 5))


def test_a_policy_reads_a_round_in_its_own_kind_of_budget():
    assert "spends" in SitePolicy(most=PureDP(1.0)).refusal(asked_of())


def test_answers_come_back_from_json_and_others_are_refused():
    answer = Site("north", records(FLAT, 5), key=b"k" * 16, rng=0).answer(asked_of())
    assert Answer.from_json(answer.to_json()) == answer
    assert answer.is_signed(b"k" * 16)
    assert not answer.is_signed(b"l" * 16)
    for text in (
        "",
        "{}",
        "[]",
        answer.to_json()[:-20],
        answer.to_json().replace('"residues": ["', '"residues": ["x'),
        answer.to_json().replace('"residues": ["', '"residues": ["\u0663'),
        answer.to_json().replace('"residues": ["', '"residues": [7, "'),
        answer.to_json().replace('"residues": ["', '"residues": [true, "'),
        answer.to_json().replace('"residues": ["', '"residues": ["' + "9" * 5000),
        answer.to_json().replace('"receipt": null', '"receipt": []'),
        answer.to_json().replace('"reproducible": true', '"reproducible": 1'),
    ):
        with pytest.raises(RoundRefusedError):
            Answer.from_json(text)
    with pytest.raises(ArgumentError, match="key"):
        answer.sign(b"short")


def test_names_of_sites_are_those_of_the_study():
    assert {site.name for site in split_sites(records(FLAT))} == set(NAMES)


def test_of_two_who_answer_a_round_at_once_one_draws(ledger):
    """Two objects with one ledger, as two processes would be: whoever pays second is refused, and draws nothing."""
    asked = asked_of(transport="plain")
    sites = [Site("north", records(FLAT, 20), ledger=ledger, dataset="patients") for _ in range(4)]
    barrier, made = Barrier(len(sites)), []

    def run(site):
        barrier.wait()
        with suppress(RoundRefusedError, LedgerError, BudgetExceededError):
            made.append(site.answer(asked))

    with ThreadPoolExecutor(len(sites)) as pool:
        list(pool.map(run, sites))
    assert len(made) == 1
    assert len(ledger.entries()) == 2


def test_of_threads_that_answer_without_a_ledger_one_draws(monkeypatch):
    asked, site = asked_of(transport="plain"), Site("north", records(FLAT, 20))
    barrier, made = Barrier(4), []
    alone = RecordSums.total

    def sum_together(*given):
        barrier.wait()
        return alone(*given)

    monkeypatch.setattr(RecordSums, "total", sum_together)

    def run(_):
        with suppress(RoundRefusedError):
            made.append(site.answer(asked))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert len(set(made)) == 1


def test_a_summed_round_is_not_answered_again_by_a_thread_that_checked_it_before(monkeypatch):
    """Its check passed while nothing was answered; then another thread answered."""
    asked, site = asked_of(), Site("north", records(FLAT, 20))
    alone, first = RecordSums.total, []

    def sum_late(*given):
        if not first:
            first.append(True)
            first.append(site.answer(asked))
        return alone(*given)

    monkeypatch.setattr(RecordSums, "total", sum_late)
    with pytest.raises(RoundRefusedError, match="answered before"):
        site.answer(asked)
    assert first[1].round == asked.hash


def test_a_key_that_is_too_short_is_told_before_anything_is_spent():
    with pytest.raises(ArgumentError, match="16 random bytes"):
        Site("north", records(FLAT, 5), key=b"short")


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "a"], ["c", None]], ids=str)
def test_records_in_a_list_are_told_apart_by_class_whatever_their_labels_are(labels, silent):
    asked = asked_of(statistic="class means", classes=["a", "b"], secret_labels=True)
    points = [[1.0, 0.0, 0.0], [None, 3]]
    answer = Site("north", points, labels=labels, rng=0).answer(asked)
    counts = [center_residues([answer.residues[place]], asked.modulus)[0] // asked.weight for place in (3, 7)]
    assert counts == [labels.count("a"), labels.count("b")]
