"""Crashes on demand, at the points that `stepwell.points` names.

In a process of its own: set STEPWELL_CRASH_AT="point:nth" and call `arm_from_environment()`; the process kills itself
when that point is reached for the nth time. Within a test: `crash_at` raises `SimulatedCrash` instead. There is one
hook for the process; two armings do not nest.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from stepwell import points

VARIABLE = "STEPWELL_CRASH_AT"


class SimulatedCrash(BaseException):
    """The process would be dead here. Not an `Exception`: no handler of user code goes on after it."""


def arm_from_environment() -> None:
    """Kill this process with SIGKILL at the point that STEPWELL_CRASH_AT names, if it names one."""
    text = os.environ.get(VARIABLE, "")
    if text:
        point, _, nth = text.rpartition(":")
        points.hook = _at(point, int(nth), _kill)


@contextmanager
def crash_at(point: str, nth: int = 1) -> Iterator[None]:
    """Raise SimulatedCrash when the point is reached for the nth time inside the block. Does not swallow it."""
    with _hooked(_at(point, nth, _raise)):
        yield


@contextmanager
def record_points() -> Iterator[list[str]]:
    """Note the points reached inside the block, in order."""
    reached: list[str] = []
    with _hooked(reached.append):
        yield reached


@contextmanager
def _hooked(hook: Callable[[str], None]) -> Iterator[None]:
    before, points.hook = points.hook, hook
    try:
        yield
    finally:
        points.hook = before


def _at(point: str, nth: int, strike: Callable[[str], None]) -> Callable[[str], None]:
    if point not in (*points.ALL, *points.APART):
        raise ValueError(f"there is no crash point {point!r}; there are {', '.join(points.ALL)}")
    reached = count(1)

    def hook(name: str) -> None:
        if name == point and next(reached) == nth:
            strike(name)

    return hook


def _kill(point: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(point: str) -> None:
    raise SimulatedCrash(point)
