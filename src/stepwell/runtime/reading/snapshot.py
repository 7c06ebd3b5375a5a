"""What `get_state` and `get_state_history` return: a checkpoint as a user reads it. Reading the rows is `page.py`'s.

Without a checkpoint id the finished tasks of the running superstep are applied to `values` and leave `next`; with one,
the checkpoint is shown as it was committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from stepwell.codec import Codec
from stepwell.graph.types import Interrupt, Waiting
from stepwell.plan.tables import Plan
from stepwell.runtime.loading import Loaded, asked_questions
from stepwell.runtime.reading.page import Page
from stepwell.runtime.stream.payloads import as_interrupt, as_waiting, state_of, visible_values
from stepwell.store import CheckpointRow
from stepwell.superstep.decide import open_questions
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Question, Succeeded, result_of, summary
from stepwell.superstep.state import Base, Task
from stepwell.superstep.waiting import Arrived


class _TaskFields(NamedTuple):
    id: str
    name: str
    path: tuple[Any, ...]
    error: str | None = None
    """Text: the exception as recorded."""
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any = None


class PregelTask(_TaskFields):
    """A planned task of a checkpoint, and what is known of it. The fields it unpacks into are LangGraph's."""

    waiting: tuple[Waiting, ...] = ()
    """What the task waits for."""


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """A checkpoint. The first eight fields are LangGraph's and decide equality; the rest say more.

    It unpacks into those eight, as LangGraph's named tuple does. A part is decoded when it is looked at. In a history
    one that cannot be read raises there, and the others are fine; `get_state` raises for what users wrote.
    """

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
    _source: Any = field(default=None, repr=False, compare=False)
    _fields: ClassVar = ("values", "next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts")

    def __getattr__(self, name: str) -> Any:
        """Decode a part that nobody has looked at yet."""
        if name not in _Source.PARTS:
            raise AttributeError(f"a StateSnapshot has no {name!r}")
        value = getattr(self._source, name)()
        object.__setattr__(self, name, value)
        return value

    def __reduce__(self) -> Any:
        """Pickle and copy the parts, decoded, and nothing of where they came from."""
        return StateSnapshot, tuple(getattr(self, each.name) for each in fields(self) if each.name != "_source")

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def _asdict(self) -> dict[str, Any]:
        """Return the fields that are LangGraph's."""
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, **changes: Any) -> StateSnapshot:
        """Return a snapshot with other parts."""
        return replace(self, **changes, _source=None)


def empty_snapshot(config: Mapping[str, Any]) -> StateSnapshot:
    """Return what is known of a thread that never ran."""
    return StateSnapshot({}, (), config, None, None, None, ())


def before_input(head: StateSnapshot | None, thread_id: str, run_id: str, entry: str) -> StateSnapshot:
    """Return what is known of a thread whose newest input is on no checkpoint: the state before it, and what takes
    the input next."""
    if head is None:
        head = empty_snapshot({"configurable": {"thread_id": thread_id}})
    return head._replace(next=(entry,), tasks=(), interrupts=(), run_id=run_id)


def config_of(row: CheckpointRow) -> dict[str, Any]:
    """Return the config that addresses a checkpoint."""
    return config_at(row.thread_id, row.namespace, row.checkpoint_id)


