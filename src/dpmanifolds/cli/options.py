"""The options that commands share, each once, in groups that a command takes as one argument.

>>> import inspect
>>> from dpmanifolds.cli.options import Budgeting, takes
>>> @takes
... def command(n: int, budgeting: Budgeting) -> None: ...
>>> list(inspect.signature(command).parameters)[:3]
['n', 'epsilon', 'delta']
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["NO_ACCOUNT", "USUAL", "Accounting", "Budgeting", "Place", "Records", "Saving", "takes"]


def _about(help: str, *flags: str, metavar: str | None = None) -> dict[str, Any]:
    """What a field of a group says as an option of the commands that take the group."""
    return {"flags": flags, "help": help, "metavar": metavar}


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
    key: str | None = field(
        default=None, metadata=_about("The array to read, where a .npz, .mat or .zarr file has several.")
    )
    columns: str | None = field(
        default=None,
        metadata=_about('Of a table, the columns to read: "xx,xy,yy" (default: all but that of --group-by).'),
    )
    layout: str | None = field(
        default=None,
        metadata=_about(
            "How a row holds a symmetric matrix: full, upper (xx,xy,xz,yy,yz,zz) or lower (xx,xy,yy,xz,yz,zz)."
        ),
    )
    record_axis: int = field(default=0, metadata=_about("The axis of records; -1 for MATLAB arrays (k, k, n)."))
    mask: Path | None = field(default=None, metadata=_about("A PUBLIC NIfTI mask, such as an atlas: voxels to keep."))
    picks: str | None = field(
        default=None,
        metadata=_about('Of .fif files, the channels: "C3,Cz,C4"; of epochs also a type such as eeg (default: all).'),
    )
    missing: str = field(default="raise", metadata=_about("TPS specimens without landmarks: raise or drop."))
    unit_scale: float = field(
        default=1.0,
        metadata=_about(
            "Public factor that records are multiplied by first: 1e12 turns V² into µV². Centre, radius and the "
            "release are in the new unit.",
        ),
    )
    group_by: str | None = field(
        default=None,
        metadata=_about(
            "Protect persons, not records: a column of the table with a person's name in each row, a file with "
            "one name per line, or the word files, where each file is one person.",
            metavar="COLUMN|FILE|files",
        ),
    )
    on_invalid: str = field(
        default="raise",
        metadata=_about("Malformed records: raise (tells that there are some) or center (takes the centre for them)."),
    )


@dataclass(frozen=True)
class Place:
    """The manifold and the public ball."""

    manifold: str | None = field(
        default=None,
        metadata=_about(
            "Where records live: spd:3 sphere:2 hyperbolic:2 shapes:12 euclidean:5 rotations:3 grassmann:5,2. "
            "Known for .tps, .nii and .fif files.",
        ),
    )
    metric: str | None = field(
        default=None,
        metadata=_about(
            "Of spd: affine-invariant (the default), log-euclidean (the default for maps) or log-cholesky."
        ),
    )
    center: str | None = field(
        default=None,
        metadata=_about('identity, origin, a multiple such as "4.5e-4*I", numbers "0,0,1", or a file with one point.'),
    )
    radius: float | None = field(
        default=None, metadata=_about("Records farther from the centre are clipped to this distance.")
    )
    eigenvalues: tuple[float, float] | None = field(
        default=None,
        metadata=_about("Of spd: the physical range of eigenvalues, instead of centre and radius.", metavar="LOW HIGH"),
    )
    bounds: Path | None = field(
        default=None,
        metadata=_about("Of euclidean: a file with two rows, the lower and the upper bound of each column."),
    )
    positive_orthant: bool = field(
        default=False, metadata=_about("Of sphere: square roots of compositions.", "--positive-orthant")
    )
    reference: Path | None = field(
        default=None,
        metadata=_about(
            "A file of PUBLIC records (an atlas, a published study): the ball around their mean that holds them."
        ),
    )


@dataclass(frozen=True)
class Budgeting:
    """What may be spent: ε, or ε and δ, or μ, or ρ."""

    epsilon: float | None = field(default=None, metadata=_about("ε: pure without --delta, (ε, δ) with it. 1 is usual."))
    delta: float | None = field(default=None, metadata=_about("δ: far below 1/n, such as 1e-6."))
    mu: float | None = field(default=None, metadata=_about("μ of Gaussian DP, instead of ε."))
    rho: float | None = field(default=None, metadata=_about("ρ of zCDP, instead of ε."))


@dataclass(frozen=True)
class Accounting:
    """Which account pays, and what one record is."""

    ledger: Path | None = field(default=None, metadata=_about("Charge this ledger before anything is drawn."))
    dataset: str | None = field(default=None, metadata=_about("The account of the ledger to charge."))
    unit: str | None = field(
        default=None,
        metadata=_about(
            "What neighbours differ in, in the words of the promise (default: record, or person with --group-by)."
        ),
    )


@dataclass(frozen=True)
class Saving:
    """Where the release goes, and who confirms it."""

    out: Path = field(default=Path("release"), metadata=_about("Folder for release.json, release.npz and report.html."))
    yes: bool = field(default=False, metadata=_about("Spend without asking, for scripts.", "--yes", "-y"))
    overwrite: bool = field(default=False, metadata=_about("Replace an earlier release in the folder.", "--overwrite"))
    quiet: bool = field(default=False, metadata=_about("Print the path of release.json, no more.", "--quiet", "-q"))
    seed: int | None = field(
        default=None,
        metadata=_about(
            "FOR TESTS AND TEACHING ONLY: whoever knows it can remove the noise. The release is marked, and a "
            "ledger refuses it.",
        ),
    )


NO_ACCOUNT, USUAL = Accounting(), Saving()
_PANELS: dict[type, str] = {
    Records: "Records",
    Place: "Domain: public, chosen without looking at the records",
    Budgeting: "Budget",
    Accounting: "Ledger",
    Saving: "Output",
}


def takes(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments of group types are taken apart into options, and put together again when it runs."""
    hints = get_type_hints(command, include_extras=True)
    options: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if hints[name] in _PANELS:
            groups[name] = hints[name]
            options += _options_of(hints[name])
        else:
            options.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def flat(**given: Any) -> None:
        parts = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        command(**given, **parts)

    signature = inspect.Signature(options)
    flat.__signature__ = signature  # type: ignore[attr-defined]
    flat.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    return flat


def _options_of(group: type) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    found = []
    for each in fields(group):
        kind: Any = types[each.name]
        default: Any = inspect.Parameter.empty
        if each.metadata:
            told = {name: each.metadata[name] for name in ("help", "metavar")}
            kind = Annotated[kind, typer.Option(*each.metadata["flags"], rich_help_panel=_PANELS[group], **told)]
            default = each.default
        found.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return found
