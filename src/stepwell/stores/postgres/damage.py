"""PostgreSQL's errors as Stepwell's. Every one that leaves the store passes here, so a caller never sees psycopg's.

No message holds a connection string, which may hold a password: a database is named by its host, port and name.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from stepwell.errors import CorruptRecordError, DatabaseUnavailableError, StoreError, UnsupportedStorageError

DAMAGE = (errors.DataCorrupted, errors.IndexCorrupted, errors.ConfigFileError)
"""What PostgreSQL raises over pages that were altered."""
_NO_SCHEMA = (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn)
_LOST = (
    psycopg.InterfaceError,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.DatabaseDropped,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
    errors.ConnectionException,
    errors.ConnectionFailure,
    errors.ConnectionDoesNotExist,
)


def is_lost(error: BaseException, connection: psycopg.Connection) -> bool:
    """Tell whether an error means that the connection is gone, and the same may be tried on another."""
    return isinstance(error, psycopg.Error) and (connection.closed or isinstance(error, _LOST))


def unavailable(error: psycopg.Error, where: str) -> StoreError:
    """Return the error for a server that cannot be reached, or went away again."""
    return DatabaseUnavailableError(where=where, reason=_text(error))


def unreadable(error: psycopg.Error, what: str, thread_id: str, where: str) -> StoreError:
    """Return the error for a read that failed on a connection that still stands."""
    if isinstance(error, DAMAGE):
        return CorruptRecordError(record=what, reason=_text(error), table=what, thread_id=thread_id, seq=None)
    if isinstance(error, _NO_SCHEMA):
        told = (
            f"{where} has not the tables that are read ({_text(error)}). Call setup() once, or run `stepwell migrate`."
        )
        return UnsupportedStorageError(told, where=where)
    if isinstance(error, errors.InsufficientPrivilege):
        told = f"The database role may not read {what}: {_text(error)}. Grant it the rights of docs/postgres.md."
        return StoreError(told, thread_id=thread_id)
    return StoreError(f"The database could not read {what}: {_text(error)}. Try again.", thread_id=thread_id)


def _text(error: psycopg.Error) -> str:
    """Return the first line of what was said: the rest may show a statement's values."""
    primary = error.diag.message_primary
    return (primary or str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
