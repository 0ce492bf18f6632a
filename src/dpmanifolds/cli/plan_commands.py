"""`dpmanifolds plan | audit`, and `ledger open | show | verify | review | export`: before and beside the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import OTHER, app
from dpmanifolds.cli.options import Budgeting, Place, takes


@app.command(rich_help_panel="Plan and check")
@takes
def plan(
    place: Place,
    n: Annotated[int | None, typer.Option(help="The public number of records.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="ε, as often as you like.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ that goes with every ε.")] = None,
    mu: Annotated[list[float] | None, typer.Option(help="μ of Gaussian DP.")] = None,
    rho: Annotated[list[float] | None, typer.Option(help="ρ of zCDP.")] = None,
    error: Annotated[
        list[float] | None, typer.Option(help="Find the ε that brings the mean error down to this.")
    ] = None,
    releases: Annotated[int, typer.Option(help="Share each budget between this many equal releases.")] = 1,
    numerics: Annotated[str, typer.Option(help="safe, rounded, lattice, idealized, or all.")] = "safe",
    spread: Annotated[
        float | None,
        typer.Option(help="Root mean square distance of records to their mean, if publicly known: how much n matters."),
    ] = None,
    offset: Annotated[
        float | None,
        typer.Option(help="A public guess of how far the mean lies from the centre: when is the centre as good?"),
    ] = None,
    public_sample: Annotated[
        Path | None, typer.Option(help="A file of PUBLIC records like those to be released: what they would gain.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file, too.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it to this file (.png, .svg, .pdf).")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the interactive planner page to this file.")] = None,
) -> None:
    """What the private mean would cost, and how far off it would be. No record is read.

    Without a budget, ε = 0.1, 0.3, 1 and 3 are planned.

    [bold]Examples[/bold]

    dpmanifolds plan --manifold spd:3 --eigenvalues 1e-4 3e-3 --n 500

    dpmanifolds plan --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 200 --error 0.02

    dpmanifolds plan --manifold spd:8 --metric log-euclidean --radius 3 --n 2000 --epsilon 1 --delta 1e-6 --releases 12

    dpmanifolds plan --manifold spd:3 --eigenvalues 1e-4 3e-3 --n 500 --epsilon 1 --spread 0.4 --offset 1

    dpmanifolds plan --html planner.html
    """
    from dpmanifolds._validate import positive_integer
    from dpmanifolds.cli.records import ball_from
    from dpmanifolds.data import read_points
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.manifolds import manifold_from_name
    from dpmanifolds.planning import plan as planned_mean
    from dpmanifolds.planning import split_plan, write_plan_page
    from dpmanifolds.privacy.budget import budget_of
    from dpmanifolds.show.tables import plan_notes, plan_table, result, say, working

    _refuse_existing(csv, plot, html)
    if html is not None and n is None and place.manifold is None:
        typer.echo(str(write_plan_page(html)))
        return
    if n is None:
        raise ArgumentError("--n is needed: the public number of records.")
    if delta is not None and not epsilon:
        raise ArgumentError("--delta goes with --epsilon. Give an --epsilon, or leave --delta out.")
    ball = ball_from(place, manifold_from_name(place.manifold, place.metric))
    sample = None if public_sample is None else read_points(public_sample, manifold=ball.manifold)
    budgets = [budget_of(epsilon=each, delta=delta) for each in epsilon or ()]
    budgets += [budget_of(mu=each) for each in mu or ()] + [budget_of(rho=each) for each in rho or ()]
    positive_integer("--releases", releases)
    with working("Planning"):
        if releases > 1:
            if len(budgets) != 1 or error or sample is not None:
                raise ArgumentError(
                    "--releases shares one budget: give a single --epsilon, --mu or --rho, no --error and no "
                    "--public-sample."
                )
            planned = split_plan(ball, n, budgets[0], releases, numerics=numerics, spread=spread, offset=offset)
        else:
            planned = planned_mean(
                ball,
                n,
                budgets or None,
                errors=error or None,
                numerics=numerics,
                spread=spread,
                offset=offset,
                public_sample=sample,
            )
    console = result()
    each = f", each of {releases} releases" if releases > 1 else ""
    say(console, f"Expected error of the private mean of {n} records in {ball!r}{each}", style="bold")
    say(console, f"Budget: {'; '.join(budget.in_words() for budget in planned.budgets)}")
    console.print()
    console.print(plan_table(planned))
    console.print()
    for remark in plan_notes(planned):
        say(console, remark, style="dim")
    if csv is not None:
        csv.write_text(planned.to_csv(), encoding="utf-8")
    if plot is not None:
        from dpmanifolds.show.plots import plot_error_vs_epsilon

        _save_picture(lambda ax: plot_error_vs_epsilon(planned, ax=ax), plot)
    if html is not None:
        write_plan_page(
            html,
            manifold=place.manifold,
            metric=place.metric,
            n=n,
            radius=ball.radius,
            budget=budgets[0] if budgets else planned.budgets[0] if error else None,
            center=ball.center,
            releases=releases,
            spread=spread,
        )


def _refuse_existing(*paths: Path | None) -> None:
    from dpmanifolds.errors import ArgumentError

    for path in paths:
        if path is not None and path.exists():
            raise ArgumentError(f"{str(path)!r} exists; name another file.")


def _save_picture(draw: Callable[[Any], Any], path: Path) -> None:
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.show.plots._axes import need_matplotlib

    figure = need_matplotlib("matplotlib.figure").Figure(figsize=(6.4, 4.4), layout="constrained")
    draw(figure.add_subplot())
    try:
        figure.savefig(path, dpi=160)
    except ValueError:
        raise ArgumentError(f"--plot must end in .png, .svg or .pdf; got {path.name!r}.") from None


@app.command(rich_help_panel="Plan and check")
@takes
def audit(
    place: Place,
    budgeting: Budgeting,
    n: Annotated[int, typer.Option(help="The public number of records.", show_default=False)],
    mechanism: Annotated[str, typer.Option(help="auto, or one of those that dpmanifolds info lists.")] = "auto",
    numerics: Annotated[str, typer.Option(help="safe, rounded, lattice, or idealized.")] = "safe",
    draws: Annotated[int, typer.Option(help="Releases of each of two neighbours.")] = 20_000,
    noise_factor: Annotated[float, typer.Option(help="0.7 shows that 30 % too little noise is found.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="For a run that can be repeated.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the profile that was measured to this file.")] = None,
) -> None:
    """Attack the mechanism that `mean` would use, on made-up worst-case neighbours, and compare with its promise.

    Exit code 1 where the attack shows more than is promised. Powerful up to about six dimensions.

    [bold]Examples[/bold]

    dpmanifolds audit --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 100 --epsilon 1

    dpmanifolds audit --manifold sphere:2 --center 0,0,1 --radius 0.5 --n 100 --epsilon 1 --noise-factor 0.7
    """
    from dpmanifolds.auditing import audit as attack
    from dpmanifolds.cli.records import ball_from, budget_from
    from dpmanifolds.manifolds import manifold_from_name
    from dpmanifolds.show.tables import result, say, working

    ball = ball_from(place, manifold_from_name(place.manifold, place.metric))
    budget = budget_from(budgeting)
    _refuse_existing(plot)
    with working(f"Drawing {2 * draws} releases"):
        report = attack(mechanism, ball, n, budget, numerics=numerics, draws=draws, noise_factor=noise_factor, rng=seed)
    say(result(), str(report), style="bold red" if report.flagged else "")
    if plot is not None:
        _save_picture(report.plot, plot)
    if report.flagged:
        raise typer.Exit(OTHER)


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


def _print_table(headings: tuple[str, ...], rows: Iterable[Iterable[str]], title: str | None = None) -> None:
    from rich.markup import escape
    from rich.table import Column, Table

    from dpmanifolds.show.tables import result

    style: Any = {} if title is None else {"title": escape(title), "title_justify": "left", "title_style": "bold"}
    table = Table(*(Column(heading, overflow="fold") for heading in headings), box=None, pad_edge=False, **style)
    for row in rows:
        table.add_row(*map(escape, row))
    result().print(table)


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
    from dpmanifolds.show.tables import left_in_words

    ledger, way = _existing(file), attrgetter("filter", "unit")
    accounts = [
        (each.name, _told(each.budget), _told(ledger.spent(each.name)), left_in_words(ledger, each.name), *way(each))
        for each in ledger.datasets()
        if dataset in (None, each.name)
    ]
    _print_table(("data set", "total", "spent", "left", "filter", "one record"), accounts, title=file.name)
    if dataset is None:
        return
    entries = [
        (str(entry.number), entry.when, entry.kind, _what(entry), _charged(entry)) for entry in ledger.entries(dataset)
    ]
    typer.echo()
    _print_table(("entry", "when", "kind", "what", "charged"), entries)


def _what(entry: Any) -> str:
    marked = ", its domain chosen after a look at the records" if entry.parameters.get("domain_after_look") else ""
    return f"{entry.what or ''}{marked}"


def _charged(entry: Any) -> str:
    return "the whole" if entry.takes_whole else "" if entry.charged is None else _told(entry.charged)


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
    from dpmanifolds.show.tables import result, say

    console = result()
    entries = [entry for entry in _existing(file).entries(dataset) if entry.advisories]
    if not entries:
        say(console, f"{file}: no entry was made by a way that is known to be faulty.")
        return
    rows = [
        (
            *(str(entry.number), entry.dataset, entry.what or ""),
            *(str(entry.parameters.get(name, "")) for name in ("mechanism", "numerics")),
            *(entry.version or "0.1", ", ".join(advisory.name for advisory in entry.advisories)),
        )
        for entry in entries
    ]
    _print_table(("entry", "data set", "what", "mechanism", "numerics", "version", "advisories"), rows)
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
