"""Differential privacy for data on curved spaces.

>>> import dpmanifolds as dpm
>>> X = dpm.SPD(3).random_point(100, rng=0)
>>> dpm.frechet_mean(dpm.SPD(3), X).point.shape
(3, 3)
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "dpmanifolds.domains": ["Ball", "Domain", "validate"],
    "dpmanifolds.errors": [
        "ArgumentError",
        "ConvergenceError",
        "DPManifoldsError",
        "NotOnManifoldError",
        "PrivacyLeakWarning",
        "RadiusTooLargeError",
    ],
    "dpmanifolds.manifolds": [
        "SPD",
        "Euclidean",
        "Grassmann",
        "Hyperbolic",
        "Manifold",
        "PlanarShapes",
        "Power",
        "Product",
        "SpecialOrthogonal",
        "Sphere",
        "Stiefel",
    ],
    "dpmanifolds.statistics": ["frechet_mean", "frechet_median"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
