"""INV-1, INV-2 on PostgreSQL with processes that are killed, stopped, thawed and forked, and many at once."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from stepwell import points
from stepwell.clock import SystemClock
from stepwell.errors import LeaseLostError, ThreadBusyError
from stepwell.store import Store
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.stores.process import Process, Start, deleting, in_child, late, many, open_store, queued, steps

TRANSACTION = [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE]
TRIES = [(steps, 1), (steps, 2), (steps, 4), (queued, 2)]
"""What is done, and in which transaction the process dies: an admission, a first step, a later one, a queued one."""

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


class LaterClock(SystemClock):
    """The database's clock, an hour on: for it, every lease of another process has expired."""

    def boottime(self) -> float:
        return time.time() + 3600.0


@pytest.fixture
def conninfo(worker_id: str) -> str:
    """One version serves: what dies is the client."""
    return empty_database(VERSIONS[-1], worker_id)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that do not outlive the test."""
    with ExitStack() as stack:

        def start(act: Callable[..., None], *arguments: Any, crash_at: str = "") -> Process:
            process = Process(act, *arguments, crash_at=crash_at)
            stack.callback(process.close)
            return process

        yield start


@pytest.fixture
def store(conninfo: str) -> Iterator[Store]:
    with closing(open_store(conninfo)) as made:
        yield made


@pytest.mark.crash
@pytest.mark.parametrize(("act", "nth"), TRIES)
@pytest.mark.parametrize("point", TRANSACTION)
def test_a_process_killed_at_any_point_leaves_all_or_nothing(
    conninfo: str, store: Store, point: str, act: Callable[..., None], nth: int, start: Start
) -> None:
    process = start(act, conninfo, 6, crash_at=f"{point}:{nth}")
    lines = list(process.lines())
    assert process.wait() == -signal.SIGKILL
    assert list(store.verify()) == []
    thread, newest, history, records, runs = everything(store)
    acknowledged = max((int(line.split()[1]) for line in lines if line.startswith("committed")), default=0)
    if "admitted" in lines or thread is not None:
        assert len(runs) == 1
        assert thread.head_seq == newest.seq >= max(1, acknowledged)
        assert [row.seq for row in history] == list(range(newest.seq, 0, -3))
        assert [len(found) for found in records] == [0] + [2] * (len(history) - 1)
    landed = nth if point == points.DURABLE else nth - 1
    assert (0 if newest is None else newest.seq) == (0 if landed == 0 else 1 + 3 * (landed - 1))
    if thread is not None:
        Drive(store, run_id="run-2").take_over()  # the holder is dead, and known to be


@pytest.mark.crash
@pytest.mark.parametrize("point", [*TRANSACTION, points.ROWS_DELETED])
def test_a_process_killed_while_it_deletes_leaves_all_or_nothing(
    conninfo: str, store: Store, point: str, start: Start
) -> None:
    drive = started(store)
    drive.commit(records=2)
    store.commit(drive.ending())
    before = everything(store)
    process = start(deleting, conninfo, crash_at=f"{point}:1")
    assert list(process.lines()) == []
    assert process.wait() == -signal.SIGKILL
    assert everything(store) == ((None, None, [], [], []) if point == points.DURABLE else before)
    assert list(store.verify()) == []


@pytest.mark.crash
def test_a_stopped_process_that_thaws_after_a_takeover_changes_nothing(
    conninfo: str, store: Store, start: Start
) -> None:
    later = PostgresStore(OwnConnections(conninfo), clock=LaterClock())
    process = start(late, conninfo)
    assert process.told() == "admitted"
    os.kill(process.pid, signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    with pytest.raises(ThreadBusyError):  # stopped is not dead
        Drive(store, run_id="run-2").take_over()
    fresh = Drive(later, run_id="run-2")
    assert fresh.take_over().epoch == 2
    fresh.commit()
    before = everything(store)
    os.kill(process.pid, signal.SIGCONT)
    process.tell("go")
    assert process.told() == "LeaseLostError"
    assert process.told() == "renewed False"
    assert process.wait() == 0
    assert everything(store) == before
    later.close()


def test_processes_share_a_database(conninfo: str, store: Store, start: Start) -> None:
    workers = [start(many, conninfo, str(number), 10) for number in range(4)]
    for worker in workers:
        assert worker.told() == "ready"
    for worker in workers:
        worker.tell("go")
    assert [worker.told() for worker in workers] == ["done 11"] * 4
    assert [worker.wait() for worker in workers] == [0] * 4
    assert list(store.verify()) == []


def test_a_forked_child_opens_its_own_connections_and_inherits_no_lease(store: Store) -> None:
    drive = started(store)
    drive.commit()
    step = drive.step()
    parent = everything(store)

    def act() -> None:
        assert everything(store) == parent
        with pytest.raises(LeaseLostError):
            store.commit(step)
        with pytest.raises(ThreadBusyError):
            Drive(store, run_id="run-2").take_over()
        mine = started(store, "child", run_id="run-3")
        mine.commit(records=1)
        store.queue(mine.step()).result(timeout=30)
        store.close()

    in_child(act)
    store.commit(step)
    assert everything(store)[1] == drive.last
    assert everything(store, "child")[1].seq == 4
    assert list(store.verify()) == []


def test_a_thread_is_named_by_one_holder_a_process(store: Store) -> None:
    row = Drive(store).admit()
    assert row.holder.split("|")[2] == str(os.getpid())
    assert row.thread_id == THREAD
