"""`dpmanifolds mean | median | variance`: private statistics of the records in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli._options import NO_ACCOUNT, USUAL, Accounting, Budgeting, Place, Records, Saving, takes

__all__ = ["mean", "median", "variance"]

_MECHANISM = "Mechanism"


@app.command(rich_help_panel="Release")
@takes
def mean(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    mechanism: Annotated[
        str,
        typer.Option(
            help="auto (the smallest expected error), or one of those that dpmanifolds info lists.",
            rich_help_panel=_MECHANISM,
        ),
    ] = "auto",
    numerics: Annotated[
        str,
        typer.Option(
            help="safe (the promise holds for the bits that are shown), rounded, lattice, or idealized.",
            rich_help_panel=_MECHANISM,
        ),
    ] = "safe",
    refine: Annotated[
        int,
        typer.Option(
            help="Rounds that spend part of the budget on finding a smaller ball first.", rich_help_panel=_MECHANISM
        ),
    ] = 0,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """The private Fréchet mean of the records in FILES.

    Shows a plan, asks, then draws once and writes release.json, release.npz and report.html.

    Tensor maps of several persons also give mean.nii.gz, in the space and unit of the files.

    [bold]Examples[/bold]

    dpmanifolds mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-4 3e-3 --epsilon 1 --out result

    dpmanifolds mean wings.tps --center template.csv --radius 0.2 --epsilon 1

    dpmanifolds mean sub-*.nii.gz --layout upper --mask atlas.nii.gz --eigenvalues 1e-4 3e-3 --epsilon 1 --delta 1e-6

    dpmanifolds mean eeg.npz --key cov --manifold spd:8 --unit-scale 1e12 --center "50*I" --radius 3 --mu 0.5 --yes

    dpmanifolds mean visits.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --group-by person.txt --epsilon 1

    dpmanifolds mean sub-*-epo.fif --picks C3,Cz,C4 --unit-scale 1e12 --eigenvalues 5 2000 --group-by files --epsilon 1
    """
    from dpmanifolds._validate import choice
    from dpmanifolds.cli._show import working
    from dpmanifolds.cli._spend import confirm, finish, prepare
    from dpmanifolds.planning import plan
    from dpmanifolds.releases import private_mean
    from dpmanifolds.sums import MECHANISMS, NUMERICS, choose, mean_facts

    choice("--mechanism", mechanism, ("auto", *MECHANISMS))
    choice("--numerics", numerics, NUMERICS)
    job = prepare(records, place, budgeting, accounting, saving)
    with working("Planning"):
        # says why, where nothing keeps the budget
        choose(mean_facts(job.ball, job.n), job.budget, mechanism=mechanism, numerics=numerics)
        planned = plan(
            job.ball,
            job.n,
            job.budget,
            mechanisms="all" if mechanism == "auto" else mechanism,
            numerics=numerics,
        )
    remarks = [f"the plan is for one release; {refine} rounds of refinement come before it"] if refine else []
    with confirm(job, "mean", plan=planned, remarks=remarks), working("Computing the mean"):
        release = private_mean(
            job.loaded.points,
            job.ball,
            job.budget,
            mechanism=mechanism,
            numerics=numerics,
            refine=refine,
            group_by=job.groups,
            on_invalid=records.on_invalid,
            **job.terms,
        )
    finish(job, release)


@app.command(rich_help_panel="Release")
@takes
def median(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    steps: Annotated[
        int | None, typer.Option(help="Steps of descent (default: from n, the ball and the budget).")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="A file for the state, with --ledger: after a crash the same command goes on, uncharged."),
    ] = None,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """The private Fréchet median: outliers pull no harder than others, and a large ball costs little.

    [bold]Example[/bold]

    dpmanifolds median tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --epsilon 1 --delta 1e-6
    """
    from dpmanifolds.cli._show import working
    from dpmanifolds.cli._spend import confirm, finish, prepare
    from dpmanifolds.descent.step_sizes import median_schedule
    from dpmanifolds.releases import private_median

    job = prepare(records, place, budgeting, accounting, saving)
    count, _ = median_schedule(job.ball, job.n, job.budget, steps)
    with (
        confirm(job, "median", remarks=[f"{count} steps of descent; how close they come depends on the records"]),
        working(f"Descending, {count} steps"),
    ):
        release = private_median(
            job.loaded.points,
            job.ball,
            job.budget,
            steps=steps,
            group_by=job.groups,
            on_invalid=records.on_invalid,
            state=state,
            **job.terms,
        )
    finish(job, release)


@app.command(rich_help_panel="Release")
@takes
def variance(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """The private Fréchet variance, the mean squared distance to the mean: one number.

    [bold]Example[/bold]

    dpmanifolds variance directions.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --epsilon 0.5
    """
    from dpmanifolds.cli._show import working
    from dpmanifolds.cli._spend import confirm, finish, prepare
    from dpmanifolds.releases import private_variance

    job = prepare(records, place, budgeting, accounting, saving)
    with (
        confirm(job, "variance", remarks=[f"a number from 0 to {job.ball.radius**2:.4g}, the square of the radius"]),
        working("Computing the variance"),
    ):
        release = private_variance(
            job.loaded.points,
            job.ball,
            job.budget,
            group_by=job.groups,
            on_invalid=records.on_invalid,
            **job.terms,
        )
    finish(job, release)
