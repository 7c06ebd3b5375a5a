"""SQLite's errors as Stepwell's. Every one that leaves the store passes here, so a caller never sees apsw."""

from __future__ import annotations

import apsw

from stepwell.errors import CorruptRecordError, StoreError

_UNCHANGED = "Nothing was written; thread {thread_id!r} is as it was."


def translated(error: BaseException, thread_id: str) -> BaseException:
    """Return what a caller is told about an error that undid its write. Errors of our own pass unchanged."""
    if not isinstance(error, apsw.Error):
        return error
    told = _told(error, thread_id)
    told.__cause__ = error
    return told


def damaged(error: BaseException, what: str, thread_id: str) -> CorruptRecordError:
    """Return the error for a read that SQLite or the text codec could not carry out."""
    return CorruptRecordError(record=what, reason=str(error), table=what, thread_id=thread_id, seq=None)


def unreadable(error: apsw.Error, what: str, thread_id: str) -> StoreError:
    """Return the error for a read that failed although nothing is known to be damaged."""
    return StoreError(f"The database could not read {what} of thread {thread_id!r}: {error}.", thread_id=thread_id)


def _told(error: apsw.Error, thread_id: str) -> StoreError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return damaged(error, "the database file", thread_id)
    unchanged = _UNCHANGED.format(thread_id=thread_id)
    if isinstance(error, apsw.FullError):
        return StoreError(f"The disk is full. {unchanged} Free space, then go on.", thread_id=thread_id)
    if isinstance(error, apsw.BusyError):
        return StoreError(f"Another process kept the database locked. {unchanged} Try again.", thread_id=thread_id)
    if isinstance(error, apsw.ConstraintError):
        return StoreError(f"A row of thread {thread_id!r} exists already ({error}). {unchanged}", thread_id=thread_id)
    return StoreError(f"The database refused the write: {error}. {unchanged}", thread_id=thread_id)
