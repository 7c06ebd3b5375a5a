"""What a node may wait for: a time, a signal, the completion of an awakeable. The public calls, and nothing of the run.

Each leaves the node by a pause, as `interrupt` does, and returns when the node is called again and what it waited for
has come. So one name serves sync and async nodes, and nothing is held while a thread waits. The deadline is fixed when
the call is first reached and stays the same whatever becomes of the process.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

from stepwell.errors import (
    AwakeableFailedError,
    GraphInterrupt,
    InvalidWaitError,
    NoCheckpointerError,
    WaitTimeoutError,
)
from stepwell.ids import is_holdable, structural_hash
from stepwell.runtime.mailing import FAILED, awakeable_id
from stepwell.runtime.scope import Scope, running
from stepwell.superstep.outcome import Awaited
from stepwell.superstep.waiting import AWAKEABLE, CAME, SIGNAL, TIMER, Arrived

LONGEST_SECONDS = 100 * 366 * 86_400.0
"""A longer wait is a mistake in the unit."""


class _Slept:
    """What `sleep` returns: nothing, which may be awaited, for whoever writes `await sleep(...)` out of habit. The
    signatures do not say so, or checkers would ask sync nodes for an `await` too."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield

    def __repr__(self) -> str:
        return "None"


_SLEPT = _Slept()


def sleep(seconds: float | timedelta) -> Any:
    """Wait this long, and go on when the node is called again: in sync and async nodes alike.

    The node runs again from its start and passes this call once its time has come. The time is fixed when the call is
    first reached, and is durable before anything waits for it: a crash does not begin it anew. What is at most a second
    ahead the run waits for in place; with a longer one it ends as `waiting`, and `invoke(None, config)` goes on when it
    is due. Raises InvalidWaitError, NoCheckpointerError.
    """
    scope = _durable("sleep")
    call_id = scope.call_id(TIMER, "")
    length = _seconds(seconds, "sleep")
    return _sleep(scope, call_id, scope.owner.now() + round(length * 1e6))


def sleep_until(when: datetime) -> Any:
    """Wait until this time, given with its time zone; a time that has passed is over at once. Otherwise as `sleep`."""
    scope = _durable("sleep_until")
    call_id = scope.call_id(TIMER, "")
    if not isinstance(when, datetime) or when.utcoffset() is None:
        reason = f"sleep_until takes a datetime with a time zone, as datetime.now(UTC) has, not {when!r}"
        raise InvalidWaitError(reason=reason)
    return _sleep(scope, call_id, round(when.timestamp() * 1e6))


def wait_for(key: str, *, timeout: float | timedelta | None = None) -> Any:
    """Return the value of the next signal with this key: the oldest that was sent and not yet delivered.

    Signals are sent with `graph.signal(config, key, value)`, before or after this call is reached; each is delivered
    once. That it is delivered here is durable before it is returned. With a `timeout`, WaitTimeoutError once so much
    time has passed since the call was first reached, unless the signal was sent before; without one it waits for as
    long as it takes. Waits as `sleep` does. Call it without `await`, in async nodes too. Raises InvalidWaitError,
    NoCheckpointerError.
    """
    if not isinstance(key, str) or not key or not is_holdable(key):
        raise InvalidWaitError(reason=f"wait_for takes the signal's key, text that is not empty, not {key!r}")
    scope = _durable("wait_for")
    call_id = scope.call_id(f"{SIGNAL}:{key}", key)
    return _wait(scope, call_id, SIGNAL, key, timeout)


class Awakeable:
    """Something that an outside system completes, by its `id`, with `graph.complete_awakeable(id, value)`."""

    __slots__ = ("_call_id", "_scope", "id")

    def __init__(self, scope: Scope, call_id: str, id: str) -> None:
        self._scope = scope
        self._call_id = call_id
        self.id = id
        """Hand this to whoever is to complete it. It stays the same when the node is called again."""

    def result(self, timeout: float | timedelta | None = None) -> Any:
        """Return what it was completed with; AwakeableFailedError where that was an error. Waits as `wait_for` does."""
        status, value = _wait(self._scope, self._call_id, AWAKEABLE, self.id, timeout)
        if status == FAILED:
            raise AwakeableFailedError(awakeable_id=self.id, reason=value)
        return value

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.result()
        yield

    def __repr__(self) -> str:
        return f"Awakeable({self.id!r})"


def awakeable() -> Awakeable:
    """Make something that an outside system completes: give it the `id`, then ask for the `result()`, or await it.

    The id follows from where the call stands (thread, lineage, position), so the same call has the same one when the
    node is called again; a fork has another. It may be completed before the result is asked for. NoCheckpointerError.
    """
    scope = _durable("awakeable")
    call_id = scope.call_id(AWAKEABLE, "")
    known = scope.owner.answers().get(call_id)
    if isinstance(known, Awaited | Arrived):  # it was registered before a fork gave the call another place
        return Awakeable(scope, call_id, known.key)
    thread_id, lineage, position = scope.owner.place_of(call_id)
    return Awakeable(
        scope, call_id, awakeable_id(structural_hash("awakeable", thread_id, lineage, position), thread_id)
    )


def _sleep(scope: Scope, call_id: str, until: int) -> _Slept:
    known = scope.owner.answers().get(call_id)
    awaited = known if isinstance(known, Awaited) else Awaited(call_id, TIMER, "", until)
    assert awaited.until is not None
    if awaited.until > scope.owner.now():
        raise _leaving(scope, awaited)
    return _SLEPT


def _wait(scope: Scope, call_id: str, kind: str, key: str, timeout: float | timedelta | None) -> Any:
    length = None if timeout is None else _seconds(timeout, "timeout")
    known = scope.owner.answers().get(call_id)
    if isinstance(known, Arrived):
        if known.status == CAME:
            return known.value
        raise WaitTimeoutError(key=key, kind=kind)
    if not isinstance(known, Awaited):
        until = None if length is None else scope.owner.now() + round(length * 1e6)
        known = Awaited(call_id, kind, key, until)
    raise _leaving(scope, known)


def _leaving(scope: Scope, awaited: Awaited) -> GraphInterrupt:
    """Note what the node waits for; return the pause by which it is left."""
    scope.note(awaited)
    return GraphInterrupt(())


def _durable(caller: str) -> Scope:
    scope = running(caller)
    if not scope.owner.is_durable():
        raise NoCheckpointerError(operation=f"{caller}()")
    return scope


def _seconds(given: float | timedelta, name: str) -> float:
    number = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= LONGEST_SECONDS:
        many = isinstance(number, int | float) and (math.isnan(number) or number > LONGEST_SECONDS)
        hint = ", at most a hundred years" if many else ""
        raise InvalidWaitError(reason=f"{name} takes seconds, 0 or more{hint}, or a timedelta, not {given!r}")
    return float(number)
