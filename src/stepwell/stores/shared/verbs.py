"""The verbs of a store that every body has alike: writes go to its writer, reads to a snapshot.

A body adds what is its own: how it is opened and closed, who counts as alive, what it weighs, what a fork means to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Generic, Protocol

from stepwell.store import (
    PLAIN,
    Claim,
    Commit,
    Counts,
    Deletion,
    Fault,
    ItemWrites,
    KeyWrites,
    Message,
    MessageRow,
    Pruned,
    Pruning,
    Queued,
    Reader,
    Repair,
    Restoration,
    Sealer,
    ThreadRow,
)
from stepwell.stores.shared.fork import watch
from stepwell.stores.shared.member import Renewal
from stepwell.stores.shared.writer import Body, Writer


class Snapshots(Protocol):
    """How a body reads."""

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        ...

    def audit(self) -> Iterator[Fault]:
        """Check every row; yield every fault."""
        ...


class StoreVerbs(Generic[Body]):
    """The verbs of the contract that a writer and snapshots carry out. A body is one of these, with the rest."""

    _writer: Writer[Body]
    _snapshots: Snapshots

    def __init__(self, writer: Writer[Body], snapshots: Snapshots, counts: Counts) -> None:
        self.counts = counts
        self.sealer: Sealer = PLAIN
        self._writer = writer
        self._snapshots = snapshots
        self._shapes: set[str] = set()
        """Fingerprints whose shape is known to be in the database."""
        watch(self)

    def admit(self, claim: Claim) -> ThreadRow | None:
        """Take the thread, with everything of the claim durable; None where it is not as seen any more."""
        if claim.shape is not None and claim.shape.fingerprint in self._shapes:
            claim.shape = None
        row: ThreadRow | None = self._writer.run(claim)
        if row is not None and claim.shape is not None:
            self._shapes.add(claim.shape.fingerprint)
        return row

    def commit(self, commit: Commit) -> None:
        """Write under the fence; durable when this returns."""
        self._writer.run(commit)

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        """Queue the same write; the future is answered once it is durable."""
        return self._writer.queue(commit, wake)

    def settle(self, future: Queued) -> None:
        """Wait for a queued write, writing on this thread what is queued."""
        self._writer.settle(future)

    def append(self, message: Message) -> MessageRow:
        """Leave a message in a thread's inbox; durable when this returns."""
        row: MessageRow = self._writer.run(message)
        return row

    def write_items(self, writes: ItemWrites) -> int:
        """Write items of no run; durable when this returns."""
        return int(self._writer.run(writes))

    def write_keys(self, writes: KeyWrites) -> int:
        """Write data keys; durable when this returns."""
        return int(self._writer.run(writes))

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        """Extend the lease; False where it is somebody else's now."""
        return bool(self._writer.run(Renewal(thread_id, run_id, epoch, lease_seconds)))

    def delete(self, deletion: Deletion) -> bool:
        """Delete every row of a thread but its tombstone; False where there was no such thread."""
        return bool(self._writer.run(deletion))

    def prune(self, pruning: Pruning) -> Pruned | None:
        """Take rows out of a thread; None where it is not as seen any more."""
        pruned: Pruned | None = self._writer.run(pruning)
        return pruned

    def restore(self, restoration: Restoration) -> bool:
        """Write a thread as it was stored elsewhere; False where there is one."""
        return bool(self._writer.run(restoration))

    def repair(self, repair: Repair) -> bool:
        """Write a repair; False where the thread's row is not as seen any more."""
        return bool(self._writer.run(repair))

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        self._writer.check_open()
        return self._snapshots.reading()

    def verify(self) -> Iterator[Fault]:
        """Check every row; yield what is wrong with it."""
        self._writer.check_open()
        return self._snapshots.audit()

    def before_fork(self) -> None:
        """Let no write be under way."""
        self._writer.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._writer.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Start anew: what waited is the parent's."""
        self._writer.after_fork_in_child(False)
