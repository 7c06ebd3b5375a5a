"""What happens in the life of a run, as types: past tense, frozen, plain values only.

Listeners get these objects (`compile(listeners=[...])`), and a run that keeps a log (`compile(events=True)`) writes
them down. Nothing here decides when: that is `runtime/telling.py`. Every event carries the run, the thread and the
time; ids are those of states, checkpoints and records. An error is its text, never the exception.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""

    run_id: str
    """The run it belongs to; "" for an edit or a fork, which are no runs."""
    thread_id: str | None
    """None where there is no checkpointer."""
    at: int
    """Wall time in microseconds since the epoch, UTC. Order is that of the log, never this."""


# -- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A drive of the thread began. A crashed run that is continued starts again, with another attempt number."""

    kind: str
    """input | continue | answer | command | retry | replay"""
    durability: str
    attempt: int
    """1, and one more for each takeover."""
    graph_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """Nothing is planned any more."""

    checkpoint_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused(Event):
    """The run ended at open questions, a breakpoint or a step limit."""

    checkpoint_id: str
    interrupt_ids: tuple[str, ...]
    """The open questions; none at a breakpoint or a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaiting(Event):
    """The run ended with tasks that wait for a time, a signal or an awakeable, and asks nothing."""

    checkpoint_id: str
    keys: tuple[str, ...]
    """What is awaited: keys of signals and ids of awakeables, "" for a timer."""
    until: int | None
    """When the first of the waits is over if nothing comes: wall time, microseconds. None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed(Event):
    """The run ended with an error."""

    checkpoint_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled(Event):
    """The run was stopped from outside."""

    checkpoint_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTakenOver(Event):
    """A run took the thread from a process that had died or whose lease had expired."""

    from_run_id: str
    """The run that process was driving: this one, where it is continued."""
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost(Event):
    """Another run took the thread while this one was at work: it may write nothing more. Never in a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphChanged(Event):
    """The graph that goes on with the thread is not the one that wrote the checkpoint it starts from."""

    checkpoint_id: str
    from_version: str
    to_version: str
    from_fingerprint: str
    to_fingerprint: str
    differences: tuple[str, ...]
    """One sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinNotReleased(Event):
    """The run finished although a join had seen some of its sources and not the others."""

    join: str
    missing: tuple[str, ...]


# -- supersteps and checkpoints ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperstepStarted(Event):
    """The tasks of a superstep, or those of it that are missing, are about to run."""

    step: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperstepCommitted(Event):
    """A superstep's merged state became its checkpoint."""

    step: int
    nodes: tuple[str, ...]
    """The nodes that wrote, in merge order."""
    checkpoint_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCommitted(Event):
    """A checkpoint was written, whatever made it."""

    checkpoint_id: str
    step: int
    source: str
    """input | loop | update | fork"""
    lineage: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestored(Event):
    """A run began from a checkpoint that was there."""

    checkpoint_id: str
    step: int
    lineage: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadForked(Event):
    """A new lineage began."""

    lineage: int
    from_seq: int | None
    """The checkpoint it branches off from; None on an empty thread."""
    checkpoint_id: str
    """The first one of the new lineage."""


# -- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent(Event):
    """Something that happened to a task."""

    task_id: str
    node: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScheduled(TaskEvent):
    """The task is due in the superstep that starts."""

    activation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted(TaskEvent):
    """User code of the task was called."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished(TaskEvent):
    """The task succeeded, routing included."""

    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(TaskEvent):
    """The task raised and no retry is left, or what it returned could not be taken."""

    attempt: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCancelled(TaskEvent):
    """The task was stopped from outside before it was done."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled(TaskEvent):
    """An attempt failed and another one is due."""

    attempt: int
    """The attempt that failed."""
    error: str
    due_at: int
    """When the next one may begin: wall time, microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptRaised(TaskEvent):
    """The task asked a question."""

    interrupt_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecorded(TaskEvent):
    """A question was answered."""

    interrupt_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitStarted(TaskEvent):
    """The task waits."""

    kind: str
    """timer | signal | awakeable"""
    key: str
    until: int | None
    """Wall time, microseconds; None: for as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded(TaskEvent):
    """What a task waited for has come, or did not come in time."""

    kind: str
    key: str
    message_id: str
    """The message that ended it; "" where its time was over first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent(TaskEvent):
    """Something that happened to a step: a call that the task's code made."""

    step_id: str
    """Its call id: the same when the node runs again."""
    callee: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(StepEvent):
    """The code of the step was called, or looked up in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(StepEvent):
    """The step returned, and its result is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed(StepEvent):
    """The step raised and no retry is left."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownEvent(Event):
    """An entry of a log whose kind this version does not know."""

    name: str
    facts: Mapping[str, Any]


class LoggedEvent(NamedTuple):
    """One entry of a run's log."""

    offset: int
    """Its position, from 1; read on behind it with `after=offset`."""
    event: Event


# -- events and bytes -------------------------------------------------------------------------------------------------

KINDS: Mapping[str, type[Event]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind
    for kind in (
        *(RunStarted, RunFinished, RunPaused, RunWaiting, RunFailed, RunCancelled),
        *(LeaseTakenOver, LeaseLost, GraphChanged, JoinNotReleased),
        *(SuperstepStarted, SuperstepCommitted, CheckpointCommitted, CheckpointRestored, ThreadForked),
        *(TaskScheduled, TaskStarted, TaskFinished, TaskFailed, TaskCancelled),
        *(RetryScheduled, InterruptRaised, AnswerRecorded, WaitStarted, WaitEnded),
        *(StepStarted, StepFinished, StepFailed),
    )
}
"""Every event by the name a log has it under."""

_NAMES = {kind: name for name, kind in KINDS.items()}
_ROW = frozenset(field.name for field in fields(Event))
"""What has columns of its own in a log."""
_FACTS = {kind: tuple(field.name for field in fields(kind) if field.name not in _ROW) for kind in _NAMES}


def name_of(event: Event) -> str:
    """Return the name of the event's kind: `task_finished` for a TaskFinished."""
    return _NAMES[type(event)]


def body_of(event: Event) -> bytes:
    """Return what a log keeps of an event beside its run, its thread and its time."""
    import ormsgpack

    return ormsgpack.packb({name: getattr(event, name) for name in _FACTS[type(event)]})


def event_of(name: str, body: bytes, run_id: str, thread_id: str, at: int) -> Event:
    """Return the event that a log keeps. What a newer version added to its facts is left out."""
    import ormsgpack

    given = ormsgpack.unpackb(body)
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    kind = KINDS.get(name)
    if kind is None:
        return UnknownEvent(run_id=run_id, thread_id=thread_id, at=at, name=name, facts=facts)
    known = {key: facts[key] for key in _FACTS[kind] if key in facts}
    return kind(run_id=run_id, thread_id=thread_id, at=at, **known)
