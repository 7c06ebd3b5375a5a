"""What an exception that user code raised says: a cancellation, or pauses, also inside exception groups."""

from __future__ import annotations

import sys

from stepwell.errors import GraphInterrupt
from stepwell.superstep.outcome import Awaited, Question


def is_cancelled_error(error: BaseException) -> bool:
    """Tell whether this is asyncio's CancelledError, without loading asyncio for runs that never use it."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def stops_of(noted: tuple[Question | Awaited, ...], error: BaseException) -> tuple[Question | Awaited, ...]:
    """Return what a node noted before this was raised, and the questions of pauses that it or others raised."""
    known = {stop.interrupt_id for stop in noted if isinstance(stop, Question)}
    return noted + tuple(question for question in _pauses_in(error) if question.interrupt_id not in known)


def _pauses_in(error: BaseException) -> tuple[Question, ...]:
    """Return the questions of pauses raised by hand, also inside exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return tuple(question for inner in error.exceptions for question in _pauses_in(inner))
    if isinstance(error, GraphInterrupt):
        return tuple(Question(i.id, f"raised/{i.id}", i.value) for i in error.interrupts if hasattr(i, "id"))
    return ()
