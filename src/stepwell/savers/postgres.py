"""The saver and the item store on PostgreSQL: threads that any number of processes and machines share.

Both need psycopg, which is imported when the first of them is made: pip install 'stepwell[postgres]'. Their tables are
made by `setup()`, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from stepwell.clock import Clock
from stepwell.errors import InvalidConfigError, UnsupportedStorageError
from stepwell.items import TTLConfig
from stepwell.savers.items import OpenedItems, refuse_index
from stepwell.savers.keeping import KeepingSaver
from stepwell.savers.lifetime import DONE
from stepwell.savers.places import SCHEMA
from stepwell.savers.reading import OnUnknownType, ReadingSaver, hook_of
from stepwell.savers.retention.choosing import ttl_of
from stepwell.stores.encrypted.encryption import Encryption, checked_encryption
from stepwell.stores.encrypted.wrapping import with_encryption_later
from stepwell.stores.postgres import MAX_SIZE
from stepwell.stores.shared.compressing import checked_size
from stepwell.stores.shared.migrating import Migration, Schema

if TYPE_CHECKING:
    from stepwell.stores.postgres.connections import Connections
    from stepwell.stores.postgres.saver import PostgresStore as Database


class PostgresSaver(KeepingSaver):
    """Keeps threads in one schema of a PostgreSQL database, shared by any number of processes.

    Give it a connection string, as in `PostgresSaver("postgresql://user@host/database")`, or a `psycopg_pool` pool of
    yours as `pool=`, which stays yours to close. Of its own connections at most `max_size` are open at once, and
    `min_size` stay so. Nothing is connected before it is first used; call `setup()` once per database before that.

    A commit is durable on return if the server's `synchronous_commit` says so. `on_unknown_type`, `encryption` and
    `ttl` are those of `SqliteSaver`; whether the keys fit is found out when the database is first used.
    """

    store: Database

    def __init__(
        self,
        conninfo: str | None = None,
        *,
        pool: Any = None,
        schema: str = SCHEMA,
        min_size: int | None = None,
        max_size: int = MAX_SIZE,
        on_unknown_type: OnUnknownType = "raise",
        encryption: Encryption | None = None,
        ttl: Any = None,
        compress_above: int | None = None,
    ) -> None:
        above, kept_for = checked_size(compress_above), None if ttl is None else ttl_of(ttl)
        hook_of(on_unknown_type)
        checked_encryption(encryption)
        self._database = _opened("PostgresSaver", conninfo, pool, schema, min_size, max_size)
        super().__init__(with_encryption_later(self._database, encryption, compress_above=above), on_unknown_type)
        self._ttl = kept_for

    @classmethod
    def from_conn_string(cls, conn_string: str, *, schema: str = SCHEMA, **options: Any) -> Self:
        """Open the database for one block: `with PostgresSaver.from_conn_string("postgresql://...") as saver: ...`."""
        return cls(conn_string, schema=schema, **options)

    def setup(self) -> Any:
        """Make the tables, or bring them to the newest schema, one transaction a migration; durable on return.

        Any number of processes may call it at once; where nothing is to be done, it only looks. Raises SchemaNewerError
        for a database that a newer release has migrated, SchemaMigrationError where the database refuses. What it
        returns may be awaited; `asetup` does not block the loop.
        """
        self._check_open()
        self.migrate_schema()
        return DONE

    def read_schema(self) -> Schema:
        """Return which schema the database has, and what `setup` would do to it."""
        from stepwell.stores.postgres.schema import read_schema

        return read_schema(_plain(self._database), self._database.schema)

    def migrate_schema(self) -> list[Migration]:
        """Do as `setup`; return what this call has carried out."""
        from stepwell.stores.postgres.schema import migrate_schema

        return migrate_schema(_plain(self._database), self._database.schema)


class PostgresStore(OpenedItems):
    """Keeps items in one schema of a PostgreSQL database: beside the threads of a saver, or in one of its own.

    Give it a connection string, a pool of yours as `pool=`, or the saver itself, whose connections it then shares: so
    what nodes write commits with their outcomes. `ttl=` and `index=` are those of `SqliteStore`.
    """

    def __init__(
        self,
        place: str | ReadingSaver | None = None,
        *,
        pool: Any = None,
        schema: str = SCHEMA,
        min_size: int | None = None,
        max_size: int = MAX_SIZE,
        ttl: TTLConfig | None = None,
        index: None = None,
        clock: Clock | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        refuse_index(index)
        self._database: Database | None = None
        if not isinstance(place, ReadingSaver):
            self._database = _opened("PostgresStore", place, pool, schema, min_size, max_size)
            super().__init__(with_encryption_later(self._database, encryption), ttl, clock, shared=False)
        elif encryption is None:
            super().__init__(place.store, ttl, clock, shared=True)
        else:
            raise InvalidConfigError(reason="the item store has its saver's encryption: leave it out", key="encryption")

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, ttl: TTLConfig | None = None, index: None = None, **options: Any
    ) -> Self:
        """Open the database for one block: `with PostgresStore.from_conn_string("postgresql://...") as store: ...`."""
        return cls(conn_string, ttl=ttl, index=index, **options)

    def setup(self) -> Any:
        """Make the tables, or bring them to the newest schema, as `PostgresSaver.setup` does."""
        self._check_open()
        from stepwell.stores.postgres.schema import migrate_schema

        if self._database is not None:
            migrate_schema(_plain(self._database), self._database.schema)
        return DONE


def _opened(name: str, conninfo: str | None, pool: Any, schema: str, min_size: int | None, max_size: int) -> Database:
    try:
        from stepwell.stores.postgres.connections import UserConnections
        from stepwell.stores.postgres.pool import OwnConnections
        from stepwell.stores.postgres.saver import PostgresStore as Database
        from stepwell.stores.postgres.schema import CheckedConnections, checked_schema
    except ImportError as error:
        raise ImportError(f"PostgreSQL needs psycopg ({error}): pip install 'stepwell[postgres]'") from error
    schema = checked_schema(schema)
    if (conninfo is None) == (pool is None):
        raise UnsupportedStorageError(f"{name} takes a connection string or pool=, one of them.", reason="no place")
    if conninfo is None:
        return Database(CheckedConnections(UserConnections(pool), schema), schema=schema)
    if not isinstance(conninfo, str):
        given = f"{type(conninfo).__module__}.{type(conninfo).__qualname__}"
        raise UnsupportedStorageError(
            f'{name} takes a connection string, not a {given}: pass "postgresql://user@host/db", or pool=.',
            reason="no connection string",
        )
    own = OwnConnections(conninfo, min_size=min_size, max_size=max_size)
    return Database(CheckedConnections(own, schema), schema=schema)


def _plain(store: Database) -> Connections:
    """Return the store's connections before its schema is what it must be."""
    from stepwell.stores.postgres.schema import CheckedConnections

    assert isinstance(store.connections, CheckedConnections)
    return store.connections.plain


AsyncPostgresSaver = PostgresSaver
AsyncPostgresStore = PostgresStore
