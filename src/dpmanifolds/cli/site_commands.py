"""`dpmanifolds site open | answer | combine | reconcile`: several sites, by files or with an engine's sums."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmanifolds.cli._app import OTHER, app
from dpmanifolds.cli.options import NO_ACCOUNT, Accounting, Budgeting, Place, Records, takes

if TYPE_CHECKING:
    from dpmanifolds.federated import Coordinator

commands = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help=(
        "Several sites, no trusted centre: records stay where they are, noisy sums of integers travel.\n\n"
        "The coordinator opens a study, which gives a round. Every site answers it. The coordinator combines the "
        "answers, which gives the release, or the next round.\n\n"
        "Without an engine he sees each answer, and every site adds the whole noise. With --engine mpyc the sites add "
        "their answers up by themselves (python -m dpmanifolds.federated.mpyc_engine), and he gets the sum."
    ),
)
app.add_typer(commands, name="site", rich_help_panel="Release")

_Key = Annotated[Path | None, typer.Option(help="A file with the secret key that site and coordinator share.")]


def _read(path: Path) -> bytes:
    from dpmanifolds.errors import ArgumentError

    if not path.is_file():
        raise ArgumentError(f"there is no file {str(path)!r}. Check the spelling and the folder.")
    return path.read_bytes()


def _write(path: Path, text: str, *, overwrite: bool = False) -> None:
    from dpmanifolds.errors import ArgumentError

    if path.exists() and not overwrite:
        raise ArgumentError(f"{str(path)!r} exists. Name another file.")
    new = _room_for(path)
    # as a whole or not at all, whenever the process ends
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _room_for(path: Path) -> Path:
    """Where a file is written before it takes its place, after trying whether it can be."""
    from dpmanifolds.errors import ArgumentError

    new = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.touch()
    except OSError as problem:
        raise ArgumentError(f"{str(path)!r} cannot be written ({problem.strerror}). Name another place.") from None
    return new


def _key(path: Path | None) -> bytes | None:
    return None if path is None else _read(path).strip()


@commands.command("open")
@takes
def open_study(
    folder: Annotated[Path, typer.Argument(help="A new folder for the study and its rounds.", show_default=False)],
    place: Place,
    budgeting: Budgeting,
    sites: Annotated[str, typer.Option(help="The names of the sites: north,east,south.", show_default=False)],
    n: Annotated[int | None, typer.Option(help="The public number of records at all sites together.")] = None,
    n_guess: Annotated[
        int | None, typer.Option(help="Instead of --n: a public guess; the number itself is protected.")
    ] = None,
    statistic: Annotated[
        str, typer.Option(help="mean, median, variance, covariance, second moment or tangent PCA.")
    ] = "mean",
    tolerated: Annotated[int, typer.Option(help="Sites that may be gone, or side with the coordinator.")] = 0,
    refine: Annotated[int, typer.Option(help="Rounds that pay for a smaller ball first.")] = 0,
    engine: Annotated[str, typer.Option(help="none, or mpyc.")] = "none",
    unit: Annotated[str, typer.Option(help="What neighbours differ in.")] = "record",
) -> None:
    """Open a study: writes coordinator.json, which stays, and round-1.json, which goes to every site.

    [bold]Example[/bold]

    dpmanifolds site open study --manifold spd:3 --eigenvalues 1e-4 3e-3 --n 500 --mu 1 --sites north,east,south
    """
    from dpmanifolds._validate import choice
    from dpmanifolds.cli.records import ball_from, budget_from
    from dpmanifolds.federated import Coordinator, Study
    from dpmanifolds.federated.mpyc_engine import MPYC_MODULUS
    from dpmanifolds.manifolds import manifold_from_name

    by_mpyc = choice("--engine", engine, ("none", "mpyc")) == "mpyc"
    study = Study(
        statistic,
        ball_from(place, manifold_from_name(place.manifold, place.metric)),
        budget_from(budgeting),
        sites=[name.strip() for name in sites.split(",")],
        n=n,
        n_guess=n_guess,
        adjacency="replace-one" if n_guess is None else "add-remove-one",
        tolerated=tolerated,
        transport="secure-sum" if by_mpyc else "plain",
        modulus=MPYC_MODULUS if by_mpyc else None,
        refine=refine,
        unit=unit,
    )
    coordinator = Coordinator(study)
    _write(folder / "coordinator.json", coordinator.to_json(indent=1))
    _write_round(folder, coordinator)


def _write_round(folder: Path, coordinator: Coordinator, *, overwrite: bool = False) -> None:
    asked = coordinator.round
    assert asked is not None
    path = folder / f"round-{asked.number}.json"
    _write(path, asked.to_json(indent=1), overwrite=overwrite)
    typer.echo(str(path))


@commands.command()
@takes
def answer(
    asked: Annotated[Path, typer.Argument(help="The round, as the coordinator sent it.", show_default=False)],
    records: Records,
    name: Annotated[str, typer.Option(help="The name of this site.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where the answer goes.", show_default=False)],
    most_mu: Annotated[float | None, typer.Option(help="Refuse a round that spends more than this μ.")] = None,
    only_sums: Annotated[
        bool, typer.Option("--only-sums", help="Refuse a round whose answers the coordinator sees one by one.")
    ] = False,
    least_tolerated: Annotated[int, typer.Option(help="Refuse a round that tolerates fewer sites.")] = 0,
    known: Annotated[
        str | None, typer.Option(help="All sites that this one knows: north,east,south. Refuse a round with others.")
    ] = None,
    signing_key: _Key = None,
    accounting: Accounting = NO_ACCOUNT,
) -> None:
    """Answer a round with the records in FILES and this site's noise; the ledger is charged before it is drawn.

    The ledger (dpmanifolds ledger open) also remembers that the round was answered: a second answer, with other noise,
    would tell more.

    [bold]Example[/bold]

    dpmanifolds site answer round-1.json tensors.csv --layout upper --name north --out north-1.json --most-mu 1
    --ledger north.ledger --dataset patients
    """
    from dpmanifolds.cli.options import Saving
    from dpmanifolds.cli.records import load, persons
    from dpmanifolds.cli.spend import account_of
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.federated import Round, Site, SitePolicy
    from dpmanifolds.federated.engines import answer_over_line
    from dpmanifolds.federated.rules import records_live_on
    from dpmanifolds.privacy import GaussianDP

    round_ = Round.from_json(_read(asked))
    if out.exists():
        raise ArgumentError(f"{str(out)!r} exists. Name another file.")
    # where records live is what the round says, unless the files tell it themselves
    terms = account_of(accounting, Saving())
    loaded = load(records, Place(), manifold=records_live_on(round_.parts[0].rule))
    named = persons(records, loaded)
    policy = SitePolicy(
        most=None if most_mu is None else GaussianDP(most_mu),
        transports=("secure-sum",) if only_sums else ("secure-sum", "plain"),
        least_tolerated=least_tolerated,
        sites=None if known is None else (name, *(each.strip() for each in known.split(","))),
        unit=terms["unit"],
    )
    groups = None if named is None else named.numbers
    site = Site(
        name,
        loaded.points,
        policy,
        group_by=groups,
        ledger=terms["ledger"],
        dataset=terms["dataset"],
        key=_key(signing_key),
    )
    # what cannot be written must not be paid for
    room = _room_for(out)
    try:
        _write(out, answer_over_line(site, round_).to_json())
    finally:
        room.unlink(missing_ok=True)
    typer.echo(f"{out}: {round_.statistic}, round {round_.number}, μ = {round_.mu:.6g}")
    if round_.transport != "plain":
        typer.echo("It holds one share of the noise alone: it stays here. Send nobody but the engine's sum.")


@commands.command()
def combine(
    folder: Annotated[Path, typer.Argument(help="The folder of the study.", show_default=False)],
    files: Annotated[list[Path], typer.Argument(help="Answers, or the sum that an engine made.", show_default=False)],
    keys: Annotated[Path | None, typer.Option(help="A folder with the key of each site: NAME.key.")] = None,
) -> None:
    """Combine the answers to the round of a study: writes the release, or the next round.

    [bold]Example[/bold]

    dpmanifolds site combine study north-1.json east-1.json south-1.json --keys keys
    """
    from dpmanifolds.errors import ArgumentError
    from dpmanifolds.federated import Answer, Coordinator
    from dpmanifolds.federated.mpyc_engine import read_sum
    from dpmanifolds.releases import Release
    from dpmanifolds.show import save_release

    text = _read(folder / "coordinator.json")
    coordinator = Coordinator.from_json(text)
    if keys is not None:
        held = {name: _key(keys / f"{name}.key") or b"" for name in coordinator.study.sites}
        coordinator = Coordinator.from_json(text, keys=held)
    asked = coordinator.round
    if asked is None:
        raise ArgumentError("all rounds of this study are finished.")
    given: Any = [Answer.from_json(_read(path)) for path in files] if asked.transport == "plain" else None
    if given is None:
        if len(files) != 1:
            raise ArgumentError("hand over one file: the sum that the engine made.")
        given = read_sum(_read(files[0]), asked)
    release = coordinator.finish(given)
    # what follows from the answers first: if this ends before the last line, the same call does it again
    if release is None:
        _write_round(folder, coordinator, overwrite=True)
    else:
        assert isinstance(release, Release)
        paths = save_release(release, folder / "release", overwrite=True)
        typer.echo(f"{paths['json']}: {release.sites}")
    _write(folder / "coordinator.json", coordinator.to_json(indent=1), overwrite=True)


@commands.command()
def reconcile(
    release: Annotated[Path, typer.Argument(help="release.json, or the folder that holds it.", show_default=False)],
    ledger: Annotated[Path, typer.Argument(help="The ledger of a site.", show_default=False)],
    name: Annotated[str, typer.Option(help="The name of that site.", show_default=False)],
) -> None:
    """Compare the rounds of a release with the ledger of a site; exit code 1 where a round was not paid for.

    [bold]Example[/bold]

    dpmanifolds site reconcile study/release north.ledger --name north
    """
    from dpmanifolds.federated import reconcile as compare
    from dpmanifolds.ledger import Ledger
    from dpmanifolds.show import load_release

    found = compare(load_release(release), name, Ledger(ledger))
    typer.echo(str(found))
    if not found.agrees:
        raise typer.Exit(OTHER)
