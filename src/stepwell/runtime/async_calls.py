"""Async user code under either driver: driven inside its own context variables, on the caller's loop or the
background one."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from stepwell.runtime.ports import background_loop, done
from stepwell.runtime.requests import Done, Raised, Started

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call


def start(call: Call) -> Any:
    """Run an async call up to where it first waits: return its value, `Raised`, or `Started` where it does wait."""
    context = call.context()
    run = context.run
    try:
        coroutine = run(call.begin)
    except BaseException as error:
        return Raised(error)
    try:
        return Started(coroutine, run(coroutine.send, None), context)
    except StopIteration as done:
        return done.value
    except BaseException as error:
        return Raised(error)


@types.coroutine
def follow(started: Started) -> Generator[Any, Any, Any]:
    """Drive a started call to its end inside its own context, within the asyncio task that awaits this."""
    coroutine, waiting, context = started
    run = context.run
    try:
        while True:
            step, value = coroutine.send, None
            try:
                value = yield waiting
            except GeneratorExit:
                run(coroutine.close)
                raise
            except BaseException as error:
                step, value = coroutine.throw, error
            waiting = run(step, value)
    except StopIteration as done:
        return done.value


async def perform_async(call: Call) -> Any:
    """Run an async call to its end; return its value or `Raised`."""
    result = start(call)
    if type(result) is not Started:
        return result
    try:
        return await follow(result)
    except BaseException as error:
        return Raised(error)


def run_on_background_loop(call: Call) -> Any:
    """Run an async call on the process's own loop and wait for it; return its value or `Raised`."""
    import asyncio

    future = asyncio.run_coroutine_threadsafe(perform_async(call), background_loop.get())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def start_on_background_loop(call: Call, post: Callable[[Done], None]) -> Callable[[], Any]:
    """Start an async call on the process's own loop; return what cancels it."""
    import asyncio

    async def work() -> None:
        post(done(call, await perform_async(call)))

    return asyncio.run_coroutine_threadsafe(work(), background_loop.get()).cancel
