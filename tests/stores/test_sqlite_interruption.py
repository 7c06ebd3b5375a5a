"""Ctrl-C and writes from inside a write: the thread that is hit is told, the others' commits land all the same."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stepwell import points
from stepwell.errors import StoreError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import everything, started
from tests.stores.waiting import wait_until


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    store = SqliteStore()
    yield store
    store.close()


@contextmanager
def hooked(hook: Callable[[str], None]) -> Iterator[None]:
    points.hook = hook
    try:
        yield
    finally:
        points.hook = None


def interrupting(at: str) -> Callable[[str], None]:
    """Return a hook that raises KeyboardInterrupt the first time the main thread reaches a point."""
    struck: list[str] = []

    def hook(point: str) -> None:
        if point == at and not struck and threading.current_thread() is threading.main_thread():
            struck.append(point)
            raise KeyboardInterrupt

    return hook


@pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE])
def test_an_interrupted_leader_takes_nobody_along(store: SqliteStore, point: str) -> None:
    mine = started(store, "mine")
    others = [started(store, f"other-{n}", run_id=f"other-run-{n}") for n in range(3)]
    with hooked(interrupting(point)), pytest.raises(KeyboardInterrupt), store._writer.lock:
        futures = [store.queue(drive.step()) for drive in others]
        mine.commit()
    for future in futures:
        future.result(timeout=30)
    for drive in others:
        assert everything(store, drive.thread_id)[1] == drive.last
    assert everything(store, "mine")[0].head_seq == (2 if point == points.DURABLE else 1)
    assert list(store.verify()) == []


def test_an_interrupted_caller_that_waits_does_not_land_later(store: SqliteStore) -> None:
    mine, other = started(store, "mine"), started(store, "other", run_id="run-2")
    held, interrupted = threading.Event(), threading.Event()

    def interrupt() -> None:
        with store._writer.lock:
            held.set()
            wait_until(lambda: len(store._writer._waiting) == 1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            interrupted.wait(30)

    thread = threading.Thread(target=interrupt)
    thread.start()
    held.wait(30)
    with pytest.raises(KeyboardInterrupt):
        mine.commit()
    interrupted.set()
    thread.join()
    other.commit()
    assert everything(store, "other")[1] == other.last
    assert everything(store, "mine")[0].head_seq == 1
    assert not store._writer._waiting


def test_more_callers_than_a_group_holds_all_land_in_order(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.stores.shared.writer.LARGEST_GROUP", 3)
    drive = started(store)
    with store._writer.lock:
        futures = [store.queue(drive.step()) for _ in range(8)]
        drive.commit()  # leads all before it, in groups, on this thread
        assert everything(store)[1] == drive.last
    for future in futures:
        future.result(timeout=30)


@pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN])
def test_closing_inside_a_write_is_refused(store: SqliteStore, point: str) -> None:
    drive = started(store)

    def hook(reached: str) -> None:
        if reached == point:
            store.close()

    step = drive.step()
    with hooked(hook), pytest.raises(StoreError, match="inside one of its own writes"):
        store.commit(step)
    assert everything(store)[0].head_seq == 1
    store.commit(step)


def test_a_write_inside_a_write_is_refused_and_does_not_land_later(store: SqliteStore) -> None:
    outer, inner = started(store, "outer"), started(store, "inner", run_id="run-2")
    errors: list[StoreError] = []

    def hook(point: str) -> None:
        if point == points.FENCED and not errors:
            with pytest.raises(StoreError, match="inside another write") as caught:
                inner.commit()
            errors.append(caught.value)

    with hooked(hook):
        outer.commit()
    outer.commit()
    assert len(errors) == 1
    assert everything(store, "inner")[0].head_seq == 1
    assert everything(store, "outer")[1] == outer.last


def test_memory_may_be_written_while_its_thread_reads_it(store: SqliteStore) -> None:
    drive = started(store)
    with store.reading() as reader:
        before = reader.newest(drive.thread_id, "")
        after = drive.commit()
        assert reader.newest(drive.thread_id, "") == after != before
