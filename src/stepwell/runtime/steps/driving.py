"""Answers what a step asks for (`Body`, `Record`, `Blocking`, `Sleep`): on the thread or on the loop it was called on.

One coroutine says what a step does; the two drivers here are its only difference between sync and async.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from stepwell.runtime.journal import journal_of
from stepwell.runtime.ports import background_loop, pool
from stepwell.runtime.requests import Ask, Blocking, Body, Record, Sleep
from stepwell.runtime.scope import Scope
from stepwell.runtime.steps.children import call_and_wait
from stepwell.runtime.steps.threads import StepThreads
from stepwell.runtime.steps.turns import Turn, holding

if TYPE_CHECKING:
    from stepwell.runtime.deadlines import Deadline

Steps = Coroutine[Ask, Any, Any]


class StepFuture(Future[Any]):
    """What calling a sync step returns: its result, to come. `result()` or `await`.

    The first who waits for a step that no thread has begun runs it, on its own thread.
    """

    def __init__(self, steps: Steps, context: Context, turn: Turn | None) -> None:
        super().__init__()
        self._steps = steps
        self._context = context
        self._claim = threading.Lock()
        self._turn = turn
        if turn is not None:
            context.run(holding.set, turn)
            self.add_done_callback(lambda _: turn.leave())

    def begin(self) -> None:
        """Run the step on this thread, unless somebody has begun it."""
        if self._claim.acquire(blocking=False) and self.set_running_or_notify_cancel():
            try:
                value = self._context.run(drive, self._steps)
            except BaseException as error:
                self.set_exception(error)
            else:
                self.set_result(value)

    def is_begun(self) -> bool:
        """Tell whether somebody has begun it."""
        return self._claim.locked()

    def _help(self) -> None:
        """Run the step on this thread, which would only wait for it."""
        if not self.done() and (self._turn is None or self._turn.has):
            self.begin()

    def cancel(self) -> bool:
        """Give the step up if nobody has begun it."""
        if not self._claim.acquire(blocking=False):
            return self.cancelled()
        self._steps.close()
        super().cancel()
        return self.set_running_or_notify_cancel() is False

    def result(self, timeout: float | None = None) -> Any:
        """Return what the step returned, or raise what it raised; `timeout` in seconds."""
        if timeout is None:
            self._help()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the step raised, if it did; `timeout` in seconds."""
        if timeout is None:
            self._help()
        return super().exception(timeout)

    def __await__(self) -> Any:
        import asyncio

        return asyncio.wrap_future(self).__await__()


class Arriving(Future[Any]):
    """The result of a step that runs elsewhere, or is over. `result()` or `await`."""

    _inner: Future[Any] | None = None

    def follow(self, inner: Future[Any]) -> None:
        """Take over what comes of another future, and pass a cancellation on to it."""
        self._inner = inner
        inner.add_done_callback(self._take)

    def _take(self, inner: Future[Any]) -> None:
        if inner.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := inner.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(inner.result())

    def cancel(self) -> bool:
        """Give the step up, unless it is over."""
        return self._inner is not None and self._inner.cancel()

    def __await__(self) -> Any:
        import asyncio

        return asyncio.wrap_future(self).__await__()


def start_on_thread(steps: Steps, threads: StepThreads, turn: Turn | None) -> StepFuture:
    """Start a sync step beside the code that calls it."""
    future = StepFuture(steps, copy_context(), turn)
    if turn is None:
        threads.start(future)
    elif turn.take(begin := partial(pool.submit, future.begin)):
        begin()
    return future


def start_on_background_loop(steps: Steps, turn: Turn | None) -> Future[Any]:
    """Start an async step for a caller that has no loop: on the process's own."""
    import asyncio

    from stepwell.runtime.steps.async_driving import start_on_loop

    context = copy_context()

    async def work() -> Any:
        return await context.run(start_on_loop, steps, turn)

    future = Arriving()
    future.follow(asyncio.run_coroutine_threadsafe(work(), background_loop.get()))
    return future


def drive(steps: Steps) -> Any:
    """Run a step to its end on this thread."""
    answer: Any = None
    try:
        request = steps.send(None)
        while True:
            try:
                answer = _answer(request)
            except BaseException as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as done:
        return done.value


def _answer(request: Ask) -> Any:
    if isinstance(request, Body):
        return _run_body(request)
    if isinstance(request, Record):
        return journal_of(request.entry.call.owner.run).record(request.entry)
    if isinstance(request, Sleep):
        return time.sleep(request.seconds)
    assert isinstance(request, Blocking)
    return request.function()


def _run_body(body: Body) -> Any:
    if body.deadline is not None:
        return run_limited(body.scope, body.function, body.deadline)
    context = copy_context()
    return context.run(entered, body.scope, body.function)


def entered(scope: Scope, function: Callable[[], Any]) -> Any:
    """Call a function inside a scope, on the thread that is its home; the scope is over when it is, and its steps."""
    scope.enter()
    try:
        return call_and_wait(scope, function)
    finally:
        scope.over = True


def run_limited(scope: Scope, function: Callable[[], Any], deadline: Deadline) -> Any:
    """Call a function that has only so much time, on a thread of its own: out of time it is given up, and what it does
    from then on counts no more."""
    came: Future[Any] = Future()
    context = copy_context()

    def work() -> None:
        try:
            came.set_result(context.run(entered, scope, function))
        except BaseException as error:
            came.set_exception(error)

    threading.Thread(target=work, name="stepwell-step", daemon=True).start()
    while True:
        try:
            return came.result(max(0.0, deadline.left()))
        except TimeoutError:
            if came.done():
                return came.result()
            if deadline.left() <= 0:
                scope.over = True
                raise deadline.error(scope.name) from None
