"""How an effect stands in records: what is said before its body begins, and what is said of how it ended.

Of what is read, large values may still stand apart: who goes on with one reads the record whole (`runtime/blobs.py`).
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import ormsgpack

from stepwell.errors import CorruptRecordError
from stepwell.superstep.blobs import kinds_of
from stepwell.superstep.formats import FORMAT, parts_of

Said = TypeVar("Said", bound="Intent | Ended")

PERFORMED = "performed"
LATE = "late"
"""The body returned when it had been given up already."""
LOOKED_UP = "looked up"
"""By the effect's `on_doubt`."""
KNOWN_ELSEWHERE = "known elsewhere"
"""Another thread that shares the key knew."""


class Intent(NamedTuple):
    """What is about to happen. Durable before the body begins."""

    key: str
    name: str
    call_id: str
    user_key: str
    """The key as the user gave it; "" where the position is the key."""
    fingerprint: str
    inputs: bytes
    """The arguments by name, encoded, without those that are left out."""
    shown: str
    """The call, shortened, for people."""
    planned_action: str
    versions: dict[str, str]
    approval: bytes
    """The decision that allowed it, encoded; b"" where none was asked for."""
    code: str
    """Version of the function's code."""
    attempt: int
    at: int


class Ended(NamedTuple):
    """How an attempt ended: with a receipt, a failure or in doubt. The record's kind says which."""

    key: str
    intent_seq: int
    """The record of its intent; 0 where that is another thread's."""
    how: str
    """performed | late | looked up | known elsewhere"""
    value: bytes
    """The receipt, encoded."""
    error: str
    raised: bytes
    """Type and arguments of the exception, where it can be made again; else b""."""
    final: bool
    """Of a failure: whether the call raised it, so that a node that runs again is told the same."""
    attempts: int
    at: int


def encode_intent(intent: Intent) -> bytes:
    """Return the body of an intent's record."""
    return ormsgpack.packb((FORMAT, *intent))


def encode_ended(ended: Ended) -> bytes:
    """Return the body of the record of a receipt, a failure or a doubt."""
    return ormsgpack.packb((FORMAT, *ended))


def decode_intent(body: bytes, record: str) -> Intent:
    """Return what the record says. CorruptRecordError where its body does not fit its layout."""
    return _decoded(Intent, _INTENT, body, record)


def decode_ended(body: bytes, record: str) -> Ended:
    """Return what the record says. CorruptRecordError where its body does not fit its layout."""
    return _decoded(Ended, _ENDED, body, record)


_INTENT = (str, str, str, str, str, bytes, str, str, dict, bytes, str, int, int)
_ENDED = (str, int, str, bytes, str, bytes, bool, int, int)


def _decoded(kind: type[Said], types: tuple[type, ...], body: bytes, record: str) -> Said:
    given = parts_of(body, record)
    if kinds_of(given) != types:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")
    return kind(*given)
