"""Lines an operator can act on: which run, which thread, which checkpoint, and what to do next."""

import logging
from typing import Any

import pytest

from stepwell import START, Command, InMemorySaver, PoisonedRunError, RetryPolicy, StateGraph, points
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Flaky, Log, ask, chain, letters, note, thread


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return a function that gives the lines of `stepwell.run` since it was last asked, with their levels."""
    caplog.set_level(logging.INFO, "stepwell.run")

    def since() -> list[tuple[str, str]]:
        found = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "stepwell.run"]
        caplog.clear()
        return found

    return since


def test_a_run_that_goes_well_writes_two_lines(lines: Any, memory_saver: InMemorySaver) -> None:
    graph = letters("ab").compile(checkpointer=memory_saver)
    graph.invoke({}, thread(run_id="r"))
    ids = [each.config["configurable"]["checkpoint_id"] for each in graph.get_state_history(thread())]
    assert lines() == [
        ("INFO", f"run r (input) of thread t begins at checkpoint {ids[-2]}"),
        ("INFO", f"run r of thread t finished at checkpoint {ids[0]}"),
    ]


def test_a_pause_and_its_answer_are_said(lines: Any, memory_saver: InMemorySaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=memory_saver)
    graph.invoke({}, thread(run_id="r1"))
    at = graph.get_state(thread()).config["configurable"]["checkpoint_id"]
    assert lines()[-1] == ("INFO", f"run r1 of thread t paused at checkpoint {at}")
    graph.invoke(Command(resume=1), thread(run_id="r2"))
    assert lines()[0] == ("INFO", f"run r2 (answer) of thread t begins at checkpoint {at}")


def test_a_failed_run_says_where_and_what_to_do(lines: Any, memory_saver: InMemorySaver) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=memory_saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread(run_id="r"))
    at = graph.get_state(thread()).config["configurable"]["checkpoint_id"]
    failed = (
        f"run r of thread t failed at checkpoint {at}: ValueError('b is broken'). Mend the cause, then retry(config)"
    )
    assert lines()[-1] == ("WARNING", failed)


def test_a_retry_says_when(lines: Any, memory_saver: InMemorySaver) -> None:
    policy = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)
    graph = StateGraph(Log).add_node("a", Flaky("a"), retry_policy=policy).add_edge(START, "a")
    graph.compile(checkpointer=memory_saver).invoke({}, thread(run_id="r"))
    level, line = lines()[1]
    assert level == "INFO"
    assert line.startswith("run r of thread t: attempt 1 of node a (task ")
    assert "failed, retry scheduled in " in line
    assert line.endswith("s: ValueError('a is broken')")


def test_a_resumed_run_says_from_where_and_from_whom(lines: Any, deaths: Deaths) -> None:
    saver = Saver(deaths.clock)
    graph = letters("ab").compile(checkpointer=saver)
    deaths.dies_at(points.MERGED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread(run_id="r"))
    deaths.revive()
    at = graph.get_state(thread()).config["configurable"]["checkpoint_id"]
    with saver.store.reading() as reader:
        holder = reader.thread("t").holder  # type: ignore[union-attr]
    lines()
    graph.invoke(None, thread())
    assert lines()[:2] == [
        ("WARNING", f"lease of thread t taken over from {holder}, which was driving run r (epoch 2)"),
        ("WARNING", f"resuming run r of thread t from checkpoint {at}: attempt 2, 1 without progress"),
    ]


def test_a_run_that_is_given_up_is_said(lines: Any, deaths: Deaths) -> None:
    graph = letters("ab").compile(checkpointer=Saver(deaths.clock))
    deaths.dies_at(points.MERGED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread(run_id="old"))
    deaths.revive()
    lines()
    graph.invoke({}, thread(run_id="new"))
    given_up = "run old of thread t is given up: its process died, and run new took the thread"
    assert ("WARNING", given_up) in lines()


def test_a_run_that_cannot_be_recovered_says_so(lines: Any, deaths: Deaths) -> None:
    graph = letters("a").compile(checkpointer=Saver(deaths.clock))
    for life in range(6):
        deaths.dies_at(points.TASK_STARTED)
        with pytest.raises(SimulatedCrash):
            graph.invoke(None if life else {}, thread())
        deaths.revive()
    lines()
    with pytest.raises(PoisonedRunError):
        graph.invoke(None, thread())
    (_, _), (level, resumed), (_, failed) = lines()
    assert (level, resumed.endswith("attempt 7, 6 without progress")) == ("WARNING", True)
    assert "PoisonedRunError" in failed


def test_nothing_is_printed_where_nobody_configured_logging() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("stepwell").handlers)
