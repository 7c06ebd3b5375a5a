"""Killed at every point, in every mode, and finished as if nothing had happened: real processes, real SIGKILL.

After one process dies another finds the thread on disk and drives it on, without waiting for a lease. The other one is
this process, which has everything loaded, where it need not die itself.
"""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import SqliteSaver, events, points
from tests.e2e.crash_child import CONFIG, NOWHERE, SERVER, Job, Nodes, World, build, drive_to_its_end, open_saver
from tests.e2e.forked import Processes
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

GRAPHS = ("chain", "fan", "join", "interrupt", "retry")
KILLED = -signal.SIGKILL
SUPERSTEPS = {
    "chain": [{"a"}, {"b"}, {"c"}],
    "fan": [{"a"}, {"s"}, {"b"}],
    "join": [{"a", "b"}, {"b2"}, {"join"}],
    "interrupt": [{"a", "q"}, {"b"}],
    "retry": [{"a", "r"}, {"b"}],
}
MAY_REPEAT = {"sync": 1, "async": 2, "exit": 9}
"""Supersteps: the one in progress at the crash and, in `async`, at most the one before it, whose commit was queued."""

POINTS_OF_A_RUN = (
    *(points.ADMISSION, points.ADMITTED, points.TASK_STARTED, points.TASK_FINISHED, points.OUTCOMES_RECORDED),
    *(points.MERGED, points.COMMITTED, points.ENDED, points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE),
)
"""What these graphs pass, whether they ask, are retried or run side by side."""

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    running = Processes("tests.e2e.crash_child")
    yield running
    running.close()


def logs_agree_with_history(saver: SqliteSaver, graph: Any) -> bool:
    """Tell whether the logs of the thread's runs say what its rows say: every checkpoint once, every run to its end."""
    logs = [[entry.event for entry in saver.events(run.run_id)] for run in saver.runs("t")]
    told = [event.seq for log in logs for event in log if isinstance(event, events.CheckpointCommitted)]
    ended = all(isinstance(log[-1], events.RunFinished | events.RunPaused) for log in logs)
    return ended and sorted(told) == sorted(snapshot.seq for snapshot in graph.get_state_history(CONFIG))


class Place:
    """A folder in which one thread lives, and what can be seen of it from outside."""

    def __init__(self, path: Path, graph: str, durability: str, api: str = "sync", server: str = "") -> None:
        path.mkdir()
        if server:
            (path / SERVER).write_text(server)
        self.job = Job(graph, str(path), durability, "", api)
        self.world = World(str(path))

    def final(self) -> tuple[Any, int]:
        """Return the state and the step on disk; every row must verify."""
        with open_saver(self.job.folder) as saver:
            graph = build(self.job.graph, Nodes(self.world)).compile(checkpointer=saver, name=self.job.graph)
            snapshot = graph.get_state(CONFIG)
            assert list(saver.store.verify()) == []
            assert snapshot.next == ()
            assert logs_agree_with_history(saver, graph)
            return snapshot.values, snapshot.metadata["step"]

    def run_again_after_acknowledged(self) -> list[str]:
        """Return the tasks that ran again although their success had been handed out."""
        acknowledged: set[str] = set()
        again = []
        for word, name, *rest in self.world.lines():
            if word == "ack":
                acknowledged.add(rest[0])
            elif word == "run" and rest[0] in acknowledged:
                again.append(name)
        return again

    def supersteps_repeated(self, lines_before: int) -> int:
        """Return in how many supersteps something that was done before the crash was run after it."""
        lines = self.world.lines()
        done = {name for word, name, *_ in lines[:lines_before] if word == "done"}
        again = {name for word, name, *_ in lines[lines_before:] if word == "run"}
        return sum(bool(done & again & step) for step in SUPERSTEPS[self.job.graph])


def undisturbed(place: Place, processes: Processes) -> tuple[Any, int]:
    """Let one process drive the thread to its end, by points of which each is one to die at; return what is on disk."""
    assert processes.run(place.job._replace(crash=NOWHERE)) == 0
    assert {line[1] for line in place.world.lines() if line[0] == "passed"} <= {*POINTS_OF_A_RUN, *points.APART}
    return place.final()


