"""What the records of a thread tell of its effects, and whether the rows of these can be all there are.

A row is written in the transaction of the record that says how its effect stands. So where records tell more than the
rows do, a row was lost, or is an old one, and a call that went by it would be made again. Not told of: effects of the
scope "global", whose rows are nobody's and may be anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from stepwell.superstep import lifecycle
from stepwell.superstep.effects.keys import GLOBAL, user_key
from stepwell.superstep.effects.layout import decode_ended, decode_intent
from stepwell.superstep.effects.resolution import decode_resolved


class Told(NamedTuple):
    """What the records of a thread tell of one effect of its own."""

    seq: int
    """The last of them."""
    has_ended: bool
    """Whether one of them says how an attempt ended: the thread had the key then, and a row."""


class Row(Protocol):
    """A row as far as this looks at it."""

    @property
    def thread_id(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def seq(self) -> int: ...


def hear(known: Mapping[str, Told], kind: str, seq: int, body: bytes, record: str) -> dict[str, Told]:
    """Return what is told, with one more record, of the effect that it is about; nothing, where that is none of the
    thread's own. Raises CorruptRecordError where its body does not fit its layout."""
    if kind == lifecycle.INTENT:
        intent = decode_intent(body, record)
        if intent.key == user_key(GLOBAL, "", intent.user_key):
            return {}
        return {intent.key: Told(seq, intent.key in known and known[intent.key].has_ended)}
    key = (decode_resolved(body, record).ended if kind == lifecycle.RESOLVED else decode_ended(body, record)).key
    return {key: Told(seq, True)} if key in known else {}


def lacking(told: Told, thread_id: str, under_key: Sequence[Row]) -> str | None:
    """Return why these cannot be all rows under the key of an effect as they should be; None where they can. An intent
    that came too late for a key that threads share is a record without a row."""
    own = next((row for row in under_key if row.thread_id == thread_id), None)
    if any(row.scope == GLOBAL for row in under_key):
        return None
    if own is None:
        if under_key and not told.has_ended:
            return None
        return f"it is missing, and record {told.seq} tells of it"
    if len(under_key) == 1 and 0 < own.seq < told.seq:
        return f"it stands as of record {own.seq}, and record {told.seq} tells more of it"
    return None
