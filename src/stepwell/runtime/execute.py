"""Runs the tasks of one superstep to their outcomes: limits, timeouts, retries. Written once for both drivers.

A lone task is performed in place. Several are launched and come back as mail; each batch of successes is recorded as it
arrives while siblings still run. A failed task stops nobody: its siblings finish and keep their results.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Any

from stepwell import points
from stepwell.errors import NodeTimeoutError
from stepwell.runtime.calls import NEXT, Again, Call, TaskRun
from stepwell.runtime.deadlines import NO_LIMIT, Deadline
from stepwell.runtime.ports import SYNC_CALLS
from stepwell.runtime.reporting import report_retry
from stepwell.runtime.requests import Mail, Perform, Raised, Sleep
from stepwell.runtime.run import Run
from stepwell.superstep.outcome import Failed, Outcome, Succeeded, text_of
from stepwell.superstep.state import Base


def execute(run: Run, base: Base, indexes: Sequence[int]) -> Awaitable[None] | None:
    """Fill in the outcomes of these tasks; return what is left to await for that, or None where all are there.

    Raises, here or awaited, only what ends the run: a cancellation, a lost lease.
    """
    if not indexes:
        return None
    if run.tell is not None:
        run.tell.superstep(base, indexes)
    if len(indexes) > 1 or run.live:
        return Flight(run, base, indexes).fly()
    task_run = TaskRun(run, base, indexes[0])
    if base.attempts:
        return _after_wait(run, base, task_run)
    verdict = task_run.next()
    if type(verdict) is Call:
        if verdict.deadline is not None:
            return Flight(run, base, indexes).fly()
        announce(run, task_run, verdict)
        verdict = run.port.perform(verdict)
    if type(verdict) is Succeeded:
        settle(run, base, task_run, verdict)
        return None
    return _alone(run, base, task_run, verdict)


async def _alone(run: Run, base: Base, task_run: TaskRun, verdict: Any) -> None:
    """Bring a lone task to its outcome, through what has to be awaited on the way: calls, and the next attempt."""
    while True:
        if isinstance(verdict, Perform):
            verdict = await verdict
        elif isinstance(verdict, Call):
            if verdict.deadline is not None:
                return await Flight(run, base, [task_run.index]).fly()
            announce(run, task_run, verdict)
            verdict = run.port.perform(verdict)
        elif isinstance(verdict, Again):
            if verdict.error is not None:
                await _note_attempt(run, base, task_run, verdict)
                await Sleep(verdict.delay)
            verdict = task_run.next()
        else:
            return settle(run, base, task_run, verdict)


async def _after_wait(run: Run, base: Base, task_run: TaskRun) -> None:
    """A retry that a crashed process had scheduled keeps its time."""
    if (known := base.attempts.get(task_run.task.id)) is not None:
        ahead = (known[2] - run.clock.now()) / 1e6
        if ahead > 0:
            await Sleep(ahead)
    await _alone(run, base, task_run, NEXT)


def announce(run: Run, task_run: TaskRun, call: Call) -> None:
    points.reach(points.TASK_STARTED)
    if run.stream is not None and task_run.kept is None:
        run.stream.task_started(task_run, call.arg)
    if run.tell is not None:
        run.tell.task_started(task_run)


def settle(run: Run, base: Base, task_run: TaskRun, outcome: Outcome) -> None:
    """Note an outcome: it counts from here on, and is published when it is durable."""
    points.reach(points.TASK_FINISHED)
    base.outcomes[task_run.index] = outcome
    run.ledger.unrecorded.append(task_run.index)
    if base.fresh:
        base.fresh -= {task_run.task.id}
    if run.stream is not None:
        run.stream.task_settled(task_run)
    if run.tell is not None:
        run.tell.task_settled(task_run, outcome)


async def _note_attempt(run: Run, base: Base, task_run: TaskRun, again: Again) -> None:
    assert again.error is not None
    next_at = run.clock.now() + int(again.delay * 1e6)
    report_retry(run, task_run, again.error, next_at)
    await run.ledger.attempt(base, task_run.index, again.error, task_run.attempt - 1, task_run.first_at, next_at)
    if run.tell is not None:
        run.tell.publish()


class Flight:
    """The tasks of a superstep on their way: ready, in the air, or waiting for their next attempt."""

    def __init__(self, run: Run, base: Base, indexes: Sequence[int]) -> None:
        self.run = run
        self.base = base
        self._ready: deque[TaskRun] = deque()
        self._ready_sync: deque[TaskRun] = deque()
        self._later: list[tuple[float, int, TaskRun]] = []
        self._flying: dict[Call, Deadline | None] = {}
        self._deadlines = 0
        self._sync_flying = 0
        self._limit = run.config.max_concurrency
        now = run.clock.monotonic()
        limit = run.request.step_timeout
        self._until = None if limit is None else now + limit
        """When the superstep's time is over (monotonic seconds)."""
        for index in indexes:
            task_run = TaskRun(run, base, index)
            ahead = self._ahead(task_run)
            if ahead > 0:
                heapq.heappush(self._later, (now + ahead, index, task_run))
            else:
                self._queue(task_run)

    def _ahead(self, task_run: TaskRun) -> float:
        known = self.base.attempts.get(task_run.task.id) if self.base.attempts else None
        return (known[2] - self.run.clock.now()) / 1e6 if known is not None else 0.0

    def _queue(self, task_run: TaskRun) -> None:
        (self._ready if task_run.is_async else self._ready_sync).append(task_run)

    async def fly(self) -> None:
        """Run until every task has an outcome."""
        try:
            while True:
                await self._launch()
                if not (self._flying or self._later):
                    return
                await self._land(await Mail(self._patience()))
        except BaseException:
            await self._abort()
            raise

    # -- up ----------------------------------------------------------------------------------------------------------

    async def _launch(self) -> None:
        now = self.run.clock.monotonic() if self._later else 0.0
        while self._later and self._later[0][0] <= now:
            self._queue(heapq.heappop(self._later)[2])
        for queue in (self._ready, self._ready_sync):
            while queue and self._room(sync=queue is self._ready_sync):
                await self._start(queue.popleft())

    def _room(self, sync: bool) -> bool:
        if self._limit is not None:
            return len(self._flying) < self._limit
        return not sync or self._sync_flying < SYNC_CALLS

    async def _start(self, task_run: TaskRun) -> None:
        call = task_run.next()
        if not isinstance(call, Call):
            await self._take(task_run, call)
            return
        if self._until is not None:
            call.deadline = call.deadline or Deadline(NO_LIMIT, self.run.clock.monotonic, self.run.hears)
            call.deadline.cap(self._until)
        self._flying[call] = call.deadline
        self._deadlines += call.deadline is not None
        self._sync_flying += not call.is_async
        announce(self.run, task_run, call)
        if self.run.hears is not None:
            self.run.hears.progress()
        self.run.port.launch(call)

    def _patience(self) -> float | None:
        """Return how many seconds nothing needs to be done if no mail comes."""
        times = [deadline.at for deadline in self._flying.values() if deadline is not None] if self._deadlines else []
        if self._later:
            times.append(self._later[0][0])
            if self._until is not None:
                times.append(self._until)
        return max(0.0, min(times) - self.run.clock.monotonic()) if times else None

    # -- down --------------------------------------------------------------------------------------------------------

    async def _land(self, mail: Sequence[Any]) -> None:
        if mail and self.run.hears is not None:
            self.run.hears.progress()
        stop: BaseException | None = None
        for call, result, at in mail:
            if self._late(call, at) or not self._drop(call):
                continue
            try:
                verdict = call.owner.take(result)
            except BaseException as error:  # it ends the run; what else has come back counts all the same
                stop = stop or error
            else:
                await self._take(call.owner, verdict)
        if stop is not None:
            raise stop
        if self._deadlines or self._until is not None:
            await self._expire()
        if self._flying or self._later or self._ready or self._ready_sync:
            await self.run.ledger.outcomes(self.base)
            if self.run.stream is not None:
                self.run.stream.publish()
            if self.run.tell is not None:
                self.run.tell.publish()

    def _late(self, call: Call, at: float) -> bool:
        """Tell whether a call came back after its time: its mail may lie while the consumer of a stream is busy."""
        deadline = self._flying.get(call)
        return deadline is not None and at > deadline.at

    def _drop(self, call: Call) -> bool:
        """Take a call out of the air; False where it was abandoned before."""
        if call not in self._flying:
            return False
        if self._flying.pop(call) is not None:
            self._deadlines -= 1
        self._sync_flying -= not call.is_async
        return True

    async def _take(self, task_run: TaskRun, verdict: Outcome | Again) -> None:
        if not isinstance(verdict, Again):
            settle(self.run, self.base, task_run, verdict)
        elif verdict.error is None:
            self._queue(task_run)
        else:
            await _note_attempt(self.run, self.base, task_run, verdict)
            when = self.run.clock.monotonic() + verdict.delay
            heapq.heappush(self._later, (when, task_run.index, task_run))

    async def _expire(self) -> None:
        now = self.run.clock.monotonic()
        if self._until is not None and self._until <= now:
            self._run_out()
            return
        for call, deadline in list(self._flying.items()):
            if deadline is None or deadline.at > now:
                continue
            self._drop(call)
            self.run.port.abandon(call)
            await self._take(call.owner, call.owner.fail(deadline.error(call.owner.task.node)))

    def _run_out(self) -> None:
        """The superstep's time is over: fail every task that has no outcome, whatever its retry policy says."""
        limit = self.run.request.step_timeout
        waiting = [*self._ready, *self._ready_sync, *(task_run for _, _, task_run in self._later)]
        for queue in (self._ready, self._ready_sync, self._later):
            queue.clear()
        for call in [*self._flying]:
            self._drop(call)
            self.run.port.abandon(call)
            waiting.append(call.owner)
        for task_run in waiting:
            node = task_run.task.node
            text = f"Node {node!r} had not finished when the {limit:g}s of its superstep (step_timeout) were over."
            error = NodeTimeoutError(
                text, node=node, kind="run", timeout=limit, run_timeout=limit, idle_timeout=None, elapsed=limit
            )
            attempt, verdict = task_run.attempt, task_run.fail(error)
            if isinstance(verdict, Again):
                task_run.attempt, verdict = attempt, Failed(text_of(error), error, task_run.kept)
            settle(self.run, self.base, task_run, verdict)

    async def _abort(self) -> None:
        """The run ends: keep what has come back, give up on the rest."""
        for call, result, at in await Mail(0.0):
            if not self._late(call, at) and self._drop(call) and type(result) is not Raised:
                verdict = call.owner.succeed(result)
                if not isinstance(verdict, Again):
                    settle(self.run, self.base, call.owner, verdict)
        for call in self._flying:
            call.over = True
            self.run.port.abandon(call)
        self._flying.clear()
