"""A checkpoint read from its rows alone, without the graph that wrote it.

Reducers are the graph's, so `values` are those of the checkpoint as committed: what the finished tasks of the running
superstep wrote stands beside them, in `tasks`. The rule: every row is verified, and every class is `Opaque`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stepwell.cli.absent import unknown_checkpoint
from stepwell.cli.checkpoint_view import CheckpointView, OpenQuestion, OpenWait, TaskView, open_wait
from stepwell.cli.rendering import as_json, opaque_codec
from stepwell.cli.screen import moment
from stepwell.codec import Codec
from stepwell.runtime.blobs import reading
from stepwell.runtime.loading import gathered, row_name, values_of
from stepwell.runtime.reading.bare import bare_base
from stepwell.runtime.stream.payloads import as_waiting
from stepwell.store import CheckpointRow, Reader, ThreadRow
from stepwell.superstep import body as layout
from stepwell.superstep.decide import open_questions
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Outcome, Succeeded, result_of
from stepwell.superstep.state import Base
from stepwell.superstep.waiting import open_waits


def read_view(reader: Reader, thread: ThreadRow, checkpoint_id: str | None) -> CheckpointView:
    """Return a checkpoint of the thread, or its head."""
    codec = opaque_codec()
    if checkpoint_id is None:
        row = reader.newest(thread.thread_id, "")
    else:
        row = reader.checkpoint(thread.thread_id, "", checkpoint_id)
    if row is None:
        if checkpoint_id is not None:
            raise unknown_checkpoint(reader, thread.thread_id, checkpoint_id)
        return CheckpointView(thread.thread_id, thread.status)
    opened = layout.open_checkpoint(row.body, row_name(row))
    base = bare_base(reader, codec, row, opened)
    tasks = _task_views(reader, codec, row, base)
    finished = {task.id for task in tasks if task.status == "succeeded" and checkpoint_id is None}
    return CheckpointView(
        thread=thread.thread_id,
        status=thread.status,
        checkpoint=row.checkpoint_id,
        step=row.step,
        source=row.source,
        lineage=row.lineage,
        seq=row.seq,
        created_at=moment(row.created_at),
        metadata=json.loads(row.metadata) if row.metadata else {},
        run=row.run_id or None,
        parent=_parent_id(reader, row),
        next=tuple(task.node for task in tasks if task.id not in finished),
        values=_shown_values(values_of(gathered(reader, row, opened), codec, row)),
        tasks=tasks,
    )


def newest_id(reader: Reader, thread_id: str) -> str | None:
    """Return the id of the thread's newest checkpoint, without reading it."""
    seq = reader.newest_seq(thread_id, "")
    return None if seq is None else reader.id_of(thread_id, seq)


def planned_nodes(row: CheckpointRow) -> list[str]:
    """Return the nodes that are planned at a checkpoint. No value is decoded."""
    return [planned[0] for planned in layout.open_checkpoint(row.body, row_name(row)).next]


def place_of(row: CheckpointRow) -> dict[str, Any]:
    """Return where a checkpoint stands, as JSON."""
    return {"checkpoint": row.checkpoint_id, "step": row.step, "next": planned_nodes(row)}


def _task_views(reader: Reader, codec: Codec, row: CheckpointRow, base: Base) -> tuple[TaskView, ...]:
    merged = _merged_outcomes(reader, codec, row)
    still_open = {question.interrupt_id for question in open_questions(base)}
    waits: dict[str, tuple[OpenWait, ...]] = {task.id: () for task in base.tasks}
    for task, awaited in open_waits(base):
        waits[task.id] += (open_wait(task.node, as_waiting(awaited)),)
    views = []
    for task, recorded in zip(base.tasks, base.outcomes, strict=True):
        outcome = recorded if recorded is not None else merged.get((task.node, task.index))
        asked = outcome.questions if isinstance(outcome, Interrupted) else ()
        questions = tuple(
            OpenQuestion(question.interrupt_id, task.node, as_json(question.value))
            for question in asked
            if question.interrupt_id in still_open
        )
        views.append(TaskView(task.id, task.node, *_ending(outcome), questions, waits[task.id]))
    return tuple(views)


def _merged_outcomes(reader: Reader, codec: Codec, row: CheckpointRow) -> dict[tuple[str, int | None], Succeeded]:
    """Return the outcomes that the next checkpoint of the lineage holds itself."""
    child = reader.child(row.thread_id, row.seq, row.lineage)
    if child is None:
        return {}
    opened = layout.open_checkpoint(child.body, row_name(child))
    codec = reading(reader, codec, child.thread_id, [child.body])
    return {
        (node, index): layout.decode_succeeded(codec, body, row_name(child))
        for node, index, body in layout.inline_outcomes(opened)
    }


def _ending(outcome: Outcome | None) -> tuple[str, str | None, Any]:
    """Return a task's status, error and result."""
    match outcome:
        case Succeeded():
            return "succeeded", None, as_json(result_of(outcome.writes))
        case Failed():
            return "failed", outcome.text, None
        case Cancelled():
            return "cancelled", outcome.text, None
        case Interrupted():
            return ("interrupted" if outcome.questions else "waiting"), None, None
    return "planned", None, None


def _parent_id(reader: Reader, row: CheckpointRow) -> str | None:
    return None if row.parent_seq is None else reader.id_of(row.thread_id, row.parent_seq) or None


def _shown_values(values: Mapping[str, Any]) -> Any:
    return as_json(values["__root__"] if set(values) == {"__root__"} else values)
