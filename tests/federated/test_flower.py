"""Plain answers through Flower: the release is that of the same answers in one process, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dpmanifolds import ArgumentError, Coordinator, RoundRefusedError, Site
from dpmanifolds.federated.flower_engine import client_app, server_app
from tests.federated.parties import FLAT, records, study


def test_a_server_that_sees_each_answer_takes_no_study_of_sums():
    with pytest.raises(ArgumentError, match="sees each answer"):
        server_app(study(), print)


@pytest.mark.needs("flwr")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["4"], "exact: 4 of 4"), (["6", "3"], "exact: 4 of 6"), (["4", "1"], "refused")],
    ids=["all", "some are gone", "too many are gone"],
)
def test_flower_carries_answers_bit_for_bit(arguments, said):
    pytest.importorskip("flwr")
    command = [sys.executable, "-m", "tests.federated.flower_study", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env={**os.environ})
    assert said in done.stdout, done.stderr[-2000:]


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
        return Site("north", records(FLAT, 20))

    assert ask(find_site, transport="plain")
    with pytest.raises(RoundRefusedError, match="log of the site") as refused:
        ask(find_site)
    assert "seen by itself" in str(refused.value.__cause__)
    # Flower hands the words of an error to the server
    with pytest.raises(RoundRefusedError, match="log of the site") as refused:
        ask(lambda context: float("86420 years"), transport="plain")
    assert "86420" not in str(refused.value)
