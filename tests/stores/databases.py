"""Databases for tests: one a worker and server, with the schema in it, emptied before each test that uses it.

Emptying costs a millisecond or two, a new database half a second.
"""

from __future__ import annotations

from functools import cache

import psycopg
from psycopg import sql

from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.schema import migrate_schema
from stepwell.stores.postgres.sql import SCHEMA
from tests.stores.servers import Server, shared


@cache
def _prepared(version: int, worker: str) -> tuple[Server, psycopg.Connection, sql.Composed]:
    server, name = shared(version), f"worker_{worker}"
    with server.admin() as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    connection = psycopg.connect(server.conninfo(name), autocommit=True)
    made = OwnConnections(server.conninfo(name))
    migrate_schema(made, SCHEMA)
    made.close()
    tables = connection.execute("select tablename from pg_tables where schemaname = %s", (SCHEMA,)).fetchall()
    emptied = [sql.SQL("delete from {}").format(sql.Identifier(SCHEMA, name)) for (name,) in tables if name != "meta"]
    return server, connection, sql.SQL("; ").join(emptied)


def empty_database(version: int, worker: str) -> str:
    """Return how to connect to this worker's database, which holds the schema and no row."""
    server, connection, empty = _prepared(version, worker)
    connection.execute(empty)
    return server.conninfo(f"worker_{worker}")


class Lasting(OwnConnections):
    """Connections that outlive the stores that use them: a new one costs a server more than most tests do."""

    def close(self) -> None:
        """Do nothing."""


@cache
def lasting_connections(conninfo: str) -> Lasting:
    """Return the connections to a database that all tests of this process share."""
    return Lasting(conninfo)
