"""Centres, balls and budgets from what was typed."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds.cli._options import Budgeting, Place
from dpmanifolds.data import read_points
from dpmanifolds.domains import Ball
from dpmanifolds.errors import ArgumentError, NotOnManifoldError
from dpmanifolds.manifolds import Manifold
from dpmanifolds.privacy.budget import Budget, budget_of

__all__ = ["ball_from", "budget_from"]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


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
        return manifold.typed_point(np.array([float(number) for number in text.split(",")]))
    if not Path(text).is_file():
        raise ArgumentError(
            f'--center must be identity, origin, a multiple such as "4.5e-4*I", numbers such as "0,0,1", or a file; '
            f"got {text!r}."
        )
    array = read_points(text)
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
