"""Where a thread comes from that was copied or forked from another: the body of its `origin` record."""

from __future__ import annotations

from typing import NamedTuple

import ormsgpack

from stepwell.errors import CorruptRecordError
from stepwell.superstep.formats import FORMAT, parts_of

COPIED = "copied"
FORKED = "forked"


class Origin(NamedTuple):
    """The row of another thread after which this one goes its own way."""

    how: str
    """copied: with all that was there by then; forked: from that checkpoint alone."""
    thread_id: str
    seq: int
    digest: bytes
    lineages: int = 0
    """How many of its lineages came along: all of them in a copy, none in a fork."""
    root: str = ""
    """The thread at the beginning of all copies and forks: it is named in the keys that the user gives to effects."""
    brought: tuple[tuple[str, str], ...] = ()
    """Key and position of each effect that a fork brought along: nothing else tells that their rows were there."""


def encode_origin(origin: Origin) -> bytes:
    """Return the body of the record."""
    return ormsgpack.packb([FORMAT, *origin])


def decode_origin(body: bytes, record: str) -> Origin:
    """Return what the record says. CorruptRecordError where its body does not fit its layout."""
    parts = parts_of(body, record)
    if [type(part) for part in parts] not in (_TYPES, _TYPES[:-1]):
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    brought = tuple((key, position) for key, position in parts[6]) if len(parts) > 6 else ()
    return Origin._make((*parts[:6], brought))


_TYPES = [str, str, int, bytes, int, str, list]
"""Without the last in files of the first days of the format."""
