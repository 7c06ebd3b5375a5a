"""The steps that a call of user code has started: it is over when they are."""

from __future__ import annotations

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

    def add(self, future: Future[Any]) -> None:
        """Note a step on a thread."""
        self._futures.append(future)

    def add_task(self, task: asyncio.Future[Any]) -> None:
        """Note a step on a loop."""
        self._tasks.append(task)

    def wait(self, error: BaseException | None) -> None:
        """Wait, on this thread, for what has been started. After an error, what has not begun does not begin; after an
        interruption nothing is waited for."""
        if error is not None and not isinstance(error, Exception | GraphInterrupt | BaseExceptionGroup):
            return
        while self._futures:
            future = self._futures.pop()
            if error is None or not future.cancel():
                _await(future)

    async def ending(self, result: Any) -> Any:
        """Wait, on this loop, for what has been started; return the call's result. After an error, what still runs on
        the loop is cancelled: nobody is left who wants it."""
        import asyncio

        error = result.error if type(result) is Raised else None
        loop = asyncio.get_running_loop()
        while self._tasks or self._futures:
            tasks = [task for task in self._tasks if not task.done() and task.get_loop() is loop]
            futures, self._tasks, self._futures = self._futures, [], []
            for task in tasks if error is not None else ():
                task.cancel()
            left = [asyncio.wrap_future(f) for f in futures if not (error is not None and f.cancel())]
            if tasks or left:
                await asyncio.wait([*tasks, *left])
            for settled in [*tasks, *left]:
                if not settled.cancelled():
                    settled.exception()
        return result


def _await(future: Future[Any]) -> None:
    """Wait for a future, whatever comes of it."""
    try:
        future.exception()
    except BaseException as error:
        if not future.cancelled():
            raise error
