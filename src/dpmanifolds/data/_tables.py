"""Tables in text: rows of numbers, columns by name, and a column of names.

>>> import tempfile
>>> from pathlib import Path
>>> from dpmanifolds.data._tables import read_text_labels, read_text_table
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "visits.csv"
...     _ = path.write_text("person,x,y\\nann,1,2\\nbob,3,4\\n")
...     read_text_table(path, "auto", ["y", "x"], 1000).tolist(), read_text_labels(path, "person", 1000).tolist()
([[2.0, 1.0], [4.0, 3.0]], ['ann', 'bob'])
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.data._files import decoding, read_all
from dpmanifolds.errors import ArgumentError

__all__ = ["chosen_columns", "read_text_labels", "read_text_table", "text_columns"]

_TABLE = "a table of numbers, the same number in every row and none missing"


def read_text_table(path: Path, header: str, columns: Sequence[str] | None, limit: int) -> np.ndarray:
    """The rows of a .csv or .tsv file, all columns or those that are named."""
    choice("header", header, ("auto", "yes", "no"))
    with decoding(path, _TABLE), warnings.catch_warnings():
        # a table without rows is an error here
        warnings.simplefilter("error")
        text = _text(path, limit)
        names = _heading(path, text)
        has_names = header == "yes" or (header == "auto" and not all(map(_is_number, names)))
        places = None if columns is None else chosen_columns(path, names if has_names else [], columns)
        table: np.ndarray = np.loadtxt(
            io.StringIO(text),
            delimiter=_delimiter(path),
            comments=None,
            ndmin=2,
            skiprows=int(has_names),
            usecols=places,
            quotechar='"',
        )
        return table


def text_columns(path: Path, limit: int) -> list[str]:
    """The names of the columns; none where the first line is all numbers."""
    with decoding(path, "a table"):
        names = _heading(path, _text(path, limit))
        return [] if all(map(_is_number, names)) else names


def read_text_labels(path: Path, column: str, limit: int) -> np.ndarray:
    """One column as text, whatever is in it; a row that is too short has an empty cell there."""
    with decoding(path, "a table"):
        text = _text(path, limit)
        (place,) = chosen_columns(path, text_columns(path, limit), [column])
        rows = list(csv.reader(io.StringIO(text), delimiter=_delimiter(path)))[1:]
        return np.array([row[place].strip() if place < len(row) else "" for row in rows if row], dtype=np.str_)


def chosen_columns(path: Path, names: list[str], columns: Sequence[str]) -> list[int]:
    """Where the columns of these names are, each of which must be there once."""
    if isinstance(columns, str) or not columns or not all(isinstance(name, str) for name in columns):
        raise ArgumentError(f"must be a list of names of columns; got {columns!r}.", argument="columns")
    if not names:
        raise ArgumentError(f"{path.name} has no line of names: columns can be chosen by name only. Add one.")
    for name in columns:
        if names.count(name) != 1:
            told = "several columns" if name in names else "no column"
            raise ArgumentError(f"{path.name} has {told} {name!r}; its columns are {', '.join(map(repr, names))}.")
    return [names.index(name) for name in columns]


def _text(path: Path, limit: int) -> str:
    return read_all(path, limit).decode("utf-8-sig").lstrip()


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _heading(path: Path, text: str) -> list[str]:
    """The cells of the first line."""
    first = next(csv.reader([text.split("\n", 1)[0]], delimiter=_delimiter(path)), [""])
    return [cell.strip() for cell in first]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
