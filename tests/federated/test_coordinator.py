"""The coordinator: releases with the promise and the noise of their sums, sites that are gone, and messages refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import (
    ApproxDP,
    ArgumentError,
    Coordinator,
    GaussianDP,
    Release,
    RoundRefusedError,
    Site,
    private_class_means,
    private_covariance,
    private_mean,
    private_variance,
    run_study,
)
from dpmanifolds.federated import SummedAnswers, sum_in_process
from dpmanifolds.federated.engines import add_residues
from dpmanifolds.sums.shares import NoiseShares
from tests.federated.parties import FLAT, MATRICES, NAMES, ROUND, records, split_sites, study
from tests.selection import thorough

KEYS = {name: name.encode() * 4 for name in NAMES}


def plain(**options):
    return Coordinator(study(transport="plain", **options), keys=options.pop("keys", None))


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(NoiseShares, "draw", lambda shares, rng=None: [0] * shares.dim)


@pytest.mark.parametrize("ball", [FLAT, ROUND, MATRICES], ids=repr)
@pytest.mark.parametrize("options", [{"steps": 1, "refine": 0}, {"refine": 1}], ids=str)
def test_without_noise_a_mean_of_sites_is_that_of_one_place(ball, options, silent):
    """The same plan, the same steps, the same shrinking: the path is the same code."""
    points, huge = records(ball, 2000), GaussianDP(300.0)
    release = run_study(study(ball, budget=huge, n=2000, **options), split_sites(points))
    central = private_mean(points, ball, huge, mechanism="wrapped-gaussian", numerics="rounded", rng=0, **options)
    assert float(ball.manifold.dist(release.value, central.value)) < 2e-3 * ball.radius
    assert [stage.statistic for stage in release.stages] == [stage.statistic for stage in central.stages]


@pytest.mark.parametrize("budget", [GaussianDP(1.0), ApproxDP(1.0, 1e-6)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"refine": 1}, {"tolerated": 2}, {"transport": "plain"}], ids=str)
def test_a_release_keeps_its_budget_and_comes_back_from_json(budget, options):
    release = run_study(study(ROUND, budget=budget, **options), split_sites(records(ROUND)))
    assert release.guarantee.fits(budget)
    assert Release.from_json(release.to_json()) == release
    assert release.reproducible
    assert "sites" in release.summary()
    assert release.sites.coalition == release.guarantee.as_gaussian().mu


@pytest.mark.parametrize(
    ("options", "ratio"),
    [({}, 1.0), ({"tolerated": 1}, np.sqrt(4 / 3)), ({"tolerated": 3}, 2.0), ({"transport": "plain"}, 2.0)],
    ids=str,
)
@thorough("draws", 100, 1500)
def test_noise_is_that_of_one_place_times_what_is_tolerated(options, ratio, draws):
    """Means of 3 coordinates that are 0: chi-square, false alarms 1e−6; at 100 draws ±30 % are seven deviations off."""
    points, wanted = np.zeros((200, 3)), study(**options)
    found = [run_study(wanted, split_sites(points, seed=1000 * seed)).coordinates for seed in range(draws)]
    release = run_study(wanted, split_sites(points))
    central = private_mean(points, FLAT, GaussianDP(1.0), mechanism="wrapped-gaussian", refine=0, rng=0)
    assert release.sigma == pytest.approx(ratio * central.sigma, rel=1e-9)
    power = np.sum(np.square(found)) / release.sigma**2
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 3 * draws)
    assert low < power < high
    assert not low < power * 0.7**2 < high
    assert not low < power * 1.3**2 < high


def test_a_variance_is_that_of_one_place_up_to_noise(silent):
    huge, points = GaussianDP(200.0), records(MATRICES, 1000)
    variance = run_study(study(MATRICES, "variance", huge, n=1000), split_sites(points))
    assert variance.value == pytest.approx(private_variance(points, MATRICES, huge, rng=0).value, rel=0.01)


@pytest.mark.parametrize(
    ("statistic", "about"), [("covariance", "mean"), pytest.param("second moment", "origin", marks=pytest.mark.long)]
)
def test_squares_are_those_of_one_place_up_to_noise(statistic, about, silent):
    large, vectors = GaussianDP(20.0), records(FLAT, 1000)
    found = run_study(study(FLAT, statistic, large, n=1000), split_sites(vectors))
    expected = private_covariance(vectors, FLAT, large, about=about, rng=0)
    np.testing.assert_allclose(found.value, expected.value, atol=0.02)


@pytest.mark.parametrize("secret", [False, True])
def test_class_means_are_those_of_one_place_up_to_noise(secret, silent):
    huge, points, labels = GaussianDP(200.0), records(MATRICES, 1000), np.arange(1000) % 2
    wanted = study(
        MATRICES, "class means", huge, n=1000 if secret else [500, 500], classes=[0, 1], secret_labels=secret
    )
    sites = [
        Site(name, points[rows], labels=labels[rows], rng=0)
        for name, rows in zip(NAMES, np.array_split(np.arange(1000), 4), strict=True)
    ]
    found = run_study(wanted, sites)
    central = private_class_means(points, labels, MATRICES, huge, classes=[0, 1], private_labels=secret, rng=0)
    assert found.guarantee.unit == central.guarantee.unit
    assert np.max(MATRICES.manifold.dist(found.means, central.means)) < 0.02


def test_a_secret_number_of_records_is_in_no_message_and_in_no_release():
    points = records(FLAT, 173)
    coordinator = Coordinator(study(n_guess=200, adjacency="add-remove-one", name="pilot"))
    asked = coordinator.round
    summed = sum_in_process(asked, split_sites(points))
    release = coordinator.finish(summed)
    assert release.n is None
    assert len(summed.residues) == asked.shares.dim + 2
    told = asked.to_json() + coordinator.to_json() + release.to_json()
    assert not re.search(r"(?<![\w.])173(?![\w.])", told)


@pytest.mark.parametrize(
    "options",
    [
        {"refine": 1, "n": 40},
        {"statistic": "median", "n": 40},
        {"statistic": "tangent PCA", "n": 40},
        {"statistic": "two-sample test", "n": [20, 20], "classes": [0, 1], "blocks": 4},
    ],
    ids=str,
)
def test_a_transcript_holds_no_digits_of_a_record(options):
    """What the coordinator holds is the study, the rounds and the sums: no six digits of any record are in it."""
    points = records(FLAT, 40)
    coordinator = Coordinator(study(name="pilot", budget=GaussianDP(0.5), **options))
    told = ""
    while coordinator.round is not None:
        asked = coordinator.round
        coordinator.finish(sum_in_process(asked, split_sites(points, labels=np.arange(10) % 2)))
        told += asked.to_json()
    told += coordinator.to_json()
    for number in np.abs(points).ravel():
        assert f"{number:.17g}".replace(".", "").lstrip("0")[:7] not in told.replace(".", "")
    assert set(json.loads(coordinator.to_json())) == {"schema", "study", "finished"}
    assert set(json.loads(coordinator.to_json())["finished"][0]) == {
        "round",
        "residues",
        "names",
        "engine",
        "reproducible",
    }


@pytest.mark.parametrize("transport", ["secure-sum", "plain"])
def test_up_to_t_sites_may_be_gone_in_any_round(transport):
    """The mean is over the records of those who answered; the promise and what is told of the noise are true."""
    points = records(ROUND)
    coordinator = Coordinator(study(ROUND, steps=2, tolerated=1, transport=transport))
    sites = split_sites(points)
    for away in (3, 0):
        asked, here = coordinator.round, [site for number, site in enumerate(sites) if number != away]
        if transport == "plain":
            release = coordinator.finish([site.answer(asked) for site in here])
        else:
            release = coordinator.finish(sum_in_process(asked, here))
    assert release.n == 150
    assert release.sites.answered == (NAMES[:3], NAMES[1:])
    assert release.guarantee.fits(GaussianDP(1.0))
    assert release.sites.colluding == (0 if transport == "secure-sum" else 3)
    full = run_study(study(ROUND, steps=2, tolerated=1, transport=transport), split_sites(points))
    assert release.sigma == pytest.approx(full.sigma * np.sqrt(3 / 4) * 200 / 150, rel=1e-9)


def test_with_more_than_t_gone_nothing_is_released():
    coordinator = Coordinator(study(tolerated=1))
    with pytest.raises(RoundRefusedError, match="2 of 4 sites answered, and the promise needs 3"):
        coordinator.finish(sum_in_process(coordinator.round, split_sites(records(FLAT))[:2]))
    assert coordinator.release is None
    with pytest.raises(RoundRefusedError, match="0 of 4"):
        coordinator.finish(SummedAnswers((0,) * coordinator.round.length, (), "mpyc"))


def test_who_learns_what():
    seen = {
        kind: run_study(study(**options), split_sites(records(FLAT))).sites
        for kind, options in {
            "t=0": {},
            "t=2": {"tolerated": 2},
            "plain": {"transport": "plain"},
        }.items()
    }
    assert seen["t=0"].outside == seen["t=0"].coordinator == seen["t=0"].coalition
    assert seen["t=2"].outside == pytest.approx(np.sqrt(2 / 4), rel=1e-9)
    assert seen["t=2"].coordinator == seen["t=2"].outside
    assert seen["t=2"].coalition == pytest.approx(1.0, rel=1e-9)
    assert seen["plain"].coordinator == seen["plain"].coalition == pytest.approx(1.0, rel=1e-9)
    assert seen["plain"].outside == pytest.approx(0.5, rel=1e-9)
    assert (seen["t=0"].colluding, seen["t=2"].colluding, seen["plain"].colluding) == (0, 2, 3)


def test_answers_one_by_one_are_no_secure_sum():
    coordinator = Coordinator(study())
    with pytest.raises(RoundRefusedError, match="sees the sum of the answers alone"):
        coordinator.finish([site.answer(coordinator.round) for site in split_sites(records(FLAT))])


def messages(coordinator, **options):
    return [site.answer(coordinator.round) for site in split_sites(records(FLAT), **options)]


def with_residue(answer, place, number):
    residues = list(answer.residues)
    residues[place] = number
    return replace(answer, residues=tuple(residues))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda given, _: [*given, given[0]], "same site"),
        (lambda given, _: [*given[:3], replace(given[3], site="north")], "same site"),
        (lambda given, _: [*given[:3], replace(given[3], site="nowhere")], "not asked"),
        (lambda given, _: [*given[:3], replace(given[3], round="0" * 64)], "another round"),
        (lambda given, _: [*given[:3], replace(given[3], residues=given[3].residues[:-1])], "cut or altered"),
        (lambda given, _: [*given[:3], with_residue(given[3], 0, 2**64)], "cut or altered"),
        (lambda given, _: [*given[:3], with_residue(given[3], 0, -1)], "cut or altered"),
        (lambda given, asked: [*given[:3], with_residue(given[3], asked.shares.dim, 2)], "altered"),
        (lambda given, asked: [*given[:3], with_residue(given[3], asked.shares.dim + 1, 5)], "altered"),
        (lambda given, _: [*given[:3], with_residue(given[3], -1, 2**63)], "no number of records"),
        (lambda given, _: given[:3], "3 of 4 sites answered"),
        (lambda given, _: [], "0 of 4"),
    ],
    ids=[
        "replayed",
        "renamed",
        "foreign",
        "other round",
        "cut",
        "too large",
        "negative",
        "twice one",
        "tag",
        "rows",
        "missing",
        "none",
    ],
)
def test_messages_that_are_not_answers_to_the_round_are_refused(spoil, said):
    coordinator = plain()
    given = messages(coordinator)
    with pytest.raises(RoundRefusedError, match=said):
        coordinator.finish(spoil(given, coordinator.round))
    assert coordinator.finished == ()
    assert coordinator.finish(given).n == 200


def test_what_is_no_answer_is_told():
    with pytest.raises(ArgumentError, match="must be Answers"):
        plain().finish(["north"])
    with pytest.raises(ArgumentError, match="must be a Study"):
        Coordinator("study")


def test_answers_of_another_study_of_the_same_kind_are_refused():
    one, other = plain(), plain()
    with pytest.raises(RoundRefusedError, match="another round"):
        one.finish(messages(other))


def test_answers_of_an_earlier_round_are_refused_later():
    coordinator = plain(ball=ROUND, steps=2)
    sites = split_sites(records(ROUND))
    given = [site.answer(coordinator.round) for site in sites]
    assert coordinator.finish(given) is None
    with pytest.raises(RoundRefusedError, match="another round"):
        coordinator.finish(given)


def test_a_signed_answer_that_was_altered_is_refused():
    coordinator = Coordinator(study(transport="plain"), keys=KEYS)
    sites = [replace_key(site) for site in split_sites(records(FLAT))]
    given = [site.answer(coordinator.round) for site in sites]
    forged = with_residue(given[0], 0, given[0].residues[0] ^ 1)
    for wrong in (forged, replace(given[0], signature=""), replace(given[0], signature=given[1].signature)):
        with pytest.raises(RoundRefusedError, match="not signed"):
            coordinator.finish([wrong, *given[1:]])
    assert coordinator.finish(given) is not None


def replace_key(site):
    return Site(site.name, site.points, key=KEYS[site.name], rng=site.rng)


def test_sums_of_other_answers_are_refused():
    coordinator = Coordinator(study(tolerated=1))
    asked, sites = coordinator.round, split_sites(records(FLAT))
    summed = sum_in_process(asked, sites)
    foreign = Coordinator(study(tolerated=1)).round
    mixed = add_residues(
        asked, [sites[0].answer(foreign), *(site.answer(foreign) for site in split_sites(records(FLAT), seed=9)[1:])]
    )
    for residues, names in (
        (mixed, NAMES),
        (summed.residues, NAMES[:3]),
        (summed.residues, (*NAMES[:3], "nowhere")),
        (summed.residues, (*NAMES[:3], "north")),
        (summed.residues[:-1], NAMES),
        ((-1, *summed.residues[1:]), NAMES),
    ):
        with pytest.raises(RoundRefusedError):
            coordinator.finish(SummedAnswers(residues, names, "mpyc"))
    coordinator.finish(summed)
    with pytest.raises(RoundRefusedError, match="finished"):
        coordinator.finish(summed)


def test_a_coordinator_comes_back_from_json_in_the_middle():
    coordinator = Coordinator(study(ROUND, steps=2, refine=1))
    sites = split_sites(records(ROUND))
    while coordinator.round is not None:
        again = Coordinator.from_json(coordinator.to_json())
        assert again.round == coordinator.round
        coordinator = again
        release = coordinator.finish(sum_in_process(coordinator.round, sites))
    assert Coordinator.from_json(coordinator.to_json()).release == release


@pytest.mark.parametrize("text", ["", "{}", "[]", "null"])
def test_what_is_no_coordinator_is_refused(text):
    with pytest.raises(ArgumentError):
        Coordinator.from_json(text)


def test_a_coordinator_whose_sums_were_exchanged_is_refused():
    coordinator = Coordinator(study())
    coordinator.finish(sum_in_process(coordinator.round, split_sites(records(FLAT))))
    data = json.loads(coordinator.to_json())
    data["study"]["name"] = "another"
    with pytest.raises(RoundRefusedError, match="not the one"):
        Coordinator.from_json(json.dumps(data))


def test_a_site_without_a_key_forges_nothing():
    """No key that everyone knows stands in for one that is missing, and odd signatures are no error of ours."""
    coordinator = Coordinator(study(transport="plain"), keys=dict.fromkeys(NAMES[:3], b"k" * 16))
    given = [site.answer(coordinator.round) for site in split_sites(records(FLAT))]
    signed = [answer.sign(b"k" * 16) for answer in given]
    for last in (signed[3], given[3].sign(b"no key of this site"), replace(given[3], signature="é\ud800")):
        with pytest.raises(RoundRefusedError, match="'west' is not signed"):
            coordinator.finish([*signed[:3], last])
    with pytest.raises(RoundRefusedError, match="'north' is not signed"):
        coordinator.finish([replace(signed[0], signature="é\ud800"), *signed[1:]])
