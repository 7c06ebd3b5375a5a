"""Queries on one connection, by name, with SQLite's errors told as Stepwell's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw

from stepwell.errors import CorruptRecordError
from stepwell.stores.shared.rows import NOT_TEXT, Table, corrupt
from stepwell.stores.shared.source import Bindings
from stepwell.stores.sqlite.damage import DAMAGE, damaged, unreadable
from stepwell.stores.sqlite.sql import query


class SqliteSource:
    """What a reader stands on, on a connection whose transaction is the snapshot."""

    __slots__ = ("_connection", "_execute", "far", "listed", "place")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self.listed = json.dumps
        self.place = "the database file"
        self.far = False

    def expect(self, name: str, where: Bindings) -> None:
        """Do nothing: it is near."""

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]:
        """Return all that a query finds."""
        try:
            return self._execute(query(name), where).fetchall()
        except UnicodeDecodeError as error:
            raise self._undecodable(table, _thread_of(where)) from error
        except DAMAGE as error:
            raise damaged(error, table.name, _thread_of(where)) from error
        except apsw.Error as error:
            thread_id = _thread_of(where)
            raise unreadable(error, f"{table.name} of thread {thread_id!r}", thread_id) from error

    def stream(self, name: str, where: Bindings) -> Iterator[Any]:
        """Yield what a query finds, row by row."""
        try:
            yield from self._connection.execute(query(name), where)
        except DAMAGE as error:
            raise damaged(error, self.place, "") from error
        except apsw.Error as error:
            raise unreadable(error, "all rows", "") from error

    def _undecodable(self, table: Table[Any], thread_id: str) -> CorruptRecordError:
        """Return the error for the first row of a thread whose text cannot be decoded."""
        if table.place is None or not thread_id:
            record = f"a row of {table.name}"
            return CorruptRecordError(record=record, reason=NOT_TEXT, table=table.name, thread_id=thread_id, seq=None)
        for raw in self._connection.execute(query(f"raw_{table.name}"), {"thread_id": thread_id.encode()}):
            try:
                table.decoded(raw)
            except ValueError as error:
                return corrupt(table.name, thread_id, raw[table.place], str(error))
        return corrupt(table.name, thread_id, None, NOT_TEXT)


def _thread_of(where: Bindings) -> str:
    return where.get("thread_id", where.get("run_id")) or ""
