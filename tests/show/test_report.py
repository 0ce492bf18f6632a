"""The page about a release, and its files."""

from __future__ import annotations

import json
import re
import sys
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.show import load_release, report_html, save_release, write_report
from dpmanifolds.show.plots.release import reach_of
from tests.show.examples import NAMES, example

VOID = {"meta", "path", "use", "br", "rect"}


class Balanced(HTMLParser):
    """Checks that every tag is closed, and collects addresses that the page would ask for."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.asked: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        # a # is a place on the page itself
        self.asked += [
            value
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "action", "data") and not str(value).startswith("#")
        ]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture
def no_figure(monkeypatch):
    """Drawing takes longest, and is not what is tested."""
    monkeypatch.setattr("dpmanifolds.show.report.figure_svg", lambda release: None)


@pytest.mark.parametrize("name", ["spd3", "spd5", "shapes", "hyperbolic3", "map", "product", "variance", "median"])
def test_every_release_has_a_page_that_is_whole_and_asks_for_nothing(name):
    page = report_html(example(name))
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert all(address.startswith("data:image/png;base64,") for address in parser.asked)
    assert not re.search(r"url\((?!#)|@import|<script|<link", page)
    assert "prefers-color-scheme:dark" in page
    assert len(page) < 400_000


def test_the_page_says_what_the_summary_says():
    release = example("spd3")
    page = re.sub(r"\s+", " ", report_html(release))
    for fact in (
        "The private mean of 300 records",
        "at most 69.7 % after seeing this release",
        str(release.expected_error),
        release.clipping_statement,
        release.numerics_statement,
        release.theorem,
        release.sensitivity.theorem,
        "The centre, the radius, n and the budget must have been chosen without looking at the records.",
        "@software{dpmanifolds",
    ):
        assert escape(fact) in page
    reach = reach_of(dpm.confidence_region(release, 0.9))
    assert f"within {reach:.4g} of the released one" in page


def test_a_seeded_release_is_marked_and_others_are_not(no_figure):
    assert "Not for real records" in report_html(example("spd2"))
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    assert "Not for real records" not in report_html(dpm.private_mean(np.zeros((9, 2)), ball, dpm.PureDP(1.0)))


def test_text_of_a_release_from_elsewhere_cannot_become_markup():
    data = json.loads(example("spd2").to_json())
    data["reason"] = data["theorem"] = data["version"] = data["statistic"] = "<script>alert('x')</script>"
    data["guarantee"]["unit"] = "<img src=x onerror=alert(1)>"
    page = report_html(dpm.Release.from_json(json.dumps(data)))
    assert "<script" not in page
    assert "<img" not in page


def test_without_matplotlib_the_page_has_the_numbers(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    release = example("spd2")
    page = report_html(release)
    assert "<svg" not in page
    assert "dpmanifolds[plot]" in page
    assert f"<td>{release.value[0, 0]:.4g}</td>" in page


def test_the_page_is_the_same_every_time():
    assert report_html(example("shapes")) == report_html(example("shapes"))


@pytest.mark.parametrize("name", NAMES)
def test_files_hold_the_release_bit_for_bit_and_no_pickle(name, tmp_path, no_figure):
    release = example(name)
    paths = save_release(release, tmp_path / "out")
    assert load_release(tmp_path / "out") == load_release(paths["json"]) == release
    with np.load(paths["npz"], allow_pickle=False) as arrays:
        if isinstance(release.value, tuple):
            for index, part in enumerate(release.value):
                np.testing.assert_array_equal(arrays[f"value_{index}"], part)
        else:
            np.testing.assert_array_equal(arrays["value"], release.value)
        assert float(arrays["radius"]) == release.domain.radius


def test_an_earlier_release_is_not_lost(tmp_path, no_figure):
    save_release(example("spd2"), tmp_path)
    with pytest.raises(dpm.ArgumentError, match="an earlier release"):
        save_release(example("spd3"), tmp_path)
    assert load_release(tmp_path) == example("spd2")
    save_release(example("spd3"), tmp_path, overwrite=True)
    assert load_release(tmp_path) == example("spd3")


def test_an_earlier_page_is_not_lost(tmp_path, no_figure):
    page = write_report(example("spd2"), tmp_path / "page.html")
    before = page.read_text(encoding="utf-8")
    with pytest.raises(dpm.ArgumentError, match="exists"):
        write_report(example("spd3"), page)
    assert page.read_text(encoding="utf-8") == before


def test_notes_are_shown(no_figure):
    assert "in units of µV²" in report_html(example("spd2"), notes=["The value is in units of µV²."])


@pytest.mark.parametrize("content", ["", "{}", "[1]", "not json"], ids=["empty", "object", "list", "text"])
def test_what_is_no_release_is_refused(content, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(content)
    with pytest.raises(dpm.ArgumentError):
        load_release(path)
    with pytest.raises(dpm.ArgumentError, match=r"release\.json"):
        load_release(tmp_path / "nowhere")
