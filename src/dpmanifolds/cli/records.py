"""Records from files, as points of a manifold, and the balls and budgets that were typed. No record is ever printed."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_number
from dpmanifolds.cli.options import Budgeting, Place, Records
from dpmanifolds.data import read_affine, read_labels, read_nifti, read_points, read_tensors, read_tps, write_nifti
from dpmanifolds.data._array_files import FileRecords, fif_channels, is_store
from dpmanifolds.data._files import DEFAULT_LIMIT
from dpmanifolds.data._tables import columns_from_matrices
from dpmanifolds.data.readers import as_records, open_store, table_columns
from dpmanifolds.domains import Ball
from dpmanifolds.domains.typical import SPELLINGS, TYPICAL
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold, PlanarShapes, Power, manifold_from_name
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.privacy.budget import Budget, budget_of
from dpmanifolds.records.persons import Persons, persons_of
from dpmanifolds.show.tables import progress

_FILES = "files"
_FORWARDED = ("key", "header", "layout", "record_axis", "mask", "missing")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WHO = "person|patient|participant|subject|donor|family|group|name|id"
_HEADING = re.compile(rf"(?i)({_WHO})s?([_ -]?(id|name|number|no|nr)s?)?")
_TYPES = ("eeg", "mag", "grad", "seeg", "ecog", "dbs")


@dataclass(frozen=True, eq=False)
class Loaded:
    """The records, where they live, and how to write a point of theirs back as a map."""

    points: np.ndarray | FileRecords
    """In memory, or in a single Zarr store that is read in slices."""
    manifold: Manifold
    kind: str
    """What one record is: "record", "person" for tensor maps, "voxel" for a single one, or "epoch"."""
    sizes: tuple[int, ...]
    """How many records came from each file."""
    notes: tuple[str, ...] = ()
    volume: Volume | None = None
    scale: float = 1.0
    """What the numbers of the files were multiplied by."""


@dataclass(frozen=True, eq=False)
class Volume:
    """The voxels that a map of tensors came from."""

    shape: tuple[int, ...]
    kept: np.ndarray
    affine: np.ndarray
    layout: str

    def write(self, path: Path, tensors: np.ndarray) -> Path:
        """Tensors (m, 3, 3) back at their voxels, zero elsewhere."""
        columns = columns_from_matrices(tensors, self.layout)
        image = np.zeros((math.prod(self.shape), columns.shape[1]))
        image[self.kept] = columns
        return write_nifti(path, image.reshape(*self.shape, -1), affine=self.affine)


def load(records: Records, place: Place, manifold: Manifold | None = None) -> Loaded:
    """Read the files, and tell the manifold where they say it themselves; else it is this one, or that of the place."""
    for path in records.files:
        if not path.is_file() and not is_store(path):
            raise ArgumentError(f"there is no file {str(path)!r}. Check the spelling and the folder.")
    if len({path.resolve() for path in records.files}) < len(records.files):
        raise ArgumentError(
            "one file is given twice: each of its records would count twice, and be protected by half. Give every file "
            "once."
        )
    names = [path.name.lower() for path in records.files]
    scale = positive_number("--unit-scale", records.unit_scale)
    _refuse_idle_options(records, names)
    if all(name.endswith((".nii", ".nii.gz")) for name in names):
        loaded = _tensors(records, place)
    elif all(name.endswith(".fif") for name in names):
        loaded = _covariances(records, place)
    elif all(name.endswith(".tps") for name in names) and place.manifold is None:
        parts = [read_tps(path, missing=records.missing).landmarks for path in records.files]
        space = PlanarShapes(parts[0].shape[1])
        loaded = _joined([np.asarray(space.as_points(part)) for part in parts], space)
    else:
        manifold = manifold or manifold_from_name(place.manifold, place.metric)
        column = _person_column(records)
        loaded = _joined(
            [_table(path, records, manifold, column) for path in progress(records.files, "Reading")], manifold
        )
    return loaded if scale == 1.0 else _scaled(loaded, scale)


def _refuse_idle_options(records: Records, names: list[str]) -> None:
    """Options that would change nothing are a misunderstanding."""
    for flag, given, ends in (
        ("--picks", records.picks, (".fif",)),
        ("--columns", records.columns, (".csv", ".tsv", ".parquet")),
        ("--header", None if records.header == "auto" else records.header, (".csv", ".tsv")),
        ("--mask", records.mask, (".nii", ".nii.gz")),
    ):
        if given is not None and not all(name.endswith(ends) for name in names):
            raise ArgumentError(f"{flag} is for {' '.join(ends)} files, and others were given. Leave it out.")


def _table(path: Path, records: Records, manifold: Manifold, person: str | None) -> np.ndarray | FileRecords:
    """The records of one file; the column that names persons is not among their numbers."""
    columns = None if records.columns is None else _listed(records.columns)
    if columns is None and person is not None:
        columns = [name for name in table_columns(path, header=records.header) if name != person]
    points: np.ndarray | FileRecords
    if is_store(path):
        points = open_store(path, records.key, records.record_axis, records.layout)
    else:
        how: dict[str, Any] = {name: getattr(records, name) for name in _FORWARDED}
        points = read_points(path, columns=columns, **how)
    if isinstance(manifold, SPDBase) and len(points.shape) == 2 and points.shape[1] == manifold.dim > 1:
        raise ArgumentError(
            f"{path.name} has {points.shape[1]} columns, a triangle of a {manifold.k}×{manifold.k} matrix: pass "
            "--layout upper (xx,xy,xz,yy,yz,zz) or lower (xx,xy,yy,xz,yz,zz)."
        )
    if isinstance(points, FileRecords):
        return points.changed(lambda part: as_records(part, manifold))
    return as_records(points, manifold)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _joined(parts: list[Any], manifold: Manifold, kind: str = "record", notes: tuple[str, ...] = ()) -> Loaded:
    if len({part.shape[1:] for part in parts}) > 1:
        raise ArgumentError("files that are joined must hold records of one shape; these differ.")
    points = np.concatenate([np.asarray(part) for part in parts]) if len(parts) > 1 else parts[0]
    return Loaded(points, manifold, kind, tuple(map(len, parts)), notes)


def _covariances(records: Records, place: Place) -> Loaded:
    """Covariances of MNE, the channels of all files in one order."""
    picks: Any = None if records.picks is None else _listed(records.picks)
    if picks is not None and len(picks) == 1 and picks[0] in _TYPES:
        picks = picks[0]
    channels = fif_channels(records.files[0], picks, DEFAULT_LIMIT)
    parts = [read_points(path, picks=channels) for path in progress(records.files, "Reading covariances")]
    manifold = manifold_from_name(place.manifold or f"spd:{len(channels)}", place.metric)
    parts = [as_records(part, manifold) for part in parts]
    if not any(path.name.lower().endswith("epo.fif") for path in records.files):
        return _joined(parts, manifold)
    note = "Each epoch is a record, and what is protected is an epoch, not a person: --group-by files protects persons."
    return _joined(parts, manifold, "epoch", () if records.group_by is not None else (note,))


def _scaled(loaded: Loaded, scale: float) -> Loaded:
    inner = loaded.manifold.single
    if not inner.has_units:
        raise ArgumentError(f"--unit-scale is for spd and euclidean; points of {inner!r} have no unit. Leave it out.")
    note = f"Records were multiplied by {scale:g} (a public unit); the value is in that unit."
    points = loaded.points
    scaled = points.changed(lambda part: part * scale) if isinstance(points, FileRecords) else points * scale
    return replace(loaded, points=scaled, notes=(*loaded.notes, note), scale=scale)


def _tensors(records: Records, place: Place) -> Loaded:
    """One map: voxels are records. Several: a map per person, all in one space."""
    # a ball of maps lets one voxel lie √m times as far from its centre: too ill-conditioned for the curved metric
    usual = "log-euclidean" if len(records.files) > 1 else None
    manifold = manifold_from_name(place.manifold or "spd:3", place.metric or usual)
    if manifold.point_shape != (3, 3) or not manifold.has_units:
        raise ArgumentError(f"NIfTI files hold 3×3 tensors: --manifold spd:3, or leave it out; got {manifold!r}.")
    if records.layout is None:
        raise ArgumentError(
            "tensors need --layout upper (xx,xy,xz,yy,yz,zz; FSL), lower (xx,xy,yy,xz,yz,zz; the NIfTI standard, ANTs) "
            "or full."
        )
    if len(records.files) == 1:
        points = read_tensors(records.files[0], layout=records.layout, mask=records.mask)
        note = "One file was given: each voxel is a record, and what is protected is a voxel, not a person."
        return Loaded(points, manifold, "voxel", (len(points),), (note,))
    mask = None if records.mask is None else read_nifti(records.mask)
    images = [
        read_tensors(path, layout=records.layout, mask=mask) for path in progress(records.files, "Reading tensor maps")
    ]
    affines = [read_affine(path) for path in records.files]
    same = all(np.allclose(affine, affines[0], rtol=1e-4, atol=1e-4) for affine in affines)
    if not same or len({image.shape for image in images}) > 1:
        raise ArgumentError(
            "tensor maps of several persons must lie in one space: the same number of voxels and the same affine. "
            "Register them to a template first."
        )
    space = Power(manifold, len(images[0]))
    one_each = (1,) * len(images)
    return Loaded(np.stack(images), space, "person", one_each, volume=_volume(records, mask, affines[0]))


def _volume(records: Records, mask: np.ndarray | None, affine: np.ndarray) -> Volume:
    shape = read_nifti(records.files[0]).shape[:3]
    kept = np.ones(math.prod(shape), dtype=bool) if mask is None else mask.reshape(-1) != 0
    return Volume(shape, kept, affine, records.layout or "full")


def _person_column(records: Records) -> str | None:
    """The column that --group-by names, where it names one."""
    given = records.group_by
    if given is None or Path(given).is_file():
        return None
    return given if all(given in table_columns(path, header=records.header) for path in records.files) else None


def persons(records: Records, loaded: Loaded) -> Persons | None:
    """Whose record is whose, as --group-by tells."""
    names = names_of_persons(records, loaded)
    return None if names is None else persons_of(names, len(loaded.points))


def names_of_persons(records: Records, loaded: Loaded) -> np.ndarray | None:
    """The name for each record: from a file of names, a column of the tables, or one for each file."""
    given = records.group_by
    if given is None:
        return None
    column = _person_column(records)
    if column is not None:
        return np.concatenate([read_labels(path, column, header=records.header) for path in records.files])
    if Path(given).is_file():
        return _names(Path(given), len(loaded.points))
    if given == _FILES:
        return np.repeat(np.arange(len(loaded.sizes)), loaded.sizes)
    found = [table_columns(path, header=records.header) for path in records.files]
    shared = [name for name in found[0] if all(name in names for names in found)]
    told = f" ({', '.join(map(repr, shared))})" if shared else ""
    raise ArgumentError(
        f"--group-by must be a column of the table{told}, a file with one name per line, or the word files, where each "
        f"file is one person; got {given!r}."
    )


def _names(path: Path, count: int) -> np.ndarray:
    """Names from a file, one per line (.npy: one per entry); the first line may be a heading.

    Of one line more than records the first is left out only if it reads like a heading: were it a name, that of a
    record which was dropped elsewhere, all names would move on, and records would count as other persons'.
    """
    if path.suffix == ".npy":
        return read_points(path)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"--group-by must be a text file with one name per line; got {str(path)!r}.") from None
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) == count + 1 and _HEADING.fullmatch(lines[0]):
        lines = lines[1:]
    if len(lines) != count:
        raise ArgumentError(
            f"--group-by must name a person for each of the {count} records, one per line (below a heading such as "
            f"person, if any); it has {len(lines)} lines."
        )
    return np.array(lines)


def sample_from(path: Path | None, records: Records, place: Place, manifold: Manifold) -> np.ndarray | None:
    """A public sample, from another file than the records, read and scaled as they are."""
    if path is None:
        return None
    if any(each.resolve() == path.resolve() for each in records.files):
        raise ArgumentError(
            "--public-sample must be PUBLIC records, other than those to be released: this would leak them."
        )
    loaded = load(replace(records, files=[path], group_by=None), place)
    if loaded.manifold != manifold:
        raise ArgumentError(
            f"--public-sample holds points of {loaded.manifold!r}, and the records are of {manifold!r}."
        )
    return np.asarray(loaded.points)


def ball_from(place: Place, manifold: Manifold) -> Ball:
    """The public ball that the options describe, in exactly one of six ways.

    On a map of m copies, the centre and the radius are those of one copy: the ball of the map has √m times the radius.
    """
    ways = {
        "--radius (with --center)": place.radius is not None,
        "--eigenvalues": place.eigenvalues is not None,
        "--bounds": place.bounds is not None,
        "--positive-orthant": place.positive_orthant,
        "--reference": place.reference is not None,
        "--typical": place.typical is not None,
    }
    given = [name for name, taken in ways.items() if taken]
    if len(given) != 1:
        listed = ", ".join(ways)
        told = "none was" if not given else f"{' and '.join(given)} were"
        raise ArgumentError(
            f"give the public ball in one way of {listed}; {told} given. Choose it without the records."
        )
    if place.center is not None and place.radius is None and place.typical is None:
        raise ArgumentError(f"--center goes with --radius; {given[0]} brings its own centre. Leave one of them out.")
    if place.reference is not None or manifold.single is manifold:
        return _ball_of_one(place, manifold)
    one = _ball_of_one(place, manifold.single)
    center = np.broadcast_to(np.asarray(one.center), manifold.point_shape).copy()
    return Ball(manifold, center, one.radius * math.sqrt(manifold.copies))


def _ball_of_one(place: Place, manifold: Manifold) -> Ball:
    if place.eigenvalues is not None:
        return Ball.from_eigenvalues(manifold, *place.eigenvalues)
    if place.bounds is not None:
        table = read_points(place.bounds)
        if table.ndim != 2 or len(table) != 2:
            raise ArgumentError(f"--bounds must be a file of two rows, lower and upper; it has shape {table.shape}.")
        return Ball.from_bounds(manifold, *table)
    if place.typical is not None:
        kind, _, unit = place.typical.partition(":")
        allowed = [f"{each.kind}:{each.spelled}".rstrip(":") for each in TYPICAL]
        if place.typical.translate(SPELLINGS) not in allowed:
            raise ArgumentError(f"--typical must be one of {', '.join(allowed)}; got {place.typical!r}.")
        center = None if place.center is None else _center_from(place.center, manifold)
        return Ball.typical(manifold, kind, unit=unit or None, center=center)
    if place.positive_orthant:
        return Ball.positive_orthant(manifold)
    if place.reference is not None:
        return Ball.from_sample(manifold, read_points(place.reference, manifold=manifold))
    center = _center_from(place.center, manifold)
    try:
        manifold.as_points(center, "--center")
    except ArgumentError as problem:
        raise ArgumentError(f"--center is no point: {problem.message}") from None
    try:
        return Ball(manifold, center, 0.0 if place.radius is None else place.radius)
    except NotOnManifoldError:
        raise NotOnManifoldError(
            f"--center is no point of {manifold!r}, whose points are {manifold.words}. Check its numbers "
            "and the file it came from."
        ) from None


def _center_from(text: str | None, manifold: Manifold) -> Any:
    natural = manifold.natural_center
    if text is None or text in ("identity", "origin"):
        if natural is not None:
            return natural
        wanted = "--center is needed" if text is None else f"--center {text} names no point here"
        raise ArgumentError(
            f'{wanted}: {manifold!r} has no middle of its own. Give numbers such as "0,0,1", or a file with one '
            "point, from public knowledge."
        )
    multiple = re.fullmatch(rf"({_NUMBER})\s*\*\s*I", text.strip())
    if multiple:
        if natural is None or not manifold.has_units or np.ndim(natural) != 2:
            raise ArgumentError(f"--center {text!r} is a matrix; {manifold!r} has no such points.")
        return float(multiple[1]) * np.asarray(natural)
    if re.fullmatch(rf"\s*{_NUMBER}(\s*,\s*{_NUMBER})*\s*", text):
        return _in_shape(manifold.typed_point(np.array([float(number) for number in text.split(",")])), manifold)
    if not Path(text).is_file():
        raise ArgumentError(
            f'--center must be identity, origin, a multiple such as "4.5e-4*I", numbers such as "0,0,1", or a file; '
            f"got {text!r}."
        )
    return _in_shape(read_points(text), manifold)


def _in_shape(array: np.ndarray, manifold: Manifold) -> np.ndarray:
    """Numbers as a record has them, where there are as many."""
    shape = manifold.record_shapes[-1]
    return array.reshape(shape) if array.dtype.kind != "c" and array.size == math.prod(shape) else array.squeeze()


def budget_from(budgeting: Budgeting) -> Budget:
    """The budget of exactly one kind."""
    kinds = {"--epsilon": budgeting.epsilon, "--mu": budgeting.mu, "--rho": budgeting.rho}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) != 1:
        told = "none was given" if not given else f"{' and '.join(given)} were given"
        raise ArgumentError(f"give the budget in one way: --epsilon (with or without --delta), --mu or --rho; {told}.")
    if budgeting.delta is not None and budgeting.epsilon is None:
        raise ArgumentError(f"--delta goes with --epsilon; {given[0]} needs none. Leave one of them out.")
    return budget_of(**asdict(budgeting))
