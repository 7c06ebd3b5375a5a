"""Taking rows out of a thread, inside a transaction that has just taken the thread: what goes, and what stands for it.

What is left must verify: a run whose log goes has counted no events, and a message whose record goes keeps its id and
says that its record was pruned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell import points
from stepwell.store import COUNTING, NO_DIGEST, AnchorRow, Counts, Pruned, Pruning, Range, RunRow, seal_anchor
from stepwell.stores.shared.branches import note_head
from stepwell.stores.shared.inbox import forget_records
from stepwell.stores.shared.rows import RUNS, run_digest
from stepwell.stores.shared.statements import Statements

_EVENTS = RunRow._fields.index("events")


def prune(on: Statements, counts: Counts, pruning: Pruning) -> Pruned:
    """Delete the rows and write the anchors; return how many rows went."""
    thread_id = pruning.thread_id
    checkpoints = _ranges(on, counts, "prune_checkpoints", thread_id, pruning.checkpoints)
    points.reach(points.ROWS_DELETED)
    records = _ranges(on, counts, "prune_records", thread_id, pruning.records)
    for name in pruning.blobs:
        _execute(on, counts, "prune_blob", (thread_id, name))
    for seq in pruning.dropped:
        _execute(on, counts, "delete_anchor", (thread_id, seq))
    put_anchors(on, counts, thread_id, pruning.anchors)
    if pruning.dropped and not pruning.anchors:
        _count_anchors(on, counts, thread_id)
    events = sum(_silence(on, counts, thread_id, run_id) for run_id in pruning.logs)
    runs = sum(_execute(on, counts, "forget_run", (run_id, thread_id)) for run_id in pruning.runs)
    if records:
        forget_records(on, counts, thread_id)
    if pruning.seen.lineages > 1:  # the row of the current one says where it ended once: that may be gone
        counts.statements += note_head(on, thread_id)
    return Pruned(checkpoints, records, events, runs)


def put_anchors(on: Statements, counts: Counts, thread_id: str, anchors: Sequence[AnchorRow]) -> None:
    """Write what stands for checkpoints, and how many such rows there are: so one that is lost is missed."""
    for anchor in anchors:
        _execute(on, counts, "put_anchor", anchor)
    if anchors:
        _count_anchors(on, counts, thread_id)


def _count_anchors(on: Statements, counts: Counts, thread_id: str) -> None:
    counts.statements += 1
    ((there,),) = on.execute(on.query("count_anchors"), {"thread_id": thread_id}).fetchall()
    if there:
        count = AnchorRow(thread_id, COUNTING, 0, None, NO_DIGEST, None, NO_DIGEST, 0, 0, there, 0, b"")
        _execute(on, counts, "put_anchor", seal_anchor(count))
    else:
        _execute(on, counts, "delete_anchor", (thread_id, COUNTING))


def _ranges(on: Statements, counts: Counts, name: str, thread_id: str, ranges: Sequence[Range]) -> int:
    return sum(_execute(on, counts, name, (thread_id, first, last)) for first, last in ranges)


def _silence(on: Statements, counts: Counts, thread_id: str, run_id: str) -> int:
    """Delete the log of a run, which has counted no events from here on."""
    counts.statements += 1
    found = on.execute(on.query("run"), {"run_id": run_id}).fetchall()
    if found:
        RUNS.verified(found[0])
        columns = (*found[0][:_EVENTS], 0, *found[0][_EVENTS + 1 : -1])
        _execute(on, counts, "put_run", (*columns, run_digest(columns)))
    return _execute(on, counts, "prune_log", (run_id, thread_id))


def _execute(on: Statements, counts: Counts, name: str, bindings: Sequence[Any]) -> int:
    counts.statements += 1
    on.execute(on.query(name), bindings)
    return on.changes()
