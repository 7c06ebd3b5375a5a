"""One driver at a time: who may run a thread, who is told that it is busy, and who joins."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepwell import NestedThreadError, SqliteSaver, ThreadBusyError, points
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import GIVEN, Call, Counted, Log, chain, letters, note, thread


class Held:
    """A sync node that stays inside until it is let go."""

    def __init__(self) -> None:
        self.reached, self.release = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self, state: Log) -> dict[str, list[str]]:
        self.calls += 1
        self.reached.set()
        assert self.release.wait(60)
        return {"log": ["held"]}


@pytest.fixture
def held(saver: SqliteSaver) -> Any:
    """A graph that is being run by another thread of this process, the node that holds it, and the results."""
    node = Held()
    results: list[Any] = []
    graph = chain(("held", node)).compile(checkpointer=saver)
    driver = threading.Thread(target=lambda: results.append(graph.invoke({}, thread(run_id="r1"))))
    driver.start()
    assert node.reached.wait(60)
    yield graph, node, results, driver
    node.release.set()
    driver.join()


def test_a_second_run_on_a_thread_is_refused_and_changes_nothing(held: Any, call: Call) -> None:
    """INV-2."""
    graph, node, results, driver = held
    before = graph.get_state(thread())
    for given in GIVEN:
        with pytest.raises(ThreadBusyError, match=r"Thread t is being run by .* r1"):
            call(graph, given, thread())
    with pytest.raises(ThreadBusyError):
        graph.update_state(thread(), {"log": ["x"]})
    with pytest.raises(ThreadBusyError):
        graph.fork(thread())
    assert graph.get_state(thread()) == before
    node.release.set()
    driver.join()
    assert results == [{"log": ["held"]}]
    assert call(graph, None, thread()) == {"log": ["held"]}


def test_the_same_run_id_joins_the_run_that_is_going_on(held: Any, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-3: both callers get the one result. The first may go on once the second has looked twice."""
    graph, node, results, driver = held
    looks = itertools.count(1)

    def look(point: str) -> None:
        if point == points.ADMISSION and next(looks) == 2:
            node.release.set()

    monkeypatch.setattr(points, "hook", look)
    assert call(graph, {}, thread(run_id="r1")) == {"log": ["held"]}
    driver.join()
    assert results == [{"log": ["held"]}]
    assert node.calls == 1


def test_K1_of_many_callers_with_one_run_id_one_runs_and_all_get_its_result(saver: SqliteSaver) -> None:
    """DBOS's report 544: concurrent calls with one workflow id were all executed."""
    node = Counted("once")
    graph = chain(("once", node)).compile(checkpointer=saver)
    together = threading.Barrier(10)

    def submit(_: int) -> Any:
        together.wait(60)
        return graph.invoke({"log": ["in"]}, thread(run_id="order-7"))

    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(submit, range(10)))
    assert results == [{"log": ["in", "once"]}] * 10
    assert node.calls == 1


def test_J7_of_many_that_find_the_same_dead_run_one_continues_it(deaths: Deaths) -> None:
    """DBOS's report 742: who recovered by an old list ran what was another's by then. Only a claim that landed runs."""
    saver, node = Saver(deaths.clock), Counted("b")
    graph = chain(("a", note("a")), ("b", node)).compile(checkpointer=saver)
    deaths.dies_at(points.MERGED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    deaths.revive()
    together = threading.Barrier(8)

    def recover(_: int) -> Any:
        together.wait(60)
        try:
            return graph.invoke(None, thread())
        except ThreadBusyError:
            return "busy"

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(recover, range(8)))
    assert [result for result in results if result not in ("busy", {"log": ["a", "b"]})] == []
    assert node.calls == 2, "once in the process that died, once after it"
    assert [(run.status, run.attempts) for run in saver.runs("t")] == [("finished", 2)]


def test_I11_an_edit_from_another_process_is_not_lost_quietly(tmp_path: Path) -> None:
    """Yuxi's report 875: a server and a worker shared a file, and an edit during a run was lost without a word."""
    node = Held()
    with SqliteSaver(tmp_path / "threads.db") as worker, SqliteSaver(tmp_path / "threads.db") as server:
        running, editing = (chain(("held", node)).compile(checkpointer=each) for each in (worker, server))
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(running.invoke, {}, thread())
            assert node.reached.wait(60)
            with pytest.raises(ThreadBusyError):
                editing.update_state(thread(), {"log": ["edit"]})
            node.release.set()
            assert run.result() == {"log": ["held"]}
        editing.update_state(thread(), {"log": ["edit"]})
        assert running.get_state(thread()).values == {"log": ["held", "edit"]}


def test_a_node_cannot_drive_the_thread_it_runs_on(call: Call, saver: SqliteSaver) -> None:
    inner = letters("x").compile(checkpointer=saver, name="g")

    def node(state: Log) -> dict[str, list[str]]:
        with pytest.raises(NestedThreadError, match="Thread t is being driven by this call's own node"):
            inner.invoke({}, thread())
        return {"log": inner.invoke({}, thread("another"))["log"]}

    graph = chain(("node", node)).compile(checkpointer=saver, name="g")
    assert call(graph, {}, thread()) == {"log": ["x"]}


def test_of_many_callers_at_once_each_succeeds_as_a_whole_or_is_told_that_it_is_busy(saver: SqliteSaver) -> None:
    """INV-2: the log holds what the successful calls wrote, each complete, in the order of their supersteps."""
    graph = chain(("a", lambda state: {"log": [state["log"][-1]]}), ("b", note("end"))).compile(checkpointer=saver)
    together = threading.Barrier(8)
    succeeded: list[str] = []

    def work(name: str) -> None:
        together.wait(60)
        for attempt in range(5):
            try:
                graph.invoke({"log": [f"{name}{attempt}"]}, thread())
            except ThreadBusyError:
                continue
            succeeded.append(f"{name}{attempt}")

    workers = [threading.Thread(target=work, args=(name,)) for name in "stuvwxyz"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    log = graph.get_state(thread()).values["log"]
    assert sorted(log[::3]) == sorted(succeeded)
    assert log == [entry for name in log[::3] for entry in (name, name, "end")]


def test_edits_of_many_callers_all_land(saver: SqliteSaver) -> None:
    """An edit that finds the thread changed is made anew on what is there now."""
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    together = threading.Barrier(8)

    def work(name: str) -> None:
        together.wait(60)
        graph.update_state(thread(), {"log": [name]})

    workers = [threading.Thread(target=work, args=(name,)) for name in "stuvwxyz"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(graph.get_state(thread()).values["log"]) == ["a", *"stuvwxyz"]
    assert graph.get_state(thread()).lineage == 0
