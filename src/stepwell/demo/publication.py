"""Putting a file in place exactly once, whatever dies in between.

The rule: the name is made from the content, and the file appears under it whole or not at all. So the same content
published twice is one file, and a second publication finds the first.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TypedDict


class Publication(TypedDict):
    """A file that is in place: its path and the SHA-256 of its bytes."""

    path: str
    sha256: str


def publish_once(folder: Path, stem: str, text: str) -> Publication:
    """Write `text` to `folder` under a name made from `stem` and its digest, durably, unless it is there already."""
    content = text.encode()
    digest = hashlib.sha256(content).hexdigest()
    target = folder / f"{stem}-{digest[:12]}.md"
    folder.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        _put_in_place(folder / f".{target.name}.{os.getpid()}.tmp", target, content)
    for leftover in folder.glob(f".{target.name}.*.tmp"):  # of processes that were killed over it
        leftover.unlink(missing_ok=True)
    if target.read_bytes() != content:
        raise FileExistsError(f"{target} was published with other content; move it away and resume")
    return Publication(path=str(target), sha256=digest)


def _put_in_place(draft: Path, target: Path, content: bytes) -> None:
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, target)  # unlike a rename, it refuses to replace a file
    except (FileExistsError, FileNotFoundError):
        pass  # another process was quicker, and may have tidied up
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be synced at all."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
