"""INV-1: what a caller is told when the disk fails, before COMMIT and at it. The truth, or that it is not known."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from stepwell.errors import CommitUnknownError, StoreError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, everything, started
from tests.stores.disk import Disk


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "threads.db", vfs=disk.name)
    yield store
    disk.before = lambda kind, file: None
    store.close()


def failing(kind: str, error: type[apsw.Error], times: int, skip: int = 0) -> tuple[object, list[str]]:
    """Return a disk's `before` that raises for operations of a kind on the log, after `skip` of them, `times` times."""
    seen: list[str] = []

    def before(what: str, file: str) -> None:
        if what == kind and file.endswith("-wal"):
            seen.append(what)
            if skip < len(seen) <= skip + times:
                raise error("told to fail")

    return before, seen


def fail(disk: Disk, kind: str, error: type[apsw.Error], times: int = 1, skip: int = 0) -> list[str]:
    before, seen = failing(kind, error, times, skip)
    disk.before = before  # type: ignore[assignment]
    return seen


def wal_hook_fails(store: SqliteStore) -> None:
    """Make the next COMMIT end in an error after it has landed."""
    connection = store._writer.transactions.connection
    assert connection is not None

    def hook(connection: apsw.Connection, name: str, pages: int) -> int:
        raise apsw.IOError("told to fail")

    connection.set_wal_hook(hook)


def test_a_failed_sync_at_commit_is_found_not_committed(store: SqliteStore, disk: Disk) -> None:
    drive = started(store)
    before = everything(store)
    step = drive.step(records=2)
    fail(disk, "sync", apsw.IOError)
    with pytest.raises(StoreError, match="Nothing was written") as caught:
        store.commit(step)
    assert not isinstance(caught.value, CommitUnknownError)
    assert isinstance(caught.value.__cause__, apsw.IOError)
    assert everything(store) == before
    store.commit(step)
    assert everything(store)[1] == drive.last


def test_not_committed_stays_true_after_a_crash(store: SqliteStore, disk: Disk, tmp_path: Path) -> None:
    drive = started(store)
    everything(store)  # a reading connection stays open, so that reopening does not fold the log in
    step = drive.step()
    fail(disk, "sync", apsw.IOError)
    with pytest.raises(StoreError):
        store.commit(step)
    copy = tmp_path / "copy.db"  # what a crash right now would leave: the database and its log, without the index
    copy.write_bytes((tmp_path / "threads.db").read_bytes())
    copy.with_name("copy.db-wal").write_bytes((tmp_path / "threads.db-wal").read_bytes())
    recovered = SqliteStore(copy)
    assert everything(recovered)[0].head_seq == 1
    recovered.close()


def test_an_error_behind_a_landed_commit_is_found_committed(store: SqliteStore) -> None:
    drive = started(store)
    wal_hook_fails(store)
    drive.commit(records=2)
    assert everything(store)[1] == drive.last
    drive.commit()


def test_an_error_behind_a_landed_commit_without_rows_is_found_committed(store: SqliteStore) -> None:
    drive = started(store)
    wal_hook_fails(store)
    store.commit(drive.ending())
    assert everything(store)[0].status == "finished"


def test_an_error_behind_a_landed_admission_is_found_committed(store: SqliteStore) -> None:
    wal_hook_fails(store)
    started(store).commit()


def test_a_failed_sync_of_a_commit_without_rows_is_found_not_committed(store: SqliteStore, disk: Disk) -> None:
    drive = started(store)
    fail(disk, "sync", apsw.IOError)
    with pytest.raises(StoreError, match="Nothing was written"):
        store.commit(drive.ending())
    assert everything(store)[0].status == "running"


def test_every_member_of_a_failed_commit_is_told_the_same(store: SqliteStore, disk: Disk) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(5)]
    before = [everything(store, drive.thread_id) for drive in drives]
    fail(disk, "sync", apsw.IOError)
    with store._writer.lock:  # so that they are one group
        futures = [store.queue(drive.step()) for drive in drives]
    errors = [future.exception() for future in futures]
    assert all(isinstance(error, StoreError) and not isinstance(error, CommitUnknownError) for error in errors)
    assert [everything(store, drive.thread_id) for drive in drives] == before


def test_every_member_of_a_landed_commit_is_told_the_same(store: SqliteStore) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(5)]
    wal_hook_fails(store)
    with store._writer.lock:
        futures = [store.queue(drive.step()) for drive in drives]
    assert [future.exception() for future in futures] == [None] * 5
    assert [everything(store, drive.thread_id)[1] for drive in drives] == [drive.last for drive in drives]


def test_a_disk_that_stays_full_is_found_not_committed(store: SqliteStore, disk: Disk) -> None:
    drive = started(store)
    before = everything(store)
    step = drive.step()
    fail(disk, "write", apsw.FullError, times=1000)
    with pytest.raises(StoreError, match="Nothing was written") as caught:
        store.commit(step)
    assert not isinstance(caught.value, CommitUnknownError)
    assert everything(store) == before


def test_what_cannot_be_found_out_is_unknown(store: SqliteStore, disk: Disk) -> None:
    drive = started(store)
    before = everything(store)
    step = drive.step()
    fail(disk, "sync", apsw.IOError, times=1000)
    with pytest.raises(CommitUnknownError) as caught:
        store.commit(step)
    assert caught.value.fields()["thread_id"] == THREAD
    disk.before = lambda kind, file: None
    assert everything(store) == before
    store.commit(step)


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
@pytest.mark.parametrize("skip", range(6))
def test_a_write_that_fails_leaves_the_thread_unchanged(
    store: SqliteStore, disk: Disk, error: type[apsw.Error], skip: int
) -> None:
    drive = started(store)
    before = everything(store)
    step = drive.step(records=2, body=b"x" * 20_000)
    seen = fail(disk, "write", error, skip=skip)
    with pytest.raises(StoreError):
        store.commit(step)
    assert len(seen) > skip, "the disk was never written"
    assert everything(store) == before
    store.commit(step)
    assert everything(store)[1] == drive.last
    assert list(store.verify()) == []


def test_a_full_memory_database_answers_and_goes_on() -> None:
    store = SqliteStore()
    drive = started(store)
    connection = store._writer.transactions.connection
    assert connection is not None
    pages = connection.pragma("page_count")
    connection.pragma("max_page_count", pages + 2)
    before = everything(store)
    step = drive.step(body=b"x" * 100_000)
    with pytest.raises(StoreError, match="disk is full"):
        store.commit(step)
    assert everything(store) == before
    connection.pragma("max_page_count", 1 << 30)
    store.commit(step)
    assert everything(store)[1] == drive.last
    store.close()


def test_a_member_that_fills_the_disk_does_not_take_the_others_along() -> None:
    store = SqliteStore()
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(3)]
    connection = store._writer.transactions.connection
    assert connection is not None
    connection.pragma("max_page_count", connection.pragma("page_count") + 4)
    with store._writer.lock:
        futures = [store.queue(drive.step(body=b"x" * (100_000 * (drive is drives[1])))) for drive in drives]
    errors = [future.exception() for future in futures]
    assert [type(error) for error in errors] == [type(None), StoreError, type(None)]
    assert everything(store, "thread-2")[1] == drives[2].last
    store.close()
