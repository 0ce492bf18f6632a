"""`dpmanifolds pca | descend`: principal components, and private descent with its knobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli._options import NO_ACCOUNT, USUAL, Accounting, Budgeting, Place, Records, Saving, takes

__all__ = ["descend", "pca"]


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

    from dpmanifolds.cli._show import facts, result, say, working
    from dpmanifolds.cli._spend import confirm, prepare
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.show import save_release
    from dpmanifolds.show.words import percent

    job = prepare(records, place, budgeting, accounting, saving)
    target = saving.out / "components.npz"
    if target.exists() and not saving.overwrite:
        raise ArgumentError(f"{str(target)!r} exists. Name another folder, or pass --overwrite.")
    with confirm(job, "principal components", remarks=[f"{components} of them"]), working("Computing the components"):
        found, releases = _components(job, components, records.on_invalid)
    with working("Writing the reports"):
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


def _components(job: Any, count: int, on_invalid: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays to keep, and the releases behind them."""
    import numpy as np

    from dpmanifolds.estimators.pca import PrivatePCA
    from dpmanifolds.estimators.tangent_pca import PrivateTangentPCA
    from dpmanifolds.manifolds import Euclidean

    terms = {name: job.terms[name] for name in ("unit", "ledger", "dataset")}
    model: Any
    if isinstance(job.ball.manifold, Euclidean):
        model = PrivatePCA(
            count,
            job.budget,
            job.ball.radius,
            center=job.ball.center,
            solver="covariance",
            on_invalid=on_invalid,
            random_state=job.terms["rng"],
            **terms,
        ).fit(np.asarray(job.loaded.points), group_by=job.groups)
        releases = {"second-moment": model.release_}
    else:
        model = PrivateTangentPCA(
            job.ball, job.budget, count, on_invalid=on_invalid, random_state=job.terms["rng"], **terms
        ).fit(np.asarray(job.loaded.points), group_by=job.groups)
        releases = dict(zip(("mean", "second-moment"), model.releases_, strict=True))
    moment = np.asarray(releases["second-moment"].value)
    found = {
        "components": model.components_,
        "explained_variance": model.explained_variance_,
        "total_variance": np.asarray(_positive_trace(moment, job.ball.manifold.dim)),
        "mean": np.asarray(model.mean_),
    }
    return found, releases


def _positive_trace(coordinates: Any, dim: int) -> float:
    """The sum of the eigenvalues above 0 of a released second moment."""
    import numpy as np

    from dpmanifolds.manifolds._symmetric import from_upper_triangle

    return float(np.maximum(np.linalg.eigvalsh(from_upper_triangle(coordinates, dim)), 0.0).sum())


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
    state: Annotated[
        Path | None,
        typer.Option(help="A file for the state, with --ledger: after a crash the same command goes on, uncharged."),
    ] = None,
    accounting: Accounting = NO_ACCOUNT,
    saving: Saving = USUAL,
) -> None:
    """Private Riemannian gradient descent, with the knobs in your hand; `mean` and `median` choose for you.

    [bold]Example[/bold]

    dpmanifolds descend tensors.npy --manifold spd:3 --radius 2 --loss median --steps 40 --epsilon 1 --delta 1e-6
    """
    import numpy as np

    from dpmanifolds._validate import choice
    from dpmanifolds.cli._show import aside
    from dpmanifolds.cli._spend import confirm, finish, prepare
    from dpmanifolds.descent import GeometricSteps
    from dpmanifolds.descent.losses import FrechetMeanLoss, FrechetMedianLoss
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.releases import private_descent

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
