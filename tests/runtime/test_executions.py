"""A run as a value: `graph.run` returns how it ended, also where it failed, and exactly what it cost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from stepwell import (
    START,
    Command,
    EmptyInputError,
    GraphExecution,
    GraphRecursionError,
    InMemorySaver,
    LeaseLostError,
    PendingWorkError,
    PoisonedRunError,
    RetryPolicy,
    RunError,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    points,
)
from stepwell.testing import SimulatedCrash
from stepwell.testing.store_suite.drive import Drive
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Flaky, Log, ask, chain, fan, letters, note, thread


@pytest.fixture(params=["run", "arun"])
def execute(request: pytest.FixtureRequest) -> Any:
    """Run a graph each way in turn."""

    def execute(graph: Any, *args: Any, **options: Any) -> GraphExecution:
        if request.param == "run":
            return graph.run(*args, **options)  # type: ignore[no-any-return]
        return asyncio.run(graph.arun(*args, **options))  # type: ignore[no-any-return]

    return execute


def test_a_finished_run_is_all_there(execute: Any, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    done = execute(graph, {"log": ["in"]}, thread(run_id="r"), durability=any_durability)
    assert (done.status, done.value, done.result()) == ("finished", {"log": ["in", "a", "b", "c"]}, done.value)
    assert (done.run_id, done.thread_id, done.steps) == ("r", "t", 3)
    assert (done.interrupts, done.error) == ((), None)
    assert done.config == graph.get_state(thread()).config
    record = saver.get_run("r")
    assert record is not None
    assert record.config == done.config


def test_a_question_is_an_outcome(execute: Any, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    paused = execute(graph, {}, thread())
    assert (paused.status, paused.value, paused.steps) == ("paused", {"log": ["a"]}, 1)
    assert [question.value for question in paused.interrupts] == ["ask"]
    done = execute(graph, Command(resume={paused.interrupts[0].id: "yes"}), thread())
    assert (done.status, done.result(), done.steps) == ("finished", {"log": ["a", "ask='yes'", "b"]}, 2)
    assert done.run_id != paused.run_id


def test_a_failure_is_an_outcome_and_raises_when_asked(execute: Any, saver: SqliteSaver) -> None:
    flaky = Flaky("b")
    graph = fan(("a", note("a")), ("b", flaky)).compile(checkpointer=saver)
    failed = execute(graph, {}, thread())
    assert (failed.status, failed.value, failed.error, failed.steps) == ("failed", {"log": ["a"]}, flaky.error, 0)
    assert any("resumable from checkpoint" in line for line in failed.error.__notes__)
    with pytest.raises(ValueError, match="b is broken"):
        failed.result()
    assert execute(graph, None, thread()).result() == {"log": ["a", "b"]}


def test_a_limit_and_a_value_that_cannot_be_stored_are_failures(execute: Any, saver: SqliteSaver) -> None:
    stopped = execute(letters("abc").compile(checkpointer=saver), {}, thread(recursion_limit=2))
    assert (stopped.status, stopped.steps, type(stopped.error)) == ("failed", 2, GraphRecursionError)
    graph = chain(("a", lambda state: {"log": [object()]})).compile(checkpointer=saver, name="other")
    refused = execute(graph, {}, thread("u"))
    assert (refused.status, type(refused.error)) == ("failed", UnserializableValueError)


def test_what_keeps_a_run_from_beginning_is_raised(execute: Any, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver)
    with pytest.raises(EmptyInputError):
        execute(graph, None, thread())
    execute(graph, {}, thread())
    with pytest.raises(PendingWorkError):
        execute(graph, {}, thread())
    with pytest.raises(TypeError, match="unknown options stream_mode"):
        execute(graph, {}, thread(), stream_mode="values")


def test_what_stops_a_run_from_outside_is_raised(saver: SqliteSaver) -> None:
    async def forever(state: Log) -> Any:
        running.set()
        await asyncio.Event().wait()

    async def main() -> None:
        driving = asyncio.create_task(graph.arun({}, thread(run_id="r")))
        await running.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        again = await graph.arun({}, thread(run_id="r"))
        assert (again.status, again.run_id, type(again.error)) == ("cancelled", "r", RunError)

    running = asyncio.Event()
    graph = chain(("a", forever)).compile(checkpointer=saver)
    asyncio.run(main())


def test_a_lost_lease_is_raised(deaths: Deaths) -> None:
    def stall(state: Log) -> dict[str, list[str]]:
        deaths.clock.advance(3600.0)
        Drive(saver.store, "t", run_id="other").take_over()
        return {}

    saver = Saver(deaths.clock)
    with pytest.raises(LeaseLostError):
        chain(("a", stall)).compile(checkpointer=saver).run({}, thread())


def test_a_repeated_run_id_returns_how_that_run_ended(execute: Any, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    first = execute(graph, {}, thread(run_id="r"))
    again = execute(graph, {}, thread(run_id="r"))
    assert (again.value, again.status, again.config, again.run_id) == (first.value, "finished", first.config, "r")
    assert (again.steps, again.cost) == (0, type(again.cost)())
    broken = chain(("a", Flaky("a"))).compile(checkpointer=saver, name="broken")
    execute(broken, {}, thread("u", run_id="s"))
    failed = execute(broken, {}, thread("u", run_id="s"))
    assert (failed.status, failed.run_id, failed.value) == ("failed", "s", None)
    with pytest.raises(RunError, match="a is broken"):
        failed.result()


def test_a_run_that_is_given_up_is_a_failure(deaths: Deaths) -> None:
    graph = letters("a").compile(checkpointer=Saver(deaths.clock))
    for life in range(6):
        deaths.dies_at(points.TASK_STARTED)
        with pytest.raises(SimulatedCrash):
            graph.run(*((None, thread()) if life else ({}, thread(run_id="r"))))
        deaths.revive()
    given_up = graph.run(None, thread())
    assert (given_up.status, given_up.run_id, type(given_up.error)) == ("failed", "r", PoisonedRunError)


def test_a_run_that_is_taken_over_counts_all_its_supersteps(deaths: Deaths) -> None:
    graph = letters("abc").compile(checkpointer=Saver(deaths.clock))
    deaths.dies_at(points.MERGED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.run({}, thread(run_id="r"))
    deaths.revive()
    done = graph.run(None, thread())
    assert (done.run_id, done.steps, done.cost.transactions) == ("r", 3, 1 + 2)


def test_without_a_checkpointer_a_run_costs_nothing(execute: Any) -> None:
    done = execute(letters("ab").compile(), {})
    assert (done.value, done.steps, done.cost) == ({"log": ["a", "b"]}, 2, type(done.cost)())
    assert (done.thread_id, done.config) == (None, None)
    assert done.run_id


class Model(BaseModel):
    number: int = 0


def test_the_value_has_the_type_of_the_output_schema(execute: Any, saver: SqliteSaver) -> None:
    graph = StateGraph(Model).add_node("a", lambda state: {"number": 7}).add_edge(START, "a")
    assert execute(graph.compile(checkpointer=saver), {}, thread()).value == Model(number=7)


# -- what it cost -----------------------------------------------------------------------------------------------------


def counted(saver: SqliteSaver) -> tuple[int, int, int, int]:
    counts = saver.store.counts
    return counts.transactions, counts.statements, counts.bytes, counts.syncs


@pytest.mark.parametrize("name", ["chain", "fan", "question", "failure", "retry"])
def test_the_cost_is_what_the_store_counted(name: str, execute: Any, saver: SqliteSaver, any_durability: str) -> None:
    at_once = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)
    graphs = {
        "chain": letters("abc"),
        "fan": fan(("a", note("a")), ("b", note("b"))),
        "question": chain(("a", note("a")), ("ask", ask("ask"))),
        "failure": chain(("a", note("a")), ("b", Flaky("b"))),
        "retry": StateGraph(Log).add_node("a", Flaky("a"), retry_policy=at_once).add_edge(START, "a"),
    }
    graph = graphs[name].compile(checkpointer=saver, events=True)
    before = counted(saver)
    cost = execute(graph, {}, thread(), durability=any_durability).cost
    assert tuple(cost) == tuple(after - was for after, was in zip(counted(saver), before, strict=True))


def test_runs_that_share_a_transaction_are_charged_their_own_rows(tmp_path: Path) -> None:
    """Sixty-four runs side by side: statements and bytes add up to the store's, each run pays for what is its own."""

    async def main(saver: SqliteSaver) -> list[GraphExecution]:
        graph = letters("abc").compile(checkpointer=saver)
        return list(await asyncio.gather(*(graph.arun({}, thread(f"t{number:02}")) for number in range(64))))

    with SqliteSaver(tmp_path / "threads.db") as saver:
        done = asyncio.run(main(saver))
        counts = saver.store.counts
    assert {each.cost.transactions for each in done} == {4}
    assert len({each.cost.bytes for each in done}) == 1
    assert sum(each.cost.bytes for each in done) == counts.bytes
    assert counts.transactions <= 4 * 64


def test_a_run_that_nobody_asks_about_is_not_charged(memory_saver: InMemorySaver) -> None:
    graph = letters("a").compile(checkpointer=memory_saver)
    assert graph._run({}, thread()).cost is None
