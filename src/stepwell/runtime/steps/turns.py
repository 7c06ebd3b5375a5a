"""How many steps of a run are at work at once, where `max_concurrency` says it.

A step takes a turn when it begins and gives it back when it is over. The rule kept: whoever has a turn lends it to one
of the steps that it calls itself, so a step that waits for those within it never waits for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from stepwell.runtime.journal import journal_of

if TYPE_CHECKING:
    from stepwell.runtime.run import Run


class Turn:
    """One step's place among those of its run."""

    __slots__ = ("begin", "borrowed", "has", "lent", "outer", "turns", "withdrawn")

    def __init__(self, turns: Turns, outer: Turn | None) -> None:
        self.turns = turns
        self.outer = outer
        """The turn of the step that calls."""
        self.begin: Callable[[], None] | None = None
        self.has = False
        self.borrowed = False
        """Whether it has the turn of the step that calls."""
        self.lent = False
        self.withdrawn = False

    def take(self, begin: Callable[[], None]) -> bool:
        """Take a turn now; or return False, and have `begin` called, by whatever thread, once there is one."""
        self.begin = begin
        return self.turns.take(self)

    def leave(self) -> None:
        """Give the turn back, or wait for none any more."""
        self.turns.leave(self)

    def give_up(self, cancel: Callable[[], object]) -> None:
        """Cancel the step if it has not begun."""
        if not self.has:
            cancel()


class Turns:
    """The turns of one run."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lock = threading.Lock()
        self._waiting: deque[Turn] = deque()

    def take(self, turn: Turn) -> bool:
        with self._lock:
            if not self._grant(turn):
                self._waiting.append(turn)
            return turn.has

    def leave(self, turn: Turn) -> None:
        with self._lock:
            if not turn.has:
                turn.withdrawn = True
                return
            turn.has = False
            if turn.borrowed:
                assert turn.outer is not None
                turn.outer.lent = False
            else:
                self._free += 1
            following = self._next()
        if following is not None and following.begin is not None:
            following.begin()

    def _next(self) -> Turn | None:
        """Grant the first turn that can be granted."""
        while self._waiting and self._waiting[0].withdrawn:
            self._waiting.popleft()
        for place, turn in enumerate(self._waiting):
            if not turn.withdrawn and self._grant(turn):
                del self._waiting[place]
                return turn
        return None

    def _grant(self, turn: Turn) -> bool:
        outer = turn.outer
        if outer is not None and outer.has and not outer.lent:
            outer.lent = turn.borrowed = turn.has = True
        elif self._free > 0:
            self._free -= 1
            turn.has = True
        return turn.has


def turn_of(run: Run) -> Turn | None:
    """Return the turn that a step about to be called here has to take; None where nothing limits it."""
    limit = run.config.max_concurrency
    if limit is None:
        return None
    journal = journal_of(run)
    if journal.turns is None:
        with _making:
            if journal.turns is None:
                journal.turns = Turns(limit)
    outer = holding.get()
    return Turn(journal.turns, outer if outer is not None and outer.turns is journal.turns else None)


_making = threading.Lock()
holding: ContextVar[Turn | None] = ContextVar("stepwell_turn", default=None)
"""The turn of the step whose code this is."""
