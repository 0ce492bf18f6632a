"""The options that commands share, each once, in groups that a command takes as one argument.

>>> import inspect
>>> from dpmanifolds.cli._options import Budgeting, takes
>>> @takes
... def command(n: int, budgeting: Budgeting) -> None: ...
>>> list(inspect.signature(command).parameters)[:3]
['n', 'epsilon', 'delta']
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["NO_ACCOUNT", "USUAL", "Accounting", "Budgeting", "Place", "Records", "Saving", "takes"]

_RECORDS, _PLACE, _BUDGET = "Records", "Domain: public, chosen without looking at the records", "Budget"
_ACCOUNT, _SAVING = "Ledger", "Output"


@dataclass(frozen=True)
class Records:
    """Where the records are, and how the file holds them."""

    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of records: .npy .npz .csv .tsv .mat .tps .nii .nii.gz; with extras .parquet .zarr .zarr.zip "
            "-cov.fif -epo.fif. Several files are joined; several NIfTI files are one tensor map per person.",
            show_default=False,
            metavar="FILES...",
        ),
    ]
    key: Annotated[
        str | None,
        typer.Option(help="The array to read, where a .npz, .mat or .zarr file has several.", rich_help_panel=_RECORDS),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            help='Of a table, the columns to read: "xx,xy,yy" (default: all but that of --group-by).',
            rich_help_panel=_RECORDS,
        ),
    ] = None
    layout: Annotated[
        str | None,
        typer.Option(
            help="How a row holds a symmetric matrix: full, upper (xx,xy,xz,yy,yz,zz) or lower (xx,xy,yy,xz,yz,zz).",
            rich_help_panel=_RECORDS,
        ),
    ] = None
    record_axis: Annotated[
        int, typer.Option(help="The axis of records; -1 for MATLAB arrays (k, k, n).", rich_help_panel=_RECORDS)
    ] = 0
    mask: Annotated[
        Path | None,
        typer.Option(help="A PUBLIC NIfTI mask, such as an atlas: voxels to keep.", rich_help_panel=_RECORDS),
    ] = None
    picks: Annotated[
        str | None,
        typer.Option(
            help='Of .fif files, the channels: "C3,Cz,C4"; of epochs also a type such as eeg (default: all).',
            rich_help_panel=_RECORDS,
        ),
    ] = None
    missing: Annotated[
        str, typer.Option(help="TPS specimens without landmarks: raise or drop.", rich_help_panel=_RECORDS)
    ] = "raise"
    unit_scale: Annotated[
        float,
        typer.Option(
            help="Public factor that records are multiplied by first: 1e12 turns V² into µV². Centre, radius and the "
            "release are in the new unit.",
            rich_help_panel=_RECORDS,
        ),
    ] = 1.0
    group_by: Annotated[
        str | None,
        typer.Option(
            help="Protect persons, not records: a column of the table with a person's name in each row, a file with "
            "one name per line, or the word files, where each file is one person.",
            metavar="COLUMN|FILE|files",
            rich_help_panel=_RECORDS,
        ),
    ] = None
    on_invalid: Annotated[
        str,
        typer.Option(
            help="Malformed records: raise (tells that there are some) or center (takes the centre for them).",
            rich_help_panel=_RECORDS,
        ),
    ] = "raise"


@dataclass(frozen=True)
class Place:
    """The manifold and the public ball."""

    manifold: Annotated[
        str | None,
        typer.Option(
            help="Where records live: spd:3 sphere:2 hyperbolic:2 shapes:12 euclidean:5 rotations:3 grassmann:5,2. "
            "Known for .tps, .nii and .fif files.",
            rich_help_panel=_PLACE,
        ),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            help="Of spd: affine-invariant (the default), log-euclidean (the default for maps) or log-cholesky.",
            rich_help_panel=_PLACE,
        ),
    ] = None
    center: Annotated[
        str | None,
        typer.Option(
            help='identity, origin, a multiple such as "4.5e-4*I", numbers "0,0,1", or a file with one point.',
            rich_help_panel=_PLACE,
        ),
    ] = None
    radius: Annotated[
        float | None,
        typer.Option(help="Records farther from the centre are clipped to this distance.", rich_help_panel=_PLACE),
    ] = None
    eigenvalues: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Of spd: the physical range of eigenvalues, instead of centre and radius.",
            metavar="LOW HIGH",
            rich_help_panel=_PLACE,
        ),
    ] = None
    bounds: Annotated[
        Path | None,
        typer.Option(
            help="Of euclidean: a file with two rows, the lower and the upper bound of each column.",
            rich_help_panel=_PLACE,
        ),
    ] = None
    positive_orthant: Annotated[
        bool,
        typer.Option("--positive-orthant", help="Of sphere: square roots of compositions.", rich_help_panel=_PLACE),
    ] = False
    reference: Annotated[
        Path | None,
        typer.Option(
            help="A file of PUBLIC records (an atlas, a published study): the ball around their mean that holds them.",
            rich_help_panel=_PLACE,
        ),
    ] = None


@dataclass(frozen=True)
class Budgeting:
    """What may be spent: ε, or ε and δ, or μ, or ρ."""

    epsilon: Annotated[
        float | None,
        typer.Option(help="ε: pure without --delta, (ε, δ) with it. 1 is usual.", rich_help_panel=_BUDGET),
    ] = None
    delta: Annotated[float | None, typer.Option(help="δ: far below 1/n, such as 1e-6.", rich_help_panel=_BUDGET)] = None
    mu: Annotated[float | None, typer.Option(help="μ of Gaussian DP, instead of ε.", rich_help_panel=_BUDGET)] = None
    rho: Annotated[float | None, typer.Option(help="ρ of zCDP, instead of ε.", rich_help_panel=_BUDGET)] = None


@dataclass(frozen=True)
class Accounting:
    """Which account pays, and what one record is."""

    ledger: Annotated[
        Path | None, typer.Option(help="Charge this ledger before anything is drawn.", rich_help_panel=_ACCOUNT)
    ] = None
    dataset: Annotated[
        str | None, typer.Option(help="The account of the ledger to charge.", rich_help_panel=_ACCOUNT)
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            help="What neighbours differ in, in the words of the promise (default: record, or person with --group-by).",
            rich_help_panel=_ACCOUNT,
        ),
    ] = None


@dataclass(frozen=True)
class Saving:
    """Where the release goes, and who confirms it."""

    out: Annotated[
        Path, typer.Option(help="Folder for release.json, release.npz and report.html.", rich_help_panel=_SAVING)
    ] = Path("release")
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Spend without asking, for scripts.", rich_help_panel=_SAVING)
    ] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier release in the folder.", rich_help_panel=_SAVING)
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the path of release.json, no more.", rich_help_panel=_SAVING)
    ] = False
    seed: Annotated[
        int | None,
        typer.Option(
            help="FOR TESTS AND TEACHING ONLY: whoever knows it can remove the noise. The release is marked, and a "
            "ledger refuses it.",
            rich_help_panel=_SAVING,
        ),
    ] = None


NO_ACCOUNT, USUAL = Accounting(), Saving()
_GROUPS: tuple[type, ...] = (Records, Place, Budgeting, Accounting, Saving)


def takes(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments of group types are taken apart into options, and put together again when it runs."""
    hints = get_type_hints(command, include_extras=True)
    options: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if kind not in _GROUPS:
            options.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(kind, include_extras=True)
        fields = dataclasses.fields(kind)
        groups[name] = (kind, [field.name for field in fields])
        for field in fields:
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            options.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]
                )
            )

    @functools.wraps(command)
    def flat(**given: Any) -> None:
        parts = {name: kind(**{field: given.pop(field) for field in fields}) for name, (kind, fields) in groups.items()}
        command(**given, **parts)

    signature = inspect.Signature(options)
    flat.__signature__ = signature  # type: ignore[attr-defined]
    flat.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    return flat
