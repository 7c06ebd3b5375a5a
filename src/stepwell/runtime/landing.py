"""Awaiting, on an event loop, a write that another thread brings to its end.

What one transaction answers wakes a loop once, however many runs on it wait: their landings gather until the loop has a
turn. A write under way is not left half known, so a landing refuses to be cancelled; asyncio then tells the task when
the landing is over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from typing import Any
from weakref import WeakKeyDictionary

from stepwell.store import Queued


class Landing(asyncio.Future[None]):
    """Over when the write is, whatever came of it. It cannot be cancelled: awaiting it gives the cancellation that came
    meanwhile."""

    def __init__(self, bell: Bell, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._bell = bell

    def ring(self, _: Queued) -> None:
        """The write is over: have the loop go on. Called on any thread."""
        self._bell.ring(self)

    def cancel(self, msg: object = None) -> bool:
        """Refuse: the task that awaits this is told of its cancellation afterwards."""
        return False

    def __await__(self) -> Generator[Any, None, asyncio.CancelledError | None]:  # type: ignore[override]
        cancelled: asyncio.CancelledError | None = None
        while not self.done():
            try:
                yield from super().__await__()
            except asyncio.CancelledError as error:
                cancelled = error
        return cancelled


class Bell:
    """Wakes one loop for everything that has landed since it last looked. Between writes it does not hold the loop."""

    def __init__(self) -> None:
        self._landed: deque[Landing] = deque()
        self._rung = False

    def ring(self, landing: Landing) -> None:
        """Have the loop go on with this landing. Called on any thread."""
        self._landed.append(landing)  # before the look: a loop that has not begun to answer takes it along
        if not self._rung:
            self._rung = True
            try:
                landing.get_loop().call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._rung = False
                self._landed.clear()

    def _answer(self) -> None:
        self._rung = False
        while self._landed:
            self._landed.popleft().set_result(None)


_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, Bell] = WeakKeyDictionary()


def land(future: Queued) -> Landing:
    """Return what to await until a write is over. It gives the cancellation that came meanwhile: nothing was cut short
    by it."""
    loop = asyncio.get_running_loop()
    bell = _bells.get(loop)
    if bell is None:
        bell = _bells.setdefault(loop, Bell())
    landing = Landing(bell, loop)
    if future.done():
        landing.set_result(None)
    else:
        future.add_done_callback(landing.ring)
    return landing
