"""A thread as its rows, to be written in another database: read one by one, verified, and put there as they were.

The order of tables is that in which they can be written: a data key before what it decrypts, runs before their logs.
"""

from __future__ import annotations

from collections.abc import Iterator

from stepwell.errors import RunConflictError
from stepwell.store import DELETED, Counts, EffectRow, KeyRow, Restoration, StoredRow, ThreadRow
from stepwell.stores.shared.keys import put_key
from stepwell.stores.shared.rows import BY_NAME, EFFECTS, KEYS, SHAPES, THREADS, thread_digest
from stepwell.stores.shared.source import Source
from stepwell.stores.shared.statements import Statements
from stepwell.superstep.effects.keys import GLOBAL
from stepwell.superstep.effects.rules import Known, spokesman

INSERTS = {
    "shapes": "insert_shape",
    "runs": "put_run",
    "blobs": "insert_blob",
    "checkpoints": "insert_checkpoint",
    "lineages": "put_lineage",
    "anchors": "put_anchor",
    "records": "insert_record",
    "effects": "put_effect",
    "events": "insert_event",
    "inbox": "insert_message",
}
"""By which statement the rows of a table are written, in the order in which they are."""


def stored_rows(source: Source, thread_id: str) -> Iterator[StoredRow]:
    """Yield the rows of a thread, its own first. Raises CorruptRecordError for one that does not verify."""
    where = {"thread_id": thread_id}
    for found in source.fetch("thread", THREADS, where):
        THREADS.verified(found)
        yield "threads", tuple(found)
    for found in source.fetch("key", KEYS, where):
        KEYS.verified(found)
        yield "keys", tuple(found)
    for found in source.fetch("shapes_of_thread", SHAPES, where):
        fingerprint, shape = found
        yield "shapes", (fingerprint, shape.decode() if isinstance(shape, bytes) else shape)
    for name in INSERTS:
        if name == "shapes":
            continue
        table = BY_NAME[name]
        for raw in source.stream(f"raw_{name}", {"thread_id": thread_id.encode()}):
            fault = table.fault(raw)
            if fault is not None:
                raise table.corrupt(raw, fault)
            yield name, tuple(table.decoded(raw))


def restore(on: Statements, counts: Counts, restoration: Restoration) -> tuple[ThreadRow, bytes] | None:
    """Write the rows under a thread row of their own; None where there is a thread. Its epoch is none that anybody has
    had, there or here."""
    thread_id = restoration.thread_id
    counts.statements += 2
    found = on.execute(on.query("thread_to_write"), {"thread_id": thread_id}).fetchall()
    here = THREADS.verified(found[0]) if found else None
    if here is not None and here.status != DELETED:
        return None
    epoch = max(restoration.thread.epoch, here.epoch if here is not None else 0) + 1
    row = restoration.thread._replace(epoch=epoch, holder="", lease_until=0.0)
    digest = thread_digest(row)
    on.execute(on.query("restore_thread"), (*row, digest))
    if on.changes() != 1:
        return None
    for name, columns in restoration.rows():
        if name == "threads":
            continue
        if name == "keys":
            put_key(on, counts, KeyRow._make(columns))
            continue
        if name == "effects" and not _tells_more(on, counts, EffectRow._make(columns)):
            continue
        counts.statements += 1
        on.execute(on.query(INSERTS[name]), columns)
        if name == "runs" and on.changes() != 1:
            told = f"Run {columns[0]} is another thread's in this database. Thread {thread_id!r} was not written."
            raise RunConflictError(told, run_id=columns[0], thread_id=thread_id)
    return row, digest


def _tells_more(on: Statements, counts: Counts, came: EffectRow) -> bool:
    """Tell whether an effect's row is to be written: one of the scope "global" is the database's, which may have one
    under its key that is nearer to the truth."""
    if came.scope != GLOBAL:
        return True
    on.lock("effect", [came.key])
    counts.statements += 1
    found = [EFFECTS.verified(row) for row in on.execute(on.query("effect"), {"key": came.key}).fetchall()]
    known = [Known(row.key, row.thread_id, row.status, row.fingerprint, row.finished_at) for row in (*found, came)]
    return spokesman(known, found[0].thread_id if found else "") is known[-1]
