"""Manifolds, centres, balls and budgets from what was typed.

>>> from dpmanifolds.cli._places import manifold_from
>>> manifold_from("spd:3", "log-euclidean"), manifold_from("grassmann:5,2")
(SPD(3, metric='log-euclidean'), Grassmann(5, 2))
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds.cli._options import Budgeting, Place
from dpmanifolds.data import read_points
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Power,
    SpecialOrthogonal,
    Sphere,
)
from dpmanifolds.manifolds.spd import SPDBase
from dpmanifolds.privacy.budget import Budget, budget_of
from dpmanifolds.report.words import points_in_words
from dpmanifolds.statistics import ball_from_reference

__all__ = ["TYPED", "ball_from", "budget_from", "manifold_from"]

_FAMILIES: dict[str, tuple[Callable[..., Manifold], int]] = {
    "spd": (SPD, 1),
    "sphere": (Sphere, 1),
    "hyperbolic": (Hyperbolic, 1),
    "shapes": (PlanarShapes, 1),
    "euclidean": (Euclidean, 1),
    "rotations": (SpecialOrthogonal, 1),
    "grassmann": (Grassmann, 2),
}
TYPED = {family.__name__: name for name, (family, _) in _FAMILIES.items()}
"""What one types for a family of spaces, by the name it has in Python."""
_EXAMPLES = "spd:3, sphere:2, hyperbolic:2, shapes:12, euclidean:5, rotations:3 or grassmann:5,2"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def manifold_from(text: str | None, metric: str | None = None) -> Manifold:
    """The manifold of a description such as "spd:3"."""
    if text is None:
        raise ArgumentError(f"say where the records live: --manifold {_EXAMPLES}.")
    name, _, sizes = text.strip().lower().partition(":")
    family, count = _FAMILIES.get(name, (None, 0))
    numbers = sizes.split(",")
    if family is None or len(numbers) != count or not all(number.strip().isdecimal() for number in numbers):
        raise ArgumentError(f"--manifold must be one of {_EXAMPLES}, with your own sizes; got {text!r}.")
    if metric is not None:
        if name != "spd":
            raise ArgumentError(f"--metric is for spd; {name} has one metric only. Leave it out.")
        return SPD(int(numbers[0]), metric=metric)
    try:
        return family(*map(int, numbers))
    except ArgumentError as problem:
        raise ArgumentError(f"--manifold {text}: {problem}") from None


def ball_from(place: Place, manifold: Manifold) -> Ball:
    """The public ball that the options describe, in exactly one of five ways.

    On a map of m copies, the centre and the radius are those of one copy: the ball of the map has √m times the radius.
    """
    ways = {
        "--radius (with --center)": place.radius is not None,
        "--eigenvalues": place.eigenvalues is not None,
        "--bounds": place.bounds is not None,
        "--positive-orthant": place.positive_orthant,
        "--reference": place.reference is not None,
    }
    given = [name for name, taken in ways.items() if taken]
    if len(given) != 1:
        listed = ", ".join(ways)
        told = "none was" if not given else f"{' and '.join(given)} were"
        raise ArgumentError(
            f"give the public ball in one way of {listed}; {told} given. Choose it without the records."
        )
    if place.center is not None and place.radius is None:
        raise ArgumentError(f"--center goes with --radius; {given[0]} brings its own centre. Leave one of them out.")
    if isinstance(manifold, Power) and place.reference is None:
        one = _ball_of_one(place, manifold.manifold)
        center = np.broadcast_to(np.asarray(one.center), manifold.point_shape).copy()
        return Ball(manifold, center, one.radius * math.sqrt(manifold.m))
    return _ball_of_one(place, manifold)


def _ball_of_one(place: Place, manifold: Manifold) -> Ball:
    if place.eigenvalues is not None:
        return Ball.from_eigenvalues(manifold, *place.eigenvalues)
    if place.bounds is not None:
        table = read_points(place.bounds)
        if table.ndim != 2 or len(table) != 2:
            raise ArgumentError(f"--bounds must be a file of two rows, lower and upper; it has shape {table.shape}.")
        return Ball.from_bounds(manifold, *table)
    if place.positive_orthant:
        return Ball.positive_orthant(manifold)
    if place.reference is not None:
        return ball_from_reference(manifold, read_points(place.reference, manifold=manifold))
    center = _center_from(place.center, manifold)
    try:
        manifold.as_points(center, "--center")
    except ArgumentError as problem:
        raise ArgumentError(f"--center is no point: {problem.message}") from None
    try:
        return Ball(manifold, center, 0.0 if place.radius is None else place.radius)
    except NotOnManifoldError:
        raise NotOnManifoldError(
            f"--center is no point of {manifold!r}, whose points are {points_in_words(manifold)}. Check its numbers "
            "and the file it came from."
        ) from None


def _center_from(text: str | None, manifold: Manifold) -> Any:
    if text is None or text in ("identity", "origin"):
        return _natural_center(manifold, text)
    multiple = re.fullmatch(rf"({_NUMBER})\s*\*\s*I", text.strip())
    if multiple:
        if not isinstance(manifold, SPDBase):
            raise ArgumentError(f"--center {text!r} is a matrix; {manifold!r} has no such points.")
        return float(multiple[1]) * np.eye(manifold.k)
    if re.fullmatch(rf"\s*{_NUMBER}(\s*,\s*{_NUMBER})*\s*", text):
        numbers = np.array([float(number) for number in text.split(",")])
        # a direction, whatever its length
        length = float(np.linalg.norm(numbers))
        return numbers * (manifold.sphere_radius / length) if isinstance(manifold, Sphere) and length > 0 else numbers
    if not Path(text).is_file():
        raise ArgumentError(
            f'--center must be identity, origin, a multiple such as "4.5e-4*I", numbers such as "0,0,1", or a file; '
            f"got {text!r}."
        )
    array = read_points(text)
    shape = (manifold.k, 2) if isinstance(manifold, PlanarShapes) else manifold.point_shape
    return array.reshape(shape) if array.dtype.kind != "c" and array.size == math.prod(shape) else array.squeeze()


def _natural_center(manifold: Manifold, text: str | None) -> Any:
    """The identity matrix, or the origin, where a space has one."""
    if isinstance(manifold, SPDBase):
        return np.eye(manifold.k)
    if isinstance(manifold, SpecialOrthogonal):
        return np.eye(manifold.n)
    if isinstance(manifold, Euclidean):
        return np.zeros(manifold.dim)
    if isinstance(manifold, Hyperbolic):
        return manifold.origin
    wanted = "--center is needed" if text is None else f"--center {text} names no point here"
    raise ArgumentError(
        f'{wanted}: {manifold!r} has no middle of its own. Give numbers such as "0,0,1", or a file with one point, '
        "from public knowledge."
    )


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
