"""Processes that drive a thread: what the tests of several processes start, and what each kind of them does.

A process is forked, since starting an interpreter for each takes longer than the tests. It opens a store of its own,
and tells a line per thing done, so that a test knows without waiting blindly what has happened.
"""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from stepwell.store import Deletion, Store
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.crash import VARIABLE, arm_from_environment
from stepwell.testing.store_suite.drive import THREAD, Drive, started

Start = Callable[..., "Process"]
LONGEST_SECONDS = 100
"""A process ends itself after this: a test that failed leaves nothing behind."""


class Process:
    """A process that does one of the things below. `crash_at` is a point and which reach of it kills the process."""

    def __init__(self, act: Callable[..., None], *arguments: Any, crash_at: str = "") -> None:
        fork = multiprocessing.get_context("fork")
        self._mine, theirs = fork.Pipe()
        self._process = fork.Process(target=_act, args=(theirs, crash_at, act, arguments))
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def told(self) -> str:
        """Return the next line the process tells; "" once it has ended."""
        try:
            return str(self._mine.recv())
        except EOFError:
            return ""

    def lines(self) -> Iterator[str]:
        """Return all lines it tells until it ends."""
        return iter(self.told, "")

    def tell(self, line: str) -> None:
        """Let the process read a line."""
        self._mine.send(line)

    def wait(self) -> int | None:
        """Wait for its end; return its exit code, -9 where it was killed."""
        self._process.join()
        return self._process.exitcode

    def ended(self) -> bool:
        return self._process.exitcode is not None

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Make sure that it is gone."""
        self.kill()
        self.wait()
        self._mine.close()


def _act(parent: Connection, crash_at: str, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_SECONDS)
    os.environ[VARIABLE] = crash_at
    arm_from_environment()
    act(parent, *arguments)


def open_store(place: Path | str) -> Store:
    """Open the file, or the database that this connects to."""
    if isinstance(place, Path):
        return SqliteStore(place)
    from stepwell.stores.postgres.pool import OwnConnections
    from stepwell.stores.postgres.saver import PostgresStore

    return PostgresStore(OwnConnections(place))


def steps(parent: Connection, path: Path | str, count: int) -> None:
    """Admit a thread and commit steps with two records each."""
    store = open_store(path)
    drive = started(store)
    parent.send("admitted")
    for _ in range(count):
        drive.commit(records=2)
        parent.send(f"committed {drive.seq}")
    store.close()


def queued(parent: Connection, path: Path | str, count: int) -> None:
    """Admit a thread and queue steps, some in one group."""
    store = open_store(path)
    drive = started(store)
    parent.send("admitted")
    futures = [(store.queue(drive.step(records=2)), drive.seq) for _ in range(count)]
    for future, seq in futures:
        future.result()
        parent.send(f"committed {seq}")
    store.close()


def late(parent: Connection, path: Path | str) -> None:
    """Admit a thread, hold it, and commit when told to."""
    store = open_store(path)
    drive = started(store)
    parent.send("admitted")
    parent.recv()
    try:
        drive.commit(records=1)
        parent.send("committed")
    except Exception as error:
        parent.send(type(error).__name__)
    parent.send(f"renewed {store.renew(drive.thread_id, drive.run_id, drive.epoch, 30.0)}")
    store.close()


def deleting(parent: Connection, path: Path | str) -> None:
    """Delete the thread that is there."""
    store = open_store(path)
    store.delete(Deletion(THREAD, 5))
    parent.send("deleted")
    store.close()


def many(parent: Connection, path: Path | str, name: str, count: int) -> None:
    """Wait for a line, then commit steps of a thread of its own."""
    parent.send("ready")
    parent.recv()
    store = open_store(path)
    drive = Drive(store, f"thread-{name}", run_id=f"run-{name}")
    drive.admit()
    for _ in range(count):
        drive.commit()
    store.close()
    parent.send(f"done {drive.seq}")


def in_child(act: Callable[[], None]) -> None:
    """Fork, act in the child, and fail with what it raised."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        text = ""
        try:
            act()
        except BaseException:
            text = traceback.format_exc()
        os.write(write, text.encode()[-60_000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    assert text == "", text
