"""The file: tampering shows, damage and foreign files are refused, versions migrate, the disk may end."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dpmanifolds.errors import ArgumentError, LedgerError
from dpmanifolds.ledger import Ledger, Receipt
from dpmanifolds.privacy import Guarantee, PureDP
from tests.ledger.connections import give_up_after, watch_commits


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("survey", PureDP(1.0))
    for what in ("mean", "median", "variance"):
        ledger.spend("survey", Guarantee.pure(0.125), what=what)
    return ledger


def change(path, *statements):
    """What somebody with a SQLite shell can do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def entry_after(ledger, **details):
    """What somebody chains to the last entry: a number, a body, and its hash."""
    last = ledger.entries()[-1]
    head = {"number": last.number + 1, "previous": last.hash, "when": last.when, "kind": "spend", "dataset": "survey"}
    body = json.dumps({**head, "details": {**last.details, **details}}, sort_keys=True, separators=(",", ":"))
    return last.number + 1, body, hashlib.sha256(body.encode()).hexdigest()


def ask(path, question):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = 'x' WHERE number = 2",
        "DELETE FROM entries WHERE number = 4",
        "INSERT OR REPLACE INTO entries SELECT 2, body, hash FROM entries WHERE number = 3",
        "INSERT INTO entries VALUES (9, 'x', 'x')",
    ],
)
def test_the_log_only_grows(ledger, statement):
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        change(ledger.path, statement)
    assert ledger.verify() == 4


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE entries SET body = replace(body, '0.125', '0.001') WHERE number = 3",
        "UPDATE entries SET hash = (SELECT hash FROM entries WHERE number = 2) WHERE number = 3",
        "UPDATE entries SET body = NULL WHERE number = 3",
        "UPDATE entries SET body = CAST(body AS BLOB) WHERE number = 3",
        "UPDATE entries SET number = 7 WHERE number = 4",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 4",
        "DELETE FROM entries",
        "DELETE FROM sqlite_sequence",
        "INSERT INTO entries VALUES (5, '{}', '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a')",
    ],
)
def test_tampering_shows_and_stops_all_spending(ledger, tampering):
    # a table without triggers or constraints, as somebody who means it would make
    loosened = [
        "CREATE TABLE other (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT, hash TEXT)",
        "INSERT INTO other SELECT * FROM entries",
        "DROP TABLE entries",
        "ALTER TABLE other RENAME TO entries",
    ]
    change(ledger.path, *loosened)
    assert ledger.verify() == 4
    change(ledger.path, tampering)
    for act in (ledger.verify, lambda: ledger.remaining("survey"), lambda: spend(ledger)):
        with pytest.raises(LedgerError):
            act()


def spend(ledger):
    return ledger.spend("survey", Guarantee.pure(0.125), what="mean")


def test_the_hash_is_sha256_of_the_canonical_body_with_the_hash_before(ledger):
    previous = "0" * 64
    for number, body, digest in ask(ledger.path, "SELECT number, body, hash FROM entries ORDER BY number"):
        data = json.loads(body)
        assert json.dumps(data, sort_keys=True, separators=(",", ":")) == body
        assert (data["number"], data["previous"]) == (number, previous)
        assert hashlib.sha256(body.encode()).hexdigest() == digest
        previous = digest


def test_a_receipt_shows_that_an_older_copy_was_put_back(ledger):
    copy = Path(ledger.path).read_bytes()
    receipt = spend(ledger)
    assert ledger.verify([receipt]) == 5
    Path(ledger.path).write_bytes(copy)
    with pytest.raises(LedgerError, match="does not hold the receipt of entry 5"):
        ledger.verify([receipt])
    with pytest.raises(LedgerError, match="does not hold"):
        ledger.verify([Receipt("survey", "mean", 2, receipt.when, receipt.hash)])


def test_a_rewritten_chain_that_overspends_is_found_by_its_sums(ledger):
    entry = entry_after(ledger, charged={"kind": "PureDP", "epsilon": 0.75})
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO entries VALUES (?, ?, ?)", entry)
    with pytest.raises(LedgerError, match="more spent on 'survey'"):
        ledger.verify()


def test_a_commit_is_on_the_disk_before_it_is_reported(ledger, monkeypatch):
    seen = []

    def look(connection):
        seen.extend(connection.execute(f"PRAGMA {name}").fetchone() for name in ("synchronous", "journal_mode"))

    watch_commits(monkeypatch, look)
    spend(ledger)
    assert seen == [(3,), ("delete",)]
    assert [path.name for path in Path(ledger.path).parent.iterdir()] == ["privacy.ledger"]


def test_an_interrupted_transaction_leaves_nothing(ledger, monkeypatch):
    def interrupt(connection):
        assert connection.execute("SELECT count(*) FROM entries").fetchone() == (5,)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        watch_commits(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            spend(ledger)
    assert ledger.verify() == 4


def test_a_missing_file_is_not_made_by_asking(tmp_path):
    ledger = Ledger(tmp_path / "none.ledger")
    for act in (ledger.verify, ledger.datasets, lambda: spend(ledger), ledger.export):
        with pytest.raises(LedgerError, match="there is no ledger at"):
            act()
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(LedgerError, match="check that the folder exists"):
        Ledger(tmp_path / "none" / "privacy.ledger").open_dataset("survey", PureDP(1.0))


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="cannot be used"):
        Ledger(tmp_path).open_dataset("survey", PureDP(1.0))


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a ledger " * 500)
    before = path.read_bytes()
    for act in (Ledger(path).verify, lambda: Ledger(path).open_dataset("survey", PureDP(1.0))):
        with pytest.raises(LedgerError, match="not a ledger"):
            act()
    assert path.read_bytes() == before


