"""A release for people: one self-contained HTML page. For programs: release.json (everything), release.npz (arrays)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._points import has_parts, leaves
from dpmanifolds.errors import ArgumentError
from dpmanifolds.releases import Release
from dpmanifolds.show.html import figure, list_cards, make_page, paragraph, section, seed_warning, warning
from dpmanifolds.show.plots.release import caption_of, figure_svg
from dpmanifolds.show.words import percent

_LARGEST_TABLE = 12
_MOST_JSON = 200_000
_LEVEL = 0.9


def write_report(release: Release, path: Any, *, notes: Sequence[str] = (), overwrite: bool = False) -> Path:
    """Write `report_html` to a file; one that exists is kept unless `overwrite` is set.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import write_report
    >>> records = dpm.Sphere(2).random_point(100, rng=0)
    >>> release = dpm.private_mean(records, dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5), dpm.PureDP(1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(release, Path(folder) / "mean.html").name
    'mean.html'
    """
    place = Path(os.fspath(path))
    page = report_html(release, notes=notes)
    try:
        with place.open("w" if overwrite else "x", encoding="utf-8") as stream:
            stream.write(page)
    except FileExistsError:
        raise ArgumentError(f"{str(place)!r} exists; name another file, or allow overwriting.") from None
    except OSError as problem:
        raise ArgumentError(f"{str(place)!r} cannot be written: {problem.strerror}.") from None
    return place


def report_html(release: Release, *, notes: Sequence[str] = ()) -> str:
    """What was released, what is promised, how good it is, what it rests on and how to cite it, as HTML.

    The page asks for nothing from outside, follows the light or dark setting of the reader, and prints. It holds the
    release and what follows from it, nothing else. With matplotlib there is a figure. `notes` are public remarks.

    >>> import dpmanifolds as dpm
    >>> from dpmanifolds.show import report_html
    >>> records = dpm.Sphere(2).random_point(100, rng=0)
    >>> release = dpm.private_mean(records, dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], radius=0.5), dpm.PureDP(1.0))
    >>> page = report_html(release, notes=["Directions of the first eigenvector."])
    >>> page.startswith("<!doctype html>"), "first eigenvector" in page
    (True, True)
    """
    if not isinstance(release, Release):
        raise ArgumentError(f"release must be a Release; got {type(release).__name__}.")
    title = f"The private {release.statistic}{release.counted}"
    sections = (
        _header(release, title),
        seed_warning(reproducible=release.reproducible),
        _advisories(release),
        warning("Little is told.", release.noise_warning and f"{release.noise_warning}."),
        warning("Is this the right ball?", release.edge_warning and f"{release.edge_warning}."),
        _cards(release),
        section("What was released", _released(release, notes)),
        section("The promise", _promise(release)),
        section("How good it is", _accuracy(release)),
        section("What it rests on", _parameters(release)),
        section("How to cite", _citation(release)),
        _machine_readable(release),
    )
    return make_page(title, sections)


def _header(release: Release, title: str) -> str:
    return (
        f"<header><h1>{escape(title)}</h1>"
        f"<p class='lead'>A differentially private {escape(release.statistic)} of "
        f"{escape(release.manifold.words)}, made with dpmanifolds {escape(release.version)}. This page may "
        "be shown to whom the release may be shown: it holds nothing else about the records.</p></header>"
    )


def _advisories(release: Release) -> str:
    told = "".join(f"<li>{escape(text)}</li>" for text in release.advisories)
    if not told:
        return ""
    return (
        f"<div class='warning' role='alert'><strong>Known faults of version {escape(release.version)}.</strong>"
        f"<ul>{told}</ul></div>"
    )


def _cards(release: Release) -> str:
    error = release.expected_error
    shown = "not stated" if error is None else f"{error.mean:.4g}"
    below = "it depends on the records" if error is None else f"within {error.radius_90:.4g} in 90 % of releases"
    cards = (
        ("promise", release.spent.in_words(), f"per {release.guarantee.unit}"),
        (
            "an attacker guesses right",
            f"≤ {percent(release.guarantee.best_guess)}",
            "of two equally likely values; 50 % by a coin",
        ),
        ("expected error", shown, below),
    )
    return list_cards(cards)


def _released(release: Release, notes: Iterable[str]) -> str:
    parts = [paragraph(f"The private {release.statistic}{release.counted} on {release.manifold!r}.")]
    if release.stages:
        parts.append(paragraph(f"Stages before it: {len(release.stages)}; the promise covers all of them together."))
    parts += [paragraph(note) for note in notes]
    svg = figure_svg(release)
    parts.append(figure(svg, "" if svg is None else caption_of(release, _LEVEL)))
    parts.append(_value_table(release.value))
    return "\n".join(parts)


def _value_table(value: Any) -> str:
    if isinstance(value, float):
        return f"<p>Value: <strong>{value:.6g}</strong></p>"
    return "\n".join(map(_array_table, leaves(value)))


def _array_table(value: Any) -> str:
    array = np.asarray(value)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], axis=-1)
    if array.ndim == 1 and array.size > _LARGEST_TABLE:
        return paragraph(f"The value is a vector of {array.size} numbers; it is in release.npz.")
    if array.ndim > 2 or max(array.shape) > 2 * _LARGEST_TABLE:
        shape = " × ".join(map(str, array.shape))
        return paragraph(f"The value is an array of {shape} numbers; it is in release.npz.")
    rows = "".join(
        "<tr>" + "".join(f"<td>{number:.4g}</td>" for number in row) + "</tr>" for row in np.atleast_2d(array)
    )
    return f"<div class='scroll'><table class='value'><caption>The released value</caption>{rows}</table></div>"


def _promise(release: Release) -> str:
    unit, guess = release.guarantee.unit, release.guarantee.best_guess
    bars = (
        "<div class='bars' aria-hidden='true'>"
        "<span>by a coin</span><div class='bar'><div class='fill coin' style='width:50%'></div></div><span>50 %</span>"
        "<span>with this release</span><div class='bar'>"
        f"<div class='fill' style='width:{100 * guess:.2f}%'></div></div><span>{percent(guess)}</span></div>"
    )
    return (
        paragraph(
            f"Someone who knows everyone else's record, and wonders which of two values one {unit} has, guesses right "
            f"with a probability of at most {percent(guess)} after seeing this release. Without it: 50 %."
        )
        + bars
        + paragraph(
            "It holds whatever else that someone knows or will learn, and whatever is computed from the release."
        )
        + paragraph(
            f"In numbers: {release.spent.in_words()}, {release.guarantee.neighbours}. Releases about the same people "
            "add up; a ledger keeps the account."
        )
    )


def _accuracy(release: Release) -> str:
    from dpmanifolds.show.plots.release import known_region, reach_of

    text = f"Distance to the answer without privacy: {release.error_statement}."
    region = known_region(release, _LEVEL)
    parts = [paragraph(text), paragraph(release.clipping_statement)]
    if release.public is not None:
        parts.append(paragraph(str(release.public)))
    if region is not None and release.expected_error is None:
        how = {
            "coordinates": "measured in tangent coordinates at the public centre",
            "distance": "as a geodesic distance",
            "number": "as a difference",
        }[region.metric]
        parts.append(
            paragraph(
                f"With a probability of {100 * region.level:.0f} %, {region.about} is within {reach_of(region):.4g} of "
                f"the released one, {how}."
            )
        )
    if region is not None or release.expected_error is not None:
        parts.append(paragraph("This speaks of the noise, not of how well records stand for a population."))
    return "\n".join(parts)


def _parameters(release: Release) -> str:
    sensitivity = release.sensitivity
    rows = (
        ("Manifold", repr(release.manifold)),
        ("Domain (public)", repr(release.domain)),
        ("n (public)", "not used" if release.n is None else release.counted.removeprefix(" of ")),
        ("Budget asked for", repr(release.budget)),
        ("Budget spent", repr(release.spent)),
        ("Mechanism", f"{release.mechanism}: {release.reason}"),
        ("Theorem", release.theorem),
        (
            "Sensitivity",
            f"{sensitivity.value:.6g}, how far one {release.guarantee.unit} can move the answer before noise; "
            f"{sensitivity.reason}",
        ),
        ("Scale of the noise", f"{release.sigma:.6g}"),
        ("Numerics", release.numerics_statement),
        ("Step of the lattice", "none" if release.step is None else f"2^{math.log2(release.step):g}"),
        ("Version", f"dpmanifolds {release.version}"),
    )
    inner = "".join(f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<div class='scroll'><table class='facts'>{inner}</table></div>" + paragraph(
        "The centre, the radius, n and the budget must have been chosen without looking at the records."
    )


def _citation(release: Release) -> str:
    sentence = (
        f"The {release.statistic}{release.counted} on {release.manifold!r} was released under differential privacy "
        f"({release.spent.in_words()}; {release.guarantee.neighbours}) "
        f"with the {release.mechanism} mechanism ({release.numerics} numerics), calibrated to a sensitivity of "
        f"{release.sensitivity.value:.4g} for records clipped to {release.domain!r}, using dpmanifolds "
        f"{release.version}."
    )
    entry = (
        "@software{dpmanifolds,\n  title   = {dpmanifolds: differential privacy for data on curved spaces},\n"
        f"  author  = {{{{The dpmanifolds authors}}}},\n  version = {{{release.version}}}\n}}"
    )
    return f"<blockquote>{escape(sentence)}</blockquote><pre>{escape(entry)}</pre>"


def _machine_readable(release: Release) -> str:
    """The release itself, so that the page alone is enough to go on with; not for very large ones."""
    text = json.dumps(json.loads(release.to_json()), ensure_ascii=False, indent=1)
    if len(text) > _MOST_JSON:
        return ""
    return (
        "<details><summary>The release as JSON (dpmanifolds.Release.from_json reads it)</summary>"
        f"<pre class='json'>{escape(text)}</pre></details>"
    )


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
    # as a whole or not at all, whenever the process ends: an earlier release was paid for, too
    fresh = paths["json"].with_name(paths["json"].name + ".new")
    fresh.write_text(text + "\n", encoding="utf-8")
    fresh.replace(paths["json"])
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
