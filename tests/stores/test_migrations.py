"""Numbered migrations: carried out once, whole or not at all, however many processes open the database at once.

There is one schema as yet, so that a later release is one whose migrations these tests make up.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import points
from stepwell.errors import SchemaMigrationError, SchemaNewerError, SchemaOutdatedError, UnsupportedStorageError
from stepwell.stores.postgres.schema import SCRIPTS as POSTGRES
from stepwell.stores.shared.migrating import known_migrations
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.connection import migrate_at, schema_at
from stepwell.stores.sqlite.schema import SCRIPTS
from stepwell.testing.releases import later_release
from stepwell.testing.store_suite.drive import everything, started
from tests.stores.process import Process

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

NOTES = "create table notes (thread_id text not null, note text not null) strict"
COUNTED = """
alter table notes add column read integer not null default 0;
insert into notes select thread_id, 'from ' || status, 0 from threads;
"""
BROKEN = (
    "create table more (x integer) strict; insert into notes values ('t', 'half', 0); insert into nowhere values (1)"
)
KILLED = [
    (points.SCHEMA_CHANGED, 1, 1),
    (points.SCHEMA_DURABLE, 1, 2),
    (points.SCHEMA_CHANGED, 2, 2),
    (points.SCHEMA_DURABLE, 2, 3),
]
"""Where a process dies, at which migration, and the version it leaves behind."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of this release, with a thread in it."""
    path = tmp_path / "threads.db"
    with closing(SqliteStore(path)) as store:
        started(store).commit(records=2)
    return path


@pytest.fixture
def later() -> Iterator[None]:
    """Be a release that knows two migrations more."""
    with later_release(NOTES, COUNTED):
        yield


def content(path: Path) -> tuple[int, set[str], list[Any]]:
    """Return the version of a file, the tables that migrations made, and what is in them."""
    with closing(apsw.Connection(str(path))) as connection:
        names: Any = connection.execute("select name from sqlite_schema where name in ('notes', 'more')")
        tables = {name for (name,) in names}
        rows = connection.execute("select * from notes").fetchall() if "notes" in tables else []
        return connection.pragma("user_version"), tables, rows


def opening(parent: Connection, path: Path) -> None:
    """Wait for a line, then open the file and use it."""
    parent.send("ready")
    parent.recv()
    done = [migration.name for migration in migrate_at(str(path))]
    with closing(SqliteStore(path)) as store:
        everything(store)
    parent.send(" ".join(done) or "nothing")


def test_a_file_of_an_older_release_is_migrated_as_it_is_opened(path: Path, later: None) -> None:
    schema = schema_at(str(path))
    assert (schema.found, schema.newest) == (1, 3)
    assert [migration.name for migration in schema.pending] == ["0002_later", "0003_later"]
    with closing(SqliteStore(path)) as store:
        assert list(store.verify()) == []
        thread, *_ = everything(store)
    assert content(path) == (3, {"notes"}, [(thread.thread_id, "from running", 0)])
    assert schema_at(str(path)).pending == ()


def test_a_new_file_has_the_newest_schema_at_once(tmp_path: Path, later: None) -> None:
    with closing(SqliteStore(tmp_path / "new.db", migrate=False)) as store:
        started(store)
    assert content(tmp_path / "new.db") == (3, {"notes"}, [])


def test_who_does_not_want_a_migration_is_refused_and_told_what_runs_it(path: Path, later: None) -> None:
    told = r"threads\.db' has schema version 1; this release writes version 3\. .* run `stepwell migrate`"
    with pytest.raises(SchemaOutdatedError, match=told):
        SqliteStore(path, migrate=False)
    assert content(path) == (1, set(), [])
    migrate_at(str(path))
    SqliteStore(path, migrate=False).close()


def test_processes_that_open_one_file_at_once_migrate_it_once(path: Path, later: None) -> None:
    processes = [Process(opening, path) for _ in range(8)]
    try:
        assert [process.told() for process in processes] == ["ready"] * 8
        for process in processes:
            process.tell("go")
        done = [process.told().split() for process in processes]
        assert [process.wait() for process in processes] == [0] * 8
    finally:
        for process in processes:
            process.close()
    assert sorted(name for each in done for name in each if name != "nothing") == ["0002_later", "0003_later"]
    assert content(path)[0] == 3
    assert len(content(path)[2]) == 1


@pytest.mark.crash
@pytest.mark.parametrize(("point", "nth", "left"), KILLED)
def test_a_process_killed_while_it_migrates_leaves_the_version_before_or_after(
    path: Path, point: str, nth: int, left: int, later: None
) -> None:
    process = Process(_open, path, crash_at=f"{point}:{nth}")
    assert process.wait() == -signal.SIGKILL
    process.close()
    version, tables, rows = content(path)
    assert (version, tables, len(rows)) == (left, {"notes"} if left > 1 else set(), int(left == 3))
    with closing(SqliteStore(path)) as store:
        assert list(store.verify()) == []
    assert content(path)[0] == 3


def test_a_migration_that_fails_half_way_leaves_nothing(path: Path) -> None:
    with later_release(NOTES, COUNTED, BROKEN):
        with pytest.raises(SchemaMigrationError, match=r"0004_later of .* failed: no such table: nowhere\.") as caught:
            SqliteStore(path)
        assert caught.value.fields()["found"] == 3
        assert schema_at(str(path)).found == 3
    version, tables, rows = content(path)
    assert (version, tables, [note for _, note, _ in rows]) == (3, {"notes"}, ["from running"])
    with later_release(NOTES, COUNTED), closing(SqliteStore(path)) as store:  # the release that knows 3 goes on
        assert list(store.verify()) == []


@pytest.mark.parametrize("use", [SqliteStore, lambda path: schema_at(str(path)), lambda path: migrate_at(str(path))])
def test_a_file_that_a_newer_release_migrated_is_refused_and_kept(path: Path, use: Callable[[Path], object]) -> None:
    with later_release(NOTES):
        SqliteStore(path).close()
    before = content(path)
    told = r"schema version 2; this release knows 1\. Install the release that wrote it"
    with pytest.raises(SchemaNewerError, match=told) as caught:
        use(path)
    assert isinstance(caught.value, UnsupportedStorageError)
    assert (caught.value.fields()["found"], caught.value.fields()["newest"]) == (2, 1)
    assert content(path) == before


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in known_migrations(SCRIPTS)] == [1]
    assert known_migrations(SCRIPTS)[0].name == "0001_threads"


def _open(parent: Connection, path: Path) -> None:
    SqliteStore(path).close()


def test_migrations_come_in_pairs() -> None:
    """The same numbers and names for both databases."""
    names = [[migration.name for migration in known_migrations(each)] for each in (SCRIPTS, POSTGRES)]
    assert names[0] == names[1]
