"""What PostgreSQL says about a write that it undid, as Stepwell's errors. A caller never sees psycopg's."""

from __future__ import annotations

import psycopg
from psycopg import errors

from stepwell.errors import StoreError
from stepwell.stores.postgres.damage import unavailable, unreadable
from stepwell.stores.shared.unwritten import unwritten

PASSING = (errors.DeadlockDetected, errors.SerializationFailure)
"""The same may be tried again at once: it lost against another transaction."""

_SAID: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.DiskFull, "The database's disk is full. {unchanged} Free space or delete threads, then go on."),
    (errors.OutOfMemory, "The database is out of memory. {unchanged} Try again."),
    (errors.LockNotAvailable, "Another transaction kept what is written locked for 30 s. {unchanged} Try again."),
    (errors.ProgramLimitExceeded, "A name is too long for the database ({reason}). {unchanged} Use a shorter one."),
    (errors.QueryCanceled, "The database cancelled the write ({reason}). {unchanged} Try again."),
    (errors.UniqueViolation, "A row of thread {thread_id!r} exists already ({reason}). {unchanged}"),
    (
        errors.ReadOnlySqlTransaction,
        "The database takes no writes: it is a standby, or read-only. {unchanged}",
    ),
    (errors.InsufficientPrivilege, "The database role may not write: {reason}. {unchanged} Grant it the rights."),
)


def refused(error: BaseException, thread_id: str, where: str, *, lost: bool = False) -> BaseException:
    """Return what a caller is told about an error that undid its write. Errors of our own pass unchanged."""
    if not isinstance(error, psycopg.Error):
        return error
    told = _told(error, thread_id, where, lost)
    told.__cause__ = error
    return told


def reason_of(error: BaseException) -> str:
    """Return the first line of what was said: the rest may show a statement's values."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return (said or str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _told(error: psycopg.Error, thread_id: str, where: str, lost: bool) -> BaseException:
    if lost:
        return unavailable(error, where)
    unchanged = unwritten(thread_id)
    for kind, text in _SAID:
        if isinstance(error, kind):
            return StoreError(
                text.format(unchanged=unchanged, thread_id=thread_id, reason=reason_of(error)), thread_id=thread_id
            )
    if isinstance(error, errors.SyntaxErrorOrAccessRuleViolation | errors.InvalidSchemaName):
        return unreadable(error, "its tables", thread_id, where)
    return StoreError(f"The database refused the write: {reason_of(error)}. {unchanged}", thread_id=thread_id)
