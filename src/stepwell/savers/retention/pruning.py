"""Pruning a thread: what stands on which checkpoint is looked up here, what may go is decided in
`superstep/retention.py`, and the store takes it out in one transaction.

A thread is read in one snapshot, and bodies only of what stays. It is pruned only as it was seen: one that moves
meanwhile is read again. A run that is at work is never disturbed: its thread is busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stepwell import points
from stepwell.errors import CorruptRecordError
from stepwell.runtime.again import Moved, until_written
from stepwell.runtime.loading import row_name
from stepwell.savers.retention.open_work import unanswered
from stepwell.savers.retention.values import unneeded
from stepwell.store import (
    NO_DIGEST,
    AnchorRow,
    CheckpointOutline,
    EffectsQuery,
    Pruning,
    Reader,
    RecordOutline,
    RunRow,
    Store,
    ThreadRow,
    seal_anchor,
)
from stepwell.stores.shared.tail import before_the_whole
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.references import Needed, needed
from stepwell.superstep.retention import Gap, Marked, Note, Outline, Point, Policy, mark, ranges


@dataclass(frozen=True, slots=True)
class PrunedThread:
    """What pruning a thread took out of it."""

    thread_id: str
    checkpoints: int = 0
    records: int = 0
    events: int = 0
    runs: int = 0
    kept: int = 0
    """Checkpoints that its history still lists."""
    held: int = 0
    """Checkpoints that it does not list, and that are there because those it lists need them."""
    left: Mapping[str, RunLeft] = field(default_factory=dict)
    """Of the runs that the policy names: what stays of those of which something does."""


class RunLeft(NamedTuple):
    """What is still there of a run that was deleted."""

    checkpoints: int
    """Those on which something stands: they are kept as they are."""
    held: int
    """Checkpoints that are listed nowhere, and hold what others need."""
    records: int
    """Those on checkpoints that are kept, what others were made of, and what was done to the world."""


class _Seen(NamedTuple):
    """A thread as one snapshot showed it."""

    thread: ThreadRow
    checkpoints: Sequence[CheckpointOutline]
    records: Sequence[RecordOutline]
    anchors: Sequence[AnchorRow]
    runs: Sequence[RunRow]
    marked: Marked


def prune_thread(store: Store, thread_id: str, policy: Policy, now: int) -> PrunedThread | None:
    """Take out of a thread what the policy lets go; None where there is no such thread. Durable on return.

    Raises ThreadBusyError where a run is at work on it.
    """
    return until_written(thread_id, lambda: _prune(store, thread_id, policy, now))


def _prune(store: Store, thread_id: str, policy: Policy, now: int) -> PrunedThread | None:
    with store.reading() as reader:
        thread = reader.thread(thread_id)
        if thread is None:
            return None
        seen = _see(reader, thread, policy)
        kept, held = len(seen.marked.kept), len(seen.marked.held)
        stays = PrunedThread(thread_id, kept=kept, held=held, left=_left(seen, policy))
        pruning = _pruning(seen, policy, now)
        if pruning is not None:
            pruning.blobs = sorted(unneeded(reader, thread_id, seen.marked, [row.seq for row in seen.records]))
    if pruning is None:
        return stays
    points.reach(points.PRUNING_READ)
    done = store.prune(pruning)
    if done is None:
        raise Moved
    return replace(stays, **done._asdict())


def _see(reader: Reader, thread: ThreadRow, policy: Policy) -> _Seen:
    thread_id = thread.thread_id
    anchors = reader.anchors(thread_id)
    checkpoints = list(_chained(reader.outline(thread_id), thread_id, anchors))
    records = list(_based(reader.record_outline(thread_id), thread_id, checkpoints, anchors))
    runs = reader.runs(thread_id)
    outline = Outline(
        [Point(*row[:6]) for row in checkpoints],
        [Note(*row) for row in records],
        [_gap(anchor) for anchor in anchors],
        _pinned(reader, thread, records),
        lambda seq, channels: _needs(reader, thread_id, seq, channels),
    )
    return _Seen(thread, checkpoints, records, anchors, runs, mark(outline, policy))


def _chained(
    rows: Iterator[CheckpointOutline], thread_id: str, anchors: Sequence[AnchorRow]
) -> Iterator[CheckpointOutline]:
    """Yield the rows; raise where one that was lost would be hidden by pruning what followed it."""
    digests = {anchor.seq: anchor.row_digest for anchor in anchors if not anchor.held}
    for row in rows:
        if row.parent_seq is not None and digests.get(row.parent_seq) != row.parent_digest:
            reason = f"its parent {row.parent_seq} is missing, or another row than the one it was written on"
            raise CorruptRecordError(record=f"checkpoint {row.seq} of thread {thread_id}", reason=reason)
        digests[row.seq] = row.digest
        yield row
    for anchor in anchors:
        if digests.get(anchor.seq) != anchor.row_digest:
            reason = "it is missing, and held by an anchor" if anchor.seq not in digests else "it is not what was held"
            raise CorruptRecordError(record=f"checkpoint {anchor.seq} of thread {thread_id}", reason=reason)


def _based(
    rows: Iterator[RecordOutline],
    thread_id: str,
    checkpoints: Sequence[CheckpointOutline],
    anchors: Sequence[AnchorRow],
) -> Iterator[RecordOutline]:
    """Yield the rows; raise where one stands on a checkpoint that was lost."""
    known = {0, *(row.seq for row in checkpoints), *(anchor.seq for anchor in anchors if not anchor.held)}
    for row in rows:
        if row.base_seq not in known:
            reason = f"its base {row.base_seq} is missing"
            raise CorruptRecordError(record=f"record {row.seq} of thread {thread_id}", reason=reason)
        yield row


def _needs(reader: Reader, thread_id: str, seq: int, channels: Collection[str] | None) -> Needed:
    (row,) = reader.checkpoints(thread_id, [seq])
    with layout.reading(row_name(row)):
        return needed(layout.open_checkpoint(row.body, row_name(row)), seq, channels)


def _gap(row: AnchorRow) -> Gap:
    return Gap(row.seq, bool(row.held), row.parent_seq, row.shown_seq, row.checkpoints, row.records, row.notes)


# -- what stands on which checkpoint ----------------------------------------------------------------------------------


def _pinned(reader: Reader, thread: ThreadRow, records: Sequence[RecordOutline]) -> set[int]:
    """Return the checkpoints in which a lineage ends or from which one was forked, on which a question or a doubt is
    open, from which a run goes on, and on which the thread's last row stands."""
    thread_id = thread.thread_id
    lineages = reader.lineages(thread_id)
    heads = {row.head_seq for row in lineages}
    pinned = heads | {row.parent_seq for row in lineages if row.parent_seq is not None}
    bases = {row.seq: row.base_seq for row in records}
    last = before_the_whole(thread.head_seq, {seq for seq, base_seq in bases.items() if not base_seq})
    pinned.add(bases.get(last, last))
    doubted = reader.effects(EffectsQuery(thread_id, in_doubt=True))
    pinned |= {bases[row.seq] for row in doubted if row.seq in bases}
    crashed = reader.run(thread.run_id) if thread.run_id else None
    if crashed is not None:
        pinned.add(crashed.base_seq)
    if any(row.kind in lifecycle.PAUSES and row.base_seq in heads for row in records):
        pinned |= set(unanswered(reader, thread_id))  # a question may be known by the id it had before an edit
    return pinned


