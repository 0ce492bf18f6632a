"""Messages of the Python layer in the words of the command line, and numbers as people read them.

>>> from dpmanifolds.errors import ArgumentError
>>> from dpmanifolds.show.words import in_flags
>>> flags = {"radius": "--radius", "numerics": "--numerics", "epsilon": "--epsilon"}
>>> in_flags(ArgumentError("must be below 1.5708 on Sphere(2, 1.0); got 2.", argument="radius"), flags)
'--radius must be below 1.5708 on sphere:2; got 2.'
>>> in_flags("it keeps no PureDP(epsilon=1.0). Pass numerics='idealized'.", flags)
'it keeps no ε = 1. Pass --numerics idealized.'

This is the one place where that happens: every message passes through it on its way out. The argument that an
error is about becomes its flag, objects what one types for them, and a few sentences that name a function or a class
name the option that does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dpmanifolds.errors import DPManifoldsError
from dpmanifolds.manifolds.names import typed_families
from dpmanifolds.privacy.budget import KINDS


def percent(share: float) -> str:
    """With one decimal.

    >>> percent(0.7311)
    '73.1 %'
    """
    return f"{100 * share:.1f} %"


_ALIASES = {"n_components": "components", "rng": "seed", "random_state": "seed"}
_WORDS = {
    "points": "records",
    "smallest": "the smallest of --eigenvalues",
    "largest": "the largest of --eigenvalues",
}
_NUMBER = r"[-+]?[\d.]+(?:e[-+]?\d+)?"
_VALUE = rf"(?:'([^']*)'|({_NUMBER}\b|\w+\b|\[…\]))?"

_SENTENCES = (
    ("no PureDP budget up to", "no --epsilon up to"),
    ("a PureDP budget", "a budget of --epsilon alone"),
    ("Ask for ApproxDP", "Give --delta too"),
    ("give an ApproxDP, GaussianDP or zCDP budget", "give --delta too, or --mu or --rho"),
    ("a total of ApproxDP", "a total of --epsilon with --delta"),
    (" and needs no alpha", ""),
    (", alpha=None", ""),
    ("from_eigenvalues needs an SPD manifold", "--eigenvalues needs --manifold spd"),
    ("from_bounds needs a Euclidean space", "--bounds needs --manifold euclidean"),
    ("--positive-orthant needs a sphere", "--positive-orthant needs --manifold sphere"),
    (f"{_WORDS['smallest']} must be below largest", "--eigenvalues must be LOW HIGH, the smaller number first"),
    ("path must be a file that can be read; got", "there is no file to read:"),
    ("Check them with dpmanifolds.validate", "Check them (dpmanifolds validate tells which)"),
    ("columns=[…]; names of persons go to group_by", "--columns; names of persons go to --group-by"),
    ("Leave IDs and the like out: columns=[…]", "Leave IDs and the like out: --columns"),
    ("needs center=, your public template", "needs --center, your public template"),
    ("Pass a larger max_bytes if that is right, or split the file", "Split the file"),
    ("pass key,", "pass --key,"),
    ("Check the axis order, or the size given to the manifold", "Check --record-axis, and the size in --manifold"),
    ("allow overwriting (overwrite=True, --overwrite)", "pass --overwrite"),
    ("; write it with Release.to_json.", ". Name the release.json that a command wrote."),
    ("use manifold.project to put it there", "check its numbers"),
    ("below manifold.max_radius", "of a smaller --radius"),
)
_PATTERNS = (
    (r"above max_bytes=\d+", "more than is read at once"),
    (r"no axis record_axis=(-?\d+)", r"no axis \1 (--record-axis)"),
    (r"(?:Posix|Windows)Path\(('[^']*')\)", r"\1"),
)


def in_flags(message: object, flags: Mapping[str, str]) -> str:
    """A text or an error with what it names as one types it; `flags` are those of the command by name."""
    known = dict(flags) | {name: flags[alias] for name, alias in _ALIASES.items() if alias in flags}
    text = " ".join(_told(message, known | _WORDS).split())
    for sentence, words in _SENTENCES:
        text = text.replace(sentence, words)
    for pattern, words in _PATTERNS:
        text = re.sub(pattern, words, text)
    text = _spaces(_budgets(text))
    for name in sorted(known, key=len, reverse=True):
        flag = known[name]
        # radius=2 and radius= anywhere, batch_size anywhere, numerics 'safe' anywhere
        text = re.sub(rf"(?<![\w-]){name}={_VALUE}", _typed(flag), text)
        if "_" in name:
            text = re.sub(rf"(?<![\w-]){name}\b", flag, text)
        elif name in ("mechanism", "numerics", "filter", "metric"):
            text = re.sub(rf"(?<![\w-]){name} '([\w-]+)'", rf"{flag} \1", text)
    return text


def _told(message: object, known: Mapping[str, str]) -> str:
    """The text, with the flag of the argument that an error is about."""
    if not isinstance(message, DPManifoldsError) or message.argument is None or message.argument not in known:
        return str(message)
    return f"{known[message.argument]} {message.message.removeprefix('= ')}"


def flags_of(command: Any) -> dict[str, str]:
    """The flag of each option of a command by the name of its argument; of a group, those of all its commands."""
    inner = getattr(command, "commands", None)
    if inner:
        return {name: flag for each in inner.values() for name, flag in flags_of(each).items()}
    found = {}
    for option in getattr(command, "params", ()):
        flags = [flag for flag in option.opts if flag.startswith("--")]
        if flags:
            found[option.name] = flags[0]
    if "dataset" in found and "files" not in found:
        # an account is opened by its name
        found["name"] = found["dataset"]
    return found


def _typed(flag: str) -> Callable[[re.Match[str]], str]:
    def words(match: re.Match[str]) -> str:
        value = match[1] if match[1] is not None else match[2]
        return flag if value in (None, "True", "[…]") else f"{flag} {value}"

    return words


def _budgets(message: str) -> str:
    """PureDP(epsilon=1.0) as ε = 1."""

    def words(match: re.Match[str]) -> str:
        numbers = dict(part.split("=") for part in match[2].split(", "))
        return KINDS[match[1]](**{name: float(number) for name, number in numbers.items()}).in_words()

    return re.sub(rf"\b({'|'.join(KINDS)})\(((?:\w+={_NUMBER}(?:, )?)+)\)", words, message)


def _spaces(message: str) -> str:
    """SPD(3, metric='log-euclidean') as spd:3 (log-euclidean), and a ball by its space and radius."""
    message = re.sub(r"\bSPD\((\d+), metric='([\w-]+)'\)", r"spd:\1 (\2)", message)
    typed = {family.__name__: (name, family.typed.count(",") + 1) for name, family in typed_families().items()}

    def as_typed(found: re.Match[str]) -> str:
        """The sizes that are typed; what else tells a space, such as its curvature, is left out."""
        name, sizes = typed[found[1]]
        return f"{name}:{','.join(found[2].split(', ')[:sizes])}"

    message = re.sub(rf"\b({'|'.join(typed)})\(({_NUMBER}(?:, {_NUMBER})*)\)", as_typed, message)
    message = re.sub(r"\bPower\((.*?), (\d+)\)", r"\2 copies of \1", message)
    return re.sub(rf"\bBall\((.*?), radius=({_NUMBER})\)", r"a ball of radius \2 on \1", message)
