"""Killed while it prunes, deletes, or gives and wraps keys: real processes, real SIGKILL, at every point they pass.

What is left verifies and decrypts, with the thread as it was or as it was to be; doing it again ends as if nothing had
happened.
"""

import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stepwell.testing import record_points
from tests.e2e.forked import Processes
from tests.e2e.keeping_child import Job, do, graph_of, live, opened

VERBS = ("prune", "delete runs", "delete", "rekey", "signal")

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    running = Processes("tests.e2e.keeping_child")
    yield running
    running.close()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived")
    live(str(folder))
    return folder


def seen(folder: Path) -> Any:
    """Return what is in the database, every row of it verified and decrypted: rows of each table, which key wraps each
    data key, and what the threads say."""
    with opened(str(folder)) as saver:
        assert list(saver.store.verify()) == []
        threads = {each.thread_id: graph_of(saver).get_state(each.config).values for each in saver.threads()}
    with closing(sqlite3.connect(folder / "threads.db")) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")]
        rows = {name: connection.execute(f"select count(*) from {name}").fetchone() for name in tables}
        keys = connection.execute("select thread_id, key_id from keys order by thread_id").fetchall()
    return rows, keys, threads


@pytest.mark.parametrize("verb", VERBS)
def test_whoever_is_killed_while_looking_after_a_database_has_done_all_of_it_or_can_do_it_again(
    verb: str, lived: Path, processes: Processes, tmp_path: Path
) -> None:
    """INV-1, INV-10."""
    before = seen(lived)
    undisturbed = shutil.copytree(lived, tmp_path / "undisturbed")
    with record_points() as reached:
        do(verb, str(undisturbed))
    expected, passed = seen(undisturbed), Counter[str]()
    assert expected != before
    for number, point in enumerate(reached):
        passed[point] += 1
        folder = shutil.copytree(lived, tmp_path / str(number))
        job = Job(verb, str(folder), f"{point}:{passed[point]}")
        assert processes.run(job) == -signal.SIGKILL, job
        after = seen(folder)
        assert verb == "rekey" or after in (before, expected), job
        assert after[2].get("t") in (before[2]["t"], expected[2].get("t")), job
        do(verb, str(folder))
        assert seen(folder) == expected, job
    assert {"transaction.begun", "transaction.written", "transaction.durable"} <= passed.keys()
