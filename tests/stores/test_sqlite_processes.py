"""INV-1, INV-2 with processes that are killed, stopped and thawed, and many of them on one file."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from stepwell import points
from stepwell.clock import SystemClock
from stepwell.errors import ThreadBusyError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from tests.stores.process import Process, Start, deleting, late, many, queued, steps

TRANSACTION = [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE]
TRIES = [(steps, 1), (steps, 2), (steps, 4), (queued, 2)]
"""What is done, and in which transaction the process dies: an admission, a first step, a later one, a queued group."""

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


class LaterClock(SystemClock):
    """The machine's clocks, an hour on: for it, every lease of another process has expired."""

    def boottime(self) -> float:
        return super().boottime() + 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that do not outlive the test."""
    with ExitStack() as stack:

        def start(act: Callable[..., None], *arguments: Any, crash_at: str = "") -> Process:
            process = Process(act, *arguments, crash_at=crash_at)
            stack.callback(process.close)
            return process

        yield start


@pytest.mark.crash
@pytest.mark.parametrize(("act", "nth"), TRIES)
@pytest.mark.parametrize("point", TRANSACTION)
def test_a_process_killed_at_any_point_leaves_all_or_nothing(
    path: Path, point: str, act: Callable[..., None], nth: int, start: Start
) -> None:
    process = start(act, path, 6, crash_at=f"{point}:{nth}")
    lines = list(process.lines())
    assert process.wait() == -signal.SIGKILL
    store = SqliteStore(path)
    assert list(store.verify()) == []
    thread, newest, history, records, runs = everything(store)
    acknowledged = max((int(line.split()[1]) for line in lines if line.startswith("committed")), default=0)
    if "admitted" in lines or thread is not None:
        assert len(runs) == 1
        assert thread.head_seq == newest.seq >= max(1, acknowledged)
        assert [row.seq for row in history] == list(range(newest.seq, 0, -3))
        assert [len(found) for found in records] == [0] + [2] * (len(history) - 1)
    if act is steps:
        landed = nth if point == points.DURABLE else nth - 1
        assert (0 if newest is None else newest.seq) == (0 if landed == 0 else 1 + 3 * (landed - 1))
    store.close()


@pytest.mark.crash
@pytest.mark.parametrize("point", [*TRANSACTION, points.ROWS_DELETED])
def test_a_process_killed_while_it_deletes_leaves_all_or_nothing(path: Path, point: str, start: Start) -> None:
    """INV-1: the thread is whole or gone; either way nobody is kept out of it."""
    with closing(SqliteStore(path)) as store:
        drive = started(store)
        drive.commit(records=2)
        store.commit(drive.ending())
        before = everything(store)
    process = start(deleting, path, crash_at=f"{point}:1")
    lines = list(process.lines())
    assert process.wait() == -signal.SIGKILL
    assert lines == []
    with closing(SqliteStore(path)) as store:
        assert list(store.verify()) == []
        left = everything(store)
        assert left == ((None, None, [], [], []) if point == points.DURABLE else before)
        if point == points.DURABLE:
            started(store)
        else:
            Drive(store, run_id="run-2").take_over()
        assert list(store.verify()) == []


@pytest.mark.crash
def test_a_stopped_process_that_thaws_after_a_takeover_changes_nothing(path: Path, start: Start) -> None:
    process = start(late, path)
    assert process.told() == "admitted"
    os.kill(process.pid, signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    now, later = SqliteStore(path), SqliteStore(path, clock=LaterClock())
    with pytest.raises(ThreadBusyError):  # stopped is not dead
        Drive(now, run_id="run-2").take_over()
    fresh = Drive(later, run_id="run-2")
    assert fresh.take_over().epoch == 2
    fresh.commit()
    before = everything(now)
    os.kill(process.pid, signal.SIGCONT)
    process.tell("go")
    assert process.told() == "LeaseLostError"
    assert process.told() == "renewed False"
    assert process.wait() == 0
    assert everything(now) == before
    now.close()
    later.close()


@pytest.mark.crash
@pytest.mark.parametrize("reaped", [True, False])
def test_the_thread_of_a_killed_process_is_free_at_once(path: Path, reaped: bool, start: Start) -> None:
    process = start(late, path)
    assert process.told() == "admitted"
    store = SqliteStore(path)
    with pytest.raises(ThreadBusyError):
        Drive(store, run_id="run-2").take_over()
    process.kill()
    assert process.told() == ""  # its end of the pipe is closed
    os.waitid(os.P_PID, process.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
    assert Drive(store, run_id="run-2").take_over().epoch == 2
    store.close()


def start_together(start: Start, path: Path, *, count: int, steps: int) -> list[Process]:
    """Start processes that all wait, then let all go."""
    processes = [start(many, path, str(number), steps) for number in range(count)]
    for process in processes:
        assert process.told() == "ready"
    for process in processes:
        process.tell("go")
    return processes


def test_I10_many_processes_share_a_file_without_one_locked_out(path: Path, start: Start) -> None:
    """LangGraph's report 8136: many concurrent saves found the database locked."""
    processes = start_together(start, path, count=4, steps=60)
    store = SqliteStore(path)
    while not all(process.ended() for process in processes):
        for number in range(4):
            with store.reading() as reader:
                reader.newest(f"thread-{number}", "")
    assert [process.told() for process in processes] == ["done 61"] * 4
    assert [process.wait() for process in processes] == [0] * 4
    assert list(store.verify()) == []
    for number in range(4):
        assert everything(store, f"thread-{number}")[1].seq == 61
    store.close()


def test_processes_that_create_one_file_at_once_all_succeed(path: Path, start: Start) -> None:
    processes = start_together(start, path, count=6, steps=3)
    assert [process.told() for process in processes] == ["done 4"] * 6
    assert [process.wait() for process in processes] == [0] * 6


def test_a_reader_in_another_process_never_sees_half_a_commit(path: Path, start: Start) -> None:
    process = start(steps, path, 60)
    assert process.told() == "admitted"
    store = SqliteStore(path)
    newest = None
    while newest is None or newest.seq < 1 + 3 * 60:
        with store.reading() as reader:
            newest = reader.newest(THREAD, "")
            assert newest is not None
            records = [] if newest.parent_seq is None else reader.records(THREAD, newest.parent_seq)
        assert len(records) == (0 if newest.seq == 1 else 2)
    assert process.wait() == 0
    store.close()
