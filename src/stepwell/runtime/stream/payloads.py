"""Events as payloads: plain functions from what a run knows to what a consumer reads, key for key as LangGraph's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import is_typeddict

from stepwell.errors import InvalidUpdateError, MergeError
from stepwell.graph.types import END, MISSING, ROOT, START, Interrupt, Waiting
from stepwell.plan.tables import Plan
from stepwell.runtime.stream.parts import (
    CheckpointPayload,
    CheckpointTask,
    DebugPayload,
    TaskPayload,
    TaskResultPayload,
)
from stepwell.superstep.merge import view
from stepwell.superstep.outcome import (
    Awaited,
    Cancelled,
    Failed,
    Interrupted,
    Outcome,
    Question,
    Succeeded,
    Write,
    result_of,
    summary,
)
from stepwell.superstep.state import Base, Identity, Task, merge_order

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.reading.snapshot import PregelTask, StateSnapshot
    from stepwell.runtime.run import Run

Keys = str | Sequence[str] | None

CACHED: Mapping[str, Any] = {"__metadata__": {"cached": True}}
"""Beside an update that nothing was run for."""


def as_interrupt(question: Question) -> Interrupt:
    return Interrupt(value=question.value, id=question.interrupt_id)


def as_waiting(awaited: Awaited) -> Waiting:
    until = None if awaited.until is None else datetime.fromtimestamp(awaited.until / 1e6, UTC)
    return Waiting(key=awaited.key, until=until, kind=awaited.kind)  # type: ignore[arg-type]  # one of the three kinds


# -- state ------------------------------------------------------------------------------------------------------------


def output_of(plan: Plan, values: Mapping[str, Any], keys: Keys = None) -> Any:
    """Return the values a caller gets: those of the output schema, or of `keys`."""
    if isinstance(keys, str):
        return values.get(keys)
    if plan.output.is_root and keys is None:
        return values.get(plan.output.key)
    wanted = plan.output.keys if keys is None else keys
    return {key: values[key] for key in wanted if key in values}


def typed_output(plan: Plan, values: Mapping[str, Any], keys: Keys = None) -> Any:
    """Return the same in the type of the output schema; a dict where `keys` chose, or a required field has no value."""
    output = output_of(plan, values, keys)
    return _built(plan.output, values, output) if keys is None else output


def shown_state(plan: Plan, values: Mapping[str, Any], keys: Keys, typed: bool) -> Any:
    """Return the state as `values` shows it: all of it, unless `keys` chose; typed, what the output schema has."""
    if keys is not None:
        return output_of(plan, values, keys)
    state = state_of(plan, values)
    return _built(plan.output, values, state) if typed and not is_typeddict(plan.output.source) else state


def state_of(plan: Plan, values: Mapping[str, Any]) -> Any:
    """Return every channel that has a value, as `get_state` shows them."""
    return (
        values.get(plan.state.key)
        if plan.state.is_root
        else {key: values[key] for key in plan.channels if key in values}
    )


def typed_state(plan: Plan, shown: Any) -> Any:
    """Return the state in the type of the state schema; a dict where a required field has no value."""
    return _built(plan.state, shown, shown) if isinstance(shown, dict) else shown


def _built(schema: Any, values: Mapping[str, Any], otherwise: Any) -> Any:
    if schema.is_root:
        return otherwise
    try:
        return schema.build(values)
    except TypeError:  # a required field has no value yet
        return otherwise


def visible_values(plan: Plan, base: Base) -> Mapping[str, Any]:
    """Return the base's values with the finished tasks of its superstep applied, as `get_state` shows them.

    Where their writes cannot be combined, the base's own: a thread must be readable to be repaired.
    """
    done = [base.outcomes[i] for i in merge_order(base.tasks)]
    writes = [write for outcome in done if isinstance(outcome, Succeeded) for write in outcome.writes]
    try:
        return view(plan, base.state, writes) if writes else base.state.values
    except (InvalidUpdateError, MergeError):
        return base.state.values


def interrupted(values: Any, asked: Sequence[Interrupt], waiting: Sequence[Waiting] = ()) -> Any:
    """Return a "v1" value with the questions in it, and what else is awaited."""
    stops = {"__interrupt__": asked, "__waiting__": waiting}
    return {**(values if isinstance(values, dict) else {}), **{key: found for key, found in stops.items() if found}}


# -- tasks ------------------------------------------------------------------------------------------------------------


def triggers_of(task: Task) -> tuple[str, ...]:
    if task.index is not None:
        return ("__pregel_push",)
    return (START,) if task.arg is not MISSING else (f"branch:to:{task.node}",)


def task_start(task_run: TaskRun, given: Any) -> TaskPayload:
    """Return what is said of an attempt that begins."""
    task = task_run.task
    payload = TaskPayload(id=task.id, name=task.node, input=given, triggers=triggers_of(task))
    if metadata := _metadata(task_run):
        payload["metadata"] = metadata
    return payload


def _metadata(task_run: TaskRun) -> dict[str, Any]:
    config = task_run.run.config.given
    metadata = dict(config.get("metadata") or {})
    if config.get("tags"):
        metadata["tags"] = list(config["tags"])
    if task_run.attempt > 1:
        metadata["stepwell_attempt"] = task_run.attempt
    return metadata


def task_result(task: Task, outcome: Outcome, keys: Keys) -> TaskResultPayload:
    """Return what became of a task."""
    shown = TaskResultPayload(
        id=task.id,
        name=task.node,
        error=outcome.text if isinstance(outcome, Failed | Cancelled) else None,
        result=_result(_chosen(outcome.writes, keys)) if isinstance(outcome, Succeeded) else {},
        interrupts=[told(as_interrupt(q)) for q in outcome.questions] if isinstance(outcome, Interrupted) else [],
    )
    if isinstance(outcome, Interrupted) and outcome.awaited:
        shown["waiting"] = tuple(map(as_waiting, outcome.awaited))
    return shown


def step_start(task_run: TaskRun, step_id: str, callee: str, given: Any) -> TaskPayload:
    """Return what is said of a step that is called: its input is (positional, keyword) arguments."""
    payload = TaskPayload(id=step_id, name=callee, input=given, triggers=("__pregel_push",))
    if metadata := _metadata(task_run):
        payload["metadata"] = metadata
    return payload


def step_result(step_id: str, callee: str, error: str | None, result: Any) -> TaskResultPayload:
    """Return what became of a step."""
    return TaskResultPayload(id=step_id, name=callee, error=error, result=result, interrupts=[])


def _result(writes: Sequence[Write]) -> Any:
    returned = {key: value for key, value in writes if key == END}  # of a workflow: None is a value it may return
    return returned or result_of(writes)


def told(interrupt: Interrupt) -> dict[str, Any]:
    """Return a question as plain data."""
    return {"value": interrupt.value, "id": interrupt.id}


def update_of(outcome: Succeeded, keys: Keys) -> Any:
    """Return a task's update as the mode `updates` shows it."""
    writes = _chosen(outcome.writes, keys)
    names = [key for key, _ in writes]
    if len(names) == len(set(names)):
        return summary(writes)
    if names[0] == ROOT:  # the only channel of a state without keys
        return [value for _, value in writes]
    parts: list[dict[str, Any]] = []
    for key, value in writes:  # a node that wrote a channel twice shows one mapping per round of writes
        if not parts or key in parts[-1]:
            parts.append({})
        parts[-1][key] = value
    return parts


