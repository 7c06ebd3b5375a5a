"""One task's way through user code: the node, then each router, each as often as its retry policy allows.

A `TaskRun` hands out the next `Call` and is told what came back; it answers with an outcome, or asks to be called
again. It awaits nothing and writes nothing: `execute` does both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from contextvars import Context
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple

from stepwell import points
from stepwell.errors import NodeCancelledError
from stepwell.graph import retry_rules
from stepwell.graph.policies import RetryPolicy, TimeoutPolicy
from stepwell.graph.types import MISSING
from stepwell.plan.tables import BranchPlan, Callee, NodePlan
from stepwell.runtime.caching import cached_callee
from stepwell.runtime.ctrl_c import lets_ctrl_c_in
from stepwell.runtime.deadlines import Deadline, cancellable
from stepwell.runtime.journal import journal_of
from stepwell.runtime.progress import load_langchain
from stepwell.runtime.raised import caused, is_cancelled_error, stops_of
from stepwell.runtime.requests import Raised
from stepwell.runtime.scope import Runtime, Scope
from stepwell.runtime.stream.messages import enter_config
from stepwell.runtime.surroundings import injected, runtime_of
from stepwell.superstep.begin import start_outcome
from stepwell.superstep.merge import branch_targets, view
from stepwell.superstep.outcome import (
    Failed,
    Outcome,
    Returned,
    Route,
    Succeeded,
    paused,
    returned,
    text_of,
)
from stepwell.superstep.state import Base, new, position_id
from stepwell.superstep.steps import Step
from stepwell.superstep.waiting import forget_late

if TYPE_CHECKING:
    from stepwell.items import TaskItems
    from stepwell.runtime.run import Run
    from stepwell.superstep.items import ItemWrite

_NOTHING: dict[str, Any] = {}


class Again(NamedTuple):
    """Not done: call again, not before `delay` seconds have passed. `error` is what a failed attempt raised."""

    delay: float
    error: BaseException | None


NEXT = Again(0.0, None)
"""The node has returned, and a router is next."""


class Call(Scope):
    """One call of user code, ready to run on whatever thread or loop the driver chooses, and its surroundings there."""

    owner: TaskRun

    def __init__(
        self, owner: TaskRun, prefix: str, callee: Callee, arg: Any, kwargs: dict[str, Any], deadline: Deadline | None
    ) -> None:
        self.owner = owner
        self.prefix = prefix
        self.callee = callee
        self.arg = arg
        self.kwargs = kwargs
        self.deadline = deadline

    @property
    def is_async(self) -> bool:  # type: ignore[override]
        return self.callee.is_async

    def context(self) -> Context:
        """Return a context of its own for this call: the caller's variables as they were when the run began."""
        context = self.owner.run.context_vars.copy()
        if self.owner.run.ambient or (self.deadline is not None and self.deadline.hears is not None):
            enter_config(context, self.owner.config(self.hears))
        return context

    @property
    def is_over(self) -> bool:
        return self.over or self.owner.dropped or self.owner.call is not self

    def run(self) -> Any:
        """Call a sync callee on this thread, in its own context, and wait for the steps it has started."""
        try:
            value = self.context().run(self._enter)
        except BaseException as error:
            if self.children is not None:
                self.children.wait(error)
            raise
        if self.children is not None:
            self.children.wait(None)
        return value

    @lets_ctrl_c_in
    def _enter(self) -> Any:
        self.enter()
        if self.kwargs:
            return self.callee.call(self.arg, **self.kwargs)
        return self.callee.call(self.arg)

    def begin(self) -> Coroutine[Any, Any, Any]:
        """Return the coroutine of an async callee. The caller calls this, and drives it, inside `context()`."""
        self.enter()
        made = self.callee.call(self.arg, **self.kwargs)
        return made if type(made) is CoroutineType else _awaiting(made)


async def _awaiting(made: Awaitable[Any]) -> Any:
    return await made


