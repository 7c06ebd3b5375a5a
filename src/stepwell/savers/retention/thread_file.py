"""A thread as one file: what was exported, read without the database it came from.

The first line names the format. Then frames follow, each its length in four bytes and a msgpack value: a header that
says which columns the rows have, one `[table, columns]` for each row as it was stored, and an end that counts the rows
and has the digest of every byte before it. The rule: a file is read to its end before anything of it is used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import ormsgpack

from stepwell.errors import FileTakenError, ThreadFileError, ThreadFileNewerError
from stepwell.store import StoredRow

FORMAT = 1
MAGIC = b"stepwell thread "
LARGEST_FRAME = 1 << 31
END = "end"


class Written:
    """A file that is being written: complete under its name, or not there."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        if path.exists():
            raise FileTakenError(path=path)
        self._path, self._part = path, path.with_name(f"{path.name}.part")
        self._file: IO[bytes] = self._part.open("wb")  # closed by finish or abandon
        self._digest = hashlib.blake2b(digest_size=16)
        self.rows, self.bytes = 0, 0
        self._write(MAGIC + b"%d\n" % FORMAT)
        self._frame(header)

    def add(self, row: StoredRow) -> None:
        """Write a row."""
        self.rows += 1
        self._frame(row)

    def finish(self) -> None:
        """Write the end, and give the file its name once it is on the disk."""
        self._frame((END, self.rows, self._digest.digest()))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        self._part.unlink(missing_ok=True)

    def _frame(self, value: Any) -> None:
        packed = ormsgpack.packb(value)
        self._write(len(packed).to_bytes(4, "big") + packed)

    def _write(self, data: bytes) -> None:
        self.bytes += len(data)
        self._digest.update(data)
        self._file.write(data)


def header_of(path: Path) -> dict[str, Any]:
    """Return the header, the whole file read and checked. Raises ThreadFileError."""
    frames = _frames(path)
    header = next(frames, None)
    if not isinstance(header, dict):
        raise ThreadFileError(path=path, reason="it has no header")
    for _ in frames:
        pass
    return header


def rows_of(path: Path) -> Iterator[StoredRow]:
    """Yield the rows of a file."""
    frames = _frames(path)
    next(frames)
    for name, columns in frames:
        yield name, tuple(columns)


def _frames(path: Path) -> Iterator[Any]:
    """Yield the frames but the end, which is checked."""
    try:
        with path.open("rb") as file:
            yield from _checked(path, file)
    except OSError as error:
        raise ThreadFileError(path=path, reason=error.strerror or str(error)) from error


def _checked(path: Path, file: IO[bytes]) -> Iterator[Any]:
    first = file.readline(64)
    number = first[len(MAGIC) : -1]
    if not first.startswith(MAGIC) or not number.isdigit():
        raise ThreadFileError(path=path, reason="it is another kind of file")
    if int(number) > FORMAT:
        raise ThreadFileNewerError(path=path, found=int(number), known=FORMAT)
    digest, rows = hashlib.blake2b(first, digest_size=16), -1
    while True:
        size = file.read(4)
        packed = file.read(min(int.from_bytes(size, "big"), LARGEST_FRAME)) if len(size) == 4 else b""
        if len(size) < 4 or len(packed) != int.from_bytes(size, "big"):
            raise ThreadFileError(path=path, reason="it ends too early")
        try:
            frame = ormsgpack.unpackb(packed)
        except ormsgpack.MsgpackDecodeError as error:
            raise ThreadFileError(path=path, reason=f"row {rows} is damaged") from error
        if isinstance(frame, list) and frame[:1] == [END]:
            if frame != [END, rows, digest.digest()] or file.read(1):
                raise ThreadFileError(path=path, reason="it is not what was written")
            return
        if rows >= 0 and not (isinstance(frame, list) and len(frame) == 2 and isinstance(frame[1], list)):
            raise ThreadFileError(path=path, reason=f"row {rows} is damaged")
        digest.update(size + packed)
        rows += 1
        yield frame
