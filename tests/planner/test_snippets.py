"""The lines that the page offers to paste run as they are."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.manifolds import manifold_from_name
from dpmanifolds.planning import plan_page
from tests.command_line import type_line
from tests.planner.node import NODE, ask
from tests.planner.test_formulas import in_js

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

PURE, APPROX = "{kind: 'pure', epsilon: 1.25}", "{kind: 'approx', epsilon: 1, delta: 1e-6}"
PLACES = [
    "euclidean:3",
    "sphere:2",
    "hyperbolic:2",
    "spd:2",
    "spd:2:log-euclidean",
    "shapes:5",
    "rotations:3",
    "grassmann:4,2",
]


def state(
    place: str, budget: str = PURE, wanted: str = "auto", weights: str = "[1]", way: int = 0, center: str = "null"
) -> str:
    idealized = "true" if "idealized" in wanted else "false"
    return (
        f"{{where: {in_js(place)}, radius: 0.5, n: 40, budget: {budget}, wanted: '{wanted}', weights: {weights}, "
        f"way: {way}, idealized: {idealized}, center: {center}}}"
    )


GIVEN = "{of: 'spd:2', numbers: [0.0005477225575051661, 0, 0, 0.0005477225575051661]}"
TILTED = "{of: 'sphere:2', numbers: [0.6, 0, 0.8]}"

CASES = {
    **{place: state(place) for place in PLACES},
    "split": state("sphere:2", APPROX, weights="[2, 1]", way=1)[:-1]
    + f", part: planner.money.split({APPROX}, [2 / 3, 1 / 3])[1][0]}}",
    "named": state("sphere:2", APPROX, "wrapped-gaussian (rounded)"),
    "idealized": state("sphere:2", PURE, "riemannian-laplace (idealized)"),
    "zcdp": state("sphere:2", "{kind: 'zcdp', rho: 0.1}"),
    "gaussian": state("sphere:2", "{kind: 'gaussian', mu: 0.00002}"),
    "multiple": state("spd:2", center=GIVEN),
    "tilted": state("sphere:2", center=TILTED),
    "of another space": state("spd:3", center=GIVEN),
}
SPACE_OF = {"multiple": "spd:2", "of another space": "spd:3"}


@pytest.fixture(scope="module")
def lines() -> dict[str, tuple[str, str]]:
    answers = ask(*(f"[snippets.python({case}), snippets.command({case})]" for case in CASES.values()))
    return dict(zip(CASES, map(tuple, answers), strict=True))


@pytest.mark.grid(at_most=6)
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_python_lines_run(case, lines, capsys):
    text = lines[case][0]
    *first, last = text.splitlines()
    names: dict = {}
    exec("\n".join(first), names)
    ball = names["ball"]
    names["records"] = ball.clip(ball.manifold.random_point(40, rng=0))
    exec(last, names)
    assert isinstance(names["release"], dpm.Release)
    assert "Expected error" in capsys.readouterr().out


def space_of(case: str) -> dpm.Manifold:
    family, sizes, *metric = (case if ":" in case else SPACE_OF.get(case, "sphere:2")).split(":")
    return manifold_from_name(f"{family}:{sizes}", *metric)


@pytest.mark.grid(at_most=8)
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.filterwarnings("ignore:the noise is larger than the ball")
def test_command_lines_run_as_printed_and_say_what_the_python_lines_say(case, lines, tmp_path, monkeypatch, capsys):
    """The same ball (centre and radius, bit for bit), budget and mechanism, and no file but the records."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("\n".join(lines[case][0].splitlines()[:-1]), names)
    records = names["ball"].clip(space_of(case).random_point(40, rng=0))
    np.save("records.npy", np.stack([records.real, records.imag], axis=-1) if "shapes" in case else records)
    for line in lines[case][1].splitlines():
        program, command, *arguments = shlex.split(line)
        assert program == "dpmanifolds"
        extra = ["--yes", "--quiet"] if command == "mean" else []
        done = type_line([command, *arguments, *extra])
        assert done.exit_code == 0, (line, done.output, done.exception)
    released = dpm.Release.from_json((tmp_path / "release" / "release.json").read_text())
    first = released.stages[0] if released.stages else released
    assert np.array_equal(first.domain.center, names["ball"].center)
    assert first.domain.radius == names["ball"].radius
    asked = names.get("parts", [names["budget"]])[0]
    assert type(released.budget) is type(asked)
    assert released.budget.amount == pytest.approx(asked.amount, rel=1e-9)


def test_the_page_opens_with_the_ball_of_the_command_that_made_it(tmp_path):
    """`plan --eigenvalues … --html` : what the page prints is the ball around √(low·high)·I, not around I."""
    ball = dpm.Ball.from_eigenvalues(dpm.SPD(3), 1e-4, 3e-3)
    page = plan_page(manifold="spd:3", n=500, radius=ball.radius, center=ball.center)
    start = json.loads(re.search(r'id="start">(.*?)</script>', page)[1])
    told = f"{{where: {in_js('spd:3')}, n: 500, radius: {start['radius']!r}, budget: {PURE}, wanted: 'auto', "
    (line,) = ask(f"snippets.command({told} weights: [1], way: 0, center: {json.dumps(start['center'])}}})")
    place = dict(zip(*[iter(shlex.split(line.splitlines()[0])[2:])] * 2, strict=True))
    from dpmanifolds.cli.options import Place
    from dpmanifolds.cli.records import ball_from

    found = ball_from(Place(center=place["--center"], radius=float(place["--radius"])), ball.manifold)
    assert np.array_equal(found.center, ball.center)
    assert found.radius == ball.radius
