"""A disk that can be told to fail, and that remembers what it was asked, so that power can be cut at any moment.

`Disk` is an SQLite VFS over the real one. `Disk.states` replays what it noted: everything before a file's last sync,
and of the writes after it a random part, each torn at sector borders, as a disk is free to do.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
_numbers = count(1)


@dataclass(frozen=True)
class Operation:
    """One thing the disk was asked: write, truncate or sync of a file; or a mark that a test made."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


class Disk(apsw.VFS):
    """A VFS under its own name. `before` is called with kind and file of each operation and may raise.

    With `waits=False` a sync is noted and not carried out: for tests that cut the power on the notes only.
    """

    def __init__(self, *, waits: bool = True) -> None:
        self.waits = waits
        self.name = f"disk-{next(_numbers)}"
        self.log: list[Operation] = []
        self.before: Callable[[str, str], None] = lambda kind, file: None
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> "File":
        return File(self, name, flags)

    def note(self, kind: str, file: str, offset: int = 0, data: bytes = b"") -> None:
        self.before(kind, file)
        self.log.append(Operation(kind, file, offset, data))

    def mark(self) -> None:
        """Note that a commit was acknowledged."""
        self.log.append(Operation("acknowledged", ""))


class File(apsw.VFSFile):
    """A file of a `Disk`."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.file = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary").name
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self.disk.note("write", self.file, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.note("truncate", self.file, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.note("sync", self.file)
        if self.disk.waits:
            super().xSync(flags)


def after_power_cut(start: dict[str, bytes], log: list[Operation], dice: random.Random) -> tuple[dict[str, bytes], int]:
    """Return what the files may hold if the power went at the end of this log, and how many marks it holds."""
    files = {name: bytearray(content) for name, content in start.items()}
    last_sync = {operation.file: index for index, operation in enumerate(log) if operation.kind == "sync"}
    for index, operation in enumerate(log):
        if operation.kind in ("write", "truncate"):
            content = files.setdefault(operation.file, bytearray())
            _carry_out(content, operation, None if index < last_sync.get(operation.file, -1) else dice)
    marks = sum(operation.kind == "acknowledged" for operation in log)
    return {name: bytes(content) for name, content in files.items()}, marks


def _carry_out(content: bytearray, operation: Operation, dice: random.Random | None) -> None:
    """Apply the operation wholly, or where there are dice, not at all, wholly or in part."""
    if dice is not None and dice.random() < 0.3:
        return
    if operation.kind == "truncate":
        del content[operation.offset :]
        return
    torn = dice is not None and dice.random() < 0.5
    for at in range(0, len(operation.data), SECTOR):
        if torn and dice is not None and dice.random() < 0.5:
            continue
        piece, place = operation.data[at : at + SECTOR], operation.offset + at
        content.extend(bytes(max(0, place + len(piece) - len(content))))
        content[place : place + len(piece)] = piece