def test_a_damaged_schema_whose_text_is_no_text_is_a_damaged_ledger(ledger):
    path = Path(ledger.path)
    path.write_bytes(path.read_bytes().replace(b"CREATE TRIGGER no_update", b"CREATE \xcc\xccIGGER no_update"))
    with pytest.raises(LedgerError, match="the file is damaged"):
        spend(ledger)


@pytest.mark.parametrize("version", [0, 1, 5])
def test_another_database_is_refused_and_left_alone(tmp_path, version):
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE people (name TEXT)", f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for act in (Ledger(path).datasets, lambda: Ledger(path).open_dataset("survey", PureDP(1.0))):
        with pytest.raises(LedgerError, match="a database, but not a ledger"):
            act()
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_ledger_when_a_data_set_is_opened(tmp_path):
    path = tmp_path / "empty.ledger"
    path.touch()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path).datasets()
    Ledger(path).open_dataset("survey", PureDP(1.0))
    assert ask(path, "PRAGMA user_version") == [(2,)]


def make_older(ledger):
    """Schema 1 had no runs."""
    change(ledger.path, "DROP TABLE runs", "PRAGMA user_version = 1")


def test_an_older_file_is_migrated_with_its_entries(ledger):
    make_older(ledger)
    before = Path(ledger.path).read_bytes()
    assert ledger.remaining("survey") == PureDP(0.625)
    assert Path(ledger.path).read_bytes() == before  # reading changes nothing
    spend(ledger)
    assert ask(ledger.path, "PRAGMA user_version") == [(2,)]
    assert ask(ledger.path, "SELECT count(*) FROM runs") == [(0,)]
    assert ledger.verify() == 5


def test_a_failed_migration_changes_nothing(ledger):
    """The table can be made; a trigger on it has a name that is taken."""
    make_older(ledger)
    change(ledger.path, "CREATE TRIGGER runs_stay BEFORE DELETE ON entries BEGIN SELECT 1; END")
    before = Path(ledger.path).read_bytes()
    with pytest.raises(LedgerError, match="runs_stay already exists"):
        spend(ledger)
    assert Path(ledger.path).read_bytes() == before
    assert ledger.verify() == 4


def test_a_newer_file_is_refused_and_left_alone(ledger):
    change(ledger.path, "PRAGMA user_version = 7")
    before = Path(ledger.path).read_bytes()
    for act in (ledger.verify, lambda: spend(ledger), lambda: ledger.open_dataset("survey", PureDP(1.0))):
        with pytest.raises(LedgerError, match=r"newer version of this package \(schema 7; this one knows up to 2\)"):
            act()
    assert Path(ledger.path).read_bytes() == before


def written_ahead(ledger):
    """Another tool has put the file into write-ahead mode, spent on it and was killed."""
    script = """if True:
        import os, sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("INSERT INTO entries VALUES (5, ?, ?)", sys.argv[2:])
        os._exit(0)
    """
    _, body, digest = entry_after(ledger)
    subprocess.run([sys.executable, "-c", script, ledger.path, body, digest], check=True)
    assert Path(ledger.path + "-wal").stat().st_size > 0


def test_a_write_ahead_log_is_taken_into_the_file(ledger, tmp_path):
    written_ahead(ledger)
    assert ledger.spent("survey") == PureDP(0.5)
    assert not Path(ledger.path + "-wal").exists()
    assert ask(ledger.path, "PRAGMA journal_mode") == [("delete",)]
    copy = shutil.copy(ledger.path, tmp_path / "copy.ledger")
    assert Ledger(copy).spent("survey") == PureDP(0.5)


def test_a_file_without_its_write_ahead_log_is_refused(ledger, tmp_path):
    written_ahead(ledger)
    copy = Ledger(shutil.copy(ledger.path, tmp_path / "copy.ledger"))
    for act in (copy.verify, lambda: copy.spent("survey"), lambda: spend(copy), lambda: spend(copy)):
        with pytest.raises(LedgerError, match=r"its log .*-wal is not here: entries may be missing"):
            act()


def test_a_file_that_another_tool_holds_in_write_ahead_mode_is_refused(ledger, monkeypatch):
    give_up_after(monkeypatch, 0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute("CREATE TABLE notes (text TEXT)")
        with pytest.raises(LedgerError, match="another process has held it"):
            spend(ledger)
    # closed in order, it leaves no log, and neither does who copies the file alone
    with pytest.raises(LedgerError, match="PRAGMA journal_mode=DELETE on the file"):
        spend(ledger)
    change(ledger.path, "PRAGMA journal_mode=DELETE")
    spend(ledger)
    assert ledger.verify() == 5


def test_a_second_name_for_the_file_is_refused(ledger, tmp_path):
    os.link(ledger.path, tmp_path / "second.ledger")
    with pytest.raises(LedgerError, match="several names"):
        spend(ledger)


def test_a_symbolic_link_is_the_same_ledger(ledger, tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "folder" / "link.ledger"
    link.symlink_to(ledger.path)
    spend(Ledger(link))
    assert ledger.verify() == 5


def test_a_held_file_is_waited_for_and_then_given_up(ledger, monkeypatch):
    give_up_after(monkeypatch, 0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process has held it"):
            spend(ledger)
        assert ledger.spent("survey") == PureDP(0.375)
    spend(ledger)


def test_an_error_about_arguments_is_not_one_about_the_file(ledger):
    with pytest.raises(ArgumentError) as caught:
        ledger.spent("none")
    assert not isinstance(caught.value, LedgerError)
