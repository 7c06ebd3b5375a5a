"""The item store in a file (INV-14): alone in it, beside the threads of a saver, shared by two stores, damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import (
    CorruptRecordError,
    InMemorySaver,
    SaverClosedError,
    SqliteSaver,
    SqliteStore,
    UnsupportedStorageError,
)
from stepwell.errors import CommitUnknownError
from stepwell.stores.sqlite import SqliteStore as Database
from stepwell.testing import FakeClock
from stepwell.testing.item_suite import *  # noqa: F403

ADA = ("users", "ada")


@pytest.fixture
def item_store_factory(tmp_path: Path) -> Callable[..., SqliteStore]:
    return lambda clock, **options: SqliteStore(tmp_path / "items.db", clock=clock, **options)


def test_items_are_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "items.db")) as store:
        store.setup()
        store.put(ADA, "k", {"n": 1})
    with pytest.raises(SaverClosedError):
        store.get(ADA, "k")
    with SqliteStore(tmp_path / "items.db") as store:
        found = store.get(ADA, "k")
        assert found is not None
        assert found.value == {"n": 1}


def test_two_stores_on_one_file_see_each_others_items(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "items.db") as one, SqliteStore(tmp_path / "items.db") as other:
        one.put(ADA, "k", {"n": 1})
        other.put(ADA, "k", {"n": 2})
        found = one.get(ADA, "k")
        assert found is not None
        assert found.value == {"n": 2}


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_store_made_from_a_saver_keeps_items_beside_its_threads(tmp_path: Path, kind: str) -> None:
    with InMemorySaver() if kind == "memory" else SqliteSaver(tmp_path / "threads.db") as saver:
        with SqliteStore(saver) as store:
            store.put(ADA, "k", {"n": 1})
        assert [item.key for item in SqliteStore(saver).search(())] == ["k"]
        assert list(saver.threads()) == []
        assert list(saver.store.verify()) == []


def test_what_is_no_place_is_refused() -> None:
    with pytest.raises(UnsupportedStorageError, match="path or a saver"):
        SqliteStore(apsw.Connection(":memory:"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "column", ["namespace", "key", "value", "created_at", "updated_at", "ttl", "expires_at", "ordinal"]
)
def test_an_altered_item_is_named_and_not_returned(tmp_path: Path, column: str) -> None:
    """INV-10: whatever column it was."""
    path = tmp_path / "items.db"
    with SqliteStore(path) as store:
        store.put(ADA, "k", {"n": 1}, ttl=5)
        store.put(ADA, "other", {"n": 1})
    connection = apsw.Connection(str(path))
    altered: dict[str, Any] = {"namespace": "users.eve", "key": "x", "value": b"x", "ordinal": 7}
    connection.execute(f"update items set {column} = ? where key = 'k'", (altered.get(column, 2**60),))
    connection.close()
    with SqliteStore(path) as store:
        with pytest.raises(CorruptRecordError, match="namespace 'users"):
            store.search(())
        other = store.get(ADA, "other")
        assert other is not None
        (fault,) = store.rows.verify()
        assert "items row of namespace" in fault


def test_after_a_failed_commit_the_items_say_whether_it_landed(tmp_path: Path, clock: FakeClock) -> None:
    """INV-1: what nobody can know is said to be unknown."""
    store = SqliteStore(tmp_path / "items.db", clock=clock)
    database = store.rows
    assert isinstance(database, Database)

    def the_next_commit_ends_in_an_error() -> None:
        def failing(*given: Any) -> int:
            raise apsw.IOError("told to fail")

        connection = database._writer.transactions.connection
        assert connection is not None
        connection.set_wal_hook(failing)

    the_next_commit_ends_in_an_error()
    store.put(ADA, "k", {"n": 1})
    the_next_commit_ends_in_an_error()
    store.delete(ADA, "k")
    assert store.get(ADA, "k") is None
    store.put(ADA, "brief", {"n": 1}, ttl=1)
    clock.advance(60)
    the_next_commit_ends_in_an_error()
    with pytest.raises(CommitUnknownError, match="could not say whether items landed"):
        store.sweep_ttl()
    store.close()
