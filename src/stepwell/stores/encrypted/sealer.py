"""What of each row is encrypted, and to which row that is bound: both directions, side by side.

Hidden is whatever a user gave or a node made; shown is what the store finds rows by, and what proves that none is
missing: ids, node names, kinds, counters, times, sizes, digests. Everything that is shown and never changes is bound.
Rows of a thread are encrypted with its key; effects of the scope "global" and items, which are nobody's, with the
database's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.store import (
    WHOLE_DATABASE,
    BlobRow,
    CheckpointRow,
    EffectRow,
    EventDraft,
    EventRow,
    ItemRow,
    Message,
    MessageRow,
    RecordRow,
    RunRow,
    is_encrypted,
    seal_blob,
    seal_effect,
    seal_record,
    sealed_checkpoint,
)
from stepwell.stores.encrypted.cipher import DataKey
from stepwell.stores.encrypted.keyring import Keyring
from stepwell.superstep.items import PUT, ItemWrite

_GLOBAL = "global"


class EncryptingSealer:
    """Encrypts what a row says, then seals what is stored."""

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys

    def checkpoint(self, columns: tuple[Any, ...]) -> CheckpointRow:
        """Return the row as it is stored: what its metadata said stands in its body."""
        *shown, metadata, body = columns
        bound = tuple(shown)
        sealed = self._of(bound[0]).seal("checkpoint", bound, (metadata, body))
        return sealed_checkpoint((*bound, "", sealed))

    def record(self, row: RecordRow) -> RecordRow:
        """Return the row as it is stored."""
        sealed = self._of(row.thread_id).seal("record", row[:-2], (row.body,))
        return seal_record(row._replace(body=sealed))

    def effect(self, row: EffectRow) -> EffectRow:
        """Return the row as it is stored: what its call id and fingerprint said stands in its body."""
        return sealed_effect(self._of(owner_of(row)), row)

    def blob_name(self, thread_id: str, body: bytes) -> bytes:
        """Return a name that says nothing of the value to who has not the thread's key."""
        return self._of(thread_id).content("blob", body)

    def blob(self, row: BlobRow) -> BlobRow:
        """Return the row as it is stored."""
        sealed = self._of(row.thread_id).seal("blob", row[:2], (row.body,))
        return seal_blob(row._replace(body=sealed))

    def items(self, writes: Sequence[ItemWrite]) -> tuple[ItemWrite, ...]:
        """Return the writes as they are stored."""
        if not any(write.kind == PUT for write in writes):
            return tuple(writes)
        key = self._of(WHOLE_DATABASE)
        return tuple(_sealed_item(key, write) if write.kind == PUT else write for write in writes)

    def run(self, row: RunRow) -> RunRow:
        """Return the row as it is stored: digest of the input, and error, stand in the input. Once sealed it stays."""
        if is_encrypted(row.input):
            return row
        blank = row._replace(input=b"", input_digest=b"", error="")
        hidden = (row.input, row.input_digest, row.error)
        return blank._replace(input=self._of(row.thread_id).seal("run", _bound_of_run(row), hidden))

    def event(self, thread_id: str, draft: EventDraft) -> EventDraft:
        """Return the event as it is stored. Once sealed it stays."""
        if is_encrypted(draft.body):
            return draft
        bound = (thread_id, draft.run_id, draft.kind, draft.created_at)
        return draft._replace(body=self._of(thread_id).seal("event", bound, (draft.body,)))

    def message(self, given: Message) -> Message:
        """Return the message as it is stored: its key stands in its body."""
        held = self._keys.held(given.thread_id)
        bound = (given.thread_id, given.message_id, given.kind, given.now)
        sealed = held.key.seal("message", bound, (given.key, given.body))
        known_by = held.key.content(given.kind, given.key, given.body)
        where = (given.thread_id, given.message_id, given.kind, "", sealed, given.now, given.flush)
        return Message(*where, known_by, held.row)

    def _of(self, thread_id: str) -> DataKey:
        return self._keys.held(thread_id).key


def owner_of(row: EffectRow) -> str:
    """Return whose key an effect's row is encrypted with."""
    return WHOLE_DATABASE if row.scope == _GLOBAL else row.thread_id


def sealed_effect(key: DataKey, row: EffectRow) -> EffectRow:
    """Return the row as it is stored under a key."""
    blank = row._replace(call_id="", fingerprint="", body=b"", digest=b"")
    sealed = key.seal("effect", blank, (row.call_id, row.fingerprint, row.body))
    return seal_effect(blank._replace(body=sealed))


def _sealed_item(key: DataKey, write: ItemWrite) -> ItemWrite:
    return write._replace(value=key.seal("item", (write.namespace, write.key), (write.value,)))


def _bound_of_run(row: RunRow) -> tuple[Any, ...]:
    return row._replace(input=b"", input_digest=b"", error="", events=0)  # how many events there are, the store says


# -- the way back -----------------------------------------------------------------------------------------------------


def opened_checkpoint(key: DataKey, row: CheckpointRow) -> CheckpointRow:
    """Return the row as it was made; its digest stays that of what is stored."""
    metadata, body = key.open("checkpoint", row[:-3], row.body)
    return row._replace(metadata=metadata, body=body)


def opened_record(key: DataKey, row: RecordRow) -> RecordRow:
    """Return the row as it was made."""
    (body,) = key.open("record", row[:-2], row.body)
    return row._replace(body=body)


def opened_blob(key: DataKey, row: BlobRow) -> BlobRow:
    """Return the row as it was made."""
    (body,) = key.open("blob", row[:2], row.body)
    return row._replace(body=body)


def opened_effect(key: DataKey, row: EffectRow) -> EffectRow:
    """Return the row as it was made."""
    blank = row._replace(call_id="", fingerprint="", body=b"", digest=b"")
    call_id, fingerprint, body = key.open("effect", blank, row.body)
    return row._replace(call_id=call_id, fingerprint=fingerprint, body=body)


def opened_run(key: DataKey, row: RunRow) -> RunRow:
    """Return the row as it was made."""
    input, input_digest, error = key.open("run", _bound_of_run(row), row.input)
    return row._replace(input=input, input_digest=input_digest, error=error)


def opened_event(key: DataKey, row: EventRow) -> EventRow:
    """Return the row as it was made."""
    (body,) = key.open("event", (row.thread_id, row.run_id, row.kind, row.created_at), row.body)
    return row._replace(body=body)


def opened_message(key: DataKey, row: MessageRow) -> MessageRow:
    """Return the row as it was made."""
    said, body = key.open("message", (row.thread_id, row.message_id, row.kind, row.created_at), row.body)
    return row._replace(key=said, body=body)


def opened_item(key: DataKey, row: ItemRow) -> ItemRow:
    """Return the row as it was made."""
    (value,) = key.open("item", (row.namespace, row.key), row.value)
    return row._replace(value=value)
