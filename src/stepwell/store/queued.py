"""A write that was queued and waits for its transaction. It decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Queued:
    """What comes of a queued write: the part of a `concurrent.futures.Future` that a write needs, without its lock.

    What is queued lands or fails: nobody can cancel it. Only who blocks on it pays for an event.
    """

    __slots__ = ("_callbacks", "_done", "_error", "member")

    def __init__(self, member: Any = None) -> None:
        self._callbacks: list[Callable[[Queued], object]] = []
        self._done = False
        self._error: BaseException | None = None
        self.member = member
        """What the store keeps of the write until it is over."""

    def done(self) -> bool:
        """Tell whether it is over."""
        return self._done

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until it is over; return what it failed with. TimeoutError after so many seconds."""
        if not self._done:
            over = threading.Event()
            self.add_done_callback(lambda _: over.set())
            if not over.wait(timeout):
                raise TimeoutError
        return self._error

    def result(self, timeout: float | None = None) -> None:
        """Wait until it is over; raise what it failed with."""
        error = self.exception(timeout)
        if error is not None:
            raise error

    def add_done_callback(self, function: Callable[[Queued], object]) -> None:
        """Have this called once it is over, on whatever thread that is; now, where it is already."""
        self._callbacks.append(function)  # before the look: whoever answers meanwhile takes it along
        if self._done:
            self._call_back()

    def answer(self, error: BaseException | None) -> None:
        """Say what came of it."""
        self._error = error
        self.member = None
        self._done = True
        self._call_back()

    def _call_back(self) -> None:
        while self._callbacks:
            try:
                function = self._callbacks.pop(0)
            except IndexError:  # another thread was faster
                break
            function(self)
