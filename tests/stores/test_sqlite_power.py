"""INV-1, INV-3: the power may go at any moment. With synchronous=FULL no acknowledged commit is lost; none is ever
halved."""

import random
from pathlib import Path

import pytest

from stepwell.store import Store
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, started
from tests.stores.disk import Disk, Operation, after_power_cut

COMMITS = 40
STATES = 120

pytestmark = pytest.mark.crash


def recorded(path: Path, synchronous: str) -> tuple[dict[str, bytes], list[Operation]]:
    """Return the files after admission, and what the disk was asked while commits followed."""
    disk = Disk()
    store = SqliteStore(path, synchronous=synchronous, vfs=disk.name)
    drive = started(store)
    connection = store._writer.transactions.connection
    assert connection is not None
    connection.wal_checkpoint(mode=1)
    connection.wal_autocheckpoint(30)  # so that the log is folded in a few times
    start = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
    disk.log.clear()
    for number in range(COMMITS):
        drive.commit(records=number % 3, body=b"b" * (100 + 150 * number))
        disk.mark()
    log = list(disk.log)
    store.close()
    return start, log


def head_of(store: Store) -> int:
    with store.reading() as reader:
        newest = reader.newest(THREAD, "")
        assert newest is not None
        parent = newest.parent_seq
        found = 0 if parent is None else len(reader.records(THREAD, parent))
        assert found == 0 if newest.seq == 1 else newest.seq - found - 1 == parent, "half a commit"
    return newest.step


def lost(tmp_path: Path, synchronous: str, seed: int) -> list[int]:
    """Return how many acknowledged commits each of many power cuts took away."""
    dice = random.Random(seed)
    (tmp_path / "recorded").mkdir()
    start, log = recorded(tmp_path / "recorded" / "threads.db", synchronous)
    steps = [row.kind for row in log]
    assert "sync" in steps
    losses = []
    for number in range(STATES):
        files, acknowledged = after_power_cut(start, log[: dice.randrange(len(log) + 1)], dice)
        folder = tmp_path / f"{synchronous}-{number}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        store = SqliteStore(folder / "threads.db", synchronous="normal")
        assert list(store.verify()) == []
        losses.append(steps_up_to(acknowledged) - head_of(store))
        store.close()
    return losses


def steps_up_to(acknowledged: int) -> int:
    """Return the step number of the last acknowledged checkpoint: its seq minus two, its records counted."""
    return acknowledged + sum(number % 3 for number in range(acknowledged)) - 1


@pytest.mark.parametrize("seed", [1, 2])
def test_full_loses_no_acknowledged_commit(tmp_path: Path, seed: int) -> None:
    assert max(lost(tmp_path, "full", seed)) <= 0


def test_normal_may_lose_the_last_ones_and_halves_none(tmp_path: Path) -> None:
    assert max(lost(tmp_path, "normal", 3)) > 0
