"""What user code is handed beside its input: config, runtime, writers, the item store, what the last run saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepwell.errors import InvalidConfigError
from stepwell.graph.types import PREVIOUS
from stepwell.plan.tables import Callee
from stepwell.runtime.progress import heard
from stepwell.runtime.scope import ExecutionInfo, MessageWriter, Runtime, StreamWriter, ignore, server_of, unheard

if TYPE_CHECKING:
    from stepwell.items import TaskItems
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.deadlines import Deadline


def injected(task_run: TaskRun, callee: Callee, hears: Deadline | None, items: TaskItems | None) -> dict[str, Any]:
    """Return what a function asks for by name. InvalidConfigError where there is none of what it must have."""
    run = task_run.run
    available = {"store": items or run.item_store, "previous": _previous(task_run)}
    kwargs: dict[str, Any] = {}
    for name in callee.inject:
        if name == "config":
            kwargs[name] = task_run.config(hears)
        elif name == "runtime":
            kwargs[name] = runtime_of(task_run, hears, items)
        elif name == "writer":
            kwargs[name] = _writer(task_run, hears)
        elif available.get(name) is not None or name not in callee.required or run.plan.is_workflow:
            kwargs[name] = available.get(name)
        else:
            node = task_run.task.node
            text = f"Missing required config key {name!r} for {node!r}: compile the graph with {name}=..."
            raise InvalidConfigError(text, key=name, node=node)
    return kwargs


def runtime_of(task_run: TaskRun, hears: Deadline | None, items: TaskItems | None) -> Runtime[Any]:
    """Return what a node gets as `runtime`."""
    run = task_run.run
    info = ExecutionInfo(
        checkpoint_id=task_run.base.checkpoint_id,
        checkpoint_ns=task_run.base.identity.namespace,
        task_id=task_run.task.id,
        thread_id=run.config.thread_id,
        run_id=run.run_id,
        node_attempt=task_run.attempt,
        node_first_attempt_time=task_run.first_at / 1e6,
    )
    server = server_of(run.config.given.get("configurable") or {})
    beat = unheard if hears is None else hears.heartbeat
    writer, messages = _writer(task_run, hears), _message_writer(task_run, hears)
    store = items or run.item_store
    return Runtime(run.context, store, writer, beat, _previous(task_run), info, messages, server, task_run)


def _previous(task_run: TaskRun) -> Any:
    """Return what the thread's last run of a workflow saved."""
    return task_run.base.state.values.get(PREVIOUS)


def _writer(task_run: TaskRun, hears: Deadline | None) -> StreamWriter:
    stream = task_run.run.stream
    writer = ignore if stream is None else stream.writer(task_run)
    return writer if hears is None else heard(hears, writer)


def _message_writer(task_run: TaskRun, hears: Deadline | None) -> MessageWriter:
    stream = task_run.run.stream
    writer = ignore if stream is None else stream.message_writer(task_run)
    return writer if hears is None else heard(hears, writer)
