"""A checkpoint as the commands show it, whether the graph read it or nobody knows the graph.

Not here: reading one (`stored.py` without the graph, the engine with it) and printing one (`report.py`). The rule: one
shape of JSON for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stepwell.cli.rendering import TYPE, VALUE, Renderer
from stepwell.graph.types import Waiting
from stepwell.runtime.reading.snapshot import PregelTask, StateSnapshot


@dataclass(frozen=True)
class OpenQuestion:
    """A question that waits for its answer."""

    id: str
    node: str
    value: Any

    @property
    def approval(self) -> Mapping[str, Any] | None:
        """What an effect wants approved, where the question is for a decision."""
        typed = isinstance(self.value, dict) and self.value.get(TYPE) == "stepwell:ApprovalRequest"
        return self.value[VALUE] if typed else None


@dataclass(frozen=True)
class OpenWait:
    """Something that has not come yet: a time, a signal, the completion of an awakeable."""

    kind: str
    node: str
    key: str
    until: str | None


@dataclass(frozen=True)
class TaskView:
    """A planned task and what became of it: planned, succeeded, failed, interrupted, waiting or cancelled."""

    id: str
    node: str
    status: str
    error: str | None
    result: Any
    questions: tuple[OpenQuestion, ...]
    waits: tuple[OpenWait, ...] = ()


@dataclass(frozen=True)
class CheckpointView:
    """A checkpoint of a thread; all but `thread` and `status` are empty where the thread has none yet."""

    thread: str
    status: str
    """The thread's, not the checkpoint's."""
    checkpoint: str | None = None
    step: int | None = None
    source: str | None = None
    lineage: int = 0
    seq: int = 0
    created_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the caller gave."""
    run: str | None = None
    parent: str | None = None
    next: tuple[str, ...] = ()
    values: Any = None
    tasks: tuple[TaskView, ...] = ()

    @property
    def questions(self) -> list[OpenQuestion]:
        """The open questions, in listing order."""
        return [question for task in self.tasks for question in task.questions]

    @property
    def waits(self) -> list[OpenWait]:
        """What has not come yet, in listing order."""
        return [wait for task in self.tasks for wait in task.waits]


def view_of(snapshot: StateSnapshot, status: str, thread_id: str, renderer: Renderer) -> CheckpointView:
    """Return a snapshot of the engine's as a view."""
    metadata = snapshot.metadata or {}
    return CheckpointView(
        thread=thread_id,
        status=status,
        checkpoint=_checkpoint_id(snapshot.config),
        step=metadata.get("step"),
        source=metadata.get("source"),
        lineage=snapshot.lineage,
        seq=snapshot.seq,
        created_at=snapshot.created_at,
        metadata={key: value for key, value in metadata.items() if key not in ("source", "step", "parents")},
        run=snapshot.run_id,
        parent=_checkpoint_id(snapshot.parent_config),
        next=snapshot.next,
        values=renderer.json(snapshot.values),
        tasks=tuple(_task_view(task, renderer) for task in snapshot.tasks),
    )


def _checkpoint_id(config: Any) -> str | None:
    return config["configurable"].get("checkpoint_id") if config else None


def _task_view(task: PregelTask, renderer: Renderer) -> TaskView:
    done = task.result is not None
    asked = () if done else task.interrupts  # a finished task lists the questions it had answered
    questions = tuple(OpenQuestion(asked.id, task.name, renderer.json(asked.value)) for asked in asked)
    waits = tuple(open_wait(task.name, wait) for wait in task.waiting)
    pause = "interrupted" if questions else "waiting" if waits else "planned"
    status = "succeeded" if done else "failed" if task.error else pause
    return TaskView(task.id, task.name, status, task.error, renderer.json(task.result), questions, waits)


def open_wait(node: str, wait: Waiting) -> OpenWait:
    """Return a wait of a node as the commands show it."""
    return OpenWait(wait.kind, node, wait.key, None if wait.until is None else wait.until.isoformat())


def node_names(tasks: Sequence[str]) -> str:
    """Return node names as a person reads them: each once, with how often."""
    counts = {name: tasks.count(name) for name in tasks}
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items()) or "-"
