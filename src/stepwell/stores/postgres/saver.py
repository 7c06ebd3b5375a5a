"""The store object: the contract's verbs, each handed to the part that does it.

The public savers wrap it. One object serves every thread and every event loop of a process, and needs no loop of its
own. After `os.fork` the child's copy opens its own connections and holds no lease of the parent's.
"""

from __future__ import annotations

from stepwell.clock import Clock
from stepwell.store import (
    Counts,
    Store,
    StoreSize,
    ThreadRow,
)
from stepwell.stores.postgres import room
from stepwell.stores.postgres.connections import Connections
from stepwell.stores.postgres.snapshots import Snapshots
from stepwell.stores.postgres.sql import SCHEMA
from stepwell.stores.postgres.transaction import Transactions
from stepwell.stores.shared.holder import is_dead
from stepwell.stores.shared.verbs import StoreVerbs
from stepwell.stores.shared.writer import Writer


class PostgresStore(StoreVerbs[Transactions]):
    """Threads in one schema of a PostgreSQL database."""

    blocking = True

    def __init__(self, connections: Connections, *, schema: str = SCHEMA, clock: Clock | None = None) -> None:
        counts = Counts()
        self.schema = schema
        self.connections = connections
        self._transactions = Transactions(connections, schema, clock, counts)
        super().__init__(Writer(self._transactions), Snapshots(connections, schema), counts)

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

    def size(self) -> StoreSize:
        """Return what the tables take, with their indexes."""
        return room.size(self.connections, self.schema)

    def vacuum(self, full: bool = False) -> None:
        """Make the room of what was deleted usable again; `full`: give it back, with the tables locked meanwhile."""
        room.vacuum(self.connections, self.schema, full)

    def close(self) -> None:
        """Finish what is queued and release everything. A second call does nothing."""
        self._writer.close("close() was called on it")
        self._transactions.finish()
        self.connections.close()
