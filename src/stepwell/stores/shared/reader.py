"""Reads of one snapshot. Every row is verified on its way out; what is missing, undecodable or altered is an error.

Threads and checkpoints are read in `history_reader.py`, what is recorded on these in `record_reader.py`, the item store
in `item_reader.py`, all the rest here. Which database that is, and that it is a snapshot, is the business of the body.
Nothing here writes, and nothing here decides which checkpoint a caller means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stepwell.errors import CorruptRecordError
from stepwell.store import (
    AnchorRow,
    BlobRow,
    EffectRow,
    EffectsQuery,
    EventRow,
    Fault,
    KeyRow,
    MessageRow,
    RawRow,
    RunRow,
    StoredRow,
    ThreadRow,
    ThreadsQuery,
)
from stepwell.stores.shared.audit import audit_thread
from stepwell.stores.shared.fetching import bound, first
from stepwell.stores.shared.filters import filter_text
from stepwell.stores.shared.history_reader import HistoryReader
from stepwell.stores.shared.item_reader import ItemReader
from stepwell.stores.shared.record_reader import RecordReader
from stepwell.stores.shared.restoring import stored_rows
from stepwell.stores.shared.rows import (
    ANCHORS,
    BLOBS,
    BY_NAME,
    DAMAGED_EFFECT,
    DAMAGED_THREAD,
    EFFECTS,
    EVENTS,
    INBOX,
    KEYS,
    NOT_ITS_DIGEST,
    RUNS,
    THREADS,
    all_sound,
    corrupt,
    is_shape_of,
    listed,
    raw_row,
)


class RowReader(HistoryReader, RecordReader, ItemReader):
    """The contract's `Reader` on any body's snapshot."""

    __slots__ = ()

    def anchors(self, thread_id: str) -> list[AnchorRow]:
        """Return what stands for rows that were pruned, by seq."""
        return self._rows("anchors", ANCHORS, thread_id=thread_id)

    def stored(self, thread_id: str) -> Iterator[StoredRow]:
        """Yield every row of a thread as it is stored, table by table."""
        return stored_rows(self._source, thread_id)

    def blobs(self, thread_id: str, names: Sequence[bytes] | None = None) -> list[BlobRow]:
        """Return a thread's values of these names, by name, or all of them."""
        if names is None:
            return self._rows("all_blobs", BLOBS, thread_id=thread_id)
        return self._rows("blobs", BLOBS, thread_id=thread_id, names=self._listed([name.hex() for name in names]))

    def blob_names(self, thread_id: str) -> set[bytes]:
        """Return the names of a thread's values, without reading them."""
        return {name for (name,) in self._fetch("blob_names", BLOBS, {"thread_id": thread_id})}

    def effect(self, key: str) -> list[EffectRow]:
        """Return the rows under a key, by thread id."""
        return self._rows("effect", EFFECTS, key=key)

    def effects_at(self, thread_id: str, position: str) -> list[EffectRow]:
        """Return a thread's effects at a position, the last one first."""
        return self._rows("effects_at", EFFECTS, thread_id=thread_id, position=position)

    def effects(self, query: EffectsQuery) -> list[EffectRow]:
        """Return effects, by thread, seq and key."""
        thread, seq, key = query.after or ("", -1, "")
        where: dict[str, Any] = {"after_seq": seq, "after_key": key, "max_rows": bound(query.limit)}
        if query.in_doubt:
            where |= {"thread_id": query.thread_id, "after_thread": thread}
            found = listed(EFFECTS, self._fetch("effects_in_doubt", EFFECTS, where), DAMAGED_EFFECT)
            return found if query.thread_id is None else all_sound(EFFECTS, found)
        if query.thread_id is None:
            return listed(EFFECTS, self._fetch("effects", EFFECTS, where | {"after_thread": thread}), DAMAGED_EFFECT)
        return self._rows("effects_of_thread", EFFECTS, thread_id=query.thread_id, **where)

    def run(self, run_id: str) -> RunRow | None:
        """Return the run."""
        return first(self._rows("run", RUNS, run_id=run_id))

    def runs(self, thread_id: str, limit: int | None = None, before: str | None = None) -> list[RunRow]:
        """Return the thread's runs, last admitted first."""
        return self._rows("runs", RUNS, thread_id=thread_id, before=before, max_rows=bound(limit))

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """Return the run's log behind an ordinal, without gaps and up to its end."""
        found = self._rows("events", EVENTS, run_id=run_id, after=after, max_rows=bound(limit))
        for ordinal, row in enumerate(found, after + 1):
            if row.ordinal != ordinal:
                raise corrupt("events", row.thread_id, ordinal, f"event {ordinal} of run {run_id!r} is missing")
        run = self.run(run_id) if limit is None or len(found) < limit else None
        if run is not None and after + len(found) < run.events:
            lost = f"lost end: run {run_id!r} has counted {run.events} events, {after + len(found)} are there"
            raise corrupt("events", run.thread_id, run.events, lost)
        return found

    def threads(self, query: ThreadsQuery) -> list[ThreadRow]:
        """Return threads, last changed first."""
        before_at, before_id = query.before or (None, None)
        where = {
            "statuses": None if query.statuses is None else self._listed(list(query.statuses)),
            "before_at": before_at,
            "before_id": before_id,
            "filter": filter_text(query.filter),
            "max_rows": bound(query.limit),
        }
        return listed(THREADS, self._fetch("threads", THREADS, where), DAMAGED_THREAD)

    def faults(self, thread_id: str) -> list[Fault]:
        """Check every row of a thread and of its inbox."""
        return list(audit_thread(self._source, thread_id))

    def raw_rows(self, thread_id: str, table: str) -> list[RawRow]:
        """Return all of a thread's rows in a table as they stand."""
        known = BY_NAME[table]
        return [raw_row(known, raw) for raw in self._stream(f"raw_{table}", {"thread_id": thread_id.encode()})]

    def inbox(self, thread_id: str, kind: str | None = None) -> list[MessageRow]:
        """Return the messages that wait, in the order in which they came."""
        return self._rows("inbox", INBOX, thread_id=thread_id, kind=kind)

    def message(self, thread_id: str, message_id: str) -> MessageRow | None:
        """Return a message, consumed or not."""
        return first(self._rows("message", INBOX, thread_id=thread_id, message_id=message_id))

    def shape(self, fingerprint: str) -> str | None:
        """Return the shape of the graphs that have this fingerprint."""
        for (stored,) in self._stream("shape", {"fingerprint": fingerprint}):
            if not is_shape_of(stored, fingerprint):
                record = f"shapes row {fingerprint!r}"
                raise CorruptRecordError(record=record, reason=NOT_ITS_DIGEST, table="shapes", thread_id="", seq=None)
            return str(stored, "utf-8")
        return None

    def key(self, thread_id: str) -> KeyRow | None:
        """Return the thread's data key, wrapped."""
        return first(self._rows("key", KEYS, thread_id=thread_id))

    def keys(self, after: str | None, limit: int) -> list[KeyRow]:
        """Return data keys, wrapped, by thread id."""
        return self._rows("keys", KEYS, after=after, max_rows=bound(limit))
