"""A forked child reopens the file, inherits no lease, and does not disturb its parent."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError, SaverClosedError, ThreadBusyError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from tests.stores.process import in_child

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "threads.db")
    yield store
    store.close()


def test_a_child_writes_and_reads_the_same_file(store: SqliteStore) -> None:
    drive = started(store)
    drive.commit()
    parent = everything(store)

    def act() -> None:
        assert everything(store) == parent
        mine = started(store, "child", run_id="run-2")
        mine.commit()
        store.queue(mine.step()).result(timeout=30)
        store.close()

    in_child(act)
    drive.commit()
    assert everything(store)[1] == drive.last
    assert everything(store, "child")[1].seq == 3
    assert list(store.verify()) == []


def test_a_child_inherits_no_lease(store: SqliteStore) -> None:
    drive = started(store)
    step = drive.step()
    before = everything(store)

    def act() -> None:
        with pytest.raises(LeaseLostError):
            store.commit(step)
        with pytest.raises(LeaseLostError):
            store.queue(step).result(timeout=30)
        assert not store.renew(THREAD, "run-1", drive.epoch, 30.0)
        with pytest.raises(ThreadBusyError):
            Drive(store, run_id="run-2").take_over()

    in_child(act)
    assert everything(store) == before
    store.commit(step)


def test_a_child_of_a_busy_parent_starts_its_own_writer(store: SqliteStore) -> None:
    drive = started(store)
    store.queue(drive.step()).result()
    stop = threading.Event()

    def keep_writing() -> None:
        while not stop.is_set():
            store.queue(drive.step()).result()

    writer = threading.Thread(target=keep_writing)
    writer.start()

    def act() -> None:
        mine = started(store, f"child-{os.getpid()}", run_id=f"run-{os.getpid()}")
        store.queue(mine.step()).result(timeout=30)

    for _ in range(5):
        in_child(act)
    stop.set()
    writer.join()
    assert everything(store)[1] == drive.last
    assert list(store.verify()) == []


def test_what_a_child_commits_survives_its_parents_closing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "threads.db")
    started(store)
    go_read, go_write = os.pipe()
    done_read, done_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        mine = started(store, "child", run_id="run-2")
        os.write(done_write, b"1")
        os.read(go_read, 1)  # the parent has closed meanwhile
        mine.commit()
        os.write(done_write, b"2")
        os._exit(0)
    assert os.read(done_read, 1) == b"1"
    store.close()
    os.write(go_write, b"x")
    assert os.read(done_read, 1) == b"2"
    os.waitpid(pid, 0)
    again = SqliteStore(tmp_path / "threads.db")
    assert everything(again, "child")[1].seq == 2
    again.close()


def test_a_memory_store_says_that_it_stayed_behind() -> None:
    store = SqliteStore()
    drive = started(store)
    step = drive.step()

    def act() -> None:
        for call in (lambda: store.commit(step), lambda: everything(store), lambda: list(store.verify())):
            with pytest.raises(SaverClosedError, match="forked process"):
                call()

    in_child(act)
    store.commit(step)
    store.close()


def test_a_store_forked_while_it_is_read_refuses_work_in_the_child(store: SqliteStore) -> None:
    drive = started(store)
    with store.reading() as reader:
        first = reader.newest(THREAD, "")

        def act() -> None:
            with pytest.raises(SaverClosedError, match="forked while the store was in use"):
                everything(store)

        in_child(act)
        assert reader.newest(THREAD, "") == first
    drive.commit()


def test_a_store_forked_inside_a_write_refuses_work_in_the_child(store: SqliteStore) -> None:
    drive = started(store)

    def act() -> None:
        with pytest.raises(SaverClosedError, match="forked while the store was in use"):
            everything(store)

    def hook(point: str) -> None:
        if point == points.WRITTEN:
            in_child(act)

    points.hook = hook
    try:
        drive.commit()
    finally:
        points.hook = None
    assert everything(store)[1] == drive.last


def test_a_closed_store_stays_closed_in_a_child(store: SqliteStore) -> None:
    store.close()

    def act() -> None:
        with pytest.raises(SaverClosedError, match="close"):
            store.reading()

    in_child(act)
