"""Which schema a database has, and bringing it to the newest, for whoever has nothing but its address."""

from __future__ import annotations

from stepwell.stores.shared.migrating import Migration, Schema
from stepwell.stores.sqlite.connection import migrate_at, schema_at


def read_schema(path: str) -> Schema:
    """Return which schema a database has and what is pending, without changing it.

    Raises SchemaNewerError where a newer release has migrated it.
    """
    return schema_at(path)


def migrate_schema(path: str) -> list[Migration]:
    """Carry out what is pending; return what this call has done. Durable on return.

    Raises SchemaNewerError, and SchemaMigrationError where a migration fails: nothing of that one is kept.
    """
    return migrate_at(path)
