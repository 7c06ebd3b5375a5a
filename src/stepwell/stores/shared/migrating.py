"""Numbered migrations, forward only: which ones a database still needs, and carrying them out one transaction each.

Script n leads to schema version n. A script, and the version it leads to, become visible together or not at all; while
it runs, nobody else migrates. Whoever comes second finds it done. What a script says is the body's (`migrations/`), and
so is how a database keeps its version and lets one process in at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import NamedTuple, Protocol

from stepwell import points
from stepwell.errors import SchemaMigrationError, SchemaNewerError, SchemaOutdatedError

NONE_YET = 0
"""The version of a database that has no schema."""


class Migration(NamedTuple):
    """One script, and the version it leads to."""

    version: int
    name: str
    script: str


of_later_release: dict[str, tuple[Migration, ...]] = {}
"""Folder → migrations that follow its own. Only tests put something here (`stepwell.testing`)."""


class Schema(NamedTuple):
    """Which schema a database has, and what leads from there to the one that this release writes."""

    where: str
    """The database, as errors name it."""
    found: int
    """0: there is none yet."""
    newest: int
    pending: tuple[Migration, ...]


class Migrating(Protocol):
    """A database as migrations see it."""

    where: str

    def alone(self) -> AbstractContextManager[None]:
        """Open a transaction that only one process is in at a time: committed at the end, undone on any error."""
        ...

    def version(self) -> int:
        """Return the schema version; raises where what is there is not Stepwell's."""
        ...

    def run(self, migration: Migration) -> None:
        """Run the script, and note the version it leads to."""
        ...

    def reason(self, error: Exception) -> str | None:
        """Return what the database says went wrong; None for an error that is not the database's."""
        ...


def known_migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations that this release knows, in order: the scripts of a folder."""
    return (*_load(package), *of_later_release.get(package, ()))


@cache
def _load(package: str) -> tuple[Migration, ...]:
    folder = files(package)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    found = tuple(
        Migration(int(name[:4]), name[:-4], _script(folder.joinpath(name).read_text("utf-8"))) for name in names
    )
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered from 1 without gaps: {names}")
    return found


def schema_of(database: Migrating, known: Sequence[Migration]) -> Schema:
    """Return which schema a database has. Raises SchemaNewerError for one that a newer release has migrated."""
    found, newest = database.version(), len(known)
    if found > newest:
        raise SchemaNewerError(where=database.where, found=found, newest=newest)
    return Schema(database.where, found, newest, tuple(known[found:]))


def require_newest(schema: Schema) -> None:
    """Raise SchemaOutdatedError where a database has an older schema; one without any is no older one."""
    if schema.pending and schema.found != NONE_YET:
        raise SchemaOutdatedError(where=schema.where, found=schema.found, newest=schema.newest)


def migrate(database: Migrating, known: Sequence[Migration]) -> list[Migration]:
    """Carry out what a database still needs; return what this call has carried out. Durable on return.

    Safe with any number of processes at once. Raises SchemaNewerError, and SchemaMigrationError for a script that
    fails: what came before it stays, it itself leaves nothing.
    """
    done: list[Migration] = []
    while True:
        with database.alone():
            pending = schema_of(database, known).pending
            if not pending:
                return done
            _carry_out(database, pending[0])
            points.reach(points.SCHEMA_CHANGED)
        points.reach(points.SCHEMA_DURABLE)
        done.append(pending[0])


def _carry_out(database: Migrating, migration: Migration) -> None:
    try:
        database.run(migration)
    except Exception as error:
        reason = database.reason(error)
        if reason is None:
            raise
        where, found = database.where, migration.version - 1
        raise SchemaMigrationError(where=where, migration=migration.name, reason=reason, found=found) from error


def _script(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
