"""The planner page in headless Chromium: `make test-page`. Screenshots go to out/page."""

from __future__ import annotations

import math
import os
import re
import shutil
from pathlib import Path

import pytest

import dpmanifolds as dpm
from dpmanifolds.planning import write_plan_page

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SHOTS = os.environ.get("DPMANIFOLDS_SHOTS")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens the page; every console error and every request but for the file itself fails the test."""
    troubles: list[str] = []
    contexts = []

    def open_page(*, viewport=None, dark=False, **start):
        path = write_plan_page(tmp_path / "plan.html", **start)
        context = browser.new_context(viewport=viewport or DESKTOP, color_scheme="dark" if dark else "light")
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda asked: troubles.append(asked.url) if asked.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def mean_error(page) -> float:
    return float(page.locator("#summary strong").inner_text())


def test_the_first_interaction_comes_within_half_a_second(opened):
    page = opened()
    assert float(page.locator("html").get_attribute("data-ready")) < 500


def test_a_move_of_a_slider_is_answered_within_a_tenth_of_a_second(opened):
    page = opened()
    spent = page.evaluate(
        """() => { const slider = document.querySelector("#n-slider"), times = [];
            for (const value of [2.5, 3.5, 4.5]) {
                const start = performance.now();
                slider.value = value;
                slider.dispatchEvent(new Event("input", { bubbles: true }));
                document.querySelector("#summary").getBoundingClientRect();
                times.push(performance.now() - start);
            }
            return times; }"""
    )
    assert "32,000" in page.locator("#summary").inner_text()
    assert sorted(spent)[1] < 100


def test_on_paper_the_plan_is_stated_and_controls_are_left_out(opened):
    page = opened(manifold="sphere:2", n=200, radius=0.5)
    assert page.locator("#planned").is_hidden()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#planned").inner_text() == "Planned: Sphere(2), a ball of radius 0.5, 200 records, ε = 1."
    assert page.locator("#controls").is_hidden()
    assert page.locator("button:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.querySelector('#summary')).position") == "static"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_error_follows_the_budget_and_agrees_with_the_library(opened):
    page = opened(manifold="sphere:2", n=200, radius=0.5)
    page.fill("#amount", "2")
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    assert mean_error(page) == pytest.approx(dpm.plan(ball, 200, dpm.PureDP(2.0)).best().error.mean, rel=1e-3)


def test_asking_for_an_error_sets_the_budget(opened):
    page = opened(manifold="sphere:2", n=200, radius=0.5)
    page.fill("#error", "0.05")
    assert mean_error(page) == pytest.approx(0.05, rel=1e-3)
    before = float(page.input_value("#amount"))
    page.focus("#error-slider")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    assert mean_error(page) < 0.05
    assert float(page.input_value("#amount")) > before


def test_dragging_on_the_picture_sets_the_budget(opened):
    page = opened()
    box = page.locator("#chart svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 80)
    page.mouse.down()
    low = float(page.input_value("#amount"))
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 80)
    assert float(page.input_value("#amount")) > 4 * low


def test_too_large_a_radius_is_refused_in_words(opened):
    page = opened(manifold="sphere:2", n=200, radius=0.5)
    assert page.locator("#refusal").is_hidden()
    page.fill("#radius", "3.2")
    assert "must be below 3.14159" in page.locator("#refusal").inner_text()
    assert page.locator("#plan").is_hidden()
    assert page.locator("#lines").is_hidden()
    page.fill("#radius", "1.6")
    assert page.locator("#refusal").is_hidden()
    assert "below 1.5708 a mean is certain to be unique" in page.locator("#radius-help").inner_text()


def test_a_metric_is_asked_for_where_there_are_several(opened):
    page = opened()
    for family in page.locator("#family option").evaluate_all("found => found.map((one) => one.value)"):
        page.select_option("#family", family)
        assert page.locator("#metric-field").is_visible() == (family == "spd")
        # every family opens with a radius at which there is something to see
        assert page.locator("#refusal").is_hidden()
        assert page.locator("#chart .curve.taken").count() == 1
        assert "expected error (" in page.locator("#chart svg").text_content()


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_all_words_of_the_picture_lie_within_it(opened, viewport):
    page = opened(viewport=viewport)
    for family in page.locator("#family option").evaluate_all("found => found.map((one) => one.value)"):
        page.select_option("#family", family)
        cut = page.evaluate(
            """() => { const whole = document.querySelector("#chart svg").getBoundingClientRect();
                return [...document.querySelectorAll("#chart svg text")].filter((one) => {
                    const box = one.getBoundingClientRect();
                    return box.left < whole.left || box.right > whole.right
                        || box.top < whole.top || box.bottom > whole.bottom;
                }).map((one) => one.textContent); }"""
        )
        assert cut == [], family


@pytest.mark.parametrize(("manifold", "n", "radius"), [("hyperbolic:2", 500, 14.0), ("spd:28", 60, 8.0)])
def test_the_choice_is_in_the_picture_however_large_its_error(opened, manifold, n, radius):
    page = opened(manifold=manifold, n=n, radius=radius)
    inside = page.evaluate(
        """() => { const mark = document.querySelector("#chart .mark").getBBox(), curve =
            document.querySelector("#chart .curve.taken").getAttribute("points").split(" ")
                .map((p) => p.split(",").map(Number));
            const x = mark.x + mark.width / 2, y = mark.y + mark.height / 2;
            return Math.min(...curve.map((p) => Math.hypot(p[0] - x, p[1] - y))); }"""
    )
    assert inside < 25


def test_noise_beyond_the_ball_is_said_in_the_words_of_the_package(opened):
    page = opened(manifold="spd:28", n=60, radius=8.0)
    assert f"WARNING: {dpm.NoiseExceedsDomainWarning.words}" in page.locator("#summary").inner_text()
    page.fill("#n", "100000000")
    assert "WARNING" not in page.locator("#summary").inner_text()


def test_the_centre_of_the_plan_is_in_the_lines_to_paste(opened):
    ball = dpm.Ball.from_eigenvalues(dpm.SPD(3), 1e-4, 3e-3)
    page = opened(manifold="spd:3", n=500, radius=ball.radius, center=ball.center)
    scale = repr(float(ball.center[0, 0]))
    assert f'--center "{scale}*I" --radius {ball.radius!r}' in page.locator("#command").inner_text()
    assert f"{scale} * np.eye(3)" in page.locator("#python").inner_text()
    page.reload()
    assert scale in page.locator("#command").inner_text()


def test_several_releases_share_the_budget(opened):
    page = opened(budget=dpm.GaussianDP(1.0))
    one = mean_error(page)
    page.fill("#releases", "4")
    errors = page.locator("#share-table tbody tr td:last-child").all_inner_texts()
    assert [float(error) for error in errors] == pytest.approx([one * 2] * 4, rel=1e-3)
    page.fill("#weights-0", "5")
    first = float(page.locator("#share-table tbody tr td:last-child").first.inner_text())
    assert first == pytest.approx(one * math.sqrt(8 / 5), rel=1e-3)


def test_every_family_kind_and_mechanism_can_be_chosen(opened):
    page = opened()
    for name in ("family", "metric", "kind", "mechanism"):
        for value in page.locator(f"#{name} option").evaluate_all("found => found.map((one) => one.value)"):
            if name == "metric":
                page.select_option("#family", "spd")
            page.select_option(f"#{name}", value)
            assert page.locator("#summary").inner_text() or page.locator("#refusal").is_visible()
            assert "NaN" not in page.locator("body").inner_text()
            assert "undefined" not in page.locator("body").inner_text()


def test_nonsense_in_a_field_is_marked_and_changes_nothing(opened):
    page = opened()
    before = page.locator("#summary").inner_text()
    for value in ("", "-3", "0"):
        page.fill("#n", value)
        assert page.get_attribute("#n", "aria-invalid") == "true"
        assert page.locator("#summary").inner_text() == before


def test_every_control_is_reached_by_tab_and_shows_its_focus(opened):
    page = opened(budget=dpm.ApproxDP(1.0, 1e-6))
    page.fill("#releases", "3")
    visible = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, summary, a, pre")]
            .filter((one) => one.offsetParent !== null || one.classList.contains("skip")).length"""
    )
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    reached: set[str] = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        told = page.evaluate(
            """() => { const one = document.activeElement; if (one === document.body) return null;
            const place = [...document.querySelectorAll("*")].indexOf(one);
            return [place, one.tagName, getComputedStyle(one).outlineStyle]; }"""
        )
        if told is None:
            break
        assert told[2] != "none", told
        if told[1] in ("INPUT", "SELECT", "BUTTON", "SUMMARY", "A", "PRE"):
            reached.add(str(told[0]))
    assert len(reached) == visible


