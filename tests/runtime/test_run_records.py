"""What is left of a run: its record, true also where nobody was left to write it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from stepwell import (
    Command,
    InvalidConfigError,
    RunRecord,
    SqliteSaver,
    UnknownRunError,
    points,
)
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Flaky, Log, ask, chain, letters, note, thread


def test_a_finished_run_leaves_its_record(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    began = datetime.now(UTC)
    graph = letters("ab").compile(checkpointer=saver)
    call(graph, {}, thread(run_id="r"), durability=any_durability)
    record = saver.get_run("r")
    assert record is not None
    assert (record.run_id, record.thread_id, record.kind, record.status) == ("r", "t", "input", "finished")
    assert (record.durability, record.attempts, record.lineage, record.error) == (any_durability, 1, 0, None)
    assert record.finished_at is not None
    assert began <= record.started_at <= record.finished_at <= datetime.now(UTC)
    assert record.config == graph.get_state(thread()).config


def test_a_failed_run_keeps_its_error(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    graph.retry(thread())
    retried, failed = saver.runs("t")
    assert (failed.status, failed.error, failed.kind) == ("failed", "ValueError('b is broken')", "input")
    assert (retried.status, retried.error, retried.kind) == ("finished", None, "retry")


def test_each_call_leaves_a_record_that_says_what_it_was(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    first = next(each for each in graph.get_state_history(thread()) if each.next == ("ask",))
    graph.invoke(Command(resume=1), thread())
    graph.invoke(None, first.config)
    graph.fork(first.config)
    graph.update_state(thread(), {"log": ["x"]}, as_node="a")
    graph.invoke(None, thread())
    graph.invoke({}, thread(), on_pending="discard")
    kinds = [(record.kind, record.status) for record in saver.runs("t")]
    assert kinds[::-1] == [
        ("input", "paused"),
        ("answer", "finished"),
        ("replay", "paused"),
        ("continue", "paused"),
        ("input", "paused"),
    ]


def test_a_run_at_work_is_running_and_seen_from_elsewhere(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        seen: list[RunRecord] = []

        def look(state: Log) -> dict[str, list[str]]:
            seen.extend(other.runs("t"))
            return {}

        chain(("look", look)).compile(checkpointer=saver).invoke({}, thread())
        (record,) = seen
        assert (record.status, record.finished_at) == ("running", None)


def test_a_dead_run_is_shown_as_crashed_and_not_as_running(deaths: Deaths) -> None:
    saver = Saver(deaths.clock)
    graph = letters("ab").compile(checkpointer=saver)
    deaths.dies_at(points.MERGED)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    points.hook = None
    assert [record.status for record in saver.runs("t")] == ["running"], "its lease may still be alive"
    deaths.revive()
    (record,) = saver.runs("t")
    assert (record.status, record.finished_at, record.attempts) == ("crashed", None, 1)
    assert saver.get_run(record.run_id) == record
    graph.invoke(None, thread())
    (record,) = saver.runs("t")
    assert (record.status, record.attempts, record.kind) == ("finished", 2, "input")


def test_a_dead_run_that_was_passed_over_has_failed(deaths: Deaths) -> None:
    saver = Saver(deaths.clock)
    graph = letters("ab").compile(checkpointer=saver)
    deaths.dies_at(points.MERGED)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    deaths.revive()
    graph.invoke({"log": ["new"]}, thread())
    new, dead = saver.runs("t")
    assert (dead.status, new.status) == ("failed", "finished")
    assert dead.error == f"its process died, and run {new.run_id} took the thread"


def test_runs_come_in_pages_that_say_whether_there_are_more(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    for number in range(5):
        graph.invoke({}, thread(run_id=f"r{number}"))
    first = saver.runs("t", limit=2)
    assert [record.run_id for record in first] == ["r4", "r3"]
    assert first.more == "r3"
    second = saver.runs("t", limit=2, before=first.more)
    third = saver.runs("t", limit=2, before=second.more)
    assert [record.run_id for record in (*second, *third)] == ["r2", "r1", "r0"]
    assert third.more is None
    assert saver.runs("t").more is None
    assert asyncio.run(saver.aruns("t", limit=2)) == first


def test_runs_are_those_of_the_thread_alone(saver: SqliteSaver) -> None:
    """INV-14: neither an id nor a cursor of another thread widens the result."""
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread("t", run_id="mine"))
    graph.invoke({}, thread("other", run_id="theirs"))
    assert [record.run_id for record in saver.runs("t")] == ["mine"]
    with pytest.raises(UnknownRunError, match="Thread t has no run theirs"):
        saver.runs("t", before="theirs")
    assert saver.runs("nobody") == []


@pytest.mark.parametrize("given", [7, UUID(int=7)])
def test_I8_a_thread_id_is_text_by_one_rule(given: Any, saver: SqliteSaver) -> None:
    letters("a").compile(checkpointer=saver).invoke({}, thread(given))
    assert [record.thread_id for record in saver.runs(given)] == [str(given)]
    assert saver.runs(str(given)) == saver.runs(given)


def test_what_is_not_there_or_makes_no_sense_is_said(saver: SqliteSaver) -> None:
    assert saver.get_run("nobody") is None
    assert asyncio.run(saver.aget_run("nobody")) is None
    for wrong in ({"limit": 0}, {"before": None, "limit": -1}):
        with pytest.raises(InvalidConfigError, match="limit is a number from 1 on"):
            saver.runs("t", **wrong)


def test_A4_a_run_that_died_before_its_first_node_is_not_lost(deaths: Deaths, any_durability: str) -> None:
    saver = Saver(deaths.clock)
    deaths.dies_at(points.TASK_STARTED)
    with pytest.raises(SimulatedCrash):
        letters("a").compile(checkpointer=saver).invoke({}, thread(run_id="r"), durability=any_durability)
    deaths.revive()
    record = saver.get_run("r")
    assert record is not None
    assert record.status == "crashed"
