"""What `get_journal` finds: the records of steps and effects, newest first, page by page.

Order is `seq`. Each page is read in a snapshot of its own. The rule: what is read is what is shown, with the
checkpoints it stands on; a row that does not verify, or does not stand on the checkpoint it names, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError, InvalidConfigError, UnknownThreadError
from stepwell.ids import TaskIds
from stepwell.runtime.config import RunConfig
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.history import Line, line_head, seq_at
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.runtime.reading.paging import Paged, checked_limit
from stepwell.runtime.reading.unreadable import LenientCodec
from stepwell.store import CheckpointRow, JournalQuery, Reader, RecordRow, Store
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.step_body import decode_step
from stepwell.superstep.steps import DONE

Before = int | JournalEntry | None


def journal(
    store: Store,
    codec: Codec,
    address: RunConfig,
    *,
    before: Before = None,
    limit: int | None = None,
    lineage: Line | None = None,
) -> Paged[JournalEntry]:
    """Return the entries these arguments select, newest first. Whatever is wrong with them is raised here."""
    checked_limit(limit)
    with store.reading() as reader:
        query = _start(reader, address, before, lineage)
    return Paged(_Walk(store, codec, query).turn, limit)


class _Walk:
    """Where in a journal its reader stands."""

    def __init__(self, store: Store, codec: Codec, query: JournalQuery | None) -> None:
        self._store = store
        self._codec = LenientCodec(codec)
        self._query = query
        self._expected: RecordRow | None = None

    def turn(self, size: int) -> tuple[Sequence[JournalEntry], int | None]:
        """Read the next page. One row more is read than shown: it says whether anything is left."""
        query = self._query
        if query is None:
            return (), None
        with self._store.reading() as reader:
            if self._expected is None:
                reader.newest(query.thread_id, "")  # a lost tail is noticed, not listed around
            rows = reader.journal(_bounded(query, query.before_seq, size + 1))
            if self._expected is not None and rows[:1] != [self._expected]:
                told = f"Thread {query.thread_id} was deleted while its journal was read: list it again."
                raise UnknownThreadError(told, thread_id=query.thread_id)
            shown, bases = rows[:size], _Bases(reader, rows[:size])
        found = [entry_of(self._codec, row, bases) for row in shown]
        if len(rows) <= size:
            return found, None
        self._expected = rows[size]
        self._query = _bounded(query, rows[size].seq + 1, None)
        return found, shown[-1].seq if shown else None


class _Bases:
    """The checkpoints on which records stand, and the nodes of their tasks."""

    def __init__(self, reader: Reader, records: Sequence[RecordRow]) -> None:
        thread_id = records[0].thread_id if records else ""
        seqs = sorted({row.base_seq for row in records} - {0})
        self.rows = {row.seq: row for row in reader.checkpoints(thread_id, seqs)} if seqs else {}
        self._nodes: dict[int, dict[str, str]] = {}
        for record in records:
            base = self.rows.get(record.base_seq)
            if base is not None and base.digest != record.base_digest:
                raise CorruptRecordError(
                    record=row_name(record),
                    reason=f"it does not stand on checkpoint {record.base_seq} as that is now",
                    table="records",
                    thread_id=record.thread_id,
                    seq=record.seq,
                )

    def checkpoint_id(self, record: RecordRow) -> str:
        base = self.rows.get(record.base_seq)
        return "" if base is None else base.checkpoint_id

    def node(self, record: RecordRow) -> str:
        """Return the node of the record's task; "" where the checkpoint plans no such task."""
        base = self.rows.get(record.base_seq)
        if base is None:
            return ""
        if record.base_seq not in self._nodes:
            self._nodes[record.base_seq] = nodes_of(base)
        return self._nodes[record.base_seq].get(record.task_id, "")


def nodes_of(row: CheckpointRow) -> dict[str, str]:
    """Return the node of each task that a checkpoint plans: task id → node. No value is decoded."""
    ids = TaskIds(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    planned = layout.open_checkpoint(row.body, row_name(row)).next
    return {ids.of(node, index): node for node, index, *_ in planned}


def entry_of(codec: Codec, record: RecordRow, bases: _Bases) -> JournalEntry:
    """Return what a record says."""
    return _KINDS[record.kind](codec, record, bases)


def _step(codec: Codec, record: RecordRow, bases: _Bases) -> JournalEntry:
    step = decode_step(record.body, row_name(record))
    done = step.status == DONE
    return JournalEntry(
        kind="step",
        name=step.callee,
        step_id=step.call_id,
        status=step.status,
        planned_action=f"{step.callee}{step.shown}",
        inputs=step.shown,
        versions={"code": step.code} if step.code else {},
        approval_status=None,
        receipt=codec.loads(step.value, f"result of {step.callee}") if done else None,
        key=None,
        fingerprint=step.inputs,
        attempts=step.attempts,
        retry_count=max(0, step.attempts - 1),
        error_state=None if done else step.error,
        started_at=_time(step.first_at),
        finished_at=_time(record.created_at),
        **placed(record, bases),
    )


def placed(record: RecordRow, bases: _Bases) -> dict[str, Any]:
    """Return where a record stands, as fields of its entry."""
    return {
        "node": bases.node(record),
        "task_id": record.task_id,
        "lineage": record.lineage,
        "run_id": record.run_id,
        "checkpoint_id": bases.checkpoint_id(record),
        "seq": record.seq,
        "recorded_at": _time(record.created_at),
        "digest": record.digest.hex(),
    }


def _time(microseconds: int) -> datetime | None:
    return datetime.fromtimestamp(microseconds / 1e6, UTC) if microseconds else None


_KINDS: dict[str, Callable[[Codec, RecordRow, _Bases], JournalEntry]] = {lifecycle.STEP: _step}


# -- which records ----------------------------------------------------------------------------------------------------


def _bounded(query: JournalQuery, before_seq: int | None, limit: int | None) -> JournalQuery:
    return JournalQuery(query.thread_id, before_seq, query.base_seq, query.line, limit)


def _start(reader: Reader, address: RunConfig, before: Before, lineage: Line | None) -> JournalQuery | None:
    """Return the query that the first page begins with; None where nothing can be found."""
    thread_id, here = address.thread_id or "", address.checkpoint_id
    older = before.seq if isinstance(before, JournalEntry) else before
    if older is not None and (isinstance(older, bool) or not isinstance(older, int)):
        raise InvalidConfigError(reason=f"before= is an entry, or its seq, not {before!r}", key="before")
    if lineage is not None:
        head = line_head(reader, address, lineage)
        return None if head is None else JournalQuery(thread_id, older, line=_line(reader, thread_id, head, here))
    if here is None:
        return JournalQuery(thread_id, older)
    return JournalQuery(thread_id, older, base_seq=seq_at(reader, thread_id, address.namespace, here))


def _line(reader: Reader, thread_id: str, head: int, here: str | None) -> list[tuple[int, int]]:
    """Return a lineage and its ancestors, each up to where the next one was forked off: without the work on that
    checkpoint, which no fork takes along."""
    lineages = {row.lineage: row for row in reader.lineages(thread_id)}
    at, until = reader.lineage_of(thread_id, head), head if here is not None else _NO_END
    line: list[tuple[int, int]] = []
    while at is not None:
        line.append((at, until))
        row = lineages.get(at)
        at, until = (row.parent_lineage, row.parent_seq or 0) if row is not None else (None, 0)
    return line


_NO_END = 2**62
