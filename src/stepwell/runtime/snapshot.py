"""What `get_state` and `get_state_history` return: a checkpoint as a user reads it.

Without a checkpoint id the finished tasks of the running superstep are applied to `values` and leave `next`; with one,
the checkpoint is shown as it was committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stepwell.codec import Codec
from stepwell.graph.types import Interrupt
from stepwell.plan.tables import Plan
from stepwell.runtime.loading import Loaded, asked_questions, load, row_name
from stepwell.runtime.stream_payloads import as_interrupt, state_of, visible_values
from stepwell.store import CheckpointRow, HistoryQuery, Reader, RecordRow
from stepwell.superstep import body as layout
from stepwell.superstep.decide import open_questions
from stepwell.superstep.outcome import Cancelled, Failed, Question, Succeeded, summary
from stepwell.superstep.state import Base, Task


@dataclass(frozen=True, slots=True)
class PregelTask:
    """A planned task of a checkpoint, and what is known of it."""

    id: str
    name: str
    path: tuple[Any, ...]
    error: str | None = None
    """Text: the exception as recorded."""
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A checkpoint. The first eight fields are LangGraph's and decide equality; the rest say more."""

    values: Any
    next: tuple[str, ...]
    config: Mapping[str, Any]
    metadata: Mapping[str, Any] | None
    created_at: str | None
    parent_config: Mapping[str, Any] | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt, ...] = ()
    run_id: str | None = field(default=None, compare=False)
    lineage: int = field(default=0, compare=False)
    seq: int = field(default=0, compare=False)
    """Position among everything ever written on the thread."""
    digest: str = field(default="", compare=False)
    """Hex digest of the stored row."""
    writes: Mapping[str, Any] | None = field(default=None, compare=False)
    """Node → what it wrote in the superstep that made this checkpoint (a list where it ran more than once)."""
    joins: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """Joins that have seen some of their sources: join → those that arrived."""


def empty_snapshot(config: Mapping[str, Any]) -> StateSnapshot:
    """Return what is known of a thread that never ran."""
    return StateSnapshot({}, (), config, None, None, None, ())


def read_state(
    reader: Reader, codec: Codec, plan: Plan, thread_id: str, namespace: str, checkpoint_id: str | None
) -> StateSnapshot | None:
    """Return the snapshot of a checkpoint, or of the thread's head; None where there is none."""
    if checkpoint_id is not None:
        row = reader.checkpoint(thread_id, namespace, checkpoint_id)
    else:
        row = reader.newest(thread_id, namespace)
    return None if row is None else _snapshot(reader, codec, plan, row, live=checkpoint_id is None)


def read_history(reader: Reader, codec: Codec, plan: Plan, query: HistoryQuery) -> list[StateSnapshot]:
    """Return the checkpoints a query selects, newest first."""
    return [_snapshot(reader, codec, plan, row, live=False) for row in reader.history(query)]


def _snapshot(reader: Reader, codec: Codec, plan: Plan, row: CheckpointRow, live: bool) -> StateSnapshot:
    loaded = load(reader, codec, plan, row)
    base = loaded.base
    values = visible_values(plan, base) if live else base.state.values
    pending = [t for t, o in zip(base.tasks, base.outcomes, strict=True) if not (live and isinstance(o, Succeeded))]
    tasks = _tasks(reader, codec, loaded, live)
    return StateSnapshot(
        values=state_of(plan, values),
        next=tuple(task.node for task in pending),
        config=config_of(row),
        metadata=metadata_of(row),
        created_at=datetime.fromtimestamp(row.created_at / 1e6, UTC).isoformat(),
        parent_config=_parent_config(reader, row),
        tasks=tasks,
        interrupts=tuple(i for task in tasks for i in task.interrupts),
        run_id=row.run_id or None,
        lineage=row.lineage,
        seq=row.seq,
        digest=row.digest.hex(),
        writes=_writes(reader, codec, loaded),
        joins={join: tuple(sorted(arrived)) for join, arrived in base.state.barriers.items()},
    )


def config_of(row: CheckpointRow) -> dict[str, Any]:
    """Return the config that addresses a checkpoint."""
    address = {"thread_id": row.thread_id, "checkpoint_ns": row.namespace, "checkpoint_id": row.checkpoint_id}
    return {"configurable": address}


def metadata_of(row: CheckpointRow) -> dict[str, Any]:
    """Return exactly source, step and parents, and what the caller gave."""
    given = json.loads(row.metadata) if row.metadata else {}
    return {**given, "source": row.source, "step": row.step, "parents": {}}


def _parent_config(reader: Reader, row: CheckpointRow) -> dict[str, Any] | None:
    if row.parent_seq is None:
        return None
    (parent,) = reader.checkpoints(row.thread_id, [row.parent_seq])
    return config_of(parent)


def _tasks(reader: Reader, codec: Codec, loaded: Loaded, live: bool) -> tuple[PregelTask, ...]:
    base = loaded.base
    merged = _merged_outcomes(reader, codec, loaded)
    asked = asked_questions(codec, loaded)
    still_open = {question.interrupt_id for question in open_questions(base)}
    return tuple(
        _task(base, i, task, merged.get((task.node, task.index)), asked.get(task.id, ()), live, still_open)
        for i, task in enumerate(base.tasks)
    )


def _task(
    base: Base, index: int, task: Task, merged: Any, asked: Sequence[Question], live: bool, still_open: set[str]
) -> PregelTask:
    outcome = base.outcomes[index] if base.outcomes[index] is not None else merged
    done = isinstance(outcome, Succeeded) or isinstance(merged, Succeeded)
    success = outcome if isinstance(outcome, Succeeded) else merged
    error = outcome.text if isinstance(outcome, Failed | Cancelled) and not done else None
    return PregelTask(
        id=task.id,
        name=task.node,
        path=task.path,
        error=error,
        interrupts=tuple(as_interrupt(q) for q in asked if (done and not live) or q.interrupt_id in still_open),
        result=(summary(success.writes) or {}) if done else None,
    )


def _merged_outcomes(reader: Reader, codec: Codec, loaded: Loaded) -> dict[tuple[str, int | None], Succeeded]:
    """Return the outcomes that the next checkpoint of the lineage holds inline: of its tasks, or of an edit as them."""
    child = reader.child(loaded.row.thread_id, loaded.row.seq, loaded.row.lineage)
    if child is None:
        return {}
    opened = layout.open_checkpoint(child.body, row_name(child))
    return {
        (node, index): layout.decode_succeeded(codec, body, row_name(child))
        for node, index, body in layout.inline_outcomes(opened)
    }


def _writes(reader: Reader, codec: Codec, loaded: Loaded) -> dict[str, Any] | None:
    by_node: dict[str, list[Any]] = {}
    held = _referred(reader, loaded)
    for entry in loaded.opened.outcomes:
        if len(entry) == 5:
            writes = layout.decode_writes(codec, entry[3])
        else:
            record = held[entry[3]]
            writes = layout.decode_succeeded(codec, record.body, row_name(record)).writes
        by_node.setdefault(entry[0], []).append(summary(writes))
    return {node: made[0] if len(made) == 1 else made for node, made in by_node.items()} or None


def _referred(reader: Reader, loaded: Loaded) -> dict[int, RecordRow]:
    """Return the records that hold outcomes of this checkpoint, by seq."""
    parent_seq = loaded.row.parent_seq
    if parent_seq is None or all(len(entry) == 5 for entry in loaded.opened.outcomes):
        return {}
    return {record.seq: record for record in reader.records(loaded.row.thread_id, parent_seq)}
