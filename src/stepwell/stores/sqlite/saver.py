"""The store object: the contract's verbs, each handed to the part that does it.

The public savers wrap it. One object serves every thread and every event loop of a process. After `os.fork` the child's
copy reopens the file and holds no lease of the parent's; an in-memory one is closed there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from stepwell.clock import Clock, SystemClock
from stepwell.errors import UnsupportedStorageError
from stepwell.store import (
    Counts,
    Store,
    StoreSize,
    ThreadRow,
)
from stepwell.stores.shared.holder import is_gone
from stepwell.stores.shared.migrating import require_newest
from stepwell.stores.shared.verbs import StoreVerbs
from stepwell.stores.shared.writer import Writer
from stepwell.stores.sqlite.connection import MEMORY, schema_at
from stepwell.stores.sqlite.snapshots import FileSnapshots, MemorySnapshots
from stepwell.stores.sqlite.transaction import Transactions
from stepwell.stores.sqlite.vacuuming import size_of, vacuum

Result = TypeVar("Result")

SYNCHRONOUS = ("full", "normal")


class SqliteStore(StoreVerbs[Transactions]):
    """Threads in one SQLite file, or in memory with the path ":memory:".

    `synchronous="normal"` is faster and loses the last commits when the machine loses power; "full" loses none.
    With `migrate=False` a file of an older schema is refused instead of migrated: SchemaOutdatedError.
    `max_bytes` bounds what is kept in memory: a write for which there is no room fails as on a full disk.
    """

    _snapshots: FileSnapshots | MemorySnapshots

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
        self._clock = clock or SystemClock()
        counts = Counts()
        self._transactions = Transactions(self.path, synchronous, self._clock, counts, vfs)
        writer = Writer(self._transactions, memory=not self.blocking)
        if max_bytes is not None:
            self._transactions.limit(max_bytes)
        super().__init__(writer, FileSnapshots(self.path, vfs) if self.blocking else MemorySnapshots(writer), counts)

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

    def close(self) -> None:
        """Finish what is queued and release everything. A second call does nothing."""
        self._snapshots.close()
        self._writer.close("close() was called on it")

    def before_fork(self) -> None:
        """Close the file; whoever uses it next reopens it."""
        self._writer.before_fork()
        self._snapshots.close_free()

    def after_fork_in_child(self) -> None:
        """Start anew, or refuse work where a connection was in use across the fork."""
        self._writer.after_fork_in_child(self._snapshots.in_use())