def faults_of(place: Place, crash: str, expected: Any, processes: Processes) -> list[str]:
    """Kill one process at the point, finish in this one; return what is wrong with the result."""
    status = processes.run(place.job._replace(crash=crash))
    before = len(place.world.lines())
    if status not in (0, KILLED):
        return [f"{crash}: the process ended with {status}"]
    if status == 0:
        return [] if place.final() == expected else [f"{crash}: never reached, and {place.final()}"]
    drive_to_its_end(place.job)
    faults = [] if place.final() == expected else [f"{crash}: {place.final()} instead of {expected}"]
    mode = place.job.durability
    if mode == "sync" and (again := place.run_again_after_acknowledged()):
        faults.append(f"{crash}: {again} ran again after they were acknowledged")
    repeated = place.supersteps_repeated(before)
    if repeated > MAY_REPEAT[mode]:
        faults.append(f"{crash}: {repeated} supersteps were repeated")
    return faults


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_run_killed_anywhere_ends_as_if_nothing_had_happened(
    graph: str, durability: str, processes: Processes, tmp_path: Path
) -> None:
    """INV-1, INV-4: the same state, and no success that was acknowledged is run again."""
    expected = undisturbed(Place(tmp_path / "undisturbed", graph, durability), processes)
    faults = []
    for point in POINTS_OF_A_RUN:
        for nth in (1, 2, 3):
            place = Place(tmp_path / f"{point}.{nth}", graph, durability)
            faults += faults_of(place, f"{point}:{nth}", expected, processes)
    assert faults == []


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("graph", ["fan", "interrupt"])
def test_a_run_on_an_event_loop_killed_anywhere_ends_as_if_nothing_had_happened(
    graph: str, durability: str, processes: Processes, tmp_path: Path
) -> None:
    """INV-1, INV-4, driven by `astream`."""
    expected = undisturbed(Place(tmp_path / "undisturbed", graph, durability, "async"), processes)
    faults = []
    for point in POINTS_OF_A_RUN:
        place = Place(tmp_path / point, graph, durability, "async")
        faults += faults_of(place, f"{point}:2", expected, processes)
    assert faults == []


def test_a_run_on_postgres_killed_anywhere_ends_as_if_nothing_had_happened(
    processes: Processes, tmp_path: Path, worker_id: str
) -> None:
    """INV-1, INV-4, each process in a database that no other test looks at."""
    server = empty_database(VERSIONS[-1], worker_id)
    expected = undisturbed(Place(tmp_path / "undisturbed", "interrupt", "sync", server=server), processes)
    faults = []
    for point in POINTS_OF_A_RUN:
        name = point.replace(".", "_")
        place = Place(tmp_path / name, "interrupt", "sync", server=server)
        faults += faults_of(place, f"{point}:2", expected, processes)
    assert faults == []


def test_a_run_killed_again_and_again_still_ends(processes: Processes, tmp_path: Path) -> None:
    """Each process dies at its second transaction; each makes progress, so the run is never given up."""
    place = Place(tmp_path / "again", "chain", "sync")
    statuses: list[int] = []
    while not statuses or statuses[-1] == KILLED:
        statuses.append(processes.run(place.job._replace(crash=f"{points.DURABLE}:2")))
        assert len(statuses) < 10
    assert statuses[-1] == 0
    assert place.final() == ({"log": ["in", "a:1", "b:2", "c:3"]}, 3)
    assert place.run_again_after_acknowledged() == []


@pytest.mark.parametrize(("crash", "runs"), [(f"{points.BEGUN}:3", 2), (f"{points.DURABLE}:3", 1)])
def test_A1_success_and_checkpoint_are_one_write(crash: str, runs: int, processes: Processes, tmp_path: Path) -> None:
    """LangGraph's report 8039: two writes in no order let the scheduler decide whether a crash repeats a node.

    Killed as the write of `b` begins, `b` was never acknowledged and runs again; killed as soon as it is durable, it
    never does. `a` runs once in both.
    """
    place = Place(tmp_path / "a1", "chain", "sync")
    assert processes.run(place.job._replace(crash=crash)) == KILLED
    assert processes.run(place.job) == 0
    ran = [name for word, name, *_ in place.world.lines() if word == "run"]
    assert [ran.count(name) for name in "abc"] == [1, runs, 1]
    assert place.final() == ({"log": ["in", "a:1", "b:2", "c:3"]}, 3)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(
    ("point", "accepted"), [(points.BEGUN, False), (points.WRITTEN, False), (points.DURABLE, True)]
)
def test_A4_a_run_that_was_accepted_is_told_from_one_that_never_was(
    point: str, accepted: bool, durability: str, processes: Processes, tmp_path: Path
) -> None:
    """LangGraph's report 8764: a process killed during its very first write left no trace of an accepted run. INV-3."""
    place = Place(tmp_path / "a4", "chain", durability)
    assert processes.run(place.job._replace(crash=f"{point}:1")) == KILLED
    with open_saver(place.job.folder) as saver, saver.store.reading() as reader:
        assert [run.status for run in reader.runs("t")] == (["running"] if accepted else [])
        assert (reader.thread("t") is not None) == accepted
    assert place.world.lines() == []


def test_attempts_go_on_counting_after_a_crash(processes: Processes, tmp_path: Path) -> None:
    """A crashed run is continued with the attempts it has left, not with fresh ones."""
    place = Place(tmp_path / "attempts", "retry", "sync")
    assert processes.run(place.job._replace(crash=f"{points.TASK_STARTED}:4")) == KILLED
    assert processes.run(place.job) == 0
    attempts = [line[-1] for line in place.world.lines() if line[:2] in (["failed", "r"], ["run", "r"])]
    assert attempts == ["1", "2", "3"]
