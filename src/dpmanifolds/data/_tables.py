"""Tables in text and in Parquet files: rows of numbers, columns by name, a column of names, matrices in rows.

>>> import tempfile
>>> from pathlib import Path
>>> from dpmanifolds.data._tables import read_text_labels, read_text_table
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "visits.csv"
...     _ = path.write_text("person,x,y\\nann,1,2\\nbob,3,4\\n")
...     table, names = read_text_table(path, "auto", ["y", "x"], 1000), read_text_labels(path, "person", "auto", 1000)
>>> table.tolist(), names.tolist()
([[2.0, 1.0], [4.0, 3.0]], ['ann', 'bob'])

Parquet (pyarrow, an extra) may hold lists of numbers, too.
"""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds._validate import choice
from dpmanifolds.data._files import check_size, decoding, need, read_all
from dpmanifolds.errors import ArgumentError

_ID = re.compile(r"(?i)(.*[_ -])?(id|nr|no|index|subject|person|patient|participant|record|case|unnamed: 0)|")
_BLANK_LINES = re.compile(r"\A(?: *\r?\n)+")
_NOTHING = re.compile(r"(?i)|na|n/a|#n/a|nan|null|none|missing|[-.?*]")
"""How tables write that there is none."""
_TABLE = "a table of numbers, the same number in every row and none missing"


def read_text_table(path: Path, header: str, columns: Sequence[str] | None, limit: int) -> np.ndarray:
    """The rows of a .csv or .tsv file, all columns or those that are named."""
    with decoding(path, _TABLE), warnings.catch_warnings():
        # a table without rows is an error here
        warnings.simplefilter("error")
        text = _text(path, limit)
        names = _heading(path, text)
        has_names = _has_names(path, names, header)
        places = None if columns is None else chosen_columns(path, names if has_names else [], columns)
        _refuse_text(path, text, has_names, places)
        delimiter = _delimiter(path, text)
        table: np.ndarray = np.loadtxt(
            io.StringIO(text),
            delimiter=delimiter,
            converters=_with_comma if delimiter == ";" else None,
            comments=None,
            ndmin=2,
            skiprows=int(has_names),
            usecols=places,
            quotechar='"',
        )
        return table


def text_columns(path: Path, header: str, limit: int) -> list[str]:
    """The names of the columns; none where there is no line of names."""
    with decoding(path, "a table"):
        names = _heading(path, _text(path, limit))
        return names if _has_names(path, names, header) else []


def read_text_labels(path: Path, column: str, header: str, limit: int) -> np.ndarray:
    """One column as text, whatever is in it; a row that is too short has an empty cell there."""
    with decoding(path, "a table"):
        text = _text(path, limit)
        (place,) = chosen_columns(path, text_columns(path, header, limit), [column])
        heading, *rows = csv.reader(io.StringIO(text), delimiter=_delimiter(path, text))
        _refuse_shift(path, heading, rows)
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
    """From the first line on that is not blank; a line of tabs is one of empty cells."""
    whole = read_all(path, limit).decode("utf-8-sig")
    text = _BLANK_LINES.sub("", whole)
    _refuse_long_cells(path, text)
    if text and len(_heading(path, text)) == 1:
        _refuse_gaps(path, whole)
    return text


def _refuse_long_cells(path: Path, text: str) -> None:
    """A quote that one record does not close would take those below into its cell: no record reaches into another."""
    if '"' not in text:
        return
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(path, text))
    if any(reader.line_num != number for number, _ in enumerate(reader, start=1)):
        raise ArgumentError(
            f"{path.name} has a quoted cell that goes on in the next line, or a quote that is not closed: each record "
            "must stand in one line. Take line breaks and odd quotes out of cells."
        )


def _refuse_gaps(path: Path, text: str) -> None:
    """In a table of one column a blank line is a record without its number: to leave it out would tell of it."""
    if any(not line.strip() for line in text.removesuffix("\n").split("\n")):
        raise ArgumentError(
            f"{path.name} has one column and a blank line, which may be a record without its number. Take blank lines "
            "out, or write what is known of the record."
        )


