"""The agent at the refund desk: killed anywhere, it goes on, and each tool has done its work once."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from stepwell import Approve, Command, Reject, points
from stepwell.cli.application import stepwell
from stepwell.testing import SimulatedCrash, record_points
from tests.e2e.forked import Processes, environment
from tests.examples.agent_child import KILLED, Job
from tests.examples.conftest import EXAMPLES
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import thread

REQUEST = {"messages": [{"role": "user", "content": "Order 7 arrived broken."}]}
DONE = "Done. I told the customer of order 7: refunded 1250 cents for order 7."
TOLD = ["refunded 1250 cents for order 7", "told the customer of order 7: refunded 1250 cents for order 7"]


def done(folder: Path = Path()) -> list[str]:
    """Return what the shop has done."""
    return sorted(path.read_text() for path in (folder / "shop").glob("*"))


def run_to_its_end(graph: Any, decision: Any = None) -> str:
    """Go on with the agent's thread, wherever it stands, as a person would who knows nothing of crashes."""
    begun = graph.get_state(thread()).values
    desk = graph.invoke(None if begun else REQUEST, thread())
    while questions := desk.get("__interrupt__"):
        desk = graph.invoke(
            Command(resume={question.id: decision or Approve("ann") for question in questions}), thread()
        )
    return str(desk["messages"][-1]["content"])


def test_the_agent_refunds_once_it_may(agent: ModuleType) -> None:
    graph = agent.graph.compile(checkpointer=Saver(Deaths().clock))
    desk = graph.invoke(REQUEST, thread())
    (question,) = desk["__interrupt__"]
    assert question.value.planned_action == "refund(order='7', cents=1250)"
    assert done() == []
    assert run_to_its_end(graph) == DONE
    assert done() == TOLD


def test_the_agent_is_told_no(agent: ModuleType) -> None:
    graph = agent.graph.compile(checkpointer=Saver(Deaths().clock))
    said = run_to_its_end(graph, Reject("eve", "too late"))
    assert said == "Done. I told the customer of order 7: could not refund, as eve said no: too late."
    assert done() == ["told the customer of order 7: could not refund, as eve said no: too late"]


def passed(agent: ModuleType) -> list[tuple[str, int]]:
    """Return the points an undisturbed run passes, each with how often it was reached by then."""
    graph = agent.graph.compile(checkpointer=Saver(Deaths().clock))
    with record_points() as reached:
        run_to_its_end(graph)
    return [(point, reached[: i + 1].count(point)) for i, point in enumerate(reached)]


def test_the_agent_killed_at_every_point_does_each_thing_once(
    agent: ModuleType, tmp_path: Path, deaths: Deaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = passed(agent)
    assert {points.INTENT_DURABLE, points.STEP_RECORDED, points.ADMITTED} < {point for point, _ in every}
    complete = agent.model.complete
    for number, (point, nth) in enumerate(every):
        monkeypatch.setattr(agent.shop, "folder", tmp_path / str(number))
        heard: list[int] = []
        monkeypatch.setattr(
            agent.model, "complete", lambda said, heard=heard: heard.append(len(said)) or complete(said)
        )
        graph = agent.graph.compile(checkpointer=(saver := Saver(deaths.clock)))
        deaths.dies_at(point, nth)
        with pytest.raises(SimulatedCrash):
            run_to_its_end(graph)
        deaths.revive()
        kept = [each for each in graph.get_state(thread()).values.get("messages", []) if each["role"] == "assistant"]
        before = len(heard)
        assert run_to_its_end(graph) == DONE, (point, nth)
        assert sorted(path.read_text() for path in (tmp_path / str(number)).glob("*")) == TOLD, (point, nth)
        assert len(heard) - before == 4 - len(kept), "what the model has said, and is on record, it is not asked again"
        entries = list(graph.get_journal(thread()))
        assert [each.name for each in entries if each.kind == "effect" and each.status == "done"] == [
            "notify",
            "refund",
        ]
        assert [each.decided_by for each in entries if each.kind == "approval"] == ["ann"]
        assert list(saver.store.verify()) == []


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """Where processes that run the agent come from."""
    running = Processes("tests.examples.agent_child")
    yield running
    running.close()


def test_the_agent_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path: Path, processes: Processes) -> None:
    job = Job(str(tmp_path))
    for crash in ("transaction.written:3", "run.admitted:1", "effect.intent_durable:1", "effect.body_returned:1"):
        assert processes.run(job._replace(crash=crash)) == KILLED
    assert processes.run(job) == 0
    assert done(tmp_path) == TOLD
    asked = (tmp_path / "asked").read_text().split()
    heard = [int(line) for line in (tmp_path / "model").read_text().split()]
    assert asked == ["refund"]
    assert sorted(set(heard)) == [1, 3, 5, 7]
    assert len(heard) <= 4 + 1, "asked again only for what it said as the process died"


def test_the_script_asks_at_the_terminal_and_goes_on_where_it_was(tmp_path: Path) -> None:
    def script(typed: str) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, str(EXAMPLES / "agent.py")]
        return subprocess.run(words, cwd=tmp_path, env=environment(), input=typed, capture_output=True, text=True)

    unattended = script("")
    assert unattended.returncode == 1
    assert unattended.stderr.startswith("\nThe agent waits. Start it again at a terminal")
    assert done(tmp_path) == []
    assert script("y\n\n  \nann\n").stdout.splitlines()[-1].endswith(DONE)
    assert script("").stdout.strip() == DONE
    assert done(tmp_path) == TOLD


def test_the_command_line_drives_the_agent(agent: ModuleType) -> None:
    def call(*words: str) -> Any:
        result = CliRunner().invoke(stepwell, words)
        assert result.exit_code == 0, result.output
        return result

    target, request = f"{EXAMPLES / 'agent.py'}:graph", '{"messages": [{"role": "user", "content": "Order 7"}]}'
    assert "refund(order='7', cents=1250), until " in call("run", target, "--thread", "desk", "--input", request).stderr
    call("approve", "desk", "--by", "ann")
    assert DONE in call("resume", target, "--thread", "desk").stdout
    assert done() == TOLD
