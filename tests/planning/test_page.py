"""The page as a file: self-contained, small, and open at what was asked for."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import dpmanifolds as dpm
from dpmanifolds.planning import plan_page, write_plan_page

BUILDER = Path(__file__).resolve().parents[2] / "docs" / "planner" / "build.py"


def start_of(text: str) -> dict:
    return json.loads(re.search(r'id="start">(.*?)</script>', text)[1])


def test_the_page_is_one_small_file_without_any_address(tmp_path):
    path = write_plan_page(tmp_path / "plan.html")
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\((?!#)", text)
    assert "/*STYLE*/" not in text
    assert "default-src 'none'" in text


def test_the_page_of_the_package_is_what_its_sources_give():
    """`make planner` writes it."""
    builder = runpy.run_path(str(BUILDER))
    assert builder["BUILT"].read_text(encoding="utf-8") == builder["built_page"]() == plan_page()


def test_every_control_has_a_label():
    text = plan_page()
    controls = re.findall(r"<(?:input|select)\b[^>]*>", text.split("<script")[0])
    assert len(controls) > 10
    for control in controls:
        name = re.search(r'id="([^"]+)"', control)[1]
        assert f'for="{name}"' in text or "aria-label=" in control, control


def test_it_opens_at_what_was_asked_for():
    text = plan_page(
        manifold="grassmann:5,2", metric="log-euclidean", n=70, radius=0.25, budget=dpm.ApproxDP(0.5, 1e-7)
    )
    assert start_of(text) == {
        "family": "grassmann", "sizes": {"grassmann": [5, 2]}, "metric": "log-euclidean", "n": 70, "radius": 0.25,
        "kind": "approx", "amount": 0.5, "delta": 1e-7,
    }  # fmt: skip
    assert start_of(plan_page(budget=dpm.ZeroConcentratedDP(0.1))) == {"kind": "zcdp", "amount": 0.1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"manifold": "torus:2"},
        {"manifold": "grassmann:5"},
        {"n": 0},
        {"radius": -1.0},
        {"metric": "x"},
        {"budget": 1.0},
    ],
    ids=["family", "sizes", "n", "radius", "metric", "budget"],
)
def test_a_wrong_start_is_refused_with_the_fix(wrong):
    with pytest.raises(dpm.ArgumentError, match="must be"):
        plan_page(**wrong)