def _delimiter(path: Path, text: str) -> str:
    """By the first line: semicolons or tabs where a .csv file has more of them than commas."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return max(",;\t", key=text.split("\n", 1)[0].count)


def _with_comma(cell: str) -> float:
    """A number with a decimal point or, as tables with semicolons may have it, a decimal comma."""
    return float(cell.replace(",", "."))


def _cells(path: Path, text: str, lines: int) -> list[list[str]]:
    """Of the first lines."""
    reader = csv.reader(text.split("\n", lines)[:lines], delimiter=_delimiter(path, text))
    return [[cell.strip() for cell in row] for row in reader if row]


def _heading(path: Path, text: str) -> list[str]:
    """The cells of the first line."""
    return next(iter(_cells(path, text, 1)), [""])


def _has_names(path: Path, cells: Sequence[str], header: str) -> bool:
    """Whether the first line names the columns; with "auto" it does if no cell of it is a number.

    A line of numbers and words may as well be a record with a cell that is none: to leave it out would tell of it, by
    the number of records, and its cells would be told as names. It is refused.
    """
    if choice("header", header, ("auto", "yes", "no")) != "auto":
        return header == "yes"
    if all(map(_is_number, cells)):
        return False
    if any(map(_is_number, cells)) or all(map(_NOTHING.fullmatch, cells)):
        raise ArgumentError(
            f"{path.name} begins with a line that may be names of columns or a record with a cell that is no number. "
            "Say which: header='yes' or header='no'."
        )
    return True


def _refuse_text(path: Path, text: str, has_names: bool, places: Sequence[int] | None) -> None:
    """A column of names or IDs among the numbers: say how to leave it out."""
    rows = _cells(path, text, 2)
    if not has_names or len(rows) < 2:
        return
    _refuse_shift(path, rows[0], rows[1:])
    if len(rows[0]) != len(rows[1]):
        return
    read = range(len(rows[0])) if places is None else places
    words = [rows[0][place] for place in read if rows[1][place] and not _is_number(rows[1][place])]
    if words and len(words) < len(read):
        raise ArgumentError(
            f"{path.name} has words in {'column' if len(words) == 1 else 'columns'} {', '.join(map(repr, words))}, and "
            "every cell must be a number. Name those to read in columns=[…]; names of persons go to group_by."
        )


def _refuse_shift(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows with numbers of their own before them, and no name for these, would be read one column off."""
    if any(any(cell.strip() for cell in row[len(names) :]) for row in rows):
        raise ArgumentError(
            f"{path.name} has fewer names in its first line than cells in a row, so that names would stand over other "
            "columns. Give every column a name, that of row numbers too."
        )


def _all_cells(path: Path, limit: int) -> list[list[str]]:
    with decoding(path, "a table"):
        text = _text(path, limit)
    return _cells(path, text, text.count("\n") + 1)


def describe_table(path: Path, header: str, limit: int) -> list[str]:
    """What a text table looks like, for its custodian: columns, which hold words, and which look like IDs."""
    rows = _all_cells(path, limit)
    names = rows.pop(0) if _has_names(path, rows[0], header) else []
    width = len(names or rows[0])
    labels = names or [str(place + 1) for place in range(width)]
    columns = {label: [row[place] if place < len(row) else "" for row in rows] for place, label in enumerate(labels)}
    others = {label: sum(not _is_number(cell) for cell in cells) for label, cells in columns.items()}
    words = [label for label, count in others.items() if 2 * count > len(rows)]
    gaps = [label for label, count in others.items() if count and label not in words]
    numbers = [label for label in labels if label not in words]
    ids = [label for label in numbers if _looks_like_ids(label, columns[label])]
    found = [f"columns: {', '.join(labels)}" if names else f"no line of names, {width} columns"]
    if words:
        found.append(f"words, not numbers, in: {', '.join(words)}")
    if gaps:
        told = "rows with such cells are read by no command: leave them out, or fill them by a public rule"
        found.append(f"cells that are missing or no numbers, in: {', '.join(gaps)} ({told})")
    if ids:
        found.append(f"looks like IDs: {', '.join(ids)}")
    if (words or ids) and names:
        kept = ",".join(label for label in numbers if label not in ids)
        found.append(f'to read the others: --columns "{kept}"; where a person has several rows: --group-by COLUMN')
    return found


def table_shape(path: Path, header: str, limit: int) -> tuple[int, int]:
    """Rows and columns, words and IDs included."""
    rows = _all_cells(path, limit)
    return len(rows) - int(_has_names(path, rows[0], header)), len(rows[0])


def _looks_like_ids(label: str, cells: Sequence[str]) -> bool:
    """By its name; or whole numbers, one after the other, of a column without a name."""
    if _ID.fullmatch(label):
        return True
    numbers = [_with_comma(cell) if cell and _is_number(cell) else math.nan for cell in cells]
    return len(numbers) > 2 and all(b - a == 1 for a, b in pairwise(numbers))


def _is_number(cell: str) -> bool:
    try:
        _with_comma(cell)
    except ValueError:
        return False
    return True


_INDEX = re.compile(r"__index_level_\d+__")
_ROWS = 1 << 16


