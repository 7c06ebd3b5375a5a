"""Where launched calls run and come back to: the contract, and the parts both drivers share.

A port belongs to one run. It launches calls on a pool thread, a daemon thread (calls that may be abandoned) or an event
loop, and collects what comes back as mail. It decides nothing: limits, timeouts and retries are `execute`'s.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from stepwell.runtime.requests import Done, Raised

if TYPE_CHECKING:
    import asyncio

    from stepwell.runtime.calls import Call
    from stepwell.store import Commit, Queued

SYNC_CALLS = 32
"""How many sync calls of one run are in flight at most where max_concurrency does not say: each holds a thread."""


class Port(Protocol):
    """What a run asks of its driver between requests."""

    leads: bool
    """Whether who waits for a queued write also writes it, on its own thread."""

    def perform(self, call: Call) -> Any:
        """Run this call as far as it goes without waiting. Return what comes of its task, or its next call, or the
        request to await."""
        ...

    def write(self, commit: Commit) -> bool:
        """Make a commit durable at once; False where a `Write` has to be awaited for that."""
        ...

    def enqueue(self, commit: Commit) -> Queued | None:
        """Write a commit in order without waiting. Return the future to settle later, or None where it is written."""
        ...

    def launch(self, call: Call) -> None:
        """Start a call; it comes back as mail."""
        ...

    def abandon(self, call: Call) -> None:
        """Cancel an async call, give up on a sync one. Whatever comes back of it will be ignored."""
        ...

    def wake(self) -> None:
        """Make a waiting `Mail` come back empty: the stream has news."""
        ...


class _Pool:
    """The process's threads for sync calls. They grow with demand: a run's own limit bounds its share, and a node that
    invokes another graph can never starve it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(max_workers=4096, thread_name_prefix="stepwell")
            executor = self._executor
        executor.submit(work)

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._executor = None


class _Loop:
    """The process's one background event loop, for async calls under the sync API."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._next: _Loop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop; called from a node on that very loop, the next one: a loop cannot wait for itself."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="stepwell-loop", daemon=True)
                self._thread.start()
            if threading.current_thread() is not self._thread:
                return self._loop
            if self._next is None:
                self._next = _Loop()
            following = self._next
        return following.get()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._loop = self._thread = self._next = None


pool = _Pool()
background_loop = _Loop()

if hasattr(os, "register_at_fork"):  # threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=pool.forget)
    os.register_at_fork(after_in_child=background_loop.forget)


def on_thread(call: Call, post: Callable[[Done], None]) -> None:
    """Run a sync call on a thread and post what comes back."""

    def work() -> None:
        post(done(call, perform(call)))

    if call.deadline is None:
        pool.submit(work)
    else:  # it may be abandoned: it must hold up neither the pool nor the end of the process
        threading.Thread(target=work, name=f"stepwell-{call.owner.task.node}", daemon=True).start()


def done(call: Call, result: Any) -> Done:
    """Return the mail of a call that has just come back."""
    return Done(call, result) if call.deadline is None else Done(call, result, call.owner.run.clock.monotonic())


def perform(call: Call) -> Any:
    """Run a sync call here; return its value or `Raised`."""
    try:
        return call.run()
    except BaseException as error:
        return Raised(error)
