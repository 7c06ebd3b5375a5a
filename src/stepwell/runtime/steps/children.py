"""The steps and effects that a call of user code has started: it is over when they are.

A pause is no reason to hurry: what was started beside it comes to its own end, so that all questions of a node are
asked at once, and no body of an effect is broken off because a sibling asks.
"""

from __future__ import annotations

from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from stepwell.errors import GraphInterrupt
from stepwell.runtime.requests import Raised

if TYPE_CHECKING:
    import asyncio


class Children:
    """What one call has started. Added to from any thread; looked at when the call itself is done."""

    def __init__(self) -> None:
        self._futures: list[Future[Any]] = []
        self._tasks: list[asyncio.Future[Any]] = []
        self._effects: set[asyncio.Future[Any]] = set()

    def add(self, future: Future[Any]) -> None:
        """Note a step on a thread."""
        self._futures.append(future)

    def add_task(self, task: asyncio.Future[Any]) -> None:
        """Note a step on a loop."""
        self._tasks.append(task)

    async def until_over(self, effect: Coroutine[Any, Any, Any]) -> Any:
        """Await an effect on this loop, in the asyncio task that calls: whatever else happens to the node, it is waited
        for."""
        import asyncio

        over = asyncio.get_running_loop().create_future()
        self._effects.add(over)
        try:
            return await effect
        finally:
            self._effects.discard(over)
            over.cancel()

    def wait(self, error: BaseException | None) -> None:
        """Wait, on this thread, for what has been started. After an error, what has not begun does not begin; after an
        interruption nothing is waited for."""
        if error is not None and not isinstance(error, Exception | GraphInterrupt | BaseExceptionGroup):
            return
        while self._futures:
            future = self._futures.pop()
            if error is None or _is_pause(error) or not future.cancel():
                _await(future)

    async def ending(self, result: Any) -> Any:
        """Wait, on this loop, for what has been started; return the call's result. After an error, what still runs on
        the loop is cancelled, effects excepted: nobody is left who wants it."""
        import asyncio

        error = result.error if type(result) is Raised and not _is_pause(result.error) else None
        loop = asyncio.get_running_loop()
        stays = not isinstance(error, asyncio.CancelledError)
        while self._tasks or self._futures or self._effects:
            effects = [each for each in self._effects if each.get_loop() is loop and stays]
            tasks = [task for task in self._tasks if not task.done() and task.get_loop() is loop]
            futures, self._tasks, self._futures = self._futures, [], []
            for task in tasks if error is not None else ():
                task.cancel()
            left = [asyncio.wrap_future(f) for f in futures if not (error is not None and f.cancel())]
            if not (tasks or left or effects):
                break
            await asyncio.wait([*tasks, *left, *effects])
            for settled in [*tasks, *left]:
                if not settled.cancelled():
                    settled.exception()
        return result


def _is_pause(error: BaseException) -> bool:
    """Tell whether this is a pause, or several, and nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_pause(each) for each in error.exceptions)
    return isinstance(error, GraphInterrupt)


def _await(future: Future[Any]) -> None:
    """Wait for a future, whatever comes of it."""
    try:
        future.exception()
    except BaseException as error:
        if not future.cancelled():
            raise error
