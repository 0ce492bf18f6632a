"""What is printed: results on the standard output, everything else on the standard error; tables of facts and plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpmanifolds._points import host
from dpmanifolds.show.words import in_flags

if TYPE_CHECKING:
    from dpmanifolds.ledger import Ledger
    from dpmanifolds.planning import Plan, PlanRow

T = TypeVar("T")
_FLAGS = {name: f"--{name}" for name in ("numerics", "spread", "metric")}


def result() -> Console:
    """For what was asked for."""
    return Console(highlight=False)


def aside() -> Console:
    """For plans, questions and progress."""
    return Console(stderr=True, highlight=False)


def say(console: Console, text: str, style: str = "") -> None:
    """Plain words; brackets in them are no markup."""
    console.print(Text(text, style=style))


def facts(console: Console, rows: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, escape(value))
    console.print(Padding(grid, (0, 0, 0, 2)))


def left_in_words(ledger: Ledger, dataset: str) -> str:
    """What can still be spent, as the filter counts it and, where that is another number, in pure releases."""
    left = dict.fromkeys((ledger.remaining(dataset), ledger.remaining(dataset, pure=True)))
    return ", or in pure releases ".join(budget.in_words() for budget in left if budget is not None) or "nothing"


def plan_table(plan: Plan) -> Table:
    """The rows of a plan in few columns, a mark and bold letters for the choice; it fits 80 characters."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("")
    several = len(plan.budgets) > 1
    if several:
        table.add_column("budget", overflow="fold")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("numerics", no_wrap=True)
    sampled = ["× sampling"] if plan.spread is not None else []
    for heading in ("mean error", "90 % within", "price", *sampled):
        table.add_column(heading, justify="right", no_wrap=True)
    last = None
    for row in plan.rows:
        if row.error is None:
            continue
        budget = row.budget.in_words()
        cells = ["→" if row.chosen else ""]
        if several:
            cells.append(budget if budget != last else "")
        last = budget
        cells += [row.way, row.numerics, f"{row.error.mean:.4g}", f"{row.error.radius_90:.4g}"]
        cells.append(f"× {row.price:.3g}")
        if row.over_sampling is not None:
            cells.append(f"{row.over_sampling:.3g}")
        table.add_row(*map(escape, cells), style="bold" if row.chosen else None)
    return table


def plan_notes(plan: Plan) -> list[str]:
    """What to know about the rows, each thing once."""
    notes: dict[tuple[str, ...], list[str]] = {}
    several = len(plan.budgets) > 1
    for row in plan.rows:
        if row.available and row.note:
            name = f"{row.way} ({row.numerics})"
            # what holds at one budget may not hold at another
            where = [each.budget.in_words() for each in plan.rows if _same_way(each, row) and each.note == row.note]
            at = f" at {'; '.join(where)}" if several and len(where) < len(plan.budgets) else ""
            notes.setdefault((row.note, at), []).append(name)
    listed = [f"{', '.join(dict.fromkeys(names))}{at}: {note}." for (note, at), names in notes.items()]
    told = [
        f"{row.budget.in_words()}: the mean error is {row.error.relate(plan.domain, host(plan.domain.center))}."
        for row in plan.rows
        if row.chosen and row.error is not None
    ]
    return [in_flags(each, _FLAGS) for each in (*told, *listed, *plan.remarks)]


def _same_way(a: PlanRow, b: PlanRow) -> bool:
    return (a.way, a.numerics) == (b.way, b.numerics)


def progress(items: list[T], words: str) -> Iterable[T]:
    """The items, with a bar on terminals where there are several."""
    if len(items) < 2:
        return items
    from rich.progress import track

    return track(items, description=words, console=aside(), transient=True)


@contextmanager
def working(words: str) -> Iterator[None]:
    """A spinner on terminals while something runs."""
    with aside().status(words):
        yield