class TaskRun:
    """A task of the running superstep, from its first call to its outcome."""

    attempt = 1
    first_at = 0
    """When the first attempt began, in microseconds of wall time; 0 before."""
    kept: Returned | None = None
    """What the node returned, once it has."""
    branch = 0
    """The router that is next."""
    routes: tuple[Route, ...] = ()
    """What the routers before it said."""
    call: Call | None = None
    """The call that is out. It knows its task, so it is let go as soon as it is back: no cycle is left to collect."""
    reused = False
    """Whether what the node returned came from the cache."""
    wrote: tuple[ItemWrite, ...] = ()
    """What the routers before it wrote to the item store."""
    dropped = False
    """Whether the run has ended without waiting for this task: no further code of it is to run."""

    def __init__(self, run: Run, base: Base, index: int) -> None:
        self.run = run
        self.base = base
        self.index = index
        self.task = task = base.tasks[index]
        node = run.plan.nodes.get(task.node) or run.plan.node_of(task.node)
        assert node is not None  # admission checked it
        self.node: NodePlan = node
        if base.attempts:
            failed, self.first_at, _ = base.attempts.get(task.id, (0, 0, 0))
            self.attempt += failed
        outcome = base.outcomes[index]
        if outcome is not None and not isinstance(outcome, Succeeded):
            self.kept = outcome.kept
        if self.kept is None and self.node is run.plan.start:
            self.kept = start_outcome(run.plan, task.arg, self.task_id)

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

    @property
    def timeout(self) -> TimeoutPolicy | None:
        """What limits one attempt of the node."""
        return self.task.timeout if self.task.timeout is not None else self.node.timeout

    def success(self) -> Succeeded:
        """Return the outcome of a task that is routed."""
        assert self.kept is not None
        writes, routes, items = self.kept
        return new(Succeeded, (writes, (*routes, *self.routes) if self.routes else routes, items + self.wrote))

    # -- the next call -----------------------------------------------------------------------------------------------

    def next(self) -> Call | Outcome | Again:
        """Return the next call, or what became of the task where there is none or its input cannot be built."""
        if self.kept is not None and self.branch >= len(self.node.branches):
            return self.success()
        try:
            return self._next()
        except Exception as error:
            return self.fail(error)

    def _next(self) -> Call:
        if self.first_at == 0:
            self.first_at = self.run.clock.now()
        deadline = None
        if self.kept is None:
            callee, arg, prefix = self.node.callee, self._input(), "node"
            if (timeout := self.timeout) is not None:
                if timeout.idle_timeout is not None:
                    callee = cancellable(self.node.name, callee)
                    load_langchain()
                deadline = Deadline(timeout, self.run.clock.monotonic, self.run.hears)
        else:
            branch = self.node.branches[self.branch]
            callee, arg = branch.callee, self._routed(branch, self.kept)
            prefix = f"branch:{branch.name}"
        self.call = call = Call(self, prefix, callee, arg, _NOTHING, deadline)
        if self.run.items is not None:
            call.items = self.run.items.view(call)
        if callee.inject:
            hears = self.run.hears if deadline is None else deadline.hears
            call.kwargs = injected(self, callee, hears, call.items)
        if self.run.cache is not None and self.node.cache is not None and self.kept is None:
            call.callee = cached_callee(self, callee, arg)
        return call

    def reuse(self) -> None:
        """Note that the node was not called: the cache had what it would return."""
        self.reused = True

    def perform(self, call: Call) -> Call | Outcome | Again:
        """Run a sync call on this thread, and the sync routers after it; return what comes of the task, or comes next.

        What ends the run (`fail`) is raised.
        """
        while True:
            try:
                value = call.run()
            except BaseException as error:
                verdict = self.fail(error)
            else:
                verdict = self.succeed(value)
            if type(verdict) is not Again or verdict.error is not None or self.dropped:
                return verdict
            following = self.next()
            if not isinstance(following, Call) or following.callee.is_async:
                return following
            points.reach(points.TASK_STARTED)
            call = following

    def _input(self) -> Any:
        if self.task.arg is not MISSING:
            return self.task.arg
        managed = self._managed() if self.run.plan.managed else None
        return self.node.reads.build(self.base.state.values, managed)

    def _managed(self) -> Mapping[str, Any]:
        remaining = self.run.rules.remaining(self.base.state.step + 1)
        computed = {"remaining_steps": remaining, "is_last_step": remaining <= 1}
        return {key: computed[kind] for key, kind in self.run.plan.managed.items()}

    def _routed(self, branch: BranchPlan, kept: Returned) -> Any:
        managed = self._managed() if self.run.plan.managed else None
        return branch.reads.build(view(self.run.plan, self.base.state, kept.writes), managed)

    # -- what its scope asks for (Owner) -----------------------------------------------------------------------------

    def task_id(self) -> str:
        return self.task.id

    def answers(self) -> Mapping[str, Any]:
        return self.base.answers.get(self.task.id, _NOTHING)

    def steps(self) -> Mapping[str, Step]:
        return self.base.steps.get(self.task.id) or _NOTHING

    def digest(self, value: Any) -> str:
        return self.run.digest(value)

    def now(self) -> int:
        return self.run.clock.now()

    def is_durable(self) -> bool:
        return self.run.store is not None

    def place_of(self, call_id: str) -> tuple[str, int, str]:
        return self.base.identity.thread_id, self.base.lineage, position_id(self.task, call_id)

    def node_name(self) -> str:
        return self.task.node

    def driving(self) -> frozenset[tuple[int, str | None]]:
        return self.run.driving | {self.run.thread}

    def heard_by(self) -> Deadline | None:
        return self.run.hears

    def config(self, hears: Deadline | None) -> Mapping[str, Any]:
        return self.run.node_config(self, hears)

    def runtime(self, hears: Deadline | None, items: TaskItems | None) -> Runtime[Any]:
        return runtime_of(self, hears, items)

    # -- what came back ----------------------------------------------------------------------------------------------

    def take(self, result: Any) -> Outcome | Again:
        """Take what came back of the call: its value, or `Raised`."""
        return self.fail(result.error) if type(result) is Raised else self.succeed(result)

    def succeed(self, value: Any) -> Outcome | Again:
        """Take what the call returned."""
        call, self.call = self.call, None
        assert call is not None
        if call.journalled and (broken := journal_of(self.run).barrier(call)) is not None:
            return self._failed(broken)
        wrote = () if call.items is None else call.items.taken()
        if call.questions:
            return paused(call.asked(), self.kept)
        try:
            self._keep(value, wrote)
        except Exception as error:
            return self._failed(error)
        return NEXT if self.branch < len(self.node.branches) else self.success()

    def _keep(self, value: Any, wrote: tuple[ItemWrite, ...]) -> None:
        node = self.node
        if self.kept is None:
            kept = returned(self.run.plan, node, value, self.task_id)
            self.kept = kept._replace(items=wrote) if wrote else kept
        else:
            branch = node.branches[self.branch]
            self.routes = (*self.routes, *branch_targets(self.run.plan, node.name, branch.path_map, value))
            self.wrote += wrote
            self.branch += 1

    def fail(self, error: BaseException) -> Outcome | Again:
        """Take what the call raised. An exception that is no `Exception` and no pause is not taken: it ends the run."""
        call, self.call = self.call, None
        if call is not None and call.journalled and (broken := journal_of(self.run).barrier(call)) is not None:
            return self._failed(broken)
        if stops := stops_of(call.asked() if call is not None else (), error):
            return paused(stops, self.kept)
        if is_cancelled_error(error):
            error = caused(NodeCancelledError(node=self.task.node), error)
        if not isinstance(error, Exception):
            raise error
        return self._failed(error)

    def _failed(self, error: Exception) -> Failed | Again:
        if self.base.steps:
            self.base.forget_failures(self.task.id)
        forget_late(self.base, self.task.id)
        policy = next((policy for policy in self.node.retry if policy.matches(error)), None)
        if policy is None or self.attempt >= policy.max_attempts:
            return Failed(text_of(error), error, self.kept)
        wait = self._delay(policy, error)
        self.attempt += 1
        return Again(wait, error)

    def _delay(self, policy: RetryPolicy, error: Exception) -> float:
        now = self.run.clock.now() / 1e6
        return retry_rules.delay(policy, self.attempt, error, now, self.run.jitter())
