"""Queries by name in one snapshot of a database, with PostgreSQL's errors told as Stepwell's.

The snapshot is a REPEATABLE READ transaction that only reads. It is opened with the first query, in one round trip with
it, and holds a connection from then until it is ended. Where that first query finds the connection gone, since a server
or a pooler closed it meanwhile, it is asked once more on a fresh one; later ones are not, as the snapshot is gone too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from stepwell.errors import SaverClosedError
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection, Connections
from stepwell.stores.postgres.damage import is_lost, unavailable, unreadable
from stepwell.stores.postgres.filtered import find_filtered
from stepwell.stores.postgres.texts import bound, row_of
from stepwell.stores.shared.rows import Table
from stepwell.stores.shared.source import Bindings

ROWS_AT_ONCE = 500
"""As many rows of a stream are fetched in a round trip."""


class PostgresSource:
    """What a reader stands on."""

    __slots__ = ("_connection", "_connections", "_cursor", "_ended", "_schema", "_streams", "listed", "place")

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._schema = schema
        self._connection: Connection | None = None
        self._cursor: psycopg.Cursor[tuple[Any, ...]] | None = None
        self._streams = 0
        self._ended = False
        self.listed = list
        self.place = "the database"

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]:
        """Return all that a query finds."""
        if where.get("filter") is not None:
            return find_filtered(self, name, table, where)
        try:
            return [row_of(row) for row in self._rows(sql.query(name, self._schema), bound(where))]
        except psycopg.Error as error:
            thread_id = str(where.get("thread_id", where.get("run_id")) or "")
            raise self._told(error, f"{table.name} of thread {thread_id!r}", thread_id) from error

    def scan(self, name: str, where: Bindings) -> Generator[Any, None, None]:
        """Yield what a query finds, some hundred rows at a time."""
        try:
            connection = self._begun()
            self._streams += 1
            with connection.cursor(f"stepwell_{self._streams}", row_factory=tuple_row) as cursor:
                cursor.itersize = ROWS_AT_ONCE
                cursor.execute(sql.query(name, self._schema), bound(where), binary=True)
                yield from map(row_of, cursor)
        except psycopg.Error as error:
            raise self._told(error, "all rows", "") from error

    def stream(self, name: str, where: Bindings) -> Iterator[Any]:
        """Yield what a query finds; text comes as bytes, and may be asked for as bytes."""
        asked = {key: value.decode() if isinstance(value, bytes) else value for key, value in where.items()}
        for row in self.scan(name, asked):
            yield [column.encode() if isinstance(column, str) else column for column in row]

    def end(self) -> None:
        """Give the snapshot up."""
        self._ended = True
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            self._connections.give_back(connection)

    def _rows(self, text: str, where: Bindings) -> list[tuple[Any, ...]]:
        if self._cursor is None:
            return self._open(text, where)
        return self._cursor.execute(text, where, prepare=False).fetchall()

    def _begun(self) -> Connection:
        if self._connection is None:
            self._open("select", {})
        assert self._connection is not None
        return self._connection

    def _open(self, text: str, where: Bindings) -> list[tuple[Any, ...]]:
        """Begin the snapshot and ask its first query."""
        if self._ended:
            raise SaverClosedError(reason="this snapshot has ended; read inside its block")
        connection = self._connections.take()
        try:
            rows = self._begin(connection, text, where)
        except psycopg.Error as error:
            lost = is_lost(error, connection)
            self._connections.give_back(connection)
            if not lost:
                raise
            self._connections.forget_idle()
            connection = self._connections.take()
            try:
                rows = self._begin(connection, text, where)
            except BaseException:
                self._connections.give_back(connection)
                raise
        except BaseException:
            self._connections.give_back(connection)
            raise
        self._connection = connection
        return rows

    def _begin(self, connection: Connection, text: str, where: Bindings) -> list[tuple[Any, ...]]:
        with connection.pipeline():
            connection.execute(sql.BEGIN_READ, prepare=False)
            cursor = connection.cursor(binary=True, row_factory=tuple_row)
            cursor.execute(text, where, prepare=False)
        self._cursor = cursor
        return cursor.fetchall()

    def _told(self, error: psycopg.Error, what: str, thread_id: str) -> Exception:
        if self._connection is None:
            lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        else:
            lost = is_lost(error, self._connection)
        if lost:
            return unavailable(error, self._connections.where)
        return unreadable(error, what, thread_id, self._connections.where)
