"""The steps and effects that a piece of user code has started: it is over when they are.

A step that has begun runs to its end whatever becomes of the code that called it, as the siblings of a failed node do:
what it did is recorded and not done again. After a failure what has not begun does not begin. A cancellation stops what
runs on a loop; an interruption of the process waits for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from stepwell.errors import GraphInterrupt
from stepwell.runtime.ctrl_c import lets_ctrl_c_in
from stepwell.runtime.requests import Raised

if TYPE_CHECKING:
    import asyncio

    from stepwell.runtime.scope import Scope

    AnyFuture = Future[Any] | asyncio.Future[Any]

_FEW = 64


class Children:
    """What one piece of code has started. Added to from any thread; looked at when that code itself is done."""

    def __init__(self) -> None:
        self._started: list[tuple[AnyFuture, Callable[[], object] | None]] = []
        self._most = _FEW

    def add(self, future: AnyFuture, give_up: Callable[[], object] | None) -> None:
        """Note a step; `give_up` keeps it from beginning if it has not begun."""
        if len(self._started) >= self._most:  # nothing is kept of what is long over
            self._started = [entry for entry in self._started if not _is_over(entry[0])]
            self._most = max(_FEW, 2 * len(self._started))
        self._started.append((future, give_up))

    async def until_over(self, effect: Coroutine[Any, Any, Any]) -> Any:
        """Await an effect on this loop, in the asyncio task that calls. It is waited for, whatever becomes of the code
        that started that task; a cancellation is its own, too."""
        import asyncio

        over = asyncio.get_running_loop().create_future()
        self.add(over, None)
        try:
            return await effect
        finally:
            over.cancel()

    def wait(self, error: BaseException | None) -> None:
        """Wait, on this thread, for what has been started. Raises what interrupted one of them."""
        if error is not None and not isinstance(error, Exception | GraphInterrupt | BaseExceptionGroup):
            return
        if isinstance(error, Exception):
            self._drop()
        while self._started:
            future, _ = self._started.pop()
            if isinstance(future, Future):  # a loop that this thread has run itself is over, with its tasks
                _await(future)

    async def ending(self, result: Any) -> Any:
        """Wait, on this loop, for what has been started; return the result of the code itself, or what interrupted it
        or one of them."""
        import asyncio

        loop = asyncio.get_running_loop()
        stopped: set[asyncio.Future[Any]] = set()
        waiting: set[asyncio.Future[Any]] = set()
        while True:
            error = result.error if type(result) is Raised else None
            if isinstance(error, Exception):
                self._drop()
            started = {*waiting, *self._on_loop(loop)}
            waiting = {future for future in started if not future.done()}
            raised = [error for error in map(_raised, started - waiting) if error is not None and _interrupts(error)]
            result = Raised(raised[0]) if raised else result
            if not waiting:
                return result
            if isinstance(error, asyncio.CancelledError):
                for future in waiting - stopped:
                    future.cancel()
                stopped |= waiting
            try:
                await asyncio.wait(waiting)
            except asyncio.CancelledError as cancelled:
                result = Raised(cancelled)
            except GeneratorExit:  # nobody drives this any more
                for future in waiting:
                    future.cancel()
                raise

    def cancel(self) -> None:
        """Cancel what runs, without waiting: the code that started it is closed."""
        for future, _ in self._started:
            future.cancel()

    def _drop(self) -> None:
        """Give up what has not begun."""
        for _, give_up in self._started:
            if give_up is not None:
                give_up()

    def _on_loop(self, loop: asyncio.AbstractEventLoop) -> Iterable[asyncio.Future[Any]]:
        import asyncio

        while self._started:
            future, _ = self._started.pop()
            if isinstance(future, Future):
                yield asyncio.wrap_future(future, loop=loop)
            elif future.get_loop() is loop:
                yield future


def _is_over(future: AnyFuture) -> bool:
    """Tell whether a step is over and nothing is to be told of it: what it raised is its caller's, or on record."""
    return future.done() and not _interrupts(_raised(future))


def _raised(future: AnyFuture) -> BaseException | None:
    return None if future.cancelled() else future.exception()


def _interrupts(error: BaseException | None) -> bool:
    """Tell whether this ends more than the step that raised it: Ctrl-C, not an error and not a pause."""
    return error is not None and not isinstance(error, Exception | GraphInterrupt | BaseExceptionGroup)


@lets_ctrl_c_in
def _await(future: Future[Any]) -> None:
    """Wait for a future. Whatever comes of it is its caller's, but for an interruption."""
    try:
        error = future.exception()
    except BaseException as raised:
        if not future.cancelled():
            raise
        del raised
        return
    if error is not None and _interrupts(error):
        raise error


def call_and_wait(scope: Scope, function: Callable[[], Any]) -> Any:
    """Call a piece of sync user code, and wait for the steps it starts."""
    try:
        value = function()
    except BaseException as error:
        if scope.children is not None:
            scope.children.wait(error)
        raise
    if scope.children is not None:
        scope.children.wait(None)
    return value


async def ended(scope: Scope, made: Awaitable[Any]) -> Any:
    """Await a piece of user code, and the steps it starts."""
    try:
        result = await made
    except BaseException as error:
        if scope.children is None:
            raise
        result = Raised(error)
    if scope.children is not None:
        result = await scope.children.ending(result)
    if type(result) is Raised:
        raise result.error
    return result
