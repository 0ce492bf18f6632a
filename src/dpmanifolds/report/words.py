"""Manifolds and shares in words."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from dpmanifolds.manifolds import (
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    Product,
    SpecialOrthogonal,
    Sphere,
    Stiefel,
)
from dpmanifolds.manifolds.spd import SPDBase

__all__ = ["percent", "points_in_words"]


def percent(share: float) -> str:
    """With one decimal.

    >>> percent(0.7311)
    '73.1 %'
    """
    return f"{100 * share:.1f} %"


@singledispatch
def points_in_words(manifold: Manifold) -> str:
    """What points of this manifold are called where they are used.

    >>> from dpmanifolds import SPD, Power
    >>> points_in_words(Power(SPD(3), 10))
    'maps of 10 positive definite 3×3 matrices (affine-invariant metric)'
    """
    return f"points of {manifold!r}"


@points_in_words.register
def _(manifold: SPDBase) -> str:
    return f"positive definite {manifold.k}×{manifold.k} matrices ({manifold.metric} metric)"


@points_in_words.register
def _(manifold: Sphere) -> str:
    return f"directions in {manifold.dim + 1} dimensions"


@points_in_words.register
def _(manifold: Hyperbolic) -> str:
    return f"points of {manifold.dim}-dimensional hyperbolic space"


@points_in_words.register
def _(manifold: Euclidean) -> str:
    return f"vectors of {manifold.dim} numbers"


@points_in_words.register
def _(manifold: PlanarShapes) -> str:
    return f"planar shapes of {manifold.k} landmarks"


@points_in_words.register
def _(manifold: SpecialOrthogonal) -> str:
    return f"rotations in {manifold.n} dimensions"


@points_in_words.register(Grassmann)
@points_in_words.register(Stiefel)
def _(manifold: Any) -> str:
    kind = "subspaces" if isinstance(manifold, Grassmann) else "frames"
    return f"{manifold.p}-dimensional {kind} of {manifold.n}-dimensional space"


@points_in_words.register
def _(manifold: Power) -> str:
    return f"maps of {manifold.m} {points_in_words(manifold.manifold)}"


@points_in_words.register
def _(manifold: Product) -> str:
    return "combinations of " + " and ".join(points_in_words(factor) for factor in manifold.factors)
