"""What a repair says of itself: a record on the first checkpoint of the lineage with which its thread goes on.

It holds what was left behind, so that a check can tell it from what was damaged since, and what stood in rows that had
to be made anew. Without it neither could be known later.
"""

from __future__ import annotations

from typing import NamedTuple

import ormsgpack

from stepwell.errors import CorruptRecordError
from stepwell.superstep.formats import FORMAT, parts_of

Left = tuple[str, str, str, bool]
"""Table, place and reason of a fault, and whether the row itself does not verify: then all else said of it is known."""

Remade = tuple[str, str, bytes]
"""Table and place of a row that was made anew, and its columns as they stood, as msgpack."""


class Repaired(NamedTuple):
    """A repair, as it is recorded. The record's place says when."""

    by: str
    reason: str
    seq: int
    """The checkpoint from which the thread goes on."""
    left: tuple[Left, ...]
    remade: tuple[Remade, ...]


def encode_repaired(repaired: Repaired) -> bytes:
    """Return the body of the record."""
    return ormsgpack.packb((FORMAT, *repaired))


def decode_repaired(body: bytes, record: str) -> Repaired:
    """Return what the record says. CorruptRecordError where its body does not fit its layout."""
    parts = parts_of(body, record)
    if tuple(map(type, parts)) != (str, str, int, list, list):
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    by, reason, seq, left, remade = parts
    return Repaired(by, reason, seq, tuple(map(tuple, left)), tuple(map(tuple, remade)))


def columns_as_stored(columns: tuple[object, ...]) -> bytes:
    """Return the columns of a row as they stood."""
    return ormsgpack.packb(columns)
