"""`dpmanifolds plan | audit`: before and beside the records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmanifolds.cli._app import OTHER, app
from dpmanifolds.cli.options import Budgeting, Place, takes

__all__ = ["audit", "plan"]


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

    dpmanifolds plan --html planner.html
    """
    from dpmanifolds._validate import positive_integer
    from dpmanifolds.cli.records import ball_from
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.manifolds import manifold_from_name
    from dpmanifolds.planning import plan as planned_mean
    from dpmanifolds.planning import split_plan, write_plan_page
    from dpmanifolds.privacy.budget import budget_of
    from dpmanifolds.show.tables import plan_notes, plan_table, result, say, working

    for path in filter(None, (csv, plot, html)):
        if path.exists():
            raise ArgumentError(f"{str(path)!r} exists; name another file.")
    if html is not None and n is None and place.manifold is None:
        typer.echo(str(write_plan_page(html)))
        return
    if n is None:
        raise ArgumentError("--n is needed: the public number of records.")
    if delta is not None and not epsilon:
        raise ArgumentError("--delta goes with --epsilon. Give an --epsilon, or leave --delta out.")
    ball = ball_from(place, manifold_from_name(place.manifold, place.metric))
    budgets = [budget_of(epsilon=each, delta=delta) for each in epsilon or ()]
    budgets += [budget_of(mu=each) for each in mu or ()]
    budgets += [budget_of(rho=each) for each in rho or ()]
    positive_integer("--releases", releases)
    with working("Planning"):
        if releases > 1:
            if len(budgets) != 1 or error:
                raise ArgumentError(
                    "--releases shares one budget: give a single --epsilon, --mu or --rho, and no --error."
                )
            planned = split_plan(ball, n, budgets[0], releases, numerics=numerics)
        else:
            planned = planned_mean(ball, n, budgets or None, errors=error or None, numerics=numerics)
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
        _drawn(planned, plot)
    if html is not None:
        write_plan_page(
            html,
            manifold=place.manifold,
            metric=place.metric,
            n=n,
            radius=ball.radius,
            budget=budgets[0] if budgets else None,
        )


def _drawn(planned: object, path: Path) -> None:
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.show.plots import plot_error_vs_epsilon
    from dpmanifolds.show.plots._axes import need_matplotlib

    figure = need_matplotlib("matplotlib.figure").Figure(figsize=(6.4, 4.4), layout="constrained")
    plot_error_vs_epsilon(planned, ax=figure.add_subplot())  # type: ignore[arg-type]
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
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.manifolds import manifold_from_name
    from dpmanifolds.show.plots._axes import need_matplotlib
    from dpmanifolds.show.tables import result, say, working

    ball = ball_from(place, manifold_from_name(place.manifold, place.metric))
    budget = budget_from(budgeting)
    if plot is not None and plot.exists():
        raise ArgumentError(f"{str(plot)!r} exists; name another file.")
    with working(f"Drawing {2 * draws} releases"):
        report = attack(mechanism, ball, n, budget, numerics=numerics, draws=draws, noise_factor=noise_factor, rng=seed)
    say(result(), str(report), style="bold red" if report.flagged else "")
    if plot is not None:
        figure = need_matplotlib("matplotlib.figure").Figure(figsize=(6.0, 4.4), layout="constrained")
        report.plot(figure.add_subplot())
        figure.savefig(plot, dpi=160)
    if report.flagged:
        raise typer.Exit(OTHER)
