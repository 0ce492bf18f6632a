"""What engines may show: the residue of the sum, and nothing that is not a function of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpmanifolds import ArgumentError, Coordinator, GaussianDP, Ledger, RoundRefusedError, Site
from dpmanifolds.federated import SummedAnswers, sum_in_process
from dpmanifolds.federated.engines import answer_in_plain, answer_over_line
from dpmanifolds.federated.mpyc_engine import MPYC_MODULUS, read_sum, sum_answers, sum_by_mpyc, use_once, write_sum
from tests.federated.parties import FLAT, NAMES, records, split_sites, study


def joint_law(shift, sigma, sites, reach):
    """P(sum = s, so many answers negative) for answers round(N(0, σ²)), the first of which is moved by `shift`."""
    values = np.arange(-reach, reach + 1)

    def one(center):
        mass = stats.norm.cdf(values + 0.5, center, sigma) - stats.norm.cdf(values - 0.5, center, sigma)
        return [np.where(values >= 0, mass, 0.0), np.where(values < 0, mass, 0.0)]

    law = one(shift)
    for _ in range(sites - 1):
        other, longer = one(0.0), [0.0] * (len(law) + 1)
        for negative, part in enumerate(law):
            for more, factor in enumerate(other):
                longer[negative + more] = longer[negative + more] + np.convolve(part, factor)
        law = longer
    return np.array(law)


def profile(first, second, epsilon):
    return float(np.sum(np.maximum(first - np.exp(epsilon) * second, 0.0)))


def gaussian_delta(mu, epsilon):
    return stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)


def test_sums_of_residues_as_whole_numbers_show_more_than_their_sum():
    """The figures of docs/proofs/federated.md, section 4: three sites, t = 0, μ = 1 for the sum; rounding aside."""
    sigma, sites = 40.0, 3
    first, second = (joint_law(shift, sigma, sites, 500) for shift in (0.0, -sigma * np.sqrt(sites)))
    assert profile(first.sum(axis=0), second.sum(axis=0), 2.0) == pytest.approx(gaussian_delta(1.0, 2.0), rel=0.01)
    assert max(profile(first, second, 2.0), profile(second, first, 2.0)) == pytest.approx(0.0496, abs=1e-4)
    assert gaussian_delta(1.0, 2.0) == pytest.approx(0.0209, abs=1e-4)
    assert gaussian_delta(1.17, 2.0) == pytest.approx(0.0496, abs=5e-4)


@pytest.mark.needs("mpyc")
@pytest.mark.parametrize("parties", [3, pytest.param(8, marks=pytest.mark.long)])
def test_mpyc_adds_up_modulo_its_prime_bit_for_bit(parties):
    pytest.importorskip("mpyc")
    names = [f"site {number}" for number in range(parties)]
    wanted = study(n=10 * parties, sites=names, modulus=MPYC_MODULUS, tolerated=1)
    asked, points = Coordinator(wanted).round, records(FLAT, 10 * parties)
    summed = sum_by_mpyc(asked, split_sites(points, names))
    assert summed.residues == sum_in_process(asked, split_sites(points, names)).residues
    assert summed.names == tuple(names)
    assert summed.engine == "mpyc"


@pytest.mark.needs("mpyc")
def test_mpyc_starts_without_a_site_that_is_gone():
    pytest.importorskip("mpyc")
    coordinator = Coordinator(study(modulus=MPYC_MODULUS, tolerated=1))
    release = coordinator.finish(sum_by_mpyc(coordinator.round, split_sites(records(FLAT))[:3]))
    assert release.n == 150
    assert release.sites.answered == (NAMES[:3],)
    assert release.sites.colluding == 0


@pytest.mark.needs("mpyc")
def test_a_party_that_is_lost_ends_the_round():
    """The second party gets an answer that it refuses, and never comes: the others wait in vain, and are ended."""
    pytest.importorskip("mpyc")
    wanted = study(n=20, sites=["a", "b"], modulus=MPYC_MODULUS)
    asked = Coordinator(wanted).round
    sites = split_sites(records(FLAT, 20), ["a", "b"])
    lost = sites[1].answer(asked)
    broken = type("Gone", (), {"answer": lambda self, _: replace(lost, residues=(*lost.residues[:-1], -1))})()
    with pytest.raises(RoundRefusedError, match="was lost"):
        sum_by_mpyc(asked, [sites[0], broken], timeout=20.0)


def test_mpyc_needs_its_modulus_and_answers_to_the_round():
    asked = Coordinator(study()).round
    with pytest.raises(ArgumentError, match="2\\^89"):
        sum_by_mpyc(asked, split_sites(records(FLAT)))
    asked = Coordinator(study(modulus=MPYC_MODULUS)).round
    for text in ("", "{}", write_sum(Coordinator(study()).round, SummedAnswers((1,), NAMES, "mpyc"))):
        with pytest.raises(RoundRefusedError):
            read_sum(text, asked)


def test_a_sum_that_is_written_otherwise_is_refused():
    asked = Coordinator(study()).round
    told = {"round": asked.hash, **SummedAnswers((1, 2), NAMES, "mpyc").to_dict()}
    assert read_sum(json.dumps(told), asked).names == NAMES
    for changes in (
        {"residues": [1, 2]},
        {"residues": ["1.0"]},
        {"residues": [1.5]},
        {"residues": ["1_0"]},
        {"residues": "12"},
        {"names": "nesw"},
        {"names": [1]},
        {"engine": None},
        {"reproducible": "false"},
        {"round": None},
    ):
        with pytest.raises(RoundRefusedError):
            read_sum(json.dumps({**told, **changes}), asked)


def test_where_answers_are_seen_one_by_one_no_round_of_a_secure_sum_is_answered():
    """A hostile server asks for one share of a sum with sites that it made up, and would see that share alone."""
    hostile = Coordinator(study(sites=("north", *(f"made up {number}" for number in range(99))))).round
    site = Site("north", records(FLAT, 20), rng=0)
    with pytest.raises(RoundRefusedError, match="seen by itself"):
        answer_in_plain(site, hostile)
    asked = Coordinator(study(transport="plain")).round
    assert answer_in_plain(site, asked).round == asked.hash


def test_over_a_line_only_a_site_with_a_ledger_answers(tmp_path):
    """The site of a message is made anew for each: without a ledger a server that repeats itself averages noise out."""
    asked, points = Coordinator(study(transport="plain")).round, records(FLAT, 20)
    with pytest.raises(RoundRefusedError, match="no ledger"):
        answer_in_plain(Site("north", points), asked)
    ledger = Ledger(tmp_path / "north.ledger")
    ledger.open_dataset("patients", GaussianDP(1.0))
    made = answer_over_line(Site("north", points, ledger=ledger, dataset="patients"), asked)
    assert made.receipt == ledger.entries()[-1].hash
    for answer in (answer_in_plain, answer_over_line):
        with pytest.raises(RoundRefusedError, match="answered before"):
            answer(Site("north", points, ledger=ledger, dataset="patients"), asked)


class Listening:
    """A runtime of MPyC as one party sees it, up to the moment when something of its answer would leave."""

    def __init__(self, names, asked):
        self.told, self.threshold = [(name, asked.hash, False) for name in names], (len(names) - 1) // 2

    def SecFld(self, modulus):
        return int

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def transfer(self, _):
        return self.told

    def input(self, _):
        raise RuntimeError("shared")


@pytest.mark.parametrize(
    ("names", "tolerated", "said"),
    [
        (NAMES, 1, "shared"),
        (NAMES[:3], 1, "shared"),
        (NAMES[:2], 1, "needs the answers of 3"),
        (NAMES, 2, "any 2 together would see"),
        (NAMES[:3], 2, "shared"),
        (NAMES, 3, "shared"),
        (("north", "stranger", "east", "south"), 1, "not different sites"),
        (("north", "north", "east", "south"), 1, "not different sites"),
    ],
)
def test_no_share_leaves_a_party_for_a_sum_that_keeps_less_than_the_promise(names, tolerated, said):
    """Too few answers in it, more colluding sites than Shamir's sharing keeps secrets from, or strangers."""
    asked = Coordinator(study(modulus=MPYC_MODULUS, tolerated=tolerated)).round
    answer, used = Site("north", records(FLAT, 20), rng=0).answer(asked), []
    with pytest.raises((RoundRefusedError, RuntimeError), match=said):
        asyncio.run(sum_answers(asked, answer, Listening(names, asked), lambda: used.append(1)))
    assert used == [1] * (said == "shared")


