"""Writing by what was read of a thread: it lands only if the thread is still as it was read; else it is read again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from stepwell.errors import ThreadBusyError
from stepwell.runtime.admission import ATTEMPTS

Written = TypeVar("Written")


class Moved(Exception):
    """The thread is not as it was read any more, and nothing was written."""


def until_written(thread_id: str, attempt: Callable[[], Written]) -> Written:
    """Return what `attempt` returns, which reads the thread and writes by that, or raises Moved. Raises ThreadBusyError
    where others were faster each time."""
    for _ in range(ATTEMPTS):
        with suppress(Moved):
            return attempt()
    raise ThreadBusyError(thread_id=thread_id, holder="other callers", run_id="?", expires_in=0.0)