# -- what is to be written --------------------------------------------------------------------------------------------


def _pruning(seen: _Seen, policy: Policy, now: int) -> Pruning | None:
    """Return what the store is to do; None where there is nothing."""
    marked, digests = seen.marked, {row.seq: row.digest for row in seen.checkpoints}
    digests |= {anchor.seq: anchor.row_digest for anchor in seen.anchors}
    before = {_gap(anchor): anchor for anchor in seen.anchors}
    fresh = [gap for gap in marked.gaps if gap not in before]
    stays = {gap.seq for gap in marked.gaps}
    logs, runs = _over(seen, policy)
    if not (marked.cut_points or marked.cut_notes or fresh or logs or runs):
        return None
    return Pruning(
        seen.thread,
        ranges(marked.cut_points, (row.seq for row in seen.checkpoints)),
        ranges(marked.cut_notes, (row.seq for row in seen.records)),
        [_anchor(seen.thread.thread_id, gap, digests, now) for gap in fresh],
        [anchor.seq for anchor in seen.anchors if anchor.seq not in stays],
        logs,
        runs,
    )


def _anchor(thread_id: str, gap: Gap, digests: dict[int, bytes], now: int) -> AnchorRow:
    parent = NO_DIGEST if gap.parent_seq is None else digests[gap.parent_seq]
    return seal_anchor(
        AnchorRow(
            thread_id,
            gap.seq,
            int(gap.held),
            gap.parent_seq,
            parent,
            gap.shown_seq,
            digests[gap.seq],
            gap.checkpoints,
            gap.records,
            gap.notes,
            now,
            b"",
        )
    )


def _over(seen: _Seen, policy: Policy) -> tuple[list[str], list[str]]:
    """Return the runs whose logs go, and those that are forgotten: nothing that stays is of them. A run id stays known
    until the run is as old as the policy says, since until then it must not be run a second time."""
    marked = seen.marked
    shown = {row.run_id for row in seen.checkpoints if row.seq in marked.kept}
    named = shown | {row.run_id for row in seen.checkpoints if row.seq in marked.held}
    named |= {row.run_id for row in seen.records if row.seq not in marked.cut_notes}
    older = [run for run in seen.runs[1:] if run.finished_at and run.run_id != seen.thread.run_id]
    if policy.written_by is not None:
        silent = [run.run_id for run in seen.runs if run.events and run.run_id in policy.written_by]
        return silent, [run.run_id for run in older if run.run_id in policy.written_by - named]
    silent = [run.run_id for run in older if run.events and run.run_id not in shown]
    before = policy.created_before or 0
    return silent, [run.run_id for run in older if run.run_id not in named and run.finished_at < before]


def _left(seen: _Seen, policy: Policy) -> dict[str, RunLeft]:
    """Return what stays of each run that the policy names. The newest run of a thread stays known: how the thread
    stands is told by its row."""
    marked = seen.marked
    kept = Counter(row.run_id for row in seen.checkpoints if row.seq in marked.kept)
    held = Counter(row.run_id for row in seen.checkpoints if row.seq in marked.held)
    records = Counter(row.run_id for row in seen.records if row.seq not in marked.cut_notes)
    named = policy.written_by or frozenset()
    stays = [run.run_id for run in seen.runs[:1]] + [*kept, *held, *records]
    return {run: RunLeft(kept[run], held[run], records[run]) for run in dict.fromkeys(stays) if run in named}
