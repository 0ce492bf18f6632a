"""The options that commands share, each once with its help, in groups that a command takes as one argument.

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
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer


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
    key: Annotated[str | None, "The array to read, where a .npz, .mat or .zarr file has several."] = None
    columns: Annotated[
        str | None, 'Of a table, the columns to read: "xx,xy,yy" (default: all but that of --group-by).'
    ] = None
    header: Annotated[
        str, "Whether the first line of a text table names its columns: yes, no, or auto (it does if it has no number)."
    ] = "auto"
    layout: Annotated[
        str | None, "How a row holds a symmetric matrix: full, upper (xx,xy,xz,yy,yz,zz) or lower (xx,xy,yy,xz,yz,zz)."
    ] = None
    record_axis: Annotated[int, "The axis of records; -1 for MATLAB arrays (k, k, n)."] = 0
    mask: Annotated[Path | None, "A PUBLIC NIfTI mask, such as an atlas: voxels to keep."] = None
    picks: Annotated[
        str | None, 'Of .fif files, the channels: "C3,Cz,C4"; of epochs also a type such as eeg (default: all).'
    ] = None
    missing: Annotated[str, "TPS specimens without landmarks: raise or drop."] = "raise"
    unit_scale: Annotated[
        float,
        "Public factor that records are multiplied by first: 1e12 turns V² into µV². Centre, radius and the "
        "release are in the new unit.",
    ] = 1.0
    group_by: Annotated[
        str | None,
        "Protect persons, not records: a column of the table with a person's name in each row, a file with "
        "one name per line, or the word files, where each file is one person.",
        {"metavar": "COLUMN|FILE|files"},
    ] = None
    on_invalid: Annotated[
        str, "Malformed records: raise (tells that there are some) or center (takes the centre for them)."
    ] = "raise"


@dataclass(frozen=True)
class Place:
    """The manifold and the public ball."""

    manifold: Annotated[
        str | None,
        "Where records live: spd:3 correlation:5 sphere:2 hyperbolic:2 shapes:12 euclidean:5 "
        "rotations:3 grassmann:5,2. Known for .tps, .nii and .fif files.",
    ] = None
    metric: Annotated[
        str | None, "Of spd: affine-invariant (the default), log-euclidean (the default for maps) or log-cholesky."
    ] = None
    center: Annotated[
        str | None, 'identity, origin, a multiple such as "4.5e-4*I", numbers "0,0,1", or a file with one point.'
    ] = None
    radius: Annotated[float | None, "Records farther from the centre are clipped to this distance."] = None
    eigenvalues: Annotated[
        tuple[float, float] | None,
        "Of spd: the physical range of eigenvalues, instead of centre and radius.",
        {"metavar": "LOW HIGH"},
    ] = None
    bounds: Annotated[
        Path | None, "Of euclidean: a file with two rows, the lower and the upper bound of each column."
    ] = None
    typical: Annotated[
        str | None,
        "A common kind of data and its unit, from public knowledge, instead of centre and radius: "
        "diffusion-tensor:mm2/s diffusion-tensor:um2/ms eeg:uV2 eeg:V2 correlation composition; landmark-shape goes "
        "with --center.",
        {"metavar": "KIND:UNIT"},
    ] = None
    positive_orthant: Annotated[bool, "Of sphere: square roots of compositions."] = False
    reference: Annotated[
        Path | None,
        "A file of PUBLIC records (an atlas, a published study): the ball around their mean that holds them.",
    ] = None


@dataclass(frozen=True)
class Budgeting:
    """What may be spent: ε, or ε and δ, or μ, or ρ."""

    epsilon: Annotated[float | None, "ε: pure without --delta, (ε, δ) with it. 1 is usual."] = None
    delta: Annotated[float | None, "δ: far below 1/n, such as 1e-6."] = None
    mu: Annotated[float | None, "μ of Gaussian DP, instead of ε."] = None
    rho: Annotated[float | None, "ρ of zCDP, instead of ε."] = None


@dataclass(frozen=True)
class Accounting:
    """Which account pays, and what one record is."""

    ledger: Annotated[Path | None, "Charge this ledger before anything is drawn."] = None
    dataset: Annotated[str | None, "The account of the ledger to charge."] = None
    unit: Annotated[
        str | None,
        "What neighbours differ in, in the words of the promise (default: record, or person with --group-by).",
    ] = None


@dataclass(frozen=True)
class Saving:
    """Where the release goes, and who confirms it."""

    out: Annotated[Path, "Folder for release.json, release.npz and report.html."] = Path("release")
    yes: Annotated[bool, "Spend without asking, for scripts.", {"short": "-y"}] = False
    overwrite: Annotated[bool, "Replace an earlier release in the folder."] = False
    quiet: Annotated[bool, "Print the path of release.json, no more.", {"short": "-q"}] = False
    seed: Annotated[
        int | None,
        "FOR TESTS AND TEACHING ONLY: whoever knows it can remove the noise. The release is marked, and a "
        "ledger refuses it.",
    ] = None


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
    """The fields of a group: each tells its type, its help and, where it has them, a short flag or a metavar."""
    types = get_type_hints(group, include_extras=True)
    found = []
    for each in fields(group):
        kind, default = types[each.name], inspect.Parameter.empty if each.default is MISSING else each.default
        plain, help, *more = get_args(kind)
        if isinstance(help, str):
            told: dict[str, Any] = dict(*more)
            short = told.pop("short", None)
            # a switch has one flag, and none that says no
            flags = [f"--{each.name.replace('_', '-')}"] if plain is bool else []
            flags += [short] if short else []
            kind = Annotated[plain, typer.Option(*flags, help=help, rich_help_panel=_PANELS[group], **told)]
        found.append(inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return found
