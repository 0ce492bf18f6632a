"""Sites that are killed, in every phase of every engine: up to t the release is made, or the round ends cleanly.

In each case ledgers say what was spent, and an answer that was drawn is never drawn again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from dpmanifolds import Coordinator, GaussianDP, Ledger, Round, RoundRefusedError, Site
from dpmanifolds.federated import Answer, reconcile
from dpmanifolds.federated.mpyc_engine import MPYC_MODULUS, free_ports, read_sum
from dpmanifolds.ledger.runs import PaidRun
from dpmanifolds.sums.shares import NoiseShares
from dpmanifolds.sums.total import RecordSums
from tests.federated.parties import FLAT, NAMES, records, simulate, study


class KilledError(BaseException):
    """Nothing catches it, like kill −9; what is on the disk stays."""


def killed(*_, **__):
    raise KilledError


@pytest.fixture
def ledgers(tmp_path):
    made = {name: Ledger(tmp_path / f"{name}.ledger") for name in NAMES}
    for ledger in made.values():
        ledger.open_dataset("patients", GaussianDP(5.0))
    return made


def site_of(name, ledgers):
    return Site(name, records(FLAT, 50, seed=NAMES.index(name)), ledger=ledgers[name], dataset="patients")


def spent(ledgers):
    return [len(list(ledger.entries())) - 1 for ledger in ledgers.values()]


PHASES = {
    "while it sums": (RecordSums, "total", 0),
    "before it is charged": (Ledger, "spend", 0),
    "between charge and draw": (PaidRun, "take", 1),
    "while it draws": (NoiseShares, "draw", 1),
    "before it is written": (Answer, "__init__", 1),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("tolerated", [0, 1])
def test_a_site_that_is_killed_while_it_answers(phase, tolerated, ledgers, monkeypatch):
    """By files: up to t the release is made without it; what was charged is never drawn a second time."""
    coordinator = Coordinator(study(transport="plain", tolerated=tolerated))
    text = coordinator.round.to_json()
    owner, method, charged = PHASES[phase]
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, killed)
        with pytest.raises(KilledError):
            site_of("west", ledgers).answer(Round.from_json(text))
    answers = [site_of(name, ledgers).answer(Round.from_json(text)) for name in NAMES[:3]]
    assert spent(ledgers) == [1, 1, 1, charged]
    if tolerated:
        release = coordinator.finish(answers)
        assert release.sites.answered == (NAMES[:3],)
        assert release.guarantee.fits(GaussianDP(1.0))
        assert reconcile(release, "west", ledgers["west"]).agrees
    else:
        with pytest.raises(RoundRefusedError, match="3 of 4 sites answered"):
            coordinator.finish(answers)
        assert coordinator.release is None
    # the process comes back, and is asked again
    if charged:
        with pytest.raises(RoundRefusedError, match="answered before"):
            site_of("west", ledgers).answer(Round.from_json(text))
    else:
        assert site_of("west", ledgers).answer(Round.from_json(text)).site == "west"
    assert spent(ledgers) == [1, 1, 1, 1]


def start_parties(tmp_path, phases, seconds=8.0):
    """A process for each party, in one of the phases of `mpyc_kills`; their exit codes."""
    ports = [option for port in free_ports(len(phases)) for option in ("-P", f"127.0.0.1:{port}")]
    running = []
    for number, (name, phase) in enumerate(phases.items()):
        if phase == "absent":
            continue
        files = [str(tmp_path / each) for each in ("round.json", f"{name}.json", f"sum-{name}.json")]
        command = [sys.executable, "-m", "tests.federated.mpyc_kills", phase, str(seconds), *files, *ports]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen([*command, "-I", str(number), "--no-log"], **quiet))
    try:
        return [process.wait(60) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def open_round(tmp_path, ledgers):
    coordinator = Coordinator(study(modulus=MPYC_MODULUS, tolerated=1))
    (tmp_path / "round.json").write_text(coordinator.round.to_json())
    for name in NAMES:
        (tmp_path / f"{name}.json").write_text(site_of(name, ledgers).answer(coordinator.round).to_json())
    return coordinator


@pytest.mark.needs("mpyc")
@pytest.mark.parametrize("phase", ["told", "shared", "opening"])
def test_mpyc_ends_the_round_where_a_party_dies_in_between(phase, tmp_path, ledgers):
    """No party has a sum, all end by themselves, no answer is in a second sum, and the ledgers keep what was spent."""
    pytest.importorskip("mpyc")
    coordinator = open_round(tmp_path, ledgers)
    codes = start_parties(tmp_path, {**dict.fromkeys(NAMES, "none"), "west": phase})
    assert all(codes)
    assert not list(tmp_path.glob("sum-*.json"))
    assert spent(ledgers) == [1] * 4
    assert coordinator.release is None
    assert all(start_parties(tmp_path, dict.fromkeys(NAMES[:3], "none")))
    assert not list(tmp_path.glob("sum-*.json"))


@pytest.mark.needs("mpyc")
def test_mpyc_goes_on_without_a_party_that_never_came_and_with_one_that_dies_after_the_sum(tmp_path, ledgers):
    """Nothing of an answer has left while a party is missing: the others start again without it."""
    pytest.importorskip("mpyc")
    coordinator = open_round(tmp_path, ledgers)
    assert all(start_parties(tmp_path, {**dict.fromkeys(NAMES, "none"), "west": "absent"}, seconds=4.0))
    assert not list(tmp_path.glob("sum-*.json"))
    codes = start_parties(tmp_path, {"north": "none", "east": "summed", "south": "none"})
    assert codes == [0, 9, 0]
    release = coordinator.finish(read_sum((tmp_path / "sum-north.json").read_text(), coordinator.round))
    assert release.sites.answered == (NAMES[:3],)
    assert spent(ledgers) == [1] * 4


@pytest.mark.needs("mpyc")
def test_mpyc_makes_no_sum_of_fewer_parties_than_the_promise_needs(tmp_path, ledgers):
    pytest.importorskip("mpyc")
    open_round(tmp_path, ledgers)
    assert all(start_parties(tmp_path, dict.fromkeys(NAMES[:2], "none")))
    assert not list(tmp_path.glob("sum-*.json"))
    assert not list(tmp_path.glob("*.used"))


def check_outcome(module, given, answered, charged, folder):
    """Who is in the release, none where `answered` is 0, and how often each ledger was charged."""
    done = simulate(module, folder, *given.split())
    outcome = json.loads(done.stdout.split("OUTCOME ")[-1])
    assert outcome["spent"] == charged
    if answered:
        assert len(outcome["release"]["answered"]) == answered
        assert outcome["release"]["mu"] <= 1.0
    else:
        assert outcome["release"] is None
        assert re.search("no release is made|refused: ", done.stdout + done.stderr)


ALL = [1, 1, 1, 1, 1]
KILLS = [
    ("plain 1 query before 2", 4, [1, 1, 0, 1, 1]),
    ("plain 1 query after 2", 4, ALL),
    ("plain 1 query after 1 2", 0, ALL),
    ("secagg 1 setup before 2", 0, [0] * 5),
    ("secagg 1 setup after 2", 0, [0] * 5),
    ("secagg 1 share_keys before 2", 0, [0] * 5),
    ("secagg 1 share_keys after 2", 0, [0] * 5),
    ("secagg 1 collect_masked_vectors before 2", 4, [1, 1, 0, 1, 1]),
    ("secagg 1 collect_masked_vectors after 2", 4, ALL),
    ("secagg 1 collect_masked_vectors after 1 2", 0, ALL),
    ("secagg 1 unmask before 2", 5, ALL),
    ("secagg 1 unmask after 2", 5, ALL),
    ("secagg 1 unmask before 1 2", 0, ALL),
]


@pytest.mark.needs("flwr")
@pytest.mark.parametrize(("given", "answered", "charged"), KILLS, ids=[each[0] for each in KILLS])
def test_flower_with_clients_that_die(given, answered, charged, tmp_path):
    """SecAgg+ cannot go on without a client that shared no keys: then nobody draws. Later up to t may die."""
    pytest.importorskip("flwr")
    check_outcome("flower_kills", given, answered, charged, tmp_path)


@pytest.mark.needs("nvflare")
@pytest.mark.parametrize(
    ("given", "answered", "charged"),
    [("1 asked 2", 3, [1, 0, 1, 1]), ("1 spent 2", 3, [1, 1, 1, 1]), ("1 spent 2 3", 0, [1, 1, 1, 1])],
)
def test_flare_with_clients_that_die(given, answered, charged, tmp_path):
    pytest.importorskip("nvflare")
    check_outcome("flare_kills", given, answered, charged, tmp_path)
