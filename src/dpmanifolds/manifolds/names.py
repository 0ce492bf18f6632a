"""Manifolds by name: in JSON by their class, on the command line by what is typed. Classes register themselves.

>>> from dpmanifolds.manifolds import manifold_from_json, manifold_from_name
>>> manifold_from_name("grassmann:5,2"), manifold_from_json({"name": "Sphere", "parameters": [2, 1.0]})
(Grassmann(5, 2), Sphere(2, 1.0))

Those of other packages are found, too, once their module was imported, or where their package has an entry point of
the group "dpmanifolds.manifolds".
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import entry_points
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from dpmanifolds.errors import ArgumentError

if TYPE_CHECKING:
    from dpmanifolds.manifolds.base import Manifold

_CLASSES: dict[str, type[Manifold]] = {}
_TYPED: dict[str, type[Manifold]] = {}
_ORDER = ("spd", "correlation", "sphere", "hyperbolic", "shapes", "euclidean", "rotations", "grassmann")
_OWN = __name__.partition(".")[0] + "."


def register(cls: type[Manifold]) -> None:
    """Make a class known by its name, and by what is typed for it."""
    typed = cls.typed.partition(":")[0] if "typed" in cls.__dict__ else ""
    for names, name in ((_CLASSES, cls.__name__), (_TYPED, typed)):
        taken = names.get(name)
        if taken is not None and taken.__module__.startswith(_OWN) and not cls.__module__.startswith(_OWN):
            raise ArgumentError(f"{cls!r} must have a name of its own: {name!r} is {taken!r}.")
        if name:
            names[name] = cls


def manifold_from_json(data: Any) -> Manifold:
    """What `Manifold.to_json` wrote.

    >>> import dpmanifolds as dpm
    >>> manifold_from_json(dpm.Power(dpm.Sphere(2), 10).to_json())
    Power(Sphere(2, 1.0), 10)
    """
    name = data["name"]
    if name not in _CLASSES:
        _import_others()
    if name not in _CLASSES or isabstract(_CLASSES[name]):
        raise ArgumentError(f"no manifold is called {name!r}. Import the module that defines it first.")
    return _CLASSES[name].from_json(data)


def manifold_from_name(text: str | None, metric: str | None = None) -> Manifold:
    """The manifold of a description such as "spd:3", as the command line writes it.

    >>> manifold_from_name("spd:3", "log-euclidean")
    SPD(3, metric='log-euclidean')
    """
    if text is None:
        raise ArgumentError(f"say where the records live: --manifold {typed_examples()}.")
    name, _, given = text.strip().lower().partition(":")
    if name not in _TYPED:
        _import_others()
    sizes = _sizes(_TYPED[name].typed.partition(":")[2], given) if name in _TYPED else None
    if sizes is None:
        raise ArgumentError(f"--manifold must be one of {typed_examples(name)}, with your own sizes; got {text!r}.")
    if metric is not None:
        return _TYPED[name].from_sizes(*sizes, metric=metric)
    try:
        return _TYPED[name].from_sizes(*sizes)
    except ArgumentError as problem:
        raise ArgumentError(f"--manifold {text}: {problem}") from None


def _sizes(example: str, given: str) -> list[float] | None:
    """As many numbers as the example has, whole where it has whole ones; None if they are not."""
    wanted, found = example.split(","), given.split(",")
    patterns = [r"\s*\d+\s*" if size.isdigit() else r"\s*-?\d+(\.\d+)?\s*" for size in wanted]
    if len(found) != len(wanted) or not all(map(re.fullmatch, patterns, found)):
        return None
    return [int(size) if example.isdigit() else float(size) for example, size in zip(wanted, found, strict=True)]


def typed_families() -> dict[str, type[Manifold]]:
    """The classes that can be typed, by the word for each: first those of this package."""
    return dict(sorted(_TYPED.items(), key=lambda item: _ORDER.index(item[0]) if item[0] in _ORDER else len(_ORDER)))


def typed_examples(name: str = "") -> str:
    """An example of each family of this package, and of the one that is named, as a list in words."""
    families = typed_families().items()
    *most, last = (cls.typed for family, cls in families if family == name or cls.__module__.startswith(_OWN))
    return f"{', '.join(most)} or {last}"


@cache
def _import_others() -> None:
    for entry in entry_points(group="dpmanifolds.manifolds"):
        entry.load()
