"""Every example of the gallery runs at a small size, and tells what its answer is worth."""

from __future__ import annotations

import inspect
import re

import pytest

from examples import build

SIMULATED = [name for name, one in build.find_examples().items() if "n" in inspect.signature(one.main).parameters]


def test_the_examples_are_found():
    assert {"directions", "landmark_shapes", "hyperbolic_embedding", "custodian_year", "digits"} <= set(
        build.find_examples()
    )


@pytest.mark.parametrize("name", SIMULATED)
def test_an_example_tells_its_usefulness(name, tmp_path, capsys):
    build.find_examples()[name].main(tmp_path, n=300)
    said = capsys.readouterr().out
    assert "error by privacy" in said
    assert "by having n records" in said


@pytest.mark.long
def test_motor_imagery_is_told_apart_within_the_budget_and_beside_its_rivals(tmp_path, capsys):
    """No seed: over a subject's 60 new trials 80 to 95 % are right, and 20 below is six deviations away."""
    build.find_examples()["eeg_motor_imagery"].main(tmp_path, subjects=1)
    said = capsys.readouterr().out
    assert "for one trial replaced: True" in said
    shares = {name.strip(): float(share) for name, share in re.findall(r"^  (.+?)\s+([\d.]+) % right$", said, re.M)}
    assert next(iter(shares)) == "public subjects alone"
    assert list(shares)[-1] == "no privacy"
    assert shares["private, ε = 3"] > 60


def test_a_page_has_text_output_figure_and_code(tmp_path):
    build.write_page("directions", build.find_examples()["directions"], tmp_path)
    page = (tmp_path / "directions.md").read_text(encoding="utf-8")
    assert page.startswith("# A private mean direction")
    assert "error by privacy" in page
    assert "literalinclude} ../../examples/directions.py" in page
