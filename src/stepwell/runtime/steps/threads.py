"""The threads that sync steps of a run share, and when a step needs one.

A step that its caller waits for at once needs none: the caller runs it. So the first one waits a moment for its caller;
as soon as there is a second, both are wanted beside each other, and a caller that does something else for longer than a
tick is not waited for either. The rule kept: whoever claims a step first runs it, so nothing here can run it twice.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Protocol

from stepwell.runtime.ports import SYNC_CALLS, pool

TICK_SECONDS = 0.002
IDLE_TICKS = 3
"""How many ticks nothing has to be held back for the thread that ticks to go to sleep."""


class Work(Protocol):
    """A step that somebody is to begin."""

    def begin(self) -> None:
        """Run it on this thread, unless somebody has begun it."""
        ...

    def is_begun(self) -> bool: ...


class StepThreads:
    """What one run's steps run on: as many threads as calls may be in flight."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit or SYNC_CALLS
        self._lock = threading.Lock()
        self._queued: deque[Work] = deque()
        self._working = 0
        self._held: Work | None = None
        self._within: StepThreads | None = None

    def within(self) -> StepThreads:
        """Return the threads of the steps that steps on these threads call: as many again, so that those which wait
        for the steps within them do not keep them from a thread."""
        with self._lock:
            if self._within is None:
                self._within = StepThreads(self._limit)
            return self._within

    def start(self, work: Work) -> None:
        """Have a step begun beside its caller, or by its caller where that waits for it at once."""
        with self._lock:
            held, self._held = self._held, None
            if held is None or held.is_begun():
                held, self._held = None, work
        if held is None:
            _ticker.watch(self)
            return
        self.submit(held)
        self.submit(work)

    def release(self) -> bool:
        """Give a thread to the step that has been held back since the last tick. Return whether one still is."""
        held = self._held
        if held is None:
            return False
        if held.is_begun():
            with self._lock:
                self._held = None if self._held is held else self._held
            return self._held is not None
        with self._lock:
            if self._held is not held:
                return True
            self._held = None
        self.submit(held)
        return False

    def submit(self, work: Work) -> None:
        """Have a step begun by one of the run's threads, in its turn."""
        with self._lock:
            self._queued.append(work)
            if self._working >= self._limit:
                return
            self._working += 1
        pool.submit(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queued:
                    self._working -= 1
                    return
                work = self._queued.popleft()
            work.begin()


class _Ticker:
    """One thread of the process that looks, each tick, whether a step is still held back. Asleep while none is."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._watched: deque[StepThreads] = deque()
        self._awake = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, threads: StepThreads) -> None:
        """Look after this run's held step from the next tick on."""
        self._watched.append(threads)
        if not self._awake.is_set():
            self._awake.set()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="stepwell-steps", daemon=True)
                self._thread.start()

    def _tick(self) -> None:
        while True:
            self._awake.wait()
            idle = 0
            while idle < IDLE_TICKS:
                due = {self._watched.popleft() for _ in range(len(self._watched))}
                idle = 0 if due else idle + 1
                time.sleep(TICK_SECONDS)
                for threads in due:
                    if threads.release():
                        self._watched.append(threads)
            self._awake.clear()
            if self._watched:
                self._awake.set()


_ticker = _Ticker()
if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_ticker.forget)
