"""Async user code under either driver: driven inside its own context variables, on the caller's loop or the
background one."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Any

from stepwell.runtime.ports import background_loop, done
from stepwell.runtime.requests import Done, Raised

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call


@types.coroutine
def in_context(call: Call, suspended: Callable[[], None] | None = None) -> Generator[Any, Any, Any]:
    """Drive an async call inside its own context, within the asyncio task that awaits this.

    A call that never waits costs no turn of the loop. `suspended` is told the first time it does wait.
    """
    coroutine = call.coroutine()
    context: Context = call.context
    run = context.run
    step, value = coroutine.send, None
    try:
        while True:
            waiting = run(step, value)
            if suspended is not None:
                suspended()
                suspended = None
            try:
                value = yield waiting
                step = coroutine.send
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:
                step, value = coroutine.throw, error
    except StopIteration as done:
        return done.value


async def _perform(call: Call) -> Any:
    try:
        return await in_context(call)
    except BaseException as error:
        return Raised(error)


def run_on_background_loop(call: Call) -> Any:
    """Run an async call on the process's own loop and wait for it; return its value or `Raised`."""
    import asyncio

    future = asyncio.run_coroutine_threadsafe(_perform(call), background_loop.get())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def start_on_background_loop(call: Call, post: Callable[[Done], None]) -> Callable[[], Any]:
    """Start an async call on the process's own loop; return what cancels it."""
    import asyncio

    async def work() -> None:
        post(done(call, await _perform(call)))

    return asyncio.run_coroutine_threadsafe(work(), background_loop.get()).cancel
