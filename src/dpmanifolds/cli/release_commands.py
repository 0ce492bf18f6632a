"""`dpmanifolds mean | median | variance | pca | descend`: private statistics of the records in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli.options import NO_ACCOUNT, USUAL, Accounting, Budgeting, Place, Records, Saving, takes

_MECHANISM = "Mechanism"
_State = Annotated[
    Path | None,
    typer.Option(help="A file for the state, with --ledger: after a crash the same command goes on, uncharged."),
]


def _release(
    job: Any, what: str, released: Callable[..., Any], words: str, *, plan: Any = None, remark: str = "", **options: Any
) -> None:
    """Ask, draw once, and write what was released."""
    from dpmanifolds.cli.spend import confirm, finish
    from dpmanifolds.show.tables import working

    with confirm(job, what, plan=plan, remarks=[remark] if remark else []), working(words):
        release = released(
            job.loaded.points,
            job.ball,
            job.budget,
            group_by=job.groups,
            on_invalid=job.on_invalid,
            **job.terms,
            **options,
        )
    finish(job, release)


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
    kind: Annotated[
        str,
        typer.Option(
            help="frechet, or extrinsic: the point nearest to the mean in the flat space around (sphere, grassmann, "
            "rotations, shapes).",
            rich_help_panel=_MECHANISM,
        ),
    ] = "frechet",
    refine: Annotated[
        str,
        typer.Option(
            help="Rounds that spend part of the budget on finding a smaller ball first: auto (one, where there are "
            "enough records for it to cost little), 0, 1, …; or axes, which pays for the shape of an ellipsoid too.",
            rich_help_panel=_MECHANISM,
        ),
    ] = "auto",
    public_sample: Annotated[
        Path | None,
        typer.Option(
            help="A file of PUBLIC records like those in FILES (an atlas, people who consented): noise takes their "
            "shape, and the answer starts from their mean, where that is expected to be better.",
            rich_help_panel=_MECHANISM,
        ),
    ] = None,
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

    dpmanifolds mean patients.npy --manifold sphere:2 --center 0,0,1 --radius 1 --public-sample atlas.npy --epsilon 1

    dpmanifolds mean sub-*-epo.fif --picks C3,Cz,C4 --unit-scale 1e12 --eigenvalues 5 2000 --group-by files --epsilon 1
    """
    from dpmanifolds._validate import choice
    from dpmanifolds.cli.records import sample_from
    from dpmanifolds.cli.spend import prepare
    from dpmanifolds.planning import plan
    from dpmanifolds.releases import private_mean
    from dpmanifolds.show.tables import working
    from dpmanifolds.sums import MECHANISMS, NUMERICS, choose, mean_facts

    choice("--mechanism", mechanism, ("auto", *MECHANISMS))
    choice("--numerics", numerics, NUMERICS)
    choice("--kind", kind, ("frechet", "extrinsic"))
    job = prepare(records, place, budgeting, accounting, saving)
    sample = sample_from(public_sample, records, place, job.loaded.manifold)
    with working("Planning"):
        # says why, where nothing keeps the budget
        choose(mean_facts(job.ball, job.n), job.budget, mechanism=mechanism, numerics=numerics)
        names = "all" if mechanism == "auto" else mechanism
        planned = plan(
            job.ball, job.n, job.budget, mechanisms=names, numerics=numerics, kind=kind, public_sample=sample
        )
    rounds = int(refine) if refine.isdecimal() else refine
    before = "axes are paid for" if rounds == "axes" else f"{rounds} rounds of refinement come"
    remark = "" if rounds in ("auto", 0) else f"the plan is for one release; {before} before it"
    how = {"kind": kind, "mechanism": mechanism, "numerics": numerics, "refine": rounds, "public_sample": sample}
    _release(job, "mean", private_mean, "Computing the mean", plan=planned, remark=remark, **how)