def test_no_share_leaves_a_party_whose_round_is_another_one_than_that_of_the_others():
    """A coordinator that sends others a round on a coarser lattice gets shares that are no noise on this answer."""
    asked, other = (Coordinator(study(modulus=MPYC_MODULUS, budget=GaussianDP(mu))).round for mu in (1.0, 2.0))
    answer, runtime = Site("north", records(FLAT, 20), rng=0).answer(asked), Listening(NAMES, asked)
    runtime.told[2] = ("south", other.hash, False)
    with pytest.raises(RoundRefusedError, match="answers to the same round"):
        asyncio.run(sum_answers(asked, answer, runtime, pytest.fail))


@pytest.mark.parametrize("threshold", [0, 1])
def test_no_share_leaves_a_party_where_mpyc_was_told_to_keep_answers_from_fewer(threshold):
    """With -T 0 each party would see the answers of all."""
    names = (*NAMES, "centre")
    asked = Coordinator(study(modulus=MPYC_MODULUS, sites=names)).round
    answer, runtime = Site("north", records(FLAT, 20), rng=0).answer(asked), Listening(names, asked)
    runtime.threshold = threshold
    with pytest.raises(RoundRefusedError, match=f"threshold of {threshold}"):
        asyncio.run(sum_answers(asked, answer, runtime, pytest.fail))


def test_more_colluding_sites_than_sharing_allows_are_told_before_anyone_answers():
    asked = Coordinator(study(modulus=MPYC_MODULUS, tolerated=2)).round
    site = Site("north", records(FLAT, 20))
    for parties in ([site] * 4, [site]):
        with pytest.raises(RoundRefusedError, match="parties"):
            sum_by_mpyc(asked, parties)
    assert site.answer(asked).round == asked.hash


def test_an_answer_is_in_one_sum(tmp_path):
    answer = tmp_path / "north.json"
    use_once(answer)
    with pytest.raises(RoundRefusedError, match="in a sum before"):
        use_once(answer)
