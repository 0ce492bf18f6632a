"""Landmarks from TPS files, as tpsDig and its relatives write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import choice, positive_integer
from dpmanifolds.data._files import DEFAULT_LIMIT, checked_path, decoding, read_all
from dpmanifolds.errors import ArgumentError

_NOT_A_NUMBER = {"na", "nan", "n/a"}


@dataclass(frozen=True, eq=False)
class TpsSpecimens:
    """What a TPS file says about its specimens; private, as any record is.

    >>> import numpy as np
    >>> from dpmanifolds.data import TpsSpecimens
    >>> landmarks = np.array([[[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]]])
    >>> wing = TpsSpecimens(landmarks, ("first",), ("a.jpg",), np.array([0.01]))
    >>> wing.landmarks.shape, (wing.landmarks * wing.scales[:, None, None]).max().item()  # in the unit of the scale
    ((1, 3, 2), 0.01)
    """

    landmarks: np.ndarray
    """Coordinates (n, k, 2) as digitised, in pixels as a rule; landmarks marked NA are NaN."""
    identifiers: tuple[str, ...]
    """The ID lines, "" where there is none."""
    images: tuple[str, ...]
    """The IMAGE lines, "" where there is none."""
    scales: np.ndarray
    """Length of a unit of the coordinates, NaN where the file gives none. Shapes do not depend on it."""


def read_tps(path: Any, *, missing: str = "raise", max_bytes: int = DEFAULT_LIMIT) -> TpsSpecimens:
    r"""The landmarks of a TPS file; outlines (CURVES) and comments are skipped.

    Specimens without landmarks (LM=0) are refused; missing="drop" leaves them out, so that n is the number of the
    others. Files with landmarks in space (LM3) are refused, and so are specimens with different numbers of landmarks.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpmanifolds.data import read_tps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "wings.tps"
    ...     _ = path.write_text("LM=3\n0 0\n1 0\n0.3 0.8\nID=first\nLM=3\n0 0\n1 0\n0.2 0.9\nID=second\n")
    ...     read_tps(path).identifiers
    ('first', 'second')
    """
    choice("missing", missing, ("raise", "drop"))
    limit = positive_integer("max_bytes", max_bytes)
    found = checked_path(path, limit)
    with decoding(found, "a TPS file"):
        return _collected(list(_specimens(read_all(found, limit))), missing, found)


@dataclass
class _Specimen:
    expected: int
    points: list[tuple[float, float]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    outline_points: int = 0

    def take_label(self, name: str, value: str) -> None:
        self.labels[name] = value
        if name == "POINTS":
            self.outline_points = int(value)

    def take_numbers(self, line: str) -> None:
        if self.outline_points > 0:
            self.outline_points -= 1
        elif len(self.points) < self.expected:
            self.points.append(_point(line))
        else:
            raise ArgumentError("the TPS file has a line of numbers that belongs to no landmark.")


def _specimens(content: bytes) -> Iterator[_Specimen]:
    specimen: _Specimen | None = None
    # latin-1 reads any byte: old files keep accents of some code page in their paths
    for raw in re.split("\r\n|\r|\n", content.decode("latin-1")):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if equals and name.upper() == "LM":
            if specimen is not None:
                yield specimen
            specimen = _Specimen(int(value))
        elif equals and name.upper() == "LM3":
            raise ArgumentError("the TPS file holds landmarks in three dimensions (LM3); planar ones (LM) are needed.")
        elif specimen is None:
            raise ArgumentError("the TPS file must begin with a line LM=number.")
        elif equals:
            specimen.take_label(name.upper(), value)
        else:
            specimen.take_numbers(line)
    if specimen is not None:
        yield specimen


def _point(line: str) -> tuple[float, float]:
    numbers = [
        float("nan") if word.lower() in _NOT_A_NUMBER else float(word.replace(",", ".")) for word in line.split()
    ]
    x, y = numbers
    return x, y


def _collected(specimens: list[_Specimen], missing: str, path: Path) -> TpsSpecimens:
    if any(len(each.points) != each.expected for each in specimens):
        raise ArgumentError(f"{path.name}: a specimen has fewer landmarks than its line LM=number says.")
    kept = [each for each in specimens if each.points]
    if len(kept) < len(specimens) and missing == "raise":
        raise ArgumentError(
            f"{path.name}: a specimen has no landmarks (LM=0). Digitise or delete it, or pass missing='drop'."
        )
    if not kept:
        raise ArgumentError(f"{path.name} holds no landmarks.")
    if len({each.expected for each in kept}) > 1:
        raise ArgumentError(f"{path.name}: all specimens must have the same number of landmarks.")
    return TpsSpecimens(
        landmarks=np.array([each.points for each in kept]),
        identifiers=tuple(each.labels.get("ID", "") for each in kept),
        images=tuple(each.labels.get("IMAGE", "") for each in kept),
        scales=np.array([float(each.labels.get("SCALE", "nan").replace(",", ".")) for each in kept]),
    )
