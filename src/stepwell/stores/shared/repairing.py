"""A repair inside a transaction that a leader opened: the thread's row first, then what the repair brings.

Nothing is verified here: that is the point. What is written is sealed anew.
"""

from __future__ import annotations

from stepwell import points
from stepwell.store import Counts, Repair, digest_of
from stepwell.stores.shared.effect_rows import put_effects
from stepwell.stores.shared.rows import lineage_digest, run_digest, thread_digest
from stepwell.stores.shared.statements import Statements

_REMOVE = {"effects": "delete_effect", "inbox": "delete_message"}


def write_repair(on: Statements, counts: Counts, repair: Repair) -> bytes | None:
    """Write a repair; return the digest of the thread row as written, or None where it is not as seen any more."""
    row = repair.thread
    digest = thread_digest(row)
    counts.statements += 1
    if repair.seen is None:
        on.execute(on.query("open_thread"), (*row, digest))
    else:
        on.execute(on.query("repair_thread"), (*row, digest, repair.seen[0]))
    if on.changes() != 1:
        return None
    points.reach(points.FENCED)
    _replace_lineages(on, counts, repair)
    for table, first, second in repair.removed:
        counts.statements += 1
        on.execute(on.query(_REMOVE[table]), (first, second))
    for checkpoint in repair.rows.checkpoints:
        on.execute(on.query("insert_checkpoint"), checkpoint)
    for record in repair.rows.records:
        on.execute(on.query("insert_record"), record)
    for run, epoch in repair.runs:
        columns = (*run, epoch)
        on.execute(on.query("put_run"), (*columns, run_digest(columns)))
    for message in repair.messages:
        on.execute(on.query("insert_message"), (*message[:-1], digest_of("message", message[:-1])))
    put_effects(on, counts, row.thread_id, repair.rows.effects)
    inserted = (repair.rows.checkpoints, repair.rows.records, repair.runs, repair.messages)
    counts.statements += sum(map(len, inserted))
    return digest


def _replace_lineages(on: Statements, counts: Counts, repair: Repair) -> None:
    on.execute(on.query("delete_lineages"), {"thread_id": repair.thread_id})
    for lineage in repair.lineages:
        on.execute(on.query("put_lineage"), (*lineage, lineage_digest(lineage)))
    counts.statements += 1 + len(repair.lineages)
