"""Moving a thread between databases: out into a file, and from a file into a database that does not have it.

Rows move as they are stored, digests and all, from one body into another, encrypted ones with their wrapped key. A run
that is going on arrives as one whose process died.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stepwell.errors import (
    EncryptedThreadFileError,
    PlaintextThreadFileError,
    ThreadExistsError,
    ThreadFileError,
    UnknownThreadError,
)
from stepwell.savers.integrity.examining import check_sound
from stepwell.savers.retention.thread_file import FORMAT, Written, checked_path, header_of, rows_of
from stepwell.store import (
    AnchorRow,
    BlobRow,
    CheckpointRow,
    EffectRow,
    EventRow,
    KeyRow,
    LineageRow,
    MessageRow,
    RecordRow,
    Restoration,
    RunRow,
    ShapeRow,
    Store,
    StoredRow,
    ThreadRow,
    digest_of,
    is_encrypted,
)
from stepwell.stores.encrypted.locked import LockedStore
from stepwell.stores.encrypted.store import EncryptedStore
from stepwell.stores.encrypted.unopened import layer_of

PathName = str | os.PathLike[str]

COLUMNS: dict[str, tuple[str, ...]] = {
    "threads": (*ThreadRow._fields, "digest"),
    "keys": KeyRow._fields,
    "shapes": ShapeRow._fields,
    "runs": (*RunRow._fields, "epoch", "digest"),
    "checkpoints": CheckpointRow._fields,
    "lineages": (*LineageRow._fields, "digest"),
    "anchors": AnchorRow._fields,
    "blobs": BlobRow._fields,
    "records": RecordRow._fields,
    "effects": EffectRow._fields,
    "events": EventRow._fields,
    "inbox": MessageRow._fields,
}
_TAGS = {name: name.rstrip("s") for name in COLUMNS} | {"inbox": "message"}


class ThreadFile(NamedTuple):
    """A thread in a file."""

    thread_id: str
    path: str
    rows: int
    bytes: int


def export_thread(store: Store, thread_id: str, path: PathName, now: int) -> ThreadFile:
    """Write every row of a thread to a file, as one snapshot shows it. Raises UnknownThreadError, and
    CorruptRecordError where something of it is damaged or lost, before anything is written."""
    place = checked_path(path, "written")
    with store.reading() as reader:
        if reader.thread(thread_id) is None:
            raise UnknownThreadError(thread_id=thread_id)
        check_sound(reader, thread_id)
        columns = {name: list(names) for name, names in COLUMNS.items()}
        file = Written(place, {"format": FORMAT, "thread_id": thread_id, "exported_at": now, "columns": columns})
        try:
            for row in reader.stored(thread_id):
                file.add(row)
            file.finish()
        except BaseException:
            file.abandon()
            raise
    return ThreadFile(thread_id, os.fspath(path), file.rows, file.bytes)


class Checked(NamedTuple):
    """What a file holds, every row of it verified."""

    path: Path
    thread: ThreadRow
    rows: int
    said: Mapping[bool, str]
    """Whether it is encrypted → a table in which something is said so."""


def check_file(path: PathName) -> Checked:
    """Read a file to its end. Raises ThreadFileError where it is damaged or not one, UnusableFileError where it
    cannot be read."""
    place = checked_path(path, "read")
    header = header_of(place)
    if header.get("columns") != {name: list(names) for name, names in COLUMNS.items()}:
        raise ThreadFileError(path=place, reason="its rows have other columns than this release writes")
    rows, said = 0, dict[bool, str]()
    for row in _verified(place, header):
        rows += 1
        if (body := _said(row)) != b"":
            said.setdefault(is_encrypted(body), row[0])
    first = next(rows_of(place), None)
    if first is None or first[0] != "threads":
        raise ThreadFileError(path=place, reason="it holds no thread")
    return Checked(place, ThreadRow._make(first[1][:-1]), rows, said)


def check_secrecy(file: Checked, is_secret: bool) -> None:
    """Raise where something in the file is encrypted and the database is not, or the other way round."""
    if not is_secret and True in file.said:
        raise EncryptedThreadFileError(path=file.path, thread_id=file.thread.thread_id)
    if is_secret and False in file.said:
        raise PlaintextThreadFileError(path=file.path, thread_id=file.thread.thread_id, table=file.said[False])


def import_thread(store: Store, path: PathName) -> ThreadFile:
    """Write the thread of a file; durable on return. Raises ThreadExistsError, ThreadFileError for a file that is
    damaged or not one, and an EncryptionError where the thread is encrypted and the database is not, or the reverse."""
    file = check_file(path)
    thread_id = file.thread.thread_id
    check_secrecy(file, any(layer_of(store, kind) is not None for kind in (EncryptedStore, LockedStore)))
    with store.reading() as reader:
        if reader.inbox(thread_id):
            raise ThreadExistsError(
                f"Thread {thread_id} has messages waiting for it, and nothing is written over them.",
                thread_id=thread_id,
            )
    if not store.restore(Restoration(file.thread, lambda: rows_of(file.path))):
        raise ThreadExistsError(thread_id=thread_id)
    return ThreadFile(thread_id, os.fspath(path), file.rows, file.path.stat().st_size)


_SAID = {name: COLUMNS[name].index("body") for name in ("checkpoints", "records", "blobs", "effects", "events")}
_SAID |= {"inbox": COLUMNS["inbox"].index("body"), "runs": COLUMNS["runs"].index("input")}
"""Where a row says what a user gave or a node made."""


def _said(row: StoredRow) -> bytes:
    """Return what a row says, as it is stored; b"" where it says nothing."""
    body: bytes = row[1][_SAID[row[0]]] if row[0] in _SAID else b""
    return body


def _verified(path: Path, header: dict[str, Any]) -> Iterator[StoredRow]:
    """Yield the rows; raise where one is not its digest's, or another thread's."""
    for row in rows_of(path):
        name, columns = row
        names = COLUMNS.get(name, ())
        if len(names) != len(columns):
            raise ThreadFileError(path=path, reason=f"it holds a row of {name!r} that is none")
        if name != "shapes":
            owner = columns[names.index("thread_id")]
            if owner != header.get("thread_id") or digest_of(_TAGS[name], columns[:-1]) != columns[-1]:
                raise ThreadFileError(path=path, reason=f"a row of {name} in it does not match its digest")
        yield row
