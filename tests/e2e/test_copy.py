"""A process that copies a thread and is killed: another finds the whole copy, or none, and can make it."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from stepwell import Command, SqliteSaver, points
from tests.runtime.graphs import ask, chain, note, thread
from tests.stores.process import Process

TRANSACTION = (points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE)

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def copying(parent: Connection, path: Path) -> None:
    with SqliteSaver(path) as saver:
        saver.copy_thread("t", "copy")
        parent.send("copied")


def forking(parent: Connection, path: Path) -> None:
    with SqliteSaver(path) as saver:
        graph = asking(saver)
        graph.fork(thread(), thread_id="copy")
        parent.send("copied")


def asking(saver: SqliteSaver) -> Any:
    return chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver, name="asking")


DEATHS = [(copying, points.COPY_READ), *((act, point) for act in (copying, forking) for point in TRANSACTION)]


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    with ExitStack() as stack:

        def start(*arguments: Any, crash_at: str) -> Process:
            process = Process(*arguments, crash_at=crash_at)
            stack.callback(process.close)
            return process

        yield start


@pytest.mark.parametrize(
    ("act", "point"),
    [(copying, points.COPY_READ), *((act, point) for act in (copying, forking) for point in TRANSACTION)],
)
def test_a_copy_whose_process_is_killed_is_whole_or_not_there(
    act: Callable[..., None], point: str, tmp_path: Path, start: Callable[..., Process]
) -> None:
    """INV-1: for a copy of a thread, and for a fork that begins one."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        asking(saver).invoke({}, thread())
    process = start(act, path, crash_at=f"{point}:1")
    assert list(process.lines()) == []
    assert process.wait() == -signal.SIGKILL
    with SqliteSaver(path) as saver:
        graph = asking(saver)
        assert list(saver.store.verify()) == []
        there = graph.get_state(thread("copy")).values == {"log": ["a"]}
        assert there == (point == points.DURABLE)
        if not there:
            assert list(graph.get_state_history(thread("copy"))) == []
            saver.copy_thread("t", "copy")
        graph.invoke(None, thread("copy"))
        assert graph.invoke(Command(resume="yes"), thread("copy")) == {"log": ["a", "ask='yes'"]}
        assert list(saver.store.verify()) == []
