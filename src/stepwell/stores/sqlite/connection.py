"""How a connection is opened, and what a database must be before anything is written to it.

Every connection sets its own pragmas: WAL, `synchronous=FULL` unless less was asked for by name, a busy timeout. Only
the writer checkpoints the log; a reader never does. The schema is checked here, and migrated by `schema.py`. Only
apsw's SQLite opens the file: a second copy of the library in one process would drop its locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import apsw

from stepwell.errors import UnsupportedStorageError
from stepwell.stores.shared.filters import matches
from stepwell.stores.shared.migrating import Migration, Schema, known_migrations, migrate, schema_of
from stepwell.stores.sqlite import sql
from stepwell.stores.sqlite.damage import unopened
from stepwell.stores.sqlite.schema import SCRIPTS, SqliteSchema, ensure_schema
from stepwell.stores.sqlite.storage import check_place

MEMORY = ":memory:"
BUSY_TIMEOUT_MS = 60_000
LOG_PAGES = 1000
"""The writer folds the log into the database after this many pages."""
LOG_BYTES_KEPT = 64 << 20
OLDEST_SQLITE = 3051003
"""Before it, two processes that write and checkpoint at one moment could corrupt a WAL database."""

_WRITE = apsw.SQLITE_OPEN_READWRITE
"""A reader too, with query_only set: one opened for reading could not rebuild the index of a crashed process's log."""
_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


def open_writer(path: str, synchronous: str, vfs: str | None = None, *, create: bool = True) -> apsw.Connection:
    """Open the connection that writes, creating or migrating the database.

    Reopening passes create=False: a file that is gone must not come back empty.
    """
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        raise UnsupportedStorageError(f"SQLite {apsw.sqlite_lib_version()} is too old: install apsw 3.51.3 or newer.")
    if path != MEMORY:
        check_place(path)
    connection = _open(path, _CREATE if create else _WRITE, vfs)
    with _closed_on_error(connection, path):
        _prepare(connection, path, synchronous)
    return connection


def open_reader(path: str, vfs: str | None = None) -> apsw.Connection:
    """Open a connection that only reads, on a database that a writer has opened before."""
    connection = _open(path, _WRITE, vfs)
    with _closed_on_error(connection, path):
        connection.wal_autocheckpoint(0)
        connection.pragma("query_only", True)
    return connection


def schema_at(path: str) -> Schema:
    """Return which schema a file has, without changing it. Raises SchemaNewerError where this release is too old."""
    with closing(_open(path, _WRITE, None)) as connection, _closed_on_error(connection, path):
        return schema_of(SqliteSchema(connection, path), known_migrations(SCRIPTS))


def migrate_at(path: str) -> list[Migration]:
    """Bring a file to the newest schema; return what this call has carried out. Durable on return."""
    with closing(_open(path, _WRITE, None)) as connection, _closed_on_error(connection, path):
        _use_log(connection, path)
        connection.pragma("synchronous", "full")
        return migrate(SqliteSchema(connection, path), known_migrations(SCRIPTS))


@contextmanager
def _closed_on_error(connection: apsw.Connection, path: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        connection.close()
        if isinstance(error, apsw.Error):
            raise unopened(error, path) from error
        raise


def _open(path: str, flags: int, vfs: str | None) -> apsw.Connection:
    try:
        connection = apsw.Connection(path, flags=flags, vfs=vfs)
    except apsw.Error as error:
        raise UnsupportedStorageError(
            f"Cannot open {path!r}: {error}. Check that it can be written.", path=path
        ) from error
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # else a statement is planned anew for every other binding
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.create_scalar_function("matches_filter", matches, 6, deterministic=True)
    return connection


def _prepare(connection: apsw.Connection, path: str, synchronous: str) -> None:
    if connection.readonly("main"):
        raise UnsupportedStorageError(f"{path!r} cannot be written by this process.", path=path)
    if path != MEMORY:
        _use_log(connection, path)
        connection.pragma("synchronous", synchronous)
        connection.pragma("journal_size_limit", LOG_BYTES_KEPT)
        connection.wal_autocheckpoint(LOG_PAGES)
    ensure_schema(connection, path)


def _use_log(connection: apsw.Connection, path: str) -> None:
    mode = _journal_mode(connection)
    if mode != "wal":
        raise UnsupportedStorageError(f"{path!r} is on storage without write-ahead logging ({mode}).", path=path)


def _journal_mode(connection: apsw.Connection) -> Any:
    """Switch to WAL. Two processes that create one file at once meet here; the switch itself does not wait, so the one
    refused waits for the write lock instead, and tries again."""
    for _ in range(100):
        try:
            return connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            connection.execute(sql.BEGIN_WRITE)
            connection.execute(sql.ROLLBACK)
    return connection.pragma("journal_mode", "wal")
