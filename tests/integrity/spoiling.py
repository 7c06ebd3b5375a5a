"""Savers on both bodies of the store, whose rows a test can damage by a statement."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from stepwell import PostgresSaver, SqliteSaver
from stepwell.stores.postgres.sql import SCHEMA
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

BODIES = ("sqlite", "postgres")


class OnPostgres(PostgresSaver):
    """A saver that knows where its database is."""

    def __init__(self, conninfo: str) -> None:
        super().__init__(conninfo)
        self.conninfo = conninfo


Saver = SqliteSaver | OnPostgres


class Place:
    """Where a thread is kept, while savers come and go."""

    def __init__(self, body: str, folder: Path, worker: str) -> None:
        self._path = folder / "threads.db" if body == "sqlite" else None
        self._conninfo = empty_database(VERSIONS[-1], worker) if body == "postgres" else ""

    def open(self) -> Saver:
        """Return a saver of its own on what is kept there."""
        return OnPostgres(self._conninfo) if self._path is None else SqliteSaver(self._path)


def count_rows(saver: Saver, table: str, thread_id: str) -> int:
    """Return how many rows of a thread a table has, the database asked itself."""
    statement = f"select count(*) from {table} where thread_id = '{thread_id}'"
    if isinstance(saver, OnPostgres):
        with psycopg.connect(saver.conninfo, options=f"-c search_path={SCHEMA}") as connection:
            found = connection.execute(statement.encode()).fetchone()
            assert found is not None
            return int(found[0])
    there = saver.store._writer.transactions.connection
    assert there is not None
    return int(there.execute(statement).get)


def spoil(saver: Saver, statement: str) -> None:
    """Carry out a statement of SQLite's behind the saver's back; it must change something."""
    if isinstance(saver, OnPostgres):
        with psycopg.connect(saver.conninfo) as connection:
            connection.execute(sql.SQL("set search_path to {}").format(sql.Identifier(SCHEMA)))
            done = connection.execute(statement.replace("x'00'", "'\\x00'::bytea"))
            assert done.rowcount > 0
        return
    there = saver.store._writer.transactions.connection
    assert there is not None
    there.execute(statement)
    assert there.changes() > 0
