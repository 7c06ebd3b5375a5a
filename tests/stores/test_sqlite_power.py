"""INV-1, INV-3: the power may go at any moment. With synchronous=FULL no acknowledged commit is lost that was to be
flushed; of the others the last go first; none is ever halved."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepwell.store import Commit, Store
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import Drive, started
from tests.stores.disk import Disk, Operation, after_power_cut

COMMITS = 40
STATES = 80
THREADS = ("thread-1", "thread-2")

Flush = Callable[[int], bool]


def always(number: int) -> bool:
    return True


def seldom(number: int) -> bool:
    return number % 9 == 7


@dataclass(frozen=True)
class Recording:
    """The files after admission, what the disk was asked while commits followed, and these in their order."""

    start: dict[str, bytes]
    log: list[Operation]
    commits: list[Commit]


@dataclass(frozen=True)
class Cut:
    """What a power cut left: of the commits made, how many were acknowledged, and how many are there, all the first."""

    acknowledged: int
    there: int


def recorded(path: Path, synchronous: str, flush: Flush) -> Recording:
    """Drive two threads in turn."""
    disk = Disk(waits=False)
    store = SqliteStore(path, synchronous=synchronous, vfs=disk.name)
    drives = [started(store, thread_id, run_id=f"run of {thread_id}") for thread_id in THREADS]
    connection = store._writer.transactions.connection
    assert connection is not None
    connection.wal_checkpoint(mode=1)
    connection.wal_autocheckpoint(30)  # so that the log is folded in a few times
    start = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
    disk.log.clear()
    commits: list[Commit] = []
    for number in range(COMMITS):
        commit = drives[number % len(drives)].step(records=number % 3, body=b"b" * (100 + 150 * number))
        commit.flush = flush(number)
        store.commit(commit)
        commits.append(commit)
        disk.mark()
    log = list(disk.log)
    store.close()
    disk.unregister()
    return Recording(start, log, commits)


def head_of(store: Store, thread_id: str) -> int:
    with store.reading() as reader:
        newest = reader.newest(thread_id, "")
        assert newest is not None
        parent = newest.parent_seq
        found = 0 if parent is None else len(reader.records(thread_id, parent))
        assert found == 0 if newest.seq == 1 else newest.seq - found - 1 == parent, "half a commit"
    return newest.seq


def power_cuts(tmp_path: Path, synchronous: str, flush: Flush, seed: int) -> tuple[Recording, Iterator[Cut]]:
    """Return the recording, and what each of many power cuts in it leaves."""
    (tmp_path / "recorded").mkdir()
    recording = recorded(tmp_path / "recorded" / "threads.db", synchronous, flush)
    assert any(operation.kind == "sync" for operation in recording.log)
    return recording, _cuts(tmp_path, recording, random.Random(seed))


def _cuts(tmp_path: Path, recording: Recording, dice: random.Random) -> Iterator[Cut]:
    disk, log = Disk(waits=False), recording.log
    for number in range(STATES):
        files, acknowledged = after_power_cut(recording.start, log[: dice.randrange(len(log) + 1)], dice)
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        store = SqliteStore(folder / "threads.db", synchronous="normal", vfs=disk.name)
        assert list(store.verify()) == []
        heads = {thread_id: head_of(store, thread_id) for thread_id in THREADS}
        store.close()
        there = [heads[commit.thread_id] >= commit.rows.head_seq for commit in recording.commits]
        assert there == sorted(there, reverse=True), "a later commit is there without an earlier one"
        yield Cut(acknowledged, sum(there))
    disk.unregister()


def check_full(tmp_path: Path, seed: int) -> None:
    _, cuts = power_cuts(tmp_path, "full", always, seed)
    assert max(cut.acknowledged - cut.there for cut in cuts) <= 0


def check_unflushed(tmp_path: Path, seed: int) -> None:
    recording, cuts = power_cuts(tmp_path, "full", seldom, seed)
    lost = []
    for cut in cuts:
        acknowledged = recording.commits[: cut.acknowledged]
        needed = max((number for number, commit in enumerate(acknowledged, 1) if commit.flush), default=0)
        assert cut.there >= needed
        lost.append(cut.acknowledged - cut.there)
    assert max(lost) > 1, "nothing was at stake"


@pytest.mark.crash
def test_full_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    check_full(tmp_path, 1)


@pytest.mark.crash
def test_what_is_not_flushed_is_lost_last_first_and_never_behind_a_flushed_commit(tmp_path: Path) -> None:
    check_unflushed(tmp_path, 2)


@pytest.mark.crash
def test_normal_may_lose_the_last_ones_and_halves_none(tmp_path: Path) -> None:
    _, cuts = power_cuts(tmp_path, "normal", always, 3)
    assert max(cut.acknowledged - cut.there for cut in cuts) > 0


@pytest.mark.soak
@pytest.mark.crash
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("check", [check_full, check_unflushed])
def test_the_power_goes_at_many_moments(tmp_path: Path, check: Callable[[Path, int], None], seed: int) -> None:
    check(tmp_path, seed)


# -- what waits for the disk ------------------------------------------------------------------------------------------


class Waiting:
    """A store on a disk, and how often a write has waited for it."""

    def __init__(self, path: Path, synchronous: str = "full") -> None:
        self.disk = Disk()
        self.store = SqliteStore(path, synchronous=synchronous, vfs=self.disk.name)
        self.drives = [started(self.store, thread_id, run_id=f"run of {thread_id}") for thread_id in THREADS]
        self.drives[0].commit()  # the first one behind an empty log syncs its header too
        self.look()

    def look(self) -> None:
        """Count from here on."""
        self._before = self._now()

    def _now(self) -> tuple[int, int]:
        log = self.disk.log
        return self.store.counts.syncs, sum(row.kind == "sync" and row.file.endswith("-wal") for row in log)

    def spent(self) -> int:
        """Return how many syncs there were since the last look; the store and the disk must agree."""
        before = self._before
        self.look()
        told, done = self._before[0] - before[0], self._before[1] - before[1]
        assert told == done
        return told

    def group(self, *commits: Commit) -> int:
        """Land commits as one transaction; return its syncs."""
        transactions = self.store.counts.transactions
        with self.store._writer.lock:
            futures = [self.store.queue(commit) for commit in commits]
        for future in futures:
            future.result()
        assert self.store.counts.transactions - transactions == 1
        return self.spent()


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    waiting = Waiting(tmp_path / "threads.db")
    yield waiting
    waiting.store.close()


def unflushed(drive: Drive) -> Commit:
    commit = drive.step(records=1)
    commit.flush = False
    return commit


def test_a_commit_waits_for_the_disk_unless_it_says_not_to(waiting: Waiting) -> None:
    drive, spent = waiting.drives[0], []
    for flush in (True, False, False, True, True):
        waiting.store.commit(drive.step() if flush else unflushed(drive))
        spent.append(waiting.spent())
    assert spent == [1, 0, 0, 1, 1]


def test_an_admission_waits_for_the_disk_whatever_came_before(waiting: Waiting) -> None:
    waiting.store.commit(unflushed(waiting.drives[0]))
    started(waiting.store, "thread-3", run_id="run-3")
    assert waiting.spent() == 1


def test_a_renewal_does_not_wait_for_the_disk(waiting: Waiting) -> None:
    drive = waiting.drives[0]
    assert waiting.store.renew(drive.thread_id, drive.run_id, drive.epoch, 30.0)
    assert waiting.spent() == 0
    drive.commit()
    assert waiting.spent() == 1


def test_a_group_waits_once_for_all_if_one_of_it_has_to(waiting: Waiting) -> None:
    one, other = waiting.drives
    assert waiting.group(unflushed(one), other.step(), unflushed(one)) == 1
    assert waiting.group(other.step(), one.step()) == 1
    assert waiting.group(unflushed(one), unflushed(other), unflushed(one)) == 0


def test_a_reopened_file_is_waited_for_again(waiting: Waiting) -> None:
    drive = waiting.drives[0]
    waiting.store.commit(unflushed(drive))
    waiting.store.before_fork()  # closes the file; the next write opens it
    waiting.store.after_fork_in_parent()
    drive.commit()
    waiting.look()
    waiting.store.commit(unflushed(drive))
    assert waiting.spent() == 0
    drive.commit()
    assert waiting.spent() == 1


def test_an_interruption_while_the_disk_is_chosen_leaves_no_commit_unflushed(waiting: Waiting) -> None:
    drive, transactions = waiting.drives[0], waiting.store._writer.transactions
    execute = transactions._execute

    def interrupted(statement: str, *bindings: Any) -> None:
        execute(statement, *bindings)
        raise KeyboardInterrupt

    step = unflushed(drive)
    transactions._execute = interrupted  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        waiting.store.commit(step)
    transactions._execute = execute
    step.flush = True
    waiting.store.commit(step)
    assert waiting.spent() == 1
    waiting.store.commit(unflushed(drive))
    assert waiting.spent() == 0
    drive.commit()
    assert waiting.spent() == 1


def test_less_than_full_waits_for_nothing(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path / "threads.db", synchronous="normal")
    waiting.drives[0].commit()
    assert waiting.spent() == 0
    assert waiting.store.counts.syncs == 0
    waiting.store.close()


def test_memory_waits_for_nothing() -> None:
    store = SqliteStore()
    started(store).commit()
    assert store.counts.syncs == 0
    store.close()
