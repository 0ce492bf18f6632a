"""Soto et al. 2022, Figures 2 and 3: private mean shapes, on real landmarks in place of the unpublished callosa.

>>> from papers import names, reproduce
>>> "soto-2" in names()  # reproduce("soto-2", quick=True) runs it
True

The paper reads the radius of its ball off the records, r = max ρ(x̄, x_i), and so do its point-wise baselines: marked
not private. Honest rows use a public ball (mean and reach of every fifth shape, taken as published before), to which
the other shapes are clipped. ε = 1, draws are exact. Without alignment each shape has a random orientation, as it would
have come from the camera.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifolds.domains import Ball
from dpmanifolds.intrinsic import KNormGradientLaw
from dpmanifolds.privacy import ApproxDP, PureDP
from dpmanifolds.statistics import frechet_mean
from dpmanifolds.sums import calibrate, mean_facts
from papers._checks import Check, inside, near
from papers._shapes import ShapeSet, crossings, point_wise_laplace, shape_sets, smoothed
from papers._study import Claim, Numbers, Result, Setting, claim, not_reproducible
from papers.published import published_sensitivity_of_mean_gradient

__all__ = ["PANELS", "SIZE", "draw", "run"]

PANELS, SIZE = (5, 4), (9.0, 8.2)
_RECORDS = "three of the records"
_LEAKY = "K-norm gradient, r from records\n(not private)"
_HONEST, _PURE = "K-norm gradient,\npublic ball", "ours, pure ε"
_APPROXIMATE = "ours, δ = 1e−6"
_ALIGNED = "point-wise Laplace,\naligned (not private)"
_LOOSE = "point-wise Laplace,\nnot aligned (not private)"
_SMOOTH_LEAKY, _SMOOTH_OURS, _SMOOTH_ALIGNED = (
    f"smoothed: {name}" for name in ("K-norm\n(not private)", "ours,\npure ε", "point-wise\n(not private)")
)
_ROWS = (
    _RECORDS,
    _LEAKY,
    _HONEST,
    _PURE,
    _APPROXIMATE,
    _ALIGNED,
    _LOOSE,
    _SMOOTH_LEAKY,
    _SMOOTH_OURS,
    _SMOOTH_ALIGNED,
)
_DRAWN = (_RECORDS, _HONEST, _PURE, _ALIGNED, _LOOSE)
_EPSILON, _SHOWN, _MORE = 1.0, 3, 10
_RADII = {"MR landmarks": 0.1121, "Cortical outlines": 0.0642, "Fly wings": 0.0711, "Cell outlines": 0.5670}
"""Public radii of the real sets, a function of their records alone."""


def run(setting: Setting) -> Result:
    """Every shape set that is there."""
    numbers, sets = Numbers(), shape_sets(setting)
    tables = [_one_set(setting, numbers, shapes) for shapes in setting.each(sets, "shapes")]
    title = f"Soto et al. 2022, Figure 2: private mean shapes, ε = {_EPSILON:g}, one draw each\n"
    title += "grey: the mean without privacy (landmarks joined by their shortest tree); "
    title += "–: wide balls have no published bound"
    return Result("soto-2", title, numbers, tuple(_claims(setting, sets, tables)), setting.size)


def _one_set(setting: Setting, numbers: Numbers, shapes: ShapeSet) -> dict[str, Any]:
    """Draws of every mechanism; errors, crossings, and how the leaky radius depends on one record."""
    space, rng, count = shapes.space, setting.rng, setting.pick(6, 60, 200)
    spread = frechet_mean(space, shapes.records)
    mean = _upright(spread.point)
    records = space.align(mean, shapes.records)
    distances = space.dist(mean, records)
    n, reach = len(records), float(distances.max())
    ball = Ball.from_sample(space, shapes.public, coverage=0.9 if reach > 0.5 else 1.0, margin=0.25)
    inside = ball.clip(shapes.private)
    private_mean = frechet_mean(space, inside).point
    facts = mean_facts(ball, len(inside))
    turned = records * np.exp(2j * np.pi * rng.random((n, 1)))
    draws: dict[str, Callable[[], np.ndarray]] = {
        _PURE: lambda: _released("direct-laplace", PureDP(_EPSILON), facts, private_mean, count, rng),
        _APPROXIMATE: lambda: _released("direct-gaussian", ApproxDP(_EPSILON, 1e-6), facts, private_mean, count, rng),
        _ALIGNED: lambda: point_wise_laplace(mean, records, _EPSILON, _MORE * count, rng),
        _LOOSE: lambda: point_wise_laplace(mean, turned, _EPSILON, count, rng),
    }
    # in wider balls the published bound ends, and exact K-norm gradient draws of this dimension are out of reach
    if ball.radius < math.pi / 8:
        draws[_HONEST] = lambda: _gradient(space, inside, ball.center, ball.radius, private_mean, facts, count, rng)
    if reach < 0.99 * math.pi / 8:
        leaky = Ball(space, mean, reach * (1 + 1e-9))
        sigma = 2 * published_sensitivity_of_mean_gradient(leaky, n) / _EPSILON
        draws[_LEAKY] = lambda: np.asarray(
            KNormGradientLaw(space, records, mean, leaky.radius, sigma, mean).sample(count, rng)
        )
    made = {name: draw_all() for name, draw_all in draws.items()}
    if shapes.outline:
        for name, source in ((_SMOOTH_LEAKY, _LEAKY), (_SMOOTH_OURS, _PURE), (_SMOOTH_ALIGNED, _ALIGNED)):
            if source in made:
                made[name] = smoothed(space.align(mean, made[source]))
    table: dict[str, Any] = {"spread": float(np.median(distances)), "n": n, "radius": ball.radius, "draws": count}
    for name in _ROWS:
        panel = f"{shapes.name}, {n} {shapes.unit}: {name}"
        points = records[:: max(1, n // _SHOWN)][:_SHOWN] if name == _RECORDS else made.get(name)
        _note(numbers, panel, "mean", [mean])
        if points is None:
            continue
        aligned = space.align(mean, points)
        _note(numbers, panel, "shape", list(aligned[:_SHOWN]))
        if name != _RECORDS:
            table[name] = float(np.mean(space.dist(mean, space.from_landmarks(points))))
            table[f"crossed {name}"] = float(np.mean([crossings(curve) > 0 for curve in points]))
    table["centre"] = float(space.dist(mean, ball.center))
    table["random"] = float(np.mean(space.dist(mean, space.random_point(200, rng=rng))))
    table["without farthest"] = float(np.sort(distances)[-2]) / reach
    return table


def _upright(point: np.ndarray) -> np.ndarray:
    """Rotated so that its long side lies flat."""
    angle = np.angle(np.sum(point**2)) / 2
    return np.asarray(point * np.exp(-1j * angle))


def _gradient(
    space: Any, records: np.ndarray, center: Any, radius: float, mean: Any, facts: Any, count: int, rng: Any
) -> np.ndarray:
    scale = calibrate("k-norm-gradient", facts, PureDP(_EPSILON), "idealized").sigma
    return np.asarray(KNormGradientLaw(space, records, center, radius, scale, mean).sample(count, rng))


def _released(name: str, budget: Any, facts: Any, mean: Any, count: int, rng: Any) -> np.ndarray:
    mechanism = calibrate(name, facts, budget, "rounded")
    return np.stack([mechanism.release(mean, rng=rng) for _ in range(count)])


def _note(numbers: Numbers, panel: str, series: str, curves: list[np.ndarray]) -> None:
    for index, curve in enumerate(curves):
        for point in curve:
            numbers.add(panel, f"{series} {index}", point.real, point.imag)


def _claims(setting: Setting, sets: list[ShapeSet], tables: list[dict[str, Any]]) -> list[Claim]:
    both = [table for table in tables if _LEAKY in table]

    def listed(key: str) -> str:
        return ", ".join(
            f"{table[key]:.3f} ({one.name})" for one, table in zip(sets, tables, strict=True) if key in table
        )

    worse = [table[_ALIGNED] / table[_LEAKY] for table in both]
    outlines = [(one, table) for one, table in zip(sets, tables, strict=True) if one.outline and _LEAKY in table]
    loops = [(table[f"crossed {_SMOOTH_LEAKY}"], table[f"crossed {_SMOOTH_ALIGNED}"]) for _, table in outlines]
    raw = [(table[f"crossed {_LEAKY}"], table[f"crossed {_ALIGNED}"]) for _, table in outlines]
    gains = [table[_PURE] / table[_HONEST] for table in tables if _HONEST in table]
    return [
        not_reproducible(
            "Soto, section 4.3",
            "409 corpus callosa of ADNI",
            "the data are not public; "
            + ", ".join(f"{table['n']} {one.unit} ({one.name})" for one, table in zip(sets, tables, strict=True))
            + " stand in",
        ),
        claim(
            "Soto, section 4.3",
            "sanitising on the shape manifold retains the structure better than point by point",
            f"shape error of point-wise noise {min(worse):.2f} to {max(worse):.2f} times the K-norm gradient's "
            "(both with "
            f"radii from the records); K-norm {listed(_LEAKY)}; point-wise {listed(_ALIGNED)}",
            min(worse) > 1,
            *(_real(setting, sets, inside("smallest ratio", min(worse), 0.79, 1.65))),
            *(_real(setting, sets, inside("largest ratio", max(worse), 2.8, 5.2))),
        ),
        claim(
            "Soto, section 4.3",
            "without rotational alignment the shape is entirely destroyed",
            f"mean shape error {listed(_LOOSE)}; random shapes are {listed('random')} apart, and the spread of the "
            "records is "
            f"{listed('spread')}",
            all(table[_LOOSE] > 3 * table["spread"] and table[_LOOSE] > 0.5 for table in tables),
            *(
                _real(
                    setting,
                    sets,
                    inside("largest error", max(table[_LOOSE] for table in tables), 1.1, math.pi / 2, proven="high"),
                )
            ),
        ),
        claim(
            "Soto, section 4.3",
            "point-wise estimates have contours with crossings",
            "share of draws with a crossing, K-norm and point-wise: "
            + ", ".join(f"{a:.0%} and {b:.0%} ({one.name})" for (a, b), (one, _) in zip(raw, outlines, strict=True)),
            all(_clearly_more(b, a, table["draws"]) for (a, b), (_, table) in zip(raw, outlines, strict=True)),
            *(_real(setting, sets, inside("crossed, K-norm", max(a for a, _ in raw), 0.0, 0.2, proven="low"))),
            *(_real(setting, sets, inside("crossed, point-wise", max(b for _, b in raw), 0.01, 0.3))),
        ),
        claim(
            "Soto, section 4.3, Figure 3",
            "after smoothing, point-wise estimates still have loops that K-norm estimates do not have",
            "share with a crossing after smoothing, K-norm and point-wise: "
            + ", ".join(f"{a:.0%} and {b:.0%} ({one.name})" for (a, b), (one, _) in zip(loops, outlines, strict=True)),
            all(_clearly_more(b, a, table["draws"]) for (a, b), (_, table) in zip(loops, outlines, strict=True)),
        ),
        claim(
            "Soto, B.5.1",
            "r = max ρ(x̄, x_i) may set the noise",
            "without its farthest record the noise would be "
            + ", ".join(
                f"{table['without farthest']:.0%} ({one.name})" for one, table in zip(sets, tables, strict=True)
            )
            + " of what it is: the scale itself tells one record. Public radii used here: "
            + listed("radius"),
            all(table["without farthest"] > 0.999 for table in tables),
            *(
                near(f"radius, {one.name}", table["radius"], _RADII[one.name], slack=6e-4)
                for one, table in zip(sets, tables, strict=True)
                if one.name in _RADII
            ),
        ),
        claim(
            "Soto, section 5",
            "the K-norm gradient is the better mechanism for shapes",
            f"error of ours over the honest K-norm gradient's, same public ball and ε: {min(gains):.2f} to "
            f"{max(gains):.2f}; "
            f"ours {listed(_PURE)} at pure ε, {listed(_APPROXIMATE)} at δ = 1e−6. Ours shrinks towards the public "
            "centre, which "
            f"alone errs by {listed('centre')}: where that is less, the release says nothing",
            min(gains) > 1,
            *(_real(setting, sets, inside("smallest share", min(gains), 0.1, 0.22))),
            *(_real(setting, sets, inside("largest share", max(gains), 0.25, 0.32))),
        ),
    ]


def _real(setting: Setting, sets: list[ShapeSet], check: Check) -> list[Check | None]:
    """The check where all four real sets are there: what it expects depends on them."""
    return [setting.above_smoke(check)] if {one.name for one in sets} >= set(_RADII) else []


def _clearly_more(more: float, less: float, draws: int) -> bool:
    """Whether one share, of ten times as many draws, exceeds another by three standard errors (one event as the "
    "floor)."""
    variance = more * (1 - more) / (_MORE * draws) + max(less * (1 - less), 1 / draws) / draws
    return more - less > 3 * math.sqrt(variance)


def draw(result: Result, axes: Any) -> None:
    """A column for each set, a row for each mechanism: one draw, or three records on top of each other."""
    grid = np.asarray(axes).reshape(PANELS)
    sets = list(dict.fromkeys(panel.split(": ")[0] for panel in result.panels))
    for column, name in enumerate(sets):
        for row, label in enumerate(_DRAWN):
            axis, series = grid[row, column], result.series(f"{name}: {label}")
            _cell(axis, series, label == _RECORDS, closed="outlines" in name or "ovals" in name)
            if row == 0:
                axis.set_title(name.replace(", ", "\n"))
            if column == 0:
                text = label.replace(", ", ",\n").replace(" (", "\n(").replace("\n\n", "\n")
                axis.text(-0.05, 0.5, text, transform=axis.transAxes, ha="right", va="center")
    for axis in grid[:, len(sets) :].ravel():
        axis.remove()


def _cell(axis: Any, series: dict[str, np.ndarray], every: bool, closed: bool) -> None:
    """The mean in grey, and the first draw, or every one, on top."""
    axis.set_axis_off()
    middle = series.pop("mean 0")
    base = middle[:, 0] + 1j * middle[:, 1]
    shown = [points[:, 0] + 1j * points[:, 1] for points in series.values()][: None if every else 1]
    thin = 0.9 if every else 1.4
    for line, code, size in ((base, "#BBBBBB", 3.0), *((curve, "#0072B2", thin) for curve in shown)):
        if closed:
            path = np.append(line, line[0])
            axis.plot(path.real, path.imag, color=code, linewidth=size)
        else:
            for a, b in _links(base):
                axis.plot(line.real[[a, b]], line.imag[[a, b]], color=code, linewidth=size)
            axis.plot(line.real, line.imag, "o", color=code, markersize=1.6 * size)
    if not shown:
        axis.text(0.5, 0.1, "–", transform=axis.transAxes, ha="center", va="center")
    # one square box for all, so that rows and titles are level; what leaves it is cut
    half = 0.75 * max(np.ptp(base.real), np.ptp(base.imag))
    x, y = (base.real.max() + base.real.min()) / 2, (base.imag.max() + base.imag.min()) / 2
    axis.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")


def _links(landmarks: np.ndarray) -> list[tuple[int, int]]:
    """The shortest tree that joins all landmarks of the mean: lines by which the eye knows the shape."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    tree = minimum_spanning_tree(np.abs(landmarks[:, None] - landmarks[None])).tocoo()
    return list(zip(tree.row.tolist(), tree.col.tolist(), strict=True))
