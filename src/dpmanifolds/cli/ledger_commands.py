"""`dpmanifolds ledger open | show | verify | review | export`: the account that never overspends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli.options import Budgeting, takes

__all__ = ["export", "open_dataset", "review", "show", "verify"]

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "An account per data set: every release is entered before its noise is drawn, and what does not fit is "
        "refused.\n\n[bold]Example[/bold]\n\n"
        "  dpmanifolds ledger open privacy.ledger --dataset clinic --epsilon 2 --delta 1e-6\n\n"
        "  dpmanifolds mean … --epsilon 0.5 --ledger privacy.ledger --dataset clinic\n\n"
        "  dpmanifolds ledger show privacy.ledger"
    ),
)
app.add_typer(commands, name="ledger", rich_help_panel="Plan and check")

_File = Annotated[Path, typer.Argument(help="The file of the ledger.", show_default=False)]


def _existing(file: Path) -> Any:
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.ledger import Ledger

    if not file.is_file():
        raise ArgumentError(
            f"there is no ledger {str(file)!r}. Make one: dpmanifolds ledger open {file} --dataset NAME --epsilon 1"
        )
    return Ledger(file)


def _told(budget: Any) -> str:
    return "nothing" if budget is None else budget.in_words()


@commands.command("open")
@takes
def open_dataset(
    file: _File,
    dataset: Annotated[str, typer.Option(help="The name of the account.", show_default=False)],
    budgeting: Budgeting,
    unit: Annotated[str, typer.Option(help="What neighbours differ in: record, person, …")] = "record",
    filter: Annotated[
        str, typer.Option(help="How releases add up under (ε, δ): auto, renyi, zcdp, gaussian, basic or pure.")
    ] = "auto",
) -> None:
    """Give a data set its total budget, once. The file is made if there is none."""
    from dpmanifolds.cli.records import budget_from
    from dpmanifolds.ledger import Ledger
    from dpmanifolds.show.tables import result, say

    opened = Ledger(file).open_dataset(dataset, budget_from(budgeting), filter=filter, unit=unit)
    total = opened.budget.in_words()
    say(result(), f"{file}: data set {dataset} may spend {total} in all, neighbours differ in one {unit}.")


@commands.command()
def show(
    file: _File,
    dataset: Annotated[str | None, typer.Option(help="Only this account, with its entries.")] = None,
) -> None:
    """What each data set has spent and has left; with --dataset also every entry."""
    from rich.markup import escape
    from rich.table import Table

    from dpmanifolds.show.tables import left_in_words, result

    ledger = _existing(file)
    table = Table(title=escape(file.name), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("data set", "total", "spent", "left", "filter", "one record"):
        table.add_column(heading, overflow="fold")
    for each in ledger.datasets():
        if dataset in (None, each.name):
            cells = (each.name, _told(each.budget), _told(ledger.spent(each.name)), left_in_words(ledger, each.name))
            table.add_row(*map(escape, (*cells, each.filter, each.unit)))
    console = result()
    console.print(table)
    if dataset is None:
        return
    log = Table(box=None, pad_edge=False)
    for heading in ("entry", "when", "kind", "what", "charged"):
        log.add_column(heading, overflow="fold")
    for entry in ledger.entries(dataset):
        charged = "the whole" if entry.takes_whole else "" if entry.charged is None else _told(entry.charged)
        log.add_row(*map(escape, (str(entry.number), entry.when, entry.kind, entry.what or "", charged)))
    console.print()
    console.print(log)


@commands.command()
def verify(file: _File) -> None:
    """Check the pages, the chain of hashes and the sums of the file; exit code 1 where something is wrong."""
    from dpmanifolds.show.tables import result, say

    count = _existing(file).verify()
    say(result(), f"{file}: {count} entries, intact.")


@commands.command()
def review(
    file: _File,
    dataset: Annotated[str | None, typer.Option(help="Only this account.")] = None,
) -> None:
    """Which entries were made by ways that are known to be faulty, and what to do about them."""
    from rich.markup import escape
    from rich.table import Table

    from dpmanifolds.show.tables import result, say

    console = result()
    entries = [entry for entry in _existing(file).entries(dataset) if entry.advisories]
    if not entries:
        say(console, f"{file}: no entry was made by a way that is known to be faulty.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("entry", "data set", "what", "mechanism", "numerics", "version", "advisories"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        ways = [str(entry.parameters.get(name, "")) for name in ("mechanism", "numerics")]
        names = ", ".join(advisory.name for advisory in entry.advisories)
        cells = (str(entry.number), entry.dataset, entry.what or "", *ways, entry.version or "0.1", names)
        table.add_row(*map(escape, cells))
    console.print(table)
    for advisory in dict.fromkeys(advisory for entry in entries for advisory in entry.advisories):
        console.print()
        say(console, str(advisory))
    console.print()
    say(console, "What was charged stays charged. See Advisories in docs/security.md.")


@commands.command()
def export(
    file: _File,
    format: Annotated[str, typer.Option(help="json or csv.")] = "json",
    out: Annotated[Path | None, typer.Option(help="A new file; without it, the standard output.")] = None,
) -> None:
    """The whole log as text."""
    from dpmanifolds.errors import ArgumentError

    text = _existing(file).export(format)
    if out is None:
        typer.echo(text)
        return
    try:
        with out.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ArgumentError(f"{str(out)!r} exists; name another file.") from None
