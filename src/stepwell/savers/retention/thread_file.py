"""A thread as one file: what was exported, read without the database it came from.

The first line names the format. Then frames follow, each its length in four bytes and a msgpack value: a header that
says which columns the rows have, one `[table, columns]` for each row as it was stored, and an end that counts the rows
and has the digest of every byte before it. The rule: a file is read to its end before anything of it is used.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import ormsgpack

from stepwell.errors import FileTakenError, ThreadFileError, ThreadFileNewerError, UnusableFileError
from stepwell.store import StoredRow

FORMAT = 1
MAGIC = b"stepwell thread "
LARGEST_FRAME = 1 << 31
END = "end"
_LOST = {"written": "exported", "read": "imported"}


def checked_path(given: object, used: str) -> Path:
    """Return where a file is. Raises UnusableFileError for what is no path; `used`: "written" or "read"."""
    place = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(place, str):
        raise unusable(repr(given), used, f"a path is due, and this is a {type(given).__name__}")
    if not place or "\0" in place:
        raise unusable(repr(place), used, "a path holds NUL" if place else "the path is empty")
    return Path(place)


def unusable(path: object, used: str, reason: str) -> UnusableFileError:
    """Return the error of a file that cannot be written or read."""
    return UnusableFileError(path=path, used=used, reason=reason, lost=_LOST[used])


class Written:
    """A file that is being written: complete under its name, or not there."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self._path, self._part = path, path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        with self._told():
            if path.exists():
                raise FileTakenError(path=path)
            self._file: IO[bytes] = self._part.open("xb")  # closed by finish or abandon
        self._digest = hashlib.blake2b(digest_size=16)
        self.rows, self.bytes = 0, 0
        self._write(MAGIC + b"%d\n" % FORMAT)
        self._frame(header)

    def add(self, row: StoredRow) -> None:
        """Write a row."""
        self.rows += 1
        self._frame(row)

    def finish(self) -> None:
        """Write the end, and give the file its name once it is on the disk; the name is there too on return."""
        self._frame((END, self.rows, self._digest.digest()))
        with self._told():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            named(self._part, self._path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise FileTakenError(path=self._path) from None
        except OSError as error:
            raise unusable(self._path, "written", error.strerror or str(error)) from error

    def _frame(self, value: Any) -> None:
        packed = ormsgpack.packb(value)
        self._write(len(packed).to_bytes(4, "big") + packed)

    def _write(self, data: bytes) -> None:
        self.bytes += len(data)
        self._digest.update(data)
        with self._told():
            self._file.write(data)


def named(part: Path, path: Path) -> None:
    """Give a file its name, durably, unless something has it. FileExistsError where it has."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        part.replace(path)
    else:
        part.unlink()
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def header_of(path: Path) -> dict[str, Any]:
    """Return the header, the whole file read and checked. Raises ThreadFileError, UnusableFileError."""
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
        raise unusable(path, "read", error.strerror or str(error)) from error


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
