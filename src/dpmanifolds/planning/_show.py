"""A plan as text, rows, CSV, a rich table and a plot."""

from __future__ import annotations

import csv
import importlib
import io
from typing import TYPE_CHECKING, Any

from dpmanifolds.errors import NotAvailableError
from dpmanifolds.privacy import Budget

if TYPE_CHECKING:
    from rich.table import Table

    from dpmanifolds.planning.plan import Plan, PlanRow

__all__ = ["csv_text", "draw", "flat", "remarks", "rich_table", "text"]

_HEADINGS = ("budget", "mechanism", "sensitivity", "scale", "mean", "90 %", "at edge", "price", "note")


def flat(row: PlanRow) -> dict[str, Any]:
    """Plain numbers and strings; None where the mechanism is not available."""
    error = row.error
    return {
        "budget": repr(row.budget),
        "mechanism": row.mechanism,
        "numerics": row.numerics,
        "sensitivity": None if row.sensitivity is None else float(row.sensitivity),
        "scale": row.scale,
        "mean": None if error is None else error.mean,
        "radius_90": None if error is None else error.radius_90,
        "mean_at_edge": None if error is None else error.mean_at_edge,
        "price": row.price,
        "chosen": row.chosen,
        "note": row.note,
    }


def csv_text(rows: list[dict[str, Any]]) -> str:
    """With a header; empty fields for None."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _cells(row: PlanRow) -> tuple[str, ...]:
    error, sensitivity = row.error, row.sensitivity
    assert error is not None
    assert sensitivity is not None
    numbers = (float(sensitivity), row.scale, error.mean, error.radius_90, error.mean_at_edge)
    note = "; ".join(filter(None, ("chosen" if row.chosen else "", row.note)))
    return (
        row.budget.label,
        f"{row.mechanism} ({row.numerics})",
        *(f"{number:.4g}" for number in numbers),
        f"{row.price:.3g}",
        note,
    )


def _title(plan: Plan) -> str:
    return f"Expected error of the private mean of {plan.n} records in {plan.domain!r}"


def remarks(plan: Plan) -> list[str]:
    """What the numbers do not say: curvature, and what is not available, each reason once."""
    found = []
    stretch = max((row.error.mean_at_edge / row.error.mean for row in plan.rows if row.error is not None), default=1.0)
    if stretch > 1.01:
        found.append(
            "Curvature: noise of one size at the centre moves points near the edge of the domain up to "
            f"{stretch:.2g} times as far."
        )
    missing: dict[tuple[str, str], list[str]] = {}
    for row in plan.rows:
        if not row.available:
            reason = row.note.replace(repr(row.budget), type(row.budget).__name__)
            missing.setdefault((f"{row.mechanism} ({row.numerics})", reason), []).append(row.budget.label)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (name, reason), labels in missing.items():
        together.setdefault((reason, tuple(labels)), []).append(name)
    for (reason, labels_there), names in together.items():
        where = "" if len(labels_there) == len(plan.budgets) else f" at {'; '.join(labels_there)}"
        found.append(f"Not planned: {', '.join(names)}{where}: {reason}")
    return found


def text(plan: Plan) -> str:
    """Aligned columns under a title, remarks below."""
    lines = [_HEADINGS, *(_cells(row) for row in plan.rows if row.available)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([_title(plan), *table, *remarks(plan)])


def rich_table(plan: Plan) -> Table:
    """The same for a terminal."""
    from rich.table import Table

    table = Table(title=_title(plan), caption="\n".join(remarks(plan)), caption_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("budget", "mechanism", "note") else "right")
    for row in plan.rows:
        if row.available:
            table.add_row(*_cells(row), style="bold" if row.chosen else None)
    return table


def draw(plan: Plan, ax: Any) -> Any:
    """A line per mechanism; on a logarithmic axis where all budgets are of one kind and differ in one number."""
    if ax is None:
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            raise NotAvailableError(
                "plotting needs matplotlib: pip install 'dpmanifolds[plot]'. Or print the plan, or use to_rows()."
            ) from None
        _, ax = pyplot.subplots()
    places, caption = _places(plan.budgets)
    for name in dict.fromkeys((row.mechanism, row.numerics) for row in plan.rows if row.available):
        rows = [row for row in plan.rows if (row.mechanism, row.numerics) == name and row.error is not None]
        points = sorted((places[row.budget], row.error.mean) for row in rows if row.error is not None)
        ax.plot(*zip(*points, strict=True), "o-", label=f"{name[0]} ({name[1]})")
    ax.set(xlabel=caption, ylabel="expected geodesic error", yscale="log", title=_title(plan))
    if caption == "budget":
        ax.set_xticks(list(places.values()), [budget.label for budget in places])
    else:
        ax.set_xscale("log")
    ax.legend(frameon=False)
    return ax


def _places(budgets: tuple[Budget, ...]) -> tuple[dict[Budget, float], str]:
    """Where budgets stand on the axis, and its name."""
    kinds = {type(budget) for budget in budgets}
    if len(kinds) == 1 and len({tuple(budget.kept.values()) for budget in budgets}) == 1:
        return {budget: budget.amount for budget in budgets}, budgets[0].letter
    return {budget: float(place) for place, budget in enumerate(budgets)}, "budget"
