"""One transaction of writing: begin, statements, commit, in as few round trips as their answers allow.

Statements wait in a pipeline until an answer is asked for. A transaction that fails is undone; where the connection is
lost, the server does so, unless COMMIT was on its way: `committing` says whether it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection
from stepwell.stores.postgres.packing import Packed, PackedDumper
from stepwell.stores.postgres.pipelined import Pipelined
from stepwell.stores.postgres.texts import bound, row_of, stored
from stepwell.stores.shared.statements import Statements

PATIENT = "set local lock_timeout = 30000"
"""Milliseconds. Who waits for a lock longer is told so, rather than to wait for ever."""
HURRIED = "set local lock_timeout = 500"
"""Who waits longer while others wait behind it makes room for them."""
LEFT_IDLE = "set local idle_in_transaction_session_timeout = 30000"
"""A client whose connection is lost unseen does not keep its locks."""
LEAVE_TO_SYSTEM = "set local synchronous_commit = off"


class Answer(NamedTuple):
    """What a statement found, once it is asked for."""

    fetchall: Callable[[], list[Any]]


class Session:
    """A transaction on a connection. Used as a block: what was not committed at its end is undone."""

    def __init__(self, connection: Connection, schema: str, *, flush: bool = True, patient: bool = True) -> None:
        self.connection, self._schema, self._flush, self._patient = connection, schema, flush, patient
        self.committing = False
        """Whether COMMIT may have reached the server."""
        self._pipeline: AbstractContextManager[Any] = Pipelined(connection)
        self._last: psycopg.Cursor[Any] = connection.cursor(row_factory=tuple_row)

    def __enter__(self) -> Session:
        self._sync = self._pipeline.__enter__().sync
        self.say(sql.BEGIN)
        self.say(PATIENT if self._patient else HURRIED)
        self.say(LEFT_IDLE)
        if not self._flush:
            self.say(LEAVE_TO_SYSTEM)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pipeline.__exit__(kind, error, traceback)

    def commit(self) -> None:
        """Commit; durable when this returns."""
        self.committing = True
        self.say(sql.COMMIT)
        self._pipeline.__exit__(None, None, None)
        self._pipeline = _nothing
        self.committing = False

    def say(self, verb: str) -> None:
        """Run what has no bindings and no answer."""
        self._last.execute(verb, prepare=False)

    def statements(self) -> Statements:
        """Return the writing statements on this connection."""
        return Statements(lambda name: sql.query(name, self._schema), self._execute, self._changes, self._lock)

    def fetch(self, name: str, where: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Run a statement, and wait for its answer."""
        found: list[Any] = self._execute(sql.query(name, self._schema), where).fetchall()
        return found

    def _execute(self, text: str, where: Sequence[Any] | Mapping[str, Any] = ()) -> Answer:
        if isinstance(where, Mapping):
            cursor: psycopg.Cursor[Any] = self.connection.cursor(row_factory=tuple_row)
            cursor.execute(text, bound(where), prepare=False, binary=True)
        else:
            cursor = psycopg.RawCursor(self.connection, row_factory=tuple_row)
            given = [stored(value) if type(value) is str else value for value in where]
            cursor.execute(text, given, prepare=False, binary=True)
        self._last = cursor
        return Answer(lambda: [row_of(row) for row in cursor.fetchall()])

    def _changes(self) -> int:
        """Wait for the last statement's answer; return how many rows it changed."""
        self._sync()
        return self._last.rowcount

    def _lock(self, kind: str, names: Sequence[str]) -> None:
        self._execute(sql.query("lock_names", self._schema), {"names": [f"{kind} {name}" for name in names]})


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_nothing = _Nothing()


def understands_rows(connection: Connection) -> None:
    """Teach a connection to pass packed rows on."""
    connection.adapters.register_dumper(Packed, PackedDumper)
