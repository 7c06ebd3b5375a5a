"""One lock, one queue, one leader at a time: group commit.

Whoever gets the lock leads: it takes everything that waits and runs it as one transaction (`transaction.py`). A sync
caller leads on its own thread; `queue` leaves leading to the writer thread, which alone answers futures, outside the
lock. Members land in the order in which they were queued. After a fork the child starts with an empty queue and no
connection: what waited is the parent's.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from stepwell.clock import Clock
from stepwell.errors import SaverClosedError, StoreError
from stepwell.store import Commit, Counts
from stepwell.stores.sqlite.connection import MEMORY
from stepwell.stores.sqlite.member import Member, Work
from stepwell.stores.sqlite.transaction import Transactions

LARGEST_GROUP = 256


class Writer:
    """Takes writes from any thread and lets one of them lead."""

    def __init__(self, path: str, synchronous: str, clock: Clock, counts: Counts, vfs: str | None = None) -> None:
        self._memory = path == MEMORY
        self._closed: str | None = None
        self.transactions = Transactions(path, synchronous, clock, counts, vfs)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.lock = threading.RLock()
        self._leading = False
        self._waiting: deque[Member] = deque()
        self._answered: deque[Member] = deque()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, work: Work) -> Any:
        """Write on this thread, or let the leader before it do so; durable when this returns."""
        member = Member(work)
        with self.lock:
            if not (self._waiting or self._leading) and self._closed is None:
                self._lead_alone(member)
            if member.open:
                self._waiting.append(member)
            while member.open:
                self._lead(member)
        if member.error is not None:
            raise member.error
        return member.result

    def queue(self, work: Commit) -> Future[None]:
        """Leave the write to the writer thread. Never blocks on the database, so a loop may call it."""
        self.check_open()
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # what is queued lands: nobody can cancel it any more
        if self._thread is None:
            self._start()
        self._waiting.append(Member(work, future))
        self._wake.put(True)
        if self._closed is not None:  # closed since the first line: nobody else would answer
            self._drain()
        return future

    def check_open(self) -> None:
        """Raise where the store was closed, or belongs to the process this one was forked from."""
        if self._closed is not None:
            raise SaverClosedError(reason=self._closed)

    def close(self, reason: str) -> None:
        """Write and answer what is queued, then close the connection."""
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
        """Hold the lock across the fork, with the file closed. Memory cannot be closed; it stays the parent's."""
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
                self._drain()
        finally:
            self._thread = None  # whoever queues next starts another

    def _drain(self) -> None:
        while self._waiting or self._answered:
            with self.lock:
                while self._waiting:
                    self._lead(None)
            while self._answered:
                try:
                    member = self._answered.popleft()
                except IndexError:  # another thread was faster
                    break
                member.publish()

    def _lead_alone(self, own: Member) -> None:
        """Run the calling thread's write as its own transaction: nobody else waits. The lock is held."""
        self._leading = True
        try:
            self.transactions.run((own,), own)
        finally:
            self._leading = False

    def _lead(self, own: Member | None) -> None:
        """Run what waits as one transaction; the lock is held. `own` is the member of the leading thread."""
        if self._leading:
            if own is not None:
                own.open = False  # it is not to land later
            raise StoreError("A write was started inside another write of the same store. Start it when that is done.")
        batch = self._next_batch()
        self._leading = True
        try:
            self._refuse(batch) if self._closed is not None else self.transactions.run(batch, own)
        finally:
            self._leading = False
            self._hand_back(batch)
        if self._thread is not None and own is not None and (self._answered or self._waiting):
            self._wake.put(True)

    def _next_batch(self) -> list[Member]:
        waiting = self._waiting
        batch: list[Member] = []
        while waiting and len(batch) < LARGEST_GROUP:
            member = waiting.popleft()
            if member.open:  # else its caller was interrupted and has gone
                batch.append(member)
        return batch

    def _refuse(self, batch: list[Member]) -> None:
        for member in batch:
            member.fail(SaverClosedError(reason=self._closed))

    def _hand_back(self, batch: list[Member]) -> None:
        """Put undone members back in front, and leave futures to the writer thread."""
        for member in batch:
            if member.future is not None and not member.open:
                self._answered.append(member)
        for member in reversed(batch):
            if member.open:
                self._waiting.appendleft(member)
