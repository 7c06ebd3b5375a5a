"""Reads of one snapshot, decrypted on their way out. What does not decrypt in its place is an error that names it.

The store selects by what is shown; where a filter asks for metadata, which is encrypted, it is applied here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from stepwell.errors import (
    CorruptRecordError,
    EncryptionError,
    LostKeyError,
    MissingKeyError,
    PlaintextRecordError,
    TamperedRecordError,
    WrongKeyError,
)
from stepwell.store import (
    DAMAGED,
    WHOLE_DATABASE,
    AnchorRow,
    BlobRow,
    CheckpointOutline,
    CheckpointRow,
    EffectRow,
    EffectsQuery,
    EventRow,
    Fault,
    HistoryQuery,
    ItemRow,
    JournalQuery,
    KeyRow,
    LineageRow,
    MessageRow,
    RawRow,
    Reader,
    RecordOutline,
    RecordRow,
    RunRow,
    StoredRow,
    ThreadRow,
    ThreadsQuery,
    is_encrypted,
)
from stepwell.stores.encrypted import filtering, sealer
from stepwell.stores.encrypted.cipher import DataKey, NotAuthentic
from stepwell.stores.encrypted.faults import faults_of, missing_of
from stepwell.stores.encrypted.keyring import Keyring
from stepwell.stores.encrypted.travelling import travelling
from stepwell.stores.shared.filters import filter_text, matches

Row = TypeVar("Row")


class DecryptingReader:
    """The contract's `Reader` over another one. `since`: the moments of the ring, from before the snapshot."""

    def __init__(self, inner: Reader, keys: Keyring, since: list[int], accept_plaintext: bool) -> None:
        self._inner, self._keys, self._since, self._accept = inner, keys, since, accept_plaintext
        self._found: dict[str, DataKey | None] = {}

    # -- what is decrypted --------------------------------------------------------------------------------------------

    def checkpoint(self, thread_id: str, namespace: str, checkpoint_id: str) -> CheckpointRow | None:
        """Return the checkpoint with this id."""
        return self._checkpoint(self._inner.checkpoint(thread_id, namespace, checkpoint_id))

    def newest(self, thread_id: str, namespace: str, lineage: int | None = None) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace."""
        return self._checkpoint(self._inner.newest(thread_id, namespace, lineage))

    def child(self, thread_id: str, parent_seq: int, lineage: int) -> CheckpointRow | None:
        """Return the checkpoint of this lineage that continues `parent_seq`."""
        return self._checkpoint(self._inner.child(thread_id, parent_seq, lineage))

    def checkpoints(self, thread_id: str, seqs: Sequence[int]) -> list[CheckpointRow]:
        """Return the checkpoints at these seqs."""
        return [self._open_checkpoint(row) for row in self._inner.checkpoints(thread_id, seqs)]

    def raw_checkpoint(self, thread_id: str, seq: int) -> RawRow | None:
        """Return what stands at a seq, decrypted where that can be."""
        raw = self._inner.raw_checkpoint(thread_id, seq)
        return None if raw is None else self._raw(raw, CheckpointRow, self._open_checkpoint)

    def raw_rows(self, thread_id: str, table: str) -> list[RawRow]:
        """Return all of a thread's rows in a table, decrypted where that can be."""
        found = self._inner.raw_rows(thread_id, table)
        if table == "checkpoints":
            return [self._raw(raw, CheckpointRow, self._open_checkpoint) for raw in found]
        return [self._raw(raw, RecordRow, self._record) for raw in found] if table == "records" else found

    def history(self, query: HistoryQuery) -> list[CheckpointRow]:
        """Return checkpoints, newest first."""
        shown, hidden = filtering.split(query.filter)
        query = replace(query, filter=shown)
        if hidden is None:
            return [self._open_checkpoint(row) for row in self._inner.history(query)]
        wanted = filter_text(hidden)

        def page(after: CheckpointRow | None) -> list[CheckpointRow]:
            before = query if after is None else filtering.older(query, after)
            return [self._open_checkpoint(row) for row in self._inner.history(replace(before, limit=filtering.PAGE))]

        return filtering.looked_through(page, lambda row: matches(wanted, *filtering.told(row)), query.limit)

    def records(self, thread_id: str, base_seq: int) -> list[RecordRow]:
        """Return the records of a base."""
        return [self._record(row) for row in self._inner.records(thread_id, base_seq)]

    def records_of(self, thread_id: str, base_seqs: Sequence[int]) -> dict[int, list[RecordRow]]:
        """Return the records of several bases."""
        found = self._inner.records_of(thread_id, base_seqs)
        return {base_seq: [self._record(row) for row in rows] for base_seq, rows in found.items()}

    def records_at(self, thread_id: str, seqs: Sequence[int]) -> list[RecordRow]:
        """Return these records."""
        return [self._record(row) for row in self._inner.records_at(thread_id, seqs)]

    def records_of_kind(self, thread_id: str, kind: str) -> list[RecordRow]:
        """Return the thread's records of one kind."""
        return [self._record(row) for row in self._inner.records_of_kind(thread_id, kind)]

    def effects_told(self, thread_id: str, lineage: int, since_seq: int, until_seq: int) -> list[RecordRow]:
        """Return what is recorded of effects."""
        return [self._record(row) for row in self._inner.effects_told(thread_id, lineage, since_seq, until_seq)]

    def journal(self, query: JournalQuery) -> list[RecordRow]:
        """Return records of steps, effects and waits."""
        return [self._record(row) for row in self._inner.journal(query)]

    def record(self, thread_id: str, seq: int) -> RecordRow:
        """Return the record at a seq."""
        return self._record(self._inner.record(thread_id, seq))

    def everything(self, thread_id: str) -> tuple[list[CheckpointRow], list[RecordRow]]:
        """Return every checkpoint and record of a thread."""
        checkpoints, records = self._inner.everything(thread_id)
        return [self._open_checkpoint(row) for row in checkpoints], [self._record(row) for row in records]

    def blobs(self, thread_id: str, names: Sequence[bytes] | None = None) -> list[BlobRow]:
        """Return a thread's values."""
        found = self._inner.blobs(thread_id, names)
        return [self._opened("blobs", thread_id, row.name.hex(), row.body, sealer.opened_blob, row) for row in found]

    def blob_names(self, thread_id: str) -> set[bytes]:
        """Return the names of a thread's values, without reading them."""
        return self._inner.blob_names(thread_id)

    def effect(self, key: str) -> list[EffectRow]:
        """Return the rows under a key."""
        return [self._effect(row) for row in self._inner.effect(key)]

    def effects_at(self, thread_id: str, position: str) -> list[EffectRow]:
        """Return a thread's effects at a position."""
        return [self._effect(row) for row in self._inner.effects_at(thread_id, position)]

    def effects(self, query: EffectsQuery) -> list[EffectRow]:
        """Return effects, by thread, seq and key."""
        return [self._effect(row) for row in self._inner.effects(query)]

    def run(self, run_id: str) -> RunRow | None:
        """Return the run."""
        row = self._inner.run(run_id)
        return None if row is None else self._run(row)

    def runs(self, thread_id: str, limit: int | None = None, before: str | None = None) -> list[RunRow]:
        """Return the thread's runs."""
        return [self._run(row) for row in self._inner.runs(thread_id, limit, before)]

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """Return the run's log."""
        found = self._inner.events(run_id, after, limit)
        return [self._opened("events", row.thread_id, row.ordinal, row.body, sealer.opened_event, row) for row in found]

    def inbox(self, thread_id: str, kind: str | None = None) -> list[MessageRow]:
        """Return the messages that wait."""
        return [self.opened_message(row) for row in self._inner.inbox(thread_id, kind)]

    def message(self, thread_id: str, message_id: str) -> MessageRow | None:
        """Return a message, consumed or not."""
        row = self._inner.message(thread_id, message_id)
        return None if row is None else self.opened_message(row)

    def item(self, namespace: str, key: str) -> ItemRow | None:
        """Return an item, expired or not."""
        row = self._inner.item(namespace, key)
        return None if row is None else self._item(row)

    def items(self, prefix: str, now: int) -> Iterator[ItemRow]:
        """Yield the items of a namespace and those below it."""
        return map(self._item, self._inner.items(prefix, now))

    # -- what is shown ------------------------------------------------------------------------------------------------

    def expect(self, asked: str, *of: Any) -> None:
        """Pass it on."""
        self._inner.expect(asked, *of)

    def thread(self, thread_id: str) -> ThreadRow | None:
        """Return the thread's row. Whoever is about to write the thread asks for it first: its key is looked up too."""
        with suppress(EncryptionError):  # told when its rows are read or made
            self._keys.offer(thread_id, self._inner.key(thread_id), self._since)
        return self._inner.thread(thread_id)

    def threads(self, query: ThreadsQuery) -> list[ThreadRow]:
        """Return threads, last changed first."""
        shown, hidden = filtering.split(query.filter)
        query = replace(query, filter=shown)
        if hidden is None:
            return self._inner.threads(query)
        wanted = filter_text(hidden)

        def page(after: ThreadRow | None) -> list[ThreadRow]:
            before = query.before if after is None else (after.updated_at, after.thread_id)
            return self._inner.threads(replace(query, before=before, limit=filtering.PAGE))

        def is_wanted(row: ThreadRow) -> bool:
            try:
                newest = self.newest(row.thread_id, "")
            except MissingKeyError:
                return False  # another tenant's: what this process cannot read, no filter of its selects
            except (CorruptRecordError, WrongKeyError):
                return True  # listed, for whoever reads it to say what is wrong
            return newest is not None and matches(wanted, *filtering.told(newest))

        return filtering.looked_through(page, is_wanted, query.limit)

    def seq_of(self, thread_id: str, namespace: str, checkpoint_id: str) -> int | None:
        """Return the seq of a checkpoint."""
        return self._inner.seq_of(thread_id, namespace, checkpoint_id)

    def id_of(self, thread_id: str, seq: int) -> str:
        """Return the id of the checkpoint at a seq."""
        return self._inner.id_of(thread_id, seq)

    def lineage_of(self, thread_id: str, seq: int) -> int | None:
        """Return the lineage of the checkpoint at a seq."""
        return self._inner.lineage_of(thread_id, seq)

    def newest_seq(self, thread_id: str, namespace: str) -> int | None:
        """Return the seq of the newest checkpoint of a namespace."""
        return self._inner.newest_seq(thread_id, namespace)

    def head_seq(self, thread_id: str, namespace: str, lineage: int) -> int | None:
        """Return the seq of the newest checkpoint of a lineage."""
        return self._inner.head_seq(thread_id, namespace, lineage)

    def anchors(self, thread_id: str) -> list[AnchorRow]:
        """Return what stands for rows that were pruned."""
        return self._inner.anchors(thread_id)

    def outline(self, thread_id: str) -> Iterator[CheckpointOutline]:
        """Yield the thread's checkpoints without their bodies."""
        return self._inner.outline(thread_id)

    def record_outline(self, thread_id: str) -> Iterator[RecordOutline]:
        """Yield the thread's records without their bodies."""
        return self._inner.record_outline(thread_id)

    def stored(self, thread_id: str) -> Iterator[StoredRow]:
        """Yield every row of a thread as it is stored: encrypted, with the wrapped key. Effects of the scope "global",
        which are encrypted with the database's key, are with the thread's here: that one goes along."""
        for row in self._inner.stored(thread_id):
            effect = travelling(row)
            yield row if effect is None else ("effects", tuple(self._departing(thread_id, effect)))

    def _departing(self, thread_id: str, row: EffectRow) -> EffectRow:
        opened, key = self._effect(row), self._key_of(thread_id)
        if key is None:
            raise _fault(LostKeyError, "keys", thread_id, "", "its data key is missing")
        return sealer.sealed_effect(key, opened)

    def lineages(self, thread_id: str) -> list[LineageRow]:
        """Return the lineages that have a checkpoint."""
        return self._inner.lineages(thread_id)

    def faults(self, thread_id: str) -> list[Fault]:
        """Check every row of a thread, then that its rows decrypt in their places."""
        return [*self._inner.faults(thread_id), *self.unopened(thread_id)]

    def unopened(self, thread_id: str) -> list[Fault]:
        """Return why something of a thread does not decrypt, the first fault of each table, and what is missing
        that its rows refer to. What does not even verify the store below has told."""
        missing: list[Fault] = []
        refused = faults_of(
            thread_id,
            lambda: missing.extend(missing_of(self, thread_id)),
            lambda: self.blobs(thread_id),
            lambda: [self.events(run.run_id) for run in self.runs(thread_id)],
            lambda: self.effects(EffectsQuery(thread_id)),
            lambda: self.inbox(thread_id),
        )
        return [*refused, *missing]

    def unopened_items(self) -> list[Fault]:
        """Return why an item does not decrypt, the first of them."""
        return faults_of(WHOLE_DATABASE, lambda: list(self.items("", 0)))

    def shape(self, fingerprint: str) -> str | None:
        """Return the shape of the graphs that have this fingerprint."""
        return self._inner.shape(fingerprint)

    def item_namespaces(self, now: int) -> list[str]:
        """Return the namespaces that hold an item."""
        return self._inner.item_namespaces(now)

    def key(self, thread_id: str) -> KeyRow | None:
        """Return the thread's data key, wrapped."""
        return self._inner.key(thread_id)

    def keys(self, after: str | None, limit: int) -> list[KeyRow]:
        """Return data keys, wrapped."""
        return self._inner.keys(after, limit)

    # -- one row ------------------------------------------------------------------------------------------------------

    def opened_message(self, row: MessageRow) -> MessageRow:
        """Return a message decrypted; one that was consumed says nothing any more."""
        if row.consumed_seq:
            return row
        return self._opened("inbox", row.thread_id, row.message_id, row.body, sealer.opened_message, row)

    def _checkpoint(self, row: CheckpointRow | None) -> CheckpointRow | None:
        return None if row is None else self._open_checkpoint(row)

    def _open_checkpoint(self, row: CheckpointRow) -> CheckpointRow:
        return self._opened("checkpoints", row.thread_id, row.seq, row.body, sealer.opened_checkpoint, row)

    def _record(self, row: RecordRow) -> RecordRow:
        return self._opened("records", row.thread_id, row.seq, row.body, sealer.opened_record, row)

    def _raw(self, raw: RawRow, kind: Callable[..., Row], opened: Callable[[Row], Row]) -> RawRow:
        try:
            row: Any = opened(kind(**raw.columns))
        except (CorruptRecordError, EncryptionError) as error:
            return raw._replace(fault=raw.fault or str(error))
        except (TypeError, ValueError):  # a column of another type
            return raw
        return raw._replace(columns=row._asdict())

    def _effect(self, row: EffectRow) -> EffectRow:
        if row.status == DAMAGED:
            return row
        return self._opened("effects", sealer.owner_of(row), row.key, row.body, sealer.opened_effect, row)

    def _run(self, row: RunRow) -> RunRow:
        return self._opened("runs", row.thread_id, row.run_id, row.input, sealer.opened_run, row)

    def _item(self, row: ItemRow) -> ItemRow:
        return self._opened("items", WHOLE_DATABASE, row.key, row.value, sealer.opened_item, row)

    def _opened(
        self, table: str, owner: str, at: object, sealed: bytes, opened: Callable[[DataKey, Row], Row], row: Row
    ) -> Row:
        if not is_encrypted(sealed):
            if self._accept:
                return row
            raise _fault(PlaintextRecordError, table, owner, at, "it is not encrypted")
        key = self._key_of(owner)
        if key is None:
            raise _fault(LostKeyError, table, owner, at, "its data key is missing")
        try:
            return opened(key, row)
        except NotAuthentic as error:
            raise _fault(TamperedRecordError, table, owner, at, str(error)) from None

    def _key_of(self, thread_id: str) -> DataKey | None:
        """Return the key this snapshot shows for a thread."""
        try:
            return self._found[thread_id]
        except KeyError:
            row = self._inner.key(thread_id)
            key = self._found[thread_id] = None if row is None else self._keys.key_of(row)
            return key


def _fault(kind: type[CorruptRecordError], table: str, owner: str, at: object, reason: str) -> CorruptRecordError:
    record = f"{table} row of thread {owner!r} at {at!r}" if owner else f"{table} row at {at!r}"
    return kind(record=record, reason=reason, table=table, thread_id=owner, seq=at)
