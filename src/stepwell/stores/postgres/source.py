"""Queries by name in one snapshot of a database, with PostgreSQL's errors told as Stepwell's.

The snapshot is a REPEATABLE READ transaction that only reads. It is opened with the first query, in one round trip with
it, and holds a connection from then until it is ended. Where that first query finds the connection gone, since a server
or a pooler closed it meanwhile, it is asked once more on a fresh one; later ones are not, as the snapshot is gone too.

A query that is expected goes along with the next one that is asked, in its round trip, and is answered from what came
back: within a snapshot an answer stays true.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from stepwell.errors import SaverClosedError
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection, Connections
from stepwell.stores.postgres.damage import is_lost, unavailable, unreadable
from stepwell.stores.postgres.filtered import find_filtered
from stepwell.stores.postgres.pipelined import Pipelined
from stepwell.stores.postgres.texts import bound, row_of
from stepwell.stores.shared.rows import Table
from stepwell.stores.shared.source import Bindings

ROWS_AT_ONCE = 500
"""As many rows of a stream are fetched in a round trip."""


Asked = tuple[Any, ...]
"""The name of a query and what it is asked with."""
Queries = Sequence[tuple[str, Bindings]]
Answer = psycopg.Cursor[tuple[Any, ...]]


class PostgresSource:
    """What a reader stands on."""

    __slots__ = (
        "_connection",
        "_connections",
        "_ended",
        "_expected",
        "_known",
        "_schema",
        "_streams",
        "far",
        "listed",
        "place",
    )

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._schema = schema
        self._connection: Connection | None = None
        self._expected: dict[Asked, tuple[str, Bindings]] = {}
        self._known: dict[Asked, Answer] = {}
        """What was asked because it was expected."""
        self._streams = 0
        self._ended = False
        self.listed = list
        self.far = True
        self.place = "the database"

    def expect(self, name: str, where: Bindings) -> None:
        """Take note of a query that is about to be asked: it goes along with the next one."""
        asked = _asked(name, where)
        if asked not in self._known:
            self._expected[asked] = (sql.query(name, self._schema), bound(where))

    def fetch(self, name: str, table: Table[Any], where: Bindings) -> list[Any]:
        """Return all that a query finds."""
        if where.get("filter") is not None:
            return find_filtered(self, name, table, where)
        try:
            return self._found(name, where)
        except psycopg.Error as error:
            thread_id = str(where.get("thread_id", where.get("run_id")) or "")
            raise self._told(error, f"{table.name} of thread {thread_id!r}", thread_id) from error

    def scan(self, name: str, where: Bindings) -> Generator[Any, None, None]:
        """Yield what a query finds, some hundred rows at a time, the first of them in one round trip."""
        self._streams += 1
        cursor = f"stepwell_{self._streams}"
        fetch = sql.fetch(cursor, ROWS_AT_ONCE)
        try:
            _, answer = self._ask([(sql.declare(cursor, sql.query(name, self._schema)), bound(where)), (fetch, {})])
            while True:
                rows = answer.fetchall()
                yield from map(row_of, rows)
                if len(rows) < ROWS_AT_ONCE:
                    return
                (answer,) = self._ask([(fetch, {})])
        except psycopg.Error as error:
            raise self._told(error, "all rows", "") from error

    def stream(self, name: str, where: Bindings) -> Iterator[Any]:
        """Yield what a query finds; text comes as bytes, and may be asked for as bytes."""
        asked = {key: value.decode() if isinstance(value, bytes) else value for key, value in where.items()}
        foreseen = _asked(name, asked) in self._expected or _asked(name, asked) in self._known
        for row in self._found(name, asked) if foreseen else self.scan(name, asked):
            yield [column.encode() if isinstance(column, str) else column for column in row]

    def end(self) -> None:
        """Give the snapshot up."""
        self._ended = True
        self._expected, self._known = {}, {}
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections.give_back(connection)

    def _found(self, name: str, where: Bindings) -> list[Any]:
        asked = _asked(name, where)
        answer = self._known.get(asked)
        if answer is None:
            self._expected.pop(asked, None)
            expected, self._expected = self._expected, {}
            queries = [(sql.query(name, self._schema), bound(where)), *expected.values()]
            answer, *others = self._ask(queries)
            self._known.update(zip(expected, others, strict=True))
        elif answer.rownumber:
            answer.scroll(0, "absolute")
        return list(map(row_of, answer.fetchall()))

    def _ask(self, queries: Queries) -> list[Answer]:
        """Ask queries in one round trip."""
        if self._connection is None:
            return self._open(queries)
        if len(queries) == 1:
            return [_execute(self._connection, *queries[0])]
        with Pipelined(self._connection):
            return [_execute(self._connection, *query) for query in queries]

    def _open(self, queries: Queries) -> list[Answer]:
        """Begin the snapshot and ask its first queries."""
        if self._ended:
            raise SaverClosedError(reason="this snapshot has ended; read inside its block")
        connection = self._connections.take()
        try:
            answers = _begin(connection, queries)
        except psycopg.Error as error:
            lost = is_lost(error, connection)
            self._connections.give_back(connection)
            if not lost:
                raise
            self._connections.forget_idle()
            connection = self._connections.take()
            try:
                answers = _begin(connection, queries)
            except BaseException:
                self._connections.give_back(connection)
                raise
        except BaseException:
            self._connections.give_back(connection)
            raise
        self._connection = connection
        return answers

    def _told(self, error: psycopg.Error, what: str, thread_id: str) -> Exception:
        if self._connection is None:
            lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        else:
            lost = is_lost(error, self._connection)
        if lost:
            return unavailable(error, self._connections.where)
        return unreadable(error, what, thread_id, self._connections.where)


def _begin(connection: Connection, queries: Queries) -> list[Answer]:
    with Pipelined(connection):
        connection.execute(sql.BEGIN_READ, prepare=False)
        return [_execute(connection, *query) for query in queries]


def _execute(connection: Connection, text: str, where: Bindings) -> Answer:
    return connection.cursor(binary=True, row_factory=tuple_row).execute(text, where, prepare=False)


def _asked(name: str, where: Bindings) -> Asked:
    return (name, *[(key, tuple(value) if type(value) is list else value) for key, value in where.items()])
