"""SQLite's errors as Stepwell's. Every one that leaves the store passes here, so a caller never sees apsw.

The statements are fixed and tested, so where SQLite does not understand one (`SQLError`), the schema was altered.
"""

from __future__ import annotations

import apsw

from stepwell.errors import CorruptRecordError, StoreError, UnsupportedStorageError
from stepwell.stores.shared.unwritten import unwritten

DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError, apsw.TooBigError)
"""What SQLite raises over a file that was altered, from statements that only read."""


def translated(error: BaseException, thread_id: str) -> BaseException:
    """Return what a caller is told about an error that undid its write. Errors of our own pass unchanged."""
    if not isinstance(error, apsw.Error | UnicodeDecodeError):
        return error
    told = _told(error, thread_id)
    told.__cause__ = error
    return told


def unopened(error: apsw.Error, path: str) -> StoreError:
    """Return the error for a database that could not be opened."""
    if isinstance(error, apsw.NotADBError):
        told = f"{path!r} is not a SQLite database. Give Stepwell a file of its own, or restore it from a backup."
        return UnsupportedStorageError(told, path=path)
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        told = f"{path!r} cannot be written: {error}. Check its permissions, and that it is whole."
        return UnsupportedStorageError(told, path=path)
    if isinstance(error, DAMAGE):
        return damaged_file(str(error), path)
    return StoreError(f"{path!r} could not be opened: {error}. Try again when that is mended.", path=path)


def damaged_file(reason: str, path: str) -> CorruptRecordError:
    """Return the error for a database whose first page or schema was altered."""
    told = f"The database {path!r} is damaged: {reason}. Restore it from a backup."
    return CorruptRecordError(
        told, record="the database file", reason=reason, table="the database file", path=path, thread_id="", seq=None
    )


def damaged(error: Exception, what: str, thread_id: str) -> CorruptRecordError:
    """Return the error for a read that SQLite or the text codec could not carry out."""
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        told = (
            f"A page of the database file is damaged, found at {what}: {error}. Restore the file from a backup. What "
            "is not on that page can be saved: `stepwell verify` says what is lost, `stepwell export` writes a thread "
            "that is whole to a file."
        )
        return CorruptRecordError(told, record=what, reason=str(error), table=what, thread_id=thread_id, seq=None)
    return CorruptRecordError(record=what, reason=str(error), table=what, thread_id=thread_id, seq=None)


def unreadable(error: apsw.Error, what: str, thread_id: str) -> StoreError:
    """Return the error for a read that failed although nothing is known to be damaged."""
    return StoreError(f"The database could not read {what}: {error}. Try again.", thread_id=thread_id)


def _told(error: apsw.Error | UnicodeDecodeError, thread_id: str) -> StoreError:
    if isinstance(error, UnicodeDecodeError | apsw.CorruptError | apsw.NotADBError):
        return damaged(error, "the database file", thread_id)
    unchanged = unwritten(thread_id)
    if isinstance(error, apsw.FullError):
        full = f"The disk is full, or the saver's max_bytes. {unchanged} Free space or delete threads, then go on."
        return StoreError(full, thread_id=thread_id)
    if isinstance(error, apsw.BusyError):
        return StoreError(f"Another process kept the database locked. {unchanged} Try again.", thread_id=thread_id)
    if isinstance(error, apsw.ConstraintError):
        return StoreError(f"A row of thread {thread_id!r} exists already ({error}). {unchanged}", thread_id=thread_id)
    return StoreError(f"The database refused the write: {error}. {unchanged}", thread_id=thread_id)
