"""A thread under another id: every row sealed anew, in the order in which they were written.

The thread id is part of every row's digest, of every task id and so of every record. The copy keeps seqs, checkpoint
ids, lineages, bodies and interrupt ids, so that what points from row to row, and what a user was given, goes on
working; it gets run ids of its own, since a run id names one run. Nothing is decoded but what is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stepwell import points
from stepwell.errors import CorruptRecordError, InvalidConfigError, ThreadExistsError, UnknownThreadError
from stepwell.ids import TaskIds, structural_hash
from stepwell.runtime.admission import ATTEMPTS
from stepwell.runtime.editing.origins import origin_record, root_of
from stepwell.runtime.effects.bringing import copied_effects
from stepwell.savers.integrity.examining import check_sound
from stepwell.store import (
    NO_DIGEST,
    AnchorRow,
    BlobRow,
    CheckpointRow,
    Claim,
    EffectChange,
    EventDraft,
    LineageRow,
    Reader,
    RecordRow,
    Rows,
    RunRow,
    Sealer,
    Store,
    ThreadRow,
    seal_anchor,
)
from stepwell.superstep import body as layout
from stepwell.superstep.origin import COPIED, Origin


class Original(NamedTuple):
    """A thread as one snapshot showed it, whole."""

    thread: ThreadRow
    checkpoints: list[CheckpointRow]
    records: list[RecordRow]
    runs: list[RunRow]
    events: list[EventDraft]
    blobs: list[BlobRow]
    anchors: list[AnchorRow]
    lineages: list[LineageRow]
    """Where the thread has branched."""


def copy_thread(store: Store, source: str, target: str, now: int) -> None:
    """Write all of a thread under another id, in one transaction. A run that is going on is copied as one whose process
    died: whoever continues the copy goes on with it."""
    if source == target:  # not ThreadExistsError, whose way out is to delete the target
        raise InvalidConfigError(reason=f"thread {source} cannot be copied onto itself", key="thread_id")
    for _ in range(ATTEMPTS):
        with store.reading() as reader:
            if reader.thread(target) is not None:
                raise ThreadExistsError(thread_id=target)
            original = _read(reader, source)
            names = {run.run_id: structural_hash("copied run", target, run.run_id) for run in original.runs}
            effects = copied_effects(store.sealer, reader, source, target, names)
            root = root_of(reader, source)
        points.reach(points.COPY_READ)
        if store.admit(_claim(store.sealer, original, target, now, names, effects, root)) is not None:
            return
    raise ThreadExistsError(thread_id=target)


def _read(reader: Reader, source: str) -> Original:
    thread = reader.thread(source)
    if thread is None:
        raise UnknownThreadError(thread_id=source)
    checkpoints, records = reader.everything(source)
    check_sound(reader, source)
    runs = reader.runs(source)
    logs = [reader.events(run.run_id) for run in reversed(runs) if run.events or run.run_id == thread.run_id]
    events = [EventDraft(row.run_id, row.kind, row.created_at, row.body) for log in logs for row in log]
    lineages = reader.lineages(source) if thread.lineages > 1 else []
    return Original(thread, checkpoints, records, runs, events, reader.blobs(source), reader.anchors(source), lineages)


def _claim(
    sealer: Sealer,
    original: Original,
    target: str,
    now: int,
    names: Mapping[str, str],
    effects: Sequence[EffectChange],
    root: str,
) -> Claim:
    thread = original.thread
    checkpoints, records, anchors = _resealed(sealer, original, target, names)
    source = Origin(COPIED, thread.thread_id, thread.head_seq, thread.head_digest, thread.lineages, root)
    origin = origin_record(sealer, target, thread.head_seq + 1, sum(row.base_seq == 0 for row in records), source, now)
    return Claim(
        thread_id=target,
        graph_id=thread.graph_id,
        seen=None,
        run=None,
        rows=Rows(
            origin.seq,
            origin.digest,
            thread.lineages,
            checkpoints,
            [*records, origin],
            [draft._replace(run_id=names[draft.run_id]) for draft in original.events],
            effects,
            [sealer.blob(row._replace(thread_id=target)) for row in original.blobs],
        ),
        lease_seconds=None,
        status=thread.status,
        now=now,
        runs=[run._replace(run_id=names[run.run_id], thread_id=target) for run in original.runs],
        at_work=names.get(thread.run_id, ""),
        anchors=anchors,
        lineages=[row._replace(thread_id=target) for row in original.lineages],
    )


def _resealed(
    sealer: Sealer, original: Original, target: str, names: Mapping[str, str]
) -> tuple[list[CheckpointRow], list[RecordRow], list[AnchorRow]]:
    """Return the rows as the target's. Each row follows an older one, so one pass in seq order seals them all. What was
    pruned keeps the digest it had."""
    digests = {0: NO_DIGEST} | {anchor.seq: anchor.row_digest for anchor in original.anchors if not anchor.held}
    tasks = _task_ids(original, target)
    checkpoints: list[CheckpointRow] = []
    records: list[RecordRow] = []
    for row in _by_seq(original):
        follows = row.base_seq if isinstance(row, RecordRow) else row.parent_seq or 0
        if follows not in digests:
            told = f"row {row.seq} of thread {row.thread_id}"
            raise CorruptRecordError(record=told, reason=f"row {follows}, which it follows, is missing")
        run_id = names.get(row.run_id, "")
        if isinstance(row, RecordRow):
            task_id = tasks[row.base_seq].get(row.task_id, row.task_id) if row.base_seq in tasks else row.task_id
            moved = row._replace(thread_id=target, base_digest=digests[follows], task_id=task_id, run_id=run_id)
            records.append(sealer.record(moved))
            digests[row.seq] = records[-1].digest
        else:
            own = row._replace(thread_id=target, parent_digest=digests[follows], run_id=run_id)
            sealed = sealer.checkpoint(own[:-1])
            checkpoints.append(sealed)
            digests[row.seq] = sealed.digest
    anchors = [
        seal_anchor(
            row._replace(
                thread_id=target, parent_digest=digests[row.parent_seq or 0], row_digest=digests.get(row.seq, b"")
            )
        )
        for row in original.anchors
    ]
    return checkpoints, records, anchors


def _by_seq(original: Original) -> Iterable[CheckpointRow | RecordRow]:
    rows: list[CheckpointRow | RecordRow] = [*original.checkpoints, *original.records]
    return sorted(rows, key=lambda row: row.seq)


def _task_ids(original: Original, target: str) -> dict[int, dict[str, str]]:
    """Return, per checkpoint that has records, the target's id of each task planned there."""
    bases = {record.base_seq for record in original.records}
    return {row.seq: _renamed_tasks(row, target) for row in original.checkpoints if row.seq in bases}


def _renamed_tasks(row: CheckpointRow, target: str) -> dict[str, str]:
    planned = layout.open_checkpoint(row.body, f"checkpoint {row.seq} of thread {row.thread_id}").next
    before = TaskIds(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    after = TaskIds(row.graph_id, row.version, target, row.namespace, row.checkpoint_id)
    return {before.of(node, index): after.of(node, index) for node, index, *_ in planned}
