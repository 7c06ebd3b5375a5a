"""The store object: the contract's verbs, each handed to the part that does it.

The public savers wrap it. One object serves every thread and every event loop of a process. After `os.fork` the child's
copy reopens the file and holds no lease of the parent's; an in-memory one is closed there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import apsw

from stepwell.clock import Clock, SystemClock
from stepwell.errors import UnsupportedStorageError
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
    Store,
    StoreSize,
    ThreadRow,
)
from stepwell.stores.shared.fork import watch
from stepwell.stores.shared.holder import is_gone
from stepwell.stores.shared.member import Renewal
from stepwell.stores.shared.migrating import require_newest
from stepwell.stores.shared.writer import Writer
from stepwell.stores.sqlite.connection import MEMORY, schema_at
from stepwell.stores.sqlite.snapshots import FileSnapshots, MemorySnapshots
from stepwell.stores.sqlite.transaction import Transactions
from stepwell.stores.sqlite.vacuuming import size_of, vacuum

Result = TypeVar("Result")

SYNCHRONOUS = ("full", "normal")


class SqliteStore:
    """Threads in one SQLite file, or in memory with the path ":memory:".

    `synchronous="normal"` is faster and loses the last commits when the machine loses power; "full" loses none.
    With `migrate=False` a file of an older schema is refused instead of migrated: SchemaOutdatedError.
    `max_bytes` bounds what is kept in memory: a write for which there is no room fails as on a full disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        *,
        synchronous: str = "full",
        clock: Clock | None = None,
        vfs: str | None = None,
        max_bytes: int | None = None,
        migrate: bool = True,
    ) -> None:
        if synchronous not in SYNCHRONOUS:
            raise UnsupportedStorageError(f"synchronous must be one of {SYNCHRONOUS}, not {synchronous!r}.")
        self.path = os.fspath(path)
        if not migrate and Path(self.path).exists():
            require_newest(schema_at(self.path))
        self.blocking = self.path != MEMORY
        self.counts = Counts()
        self.sealer: Sealer = PLAIN
        self._clock = clock or SystemClock()
        transactions = Transactions(self.path, synchronous, self._clock, self.counts, vfs)
        self._transactions = transactions
        self._writer = Writer(transactions, memory=not self.blocking)
        if max_bytes is not None:
            self._writer.transactions.limit(max_bytes)
        self._snapshots = FileSnapshots(self.path, vfs) if self.blocking else MemorySnapshots(self._writer)
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

    def is_same(self, other: Store) -> bool:
        """Tell whether another store object keeps the same file."""
        if self is other or not isinstance(other, SqliteStore):
            return self is other
        return self.blocking and other.blocking and Path(self.path).samefile(other.path)

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive, as far as can be known."""
        if not thread.run_id or thread.lease_until <= self._clock.boottime():
            return False
        return not is_gone(thread.holder, self._clock.boot_id())

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

    def size(self) -> StoreSize:
        """Return what the database takes."""
        return self._alone(size_of)

    def vacuum(self, full: bool = False) -> None:
        """Write the database anew without its free pages; who writes waits meanwhile, `full` or not."""
        self._alone(lambda connection: vacuum(connection, self.path))

    def _alone(self, work: Callable[[apsw.Connection], Result]) -> Result:
        """Do something on the writer's connection, between transactions."""
        with self._writer.lock:
            self._writer.check_open()
            return work(self._transactions.opened())

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        self._writer.check_open()
        return self._snapshots.reading()

    def verify(self) -> Iterator[Fault]:
        """Check every row; yield every fault."""
        self._writer.check_open()
        return self._snapshots.audit()

    def close(self) -> None:
        """Finish what is queued and release everything. A second call does nothing."""
        self._snapshots.close()
        self._writer.close("close() was called on it")

    def before_fork(self) -> None:
        """Close the file; whoever uses it next reopens it."""
        self._writer.before_fork()
        self._snapshots.close_free()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._writer.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Start anew, or refuse work where a connection was in use across the fork."""
        self._writer.after_fork_in_child(self._snapshots.in_use())
