"""Tables from Parquet files (pyarrow, an extra): one record per row, numbers or lists of numbers in its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifolds.data._files import check_size, decoding, need
from dpmanifolds.data._tables import chosen_columns
from dpmanifolds.errors import ArgumentError

__all__ = ["parquet_columns", "read_parquet", "read_parquet_labels"]

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
