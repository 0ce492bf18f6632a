"""Files that version 0.1 left behind: they load, go on being charged, and what is known to be wrong with them is told.

`left_by_0_1` was written by the code of version 0.1 (commit e2132f0): a release of each kind and the ledger they were
charged to, with a plan that was used once under the number 0.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpmanifolds.ledger import Ledger
from dpmanifolds.ledger.runs import NewRun
from dpmanifolds.privacy import GaussianDP, Guarantee
from dpmanifolds.releases import Release
from dpmanifolds.show import load_release, write_report
from tests.command_line import type_line

LEFT = Path(__file__).parent / "left_by_0_1"
CONCERNS = {
    "mean": ["company"],
    "refined_mean": ["company"],
    "median": ["company", "resumed"],
    "variance": ["company"],
    "class_mean": ["company", "labels"],
    "riemannian": ["company", "profile"],
    "tiny_delta": ["company", "calibration"],
    "value": [],
}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(shutil.copy(LEFT / "privacy.ledger", tmp_path))


def names(advisories):
    return [str(advisory).split(":")[0] for advisory in advisories]


@pytest.mark.parametrize("name", CONCERNS)
def test_a_release_of_version_0_1_loads_and_tells_its_faults(name, tmp_path):
    release = load_release(LEFT / f"{name}.json")
    assert release.version == "0.1.0"
    assert names(release.advisories) == CONCERNS[name]
    page = write_report(release, tmp_path / "report.html").read_text()
    for text in release.advisories:
        assert text in release.summary()
        assert text.replace("'", "&#x27;") in page
    assert ("KNOWN FAULTS" in release.summary()) is bool(CONCERNS[name])
    # written again it stays what it was: of version 0.1
    assert Release.from_json(release.to_json()).advisories == release.advisories


def test_a_ledger_of_version_0_1_is_read_as_it_is_and_charged_on(ledger):
    before = Path(ledger.path).read_bytes()
    assert ledger.verify() == 15
    assert ledger.spent("clinic") == GaussianDP(0.8062257748298535)
    assert Path(ledger.path).read_bytes() == before
    ledger.spend("clinic", Guarantee.gaussian(0.1, unit="person"), what="mean", run=NewRun(3))
    assert ledger.verify() == 16
    assert ledger.entries()[-1].version is not None
    assert ledger.entries()[-1].advisories == ()


def test_a_ledger_of_version_0_1_that_cannot_be_written_can_be_read(ledger):
    Path(ledger.path).chmod(0o400)
    Path(ledger.path).parent.chmod(0o500)
    try:
        assert ledger.verify() == 15
    finally:
        Path(ledger.path).parent.chmod(0o700)


def test_a_review_lists_the_entries_of_faulty_ways(ledger):
    found = {entry.number: names(entry.advisories) for entry in ledger.entries() if entry.advisories}
    assert found == {
        3: ["company"],
        4: ["company", "resumed"],
        5: ["company"],
        6: ["company"],
        8: ["company", "labels"],
        10: ["company", "profile"],
        12: ["company"],
        14: ["plan"],
    }
    shown = type_line(["ledger", "review", ledger.path])
    assert shown.exit_code == 0
    for word in ("riemannian", "idealized", "class means", "resumed", "paid for by no part", "stays charged"):
        assert word in " ".join(shown.output.split())
    assert "value" not in shown.output
    only = type_line(["ledger", "review", ledger.path, "--dataset", "pupils"])
    assert "labels" in only.output
    assert "resumed" not in only.output


def test_a_ledger_of_this_version_has_nothing_to_review(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("clinic", GaussianDP(1.0))
    ledger.spend("clinic", Guarantee.gaussian(0.5), what="descent")
    plan = ledger.reserve("clinic", [Guarantee.gaussian(0.5)], what="mean")
    plan.use(0)
    shown = type_line(["ledger", "review", ledger.path])
    assert "no entry was made by a way that is known to be faulty" in " ".join(shown.output.split())
