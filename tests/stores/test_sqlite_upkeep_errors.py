"""INV-1 for what keeps threads: a disk that is full, or fails, at any of its writes and syncs, during each such call.

What the call says is true, the database is as it was before or as it is after, and the call can be made again.
"""

import operator
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import apsw
import pytest

from stepwell import START, Encryption, SqliteSaver, StateGraph, StepwellError
from stepwell.savers.keeping import KeepingSaver
from stepwell.stores.encrypted.wrapping import with_encryption
from stepwell.stores.sqlite import SqliteStore
from tests.runtime.graphs import thread
from tests.stores.disk import Disk

KEYS = {"old": Encryption.new_key(), "new": Encryption.new_key()}


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def grow(state: Log) -> Log:
    return {"log": ["a large value " * 1500]}


def lived(path: Path) -> None:
    """Have threads "t", "u" in a file, and "moved" in a file of its own."""
    with SqliteSaver(path, encryption=Encryption(KEYS, current="old")) as saver:
        builder = StateGraph(Log)
        builder.add_node("grow", grow)
        builder.add_edge(START, "grow")
        graph = builder.compile(checkpointer=saver, name="g")
        for name in ("t", "u", "moved"):
            for number in range(3):
                graph.invoke({"log": [str(number)]}, thread(name) | {"run_id": f"{name}{number}"})
        saver.export_thread("moved", path.with_suffix(".thread"))
        saver.delete_thread("moved")


CALLS: dict[str, Callable[[KeepingSaver, Path], object]] = {
    "prune": lambda saver, path: saver.prune("t", keep_last=1),
    "prune all": lambda saver, path: saver.prune({}, keep_last=1),
    "delete": lambda saver, path: saver.delete_thread("t"),
    "delete runs": lambda saver, path: saver.delete_for_runs(["t0", "t1"], missing_ok=True),
    "copy": lambda saver, path: saver.copy_thread("t", "copy"),
    "import": lambda saver, path: saver.import_thread(path.with_suffix(".thread")),
    "rekey": lambda saver, path: saver.rekey(),
    "repair": lambda saver, path: saver.repair("t"),
}


MOST = 5
"""At so many operations each call is failed."""


class Failing:
    """A disk's `before` that raises at one operation on a file of the database, or from it on."""

    def __init__(self, nth: int, error: type[apsw.Error], *, stays: bool) -> None:
        self.nth, self.error, self.stays, self.seen = nth, error, stays, 0

    def __call__(self, kind: str, file: str) -> None:
        if kind in ("write", "sync") and "threads.db" in file:
            self.seen += 1
            if self.seen == self.nth or (self.stays and self.seen > self.nth):
                raise self.error("told to fail")


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk(waits=False)
    yield disk
    disk.unregister()


class Place:
    """A copy of a file and what belongs to it, opened on a disk or on a good one."""

    def __init__(self, whole: Path, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "threads.db"
        for suffix in (".db", ".thread"):
            shutil.copy(whole.with_suffix(suffix), self.path.with_suffix(suffix))

    @contextmanager
    def opened(self, disk: Disk | None = None) -> Iterator[KeepingSaver]:
        store = SqliteStore(self.path, vfs=None if disk is None else disk.name)
        with KeepingSaver(with_encryption(store, Encryption(KEYS, current="new"))) as saver:
            yield saver

    def carry_out(self, call: str, disk: Disk, failing: Failing) -> StepwellError | None:
        """Make the call while the disk fails; return what the caller is told."""
        with self.opened(disk) as saver:
            disk.before = failing
            try:
                CALLS[call](saver, self.path)
            except StepwellError as error:
                return error
            finally:
                disk.before = lambda kind, file: None
        return None

    def content(self) -> dict[str, Any]:
        """Return, by thread, how many rows each table has, and which key wraps its data key."""
        with closing(sqlite3.connect(self.path)) as connection:
            found: dict[str, Any] = {}
            for table in ("checkpoints", "records", "runs", "anchors", "blobs", "lineages"):
                counted = connection.execute(f"select thread_id, count(*) from {table} group by thread_id")
                for name, rows in counted:
                    found.setdefault(name, {})[table] = rows
            for name, key_id in connection.execute("select thread_id, key_id from keys"):
                found.setdefault(name, {})["key"] = key_id
        return found


@pytest.mark.parametrize("call", CALLS)
def test_a_disk_that_fails_while_threads_are_kept_leaves_each_as_it_was_or_as_it_is_after(
    call: str, tmp_path: Path, disk: Disk
) -> None:
    whole = tmp_path / "threads.db"
    lived(whole)
    if call == "repair":
        with closing(sqlite3.connect(whole)) as connection, connection:
            connection.execute("update checkpoints set body = x'00' where thread_id = 't' and step = 5")
    before = Place(whole, tmp_path / "before").content()
    well = Place(whole, tmp_path / "well")
    quiet = Failing(0, apsw.FullError, stays=False)
    assert well.carry_out(call, disk, quiet) is None
    after = well.content()
    assert after != before
    for stays in (False, True):
        for nth in range(1, quiet.seen + 1, 1 + quiet.seen // MOST):
            place = Place(whole, tmp_path / f"{nth} {stays}")
            told = place.carry_out(call, disk, Failing(nth, (apsw.FullError, apsw.IOError)[nth % 2], stays=stays))
            found = place.content()
            assert told is not None or found == after, f"said to be done, with the disk failing at {nth}"
            for name in {*before, *after}:
                assert found.get(name) in (before.get(name), after.get(name)), f"{name} with the disk failing at {nth}"
            with place.opened() as saver:
                assert saver.verify().is_sound or (call == "repair" and found == before)
                if found != after:
                    CALLS[call](saver, place.path)
            assert place.content() == after
