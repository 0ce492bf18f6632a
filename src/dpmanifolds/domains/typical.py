"""What is publicly known about common kinds of data: a first ball, with its source.

>>> from dpmanifolds.domains.typical import TYPICAL
>>> sorted({each.kind for each in TYPICAL})
['composition', 'correlation', 'diffusion-tensor', 'eeg', 'landmark-shape']
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.errors import ArgumentError
from dpmanifolds.manifolds import Manifold

SPELLINGS = str.maketrans({"²": "2", "µ": "u", "μ": "u"})


@dataclass(frozen=True)
class Typical:
    """A range of eigenvalues in a unit, or a radius around a centre that the user has."""

    kind: str
    unit: str
    source: str
    eigenvalues: tuple[float, float] | None = None
    """Up to infinity: to what the size of the matrix allows."""
    radius: float | None = None
    space: str = "spd"
    """What the manifold is called where it is typed."""

    def holds(self, eigenvalue: float) -> bool:
        """Whether eigenvalues of this size are usual."""
        return self.eigenvalues is not None and self.eigenvalues[0] <= eigenvalue <= self.eigenvalues[1]

    @property
    def spelled(self) -> str:
        """As it may be typed: mm2/s for mm²/s."""
        return self.unit.translate(SPELLINGS)


_WATER = (
    "free water at 37 °C diffuses at 3.0e−3 mm²/s and tissue more slowly (Le Bihan et al. 2001, J. Magn. Reson. "
    "Imaging 13:534; eigenvalues in the brain: Pierpaoli et al. 1996, Radiology 201:637)"
)
_SCALP = (
    "amplitudes of scalp EEG are 1 to 100 µV (Niedermeyer and Lopes da Silva, Electroencephalography), so that powers "
    "of full-rank recordings are 1 to 10,000 µV²"
)
TYPICAL = (
    Typical("diffusion-tensor", "mm²/s", _WATER, (1e-4, 3e-3)),
    Typical("diffusion-tensor", "µm²/ms", _WATER, (0.1, 3.0)),
    Typical("eeg", "µV²", _SCALP, (1.0, 1e4)),
    Typical("eeg", "V²", _SCALP, (1e-12, 1e-8)),
    Typical(
        "correlation",
        "",
        "arithmetic: (1 − a)·C + a·I with a = 0.1 of a k×k correlation matrix C has eigenvalues from 0.1 to "
        "0.1 + 0.9·k",
        (0.1, math.inf),
    ),
    Typical(
        "landmark-shape",
        "",
        "shapes of one species lie within 0.2 of a template in Procrustes distance (Dryden and Mardia 2016, "
        "Statistical Shape Analysis)",
        radius=0.2,
        space="shapes",
    ),
    Typical(
        "composition",
        "",
        "arithmetic: square roots of shares lie in the positive orthant of the sphere",
        space="sphere",
    ),
)
_KINDS = tuple(sorted({each.kind for each in TYPICAL}))


def find_typical(kind: Any, unit: Any = None) -> Typical:
    """The entry of a kind and unit; the unit may be left out where there is one only."""
    found = [each for each in TYPICAL if each.kind == choice("kind", kind, _KINDS)]
    if len(found) == 1 and unit is None:
        return found[0]
    named = [each for each in found if isinstance(unit, str) and each.spelled == unit.translate(SPELLINGS)]
    if not named:
        units = " or ".join(each.unit or "none" for each in found)
        raise ArgumentError(f"of {kind} must be {units}; got {unit!r}.", argument="unit")
    return named[0]


def guess_unit(manifold: Manifold, center: Any, points: Any) -> str:
    """What unit matrices look like that lie far from the centre; empty where nothing can be said.

    >>> import numpy as np
    >>> from dpmanifolds import SPD
    >>> guess_unit(SPD(3), np.eye(3), 7e-4 * np.ones((5, 1, 1)) * np.eye(3))
    'They are about 0.0007 times the centre; numbers of that size are usual for diffusion-tensor in mm²/s.'
    """
    if not manifold.single.has_units or manifold.natural_center is None or np.ndim(points) < 3 or not len(points):
        return ""
    middle = float(np.median(np.trace(points, axis1=-2, axis2=-1))) / points.shape[-1]
    ratio = middle * center.shape[-1] / float(np.trace(np.reshape(center, (-1, *center.shape[-2:]))[0]))
    if 0.1 < ratio < 10.0:
        return ""
    likely = [f"{each.kind} in {each.unit}" for each in TYPICAL if each.unit and each.holds(middle)]
    told = f"; numbers of that size are usual for {' or '.join(likely)}" if likely else ""
    return f"They are about {ratio:.1g} times the centre{told}."