@app.command(rich_help_panel="Release")
@takes
def median(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    steps: Annotated[
        int | None, typer.Option(help="Steps of descent (default: from n, the ball and the budget).")
    ] = None,
    state: _State = None,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """The private Fréchet median: outliers pull no harder than others, and a large ball costs little.

    [bold]Example[/bold]

    dpmanifolds median tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --epsilon 1 --delta 1e-6
    """
    from dpmanifolds.cli.spend import prepare
    from dpmanifolds.descent.step_sizes import median_schedule
    from dpmanifolds.releases import private_median

    job = prepare(records, place, budgeting, accounting, saving)
    count, _ = median_schedule(job.ball, job.n, job.budget, steps)
    remark = f"{count} steps of descent; how close they come depends on the records"
    _release(job, "median", private_median, f"Descending, {count} steps", remark=remark, steps=steps, state=state)


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
    from dpmanifolds.cli.spend import prepare
    from dpmanifolds.releases import private_variance

    job = prepare(records, place, budgeting, accounting, saving)
    remark = f"a number from 0 to {job.ball.radius**2:.4g}, the square of the radius"
    _release(job, "variance", private_variance, "Computing the variance", remark=remark)


@app.command(rich_help_panel="Release")
@takes
def clipped(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """The private share of records that the ball clips: whether ball and unit are right, for a small ε.

    [bold]Example[/bold]

    dpmanifolds clipped tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-4 3e-3 --epsilon 0.1
    """
    from dpmanifolds.cli.spend import prepare
    from dpmanifolds.releases import private_clipped_share

    job = prepare(records, place, budgeting, accounting, saving)
    remark = "a number from 0, no record is clipped, to 1, all are"
    _release(job, "share of clipped records", private_clipped_share, "Counting", remark=remark)


@app.command(rich_help_panel="Release")
@takes
def pca(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    components: Annotated[int, typer.Option("--components", "-k", help="How many principal directions to keep.")] = 2,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """Private principal components: of vectors (euclidean), or of curved records around their private mean.

    Writes components.npz, and the releases they were computed from in folders of their own.

    [bold]Examples[/bold]

    dpmanifolds pca table.csv --manifold euclidean:6 --radius 10 --components 2 --epsilon 1 --delta 1e-6

    dpmanifolds pca tensors.npy --manifold spd:3 --radius 2 --components 1 --mu 1

    dpmanifolds pca visits.csv --manifold euclidean:6 --radius 10 --group-by person --epsilon 1 --delta 1e-6
    """
    import numpy as np

    from dpmanifolds.cli.spend import confirm, prepare, print_if_unwritten
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.show import save_release
    from dpmanifolds.show.report import new_files
    from dpmanifolds.show.tables import facts, result, say, working
    from dpmanifolds.show.words import percent

    job = prepare(records, place, budgeting, accounting, saving)
    target = saving.out / "components.npz"
    if target.exists() and not saving.overwrite:
        raise ArgumentError(f"{str(target)!r} exists. Name another folder, or pass --overwrite.")
    for name in ("mean", "second-moment"):
        new_files(saving.out / name, overwrite=saving.overwrite)
    with confirm(job, "principal components", remarks=[f"{components} of them"]), working("Computing the components"):
        found, releases = _components(job, components)
    with print_if_unwritten("release", *releases.values()), working("Writing the reports"):
        np.savez(target, allow_pickle=False, **found)
        written = [target]
        for name, release in releases.items():
            paths = save_release(release, saving.out / name, notes=job.loaded.notes, overwrite=saving.overwrite)
            written.append(paths["json"])
    if saving.quiet:
        typer.echo(str(target))
        return
    console = result()
    say(console, f"Released: {components} principal components of {job.counted}", style="bold green")
    shares = found["explained_variance"] / max(float(found["total_variance"]), 1e-300)
    facts(
        console,
        [
            ("spent", job.budget.in_words()),
            (
                "variance",
                ", ".join(
                    f"{value:.4g} ({percent(share)})"
                    for value, share in zip(found["explained_variance"], shares, strict=True)
                ),
            ),
            *(("written", str(path)) for path in written),
        ],
    )


def _components(job: Any, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays to keep, and the releases behind them."""
    import numpy as np

    from dpmanifolds.estimators.pca import PrivatePCA, PrivateTangentPCA
    from dpmanifolds.manifolds import Euclidean

    terms = {name: job.terms[name] for name in ("unit", "ledger", "dataset")}
    terms |= {"on_invalid": job.on_invalid, "random_state": job.terms["rng"]}
    ball, points = job.ball, np.asarray(job.loaded.points)
    model: Any
    if isinstance(ball.manifold, Euclidean):
        model = PrivatePCA(count, job.budget, ball.radius, center=ball.center, solver="covariance", **terms)
        releases = {"second-moment": model.fit(points, group_by=job.groups).release_}
    else:
        model = PrivateTangentPCA(ball, job.budget, count, **terms)
        releases = dict(zip(("mean", "second-moment"), model.fit(points, group_by=job.groups).releases_, strict=True))
    found = {
        "components": model.components_,
        "explained_variance": model.explained_variance_,
        "total_variance": np.asarray(np.trace(releases["second-moment"].value)),
        "mean": np.asarray(model.mean_),
    }
    return found, releases


@app.command(rich_help_panel="Release")
@takes
def descend(
    records: Records,
    place: Place,
    budgeting: Budgeting,
    loss: Annotated[str, typer.Option(help="What to minimise over the ball: mean (½ρ²) or median (ρ).")] = "mean",
    steps: Annotated[int, typer.Option(help="Steps, all paid for by the budget together.")] = 20,
    step_size: Annotated[float, typer.Option(help="Of every step; for the median, of the first (they shrink).")] = 0.5,
    batch_size: Annotated[
        int | None, typer.Option(help="Random batches of this mean size (default: all records in every step).")
    ] = None,
    state: _State = None,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """Private Riemannian gradient descent, with the knobs in your hand; `mean` and `median` choose for you.

    [bold]Example[/bold]

    dpmanifolds descend tensors.npy --manifold spd:3 --radius 2 --loss median --steps 40 --epsilon 1 --delta 1e-6
    """
    import numpy as np

    from dpmanifolds._validate import choice
    from dpmanifolds.cli.spend import confirm, finish, prepare
    from dpmanifolds.descent import GeometricSteps
    from dpmanifolds.descent.losses import FrechetMeanLoss, FrechetMedianLoss
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.releases import private_descent
    from dpmanifolds.show.tables import aside

    choice("--loss", loss, ("mean", "median"))
    if records.on_invalid != "raise":
        raise ArgumentError("descend takes well-formed records only; use mean or median for --on-invalid center.")
    job = prepare(records, place, budgeting, accounting, saving)
    sizes: Any = (
        step_size if loss == "mean" else GeometricSteps(step_size * job.ball.radius, step_size * job.ball.radius / 100)
    )
    family = FrechetMeanLoss if loss == "mean" else FrechetMedianLoss
    with confirm(job, f"{loss} by descent", remarks=[f"{steps} steps of size {step_size:g}"]):
        release = private_descent(
            family(job.ball),
            job.loaded.points if job.groups is None else np.asarray(job.loaded.points),
            job.ball,
            job.budget,
            steps=steps,
            step_size=sizes,
            batch_size=batch_size,
            group_by=job.groups,
            output="last" if loss == "mean" else "weighted-average",
            state=state,
            progress=aside().is_terminal and not saving.quiet,
            **job.terms,
        )
    finish(job, release)
