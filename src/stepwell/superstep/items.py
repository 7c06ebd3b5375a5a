"""What a task wrote to the item store: part of its outcome, applied in the transaction that consumes it.

Values are bytes already: they were encoded when they were put. Times come with the write, so that applying it after a
crash gives what applying it at once would have given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stepwell.codec import Codec
from stepwell.superstep.blobs import is_apart, kinds_of

PUT, DELETE, TOUCH = "put", "delete", "touch"


class ItemWrite(NamedTuple):
    """One change of one item."""

    kind: str
    """put | delete | touch (the item was read, and its time begins anew)"""
    namespace: str
    """Its labels, joined by periods."""
    key: str
    at: int
    """When, in microseconds of wall time."""
    value: bytes = b""
    ttl: int | None = None
    """Microseconds after which what is put expires."""


def decode_items(stored: Iterable[Sequence[Any]]) -> tuple[ItemWrite, ...]:
    """Return what a body holds of item writes. Raises TypeError or ValueError where it holds something else.
    A large value may still stand apart: see `whole_items`."""
    found = tuple(ItemWrite(*fields) for fields in stored)
    for kind, namespace, key, at, value, ttl in found:
        kinds = kinds_of((namespace, key, at, value))
        if kind not in (PUT, DELETE, TOUCH) or kinds != (str, str, int, bytes) or type(ttl) not in (int, type(None)):
            raise TypeError("an item write is of another shape")
    return found


def whole_items(codec: Codec, items: tuple[ItemWrite, ...]) -> tuple[ItemWrite, ...]:
    """Return the writes with every value at hand. `codec` reads the body they are from."""
    if not any(is_apart(write.value) for write in items):
        return items
    return tuple(write._replace(value=codec.bytes_of(write.value, f"item {write.key!r}")) for write in items)
