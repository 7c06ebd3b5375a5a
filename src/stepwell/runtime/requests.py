"""What the drive loop asks for: the only things a run ever awaits. The drivers answer them, on a thread or on a loop.

Awaiting a request hands it to the driver, which hands back the answer or throws. A driver that can answer at once does
so without a turn of any event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call
    from stepwell.runtime.deadlines import Deadline
    from stepwell.runtime.journal import Entry
    from stepwell.runtime.scope import Scope
    from stepwell.store import Commit, Queued, Store


class Raised(NamedTuple):
    """User code raised this."""

    error: BaseException


class Started(NamedTuple):
    """An async call that runs, and waits."""

    coroutine: Coroutine[Any, Any, Any]
    waiting: Any
    """What it yielded to its event loop."""
    context: Context
    """The context it runs in."""
    call: Call | None = None
    """The call that it is."""


class Done(NamedTuple):
    """A launched call came back: with a value, or `Raised`."""

    call: Call
    result: Any
    at: float = 0.0
    """When (monotonic seconds), where the call has a timeout: it is in time or late whenever its mail is read."""


class Ask:
    """A request. Awaiting it yields it to the driver."""

    __slots__ = ()

    def __await__(self) -> Generator[Ask, Any, Any]:
        return (yield self)


class Perform(Ask):
    """Run this call now, while nothing else of the run goes on. Answer: what comes of its task, or its next call."""

    __slots__ = ("call", "started")

    def __init__(self, call: Call, started: Started | None = None) -> None:
        self.call = call
        self.started = started
        """What an async call waits for, where it runs already."""


class Write(Ask):
    """Make this commit durable."""

    __slots__ = ("commit",)

    def __init__(self, commit: Commit) -> None:
        self.commit = commit


class Settle(Ask):
    """Wait for a queued write, of the run's own store or of this one."""

    __slots__ = ("future", "store")

    def __init__(self, future: Queued, store: Store | None = None) -> None:
        self.future = future
        self.store = store


class Mail(Ask):
    """Wait for launched calls to come back, at most `timeout` seconds (None: until something comes). Answer: a list of
    `Done`, empty on timeout or when the stream has news to hand out."""

    __slots__ = ("timeout",)

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout


class Sleep(Ask):
    """Wait this many seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Blocking(Ask):
    """Run a function that may block on the store."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function


class Body(Ask):
    """Run the body of a step. Answer: what it returns."""

    __slots__ = ("deadline", "function", "is_async", "scope")

    def __init__(
        self, scope: Scope, function: Callable[[], Any], is_async: bool, deadline: Deadline | None = None
    ) -> None:
        self.scope = scope
        self.function = function
        self.is_async = is_async
        self.deadline = deadline


class Record(Ask):
    """Write what a node wants recorded, and wait for it as the mode says."""

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


DURABLE = (Write, Settle)
"""Requests that are carried out even if the run is to be stopped: a write is never left half known."""
