"""What of a step's life a consumer and listeners are shown, from whatever thread it comes.

A call is announced when it is made, as LangGraph does, also where its result is on record already. What came of it is
told once it is durable, or as durable as the mode makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepwell.ids import structural_hash
from stepwell.runtime.stream import payloads

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.run import Run
    from stepwell.superstep.steps import Step

RETURN = "__return__"


def called(owner: TaskRun, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Say that a step is called."""
    if owner.run.stream is not None:
        payload = payloads.step_start(owner, _id(owner, step), step.callee, (args, kwargs))
        _show(owner.run, owner, "task", payload)


def begun(owner: TaskRun, step: Step) -> None:
    """Say that its code begins."""
    if owner.run.tell is not None:
        owner.run.tell.step_started(owner, step)


def finished(owner: TaskRun, step: Step, value: Any, reused: bool) -> None:
    """Show what a step returned; `reused` says that the cache had it."""
    run = owner.run
    if run.tell is not None:
        run.tell.step_settled(owner, step)
    if run.stream is not None:
        update = {step.callee: value}
        run.stream.show("updates", {**update, **payloads.CACHED} if reused else update)
        if not reused:
            result = payloads.step_result(_id(owner, step), step.callee, None, {RETURN: value})
            _show(run, owner, "task_result", result)


def failed(owner: TaskRun, step: Step) -> None:
    """Show that a step raised, and no retry is left."""
    run = owner.run
    if run.tell is not None:
        run.tell.step_settled(owner, step)
    if run.stream is not None:
        _show(run, owner, "task_result", payloads.step_result(_id(owner, step), step.callee, step.error, {}))


def _id(owner: TaskRun, step: Step) -> str:
    return structural_hash("step", owner.task.id, step.call_id)


def _show(run: Run, owner: TaskRun, kind: Any, payload: Any) -> None:
    assert run.stream is not None
    run.stream.show("tasks", payload)
    run.stream.show("debug", payloads.debug_event(kind, owner.base.state.step + 1, payload, run.clock.now()))
