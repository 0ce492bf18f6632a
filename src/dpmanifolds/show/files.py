"""A release as files: release.json (everything), release.npz (the arrays) and report.html (for people).

>>> import tempfile
>>> import numpy as np
>>> import dpmanifolds as dpm
>>> from dpmanifolds.show import load_release, save_release
>>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], radius=5.0)
>>> release = dpm.private_mean(np.random.default_rng(0).normal(size=(500, 2)), ball, dpm.PureDP(1.0))
>>> with tempfile.TemporaryDirectory() as folder:
...     paths = save_release(release, folder)
...     load_release(paths["json"]) == release, sorted(path.name for path in paths.values())
(True, ['release.json', 'release.npz', 'report.html'])
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._points import has_parts, leaves
from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import Release
from dpmanifolds.show.report import write_report

__all__ = ["arrays_of", "load_release", "new_files", "save_release"]

_NAMES = {"json": "release.json", "npz": "release.npz", "report": "report.html"}
_MOST_BYTES = 1 << 28


def new_files(folder: Any, *, overwrite: bool = False) -> dict[str, Path]:
    """The paths that `save_release` would write, after making sure that nothing is lost: call it before spending."""
    place = Path(os.fspath(folder))
    paths = {kind: place / name for kind, name in _NAMES.items()}
    if place.exists() and not place.is_dir():
        raise ArgumentError(f"the folder for the release must be a folder; {str(place)!r} is a file.")
    there = [path.name for path in paths.values() if path.exists()]
    if there and not overwrite:
        raise ArgumentError(
            f"{str(place)!r} holds {', '.join(there)} of an earlier release, which would be lost. Name another "
            "folder, or allow overwriting (overwrite=True, --overwrite)."
        )
    there_now = next(each for each in (place, *place.absolute().parents) if each.exists())
    if not (there_now.is_dir() and os.access(there_now, os.W_OK)):
        raise ArgumentError(f"the folder {str(place)!r} cannot be written to; name another.")
    return paths


def save_release(
    release: Release, folder: Any, *, notes: Sequence[str] = (), overwrite: bool = False
) -> dict[str, Path]:
    """Write the release into a folder, as "json", "npz" and "report"; earlier files there are kept unless told.

    The .npz holds `value` (`value_0`, `value_1`, … for a product of manifolds), `center`, `radius` and, where
    they are known, the noisy `coordinates`, as plain arrays.
    `notes` are public remarks for the report, such as the unit of the value.

    >>> import tempfile
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import save_release
    >>> records = dpm.Sphere(2).random_point(100, rng=0)
    >>> release = dpm.private_mean(records, dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5), dpm.PureDP(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in save_release(release, folder).values()]
    ['release.json', 'release.npz', 'report.html']
    """
    paths = new_files(folder, overwrite=overwrite)
    paths["json"].parent.mkdir(parents=True, exist_ok=True)
    text = release.to_json(indent=1)
    paths["json"].write_text(text + "\n", encoding="utf-8")
    with paths["npz"].open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays_of(release))
    write_report(release, paths["report"], notes=notes, overwrite=True)
    return paths


def arrays_of(release: Release) -> dict[str, np.ndarray]:
    """The arrays of a release by name."""
    return {
        **_named("value", release.value),
        **_named("center", release.domain.center),
        "radius": np.asarray(release.domain.radius),
        **({} if release.coordinates is None else {"coordinates": np.asarray(release.coordinates)}),
    }


def _named(name: str, point: Any) -> dict[str, np.ndarray]:
    parts = [np.asarray(part) for part in leaves(point)]
    return {f"{name}_{index}": part for index, part in enumerate(parts)} if has_parts(point) else {name: parts[0]}


def load_release(path: Any) -> Release:
    """The release in a release.json file, or in the folder that holds one.

    >>> import tempfile
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import load_release, save_release
    >>> records = dpm.Sphere(2).random_point(100, rng=0)
    >>> release = dpm.private_mean(records, dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5), dpm.PureDP(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save_release(release, folder)
    ...     load_release(folder) == release
    True
    """
    try:
        found = Path(os.fspath(path))
        found = found / _NAMES["json"] if found.is_dir() else found
        if found.stat().st_size > _MOST_BYTES:
            raise ArgumentError(f"{str(path)!r} is too large for a release.")
        text = found.read_text(encoding="utf-8")
    except (TypeError, OSError, UnicodeDecodeError):
        raise ArgumentError(
            f"a release is read from a release.json file, or from the folder that holds one; got {str(path)!r}."
        ) from None
    try:
        return Release.from_json(text)
    except ArgumentError as problem:
        raise ArgumentError(f"{found.name} holds no release of dpmanifolds: {problem}") from None
