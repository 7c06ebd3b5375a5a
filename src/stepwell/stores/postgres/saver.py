"""The store object: the contract's verbs, each handed to the part that does it.

The public savers wrap it. One object serves every thread and every event loop of a process, and needs no loop of its
own. After `os.fork` the child's copy opens its own connections and holds no lease of the parent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from stepwell.clock import Clock
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
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connections, lent
from stepwell.stores.postgres.snapshots import Snapshots
from stepwell.stores.postgres.sql import SCHEMA
from stepwell.stores.postgres.transaction import Transactions
from stepwell.stores.shared.fork import watch
from stepwell.stores.shared.holder import is_dead
from stepwell.stores.shared.member import Renewal
from stepwell.stores.shared.writer import Writer


class PostgresStore:
    """Threads in one schema of a PostgreSQL database."""

    blocking = True

    def __init__(self, connections: Connections, *, schema: str = SCHEMA, clock: Clock | None = None) -> None:
        self.counts = Counts()
        self.sealer: Sealer = PLAIN
        self.schema = schema
        self.connections = connections
        self._transactions = Transactions(connections, schema, clock, self.counts)
        self._writer = Writer(self._transactions)
        self._snapshots = Snapshots(connections, schema)
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
        """Tell whether another store object keeps the same schema of the same database."""
        if self is other or not isinstance(other, PostgresStore):
            return self is other
        return self.schema == other.schema and self.database() == other.database()

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive, as far as can be known."""
        if not thread.run_id or thread.lease_until <= self._transactions.now():
            return False
        return not is_dead(thread.holder, self._transactions.clock.boot_id)

    def database(self) -> tuple[object, ...]:
        """Return by what this database is known among all databases."""
        return self._transactions.database()

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
        """Return what the tables take, with their indexes."""
        with lent(self.connections) as connection:
            found = connection.execute(sql.query("size", self.schema)).fetchone()
        return StoreSize(int(found[0]) if found is not None else 0, None)

    def vacuum(self, full: bool = False) -> None:
        """Make the room of what was deleted usable again; `full`: give it back, with the tables locked meanwhile."""
        with lent(self.connections) as connection:
            connection.execute(sql.query("vacuum_full" if full else "vacuum", self.schema))

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        self._writer.check_open()
        return self._snapshots.reading()

    def verify(self) -> Iterator[Fault]:
        """Check every row; yield what is wrong with it."""
        self._writer.check_open()
        return self._snapshots.audit()

    def close(self) -> None:
        """Finish what is queued and release everything. A second call does nothing."""
        self._writer.close("close() was called on it")
        self._transactions.finish()
        self.connections.close()

    def before_fork(self) -> None:
        """Let no write be under way."""
        self._writer.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._writer.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Start anew, with connections of its own."""
        self._writer.after_fork_in_child(False)
