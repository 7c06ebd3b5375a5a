"""Which lineages a thread has: kept beside the checkpoints from its first fork on, so that a number finds its head.

The rule: the lineage of the thread's newest root checkpoint is the current one, and its head is that checkpoint; of
every other lineage the row here says the head. So a row is written when the current lineage changes, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepwell.store import CheckpointRow, LineageRow
from stepwell.stores.shared.rows import LINEAGES, lineage_digest
from stepwell.stores.sqlite.sql import query

Execute = Callable[..., Any]


def note_branches(execute: Execute, thread_id: str, checkpoints: Sequence[CheckpointRow]) -> int:
    """Note what these checkpoints, about to be inserted, open and leave; return how many statements that took."""
    rows = [row for row in checkpoints if row.namespace == ""]
    if not rows:
        return 0
    found = execute(query("newest_place"), {"thread_id": thread_id, "namespace": ""}).fetchall()
    seq, lineage = found[0] if found else (0, rows[0].lineage)
    spent = 1
    fresh: dict[int, int] = {}
    for row in rows:
        if row.lineage != lineage:
            spent += _leave(execute, thread_id, lineage, seq) + _enter(execute, row, fresh)
        seq, lineage = row.seq, row.lineage
        fresh[seq] = lineage
    return spent


def _leave(execute: Execute, thread_id: str, lineage: int, head_seq: int) -> int:
    known = _known(execute, thread_id, lineage) or LineageRow(thread_id, lineage, None, None, 0)
    _put(execute, known._replace(head_seq=head_seq))
    return 2


def _enter(execute: Execute, row: CheckpointRow, fresh: dict[int, int]) -> int:
    if _known(execute, row.thread_id, row.lineage) is not None:
        return 1
    parent = fresh.get(row.parent_seq or 0)
    if parent is None and row.parent_seq is not None:
        parent = execute(query("lineage_of"), {"thread_id": row.thread_id, "seq": row.parent_seq}).get
    _put(execute, LineageRow(row.thread_id, row.lineage, parent, row.parent_seq, row.seq))
    return 3


def _known(execute: Execute, thread_id: str, lineage: int) -> LineageRow | None:
    found = execute(query("lineage"), {"thread_id": thread_id, "lineage": lineage}).fetchall()
    return LINEAGES.verified(found[0]) if found else None


def _put(execute: Execute, row: LineageRow) -> None:
    execute(query("put_lineage"), (*row, lineage_digest(row)))
