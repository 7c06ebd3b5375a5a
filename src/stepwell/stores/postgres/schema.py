"""The schema of a PostgreSQL database: its version, kept in the table `meta`, and migrating it.

Everything is one transaction a migration, DDL included, and the lock that lets one process in is the transaction's: it
works through a pooler, and a process that dies lets go of it. Nothing is created that is there, so that a role without
the right to create schemas can be given one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from stepwell.errors import UnsupportedStorageError
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection, Connections, lent
from stepwell.stores.postgres.damage import is_lost, unavailable, unreadable
from stepwell.stores.shared.migrating import (
    NONE_YET,
    Migration,
    Schema,
    known_migrations,
    migrate,
    require_newest,
    schema_of,
)

SCRIPTS = f"{__package__}.migrations"


def checked_schema(schema: str) -> str:
    """Return a name that a schema may have."""
    if not isinstance(schema, str) or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_$-]{0,62}", schema):
        told = f"schema= is a name of at most 63 letters, digits, _, $ and -, not {schema!r}."
        raise UnsupportedStorageError(told, reason="no name of a schema")
    if schema.startswith("pg_") or schema == "information_schema":
        raise UnsupportedStorageError(f"The schema {schema!r} is PostgreSQL's own.", reason="no name of a schema")
    return schema


class PostgresSchema:
    """One schema of a database, as migrations see it."""

    def __init__(self, connection: Connection, schema: str, where: str) -> None:
        self._connection = connection
        self._schema = schema
        self.where = where

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold a lock of this schema's for one transaction."""
        execute = self._connection.execute
        execute(sql.BEGIN)
        try:
            execute(self._query("lock_schema"), {"schema": self._schema})
            yield
            execute(sql.COMMIT)
        except BaseException:
            if not self._connection.closed:
                execute(sql.ROLLBACK)
            raise

    def version(self) -> int:
        """Return the schema version; 0 where there is none of its tables. Raises where they are another program's."""
        found = self._connection.execute(self._query("count_tables"), {"schema": self._schema}).fetchall()
        ((tables, has_meta),) = found
        if not has_meta:
            if tables:
                told = f"{self.where}: the schema {self._schema} holds tables of another program; give schema= another."
                raise UnsupportedStorageError(told, where=self.where)
            return NONE_YET
        rows = self._connection.execute(self._query("schema_version")).fetchall()
        if not rows or not rows[0][0].isdecimal():
            told = f"{self.where}: the schema {self._schema} does not say its version. Restore it from a backup."
            raise UnsupportedStorageError(told, where=self.where)
        return int(rows[0][0])

    def run(self, migration: Migration) -> None:
        """Run the script, and note the version it leads to."""
        if not self._connection.execute(self._query("find_schema"), {"schema": self._schema}).fetchall():
            self._connection.execute(self._query("create_schema"))
        self._connection.execute(sql.within(self._schema, migration.script))
        self._connection.execute(self._query("put_schema_version"), {"version": str(migration.version)})

    def reason(self, error: Exception) -> str | None:
        """Return what PostgreSQL says; None where the connection is gone, which is told otherwise."""
        if not isinstance(error, psycopg.Error) or is_lost(error, self._connection):
            return None
        return (error.diag.message_primary or str(error)).rstrip(".")

    def _query(self, name: str) -> str:
        return sql.query(name, self._schema)


def read_schema(connections: Connections, schema: str) -> Schema:
    """Return which schema a database has, and what this release would still do to it."""
    with _asked(connections) as connection:
        return schema_of(PostgresSchema(connection, schema, connections.where), known_migrations(SCRIPTS))


def migrate_schema(connections: Connections, schema: str) -> list[Migration]:
    """Bring a database to the newest schema; return what this call has carried out. Durable on return."""
    with _asked(connections) as connection:
        database, known = PostgresSchema(connection, schema, connections.where), known_migrations(SCRIPTS)
        return migrate(database, known) if schema_of(database, known).pending else []


class CheckedConnections:
    """Connections to a database whose schema is known to be this release's: looked at once, before the first use."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self.plain = connections
        self.where = connections.where
        self._schema = schema
        self._lock = threading.Lock()
        self._sound = False

    def take(self) -> Connection:
        """Return a connection. Raises SchemaOutdatedError, SchemaNewerError or, with no tables, what to call."""
        if not self._sound:
            self._check()
        return self.plain.take()

    def give_back(self, connection: Connection) -> None:
        """Take a connection back."""
        self.plain.give_back(connection)

    def forget_idle(self) -> None:
        """Close what nobody has."""
        self.plain.forget_idle()

    def close(self) -> None:
        """Close the connections."""
        self.plain.close()

    def _check(self) -> None:
        with self._lock:
            found = read_schema(self.plain, self._schema)
            if found.found == NONE_YET:
                told = f"{self.where} has no tables of Stepwell's in the schema {self._schema}:"
                told = f"{told} call setup() once, or run `stepwell migrate`."
                raise UnsupportedStorageError(told, where=self.where)
            require_newest(found)
            self._sound = True


@contextmanager
def _asked(connections: Connections) -> Iterator[Connection]:
    with lent(connections) as connection:
        try:
            yield connection
        except psycopg.OperationalError as error:
            raise unavailable(error, connections.where) from error
        except psycopg.Error as error:
            raise unreadable(error, "its schema", "", connections.where) from error
