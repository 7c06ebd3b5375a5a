"""What the tables take, and giving back the room of what was deleted: statements that stand alone, in no snapshot.

Each may be repeated, so one whose connection was closed while nobody used it is asked once more on another.
"""

from __future__ import annotations

from typing import Any

import psycopg

from stepwell.errors import StoreError
from stepwell.store import StoreSize
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection, Connections, lent
from stepwell.stores.postgres.damage import is_lost, unavailable, unreadable


def size(connections: Connections, schema: str) -> StoreSize:
    """Return what the tables take, with their indexes."""
    found, _ = _alone(connections, sql.query("size", schema), "the size of its tables")
    return StoreSize(int(found[0][0] or 0), None)


def vacuum(connections: Connections, schema: str, full: bool) -> None:
    """Make the room of what was deleted usable again; `full`: give it back. Raises StoreError where the role may not:
    PostgreSQL would leave the tables as they are and only say so."""
    query = sql.query("vacuum_full" if full else "vacuum", schema)
    _, warned = _alone(connections, query, "what may be vacuumed")
    if warned:
        told = f"PostgreSQL left {len(warned)} tables as they are: {warned[0]}"
        raise StoreError(f"{told}. Vacuum as the role that owns them, or as one with MAINTAIN on them.")


def _alone(connections: Connections, query: str, what: str) -> tuple[list[Any], list[str]]:
    """Return the rows of a statement, and of what PostgreSQL warned meanwhile."""
    for last in (False, True):
        with lent(connections) as connection:
            try:
                return _warned(connection, query)
            except psycopg.Error as error:
                if not is_lost(error, connection):
                    raise unreadable(error, what, "", connections.where) from error
                if last:
                    raise unavailable(error, connections.where) from error
        connections.forget_idle()
    raise AssertionError("the second one is the last")


def _warned(connection: Connection, query: str) -> tuple[list[Any], list[str]]:
    warnings: list[str] = []

    def note(said: psycopg.errors.Diagnostic) -> None:
        if said.severity_nonlocalized == "WARNING" and said.message_primary:
            warnings.append(said.message_primary)

    connection.add_notice_handler(note)
    try:
        found = connection.execute(query, prepare=False)
        return (found.fetchall() if found.description else []), warnings
    finally:
        connection.remove_notice_handler(note)
