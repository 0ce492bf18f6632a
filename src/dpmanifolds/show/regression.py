"""A geodesic regression for people: one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np

from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import GeodesicRegression
from dpmanifolds.show.html import figure, list_cards, make_page, paragraph, section, seed_warning, warning
from dpmanifolds.show.plots.regression import caption_regression, plot_regression
from dpmanifolds.show.plots.release import svg_of
from dpmanifolds.show.words import percent


def regression_html(fit: GeodesicRegression, names: Sequence[str] | None = None) -> str:
    """How records change with covariates of these names, with a picture for each, promises and assumptions, as HTML.

    The page asks for nothing from outside, and holds the fit and what follows from it, nothing else.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import regression_html
    >>> age, ball = np.linspace(20, 80, 400), dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> X = dpm.SPD(2).random_point(400, rng=0)
    >>> fit = dpm.private_geodesic_regression(X, age, ball, dpm.GaussianDP(1.0), covariate_bounds=(20, 80))
    >>> page = regression_html(fit, ["age"])
    >>> page.startswith("<!doctype html>"), "Grey: at age = 20." in page
    (True, True)
    """
    if not isinstance(fit, GeodesicRegression):
        raise ArgumentError(f"fit must be a GeodesicRegression; got {type(fit).__name__}.")
    names = [f"covariate {number + 1}" for number in range(len(fit.slopes))] if names is None else list(names)
    if len(names) != len(fit.slopes):
        raise ArgumentError(f"must be {len(fit.slopes)}, one for each covariate; got {len(names)}.", argument="names")
    unit = fit.guarantee.unit
    title = f"How {fit.n} {unit}s change with {' and '.join(names)}"
    header = (
        f"<header><h1>{escape(title)}</h1><p class='lead'>A private geodesic regression of "
        f"{escape(fit.manifold.words)}, made with dpmanifolds {escape(fit.releases[0].version)}. This page may be "
        "shown to whom the release may be shown: it holds nothing else about the records.</p></header>"
    )
    pictures = [
        figure(svg_of(partial(plot_regression, fit, covariate=number)), caption_regression(fit, name, number))
        for number, name in enumerate(names)
    ]
    told = "".join(paragraph(": ".join(row)) for row in describe_regression(fit, names))
    promise = paragraph(f"{fit.budget.in_words()}, {fit.guarantee.neighbours}; covariates belong to their {unit}.")
    return make_page(
        title,
        (
            header,
            seed_warning(reproducible=fit.reproducible),
            warning("Do not rely on regions.", fit.caution),
            _cards(fit, names),
            *pictures,
            section("How it changes", told),
            section("The promise", promise),
        ),
    )


def describe_regression(fit: GeodesicRegression, names: Sequence[str]) -> list[tuple[str, str]]:
    """Each slope with its region, what has to be true for it, and how much of the spread the fit takes away."""
    region = fit.slope_region()
    lengths, middles = np.linalg.norm(fit.slopes, axis=1), np.linalg.norm(region.slopes, axis=1)
    rows = [
        (name, f"{length:.4g} for each unit; 95 % region: within {radius:.4g} of one of {middle:.4g}, {_place(clear)}")
        for name, length, middle, radius, clear in zip(
            names, lengths, middles, region.radii, region.excludes_zero, strict=True
        )
    ]
    explained = "noise hides how far records are off"
    if fit.residual_spread > 0:
        explained = f"{percent(fit.r_squared)} of the spread; records are {fit.residual_spread:.4g} off"
    return [*rows, ("region", fit.assumption), ("explained", explained)]


def _place(clear: bool) -> str:
    return "zero lies outside" if clear else "zero lies inside"


def _cards(fit: GeodesicRegression, names: Sequence[str]) -> str:
    region = fit.slope_region()
    middles = np.linalg.norm(region.slopes, axis=1)
    slopes = [
        (
            f"change with {name}",
            f"{max(middle - radius, 0.0):.3g} to {middle + radius:.3g}",
            f"for each unit, with 95 % confidence: {_place(clear)}",
        )
        for name, middle, radius, clear in zip(names, middles, region.radii, region.excludes_zero, strict=True)
    ]
    attacker = f"≤ {percent(fit.guarantee.best_guess)}"
    return list_cards(
        (
            *slopes,
            ("promise", fit.budget.in_words(), f"per {fit.guarantee.unit}"),
            ("an attacker guesses right", attacker, "of two equally likely values"),
        )
    )
