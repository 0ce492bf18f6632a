"""What the command line says when it is used wrongly, and that nothing private is in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds
from dpmanifolds.ledger import Ledger
from tests.cli.wrong_uses import TABLE, WRONG_USES, seen, table_text

SPHERE = "mean directions.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --epsilon 1"
# what only a Python user types
PYTHON = re.compile(
    r"\b[a-z]+_[a-z_]+\b|\w=['\w]|\w=\s|\b(?:Pure|Approx|Gaussian|ZeroConcentrated|Renyi)DP\b|\b(?:Ball|SPD|Sphere)\(|"
    r"\bRelease\.|Path\("
)


@pytest.fixture(scope="module")
def messages():
    return {use.name: seen(use) for use in WRONG_USES}


def test_there_are_at_least_25_wrong_uses():
    assert len({use.command for use in WRONG_USES}) == len({use.name for use in WRONG_USES}) >= 25


def test_every_wrong_use_ends_with_its_exit_code_and_one_line(messages):
    for use in WRONG_USES:
        code, message = messages[use.name]
        assert code == use.code, use.name
        assert message.startswith("error: "), use.name
        assert "Traceback" not in message
        assert "unforeseen" not in message


def test_no_message_speaks_python(messages):
    for name, (_, message) in messages.items():
        assert not PYTHON.search(message.replace("dpmanifolds.validate in Python", "")), name


def test_the_table_of_errors_shows_what_the_program_says(messages):
    assert TABLE.read_text(encoding="utf-8") == table_text({name: told for name, (_, told) in messages.items()}), (
        "write docs/tables/errors.csv again: python -m tests.cli.wrong_uses"
    )


@pytest.mark.parametrize(("option", "given"), [("--epsilon", "one"), ("--eigenvalues", "1e-4,3e-3"), ("--n", "1e3")])
def test_a_word_in_the_place_of_a_number_is_quoted(typed, option, given):
    """Whatever version of typer reads it."""
    outcome = typed(f"plan --manifold spd:3 {option} {given} {given}")
    assert outcome.exit_code == 2
    assert f"'{given}'" in outcome.stderr


def test_an_unforeseen_error_quotes_nothing_and_ends_with_1(folder, typed, monkeypatch):
    def broken(*_args, **_kwargs):
        raise ValueError("record 17 is 3.14159")

    monkeypatch.setattr("dpmanifolds.releases.private_mean", broken)
    outcome = typed(f"{SPHERE} --yes")
    assert outcome.exit_code == 1
    assert "3.14159" not in outcome.output + outcome.stderr
    assert "ValueError" in outcome.stderr


def test_nothing_but_the_release_depends_on_the_records(folder, typed):
    """Same public facts, other records: all that is printed besides the value is the same, letter for letter."""
    np.save("other.npy", np.load("directions.npy")[::-1] * [1.0, -1.0, -1.0])
    first = typed(f"{SPHERE} --yes --seed 1 --out out")
    Path("out").rename("earlier")
    second = typed(f"{SPHERE.replace('directions', 'other')} --yes --seed 1 --out out")
    assert first.exit_code == second.exit_code == 0
    assert first.stderr == second.stderr
    without_value = [
        [line for line in outcome.stdout.splitlines() if not line.lstrip().startswith("value")]
        for outcome in (first, second)
    ]
    assert without_value[0] == without_value[1]
    assert first.stdout != second.stdout


def test_a_message_about_records_does_not_tell_which_or_how_many(folder, typed):
    said = set()
    good = np.load("not-spd.npy")[:5]
    for bad in ([0], [4], [0, 1, 2]):
        records = good.copy()
        records[bad] *= -1
        np.save("bad.npy", records)
        outcome = typed('mean bad.npy --manifold spd:3 --center "1e-3*I" --radius 2 --epsilon 1 --yes --out out')
        assert outcome.exit_code == 2
        said.add(outcome.stderr)
    assert len(said) == 1


def test_a_refusal_by_the_ledger_leaves_no_trace(folder, typed):
    typed("ledger open privacy.ledger --dataset clinic --epsilon 0.5")
    outcome = typed(f"{SPHERE} --yes --ledger privacy.ledger --dataset clinic --out new/out")
    assert outcome.exit_code == 3
    assert Ledger("privacy.ledger").spent("clinic") is None
    assert not Path("new").exists()


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["info"], 0),
        (["mean", "directions.npy"], 2),
        (["ledger", "verify", "damaged.ledger"], 1),
        (["nonsense"], 2),
    ],
    ids=["info", "wrong use", "damaged", "no command"],
)
def test_exit_codes_of_the_program(folder, arguments, code):
    Path("damaged.ledger").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    done = subprocess.run(
        [sys.executable, "-m", "dpmanifolds", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(dpmanifolds.__file__).parents[1])},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "No module" not in done.stderr
    assert (done.stderr == "") == (code == 0)
