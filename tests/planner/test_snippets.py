"""The lines that the page offers to paste run as they are."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import dpmanifolds as dpm
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


def state(place: str, budget: str = PURE, wanted: str = "auto", weights: str = "[1]", way: int = 0) -> str:
    idealized = "true" if "idealized" in wanted else "false"
    return (
        f"{{where: {in_js(place)}, radius: 0.5, n: 40, budget: {budget}, wanted: '{wanted}', weights: {weights}, "
        f"way: {way}, idealized: {idealized}}}"
    )


CASES = {
    **{place: state(place) for place in PLACES},
    "split": state("sphere:2", APPROX, weights="[2, 1]", way=1),
    "named": state("sphere:2", APPROX, "wrapped-gaussian (rounded)"),
    "idealized": state("sphere:2", PURE, "riemannian-laplace (idealized)"),
    "zcdp": state("sphere:2", "{kind: 'zcdp', rho: 0.1}"),
    "gaussian": state("sphere:2", "{kind: 'gaussian', mu: 0.00002}"),
}


@pytest.fixture(scope="module")
def lines() -> dict[str, tuple[str, str]]:
    answers = ask(*(f"[snippets.python({case}), snippets.command({case})]" for case in CASES.values()))
    return dict(zip(CASES, map(tuple, answers), strict=True))


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


@pytest.mark.parametrize("case", ["sphere:2", "spd:2:log-euclidean", "shapes:5", "grassmann:4,2", "split", "named"])
def test_command_lines_run(case, lines, tmp_path, monkeypatch):
    cli = pytest.importorskip("dpmanifolds.cli")
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    turn = 2 * np.pi * np.arange(5) / 5
    np.savetxt(
        "template.csv", np.stack([np.cos(turn), np.sin(turn)], axis=-1), delimiter=",", header="x,y", comments=""
    )
    np.save("center.npy", np.eye(4, 2))
    family, sizes, *_ = (case if ":" in case else "sphere:2").split(":")
    space = {
        "euclidean": dpm.Euclidean, "sphere": dpm.Sphere, "hyperbolic": dpm.Hyperbolic, "spd": dpm.SPD,
        "shapes": dpm.PlanarShapes, "rotations": dpm.SpecialOrthogonal, "grassmann": dpm.Grassmann,
    }[family](*map(int, sizes.split(",")))  # fmt: skip
    records = space.random_point(40, rng=0)
    np.save("records.npy", np.stack([records.real, records.imag], axis=-1) if family == "shapes" else records)
    for line in lines[case][1].splitlines():
        program, command, *arguments = shlex.split(line)
        assert program == "dpmanifolds"
        extra = ["--yes", "--quiet"] if command == "mean" else []
        done = CliRunner().invoke(cli.app, [command, *arguments, *extra])
        assert done.exit_code == 0, (line, done.output, done.exception)
