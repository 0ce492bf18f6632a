"""`dpmanifolds compare`: whether two files hold records of one law."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli.options import NO_ACCOUNT, USUAL, Accounting, Budgeting, Place, Records, Saving, takes

_TEST = "Test"


@app.command(rich_help_panel="Release")
@takes
def compare(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    level: Annotated[
        float, typer.Option(help="How often the test may find a difference where there is none.", rich_help_panel=_TEST)
    ] = 0.05,
    kernel: Annotated[
        str, typer.Option(help="auto, directions, gaussian, exponential or linear.", rich_help_panel=_TEST)
    ] = "auto",
    bandwidth: Annotated[
        list[float] | None,
        typer.Option(help="PUBLIC, in the metric's units; may be given several times.", rich_help_panel=_TEST),
    ] = None,
    permutations: Annotated[int, typer.Option(help="At least 1/level − 1.", rich_help_panel=_TEST)] = 199,
    pvalue: Annotated[
        bool, typer.Option("--pvalue", help="Tell the p-value too: twice the noise.", rich_help_panel=_TEST)
    ] = False,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """Whether the records of two FILES come from one law: one private bit, at an exact level.

    Which file a record is in is public. Writes decision.json.

    [bold]Examples[/bold]

    dpmanifolds compare patients.csv controls.csv --manifold spd:3 --layout upper --eigenvalues 0.1 10 --epsilon 1

    dpmanifolds compare female.tps male.tps --center template.csv --radius 0.2 --epsilon 1 --level 0.01
    """
    from dpmanifolds.cli.records import names_of_persons
    from dpmanifolds.cli.spend import confirm, prepare, print_if_unwritten
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.releases import private_two_sample_test
    from dpmanifolds.releases.decision import check_settings
    from dpmanifolds.show.tables import facts, result, say, working

    if len(records.files) != 2:
        raise ArgumentError(f"compare takes two files, one for each group; got {len(records.files)}.")
    if records.files[0].resolve() == records.files[1].resolve():
        raise ArgumentError("compare takes two files: in one that is given twice each record would move both groups.")
    if records.group_by == "files":
        raise ArgumentError("each file is a group, so --group-by files would leave one person in each.")
    check_settings(level, permutations, pvalue)
    target = _new_file(saving)
    unit = accounting.unit or ("record" if records.group_by is None else "person")
    job = prepare(records, place, budgeting, replace(accounting, unit=unit), saving)
    if job.loaded.volume is not None:
        raise ArgumentError("compare takes files of several records each; a tensor map is one record.")
    first = job.loaded.sizes[0]
    # by their names, as one person may be spelled otherwise in the other file
    names = names_of_persons(records, job.loaded)
    groups = None if names is None else (names[:first], names[first:])
    remark = "which file a record is in is public; what is told is one bit" + (", and its p-value" if pvalue else "")
    with confirm(job, "comparison of two groups", remarks=[remark]), working("Comparing"):
        decision = private_two_sample_test(
            job.loaded.points[:first],
            job.loaded.points[first:],
            job.ball,
            job.budget,
            level=level,
            kernel=kernel,
            bandwidth=bandwidth or None,
            permutations=permutations,
            pvalue=pvalue,
            group_by=groups,
            on_invalid=job.on_invalid,
            **job.terms,
        )
        with print_if_unwritten("decision", decision):
            target.write_text(decision.to_json(indent=1), encoding="utf-8")
    if saving.quiet:
        typer.echo(str(target))
        return
    console = result()
    say(console, f"{decision.answer} at level {level:g}", style="bold green")
    rows = [("groups", " and ".join(map(str, decision.sizes))), ("spent", decision.spent.in_words())]
    if decision.pvalue is not None:
        rows.append(("p-value", f"{decision.pvalue:.4g}"))
    facts(console, [*rows, ("kernel", decision.kernel), ("written", str(target))])


def _new_file(saving: Saving) -> Path:
    from dpmanifolds.errors import ArgumentError

    target = saving.out / "decision.json"
    if target.exists() and not saving.overwrite:
        raise ArgumentError(f"{str(target)!r} exists. Name another folder, or pass --overwrite.")
    return target
