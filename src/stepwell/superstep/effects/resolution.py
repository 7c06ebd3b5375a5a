"""What somebody decided about an effect in doubt, as a record: what, who, and why."""

from __future__ import annotations

from typing import Final, NamedTuple

import ormsgpack

from stepwell.errors import CorruptRecordError
from stepwell.superstep.blobs import kinds_of
from stepwell.superstep.effects.layout import Ended
from stepwell.superstep.formats import FORMAT, parts_of

RECEIPT: Final = "receipt"
"""It has happened, and this is what it returned."""
FAILED: Final = "failed"
"""It has not happened: a call performs it, under the same key."""
RETRY: Final = "retry"
"""Still nobody knows. One more attempt under the same key is allowed, whatever the effect declares."""

CHOICES: Final = (RECEIPT, FAILED, RETRY)

RESOLVED: Final = "resolved"
"""`Ended.how` of a receipt, or of a failure, that somebody stated."""
ALLOWED: Final = "retry allowed"
"""`Ended.how` of a doubt in which one more attempt was allowed: its intent takes this record's place."""


class Resolved(NamedTuple):
    """A decision. The record's place says when and, if the effect is this thread's, beside which attempt."""

    choice: str
    """receipt | failed | retry"""
    by: str
    reason: str
    name: str
    node: str
    call_id: str
    ended: Ended
    """How the effect stands by it."""


def encode_resolved(resolved: Resolved) -> bytes:
    """Return the body of the record."""
    return ormsgpack.packb((FORMAT, *resolved[:-1], *resolved.ended))


def decode_resolved(body: bytes, record: str) -> Resolved:
    """Return what the record says. CorruptRecordError where its body does not fit its layout."""
    parts = parts_of(body, record)
    if kinds_of(parts) != _TYPES:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    return Resolved._make((*parts[:6], Ended._make(parts[6:])))


_TYPES = (str, str, str, str, str, str, str, int, str, bytes, str, bytes, bool, int, int)