def config_at(thread_id: str, namespace: str, checkpoint_id: str) -> dict[str, Any]:
    """Return the config of this address."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}


def metadata_of(row: CheckpointRow) -> dict[str, Any]:
    """Return exactly source, step and parents, and what the caller gave."""
    given = json.loads(row.metadata) if row.metadata else {}
    return {**given, "source": row.source, "step": row.step, "parents": {}}


def created_at_of(row: CheckpointRow) -> str:
    """Return when the checkpoint was made, as ISO text in UTC."""
    return datetime.fromtimestamp(row.created_at / 1e6, UTC).isoformat()


def snapshot_of(page: Page, codec: Codec, plan: Plan, row: CheckpointRow, live: bool = False) -> StateSnapshot:
    """Return a checkpoint of a page as a user reads it. Each part is decoded when it is first looked at."""
    snapshot = object.__new__(StateSnapshot)
    object.__setattr__(snapshot, "_source", _Source(page, codec, plan, row, live))
    return snapshot


def complete(snapshot: StateSnapshot) -> StateSnapshot:
    """Return the snapshot with every part decoded that holds values of users: what cannot be read is raised here."""
    for name in _OF_USERS:
        getattr(snapshot, name)
    return snapshot


_OF_USERS = ("values", "next", "tasks", "interrupts", "writes")


class _Source:
    """Where the parts of one snapshot come from."""

    __slots__ = ("_loaded", "codec", "live", "page", "plan", "row")

    PARTS = frozenset(each.name for each in fields(StateSnapshot)) - {"_source"}

    def __init__(self, page: Page, codec: Codec, plan: Plan, row: CheckpointRow, live: bool) -> None:
        self.page, self.codec, self.plan, self.row, self.live = page, codec, plan, row, live
        self._loaded: Loaded | None = None

    def loaded(self) -> Loaded:
        if self._loaded is None:
            self._loaded = self.page.load(self.codec, self.plan, self.row)
        return self._loaded

    def values(self) -> Any:
        if self.live:
            return state_of(self.plan, visible_values(self.plan, self.loaded().base))
        return state_of(self.plan, self.page.values(self.codec, self.plan, self.row))

    def next(self) -> tuple[str, ...]:
        if not self.live:
            return self.page.planned(self.row)
        base = self.loaded().base
        left = [t.node for t, o in zip(base.tasks, base.outcomes, strict=True) if not isinstance(o, Succeeded)]
        return tuple(left or (task.node for task in base.tasks))  # all done and not merged yet is not finished

    def config(self) -> dict[str, Any]:
        return config_of(self.row)

    def metadata(self) -> dict[str, Any]:
        return metadata_of(self.row)

    def created_at(self) -> str:
        return created_at_of(self.row)

    def parent_config(self) -> dict[str, Any] | None:
        row = self.row
        if row.parent_seq is None or not (parent := self.page.ids[row.parent_seq]):
            return None
        return config_at(row.thread_id, row.namespace, parent)

    def tasks(self) -> tuple[PregelTask, ...]:
        return _tasks(self.page, self.codec, self.loaded(), self.live)

    def interrupts(self) -> tuple[Interrupt, ...]:
        if self.row.seq not in self.page.records:
            return ()
        return tuple(interrupt for task in self.tasks() for interrupt in task.interrupts)

    def run_id(self) -> str | None:
        return self.row.run_id or None

    def lineage(self) -> int:
        return self.row.lineage

    def seq(self) -> int:
        return self.row.seq

    def digest(self) -> str:
        return self.row.digest.hex()

    def writes(self) -> dict[str, Any] | None:
        return _writes(self.page, self.codec, self.row)

    def joins(self) -> dict[str, tuple[str, ...]]:
        barriers = self.loaded().base.state.barriers if self.plan.changed.nodes else self.page.barriers(self.row)
        return {join: tuple(sorted(arrived)) for join, arrived in barriers.items()}


def _tasks(page: Page, codec: Codec, loaded: Loaded, live: bool) -> tuple[PregelTask, ...]:
    base = loaded.base
    if not base.tasks:
        return ()
    merged = page.merged_writes(codec, loaded.row)
    if not loaded.records:
        return tuple([_planned(task, merged) for task in base.tasks])
    asked = asked_questions(loaded)
    still_open = {question.interrupt_id for question in open_questions(base)}
    return tuple(
        _task(base, i, task, merged.get((task.node, task.index)), asked.get(task.id, ()), live, still_open)
        for i, task in enumerate(base.tasks)
    )


def _planned(task: Task, merged: Mapping[Any, Any]) -> PregelTask:
    """Return a task on which nothing is recorded: it is planned, or the next checkpoint holds what it wrote."""
    writes = merged.get((task.node, task.index))
    return PregelTask(task.id, task.node, task.path, result=None if writes is None else result_of(writes))


def _task(
    base: Base, index: int, task: Task, merged: Any, asked: Sequence[Question], live: bool, still_open: set[str]
) -> PregelTask:
    outcome = base.outcomes[index]
    if isinstance(outcome, Succeeded):  # an edit in its place changes nothing about what it wrote
        merged = outcome.writes
    done = merged is not None
    waits = outcome.awaited if isinstance(outcome, Interrupted) and not done else ()
    error = outcome.text if isinstance(outcome, Failed | Cancelled) and not done else None
    made = PregelTask(
        id=task.id,
        name=task.node,
        path=task.path,
        error=error,
        interrupts=tuple(as_interrupt(q) for q in asked if (done and not live) or q.interrupt_id in still_open),
        result=result_of(merged) if done else None,
    )
    if waits:
        known = base.answers.get(task.id, {})
        made.waiting = tuple(as_waiting(each) for each in waits if not isinstance(known.get(each.call_id), Arrived))
    return made


def _writes(page: Page, codec: Codec, row: CheckpointRow) -> dict[str, Any] | None:
    by_node: dict[str, list[Any]] = {}
    for node, _, writes in page.own_writes(codec, row):
        by_node.setdefault(node, []).append(summary(writes))
    return {node: made[0] if len(made) == 1 else made for node, made in by_node.items()} or None
