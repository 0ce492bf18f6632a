"""The file: one table of chained entries in SQLite, opened afresh for every transaction.

Each choice here serves one sentence: what `append` returned from is on the disk, and what is on the disk is all there
is. A rollback journal rather than a write-ahead log: one file at rest, and no shared memory, which network file
systems lack. `synchronous=EXTRA`: after FULL alone the journal of a committed transaction can come back with a power
failure and undo it. A connection per transaction: nothing to share between threads, to inherit by fork or to pickle.
The file is never opened except by SQLite, as closing any other handle of this process would drop SQLite's locks.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmanifolds.errors import LedgerError
from dpmanifolds.ledger.records import Entry, canonical

_APPLICATION = 0x64706D6C
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # AUTOINCREMENT keeps the largest number ever used on a page of its own: a lost tail shows
        "CREATE TABLE entries (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
        "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
        # INSERT OR REPLACE would delete without asking the trigger above
        "CREATE TRIGGER in_order BEFORE INSERT ON entries "
        "WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM entries) "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    ),
    (
        "CREATE TABLE runs (name TEXT NOT NULL PRIMARY KEY, entry INTEGER NOT NULL, steps INTEGER NOT NULL, "
        "secret TEXT NOT NULL, drawn INTEGER NOT NULL, final TEXT NOT NULL, seal TEXT NOT NULL)",
        "CREATE TRIGGER runs_stay BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
        "CREATE TRIGGER runs_are_new BEFORE INSERT ON runs WHEN EXISTS (SELECT 1 FROM runs WHERE name = NEW.name) "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
        # one draw more, or the end, and nothing after it
        "CREATE TRIGGER draws_are_counted BEFORE UPDATE ON runs WHEN NEW.name <> OLD.name OR NEW.entry <> OLD.entry "
        "OR NEW.steps <> OLD.steps OR NEW.secret <> OLD.secret OR OLD.final <> '' OR NOT "
        "(NEW.drawn = OLD.drawn + 1 AND NEW.drawn <= OLD.steps AND NEW.final = '' "
        "OR NEW.drawn = OLD.drawn AND NEW.final <> '') "
        "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END",
    ),
)
"""Step i takes a file of schema version i to i + 1; a step, once released, is never changed."""
_BUSY_SECONDS = 60.0
_GENESIS = "0" * 64
_ADVICE = {
    "SQLITE_BUSY": f"another process has held it for {_BUSY_SECONDS:g} s; wait for that process, or end it",
    "SQLITE_CANTOPEN": "check that the folder exists and that you may read and write both it and the file",
    "SQLITE_READONLY": "the file or its folder is write-protected; nothing can be spent until it is writable",
    "SQLITE_PERM": "check that you may read and write the file and its folder",
    "SQLITE_FULL": "the disk is full; free space and try again",
    "SQLITE_IOERR": "the disk is full, failing or over quota; free space or move the file, and try again",
    "SQLITE_NOTADB": "the file is not a ledger; give another path, or restore the file from a copy",
    "SQLITE_CORRUPT": "the file is damaged; restore it from a copy and enter what was released since",
}

# SQLite's locks die with fork in a way the child cannot see: no fork may fall into a transaction of another thread
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def transaction(path: str, *, write: bool = False, create: bool = False) -> Iterator[sqlite3.Connection]:
    """A transaction on the ledger at `path`: all of it happens, durably, before the block is left, or nothing."""
    with _lock, _in_our_words(path), closing(_connect(path, create=create)) as connection:
        if write:
            _bring_up_to_date(connection, path, create=create)
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        _check_version(connection, path)
        yield connection
        connection.execute("COMMIT")


def _connect(path: str, *, create: bool) -> sqlite3.Connection:
    if not create and not os.path.exists(path):
        raise LedgerError(f"there is no ledger at {path}. Make one with Ledger(path).open_dataset(name, budget).")
    if os.path.isfile(path) and os.stat(path).st_nlink > 1:
        raise LedgerError(
            f"{path} has several names (hard links): a crash under one is not repaired under another. Keep one name."
        )
    log = os.path.realpath(path) + "-wal"
    has_log = os.path.exists(log) and os.path.getsize(log) > 0
    uri = f"{Path(path).as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        for setting in ("synchronous=EXTRA", "fullfsync=ON", "cell_size_check=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {setting}")
        _leave_write_ahead_log(connection, path, has_log)
    except BaseException:
        connection.close()
        raise
    return connection


def _leave_write_ahead_log(connection: sqlite3.Connection, path: str, has_log: bool) -> None:
    """Bring a file that another tool has put into this mode back to one file, or refuse it where the log is missing."""
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        return
    if not has_log:
        raise LedgerError(
            f"another tool has put {path} into write-ahead mode, and its log {path}-wal is not here: entries may be "
            "missing. Bring the file and its -wal together, as they were; if none was left behind, run PRAGMA "
            "journal_mode=DELETE on the file with that tool, and check your receipts with verify."
        )
    if connection.execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):
        raise LedgerError(f"another tool holds {path} in write-ahead mode. Close it there, and try again.")


@contextmanager
def _in_our_words(path: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        # SQLite quotes from a damaged schema in its messages, and Python cannot always decode the quotation
        damaged = "SQLITE_CORRUPT" if isinstance(error, UnicodeDecodeError) else ""
        code = getattr(error, "sqlite_errorname", damaged)
        advice = next(
            (text for name, text in _ADVICE.items() if code.startswith(name)), "check the file and its folder"
        )
        raise LedgerError(f"the ledger {path} cannot be used ({error}): {advice}. Nothing was released.") from error


def _number(connection: sqlite3.Connection, question: str) -> int:
    (found,) = connection.execute(question).fetchone()
    return int(found)


def _bring_up_to_date(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    """Make the tables in an empty file, or take an older file through the steps it lacks."""
    if _number(connection, "PRAGMA user_version") >= len(_MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    version = _number(connection, "PRAGMA user_version")
    empty = version == 0 and _number(connection, "SELECT count(*) FROM sqlite_master") == 0
    if not (empty and create) and _number(connection, "PRAGMA application_id") != _APPLICATION:
        raise LedgerError(f"{path} is a database, but not a ledger. Give another path.")
    for step in _MIGRATIONS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {max(version, len(_MIGRATIONS))}")
    connection.execute("COMMIT")


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    version = _number(connection, "PRAGMA user_version")
    if _number(connection, "PRAGMA application_id") != _APPLICATION:
        raise LedgerError(f"{path} is a database, but not a ledger. Give another path.")
    if version > len(_MIGRATIONS):
        raise LedgerError(
            f"{path} was written by a newer version of this package (schema {version}; this one knows up to "
            f"{len(_MIGRATIONS)}). Upgrade the package; nothing was changed."
        )


def read_log(connection: sqlite3.Connection, path: str) -> list[Entry]:
    """Every entry, after checking the chain: numbers without gaps, each hash, each link, and the last number."""
    log: list[Entry] = []
    previous = _GENESIS
    for number, body, digest in connection.execute("SELECT number, body, hash FROM entries ORDER BY number"):
        entry = _checked(len(log) + 1, previous, number, body, digest)
        if entry is None:
            raise LedgerError(
                f"the ledger {path} was altered or damaged at entry {len(log) + 1}: its hash chain is broken. Nothing "
                "can be spent on it; restore it from a copy and enter what was released since."
            )
        log.append(entry)
        previous = entry.hash
    counted = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchall()
    if counted != ([(len(log),)] if log else []):
        raise LedgerError(
            f"the ledger {path} has lost its last entries: it once held more, or fewer, than the {len(log)} it shows. "
            "Nothing can be spent on it; restore it from a copy and enter what was released since."
        )
    return log


def _checked(expected: int, previous: str, number: Any, body: Any, digest: Any) -> Entry | None:
    """The entry, or None unless it is the `expected`-th of the chain that has come to `previous`."""
    if not isinstance(body, str) or hashlib.sha256(body.encode()).hexdigest() != digest:
        return None
    try:
        data = json.loads(body)
        if number != expected or data["number"] != expected or data["previous"] != previous:
            return None
        return Entry(expected, data["when"], data["kind"], data["dataset"], data["details"], digest)
    except (ValueError, TypeError, KeyError):
        return None


def append(
    connection: sqlite3.Connection, log: list[Entry], kind: str, dataset: str, details: Mapping[str, Any]
) -> Entry:
    """Write the next entry: its body names the hash before it, its hash is SHA-256 of its canonical body."""
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    head = {"number": len(log) + 1, "previous": log[-1].hash if log else _GENESIS}
    body = canonical({**head, "when": when, "kind": kind, "dataset": dataset, "details": details})
    digest = hashlib.sha256(body.encode()).hexdigest()
    connection.execute("INSERT INTO entries (number, body, hash) VALUES (?, ?, ?)", (len(log) + 1, body, digest))
    return Entry(len(log) + 1, when, kind, dataset, details, digest)


def check_pages(connection: sqlite3.Connection, path: str) -> None:
    """SQLite's own check of every page."""
    found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    if found != ["ok"]:
        raise LedgerError(f"the pages of the ledger {path} are damaged ({found[0]}). Restore it from a copy.")