def test_changes_are_spoken(opened):
    page = opened()
    page.fill("#n", "12345")
    page.locator("#spoken", has_text="12,345").wait_for(state="attached", timeout=5000)
    assert page.get_attribute("#spoken", "aria-live") == "polite"
    assert "expected error" in page.get_attribute("#chart svg", "aria-label").lower()


def test_a_plan_is_kept_in_the_address(opened):
    page = opened()
    page.select_option("#family", "hyperbolic")
    page.fill("#n", "4321")
    told = page.locator("#summary").inner_text()
    page.reload()
    assert page.locator("#summary").inner_text() == told


def test_nothing_sticks_out_on_a_phone(opened):
    page = opened(viewport=PHONE, budget=dpm.ApproxDP(1.0, 1e-6))
    page.fill("#releases", "3")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    small = page.evaluate(
        """() => [...document.querySelectorAll("input[type=number], select, button")]
            .filter((one) => one.offsetParent !== null && one.getBoundingClientRect().height < 36)
            .map((one) => one.id)"""
    )
    assert small == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(opened, dark):
    """WCAG AA: 4.5 to 1 for text, in both colour schemes."""
    page = opened(dark=dark)
    names = page.evaluate(
        """() => Object.fromEntries(["--ink", "--soft", "--paper", "--box", "--warn", "--warnbox"].map((name) =>
            [name, getComputedStyle(document.documentElement).getPropertyValue(name).trim()]))"""
    )
    pairs = [("--ink", "--paper"), ("--soft", "--paper"), ("--ink", "--box"), ("--warn", "--warnbox")]
    for front, back in pairs:
        assert contrast(names[front], names[back]) >= 4.5, (front, back)


def contrast(a: str, b: str) -> float:
    def luminance(colour: str) -> float:
        digits = re.fullmatch(r"#([0-9a-f]{3}|[0-9a-f]{6})", colour)[1]
        pairs = [d * 2 for d in digits] if len(digits) == 3 else [digits[i : i + 2] for i in (0, 2, 4)]
        parts = [int(pair, 16) / 255 for pair in pairs]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.skipif(SHOTS is None, reason="DPMANIFOLDS_SHOTS names no folder")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", ["phone", "desktop"])
def test_screenshots(opened, width, dark):
    folder = Path(SHOTS)
    folder.mkdir(parents=True, exist_ok=True)
    page = opened(viewport=PHONE if width == "phone" else DESKTOP, dark=dark, budget=dpm.ApproxDP(1.0, 1e-6))
    page.fill("#releases", "3")
    name = folder / f"{width}-{'dark' if dark else 'light'}.png"
    page.screenshot(path=name, full_page=True)
    assert name.stat().st_size > 10_000
    page.fill("#releases", "1")
    page.select_option("#family", "sphere")
    page.fill("#radius", "3.2")
    page.screenshot(path=folder / f"{width}-{'dark' if dark else 'light'}-refused.png")
