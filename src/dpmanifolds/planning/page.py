"""The planner page: expected error, budget and radius at the move of a slider, before any data is touched.

One self-contained file: it opens from disk, loads nothing and sends nothing.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_integer, positive_number
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import manifold_from_name
from dpmanifolds.manifolds.spd import metric_name
from dpmanifolds.privacy import ApproxDP, Budget, GaussianDP, PureDP, ZeroConcentratedDP

_START = 'id="start">{}</script>'
_FAMILIES = {"spd": 1, "sphere": 1, "hyperbolic": 1, "shapes": 1, "euclidean": 1, "rotations": 1, "grassmann": 2}
_KINDS: dict[type, str] = {PureDP: "pure", ApproxDP: "approx", GaussianDP: "gaussian", ZeroConcentratedDP: "zcdp"}


def plan_page(
    *,
    manifold: str | None = None,
    metric: str | None = None,
    n: int | None = None,
    radius: float | None = None,
    budget: Budget | None = None,
    center: Any = None,
    releases: int = 1,
    spread: float | None = None,
) -> str:
    """The page as HTML, opened at this manifold ("spd:3", "sphere:2", …), number of records, ball and budget.

    The lines that it offers to paste have this centre, to the last bit; the space's own without one.

    >>> from dpmanifolds import ApproxDP
    >>> from dpmanifolds.planning import plan_page
    >>> text = plan_page(manifold="spd:3", n=500, radius=2.0, budget=ApproxDP(1.0, 1e-6))
    >>> text.startswith("<!doctype html>"), "src=" in text
    (True, False)
    """
    start: dict[str, Any] = {}
    if manifold is not None:
        start |= _place(manifold)
    if metric is not None:
        start["metric"] = metric_name(metric)
    if n is not None:
        start["n"] = positive_integer("n", n)
    if radius is not None:
        start["radius"] = positive_number("radius", radius)
    if budget is not None:
        start |= _budget(budget)
    if center is not None:
        start["center"] = _center(manifold, center)
    if positive_integer("releases", releases) > 1:
        start["weights"] = [1] * releases
    if spread is not None:
        start["spread"] = positive_number("spread", spread)
    page = resources.files(__package__).joinpath("planner.html").read_text(encoding="utf-8")
    # "</" would end the script element
    return page.replace(_START, _START.replace("{}", json.dumps(start).replace("</", "<\\/")))


def write_plan_page(path: str | Path, **start: Any) -> Path:
    """`plan_page(**start)` written to `path`, which is returned.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_plan_page(Path(folder) / "plan.html").name
    'plan.html'
    """
    path = Path(path)
    path.write_text(plan_page(**start), encoding="utf-8")
    return path


def _place(text: str) -> dict[str, Any]:
    family, _, sizes = text.strip().lower().partition(":")
    numbers = sizes.split(",")
    known = _FAMILIES.get(family) == len(numbers) and all(number.strip().isdecimal() for number in numbers)
    if not known:
        raise ArgumentError(
            "on the planner page the manifold must be one of spd:3, sphere:2, hyperbolic:2, shapes:12, euclidean:5, "
            f"rotations:3 or grassmann:5,2, with your own sizes; got {text!r}. Plan others without the page."
        )
    return {"family": family, "sizes": {family: [int(number) for number in numbers]}}


def _center(manifold: str | None, center: Any) -> dict[str, Any]:
    """The numbers of a point one after the other (of shapes, landmarks) and the space that they are of."""
    space = manifold_from_name(manifold)
    point = np.asarray(space.as_points(center, "center"))
    numbers = np.stack([point.real, point.imag], axis=-1) if np.iscomplexobj(point) else point
    if point.shape != space.point_shape:
        raise ArgumentError(f"must be one point, of shape {space.point_shape}; got {point.shape}.", argument="center")
    return {"of": str(manifold).strip().lower().replace(" ", ""), "numbers": numbers.ravel().tolist()}


def _budget(budget: Any) -> dict[str, Any]:
    if type(budget) not in _KINDS:
        raise ArgumentError(f"budget must be PureDP, ApproxDP, GaussianDP or ZeroConcentratedDP; got {budget!r}.")
    return {"kind": _KINDS[type(budget)], "amount": budget.amount, **budget.kept}
