"""Several sites by files: a study is opened, answered, combined and reconciled from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.federated import sum_in_process
from dpmanifolds.federated.mpyc_engine import MPYC_MODULUS, write_sum
from dpmanifolds.show import load_release

pytestmark = pytest.mark.usefixtures("quick_pages")
OPEN = "site open study --manifold euclidean:2 --center 0,0 --radius 2 --n 60 --mu 1 --sites north,south"


@pytest.fixture
def tables(folder):
    """Records of two sites, and their ledgers."""
    rng = np.random.default_rng(0)
    for name in ("north", "south"):
        np.savetxt(folder / f"{name}.csv", rng.normal(size=(30, 2)), delimiter=",", header="x,y", comments="")
        (folder / f"{name}.key").write_text(f"the secret key of {name}")
        dpm.Ledger(folder / f"{name}.ledger").open_dataset("patients", dpm.GaussianDP(1.25))
    return folder


def answer_line(name, number=1, more="", ledger=True):
    account = f"--ledger {name}.ledger --dataset patients" if ledger else ""
    return f"site answer study/round-{number}.json {name}.csv --name {name} --out {name}-{number}.json {account} {more}"


def test_two_sites_make_a_release_by_files(tables, typed):
    assert typed(OPEN).exit_code == 0
    keyed = "--signing-key {0}.key"
    first = typed(answer_line("north", more="--most-mu 1 --signing-key north.key"))
    assert first.exit_code == 0, first.stderr
    assert typed(answer_line("south", more=keyed.format("south"))).exit_code == 0
    outcome = typed("site combine study north-1.json south-1.json --keys .")
    assert outcome.exit_code == 0, outcome.stderr
    release = load_release("study/release")
    assert release.n == 60
    assert not release.reproducible
    assert release.sites.transport == "plain"
    assert release.guarantee.fits(dpm.GaussianDP(1.0))
    assert typed("site reconcile study/release north.ledger --name north").exit_code == 0
    wrong = typed("site reconcile study/release north.ledger --name south")
    assert wrong.exit_code == 1
    assert "NOT paid for" in wrong.stdout


def test_a_round_is_answered_once(tables, typed):
    typed(OPEN)
    assert typed(answer_line("north")).exit_code == 0
    again = typed(answer_line("north"))
    assert again.exit_code == 2
    assert "exists" in again.stderr
    other = typed(answer_line("north").replace("--out north-1.json", "--out other.json"))
    assert other.exit_code == 2
    assert "answered before" in other.stderr
    assert len(dpm.Ledger(tables / "north.ledger").entries()) == 2


def test_without_a_ledger_that_remembers_it_no_round_is_answered(tables, typed):
    """Whoever asks a second time would get other noise, and average it out."""
    typed(OPEN)
    outcome = typed(answer_line("north", ledger=False))
    assert outcome.exit_code == 2
    assert "no ledger" in outcome.stderr
    assert not list(tables.glob("north-1.json*"))


def test_rounds_against_the_options_of_a_site_are_refused(tables, typed):
    typed(OPEN)
    for more, said in (
        ("--most-mu 0.5", "more than"),
        ("--only-sums", "transport"),
        ("--known east", "not known here"),
    ):
        outcome = typed(answer_line("north", more=more))
        assert outcome.exit_code == 2
        assert said in outcome.stderr
    assert not (tables / "north-1.json").exists()


@pytest.mark.parametrize(
    ("more", "said"), [("--out north.csv/north-1.json", "cannot be written"), ("--signing-key short.key", "16 random")]
)
def test_what_would_fail_after_the_draw_is_told_before_anything_is_spent(more, said, tables, typed):
    typed(OPEN)
    (tables / "short.key").write_text("short")
    outcome = typed(answer_line("north", more=more))
    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert len(dpm.Ledger(tables / "north.ledger").entries()) == 1
    assert not list(tables.glob("*.new"))


def test_answers_with_another_key_are_refused(tables, typed):
    typed(OPEN)
    typed(answer_line("north", more="--signing-key south.key"))
    typed(answer_line("south", more="--signing-key south.key"))
    outcome = typed("site combine study north-1.json south-1.json --keys .")
    assert outcome.exit_code == 2
    assert "not signed" in outcome.stderr
    assert not (tables / "study" / "release").exists()


def test_keys_are_bytes_of_any_kind(tables, typed):
    """Read as text, all bytes that are none would be one, and six of them a key of eighteen."""
    typed(OPEN)
    for name, key in (("north", bytes(range(200, 216))), ("south", bytes(range(220, 236))), ("short", b"\xff" * 6)):
        (tables / f"{name}.key").write_bytes(key)
    short = typed(answer_line("north", more="--signing-key short.key"))
    assert short.exit_code == 2
    assert "16 random" in short.stderr
    for name in ("north", "south"):
        assert typed(answer_line(name, more="--signing-key south.key")).exit_code == 0
    wrong = typed("site combine study north-1.json south-1.json --keys .")
    assert wrong.exit_code == 2
    assert "'north' is not signed" in wrong.stderr


def test_several_rounds_follow_each_other(tables, typed):
    typed(OPEN + " --refine 1")
    for number in (1, 2):
        for name in ("north", "south"):
            assert typed(answer_line(name, number)).exit_code == 0
        outcome = typed(f"site combine study north-{number}.json south-{number}.json")
        assert outcome.exit_code == 0, outcome.stderr
    assert [stage.statistic for stage in load_release("study/release").stages] == ["counts"]
    assert typed("site combine study north-2.json south-2.json").exit_code == 2


def test_the_sum_of_an_engine_is_combined(tables, typed):
    typed(OPEN + " --engine mpyc --tolerated 1")
    asked = dpm.Round.from_json((tables / "study" / "round-1.json").read_text())
    assert asked.modulus == MPYC_MODULUS
    sites = [dpm.Site(name, np.zeros((30, 2)), rng=0) for name in ("north", "south")]
    (tables / "sum.json").write_text(write_sum(asked, sum_in_process(asked, sites)))
    outcome = typed("site combine study sum.json")
    assert outcome.exit_code == 0, outcome.stderr
    assert load_release("study/release").sites.tolerated == 1


def test_altered_files_are_refused(tables, typed):
    typed(OPEN)
    path = tables / "study" / "round-1.json"
    data = json.loads(path.read_text())
    data["claim"] = 2.0
    path.write_text(json.dumps(data))
    outcome = typed(answer_line("north"))
    assert outcome.exit_code == 2
    assert "altered" in outcome.stderr
    path.write_text("not a round")
    assert typed(answer_line("north")).exit_code == 2
    assert typed("site combine nowhere north-1.json").exit_code == 2


def test_the_answer_to_a_round_of_a_secure_sum_is_told_to_stay(tables, typed):
    assert typed(f"{OPEN} --engine mpyc").exit_code == 0
    outcome = typed(answer_line("north", more="--known south"))
    assert outcome.exit_code == 0, outcome.stderr
    assert "stays here" in outcome.stdout


class KilledError(BaseException):
    """Nothing catches it, like kill −9; what is on the disk stays."""


@pytest.mark.parametrize(("file", "rounds"), [("coordinator.json", 1), ("release", 1), ("round-2.json", 2)])
def test_a_coordinator_that_is_killed_before_a_file_is_written_does_it_again(file, rounds, tables, typed, monkeypatch):
    """`combine` of one round that ends with the release, or with another round: the same call leads to the same."""
    typed(OPEN + (" --refine 1" if rounds == 2 else ""))
    for name in ("north", "south"):
        assert typed(answer_line(name)).exit_code == 0
    before = (tables / "study/coordinator.json").read_text()
    replace, mkdir = Path.replace, Path.mkdir

    def killed(call):
        def stop(path, *given, **named):
            if path.name.startswith(file):
                raise KilledError
            return call(path, *given, **named)

        return stop

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed(replace))
        patch.setattr(Path, "mkdir", killed(mkdir))
        with pytest.raises(KilledError):
            typed("site combine study north-1.json south-1.json")
    assert (tables / "study/coordinator.json").read_text() == before
    again = typed("site combine study north-1.json south-1.json")
    assert again.exit_code == 0, again.stderr
    coordinator = dpm.Coordinator.from_json((tables / "study/coordinator.json").read_text())
    if rounds == 1:
        assert load_release("study/release") == coordinator.release
    else:
        assert dpm.Round.from_json((tables / "study/round-2.json").read_text()) == coordinator.round
