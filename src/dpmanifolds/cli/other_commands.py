"""`dpmanifolds demo | sample | validate | report | info`."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from shlex import quote, split
from typing import Annotated, Any

import typer

from dpmanifolds.cli._app import app
from dpmanifolds.cli.options import NO_ACCOUNT, USUAL, Accounting, Place, Records, takes

_EXTRAS = {
    "matplotlib": "figures",
    "pyarrow": "Parquet files",
    "zarr": "Zarr stores",
    "mne": "FIF files",
    "torch": "PyTorch arrays",
    "jax": "JAX arrays",
}
_LARGEST = 1 << 32


@app.command(rich_help_panel="Learn")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demonstration makes.")] = Path("out"),
) -> None:
    """The main job end to end, on images that come with scikit-learn: seconds, nothing to prepare.

    Each image becomes a 9×9 covariance matrix. Half of them play the private records, the others a public collection.
    """
    from importlib.util import find_spec

    import numpy as np
    from sklearn.datasets import load_digits

    from dpmanifolds.data import image_descriptors

    points = image_descriptors(load_digits().images, eta=1e-2, full_scale=16.0)
    half = len(points) // 2
    out.mkdir(parents=True, exist_ok=True)
    private, public, made = out / "private.npy", out / "public.npy", out / "release"
    np.save(private, points[:half])
    np.save(public, points[half:])
    asked = f"--manifold spd:9 --metric log-euclidean --reference {quote(str(public))} --epsilon 1"
    for line in (
        f"plan --n {half} {asked}",
        f"mean {quote(str(private))} {asked} --unit image --out {quote(str(made))} --yes --overwrite",
        f"info {quote(str(made))}",
    ):
        typer.secho(f"\n$ dpmanifolds {line}", bold=True)
        if code := app(split(line), standalone_mode=False):
            raise typer.Exit(code)
    figure = "with its figure" if find_spec("matplotlib") else 'without its figure: pip install "dpmanifolds[plot]"'
    typer.echo(f"\nThe report: {made / 'report.html'}, {figure}")


@app.command(rich_help_panel="Release")
def report(
    release: Annotated[Path, typer.Argument(help="release.json, or the folder that holds it.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The page to write (default: report.html beside it).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier page.")] = False,
) -> None:
    """One self-contained HTML page about a release: the promise in plain words, the error, the figure, how to cite.

    [bold]Example[/bold]

    dpmanifolds report result --out for-the-board.html
    """
    from dpmanifolds.show import load_release, write_report

    loaded = load_release(release)
    folder = release if release.is_dir() else release.parent
    typer.echo(str(write_report(loaded, out or folder / "report.html", overwrite=overwrite)))


@app.command(rich_help_panel="Learn")
def sample(
    file: Annotated[Path, typer.Argument(help="The table to write, such as tensors.csv.", show_default=False)],
    n: Annotated[int, typer.Option(help="How many tensors.")] = 500,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
) -> None:
    """A table of simulated diffusion tensors in mm²/s, to try the other commands on.

    [bold]Example[/bold]

    dpmanifolds sample tensors.csv
    """
    import numpy as np

    from dpmanifolds._validate import positive_integer
    from dpmanifolds.data import simulate_tensors
    from dpmanifolds.data._tables import columns_from_matrices
    from dpmanifolds.errors import ArgumentError

    if file.suffix != ".csv":
        raise ArgumentError(f"the name of the file must end in .csv; got {str(file)!r}.")
    rows = columns_from_matrices(simulate_tensors(positive_integer("n", n), rng=seed), "upper")
    try:
        with file.open("x", encoding="utf-8") as stream:
            np.savetxt(stream, rows, fmt="%.6e", delimiter=",", header="xx,xy,xz,yy,yz,zz", comments="")
    except FileExistsError:
        raise ArgumentError(f"{str(file)!r} exists; name another file.") from None
    typer.echo(f"{file}: {n} simulated diffusion tensors in mm²/s, xx,xy,xz,yy,yz,zz in each row")


@app.command(rich_help_panel="Plan and check")
@takes
def validate(records: Records, place: Place, accounting: Accounting = NO_ACCOUNT) -> None:
    """How many records lie inside, at the edge and outside of the ball, and what unit they look like: NOT private.

    For the custodian alone. Choosing a ball by what this says is a leak: with --ledger the ball is entered before the
    look, and a release in another is marked. The private way: clipped.

    [bold]Example[/bold]

    dpmanifolds validate tensors.csv --layout upper --manifold spd:3 --typical diffusion-tensor:mm2/s
    """
    from dpmanifolds.cli.records import ball_from, load
    from dpmanifolds.cli.spend import account_of
    from dpmanifolds.domains import validate as check

    account = account_of(accounting, USUAL)
    loaded = load(records, place)
    ball = ball_from(place, loaded.manifold)
    typer.echo(str(check(loaded.points[:], ball, ledger=account["ledger"], dataset=account["dataset"])))


@app.command(rich_help_panel="Learn")
def info(
    file: Annotated[
        Path | None, typer.Argument(help="A release.json to explain, or a file of records whose shape to tell.")
    ] = None,
    header: Annotated[str, typer.Option(help="Of a text table: yes, no or auto.")] = "auto",
) -> None:
    """What is installed and offered; or what a file holds: of records the names of arrays and shapes.

    Of text tables also which columns hold words, gaps and IDs: NOT private, for the custodian alone.
    """
    if file is None:
        _installation()
    elif (file.is_dir() and file.suffix != ".zarr") or file.suffix == ".json":
        from dpmanifolds.show import load_release

        typer.echo(load_release(file).summary())
    else:
        if file.suffix.lower() in (".csv", ".tsv"):
            from dpmanifolds.data._files import checked_path
            from dpmanifolds.data._tables import describe_table

            for line in describe_table(checked_path(file, _LARGEST), header, _LARGEST):
                typer.echo(line)
        for name, shape in _shapes(file, header).items():
            typer.echo(f"{name}: {' × '.join(map(str, shape))}")


def _installation() -> None:
    import platform

    from dpmanifolds import __version__
    from dpmanifolds.data.readers import KINDS
    from dpmanifolds.manifolds.names import typed_families
    from dpmanifolds.manifolds.spd import METRICS
    from dpmanifolds.show.tables import facts, result, say
    from dpmanifolds.sums import MECHANISMS, NUMERICS

    console = result()
    say(console, f"dpmanifolds {__version__}", style="bold")
    facts(
        console,
        [
            ("python", f"{platform.python_version()} on {platform.system()}"),
            ("libraries", ", ".join(f"{name} {_version(name)}" for name in ("numpy", "scipy", "opendp"))),
            *((f"extra {name}", f"{_version(name)} ({use})") for name, use in _EXTRAS.items()),
            ("manifolds", ", ".join(typed_families())),
            ("metrics", ", ".join(METRICS)),
            ("mechanisms", ", ".join(MECHANISMS)),
            ("numerics", ", ".join(NUMERICS)),
            ("budgets", "--epsilon, --epsilon with --delta, --mu, --rho"),
            ("files", " ".join(KINDS)),
        ],
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _shapes(path: Path, header: str) -> dict[str, Any]:
    """Names and shapes of the arrays of a file; shapes are public, as n is."""
    import zipfile

    from dpmanifolds.data import read_nifti, read_points
    from dpmanifolds.data._array_files import is_store, zarr_shapes
    from dpmanifolds.data._files import checked_path, decoding
    from dpmanifolds.data._tables import table_shape

    if is_store(path):
        return zarr_shapes(path)
    found = checked_path(path, _LARGEST)
    if found.suffix == ".npz":
        with decoding(found, "a .npz file"), zipfile.ZipFile(found) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        return {name: read_points(found, key=name).shape for name in names}
    if found.name.lower().endswith((".nii", ".nii.gz")):
        return {found.name: read_nifti(found).shape}
    if found.suffix.lower() in (".csv", ".tsv"):
        return {found.name: table_shape(found, header, _LARGEST)}
    return {found.name: read_points(found).shape}
