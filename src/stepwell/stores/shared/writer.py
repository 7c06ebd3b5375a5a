"""One lock, one queue, one leader at a time: group commit.

Whoever gets the lock leads: it runs everything that waits as one transaction of its body. A sync caller leads on
its own thread, unless a leader before it took its write along; `queue` leaves leading to the writer thread, which alone
answers futures, outside the lock. Members land in the order in which they were queued, and stay in the queue until they
are answered, so that an interruption at any line loses none. After a fork the child starts with an empty queue and no
connection: what waited is the parent's. A member that would make the others wait is put off: its body answers it on
another connection, some time after its leader went on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from stepwell.errors import SaverClosedError, StoreError
from stepwell.store import Commit, ItemWrites, Queued
from stepwell.stores.shared.member import Member, Work

LARGEST_GROUP = 256


class Transactions(Protocol):
    """How a body writes. Not thread-safe: the leader's."""

    def run(self, batch: Sequence[Member], own: Member | None) -> None:
        """Run the batch. A member still open afterwards was undone through no fault of its own: run it again."""
        ...

    def close(self) -> None:
        """Close the connection; `run` opens it again."""
        ...

    def abandon(self) -> None:
        """Leave the connection, if it is open, to the process this one was forked from."""
        ...


Body = TypeVar("Body", bound=Transactions)


class Writer(Generic[Body]):
    """Takes writes from any thread and lets one of them lead."""

    def __init__(self, transactions: Body, *, memory: bool = False) -> None:
        self._memory = memory
        self._closed: str | None = None
        self.transactions = transactions
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.lock = threading.RLock()
        self._leading = False
        self._waiting: deque[Member] = deque()
        self._answered: deque[Member] = deque()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._called = False
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, work: Work) -> Any:
        """Write on this thread, or let the leader before it do so; durable when this returns."""
        member = Member(work)
        try:
            self._waiting.append(member)  # before the lock: whoever leads meanwhile takes it along
            with self.lock:
                while member.open:
                    self._lead(member)
        except BaseException:
            member.open = False  # its caller goes: it is not to land later
            raise
        if member.later is not None:
            member.later.wait()
        if member.error is not None:
            raise member.error
        return member.result

    def queue(self, work: Commit | ItemWrites, wake: bool = True) -> Queued:
        """Leave the write to the writer thread or, with `wake` False, to a caller who is about to `settle` it. Never
        blocks on the database, so a loop may call it."""
        self.check_open()
        future = Queued()
        future.member = Member(work, future)
        if wake and self._thread is None:
            self._start()
        self._waiting.append(future.member)
        if wake:
            self._call()
        if self._closed is not None:  # closed since the first line: nobody else would answer
            self._drain()
        return future

    def settle(self, future: Queued) -> None:
        """Wait for a queued write, leading on this thread; raises what it failed with."""
        member = future.member
        if member is not None:
            with self.lock:
                while member.open:
                    self._lead(member)
        self._publish()
        future.result()

    def check_open(self) -> None:
        """Raise where the store was closed, or belongs to the process this one was forked from."""
        if self._closed is not None:
            raise SaverClosedError(reason=self._closed)

    def close(self, reason: str) -> None:
        """Write and answer what is queued, then close the connection."""
        with self.lock:
            if self._leading:
                raise StoreError("The store was closed inside one of its own writes. Close it when that is done.")
        self._drain()
        with self.lock:
            if self._closed is not None:
                return
            self._closed = reason
            self.transactions.close()
        self._drain()
        self._wake.put(False)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def before_fork(self) -> None:
        """Hold the lock across the fork, with the connection closed. Memory cannot be closed; it stays the parent's."""
        if self._memory:
            return
        self.lock.acquire()
        if not self._leading:
            self.transactions.close()

    def after_fork_in_parent(self) -> None:
        """Let writers go on."""
        if not self._memory:
            self.lock.release()

    def after_fork_in_child(self, in_use: bool) -> None:
        """Start with an empty queue: what waited is the parent's. Refuse work where it could not be safe."""
        in_use = in_use or self._leading
        self.transactions.abandon()
        self._begin_anew()
        if self._closed is None and self._memory:
            self._closed = "an in-memory store does not reach into a forked process; make one after the fork"
        elif self._closed is None and in_use:
            self._closed = (
                "the process forked while the store was in use; fork at another moment, or start a new process"
            )

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._serve, args=(self._wake,), name="stepwell-writer", daemon=True)
                thread.start()
                self._thread = thread

    def _serve(self, wake: SimpleQueue[bool]) -> None:
        try:
            while wake.get():
                self._called = False  # before it looks: what is queued from here on calls again
                self._drain()
        finally:
            self._thread, self._called = None, False  # whoever queues next starts another

    def _drain(self) -> None:
        while self._waiting or self._answered:
            with self.lock:
                while self._waiting:
                    self._lead(None)
            self._publish()

    def _publish(self) -> None:
        while self._answered:
            try:
                member = self._answered.popleft()
            except IndexError:  # another thread was faster
                break
            member.publish()

    def _lead(self, own: Member | None) -> None:
        """Run what waits as one transaction; the lock is held. `own` is the member of the leading thread."""
        if self._leading:
            raise StoreError("A write was started inside another write of the same store. Start it when that is done.")
        try:
            self._leading = True
            batch = self._next_batch() if own is None or len(self._waiting) > 1 else (own,)
            if self._closed is not None:
                self._refuse(batch)
            elif batch:
                self.transactions.run(batch, own)
        finally:
            self._leading = False
            self._remove_answered()
        if self._thread is not None and own is not None and (self._answered or self._waiting):
            self._call()

    def _call(self) -> None:
        """Have the writer thread look, unless it is about to."""
        if not self._called:
            self._called = True
            self._wake.put(True)

    def _next_batch(self) -> Sequence[Member]:
        """Return the first that wait, without those whose callers were interrupted and have gone."""
        waiting = self._waiting
        first = [waiting[place] for place in range(min(len(waiting), LARGEST_GROUP))]
        return [member for member in first if member.open]

    def _refuse(self, batch: Sequence[Member]) -> None:
        for member in batch:
            member.fail(SaverClosedError(reason=self._closed))

    def _remove_answered(self) -> None:
        """Take from the queue what is done, leaving futures to the writer thread. What was undone stays in front."""
        waiting = self._waiting
        while waiting and not waiting[0].open:
            if waiting[0].future is not None:
                self._answered.append(waiting[0])
            waiting.popleft()
