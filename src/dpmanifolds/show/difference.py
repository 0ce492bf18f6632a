"""The difference of two groups for people: one self-contained HTML page."""

from __future__ import annotations

from functools import partial
from html import escape

from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import Difference
from dpmanifolds.show.html import figure, list_cards, make_page, paragraph, section, seed_warning
from dpmanifolds.show.plots.difference import caption_difference, plot_difference
from dpmanifolds.show.plots.release import svg_of
from dpmanifolds.show.words import percent


def difference_html(difference: Difference) -> str:
    """How large the difference is, with a picture, what is promised and what is assumed, as HTML.

    The page asks for nothing from outside, and holds both releases and what follows from them, nothing else.

    >>> import numpy as np
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import difference_html
    >>> ball = dpm.Ball(dpm.SPD(2), np.eye(2), radius=2.0)
    >>> x, y = dpm.SPD(2).random_point(400, rng=2), dpm.SPD(2).random_point(300, rng=3)
    >>> page = difference_html(dpm.private_difference(x, y, ball, dpm.GaussianDP(1.0), rng=0))
    >>> page.startswith("<!doctype html>"), "Zero is inside" in page
    (True, True)
    """
    if not isinstance(difference, Difference):
        raise ArgumentError(f"difference must be a Difference; got {type(difference).__name__}.")
    first, second = difference.releases
    title = f"The private difference between {first.n} and {second.n} records"
    words = {head: body for head, *body in map(str.splitlines, difference.summary().split("\n\n"))}
    told = [section(head, "".join(paragraph(line.strip()) for line in body)) for head, body in words.items()]
    header = (
        f"<header><h1>{escape(title)}</h1><p class='lead'>Two groups of {escape(first.manifold.words)}, made with "
        f"dpmanifolds {escape(first.version)}. This page may be shown to whom the releases may be shown: it holds "
        "nothing else about the records.</p></header>"
    )
    picture = figure(svg_of(partial(plot_difference, difference)), caption_difference(difference))
    seeded = seed_warning(reproducible=first.reproducible)
    return make_page(title, (header, seeded, _cards(difference), picture, *told))


def _cards(difference: Difference) -> str:
    low, high = difference.interval
    spent, promise = difference.budget.read(difference.guarantee), difference.guarantee
    return list_cards(
        (
            ("distance of the means", f"{difference.length:.4g}", "of the two released points"),
            (
                "of the populations' means",
                f"{low:.4g} to {high:.4g}",
                f"with {100 * difference.level:g} % confidence; zero is "
                f"{'inside' if difference.zero_inside else 'outside'} of the region",
            ),
            ("promise", spent.in_words(), f"per {promise.unit}"),
            ("an attacker guesses right", f"≤ {percent(promise.best_guess)}", "of two equally likely values"),
        )
    )
