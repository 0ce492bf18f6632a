"""`dpmanifolds compare`: two files in, one bit out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm

PLACE = "--manifold euclidean:2 --center origin --radius 3"


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Two files of records, far apart, and the persons that they belong to."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(150, 2)) + np.array([2.0, 0.0])
    np.save("a.npy", x)
    np.save("b.npy", y)
    Path("persons.txt").write_text("\n".join(f"p{number // 2}" for number in range(350)), encoding="utf-8")
    Path("shared.txt").write_text("\n".join(f"p{number % 200}" for number in range(350)), encoding="utf-8")
    spelled = [str(number // 2) for number in range(200)] + [f"{number // 2:04d}" for number in range(150)]
    Path("spelled.txt").write_text("\n".join(spelled), encoding="utf-8")
    for name, people in (("a.csv", spelled[:200]), ("b.csv", spelled[200:])):
        Path(name).write_text("\n".join(["person,u,v", *(f"{each},0.1,0.2" for each in people)]), encoding="utf-8")
    return x, y


def test_two_files_are_compared_as_python_does(groups, typed):
    outcome = typed(f"compare a.npy b.npy {PLACE} --epsilon 1 --seed 3 --yes --out out")
    assert outcome.exit_code == 0, outcome.stderr
    assert "They differ at level 0.05" in outcome.stdout
    found = dpm.Decision.from_json(Path("out/decision.json").read_text(encoding="utf-8"))
    ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
    assert found == dpm.private_two_sample_test(*groups, ball, dpm.PureDP(1.0), rng=3)


def test_level_kernel_bandwidths_pvalue_and_persons_are_passed_on(groups, typed):
    line = (
        f"compare a.npy b.npy {PLACE} --mu 3 --seed 3 --yes --out out --level 0.1 --bandwidth 1 --bandwidth 2 --pvalue"
    )
    outcome = typed(f"{line} --permutations 99 --group-by persons.txt --quiet")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.strip() == "out/decision.json"
    found = json.loads(Path("out/decision.json").read_text(encoding="utf-8"))
    assert found["sizes"] == [100, 75]
    assert found["pvalue"] is not None
    assert found["kernel"].startswith("512 directions, bandwidth 1, 2")
    assert found["guarantee"]["unit"] == "person within class"
    again = typed(f"{line} --permutations 99")
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_a_ledger_is_charged(groups, typed):
    opened = typed('ledger open a.ledger --dataset clinic --epsilon 2 --unit "record within class"')
    assert opened.exit_code == 0, opened.stderr
    line = f"compare a.npy b.npy {PLACE} --epsilon 1.5 --yes --ledger a.ledger --dataset clinic"
    assert typed(f"{line} --out one").exit_code == 0
    refused = typed(f"{line} --out two")
    assert refused.exit_code == 3
    assert not Path("two").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.npy", "two files"),
        ("a.npy b.npy a.npy", "two files"),
        ("a.npy a.npy", "move both groups"),
        ("a.npy b.npy --level 2", "between 0 and 1"),
        ("a.npy b.npy --permutations 5", "at least 19"),
        ("a.npy b.npy --kernel geodesic", "must be one of auto"),
        ("a.npy b.npy --group-by files", "one person in each"),
        ("a.npy b.npy --group-by shared.txt", "somebody in both groups"),
        ("a.npy b.npy --group-by spelled.txt", "a name in two ways"),
        ("a.csv b.csv --group-by person", "a name in two ways"),
    ],
)
def test_wrong_uses_are_told_before_anything_is_spent(groups, typed, line, words):
    outcome = typed(f"compare {line} {PLACE} --epsilon 1 --yes --out out")
    assert outcome.exit_code == 2
    assert words in " ".join(outcome.stderr.split())
    assert not Path("out").exists()
