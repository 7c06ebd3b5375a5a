"""One task's way through user code: the node, then each router, each as often as its retry policy allows.

A `TaskRun` hands out the next `Call` and is told what came back; it answers with an outcome, or asks to be called
again. It awaits nothing and writes nothing: `execute` does both.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, NamedTuple

from stepwell.errors import GraphInterrupt, InvalidConfigError, NodeCancelledError
from stepwell.graph import retry_rules
from stepwell.graph.policies import RetryPolicy
from stepwell.graph.types import MISSING
from stepwell.plan.tables import BranchPlan, Callee, NodePlan
from stepwell.runtime.scope import ExecutionInfo, MessageWriter, Runtime, Scope, StreamWriter, ignore, server_of
from stepwell.runtime.stream_messages import enter_config
from stepwell.superstep.begin import start_outcome
from stepwell.superstep.merge import branch_targets, view
from stepwell.superstep.outcome import (
    Failed,
    Interrupted,
    Outcome,
    Question,
    Returned,
    Route,
    Succeeded,
    returned,
    text_of,
)
from stepwell.superstep.state import Base

if TYPE_CHECKING:
    from stepwell.runtime.run import Run

_NO_ANSWERS: Mapping[str, Any] = {}


class Again(NamedTuple):
    """Not done: call again, not before `delay` seconds have passed. `error` is what a failed attempt raised."""

    delay: float
    error: BaseException | None


class Call:
    """One call of user code, ready to run on whatever thread or loop the driver chooses."""

    __slots__ = ("arg", "callee", "context", "kwargs", "owner", "scope", "timeout")

    def __init__(
        self,
        owner: TaskRun,
        callee: Callee,
        arg: Any,
        kwargs: dict[str, Any],
        scope: Scope,
        context: Context,
        timeout: float | None,
    ) -> None:
        self.owner = owner
        self.callee = callee
        self.arg = arg
        self.kwargs = kwargs
        self.scope = scope
        self.context = context
        self.timeout = timeout

    @property
    def is_async(self) -> bool:
        return self.callee.is_async

    def run(self) -> Any:
        """Call a sync callee on this thread, in its own context."""
        return self.context.run(self._enter)

    def _enter(self) -> Any:
        self.scope.enter()
        if self.kwargs:
            return self.callee.call(self.arg, **self.kwargs)
        return self.callee.call(self.arg)

    async def coroutine(self) -> Any:
        """Await an async callee. The caller drives this inside `self.context`."""
        self.scope.enter()
        return await self.callee.call(self.arg, **self.kwargs)


class TaskRun:
    """A task of the running superstep, from its first call to its outcome."""

    __slots__ = ("attempt", "base", "branch", "first_at", "index", "kept", "node", "routes", "run", "scope", "task")

    def __init__(self, run: Run, base: Base, index: int) -> None:
        self.run = run
        self.base = base
        self.index = index
        self.task = base.tasks[index]
        node = run.plan.nodes.get(self.task.node) or run.plan.node_of(self.task.node)
        assert node is not None  # admission checked it
        self.node: NodePlan = node
        failed, first_at, _ = base.attempts.get(self.task.id, (0, 0, 0)) if base.attempts else (0, 0, 0)
        self.attempt = failed + 1
        self.first_at = first_at
        outcome = base.outcomes[index]
        self.kept: Returned | None = None if outcome is None or isinstance(outcome, Succeeded) else outcome.kept
        if self.kept is None and self.node is run.plan.start:
            self.kept = start_outcome(run.plan, self.task.arg, self.task_id)
        self.branch = 0
        self.routes: list[Route] = []
        self.scope: Scope | None = None

    @property
    def routed(self) -> bool:
        """Whether the node has returned and no router is left to ask: START may begin so."""
        return self.kept is not None and self.branch >= len(self.node.branches)

    @property
    def is_async(self) -> bool:
        """Whether what is called next is async."""
        if self.kept is None:
            return self.node.callee.is_async
        return not self.routed and self.node.branches[self.branch].callee.is_async

    def success(self) -> Succeeded:
        """Return the outcome of a task that is routed."""
        assert self.kept is not None
        routes = (*self.kept.routes, *self.routes) if self.routes else self.kept.routes
        return Succeeded(self.kept.writes, routes)

    # -- the next call -----------------------------------------------------------------------------------------------

    def call(self) -> Call:
        """Return the next call of this task's user code."""
        if self.first_at == 0:
            self.first_at = self.run.clock.now()
        if self.kept is None:
            timeout = self.task.timeout if self.task.timeout is not None else self.node.timeout
            return self._call(self.node.callee, self._input(), "node", timeout)
        branch = self.node.branches[self.branch]
        return self._call(branch.callee, self._routed(branch), f"branch:{branch.name}", None)

    def _call(self, callee: Callee, arg: Any, prefix: str, timeout: float | None) -> Call:
        answers = self.base.answers.get(self.task.id, _NO_ANSWERS) if self.base.answers else _NO_ANSWERS
        self.scope = scope = Scope(self, prefix, answers)
        kwargs = self._injected(callee) if callee.inject else {}
        context = self.run.context_vars.copy()
        if self.run.ambient:
            enter_config(context, self.config())
        return Call(self, callee, arg, kwargs, scope, context, timeout)

    def _input(self) -> Any:
        task = self.task
        if task.arg is not MISSING:
            return task.arg
        return self.node.reads.build(self.base.state.values, self._managed())

    def _managed(self) -> Mapping[str, Any] | None:
        if not self.run.plan.managed:
            return None
        remaining = self.run.rules.remaining(self.base.state.step + 1)
        computed = {"remaining_steps": remaining, "is_last_step": remaining == 1}
        return {key: computed[kind] for key, kind in self.run.plan.managed.items()}

    def _routed(self, branch: BranchPlan) -> Any:
        assert self.kept is not None
        return branch.reads.build(view(self.run.plan, self.base.state, self.kept.writes), self._managed())

    def _injected(self, callee: Callee) -> dict[str, Any]:
        available = {"store": self.run.item_store}
        kwargs: dict[str, Any] = {}
        for name in callee.inject:
            if name == "config":
                kwargs[name] = self.config()
            elif name == "runtime":
                kwargs[name] = self.runtime()
            elif name == "writer":
                kwargs[name] = self._writer()
            elif available.get(name) is not None or name not in callee.required:
                kwargs[name] = available.get(name)
            else:
                text = f"Missing required config key {name!r} for {self.task.node!r}: compile the graph with {name}=..."
                raise InvalidConfigError(text, key=name, node=self.task.node)
        return kwargs

    # -- what its scope asks for (Owner) -----------------------------------------------------------------------------

    def task_id(self) -> str:
        return self.task.id

    def digest(self, value: Any) -> str:
        return self.run.digest(value)

    def node_name(self) -> str:
        return self.task.node

    def driving(self) -> frozenset[tuple[int, str | None]]:
        return self.run.driving | {self.run.thread}

    def config(self) -> Mapping[str, Any]:
        return self.run.node_config(self)

    def runtime(self) -> Runtime[Any]:
        run = self.run
        info = ExecutionInfo(
            checkpoint_id=self.base.checkpoint_id,
            checkpoint_ns=self.base.identity.namespace,
            task_id=self.task.id,
            thread_id=run.config.thread_id,
            run_id=run.run_id,
            node_attempt=self.attempt,
            node_first_attempt_time=self.first_at / 1e6,
        )
        server = server_of(run.config.given.get("configurable") or {})
        return Runtime(run.context, run.item_store, self._writer(), None, info, self._message_writer(), server)

    def _writer(self) -> StreamWriter:
        stream = self.run.stream
        return ignore if stream is None else stream.writer(self)

    def _message_writer(self) -> MessageWriter:
        stream = self.run.stream
        return ignore if stream is None else stream.message_writer(self)

    # -- what came back ----------------------------------------------------------------------------------------------

    def succeed(self, value: Any) -> Outcome | Again:
        """Take what the call returned."""
        asked = self._close()
        if asked:
            return Interrupted(asked, self.kept)
        try:
            return self._advance(value)
        except Exception as error:
            return self._failed(error)

    def _advance(self, value: Any) -> Outcome | Again:
        plan, task = self.run.plan, self.task
        if self.kept is None:
            self.kept = returned(plan, self.node, value, self.task_id)
        else:
            branch = self.node.branches[self.branch]
            self.routes += branch_targets(task.node, branch.path_map, value, plan.nodes)
            self.branch += 1
        return self.success() if self.routed else Again(0.0, None)

    def fail(self, error: BaseException) -> Outcome | Again:
        """Take what the call raised. An exception that is no `Exception` and no pause is not taken: it ends the run."""
        asked = self._close()
        asked += tuple(q for q in _pauses(error) if q.interrupt_id not in {known.interrupt_id for known in asked})
        if asked:
            return Interrupted(asked, self.kept)
        if is_cancelled_error(error):
            error = _caused(NodeCancelledError(node=self.task.node), error)
        if not isinstance(error, Exception):
            raise error
        return self._failed(error)

    def _failed(self, error: Exception) -> Failed | Again:
        policy = next((policy for policy in self.node.retry if policy.matches(error)), None)
        if policy is None or self.attempt >= policy.max_attempts:
            return Failed(text_of(error), error, self.kept)
        wait = self._delay(policy, error)
        self.attempt += 1
        return Again(wait, error)

    def _delay(self, policy: RetryPolicy, error: Exception) -> float:
        now = self.run.clock.now() / 1e6
        return retry_rules.delay(policy, self.attempt, error, now, self.run.jitter())

    def _close(self) -> tuple[Question, ...]:
        return self.scope.close() if self.scope is not None else ()


def is_cancelled_error(error: BaseException) -> bool:
    """Tell whether this is asyncio's CancelledError, without loading asyncio for runs that never use it."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def _pauses(error: BaseException) -> tuple[Question, ...]:
    """Return the questions of pauses raised by hand, also inside exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return tuple(question for inner in error.exceptions for question in _pauses(inner))
    if isinstance(error, GraphInterrupt):
        return tuple(Question(i.id, f"raised/{i.id}", i.value) for i in error.interrupts if hasattr(i, "id"))
    return ()
