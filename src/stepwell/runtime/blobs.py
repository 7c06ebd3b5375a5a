"""Large values on their way into a thread and out of it.

A value goes into the transaction of the first row that refers to it. What the thread is known to have is not sent
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError
from stepwell.runtime.reading.unreadable import LenientCodec, Unreadable
from stepwell.store import BlobRow, Reader, RecordRow
from stepwell.store.sealing import Sealer
from stepwell.superstep import blobs as layout
from stepwell.superstep.compression import is_compressed, plain

KNOWN = 4096
"""So many names a run remembers: forgetting one costs that its value is sent once more."""


class Shelf:
    """The large values of one thread that a run writes."""

    __slots__ = ("_known", "_sealer", "_staged")

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._known: dict[bytes, None] = {}
        self._staged: list[BlobRow] = []

    def know(self, names: Iterable[bytes]) -> None:
        """Take note of values that the thread has."""
        self._known.update(dict.fromkeys(names))
        while len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]

    def apart(self, thread_id: str, body: bytes) -> bytes:
        """Return a body of the thread with its large values staged as rows of their own, if it has some."""
        return layout.apart(body, partial(self._put, thread_id)) if len(body) > layout.ABOVE else body

    def _put(self, thread_id: str, data: bytes) -> bytes:
        name = self._sealer.blob_name(thread_id, data)
        if name not in self._known:
            self._staged.append(self._sealer.blob(BlobRow(thread_id, name, data, b"")))
        self.know((name,))
        return name

    def reference(self, thread_id: str, data: bytes) -> layout.BlobRef:
        """Return what stands for a large value that is in a row of the thread by now."""
        return layout.BlobRef(self._sealer.blob_name(thread_id, data))

    def take(self) -> tuple[BlobRow, ...]:
        """Return what is staged for the next transaction."""
        taken = tuple(self._staged)
        self._staged.clear()
        return taken

    def forget(self) -> None:
        """After a write failed: what is staged is given up, and what the thread has is not known any more."""
        self._staged.clear()
        self._known.clear()


class BlobCodec(Codec):
    """Reads as another codec does, and what stands apart from these values."""

    def __init__(self, inner: Codec, values: Mapping[bytes, bytes | None], thread_id: str) -> None:
        self.__dict__.update(inner.__dict__)
        self._inner, self._values, self._of = inner, values, thread_id

    def loads(self, data: Any, path: str = "") -> Any:
        """Return the value that the bytes are, or that is stored under the name that stands for them."""
        try:
            found = self._found(data, path)
        except CorruptRecordError as error:
            if isinstance(self._inner, LenientCodec):
                return Unreadable(path, b"", error)
            raise
        return self._inner.loads(found, path)

    def bytes_of(self, data: Any, path: str = "") -> bytes:
        """Return the bytes that a value is read from; none where who only looks meets one that is missing."""
        try:
            return self._found(data, path)
        except CorruptRecordError:
            if isinstance(self._inner, LenientCodec):
                return b""
            raise

    def _found(self, data: Any, path: str) -> bytes:
        if type(data) is not layout.BlobRef:
            return data  # type: ignore[no-any-return]  # bytes
        found = self._values.get(data.name)
        if found is None:
            raise _missing(self._of, data.name, path or "a row")
        return found


def _missing(thread_id: str, name: bytes, by: str) -> CorruptRecordError:
    told = f"value {name.hex()} of thread {thread_id}"
    return CorruptRecordError(record=told, reason=f"{by} refers to it, and it is missing")


def fetched(reader: Reader, thread_id: str, names: set[bytes]) -> dict[bytes, bytes | None]:
    """Return values by name; None stands where one is missing."""
    found: dict[bytes, bytes | None] = dict.fromkeys(names)
    for row in reader.blobs(thread_id, sorted(names)) if names else ():
        body = row.body
        found[row.name] = plain(body, f"value {row.name.hex()} of thread {thread_id}") if is_compressed(body) else body
    return found


def whole_record(reader: Reader, record: RecordRow) -> RecordRow:
    """Return a record with all that it refers to in its place. CorruptRecordError where some of it is missing."""
    names = layout.names_in(record.body)
    if not names:
        return record
    values: dict[bytes, bytes] = {}
    for name, value in fetched(reader, record.thread_id, names).items():
        if value is None:
            raise _missing(record.thread_id, name, f"{record.kind} {record.seq}")
        values[name] = value
    return record._replace(body=layout.whole(record.body, values))


def reading_records(reader: Reader, codec: Codec, records: Sequence[RecordRow]) -> Codec:
    """Return a codec that reads these records of one thread, with what they refer to."""
    return reading(reader, codec, records[0].thread_id, [row.body for row in records]) if records else codec


def reading(reader: Reader, codec: Codec, thread_id: str, bodies: Iterable[bytes]) -> Codec:
    """Return a codec that reads these bodies, with what they refer to."""
    names = set[bytes]().union(*map(layout.names_in, bodies))
    return BlobCodec(codec, fetched(reader, thread_id, names), thread_id) if names else codec
