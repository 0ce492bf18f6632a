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
from dpmanifolds.federated.secagg_engine import _SETTINGS, SECAGG_MODULUS, _Sum, secagg_client_app, secagg_server_app
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


@pytest.mark.needs("flwr")
@pytest.mark.parametrize(("kind", "asked_for"), [("train.default", 0), ("train", 1)])
def test_a_message_that_goes_past_the_masks_gets_no_answer(kind, asked_for, monkeypatch):
    """Flower leads "train.default" to the same function as "train", and masks replies to the latter alone."""
    pytest.importorskip("flwr")
    from flwr.app import ConfigRecord, Context, Message, RecordDict
    from flwr.common import FitIns, ndarrays_to_parameters
    from flwr.compat.common import recorddict_compat as compat
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    asked, found = Coordinator(study(modulus=SECAGG_MODULUS)).round, []

    def find_site(context):
        found.append(Site("north", records(FLAT, 20), rng=0))
        return found[-1]

    told = {**_SETTINGS, "max_weight": 1.0, "sample_num": 4, "share_num": 4, "threshold": 4}
    state = RecordDict({"secaggplus_state": ConfigRecord({**told, "current_stage": "share_keys"})})
    content = compat.fitins_to_recorddict(FitIns(ndarrays_to_parameters([]), {"round": asked.to_json()}), False)
    stage = {"stage": "collect_masked_vectors", "ctxts": [b""] * 3, "srcs": [2, 3, 4]}
    content.config_records["secaggplus_configs"] = ConfigRecord(stage)
    message = Message(content, dst_node_id=1, message_type=kind)
    # the masks of the other one fail for want of keys
    with pytest.raises((RoundRefusedError, AttributeError, KeyError)):
        secagg_client_app(find_site)(message, Context(1, 1, {}, state, {}))
    assert len(found) == asked_for


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
