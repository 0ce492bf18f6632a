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
        release.error_statement,
        release.clipping_statement,
        release.numerics_statement,
        release.theorem,
        release.sensitivity.theorem,
        "The centre, the radius, n and the budget must have been chosen without looking at the records.",
        "@software{dpmanifolds",
    ):
        assert escape(fact) in page


def test_one_page_gives_one_figure_for_ninety_percent(no_figure):
    """Whatever the value was shrunk by: the card and the text say the same."""
    for name in ("spd3", "sphere2", "shapes", "variance", "map"):
        release = example(name)
        page = re.sub(r"<details>.*</details>", "", report_html(release), flags=re.DOTALL)
        assert set(re.findall(r"within ([\d.e-]+) in 90 %", page)) == {f"{release.expected_error.radius_90:.4g}"}
        assert "90 %, " not in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "spd3",
            r"4 % of the radius of the domain, or 1\.\d % in mean diffusivity and 0\.01\d in fractional anisotropy",
        ),
        ("spd5", r"10 % of the radius of the domain, or 3\.\d % in a variance"),
        ("sphere2", r"1\.3 % of the radius of the domain, or 0\.463 degrees"),
        ("shapes", r"8 % of the radius of the domain, or 1\.6 % of the size \(Procrustes distance\)"),
        ("map of directions", r"in one of 3 copies 0\.669 degrees"),
        ("variance", r"[\d.]+ % of the value"),
    ],
)
def test_errors_are_told_in_percent_and_in_the_units_of_those_who_use_them(name, words, no_figure):
    release = example(name)
    for text in (release.summary(), report_html(release)):
        assert re.search(f"The average is .*{words}", text)


def test_what_is_counted_is_what_is_protected(no_figure):
    """60 persons with three records each are 60 persons, on every page."""
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    release = dpm.private_mean(np.zeros((180, 2)), ball, dpm.PureDP(1.0), group_by=np.repeat(np.arange(60), 3))
    for text in (release.summary(), report_html(release)):
        assert "mean of 60 persons" in text
        assert "60 records" not in text


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove-one"])
def test_terms_of_the_trade_are_explained_where_they_stand(adjacency, no_figure):
    more = {} if adjacency == "replace-one" else {"adjacency": adjacency, "n_guess": 300}
    ball = dpm.Ball(dpm.Euclidean(2), np.zeros(2), 1.0)
    release = dpm.private_mean(np.zeros((300, 2)), ball, dpm.PureDP(1.0), **more)
    for text in (release.summary(), report_html(release)):
        assert all(
            said.startswith(": neighbours differ in one record, ")
            for said in re.findall(f"{adjacency}([^&].{{40}})", text)
        )
        assert release.guarantee.neighbours in text
        assert re.search(r"how far one record can move the answer before noise", text)
        assert "theorem B1 (proven in docs/proofs)" in text
        assert not re.search(r"\[P|\bS1w\b", text)


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


@pytest.mark.parametrize(("low", "high", "told"), [(0.1, 10.0, True), (1e-4, 3e-3, False)])
def test_a_mean_at_the_edge_of_the_ball_is_told_as_a_wrong_unit(low, high, told, no_figure):
    """Diffusion tensors in mm²/s, released in the ball of those in µm²/ms: no record is looked at to say so."""
    records = 5e-4 * dpm.Ball(dpm.SPD(3), np.eye(3), 1.0).clip(dpm.SPD(3).random_point(500, rng=0))
    release = dpm.private_mean(records, dpm.Ball.from_eigenvalues(dpm.SPD(3), low, high), dpm.PureDP(1.0), rng=1)
    words = "the released point lies at the edge of the ball"
    assert bool(release.edge_warning) is told
    assert dpm.Release.from_json(release.to_json()).edge_warning == release.edge_warning
    for text in (release.summary(), report_html(release)):
        assert (words in text) is told
    assert ("at the edge of the ball" in repr(release)) is told


def test_percents_are_of_the_ball_that_noise_was_made_for():
    """Records in a tenth of a large ball: the radius was paid for, and the percents say of which radius they are."""
    ball = dpm.Ball(dpm.SPD(3), np.eye(3), 4.0)
    near = dpm.Ball(dpm.SPD(3), np.eye(3), 0.4).clip(dpm.SPD(3).random_point(2000, rng=0))
    release = dpm.private_mean(near, ball, dpm.PureDP(1.0), refine=1, rng=1)
    assert release.domain.radius < ball.radius
    assert f"{100 * release.expected_error.mean / release.domain.radius:.2g} % of the radius that was paid for" in (
        release.error_statement
    )


@pytest.mark.parametrize("name", NAMES)
def test_means_well_inside_of_the_ball_are_not_suspected(name):
    assert not example(name).edge_warning


def test_a_moment_of_curved_records_has_a_page_with_a_figure():
    """Its value is a matrix of coordinates, whatever the records are."""
    ball = dpm.Ball(dpm.SPD(3), np.eye(3), 2.0)
    model = dpm.PrivateTangentPCA(ball, dpm.GaussianDP(1.0), 1).fit(dpm.SPD(3).random_point(60, rng=0))
    for release in model.releases_:
        assert "<svg" in report_html(release)


SPACES = [dpm.Euclidean(1), dpm.Euclidean(2), dpm.Euclidean(3), dpm.SPD(2), dpm.Sphere(2), dpm.PlanarShapes(3)]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_what_is_drawn_with_a_mean_has_its_page(space):
    """A spread, or how many records a cluster has, stands behind the mean in the coordinates."""
    ball, budget = dpm.Ball(space, space.random_point(rng=0), 0.5), dpm.GaussianDP(1.0)
    records = space.random_point(60, rng=1)
    both = dpm.private_mean_and_spread(records, ball, budget, rng=0)
    clusters = dpm.PrivateKMeans(2, ball, budget, random_state=0).fit(records).clusters_.releases
    for release in (both, *clusters):
        assert "<figure" in report_html(release)
        with pytest.raises(dpm.errors.NotAvailableError):
            dpm.confidence_region(release)


@pytest.mark.parametrize("about", ["mean", "origin"])
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_covariance_is_drawn_as_a_matrix(dim, about):
    ball = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), 1.0)
    release = dpm.private_covariance(np.zeros((50, dim)), ball, dpm.GaussianDP(1.0), about=about, rng=0)
    assert "The released matrix" in report_html(release)


def test_two_weights_in_all_of_the_plane_are_drawn():
    ball = dpm.Ball(dpm.SPD(1), np.eye(1), 1.0)
    for seed in range(12):
        records, model = dpm.SPD(1).random_point(2, rng=seed), dpm.PrivateLogisticRegression
        release = model(ball, dpm.PureDP(1.0), classes=[0, 1], random_state=seed).fit(records, [0, 1]).release_
        assert "<figure" in report_html(release)
