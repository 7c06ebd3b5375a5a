"""The schema of a SQLite database: its version, kept in the file's header, and migrating it.

Both numbers in the header change with the transaction that changes the tables. The write lock lets one process in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from stepwell.errors import UnsupportedStorageError
from stepwell.stores.shared.migrating import Migration, known_migrations, migrate
from stepwell.stores.sqlite import sql
from stepwell.stores.sqlite.damage import DAMAGE, damaged_file

APPLICATION_ID = 1400139895


SCRIPTS = f"{__package__}.migrations"


class SqliteSchema:
    """One database, as migrations see it."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self.where = repr(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the write lock for one transaction."""
        self._connection.execute(sql.BEGIN_WRITE)
        try:
            yield
            self._connection.execute(sql.COMMIT)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute(sql.ROLLBACK)
            raise

    def version(self) -> int:
        """Return the schema version; 0 for an empty file. Raises where the file is another program's."""
        version = int(self._connection.pragma("user_version"))
        if self._connection.pragma("application_id") != APPLICATION_ID:
            if self._connection.execute(sql.query("count_tables")).get:
                told = f"{self._path!r} holds the tables of another program; give Stepwell its own file."
                raise UnsupportedStorageError(told, path=self._path)
            return 0
        if version < 1:
            raise damaged_file(f"its schema version is {version}", self._path)
        return version

    def run(self, migration: Migration) -> None:
        """Run the script, and note the version it leads to."""
        for _ in self._connection.execute(migration.script):
            pass  # a script of several statements runs on as its rows are taken
        self._connection.pragma("application_id", APPLICATION_ID)
        self._connection.pragma("user_version", migration.version)

    def reason(self, error: Exception) -> str | None:
        """Return what SQLite says; None where the file cannot even be read, which is told otherwise."""
        return str(error) if isinstance(error, apsw.Error) and not _is_damage(error) else None


def ensure_schema(connection: apsw.Connection, path: str) -> None:
    """Bring a database to the newest schema; without a lock where it has it."""
    known = known_migrations(SCRIPTS)
    if connection.pragma("user_version") == len(known) and connection.pragma("application_id") == APPLICATION_ID:
        return
    migrate(SqliteSchema(connection, path), known)


def _is_damage(error: apsw.Error) -> bool:
    return isinstance(error, DAMAGE) and not isinstance(error, apsw.SQLError)
