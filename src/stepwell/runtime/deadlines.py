"""How long one attempt of a node may go on: its run timeout, and its idle timeout with what starts that anew.

A deadline belongs to one attempt and is heard from any thread. The rule kept: once it has passed it never moves again,
so whether an attempt was in time is told by the clock, not by when the run came to look.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from typing import cast

from stepwell.errors import InvalidGraphError, NodeTimeoutError
from stepwell.graph.policies import TimeoutPolicy, idle_needs_async
from stepwell.plan.tables import Callee

NO_LIMIT = TimeoutPolicy()
"""The policy of an attempt that only its superstep limits."""


class Deadline:
    """When an attempt has had its time (`at`, monotonic seconds)."""

    def __init__(self, policy: TimeoutPolicy, monotonic: Callable[[], float], outer: Deadline | None) -> None:
        self._run = cast("float | None", policy.run_timeout)  # a coerced policy is in seconds
        self._idle = cast("float | None", policy.idle_timeout)
        self._auto = policy.refresh_on == "auto"
        self._monotonic = monotonic
        self._outer = outer
        self._lock = threading.Lock()  # two threads may report progress at once: the later time must win
        self._began = began = monotonic()
        self._run_at = inf if self._run is None else began + self._run
        self._idle_at = inf if self._idle is None else began + self._idle
        self._cap = inf
        self.at = min(self._run_at, self._idle_at)

    def cap(self, at: float) -> None:
        """Let it end by then at the latest: the superstep does."""
        self._cap = at
        self.at = min(self.at, at)

    def left(self) -> float:
        """Return the seconds that are left; negative once it has passed."""
        return self.at - self._monotonic()

    @property
    def hears(self) -> Deadline | None:
        """What is told of this attempt's progress, if anything is: this, for its own idle timeout or one outside."""
        return self if self._idle is not None or self._outer is not None else None

    def heartbeat(self) -> None:
        """Start the idle time anew, here and outside."""
        if self._moved() and self._outer is not None:
            self._outer.heartbeat()

    def progress(self) -> None:
        """Start the idle time anew where activity counts, here and outside."""
        if self._moved(self._auto) and self._outer is not None:
            self._outer.progress()

    def _moved(self, counts: bool = True) -> bool:
        """Move, if it counts. Return whether there is time left: what an attempt does later is no progress."""
        with self._lock:
            now = self._monotonic()
            if now > self.at:
                return False
            if counts and self._idle is not None:
                self._idle_at = now + self._idle
                self.at = min(self._run_at, self._idle_at, self._cap)
            return True

    def error(self, node: str) -> NodeTimeoutError:
        """Return what an attempt of `node` that has passed it fails with."""
        facts = {"node": node, "run_timeout": self._run, "idle_timeout": self._idle}
        if self._run is not None and self._run_at <= self._idle_at:
            return NodeTimeoutError(kind="run", timeout=self._run, elapsed=self._run, **facts)
        return NodeTimeoutError(kind="idle", timeout=self._idle, elapsed=self._idle_at - self._began, **facts)


def cancellable(node: str, callee: Callee) -> Callee:
    """Return the async way to call a node that has an idle timeout. InvalidGraphError where it is sync.

    Compiling and sending check it before; the code may have changed since the timeout was recorded with a send.
    """
    found = callee.as_async()
    if found is None:
        raise InvalidGraphError(idle_needs_async(node), node=node)
    return found
