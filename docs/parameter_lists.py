"""The parameters of every public class, for the reference: the signature, what stands below a field, and a glossary.

A class that lists its parameters in its docstring is left alone. For the others a parameter's meaning is the docstring
of the field of that name, else the row of `api/parameters.csv` for this class or a base of it, else the row for all.
"""

from __future__ import annotations

import ast
import csv
import inspect
import itertools
import textwrap
from functools import cache
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parent / "api" / "parameters.csv"


@cache
def read_glossary() -> dict[tuple[str, str], str]:
    """The meaning of a parameter, by class (or "") and name."""
    with GLOSSARY.open(encoding="utf-8", newline="") as lines:
        return {(row["class"], row["parameter"]): row["meaning"] for row in csv.DictReader(lines)}


@cache
def read_fields(kind: type) -> dict[str, str]:
    """What stands below the fields of a class, its bases not included: the first paragraph of each."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, below in itertools.pairwise(body):
        text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return found


def find_meaning(kind: type, name: str) -> str:
    """What a parameter of a class means; empty where nothing says so."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("dpmanifolds.")]
    known = [read_fields(each).get(name) or read_glossary().get((each.__name__, name)) for each in ours]
    return next(filter(None, [*known, read_glossary().get(("", name))]), "")


def list_parameters(kind: type) -> dict[str, tuple[str, str]]:
    """Type and meaning of each parameter of a class, by name; nothing for a class that lists them itself."""
    if "\nParameters\n" in (inspect.getdoc(kind) or "") or issubclass(kind, Warning):
        return {}
    given = [each for each in inspect.signature(kind).parameters.values() if each.kind is not each.VAR_KEYWORD]
    return {each.name: (_type(each), find_meaning(kind, each.name)) for each in given}


def _type(parameter: inspect.Parameter) -> str:
    """As it is annotated, and the default where it is short."""
    named = "" if parameter.annotation is parameter.empty else str(parameter.annotation).strip("'")
    default = "" if parameter.default is parameter.empty else repr(parameter.default)
    return ", ".join(filter(None, [named, f"default={default}" if 0 < len(default) < 20 else ""]))
