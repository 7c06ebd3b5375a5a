"""The rows of data keys, of databases that are encrypted: each wrapped by a key that no database ever holds.

A data key never changes and is never wrapped for another thread; what changes is only who wrapped it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.store.rows import digest_of

WHOLE_DATABASE = ""
"""Whose key is the database's own: that of items, and of effects of the scope "global". No thread has this id."""


class KeyRow(NamedTuple):
    """The data key of one thread, or the database's own."""

    thread_id: str
    name: bytes
    """By what the key is known, which says nothing of it: 8 random bytes. It stays when the key is wrapped anew."""
    key_id: str
    """The key that wrapped it."""
    wrapped: bytes
    created_at: int
    digest: bytes


@dataclass(slots=True)
class KeyWrites:
    """Writes of data keys that come with no thread's rows: one transaction, unfenced."""

    new: Sequence[KeyRow] = ()
    """Each is written where there is none yet; whichever stands there stays."""
    rewrapped: Sequence[tuple[KeyRow, bytes]] = ()
    """Each with the digest of the row whose place it takes, if that still stands."""
    flush: bool = True
    thread_id: str = ""
    """None: they may be of many threads."""


def seal_key(row: KeyRow) -> KeyRow:
    """Return the row with its digest filled in."""
    columns: tuple[Any, ...] = row[:-1]
    return KeyRow._make((*columns, digest_of("key", columns)))
