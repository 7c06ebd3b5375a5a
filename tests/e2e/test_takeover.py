"""Two processes and one thread: who may drive it, who may not any more, and who goes on after a sudden death."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import SqliteSaver, ThreadBusyError
from tests.e2e.crash_child import CONFIG, World, holding
from tests.e2e.forked import ROOT, environment

pytestmark = pytest.mark.crash


class Child:
    """A process that drives the thread and holds inside its second node."""

    def __init__(self, folder: Path, lease_seconds: float) -> None:
        command = [sys.executable, "-m", "tests.e2e.crash_child", "hold", str(folder), str(lease_seconds)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, text=True)

    def line(self) -> str:
        """Return the next line the child prints, "" at its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def release(self) -> list[str]:
        """Let the node go on; return what the child prints from then on."""
        return self.process.communicate("go on\n")[0].split()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        yield saver
        assert list(saver.store.verify()) == []


@pytest.fixture
def graph(saver: SqliteSaver, tmp_path: Path) -> Any:
    """The graph the child runs, as this process would run it."""
    return holding(World(str(tmp_path)), hold=False).compile(checkpointer=saver, name="held")


@pytest.fixture
def child(request: pytest.FixtureRequest, saver: SqliteSaver, tmp_path: Path) -> Iterator[Child]:
    """A child that has reached the node it holds in, its first superstep committed and handed out."""
    running = Child(tmp_path, getattr(request, "param", 30.0))
    assert [running.line(), running.line()] == ["a", "reached"]
    yield running
    running.process.kill()
    running.process.communicate()


def history(graph: Any) -> list[tuple[int, str]]:
    return [(snapshot.seq, snapshot.digest) for snapshot in graph.get_state_history(CONFIG)]


def test_of_two_processes_on_one_thread_the_second_is_told_that_it_is_busy(child: Child, graph: Any) -> None:
    """INV-2: it changes nothing, and the first one finishes undisturbed."""
    before = history(graph)
    for given in ({"log": ["mine"]}, None):
        with pytest.raises(
            ThreadBusyError, match=rf"Thread t is being run by process {child.process.pid} \(boot \w+\)"
        ):
            graph.invoke(given, CONFIG)
    with pytest.raises(ThreadBusyError):
        graph.update_state(CONFIG, {"log": ["mine"]})
    assert history(graph) == before
    assert child.release() == ["held", "b", "finished"]
    assert graph.get_state(CONFIG).values["log"] == ["in", "a:1", "held by the child", "b:3"]


def test_J4_a_killed_holder_is_succeeded_at_once(child: Child, graph: Any, tmp_path: Path) -> None:
    """aegra's pull request 526: after a kill a run stayed "running" and its thread busy for ever.

    Here its lease has 30 seconds to go, and nobody waits for it: the process is seen to be gone.
    """
    child.process.kill()
    child.process.wait()
    assert graph.invoke(None, CONFIG)["log"] == ["in", "a:1", "held by the heir", "b:3"]
    ran = [line[1] for line in World(str(tmp_path)).lines() if line[0] == "run"]
    assert ran == ["a", "held", "held", "b"]


def take_over(graph: Any) -> Any:
    """Continue the thread as soon as its lease has run out."""
    while True:
        try:
            return graph.invoke(None, CONFIG)
        except ThreadBusyError as busy:
            threading.Event().wait(busy.fields()["expires_in"])


@pytest.mark.parametrize("child", [1.0], indirect=True)
def test_J2_a_holder_frozen_past_its_lease_loses_the_thread_and_changes_nothing(child: Child, graph: Any) -> None:
    """aegra's pull request 547: a stalled attempt finished its successor's lease and result.

    INV-2: thawed, it gets LeaseLostError, hands out nothing more, and every row is as its successor left it.
    """
    child.freeze()
    result = take_over(graph)
    assert result["log"] == ["in", "a:1", "held by the heir", "b:3"]
    after = history(graph)
    child.process.send_signal(signal.SIGCONT)
    assert child.release() == ["lease_lost"]
    assert history(graph) == after
    assert graph.get_state(CONFIG).values == result


@pytest.mark.parametrize("child", [1.0], indirect=True)
def test_a_frozen_holder_that_nobody_succeeded_may_go_on(child: Child, graph: Any) -> None:
    """Expiry gives others the right to take over; by itself it takes nothing from the holder."""
    child.freeze()
    with pytest.raises(ThreadBusyError) as busy:
        graph.invoke(None, CONFIG)
    threading.Event().wait(busy.value.fields()["expires_in"])
    child.process.send_signal(signal.SIGCONT)
    assert child.release() == ["held", "b", "finished"]
    assert graph.get_state(CONFIG).values["log"] == ["in", "a:1", "held by the child", "b:3"]


@pytest.mark.parametrize("child", [1.0], indirect=True)
def test_J1_a_lease_is_renewed_while_a_node_runs(child: Child, graph: Any) -> None:
    """LangGraph's report 7417: a run with one long step was begun a second time beside itself.

    The node takes longer than the lease; the thread stays its own.
    """
    for _ in range(2):
        with pytest.raises(ThreadBusyError) as busy:
            graph.invoke(None, CONFIG)
        threading.Event().wait(busy.value.fields()["expires_in"])
    with pytest.raises(ThreadBusyError):
        graph.invoke(None, CONFIG)
    assert child.release() == ["held", "b", "finished"]


def test_a_run_id_continues_its_crashed_run(child: Child, graph: Any) -> None:
    """INV-3: whoever sends the same input under the same run id gets that run's result."""
    child.process.kill()
    child.process.wait()
    run_id = graph.get_state(CONFIG).run_id
    result = graph.invoke(None, {**CONFIG, "run_id": run_id})
    assert result["log"] == ["in", "a:1", "held by the heir", "b:3"]
    assert {snapshot.run_id for snapshot in graph.get_state_history(CONFIG)} == {run_id}


def test_a_new_input_after_a_crash_drops_the_crashed_run(child: Child, graph: Any) -> None:
    """What was dropped stays in the history; nothing of it runs again."""
    child.process.kill()
    child.process.wait()
    result = graph.invoke({"log": ["new"]}, CONFIG)
    assert result["log"] == ["in", "a:1", "new", "a:3", "held by the heir", "b:5"]
