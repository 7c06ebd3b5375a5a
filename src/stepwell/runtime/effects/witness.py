"""What tells of effects besides their rows: the thread's records, and what it was forked off with. Reads only.

The rule kept: nothing is performed because a row is missing that was there once. So whatever a call has looked up is
compared with what records tell of it. Those on its own base are at hand. Others are read where something is about to be
performed and they may tell of it, once a run: in a thread that has branched, what happened beside this lineage; after
an edit, what happened before it; for a key of the thread's own, everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from stepwell.errors import CorruptRecordError
from stepwell.runtime.journal import journal_of
from stepwell.store import RecordRow
from stepwell.superstep import lifecycle
from stepwell.superstep.effects.keys import THREAD, lineages_to_search
from stepwell.superstep.effects.told import Told, hear, lacking
from stepwell.superstep.repaired import decode_repaired

if TYPE_CHECKING:
    from stepwell.runtime.effects.performing import EffectCall
    from stepwell.store import EffectRow, LineageRow, Reader
    from stepwell.superstep.origin import Origin

Span = tuple[int, int, int]
"""Lineage and seq from which on, and base up to which, records are read: as `Reader.effects_told` takes them."""
LAST = 2**63 - 1
WHOLE: Span = (0, 0, LAST)


def check_all_there(
    call: EffectCall,
    reader: Reader,
    found: Sequence[Origin],
    looked_up: Iterable[str],
    rows: Callable[[str], Sequence[EffectRow]],
) -> None:
    """Raise CorruptRecordError where a row that a call goes by is missing or an old one. `looked_up`: the keys it has
    gone by; `found`: where its thread comes from."""

    def has_own(key: str) -> bool:
        return any(row.thread_id == call.thread_id for row in rows(key))

    keys = list(looked_up)
    for origin in found:
        here = [key for key, position in origin.brought if position == call.position or key in keys]
        check_brought(origin, call.thread_id, here, has_own)
    told: dict[str, Told] = {}
    for span in _spans(call, reader):
        told.update(_told(call, reader, span))
    told.update(call.owner.base.effects)
    for key in keys:
        check_told(told, call.thread_id, key, rows(key))


def check_told(told: Mapping[str, Told], thread_id: str, key: str, rows: Sequence[EffectRow]) -> None:
    """Raise CorruptRecordError where records tell more of an effect than its rows: it is not performed by those."""
    reason = lacking(told[key], thread_id, rows) if key in told else None
    if reason is not None:
        raise _lost(thread_id, key, reason)


def check_brought(origin: Origin, thread_id: str, keys: Iterable[str], has_row: Callable[[str], bool]) -> None:
    """Raise CorruptRecordError where an effect that came along when the thread was forked off has no row."""
    for key in keys:
        if not has_row(key):
            raise _lost(thread_id, key, f"it is missing, and was brought along from thread {origin.thread_id}")


def told_of_thread(reader: Reader, thread_id: str, span: Span = WHOLE) -> dict[str, Told]:
    """Return what records of a thread tell of its effects, all of them or a span."""
    told: dict[str, Told] = {}
    for row in _records(reader, thread_id, span):
        told.update(hear(told, row.kind, row.seq, row.body, f"record {row.seq} of thread {thread_id}"))
    return told


def _spans(call: EffectCall, reader: Reader) -> list[Span]:
    """Return which records may tell of a call, besides those on its base."""
    ledger, base = call.run.ledger, call.owner.base
    if call.user_key:
        return [WHOLE] if call.declared.scope == THREAD else []
    spans: list[Span] = []
    if ledger.run_row is not None and ledger.run_row.base_seq == base.seq:  # no superstep of this run's made the base
        spans.append((base.lineage, base.seq, base.seq))
    if ledger.lineages > 1:
        spans.append(_beside(reader.lineages(call.thread_id), base.lineage))
    return spans


def _beside(rows: Sequence[LineageRow], lineage: int) -> Span:
    """Return the span in which other lineages may have come by where this one is."""
    forks = [(row.lineage, row.parent_lineage, row.parent_seq) for row in rows]
    near = {lineage, *lineages_to_search(lineage, forks)}
    points = [(row.parent_seq, row.parent_lineage or 0) for row in rows if row.lineage in near and row.parent_seq]
    heads = [row.head_seq for row in rows if row.lineage in near and row.lineage != lineage]
    if not points or not heads:
        return WHOLE
    since_seq, parent = min(points)
    return parent, since_seq, max(heads)


def _told(call: EffectCall, reader: Reader, span: Span) -> Mapping[str, Told]:
    known = journal_of(call.run).told
    if span not in known:
        known[span] = told_of_thread(reader, call.thread_id, span)
    return known[span]


def _records(reader: Reader, thread_id: str, span: Span) -> list[RecordRow]:
    """Return the records in seq order, without those that do not verify and that a repair has left behind."""
    try:
        found = reader.effects_told(thread_id, *span)
    except CorruptRecordError:
        left = {
            place
            for row in reader.records_of_kind(thread_id, lifecycle.REPAIRED)
            for table, place, *_ in decode_repaired(row.body, f"record {row.seq} of thread {thread_id}").left
            if table == "records"
        }
        if not left:
            raise
        stored = [row for row in reader.raw_rows(thread_id, "records") if str(row.columns["seq"]) not in left]
        if any(row.fault is not None for row in stored):
            raise
        found = [RecordRow(**row.columns) for row in stored if row.columns["kind"] in lifecycle.EFFECT_KINDS]
    return sorted(found, key=lambda row: row.seq)


def _lost(thread_id: str, key: str, reason: str) -> CorruptRecordError:
    record = f"effects row of thread {thread_id!r} at {key!r}"
    return CorruptRecordError(record=record, reason=reason, table="effects", thread_id=thread_id, seq=key)
