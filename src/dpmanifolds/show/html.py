"""The parts that every page for people is made of."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources


def make_page(title: str, sections: Iterable[str]) -> str:
    """A page of these parts, with its style in it."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, sections))
        + "\n</main>\n</body>\n</html>\n"
    )


def section(title: str, body: str) -> str:
    """A part of the page under its own title."""
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def paragraph(text: str) -> str:
    """Plain text as HTML."""
    return f"<p>{escape(text)}</p>"


def warning(title: str, text: str) -> str:
    """What has to be seen first; nothing where there is no text."""
    if not text:
        return ""
    return f"<p class='warning' role='alert'><strong>{escape(title)}</strong> {escape(text)}</p>"


def seed_warning(*, reproducible: bool) -> str:
    """For what was made with a seed."""
    seeded = "It was made with a seed: whoever knows the seed can take the noise away again."
    return warning("Not for real records.", seeded if reproducible else "")


def figure(svg: str | None, caption: str) -> str:
    """A picture with its caption, or how to get one."""
    if svg is None:
        return paragraph('No figure: matplotlib is not installed (pip install "dpmanifolds[plot]").')
    told = escape(caption)
    return f"<figure role='img' aria-label='{told}'>{svg}<figcaption>{told}</figcaption></figure>"


def list_cards(cards: Iterable[tuple[str, str, str]]) -> str:
    """Name, figure and remark of each."""
    inner = "".join(
        f"<div class='card'><span class='name'>{escape(name)}</span><strong>{escape(value)}</strong>"
        f"<span class='note'>{escape(note)}</span></div>"
        for name, value, note in cards
    )
    return f"<div class='cards'>{inner}</div>"


def _style() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")
