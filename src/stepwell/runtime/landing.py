"""Awaiting, on an event loop, a write that another thread brings to its end.

What one transaction answers wakes a loop once, however many runs on it wait: their landings gather until the loop has a
turn. A write under way is not left half known, so a landing refuses to be cancelled; asyncio then tells the task when
the landing is over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from weakref import WeakKeyDictionary

from stepwell.store import Queued


class Landing(asyncio.Future[None]):
    """Over when the write is, whatever came of it. It cannot be cancelled."""

    def cancel(self, msg: object = None) -> bool:
        """Refuse: the task that awaits this is told of its cancellation afterwards."""
        return False


class Bell:
    """Wakes one loop for everything that has landed since it last looked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._wake: Callable[[Callable[[], None]], object] = loop.call_soon_threadsafe
        self._landed: deque[Landing] = deque()
        self._rung = False

    def ring(self, landing: Landing, _: Queued) -> None:
        """Have the loop go on with this landing. Called on any thread."""
        self._landed.append(landing)  # before the look: a loop that has not begun to answer takes it along
        if not self._rung:
            self._rung = True
            try:
                self._wake(self._answer)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _answer(self) -> None:
        self._rung = False
        while self._landed:
            self._landed.popleft().set_result(None)


_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, Bell] = WeakKeyDictionary()


async def land(future: Queued) -> asyncio.CancelledError | None:
    """Wait until a write is over. Return the cancellation that came meanwhile: nothing was cut short by it."""
    cancelled: asyncio.CancelledError | None = None
    if not future.done():
        loop = asyncio.get_running_loop()
        bell = _bells.get(loop)
        if bell is None:
            bell = _bells.setdefault(loop, Bell(loop))
        landing = Landing(loop=loop)
        future.add_done_callback(partial(bell.ring, landing))
        while not landing.done():
            try:
                await landing
            except asyncio.CancelledError as error:
                cancelled = error
    return cancelled
