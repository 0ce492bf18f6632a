"""What a test can do to the connections of a ledger from outside, where SQLite hands them out."""

from __future__ import annotations

import sqlite3


def watch_commits(monkeypatch, at_commit):
    """Call `at_commit(connection)` before every commit."""

    class Watched(sqlite3.Connection):
        def execute(self, statement, *given):
            if statement == "COMMIT":
                at_commit(self)
            return super().execute(statement, *given)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Watched, **named))


def give_up_after(monkeypatch, seconds):
    """Wait no longer for whoever holds the file."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **{**named, "timeout": seconds}))
