"""Reads of one snapshot. Every row is verified on its way out; what is missing, undecodable or altered is an error.

Which database that is, and that it is a snapshot, is the business of the body. Nothing here writes, and nothing here
decides which checkpoint a caller means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from stepwell.errors import CorruptRecordError
from stepwell.store import (
    DELETED,
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
    RecordOutline,
    RecordRow,
    RunRow,
    StoredRow,
    ThreadRow,
    ThreadsQuery,
)
from stepwell.stores.shared.audit import audit_thread
from stepwell.stores.shared.filters import filter_text
from stepwell.stores.shared.foreseeing import foresee
from stepwell.stores.shared.outlines import check_span, pages, spans, without_gaps
from stepwell.stores.shared.restoring import stored_rows
from stepwell.stores.shared.rows import (
    ANCHORS,
    BLOBS,
    BY_NAME,
    CHECKPOINTS,
    DAMAGED_EFFECT,
    DAMAGED_THREAD,
    EFFECTS,
    EVENTS,
    INBOX,
    ITEMS,
    KEYS,
    LINEAGES,
    NOT_ITS_DIGEST,
    RECORDS,
    RUNS,
    THREADS,
    Row,
    Table,
    all_sound,
    corrupt,
    is_shape_of,
    listed,
    raw_row,
)
from stepwell.stores.shared.source import Source
from stepwell.stores.shared.tail import check_tail

ITEMS_AT_ONCE = 16
"""As many items are fetched when the first is asked for; then twice as many each time, up to the limit."""
MOST_ITEMS_AT_ONCE = 256


class RowReader:
    """The contract's `Reader` on any body's snapshot."""

    __slots__ = ("_checked", "_fetch", "_listed", "_source", "_stream")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._fetch = source.fetch
        self._stream = source.stream
        self._listed = source.listed
        self._checked: dict[str, ThreadRow | None] = {}
        """The threads whose tails were checked."""

    def expect(self, asked: str, *of: Any) -> None:
        """Say that a method is about to be called with these arguments."""
        if self._source.far:
            foresee(self._source, asked, of)

    def thread(self, thread_id: str) -> ThreadRow | None:
        """Return the thread's row."""
        if thread_id in self._checked:
            row = self._checked[thread_id]
        else:
            row = _first(self._rows("thread", THREADS, thread_id=thread_id))
        return None if row is None or row.status == DELETED else row

    def checkpoint(self, thread_id: str, namespace: str, checkpoint_id: str) -> CheckpointRow | None:
        """Return the checkpoint with this id."""
        where = {"thread_id": thread_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        return _first(self._rows("checkpoint", CHECKPOINTS, **where))

    def raw_checkpoint(self, thread_id: str, seq: int) -> RawRow | None:
        """Return what stands at a seq, verified or not."""
        found = list(self._stream("raw_checkpoint", {"thread_id": thread_id.encode(), "seq": seq}))
        return raw_row(CHECKPOINTS, found[0]) if found else None

    def seq_of(self, thread_id: str, namespace: str, checkpoint_id: str) -> int | None:
        """Return the seq of a checkpoint, without reading it."""
        where = {"thread_id": thread_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        found = self._fetch("seq_of", CHECKPOINTS, where)
        return found[0][0] if found else None

    def id_of(self, thread_id: str, seq: int) -> str:
        """Return the id of the checkpoint at a seq."""
        found = self._fetch("id_of", CHECKPOINTS, {"thread_id": thread_id, "seq": seq})
        if not found:
            raise corrupt("checkpoints", thread_id, seq, "it is missing")
        return str(found[0][0])

    def lineage_of(self, thread_id: str, seq: int) -> int | None:
        """Return the lineage of the checkpoint at a seq, without reading it."""
        found = self._fetch("lineage_of", CHECKPOINTS, {"thread_id": thread_id, "seq": seq})
        return found[0][0] if found else None

    def newest_seq(self, thread_id: str, namespace: str) -> int | None:
        """Return the seq of the newest checkpoint of a namespace, without reading it."""
        found = self._fetch("newest_place", CHECKPOINTS, {"thread_id": thread_id, "namespace": namespace})
        return found[0][0] if found else None

    def newest(self, thread_id: str, namespace: str, lineage: int | None = None) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace, after checking that the thread's tail is there."""
        where: dict[str, Any] = {"thread_id": thread_id, "namespace": namespace}
        if lineage is None:
            self.expect("newest", thread_id, namespace)
        self._checked[thread_id], child = check_tail(self._fetch, thread_id)
        if child is not None and not namespace:
            self.checkpoints(thread_id, [child])
        if lineage is None:
            return _first(self._rows("newest", CHECKPOINTS, **where))
        seq = self.head_seq(thread_id, namespace, lineage)
        return None if seq is None else self.checkpoints(thread_id, [seq])[0]

    def head_seq(self, thread_id: str, namespace: str, lineage: int) -> int | None:
        """Return the seq of the newest checkpoint of a lineage."""
        where: dict[str, Any] = {"thread_id": thread_id, "namespace": namespace}
        found = self._fetch("newest_place", CHECKPOINTS, where)
        if not found or found[0][1] == lineage:
            return found[0][0] if found else None
        if namespace:
            found = self._fetch("newest_of_lineage", CHECKPOINTS, where | {"lineage": lineage})
            return found[0][0] if found else None
        row = _first(self._rows("lineage", LINEAGES, thread_id=thread_id, lineage=lineage))
        return None if row is None else row.head_seq

    def lineages(self, thread_id: str) -> list[LineageRow]:
        """Return the lineages that have a checkpoint, each with its head."""
        found = self._fetch("newest_place", CHECKPOINTS, {"thread_id": thread_id, "namespace": ""})
        if not found:
            return []
        ((seq, current),) = found
        rows = self._rows("lineages", LINEAGES, thread_id=thread_id) or [
            LineageRow(thread_id, current, None, None, seq)
        ]
        known = {row.lineage for row in rows}
        for needed in (current, *(row.parent_lineage for row in rows if row.parent_lineage is not None)):
            if needed not in known:
                raise corrupt("lineages", thread_id, needed, "it is missing")
        return [row._replace(head_seq=seq) if row.lineage == current else row for row in rows]

    def checkpoints(self, thread_id: str, seqs: Sequence[int]) -> list[CheckpointRow]:
        """Return the checkpoints at these seqs, in seq order."""
        return self._at("checkpoints", CHECKPOINTS, thread_id, seqs)

    def child(self, thread_id: str, parent_seq: int, lineage: int) -> CheckpointRow | None:
        """Return the checkpoint of this lineage that continues `parent_seq`."""
        where = {"thread_id": thread_id, "parent_seq": parent_seq, "lineage": lineage}
        return _first(self._rows("child", CHECKPOINTS, **where))

    def records(self, thread_id: str, base_seq: int) -> list[RecordRow]:
        """Return the records of a base, in seq order, without gaps."""
        return self._without_gaps(self._rows("records", RECORDS, thread_id=thread_id, base_seq=base_seq))

    def records_of(self, thread_id: str, base_seqs: Sequence[int]) -> dict[int, list[RecordRow]]:
        """Return the records of several bases; bases without any are left out."""
        found: dict[int, list[RecordRow]] = {}
        for row in self._rows("records_of", RECORDS, thread_id=thread_id, base_seqs=self._listed(list(base_seqs))):
            found.setdefault(row.base_seq, []).append(row)
        return {base_seq: self._without_gaps(rows) for base_seq, rows in found.items()}

    def records_at(self, thread_id: str, seqs: Sequence[int]) -> list[RecordRow]:
        """Return the records at these seqs, in seq order."""
        return self._at("records_at", RECORDS, thread_id, seqs)

    def records_of_kind(self, thread_id: str, kind: str) -> list[RecordRow]:
        """Return the thread's records of one kind, in seq order."""
        return self._rows("records_of_kind", RECORDS, thread_id=thread_id, kind=kind)

    def effects_told(self, thread_id: str, lineage: int, since_seq: int, until_seq: int) -> list[RecordRow]:
        """Return what is recorded of effects on these bases."""
        where = {"thread_id": thread_id, "lineage": lineage, "since_seq": since_seq, "until_seq": until_seq}
        return self._rows("effects_told", RECORDS, **where)

    def journal(self, query: JournalQuery) -> list[RecordRow]:
        """Return records of steps, effects and waits, newest first."""
        found = self._rows(
            "journal",
            RECORDS,
            thread_id=query.thread_id,
            before_seq=query.before_seq,
            base_seq=query.base_seq,
            line=None if query.line is None else json.dumps(query.line),
            max_rows=_bound(query.limit),
        )
        goes_on = query.limit is not None and len(found) == query.limit
        for base_seq, first, last in spans(found, goes_on):
            check_span(self._fetch, query.thread_id, base_seq, first, last)
        return found

    def record(self, thread_id: str, seq: int) -> RecordRow:
        """Return the record at a seq."""
        return self.records_at(thread_id, [seq])[0]

    def everything(self, thread_id: str) -> tuple[list[CheckpointRow], list[RecordRow]]:
        """Return every checkpoint and record of a thread, after checking that its tail is there."""
        check_tail(self._fetch, thread_id)
        checkpoints = self._rows("all_checkpoints", CHECKPOINTS, thread_id=thread_id)
        return checkpoints, self._rows("all_records", RECORDS, thread_id=thread_id)

    def anchors(self, thread_id: str) -> list[AnchorRow]:
        """Return what stands for rows that were pruned, by seq."""
        return self._rows("anchors", ANCHORS, thread_id=thread_id)

    def outline(self, thread_id: str) -> Iterator[CheckpointOutline]:
        """Yield the thread's checkpoints without their bodies, page by page."""
        return map(CheckpointOutline._make, pages(self._fetch, "outline_checkpoints", CHECKPOINTS, thread_id))

    def record_outline(self, thread_id: str) -> Iterator[RecordOutline]:
        """Yield the thread's records without their bodies, page by page."""
        return map(RecordOutline._make, pages(self._fetch, "outline_records", RECORDS, thread_id))

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
        where: dict[str, Any] = {"after_seq": seq, "after_key": key, "max_rows": _bound(query.limit)}
        if query.in_doubt:
            where |= {"thread_id": query.thread_id, "after_thread": thread}
            found = listed(EFFECTS, self._fetch("effects_in_doubt", EFFECTS, where), DAMAGED_EFFECT)
            return found if query.thread_id is None else all_sound(EFFECTS, found)
        if query.thread_id is None:
            return listed(EFFECTS, self._fetch("effects", EFFECTS, where | {"after_thread": thread}), DAMAGED_EFFECT)
        return self._rows("effects_of_thread", EFFECTS, thread_id=query.thread_id, **where)

    def history(self, query: HistoryQuery) -> list[CheckpointRow]:
        """Return checkpoints, newest first."""
        where: dict[str, Any] = {"thread_id": query.thread_id, "namespace": query.namespace}
        where |= {"before_seq": query.before_seq, "max_rows": _bound(query.limit), "filter": filter_text(query.filter)}
        if query.line_from is not None:
            return self._rows("line", CHECKPOINTS, **where, line_from=query.line_from)
        return self._rows("history", CHECKPOINTS, **where, since_seq=query.since_seq)

    def run(self, run_id: str) -> RunRow | None:
        """Return the run."""
        return _first(self._rows("run", RUNS, run_id=run_id))

    def runs(self, thread_id: str, limit: int | None = None, before: str | None = None) -> list[RunRow]:
        """Return the thread's runs, last admitted first."""
        return self._rows("runs", RUNS, thread_id=thread_id, before=before, max_rows=_bound(limit))

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """Return the run's log behind an ordinal, without gaps and up to its end."""
        found = self._rows("events", EVENTS, run_id=run_id, after=after, max_rows=_bound(limit))
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
            "max_rows": _bound(query.limit),
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
        return _first(self._rows("message", INBOX, thread_id=thread_id, message_id=message_id))

    def shape(self, fingerprint: str) -> str | None:
        """Return the shape of the graphs that have this fingerprint."""
        for (stored,) in self._stream("shape", {"fingerprint": fingerprint}):
            if not is_shape_of(stored, fingerprint):
                record = f"shapes row {fingerprint!r}"
                raise CorruptRecordError(record=record, reason=NOT_ITS_DIGEST, table="shapes", thread_id="", seq=None)
            return str(stored, "utf-8")
        return None

    def item(self, namespace: str, key: str) -> ItemRow | None:
        """Return an item, expired or not."""
        found = self._fetch("item", ITEMS, {"namespace": namespace, "key": key})
        return ITEMS.verified(found[0]) if found else None

    def items(self, prefix: str, now: int) -> Iterator[ItemRow]:
        """Yield the items of a namespace and those below it, by ordinal, reading on as they are asked for."""
        where: dict[str, Any] = {"now": now}
        if prefix:
            where |= {"namespace": prefix, "low": f"{prefix}.", "high": f"{prefix}/"}
        found = self._fetch("item_places_below" if prefix else "item_places", ITEMS, where)
        places = sorted(place for (place,) in found)
        start, many = 0, ITEMS_AT_ONCE
        while start < len(places):
            ordinals = self._listed(places[start : start + many])
            yield from self._rows("items", ITEMS, ordinals=ordinals)
            start, many = start + many, min(2 * many, MOST_ITEMS_AT_ONCE)

    def item_namespaces(self, now: int) -> list[str]:
        """Return the namespaces that hold an item."""
        return [namespace for (namespace,) in self._fetch("item_namespaces", ITEMS, {"now": now})]

    def key(self, thread_id: str) -> KeyRow | None:
        """Return the thread's data key, wrapped."""
        return _first(self._rows("key", KEYS, thread_id=thread_id))

    def keys(self, after: str | None, limit: int) -> list[KeyRow]:
        """Return data keys, wrapped, by thread id."""
        return self._rows("keys", KEYS, after=after, max_rows=_bound(limit))

    def _without_gaps(self, rows: list[RecordRow]) -> list[RecordRow]:
        return without_gaps(rows, lambda **where: self._rows("anchor", ANCHORS, **where))

    def _at(self, name: str, table: Table[Any], thread_id: str, seqs: Sequence[int]) -> list[Any]:
        wanted = set(seqs)
        found = self._rows(name, table, thread_id=thread_id, seqs=self._listed(sorted(wanted)))
        if len(found) != len(wanted):
            raise corrupt(table.name, thread_id, min(wanted - {row.seq for row in found}), "it is missing")
        return found

    def _rows(self, name: str, table: Table[Row], **where: Any) -> list[Row]:
        return table.all_verified(self._fetch(name, table, where))


def _first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def _bound(limit: int | None) -> int:
    return -1 if limit is None else max(0, limit)
