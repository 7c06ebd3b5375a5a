"""Whether a graph could go on with a thread, asked without running anything: what `stepwell check` lists.

It judges by the very functions that admit a run, and reads as they do: values are decoded and migrated, nothing is
written.
"""

from __future__ import annotations

from typing import NamedTuple

from stepwell.codec import Codec
from stepwell.errors import CodecError, CorruptRecordError, MigrationError
from stepwell.plan.compatibility import Needs, differences, problems
from stepwell.plan.fingerprint import read_shape
from stepwell.plan.tables import Plan
from stepwell.runtime.changes import in_the_way, shape_of
from stepwell.runtime.loading import load, row_name
from stepwell.store import CheckpointRow, Reader, ThreadRow
from stepwell.superstep import body as layout, lifecycle


class Verdict(NamedTuple):
    """A thread at its newest checkpoint, and what keeps the graph from going on with it: nothing where it can."""

    thread: ThreadRow
    row: CheckpointRow | None
    missing: tuple[str, ...]


def judge(reader: Reader, codec: Codec, plan: Plan, thread: ThreadRow) -> Verdict:
    """Return the verdict on one thread of this graph. A finished one is judged for a new input."""
    try:
        return _judged(reader, codec, plan, thread)
    except CorruptRecordError as error:
        return Verdict(thread, None, (str(error),))


def _judged(reader: Reader, codec: Codec, plan: Plan, thread: ThreadRow) -> Verdict:
    row = reader.newest(thread.thread_id, "")
    if row is None:
        return Verdict(thread, None, ())
    return Verdict(thread, row, (*_missing(reader, codec, plan, thread, row), *_refused(reader, plan, row)))


def _missing(reader: Reader, codec: Codec, plan: Plan, thread: ThreadRow, row: CheckpointRow) -> list[str]:
    try:
        loaded = load(reader, codec, plan, row)
    except MigrationError as error:
        return [str(error)]
    except CodecError as error:
        channels = layout.open_checkpoint(row.body, row_name(row)).channels
        found = problems(plan, Needs(channels=channels), shape_of(reader, plan, row))
        return [*(problem.text for problem in found), str(error)]
    crashed = reader.run(thread.run_id) if thread.run_id else None
    begins = thread.status == lifecycle.FINISHED or (crashed is not None and bool(crashed.input))
    return [problem.text for problem in in_the_way(reader, plan, loaded, keeps_tasks=not begins)]


def _refused(reader: Reader, plan: Plan, row: CheckpointRow) -> list[str]:
    """Return why `on_change="raise"` would refuse. A function is not asked: it may do anything."""
    before = shape_of(reader, plan, row)
    if before is None or plan.changed.on_change != "raise":
        return []
    return [f'on_change="raise", and {text}' for text in differences(before, read_shape(plan.shape))]
