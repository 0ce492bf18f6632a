"""A geodesic regression as the picture that suits its manifold: where it begins and ends, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifolds._points import host
from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import GeodesicRegression
from dpmanifolds.show.plots._axes import directions
from dpmanifolds.show.plots.difference import PICTURES, draw_change, draw_coordinates


def plot_regression(fit: GeodesicRegression, *, covariate: int = 0, ax: Any = None) -> Any:
    """The fit at the low bound of a covariate (grey) and at the high one (blue), others in the middle of theirs.

    Orange is where the blue one lies for the other slopes of their 95 % region, seen from the released middle. Slopes
    are those before they were shrunk, which are the middle of that region. All of it is computed from the fit.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show.plots import plot_regression
    >>> age, ball = np.linspace(20, 80, 400), dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X = dpm.SPD(2).random_point(400, rng=0)
    >>> fit = dpm.private_geodesic_regression(X, age, ball, dpm.PureDP(1.0), covariate_bounds=(20, 80))
    >>> plot_regression(fit).get_aspect()
    1.0
    """
    if not isinstance(fit, GeodesicRegression):
        raise ArgumentError(f"fit must be a GeodesicRegression; got {type(fit).__name__}.")
    if covariate not in range(len(fit.slopes)):
        raise ArgumentError(
            f"must be a number from 0 to {len(fit.slopes) - 1}; got {covariate!r}.", argument="covariate"
        )
    region, space, base = fit.slope_region(), fit.manifold, host(fit.base)
    half = float(np.diff(fit.covariate_bounds[covariate])[0]) / 2
    step, reach = half * region.slopes[covariate], half * float(region.radii[covariate])
    if space.picture not in PICTURES:
        return draw_coordinates(2 * step, np.full(step.size, 2 * reach), "highest less lowest", ax)
    first, second = (space.exp_coordinates(base, way) for way in (-step, step))
    edge = lambda count: space.exp_coordinates(base, step + reach * directions(space.dim, count))  # noqa: E731
    return draw_change(space, first, second, edge, reach, ax)


def caption_regression(fit: GeodesicRegression, name: str, covariate: int = 0) -> str:
    """What the picture shows, in a sentence or two."""
    low, high = fit.covariate_bounds[covariate].tolist()
    others = " Other covariates are in the middle of their bounds." if len(fit.slopes) > 1 else ""
    if fit.manifold.picture not in PICTURES:
        return (
            f"Blue: how far coordinates at the base go while {name} goes from {low:g} to {high:g}, by the slope in the "
            f"middle of its 95 % region. Orange: what that region leaves of each. Grey: no change.{others}"
        )
    return (
        f"Grey: at {name} = {low:g}. Blue: at {high:g}, by the slope in the middle of its 95 % region. Orange: where "
        f"blue lies for the other slopes of that region, from the same middle.{others}"
    )
