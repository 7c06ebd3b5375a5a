"""Processes that die within a test, disks that are full, and a saver whose clock is set by hand."""

import itertools
from typing import Any

import apsw

from stepwell import SqliteSaver, points
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.savers.reading import ReadingSaver
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing import FakeClock, SimulatedCrash


class Saver(SqliteSaver):
    """An in-memory saver by a clock that is set by hand."""

    def __init__(self, clock: FakeClock) -> None:
        ReadingSaver.__init__(self, SqliteStore(clock=clock))


class Deaths:
    """A process that dies when a point is reached and stays dead; `revive` lets the next one begin, a lease later."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.dead = False

    def dies_at(self, point: str, nth: int = 1) -> None:
        left = itertools.count(nth - 1, -1)

        def hook(reached: str) -> None:
            self.dead = self.dead or (reached == point and next(left) == 0)
            if self.dead:
                raise SimulatedCrash(reached)

        points.hook = hook

    def revive(self) -> None:
        points.hook, self.dead = None, False
        self.clock.advance(LEASE_SECONDS + 1)


def failing_at(nth: int) -> Any:
    """Return a hook under which the nth transaction finds the disk full."""
    reached = [0]

    def hook(point: str) -> None:
        reached[0] += point == points.WRITTEN
        if point == points.WRITTEN and reached[0] == nth:
            raise apsw.FullError("database or disk is full")

    return hook
