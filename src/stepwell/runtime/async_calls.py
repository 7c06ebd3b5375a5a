"""Async user code under either driver: driven inside its own context variables, on the caller's loop or the
background one."""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from stepwell.runtime.ctrl_c import lets_ctrl_c_in
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
        return Started(coroutine, run(coroutine.send, None), context, call)
    except StopIteration as done:
        result = done.value
    except BaseException as error:
        result = Raised(error)
    if call.children is None:
        return result
    ending = call.children.ending(result)  # what it has started is not over yet
    try:
        return Started(ending, ending.send(None), context)
    except StopIteration as done:
        return done.value
    except BaseException as error:
        return Raised(error)


@types.coroutine
def follow(started: Started) -> Generator[Any, Any, Any]:
    """Drive a started call, and the steps it starts, to their end inside its own context, within the asyncio task that
    awaits this."""
    coroutine, waiting, context, call = started
    run = context.run
    try:
        while True:
            step, value = coroutine.send, None
            try:
                value = yield waiting
            except GeneratorExit:
                if call is not None and call.children is not None:
                    call.children.cancel()
                run(coroutine.close)
                raise
            except BaseException as error:
                step, value = coroutine.throw, error
            waiting = run(step, value)
    except StopIteration as done:
        result = done.value
    except BaseException as error:
        if call is None or call.children is None:
            raise
        result = Raised(error)
    if call is not None and call.children is not None:
        result = yield from call.children.ending(result).__await__()
    if type(result) is Raised:
        raise result.error
    return result


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
        return _result(future)
    except BaseException:
        future.cancel()
        raise


@lets_ctrl_c_in
def _result(future: Future[Any]) -> Any:
    return future.result()


def start_on_background_loop(call: Call, post: Callable[[Done], None]) -> Callable[[], Any]:
    """Start an async call on the process's own loop; return what cancels it."""
    import asyncio

    async def work() -> None:
        post(done(call, await perform_async(call)))

    return asyncio.run_coroutine_threadsafe(work(), background_loop.get()).cancel
