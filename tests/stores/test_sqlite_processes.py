"""INV-1, INV-2 with processes that are killed, stopped and thawed, and many of them on one file."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stepwell import points
from stepwell.clock import SystemClock
from stepwell.errors import ThreadBusyError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, Drive, everything
from tests.stores.process import Start, start_process, tell, told

TRANSACTION = [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE]


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

        def start(*arguments: str, crash_at: str = "") -> subprocess.Popen[str]:
            process = stack.enter_context(start_process(*arguments, crash_at=crash_at))
            stack.callback(process.kill)
            return process

        yield start


@pytest.mark.crash
@pytest.mark.parametrize("kind", ["steps", "queued"])
@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("point", TRANSACTION)
def test_a_process_killed_at_any_point_leaves_all_or_nothing(
    path: Path, point: str, nth: int, kind: str, start: Start
) -> None:
    process = start(kind, str(path), "6", crash_at=f"{point}:{nth}")
    lines = [line.strip() for line in process.stdout or ()]
    code = process.wait()
    assert code == -signal.SIGKILL or (kind == "queued" and code == 0)  # a group may have needed fewer transactions
    store = SqliteStore(path)
    assert list(store.verify()) == []
    thread, newest, history, records, runs = everything(store)
    acknowledged = max((int(line.split()[1]) for line in lines if line.startswith("committed")), default=0)
    if "admitted" in lines or thread is not None:
        assert len(runs) == 1
        assert thread.head_seq == newest.seq >= max(1, acknowledged)
        assert [row.seq for row in history] == list(range(newest.seq, 0, -3))
        assert [len(found) for found in records] == [0] + [2] * (len(history) - 1)
    if kind == "steps" and code:
        landed = nth if point == points.DURABLE else nth - 1
        assert (0 if newest is None else newest.seq) == (0 if landed == 0 else 1 + 3 * (landed - 1))
    store.close()


@pytest.mark.crash
def test_a_stopped_process_that_thaws_after_a_takeover_changes_nothing(path: Path, start: Start) -> None:
    process = start("late", str(path))
    assert told(process) == "admitted"
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
    tell(process, "go")
    assert told(process) == "LeaseLostError"
    assert told(process) == "renewed False"
    assert process.wait() == 0
    assert everything(now) == before
    now.close()
    later.close()


@pytest.mark.crash
@pytest.mark.parametrize("reaped", [True, False])
def test_the_thread_of_a_killed_process_is_free_at_once(path: Path, reaped: bool, start: Start) -> None:
    process = start("late", str(path))
    assert told(process) == "admitted"
    store = SqliteStore(path)
    with pytest.raises(ThreadBusyError):
        Drive(store, run_id="run-2").take_over()
    process.kill()
    assert told(process) == ""  # its end of the pipe is closed
    os.waitid(os.P_PID, process.pid, os.WEXITED | (0 if reaped else os.WNOWAIT))
    assert Drive(store, run_id="run-2").take_over().epoch == 2
    process.wait()
    store.close()


def test_many_processes_share_a_file_without_one_locked_out(path: Path, start: Start) -> None:
    processes = [start("many", str(path), str(number), "200") for number in range(4)]
    for process in processes:
        assert told(process) == "ready"
    store = SqliteStore(path)
    for process in processes:
        tell(process, "go")
    ended: list[int] = []
    while len(ended) < 4:
        for number in range(4):
            with store.reading() as reader:
                reader.newest(f"thread-{number}", "")
        ended = [code for code in (process.poll() for process in processes) if code is not None]
    assert ended == [0] * 4
    assert [told(process) for process in processes] == ["done 201"] * 4
    assert list(store.verify()) == []
    for number in range(4):
        assert everything(store, f"thread-{number}")[1].seq == 201
    store.close()


def test_processes_that_create_one_file_at_once_all_succeed(path: Path, start: Start) -> None:
    processes = [start("many", str(path), str(number), "3") for number in range(6)]
    for process in processes:
        assert told(process) == "ready"
        tell(process, "go")
    assert [told(process) for process in processes] == ["done 4"] * 6
    assert [process.wait() for process in processes] == [0] * 6


def test_a_reader_in_another_process_never_sees_half_a_commit(path: Path, start: Start) -> None:
    store = SqliteStore(path)
    process = start("steps", str(path), "150")
    assert told(process) == "admitted"
    newest = None
    while newest is None or newest.seq < 1 + 3 * 150:
        with store.reading() as reader:
            newest = reader.newest(THREAD, "")
            assert newest is not None
            records = [] if newest.parent_seq is None else reader.records(THREAD, newest.parent_seq)
        assert len(records) == (0 if newest.seq == 1 else 2)
    assert process.wait() == 0
    store.close()
