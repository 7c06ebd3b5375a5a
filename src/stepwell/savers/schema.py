"""Which schema a database has, and bringing it to the newest, for whoever has nothing but its address."""

from __future__ import annotations

from stepwell.savers.places import SCHEMA, is_server
from stepwell.stores.shared.migrating import Migration, Schema
from stepwell.stores.sqlite.connection import migrate_at, schema_at


def read_schema(place: str, schema: str | None = None) -> Schema:
    """Return which schema a database has and what is pending, without changing it. `schema`: where its tables are,
    on a server.

    Raises SchemaNewerError where a newer release has migrated it.
    """
    if not is_server(place):
        return schema_at(place)
    from stepwell.savers.postgres import PostgresSaver

    with PostgresSaver(place, schema=schema or SCHEMA) as saver:
        return saver.read_schema()


def migrate_schema(place: str, schema: str | None = None) -> list[Migration]:
    """Carry out what is pending; return what this call has done. Durable on return.

    Raises SchemaNewerError, and SchemaMigrationError where a migration fails: nothing of that one is kept.
    """
    if not is_server(place):
        return migrate_at(place)
    from stepwell.savers.postgres import PostgresSaver

    with PostgresSaver(place, schema=schema or SCHEMA) as saver:
        return saver.migrate_schema()