def shown_writes(writes: Sequence[Write]) -> Sequence[Write]:
    """Return the writes a consumer is shown: of a workflow what it returned, not what it saves."""
    return writes[:1] if writes and writes[0][0] == END else writes


def _chosen(writes: Sequence[Write], keys: Keys) -> Sequence[Write]:
    if keys is None:
        return shown_writes(writes)
    wanted = {keys} if isinstance(keys, str) else set(keys)
    return tuple(write for write in writes if write[0] in wanted)


# -- checkpoints ------------------------------------------------------------------------------------------------------


def config_of(identity: Identity) -> dict[str, Any]:
    """Return the config that addresses a base's checkpoint."""
    return {
        "configurable": {
            "thread_id": identity.thread_id,
            "checkpoint_ns": identity.namespace,
            "checkpoint_id": identity.checkpoint_id,
        }
    }


def fresh_checkpoint(run: Run, base: Base, parent: Mapping[str, Any] | None, source: str = "loop") -> CheckpointPayload:
    """Return a checkpoint that was just made: nothing has run on it."""
    return CheckpointPayload(
        config=config_of(base.identity),
        parent_config=parent,
        values=state_of(run.plan, base.state.values),
        metadata={**run.config.metadata, "source": source, "step": base.state.step, "parents": {}},
        next=[task.node for task in base.tasks],
        tasks=[CheckpointTask(id=task.id, name=task.node, interrupts=(), state=None) for task in base.tasks],
    )


def stored_checkpoint(snapshot: StateSnapshot) -> CheckpointPayload:
    """Return a checkpoint as the thread's history shows it, with what was recorded on it."""
    return CheckpointPayload(
        config=snapshot.config,
        parent_config=snapshot.parent_config,
        values=snapshot.values,
        metadata=snapshot.metadata or {},
        next=list(snapshot.next),
        tasks=[_stored_task(task) for task in snapshot.tasks],
    )


def _stored_task(task: PregelTask) -> CheckpointTask:
    shown = CheckpointTask(id=task.id, name=task.name, state=task.state)
    if task.error is not None:
        shown["error"] = task.error
        return shown
    if task.result and task.name != START:  # START's came with the input: it is no result of the run
        shown["result"] = task.result
    if task.waiting:
        shown["waiting"] = task.waiting
    shown["interrupts"] = tuple(told(question) for question in task.interrupts)
    return shown


def debug_event(kind: Literal["checkpoint", "task", "task_result"], step: int, payload: Any, seen: int) -> DebugPayload:
    """Return a checkpoint, a task or its result with its step and when it was seen (microseconds since the epoch)."""
    timestamp = datetime.fromtimestamp(seen / 1e6, UTC).isoformat()
    return DebugPayload(step=step, timestamp=timestamp, type=kind, payload=payload)
