"""Plain answers through Flower: the release is that of the same answers in one process, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dpmanifolds import ArgumentError, Coordinator, RoundRefusedError, ScaleOutOfRangeError, Site
from dpmanifolds.federated.flower_engine import client_app, server_app
from dpmanifolds.federated.mpyc_engine import MPYC_MODULUS
from dpmanifolds.federated.secagg_engine import SECAGG_MODULUS, _Sum, secagg_server_app
from tests.federated.parties import FLAT, records, study


def test_a_server_that_sees_each_answer_takes_no_study_of_sums():
    with pytest.raises(ArgumentError, match="sees each answer"):
        server_app(study(), print)


@pytest.mark.needs("flwr")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["4"], "exact: 4 of 4"),
        (["6", "3"], "exact: 4 of 6"),
        (["4", "1"], "refused"),
        (["8", "secagg"], "exact: 8 of 8"),
    ],
    ids=["all", "some are gone", "too many are gone", "SecAgg+"],
)
def test_flower_carries_answers_bit_for_bit(arguments, said):
    pytest.importorskip("flwr")
    command = [sys.executable, "-m", "tests.federated.flower_study", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env={**os.environ})
    assert said in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "SECAGG_MODULUS"),
        ({"modulus": SECAGG_MODULUS, "transport": "plain"}, "secure sums"),
        ({"modulus": SECAGG_MODULUS, "tolerated": 2}, "fewer than half"),
    ],
    ids=str,
)
def test_secagg_takes_sums_of_31_bits_and_fewer_than_half_of_the_sites_tolerated(options, said):
    with pytest.raises((ArgumentError, RoundRefusedError), match=said):
        secagg_server_app(study(**options), print)
    with pytest.raises(ScaleOutOfRangeError):
        Coordinator(study(modulus=SECAGG_MODULUS, n=10**7))


@pytest.mark.parametrize("statistic", ["tangent PCA", "covariance", "second moment"])
def test_a_later_sum_that_does_not_fit_is_told_before_any_site_pays(statistic):
    """The first round, of a mean or of counts, would fit."""
    with pytest.raises(ScaleOutOfRangeError, match="does not hold"):
        Coordinator(study(FLAT, statistic, modulus=2**48))
    assert Coordinator(study(FLAT, statistic)).round.number == 1
    assert Coordinator(study(FLAT, statistic, modulus=MPYC_MODULUS)).round.number == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_quantiser_of_flower_leaves_whole_numbers_below_2_31_alone(seed):
    """The arithmetic of its client and server, by hand: masks cancel, and what is left is the sum modulo 2³¹."""
    rng, whole = np.random.default_rng(seed), SECAGG_MODULUS - 1
    answers = rng.integers(SECAGG_MODULUS, size=(8, 50))
    answers[:, :2] = 0, whole
    shown = (np.clip(answers - whole / 2, -whole / 2, whole / 2) + whole / 2) * (whole / (2 * (whole / 2)))
    assert np.array_equal(np.ceil(shown), answers)
    assert np.ceil(shown).max() < 2**31
    total = answers.sum(axis=0) % SECAGG_MODULUS
    averages = (total - 8 * whole / 2) * (whole / (8 * whole % SECAGG_MODULUS))
    results = [
        (None, SimpleNamespace(parameters=[averages], metrics={"site": str(each), "reproducible": False}))
        for each in range(8)
    ]
    with_stub = ModuleType("flwr.common")
    with_stub.parameters_to_ndarrays = list
    kept = {name: sys.modules.get(name) for name in ("flwr", "flwr.common")}
    sys.modules |= {"flwr": ModuleType("flwr"), "flwr.common": with_stub}
    try:
        strategy = _Sum(None, [])
        strategy.aggregate_fit(1, results, [])
    finally:
        for name, module in kept.items():
            sys.modules.pop(name) if module is None else sys.modules.__setitem__(name, module)
    assert strategy.summed.residues == tuple(total.tolist())


def test_a_client_refuses_a_server_that_asks_for_one_share_of_a_sum(monkeypatch):
    """The server of Flower sees each answer, and may be hostile: it is the client that must look at the transport."""

    class App:
        def query(self):
            return lambda answer: setattr(self, "answer", answer)

    def made(*given, **named):
        return given

    stubs = {"flwr": {}, "flwr.app": dict.fromkeys(("ConfigRecord", "Message", "RecordDict"), made)}
    stubs["flwr.clientapp"] = {"ClientApp": App}
    for name, members in stubs.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)

    def ask(find_site, **options):
        text = Coordinator(study(**options)).round.to_json()
        return client_app(find_site).answer(SimpleNamespace(content={"round": {"json": text}}), None)

    def find_site(context):
        return Site("north", records(FLAT, 20), rng=0)

    assert ask(find_site, transport="plain")
    with pytest.raises(RoundRefusedError, match="log of the site") as refused:
        ask(find_site)
    assert "seen by itself" in str(refused.value.__cause__)
    # Flower hands the words of an error to the server
    with pytest.raises(RoundRefusedError, match="log of the site") as refused:
        ask(lambda context: float("86420 years"), transport="plain")
    assert "86420" not in str(refused.value)
