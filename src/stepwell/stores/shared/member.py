"""One write that waits for a transaction, and what became of it. It decides nothing."""

from __future__ import annotations

import threading
from typing import Any

from stepwell.store import Claim, Commit, Deletion, ItemWrites, KeyWrites, Message, Pruning, Queued, Repair, Restoration


class Renewal:
    """Ask for more time on a lease."""

    __slots__ = ("epoch", "lease_seconds", "run_id", "thread_id")

    def __init__(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> None:
        self.thread_id = thread_id
        self.run_id = run_id
        self.epoch = epoch
        self.lease_seconds = lease_seconds


Work = Claim | Commit | Deletion | ItemWrites | KeyWrites | Message | Pruning | Renewal | Repair | Restoration


class Member:
    """One write in the queue: open until it is known to have landed or failed, or was put off."""

    __slots__ = ("error", "future", "later", "open", "result", "sealed", "work")

    def __init__(self, work: Work, future: Queued | None = None) -> None:
        self.work = work
        self.future = future
        self.open = True
        self.result: Any = None
        self.error: BaseException | None = None
        self.later: threading.Event | None = None
        """Set once a member that was put off is answered; None for every other."""
        self.sealed: bytes | None = None
        """Digest of the thread row (of the last item) as written: by it a write is known after an error at COMMIT."""

    def fail(self, error: BaseException) -> None:
        """Close the member with an error."""
        self.error = error
        self.open = False

    def put_off(self) -> None:
        """Take the member out of its batch: whoever does this answers it with `answer_late`."""
        self.later = threading.Event()
        self.open = False

    def answer_late(self) -> None:
        """Tell who waits for a member that was put off."""
        assert self.later is not None
        self.later.set()
        self.publish()

    def publish(self) -> None:
        """Answer the future, once; not yet where the answer is still to come."""
        if self.future is None or self.future.done() or (self.later is not None and not self.later.is_set()):
            return
        self.future.answer(self.error)
