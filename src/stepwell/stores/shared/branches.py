"""Which lineages a thread has: kept beside the checkpoints from its first fork on, so that a number finds its head.

The rule: the lineage of the thread's newest root checkpoint is the current one, and its head is that checkpoint; of
every other lineage the row here says the head. So a row is written when the current lineage changes, and only then.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.store import CheckpointRow, Counts, LineageRow
from stepwell.stores.shared.rows import LINEAGES, lineage_digest
from stepwell.stores.shared.statements import Statements


def note_branches(on: Statements, thread_id: str, checkpoints: Sequence[CheckpointRow]) -> int:
    """Note what these checkpoints, about to be inserted, open and leave; return how many statements that took."""
    rows = [row for row in checkpoints if row.namespace == ""]
    if not rows:
        return 0
    found = on.execute(on.query("newest_place"), {"thread_id": thread_id, "namespace": ""}).fetchall()
    seq, lineage = found[0] if found else (0, rows[0].lineage)
    spent = 1
    fresh: dict[int, int] = {}
    for row in rows:
        if row.lineage != lineage:
            spent += _leave(on, thread_id, lineage, seq) + _enter(on, row, fresh)
        seq, lineage = row.seq, row.lineage
        fresh[seq] = lineage
    return spent


def note_lineage(on: Statements, counts: Counts, row: LineageRow) -> None:
    """Note a lineage of a thread that comes whole."""
    counts.statements += 1
    _put(on, row)


def note_head(on: Statements, thread_id: str) -> int:
    """Note where the current lineage ends now, if it has a row; return how many statements that took."""
    found = on.execute(on.query("newest_place"), {"thread_id": thread_id, "namespace": ""}).fetchall()
    if not found or _known(on, thread_id, found[0][1]) is None:
        return 2
    return 2 + _leave(on, thread_id, found[0][1], found[0][0])


def _leave(on: Statements, thread_id: str, lineage: int, head_seq: int) -> int:
    known = _known(on, thread_id, lineage) or LineageRow(thread_id, lineage, None, None, 0)
    _put(on, known._replace(head_seq=head_seq))
    return 2


def _enter(on: Statements, row: CheckpointRow, fresh: dict[int, int]) -> int:
    if _known(on, row.thread_id, row.lineage) is not None:
        return 1
    parent = fresh.get(row.parent_seq or 0)
    if parent is None and row.parent_seq is not None:
        found = on.execute(on.query("lineage_of"), {"thread_id": row.thread_id, "seq": row.parent_seq}).fetchall()
        parent = found[0][0] if found else None
    _put(on, LineageRow(row.thread_id, row.lineage, parent, row.parent_seq, row.seq))
    return 3


def _known(on: Statements, thread_id: str, lineage: int) -> LineageRow | None:
    found = on.execute(on.query("lineage"), {"thread_id": thread_id, "lineage": lineage}).fetchall()
    return LINEAGES.verified(found[0]) if found else None


def _put(on: Statements, row: LineageRow) -> None:
    on.execute(on.query("put_lineage"), (*row, lineage_digest(row)))
