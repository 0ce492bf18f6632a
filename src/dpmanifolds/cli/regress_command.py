"""`dpmanifolds regress`: how records of files change with covariates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli.options import NO_ACCOUNT, USUAL, Accounting, Budgeting, Place, Records, Saving, takes

_PANEL = "Covariates"


@app.command(rich_help_panel="Release")
@takes
def regress(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    covariates: Annotated[
        str,
        typer.Option(
            help="A file with one row of numbers for each record, or columns of the table: age,dose (then --columns "
            "names those of the records). They are protected with the records.",
            metavar="FILE|COLUMNS",
            rich_help_panel=_PANEL,
        ),
    ],
    covariate_bounds: Annotated[
        str,
        typer.Option(
            help="PUBLIC bounds of each covariate, from knowledge: 20:80 or 20:80,0:5. Covariates beyond are clipped.",
            metavar="LOW:HIGH,...",
            rich_help_panel=_PANEL,
        ),
    ],
    steps: Annotated[
        str, typer.Option(help="Looks at the records: 1, 2, or auto (by public facts).", rich_help_panel=_PANEL)
    ] = "auto",
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """Private geodesic regression: how the records in FILES change with covariates, such as age.

    Writes regression.json, regression.html with a picture of the change and, for the point in the middle of the bounds,
    release.json, release.npz and report.html.

    [bold]Examples[/bold]

    dpmanifolds regress wings.tps --center template.csv --radius 0.2 --covariates age.csv --covariate-bounds 0:30 --mu 1

    dpmanifolds regress visits.csv --columns x,y --covariates age --covariate-bounds 20:80 --manifold euclidean:2
    --radius 5 --epsilon 1
    """
    from dpmanifolds.cli.spend import confirm, finish, prepare, print_if_unwritten
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.releases import private_geodesic_regression
    from dpmanifolds.show.regression import describe_regression, regression_html
    from dpmanifolds.show.tables import facts, result, say, working

    bounds = _bounds(covariate_bounds)
    job = prepare(records, place, budgeting, accounting, saving)
    table = _covariates(covariates, records, len(bounds))
    target, page = saving.out / "regression.json", saving.out / "regression.html"
    for path in (target, page):
        if path.exists() and not saving.overwrite:
            raise ArgumentError(f"{str(path)!r} exists. Name another folder, or pass --overwrite.")
    names = [f"covariate {number + 1}" for number in range(len(bounds))]
    if not Path(covariates).is_file():
        names = covariates.split(",")
    remarks = [f"{name} from {low:g} to {high:g}" for name, (low, high) in zip(names, bounds, strict=True)]
    with confirm(job, "geodesic regression", remarks=remarks), working("Fitting the geodesic"):
        fit = private_geodesic_regression(
            job.loaded.points,
            table,
            job.ball,
            job.budget,
            covariate_bounds=bounds,
            steps=int(steps) if steps.isdecimal() else steps,
            group_by=job.groups,
            on_invalid=job.on_invalid,
            **job.terms,
        )
    with print_if_unwritten("regression", fit):
        target.write_text(fit.to_json(indent=1), encoding="utf-8")
    rows = describe_regression(fit, names)
    finish(job, _base(fit), remarks=[": ".join(row) for row in rows])
    with print_if_unwritten("page", fit):
        page.write_text(regression_html(fit, names), encoding="utf-8")
    if not saving.quiet:
        console = result()
        say(console, "How it changes", style="bold green")
        facts(console, [*rows, ("written", str(target)), ("written", str(page))])


def _bounds(text: str) -> list[tuple[float, float]]:
    """20:80,0:5 as pairs."""
    from dpmanifolds.errors import ArgumentError

    try:
        pairs = [tuple(float(end) for end in pair.split(":")) for pair in text.split(",")]
    except ValueError:
        pairs = []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"--covariate-bounds must be LOW:HIGH, or one such pair for each covariate, as in 20:80,0:5; got {text!r}."
        )
    return [(low, high) for low, high in pairs]


def _covariates(text: str, records: Records, count: int) -> Any:
    """One row for each record, from a file or from columns of the records' own tables; what is no number is NaN."""
    import numpy as np

    from dpmanifolds._validate import record_numbers
    from dpmanifolds.data import read_labels, read_points
    from dpmanifolds.errors import ArgumentError

    if Path(text).is_file():
        table = np.asarray(read_points(Path(text)))
        return table.reshape(len(table), -1) if table.ndim != 2 else table
    if records.columns is None:
        raise ArgumentError(
            f"--covariates must be a file, or columns of the table, with --columns for the records' own; got {text!r}."
        )
    found = [
        np.concatenate([read_labels(path, name, header=records.header) for path in records.files])
        for name in text.split(",")
    ]
    rows = [[_number(entry) for entry in row] for row in np.stack(found, axis=1).tolist()]
    return np.asarray(record_numbers("covariates", rows, (count,)))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _base(fit: Any) -> Any:
    """The point of the fit in the middle of all bounds as a release, with the promise of the whole."""
    from dataclasses import replace

    return replace(
        fit.releases[-1],
        statistic="regression base",
        value=fit.base,
        coordinates=None,
        domain=fit.domain,
        guarantee=fit.guarantee,
        budget=fit.budget,
        expected_error=None,
        step=None,
        stages=fit.releases[:-1],
    )
