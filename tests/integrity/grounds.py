"""Where the threads of a scene are kept: a saver whose rows a test changes behind its back, and sets right again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any, Protocol

import apsw
import psycopg

from stepwell import Encryption, InMemorySaver, PostgresSaver
from stepwell.savers.keeping import KeepingSaver
from stepwell.stores.postgres.sql import SCHEMA
from tests.stores.databases import empty_database

Row = dict[str, Any]


class Ground(Protocol):
    """A saver, and its database as one sees it without the saver."""

    @property
    def saver(self) -> KeepingSaver:
        """What the threads are kept by."""
        ...

    def keep(self) -> None:
        """Remember every row as it is now."""
        ...

    def restore(self) -> None:
        """Have every row as it was remembered."""
        ...

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table in some order that stays, by their columns."""
        ...

    def change(self, table: str, where: Row, column: str, value: Any, *, is_text: bool) -> bool:
        """Set a column of one row, or with no column delete the row; False where the database does not allow it."""
        ...

    def close(self) -> None:
        """Close the saver."""
        ...


class InMemory:
    """A database of SQLite's in memory."""

    def __init__(self, encryption: Encryption | None = None) -> None:
        self.saver = InMemorySaver(encryption=encryption)
        store: Any = self.saver.store
        self.connection: apsw.Connection = getattr(store, "inner", store)._writer.transactions.connection

    def keep(self) -> None:
        """Remember every row as it is now."""
        self._kept = self.connection.serialize("main")

    def restore(self) -> None:
        """Have every row as it was remembered."""
        self.connection.deserialize("main", self._kept)

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table in some order that stays, by their columns."""
        cursor = self.connection.execute(f"select * from {table}")
        return [_named(cursor.get_description(), row) for row in cursor]

    def change(self, table: str, where: Row, column: str, value: Any, *, is_text: bool) -> bool:
        """Set a column of one row, or with no column delete the row; False where the database does not allow it."""
        condition = " and ".join(f"{key} = ?" for key in where)
        try:
            if not column:
                self.connection.execute(f"delete from {table} where {condition}", tuple(where.values()))
            else:
                given = "cast(? as text)" if is_text else "?"
                statement = f"update {table} set {column} = {given} where {condition}"
                self.connection.execute(statement, (value, *where.values()))
        except apsw.ConstraintError:
            return False
        return self.connection.changes() == 1

    def close(self) -> None:
        """Close the saver."""
        self.saver.close()


class OnPostgres:
    """A database of a PostgreSQL, this worker's. What is remembered is in tables of a connection of its own."""

    def __init__(self, version: int, worker: str, encryption: Encryption | None = None) -> None:
        conninfo = empty_database(version, worker)
        self.connection = psycopg.connect(conninfo, autocommit=True)
        self.connection.execute(f"set search_path to {SCHEMA}")
        self.saver = PostgresSaver(conninfo, encryption=encryption)

    def keep(self) -> None:
        """Remember every row as it is now."""
        listed = "select tablename from pg_tables where schemaname = %s and tablename <> 'meta' order by 1"
        tables = [name for (name,) in self.connection.execute(listed, (SCHEMA,))]
        for table in tables:
            self.connection.execute(f"create temp table kept_{table} as table {SCHEMA}.{table}")
        self._restoring = "; ".join(map(_restoring, tables))

    def restore(self) -> None:
        """Have every row as it was remembered."""
        self.connection.execute(self._restoring)

    def rows(self, table: str) -> list[Row]:
        """Return the rows of a table in some order that stays, by their columns."""
        cursor = self.connection.execute(f"select * from {table} order by 1, 2, 3, 4")
        assert cursor.description is not None
        return [_named(cursor.description, row) for row in cursor]

    def change(self, table: str, where: Row, column: str, value: Any, *, is_text: bool) -> bool:
        """Set a column of one row, or with no column delete the row; False where the database does not allow it."""
        condition = " and ".join(f"{key} = %s" for key in where)
        bound = tuple(where.values())
        try:
            if not column:
                done = self.connection.execute(f"delete from {table} where {condition}", bound)
            else:
                given = value.decode() if is_text and isinstance(value, bytes) else value
                done = self.connection.execute(f"update {table} set {column} = %s where {condition}", (given, *bound))
        except (psycopg.IntegrityError, psycopg.DataError, UnicodeDecodeError):
            return False
        return done.rowcount == 1

    def close(self) -> None:
        """Close the saver."""
        with closing(self.connection):
            self.saver.close()


def _restoring(table: str) -> str:
    there, kept = f"{SCHEMA}.{table}", f"kept_{table}"
    return (
        f"delete from {there} as found where not exists"
        f" (select from {kept} as stood where stood.* is not distinct from found.*);"
        f"insert into {there} (table {kept} except table {there})"
    )


def _named(description: Iterable[Sequence[Any]], row: Sequence[Any]) -> Row:
    return dict(zip([column[0] for column in description], row, strict=True))
