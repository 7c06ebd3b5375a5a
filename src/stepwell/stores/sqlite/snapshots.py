"""The connections that are read: a pool for a file, the writer's own for memory.

A file is read on connections that serve one `reading()` at a time, each in its own transaction: the snapshot is that of
its first read, and no reader waits for a writer. A lock is held only to read memory, where there is one connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from stepwell.store import Fault
from stepwell.stores.shared.audit import audit
from stepwell.stores.shared.reader import RowReader
from stepwell.stores.shared.writer import Writer
from stepwell.stores.sqlite import sql
from stepwell.stores.sqlite.connection import open_reader
from stepwell.stores.sqlite.source import SqliteSource
from stepwell.stores.sqlite.transaction import Transactions

KEPT = 8


class FileSnapshots:
    """A small pool of reading connections."""

    def __init__(self, path: str, vfs: str | None = None) -> None:
        self._path, self._vfs = path, vfs
        self._free: deque[apsw.Connection] = deque()
        self._closed = False
        self._used: set[apsw.Connection] = set()

    def reading(self) -> _Snapshot:
        """Open one consistent snapshot."""
        return _Snapshot(self)

    def audit(self) -> Iterator[Fault]:
        """Check every row, in one snapshot."""
        connection = self.take()
        try:
            yield from audit(SqliteSource(connection))
        finally:
            self.give_back(connection)

    def close(self) -> None:
        """Close what is free; what is in use closes when it is given back."""
        self._closed = True
        self.close_free()

    def close_free(self) -> None:
        """Close what is free, as before a fork."""
        while self._free:
            self._free.pop().close()

    def in_use(self) -> bool:
        """Tell whether some snapshot is open."""
        return bool(self._used)

    def take(self) -> apsw.Connection:
        """Return a connection on which a transaction has begun; it is to be given back."""
        try:
            connection = self._free.pop()
        except IndexError:
            connection = open_reader(self._path, self._vfs)
        self._used.add(connection)
        try:
            connection.execute(sql.BEGIN_READ)
        except BaseException:
            self.give_back(connection)
            raise
        return connection

    def give_back(self, connection: apsw.Connection) -> None:
        """End the transaction of a connection that was taken."""
        self._used.discard(connection)
        try:
            connection.execute(sql.ROLLBACK)
        except apsw.Error:
            connection.close(True)  # it is not to be trusted any more
            return
        if self._closed or len(self._free) >= KEPT:
            connection.close(True)
        else:
            self._free.append(connection)


class _Snapshot:
    """One snapshot of a file, open inside its block."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: FileSnapshots) -> None:
        self._pool = pool

    def __enter__(self) -> RowReader:
        self._connection = self._pool.take()
        return RowReader(SqliteSource(self._connection))

    def __exit__(self, *_: object) -> None:
        self._pool.give_back(self._connection)


class MemorySnapshots:
    """The writer's connection, under its lock."""

    def __init__(self, writer: Writer[Transactions]) -> None:
        self._writer = writer

    @contextmanager
    def reading(self) -> Iterator[RowReader]:
        """Open one consistent snapshot: nobody writes until it is closed."""
        with self._writer.lock:
            yield RowReader(SqliteSource(self._connection()))

    def audit(self) -> Iterator[Fault]:
        """Check every row. All of them before the first fault is yielded: the lock is not held between."""
        with self._writer.lock:
            faults = list(audit(SqliteSource(self._connection())))
        return iter(faults)

    def close(self) -> None:
        """Do nothing: the connection is the writer's."""

    def close_free(self) -> None:
        """Do nothing: the connection is the writer's."""

    def in_use(self) -> bool:
        """Return False: the child's copy is closed in any case."""
        return False

    def _connection(self) -> apsw.Connection:
        self._writer.check_open()
        connection = self._writer.transactions.connection
        assert connection is not None
        return connection
