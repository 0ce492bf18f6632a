"""Which cases run where: `make test` takes a few cases of every claim, `make test-long` all the others.

A test with the mark `grid` has many cases: one for every manifold, library, budget and so on. The quick run takes so
many of them that each value of each parameter comes up; manifolds of one family and metric count as one value.
`grid(at_most=2)` takes two cases; `grid(where=["sphere", "spd"])` takes only these values of that parameter. The other
cases are given the mark `long`.

`thorough("draws", 300, 1000)` gives a test few draws in the quick run and many in the long one.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import pytest

from dpmanifolds import Manifold

LIBRARIES = (
    *("torch", "jax", "dask", "pymanopt", "pyarrow", "zarr", "mne", "mpyc", "flwr", "nvflare"),
    *("dp_recorder", "dp_auditorium"),
)


def family_of(value: Any) -> tuple[str, ...] | None:
    """The kind and metric of a manifold, or of the one that a ball or a loss is on; None for other values."""
    manifold = getattr(value, "manifold", value)
    if not isinstance(manifold, Manifold):
        return None
    return type(manifold).__name__, str(getattr(manifold, "metric", ""))


def name_of(value: Any) -> Any:
    """What tells a value of a parameter from the others."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def axes_of(item: Any) -> list[tuple[str, ...]]:
    """The parameters of a test; those that were given together stand together."""
    together = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        together.append(tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else tuple(names))
    known = {name for names in together for name in names}
    return together + [(name,) for name in item.callspec.params if name not in known]


def values_of(item: Any) -> frozenset[tuple[Any, ...]]:
    """What a case shows of its grid: its value along every axis; where there is a manifold, its family in place of it.

    Beside a manifold kinds count (names, functions, classes), each for itself, and sizes do not.
    """
    shown: set[tuple[Any, ...]] = set()
    for names in axes_of(item):
        values = [item.callspec.params[name] for name in names]
        families = [family for family in map(family_of, values) if family]
        if families:
            kinds = [value if callable(value) or isinstance(value, str) else type(value) for value in values]
            shown |= {(names, family) for family in families} | {(names, name_of(kind)) for kind in kinds}
        else:
            shown.add((names, *map(name_of, values)))
    return frozenset(shown)


def spread_out(cases: list[Any], at_most: int) -> set[Any]:
    """So few cases that every value comes up: those with most new values first, then those whose values are rarest.

    Of equals the one whose name has the least checksum, so that other tests have other members of a family.
    """
    shown = {case: values_of(case) for case in cases}
    missing = set().union(*shown.values())
    used: Counter = Counter()
    taken: set[Any] = set()

    def rank(case: Any) -> tuple[int, int, int]:
        return -len(shown[case] & missing), sum(used[value] for value in shown[case]), zlib.crc32(case.name.encode())

    while missing and len(taken) < at_most:
        best = min(cases, key=rank)
        taken.add(best)
        missing -= shown[best]
        used.update(shown[best])
    return taken


def mark_long_cases(items: Iterable[Any]) -> None:
    """Give the mark `long` to the cases of every grid that the quick run leaves out."""
    grids = defaultdict(list)
    for item in items:
        if item.get_closest_marker("grid") and hasattr(item, "callspec") and not item.get_closest_marker("long"):
            grids[item.nodeid.split("[")[0]].append(item)
    for cases in grids.values():
        only = dict(cases[0].get_closest_marker("grid").kwargs)
        at_most = only.pop("at_most", len(cases))
        allowed = [case for case in cases if all(case.callspec.params[name] in only[name] for name in only)]
        taken = spread_out(allowed, at_most)
        assert taken, f"the quick run has no case of {cases[0].nodeid}"
        for case in cases:
            if case not in taken:
                case.add_marker(pytest.mark.long)


def thorough(name: str | tuple[str, ...], quick: Any, full: Any) -> pytest.MarkDecorator:
    """Run a test with one value of a parameter (or of some) in the quick run and with another in the long run."""
    few, many = (value if isinstance(name, tuple) else (value,) for value in (quick, full))
    return pytest.mark.parametrize(
        name, [pytest.param(*few, marks=pytest.mark.quick), pytest.param(*many, marks=pytest.mark.long)]
    )


def leave_out_weak_cases(items: Iterable[Any]) -> list[Any]:
    """Return the cases with a quick value that the quick run does not take: the long run has them with the full one."""
    return [item for item in items if item.get_closest_marker("quick") and item.get_closest_marker("long")]


def leave_out_absent_libraries(items: list[Any]) -> list[Any]:
    """Of the cases that ask for a library which is not installed, leave the first, which says so; return the others.

    A case asks for it by the value of a parameter, or by the mark `needs("jax")`.
    """
    absent = {name for name in LIBRARIES if find_spec(name) is None}
    left_out = []
    told = set()
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        named = {value for value in values if isinstance(value, str)}
        needed = absent & named.union(*(mark.args for mark in item.iter_markers("needs")))
        if needed <= told and needed:
            left_out.append(item)
        told |= needed
    return left_out
