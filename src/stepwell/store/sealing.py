"""How rows come to be stored: the last thing done to a row before it is handed to a store.

Whoever makes a row has it sealed by `store.sealer`. A plain store's seals it with its digest. That of an encrypted one
first encrypts what the row says and then seals what is stored, so that rows verify without a key. The rule: no row is
sealed anywhere else, and what a reader returned is sealed anew before it is written again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

from stepwell.store.rows import (
    BlobRow,
    CheckpointRow,
    EffectRow,
    RecordRow,
    seal_blob,
    seal_effect,
    seal_record,
    sealed_checkpoint,
)
from stepwell.superstep.items import ItemWrite


class Sealer(Protocol):
    """Makes rows ready to be written."""

    def checkpoint(self, columns: tuple[Any, ...]) -> CheckpointRow:
        """Return the row of these columns (all but the digest), as it is stored."""
        ...

    def record(self, row: RecordRow) -> RecordRow:
        """Return the row as it is stored, its digest filled in."""
        ...

    def effect(self, row: EffectRow) -> EffectRow:
        """Return the row as it is stored, its digest filled in."""
        ...

    def blob_name(self, thread_id: str, body: bytes) -> bytes:
        """Return what a value is found by among those of its thread: 16 bytes that depend on the value alone."""
        ...

    def blob(self, row: BlobRow) -> BlobRow:
        """Return the row as it is stored, its digest filled in."""
        ...

    def items(self, writes: Sequence[ItemWrite]) -> tuple[ItemWrite, ...]:
        """Return the writes as they are stored; the store seals their rows."""
        ...


class PlainSealer:
    """Stores what rows say as it is."""

    checkpoint = staticmethod(sealed_checkpoint)
    record = staticmethod(seal_record)
    effect = staticmethod(seal_effect)
    blob = staticmethod(seal_blob)

    @staticmethod
    def blob_name(thread_id: str, body: bytes) -> bytes:
        """Return the digest of the value."""
        return hashlib.blake2b(body, digest_size=16).digest()

    @staticmethod
    def items(writes: Sequence[ItemWrite]) -> tuple[ItemWrite, ...]:
        """Return them as they are."""
        return tuple(writes)


PLAIN: Sealer = PlainSealer()

ENCRYPTED = b"\xc1"
"""How every encrypted body begins, and no other: the one byte with which msgpack begins nothing."""


def is_encrypted(body: bytes) -> bool:
    """Tell whether a body is what an encrypted store makes of one."""
    return body[:1] == ENCRYPTED
