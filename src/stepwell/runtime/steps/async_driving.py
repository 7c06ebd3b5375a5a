"""Answers what a step asks for on the event loop it was called on. Nothing here blocks the loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

from stepwell.runtime.async_driver import blocking, on_pool, to_the_end
from stepwell.runtime.journal import Entry, Journal, journal_of
from stepwell.runtime.landing import land
from stepwell.runtime.requests import Ask, Blocking, Body, Record, Sleep
from stepwell.runtime.scope import current
from stepwell.runtime.steps.children import ended
from stepwell.runtime.steps.driving import Steps, entered, run_limited
from stepwell.runtime.steps.turns import Turn, holding


def start_on_loop(steps: Steps, turn: Turn | None) -> asyncio.Task[Any]:
    """Start a step on the running loop, beside the code that calls it."""
    work = drive_async(steps) if turn is None else _in_turn(steps, turn)
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda _: steps.close())  # it may be cancelled before it has begun
    return task


async def _in_turn(steps: Steps, turn: Turn) -> Any:
    loop = asyncio.get_running_loop()
    granted = loop.create_future()
    try:
        if not turn.take(lambda: _grant(loop, granted)):
            await granted
        holding.set(turn)
        return await drive_async(steps)
    finally:
        turn.leave()


def _grant(loop: asyncio.AbstractEventLoop, granted: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # a closed loop: nobody waits any more
        loop.call_soon_threadsafe(lambda: None if granted.done() else granted.set_result(None))


async def drive_async(steps: Steps) -> Any:
    """Run a step to its end on this loop, in an asyncio task of its own."""
    result: Any = None
    try:
        request = steps.send(None)
        while True:
            try:
                result = await _answer(request)
            except BaseException as error:
                request = steps.throw(error)
            else:
                request = steps.send(result)
    except StopIteration as done:
        return done.value


async def _answer(request: Ask) -> Any:
    if isinstance(request, Body):
        return await _run_body(request)
    if isinstance(request, Record):
        return await record(request.entry)
    if isinstance(request, Sleep):
        return await asyncio.sleep(request.seconds)
    assert isinstance(request, Blocking)
    scope = current.get()
    assert scope is not None
    return await blocking(request.function, scope.root.owner.run.store)  # type: ignore[attr-defined]


async def record(entry: Entry) -> None:
    """Write the entry, with all that wait in this turn of the loop, and wait for it as the mode says. A cancellation
    comes through once it is written."""
    run = entry.call.owner.run
    journal = journal_of(run)
    if run.store is not None and not run.store.blocking:
        journal.add(entry)
        journal.stage()
    else:
        await _recorded(journal, entry)
    journal.outcome_of(entry)


async def _recorded(journal: Journal, entry: Entry) -> None:
    loop = asyncio.get_running_loop()
    cancelled: asyncio.CancelledError | None = None
    while (ahead := journal.ahead_of(entry)) is not None and not ahead.done():
        cancelled = await land(ahead) or cancelled  # what is done is to be recorded all the same
    entry.arrival = loop.create_future()
    journal.add(entry)
    journal.stage_in_turn(loop)
    await to_the_end(entry.arrival)
    if cancelled is not None:
        raise cancelled


async def _run_body(body: Body) -> Any:
    if not body.is_async:
        context = copy_context()
        if body.deadline is not None:
            return await on_pool(partial(context.run, run_limited, body.scope, body.function, body.deadline))
        return await on_pool(partial(context.run, entered, body.scope, body.function))
    if body.deadline is None:
        return await _entered(body)
    task = asyncio.get_running_loop().create_task(_entered(body))
    try:
        while not task.done():
            await asyncio.wait([task], timeout=max(0.0, body.deadline.left()))
            if not task.done() and body.deadline.left() <= 0:
                body.scope.over = True
                raise body.deadline.error(body.scope.name)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=CLEAN_UP_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # what it raised while it was given up is of no interest


CLEAN_UP_SECONDS = 5.0
"""How long a step that is given up may take to clean up."""


async def _entered(body: Body) -> Any:
    token = current.set(body.scope)
    body.scope.enter()
    try:
        return await ended(body.scope, body.function())
    finally:
        body.scope.over = True
        current.reset(token)
