"""Records from files, as points of a manifold. Nothing read here is ever printed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import positive_number
from dpmanifolds.cli._options import Place, Records
from dpmanifolds.cli._places import manifold_from
from dpmanifolds.cli._show import progress
from dpmanifolds.data import read_affine, read_nifti, read_points, read_tensors, read_tps, write_nifti
from dpmanifolds.data.nifti_space import columns_from_matrices
from dpmanifolds.data.readers import as_records
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import SPD, Euclidean, Manifold, PlanarShapes, Power
from dpmanifolds.manifolds.spd import SPDBase

__all__ = ["Loaded", "load", "persons"]


@dataclass(frozen=True, eq=False)
class Loaded:
    """The records, where they live, and how to write a point of theirs back as a map."""

    points: np.ndarray
    manifold: Manifold
    kind: str
    """What one record is: "person", or "voxel" for a single tensor map."""
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


def load(records: Records, place: Place) -> Loaded:
    """Read the files, and tell the manifold where they say it themselves."""
    for path in records.files:
        if not path.is_file():
            raise ArgumentError(f"there is no file {str(path)!r}. Check the spelling and the folder.")
    names = [path.name.lower() for path in records.files]
    scale = positive_number("--unit-scale", records.unit_scale)
    if all(name.endswith((".nii", ".nii.gz")) for name in names):
        loaded = _tensors(records, place)
    elif all(name.endswith(".tps") for name in names) and place.manifold is None:
        parts = [read_tps(path, missing=records.missing).landmarks for path in records.files]
        space = PlanarShapes(parts[0].shape[1])
        loaded = Loaded(_joined([np.asarray(space.as_points(part)) for part in parts]), space, "person")
    else:
        manifold = manifold_from(place.manifold, place.metric)
        loaded = Loaded(_joined(list(_tables(records, manifold))), manifold, "person")
    return loaded if scale == 1.0 else _scaled(loaded, scale)


def _tables(records: Records, manifold: Manifold) -> Iterable[np.ndarray]:
    for path in progress(records.files, "Reading"):
        array = read_points(
            path,
            key=records.key,
            layout=records.layout,
            record_axis=records.record_axis,
            mask=records.mask,
            missing=records.missing,
        )
        if isinstance(manifold, SPDBase) and array.ndim == 2 and array.shape[1] == manifold.dim > 1:
            raise ArgumentError(
                f"{path.name} has {array.shape[1]} columns, a triangle of a {manifold.k}×{manifold.k} matrix: pass "
                "--layout upper (xx,xy,xz,yy,yz,zz) or lower (xx,xy,yy,xz,yz,zz)."
            )
        yield as_records(array, manifold)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    if len({part.shape[1:] for part in parts}) > 1:
        raise ArgumentError("files that are joined must hold records of one shape; these differ.")
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _scaled(loaded: Loaded, scale: float) -> Loaded:
    inner = loaded.manifold.manifold if isinstance(loaded.manifold, Power) else loaded.manifold
    if not isinstance(inner, (SPDBase, Euclidean)):
        raise ArgumentError(f"--unit-scale is for spd and euclidean; points of {inner!r} have no unit. Leave it out.")
    note = f"Records were multiplied by {scale:g} (a public unit); the value is in that unit."
    return replace(loaded, points=loaded.points * scale, notes=(*loaded.notes, note), scale=scale)


def _tensors(records: Records, place: Place) -> Loaded:
    """One map: voxels are records. Several: a map per person, all in one space."""
    # a ball of maps lets one voxel lie √m times as far from its centre: too ill-conditioned for the curved metric
    usual = "log-euclidean" if len(records.files) > 1 else None
    manifold = manifold_from(place.manifold or "spd:3", place.metric or usual)
    if manifold.point_shape != (3, 3) or not isinstance(manifold, SPDBase):
        raise ArgumentError(f"NIfTI files hold 3×3 tensors: --manifold spd:3, or leave it out; got {manifold!r}.")
    if records.layout is None:
        raise ArgumentError(
            "tensors need --layout upper (xx,xy,xz,yy,yz,zz; FSL), lower (xx,xy,yy,xz,yz,zz; the NIfTI standard, ANTs) "
            "or full."
        )
    if len(records.files) == 1:
        points = read_tensors(records.files[0], layout=records.layout, mask=records.mask)
        note = "One file was given: each voxel is a record, and what is protected is a voxel, not a person."
        return Loaded(points, manifold, "voxel", (note,))
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
    space = Power(SPD(3, metric=manifold.metric), len(images[0]))
    return Loaded(np.stack(images), space, "person", volume=_volume(records, mask, affines[0]))


def _volume(records: Records, mask: np.ndarray | None, affine: np.ndarray) -> Volume:
    shape = read_nifti(records.files[0]).shape[:3]
    kept = np.ones(math.prod(shape), dtype=bool) if mask is None else mask.reshape(-1) != 0
    return Volume(shape, kept, affine, records.layout or "full")


def persons(path: Path | None, count: int) -> Any:
    """Names from a file, one per line (.npy: one per entry); the first line may be a heading."""
    if path is None:
        return None
    if path.suffix == ".npy":
        return read_points(path)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"--group-by must be a text file with one name per line; got {str(path)!r}.") from None
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) == count + 1:
        lines = lines[1:]
    if len(lines) != count:
        raise ArgumentError(
            f"--group-by must name a person for each of the {count} records, one per line; it has {len(lines)} lines."
        )
    return np.array(lines)
