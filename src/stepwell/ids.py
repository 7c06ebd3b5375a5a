"""Identity: structural hashes for what must be the same again, fresh ids for what must be new.

Hashes are taken over length-prefixed fields, never over joined strings, so no two different field lists collide. Fresh
ids come from an injected `Ids`, so that tests can replay a run id for id.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import threading
import time
from pathlib import PurePath
from typing import Any, Protocol

_blake2b = hashlib.blake2b


class Ids(Protocol):
    """Where fresh ids come from."""

    def new(self) -> str:
        """Return an id never returned before: 32 hex digits that sort by time of making within one process."""
        ...


class TimeOrderedIds:
    """UUIDv7 (RFC 9562, method 1) without dashes: milliseconds, a counter within them, and 60 random bits drawn once a
    process, which tell processes apart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self.reseed()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reseed)

    def reseed(self) -> None:
        """Draw new random bits: a forked child must not go on with its parent's."""
        self._lock = threading.Lock()
        self._process = f"8{secrets.randbits(60):015x}"

    def new(self) -> str:
        tick = time.time_ns() // 1_000_000 << 12
        with self._lock:
            self._last = tick = tick if tick > self._last else self._last + 1
        return f"{(tick >> 12) << 16 | 0x7000 | (tick & 0xFFF):016x}{self._process}"


def frame(*fields: Any) -> bytes:
    """Return the fields as bytes that no other field list has: each one typed and length-prefixed.

    Fields are str, bytes, int, bool, None or (nested) tuples of them.
    """
    out = bytearray()
    for field in fields:
        kind, data = _field(field)
        out += b"%c%d:" % (kind, len(data))
        out += data
    return bytes(out)


def _field(field: Any) -> tuple[int, bytes]:
    if isinstance(field, str):
        return 0x73, field.encode("utf-8", "surrogatepass")
    if isinstance(field, bytes):
        return 0x62, field
    if field is None:
        return 0x6E, b""
    if isinstance(field, int):
        return 0x69, str(int(field)).encode()
    if isinstance(field, tuple | list):
        return 0x74, frame(*field)
    raise TypeError(f"cannot hash a {type(field).__name__} structurally")


def structural_hash(tag: str, *fields: Any) -> str:
    """Return 32 hex digits: blake2b-128 over the framed tag and fields."""
    return _blake2b(frame(tag, *fields), digest_size=16).hexdigest()


class TaskIds:
    """Task ids of one superstep: the part all its tasks share is hashed once."""

    __slots__ = ("_prefix",)

    def __init__(self, graph_id: str, version: str, thread_id: str, namespace: str, checkpoint_id: str) -> None:
        shared = frame("task", graph_id, version, thread_id, namespace, checkpoint_id)
        self._prefix = _blake2b(shared, digest_size=16)

    def of(self, node: str, index: int | None) -> str:
        """Return the id of the pull of `node` (index None) or of the send at `index`."""
        hasher = self._prefix.copy()
        hasher.update(frame("pull", node) if index is None else frame("push", node, index))
        return hasher.hexdigest()


def is_holdable(text: str) -> bool:
    """Whether every database can hold the text as an id or a name: it is valid Unicode without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def holdable(text: str) -> str:
    """Return the text with whatever no database can hold spelled out."""
    return text if is_holdable(text) else text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def interrupt_id(task_id: str, call_id: str) -> str:
    """Return the id of one question: one task's call of `interrupt`."""
    return structural_hash("interrupt", task_id, call_id)


def fingerprint_of(shape: str) -> str:
    """Return the fingerprint of graphs with this shape."""
    return structural_hash("graph", shape)


def home_of(cls: type[Any]) -> str:
    """Return the name of the module a class is defined in; for a script, the name it would be imported by.

    A thread that `python app.py` began goes on where `app` is imported, and the other way round.
    """
    module = cls.__module__
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    path = getattr(main, "__file__", None)
    return PurePath(path).stem if path else module