def read_parquet(path: Path, columns: Sequence[str] | None, limit: int) -> np.ndarray:
    """The rows (n, width) in double precision: all columns or those that are named, lists of one length spread out."""
    arrow = need("pyarrow", "parquet", "Parquet")
    with decoding(path, "a Parquet file"):
        parts = [
            np.concatenate([_numbers(arrow, batch.column(name), name) for name in batch.schema.names], axis=1)
            for batch in _batches(path, columns, limit)
        ]
        if not parts:
            raise ArgumentError(f"{path.name} has no rows: at least one record is needed.")
        if len({part.shape[1] for part in parts}) > 1:
            raise ArgumentError("lists in a column must all have the same length, and these differ.")
        return np.concatenate(parts)


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns, without the index that pandas adds."""
    with decoding(path, "a Parquet file"), _opened(path) as file:
        return _names(file)


def read_parquet_labels(path: Path, column: str, limit: int) -> np.ndarray:
    """One column as text; empty where there is no value."""
    arrow = need("pyarrow", "parquet", "Parquet")
    with decoding(path, "a Parquet file"):
        cells: list[str] = []
        for batch in _batches(path, [column], limit):
            values = batch.column(column)
            if arrow.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            cells += ["" if cell is None else cell for cell in values.cast(arrow.string()).to_pylist()]
        return np.array(cells, dtype=np.str_)


def _opened(path: Path) -> Any:
    return need("pyarrow.parquet", "parquet", "Parquet").ParquetFile(path)


def _names(file: Any) -> list[str]:
    return [name for name in file.schema_arrow.names if not _INDEX.fullmatch(name)]


def _batches(path: Path, columns: Sequence[str] | None, limit: int) -> list[Any]:
    """The rows in pieces; what the file says it holds, and what comes out of it, are held against the limit."""
    with _opened(path) as file:
        names = _names(file)
        if columns is not None:
            names = [names[place] for place in chosen_columns(path, names, columns)]
        groups = range(file.metadata.num_row_groups)
        check_size(sum(file.metadata.row_group(group).total_byte_size for group in groups), limit)
        check_size(8 * file.metadata.num_rows * len(names), limit)
        batches, size = [], 0
        for batch in file.iter_batches(batch_size=_ROWS, columns=names, use_threads=False):
            size += batch.nbytes
            check_size(size, limit)
            batches.append(batch.select(names))
        return batches


def _numbers(arrow: Any, column: Any, name: str) -> np.ndarray:
    """A column as (rows, width): one number per row, or a list of as many in every row, lists in lists included."""
    kinds = arrow.types
    if isinstance(column.type, arrow.BaseExtensionType):
        column = column.storage
    if column.null_count:
        raise ArgumentError(
            f"column {name!r} has missing values: every record needs all its numbers. Fill or drop them."
        )
    if kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type):
        inner = _numbers(arrow, column.flatten(), name)
        lengths = np.asarray(need("pyarrow.compute", "parquet", "Parquet").list_value_length(column))
        if len(set(lengths.tolist())) > 1:
            raise ArgumentError(f"lists in column {name!r} must all have the same length, and these differ.")
        return inner.reshape(len(column), -1)
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_decimal(column.type):
        column = column.cast(arrow.float64())
    if not (kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_boolean(column.type)):
        raise ArgumentError(
            f"column {name!r} holds no numbers (it is of type {column.type}). Name those to read in columns=[…]."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)[:, None]


LAYOUTS = ("full", "upper", "lower")


def matrices_from_columns(columns: np.ndarray, layout: str, size: int | None = None) -> np.ndarray:
    """Matrices (n, k, k) from rows of k² numbers ("full") or k(k+1)/2 of them, a triangle row by row.

    "upper" is xx, xy, xz, yy, yz, zz; "lower" is xx, yx, yy, zx, zy, zz. A full matrix is taken as it is.
    """
    choice("layout", layout, LAYOUTS)
    count, width = columns.shape
    k = math.isqrt(width) if layout == "full" else (math.isqrt(8 * width + 1) - 1) // 2
    needed = k * k if layout == "full" else k * (k + 1) // 2
    if k == 0 or needed != width or size not in (None, k):
        wanted = "a square number" if layout == "full" else "k(k+1)/2"
        given = f"{width} columns"
        raise ArgumentError(
            f"layout={layout!r} needs {wanted} of columns"
            + (f" for matrices of size {size}" if size is not None else "")
            + f"; the file has {given}. Leave IDs and the like out: columns=[…]."
        )
    if layout == "full":
        return columns.reshape(count, k, k)
    rows, places = _triangle(k, layout)
    matrices = np.empty((count, k, k), dtype=columns.dtype)
    matrices[:, rows, places] = columns
    matrices[:, places, rows] = columns
    return matrices


def columns_from_matrices(matrices: np.ndarray, layout: str) -> np.ndarray:
    """Rows of k² or k(k+1)/2 numbers from symmetric matrices (n, k, k): the way back of `matrices_from_columns`.

    >>> columns_from_matrices(np.array([[[1.0, 2.0], [2.0, 3.0]]]), "upper").tolist()
    [[1.0, 2.0, 3.0]]
    """
    k = matrices.shape[-1]
    if choice("layout", layout, LAYOUTS) == "full":
        return matrices.reshape(*matrices.shape[:-2], k * k)
    columns: np.ndarray = matrices[..., *_triangle(k, layout)]
    return columns


def _triangle(k: int, layout: str) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(k) if layout == "upper" else np.tril_indices(k)
