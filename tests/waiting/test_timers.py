"""Sleeping: the time is fixed once, short ones are waited for in place, and a crash does not begin them anew."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from stepwell import (
    Command,
    InvalidWaitError,
    SqliteSaver,
    WaitTimeoutError,
    interrupt,
    points,
    sleep,
    sleep_until,
    task,
    wait_for,
)
from stepwell.testing import FakeClock, SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Counted, chain, fan, note, thread
from tests.waiting.nodes import at, expect, nap, status, waiting

TICK = 0.01
"""A sleep that is waited for in place, by the real clock."""


def test_a_short_sleep_is_waited_for_in_place(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    node = Counted("nap", nap("nap", TICK))
    graph = chain(("nap", node), ("after", note("after"))).compile(checkpointer=saver)
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["nap", "after"]}
    assert node.calls == 2
    assert len(list(saver.runs("t"))) == 1


def test_a_sleep_of_nothing_goes_on_at_once(call: Call, saver: SqliteSaver) -> None:
    node = Counted("nap", nap("nap", 0))
    assert call(chain(("nap", node)).compile(checkpointer=saver), {}, thread()) == {"log": ["nap"]}
    assert node.calls == 1


def test_sleeps_of_a_node_follow_one_another(call: Call, kept: Saver, clock: FakeClock) -> None:
    def thrice(state: Any) -> dict[str, list[str]]:
        for _ in range(3):
            sleep(timedelta(seconds=60))
        return {"log": ["done"]}

    graph = chain(("thrice", thrice)).compile(checkpointer=kept)
    result = call(graph, {}, thread())
    for passed in (60, 120, 180):
        assert waiting(result)[0].until == at(passed)
        clock.advance(60)
        result = call(graph, None, thread())
    assert result == {"log": ["done"]}


def test_an_async_node_may_await_it_or_not(call: Call, kept: Saver, clock: FakeClock) -> None:
    async def node(state: Any) -> dict[str, list[str]]:
        await sleep(60)
        sleep(60)
        await sleep_until(at(180))
        return {"log": ["done"]}

    graph = chain(("node", node)).compile(checkpointer=kept)
    result = call(graph, {}, thread())
    for passed in (60, 120, 180):
        assert waiting(result)[0].until == at(passed)
        clock.advance(60)
        result = call(graph, None, thread())
    assert result == {"log": ["done"]}


def test_sleeps_beside_each_other_in_one_node_are_waited_for_together(kept: Saver, clock: FakeClock) -> None:
    async def one(seconds: int) -> int:
        await sleep(seconds)
        return seconds

    async def node(state: Any) -> dict[str, list[str]]:
        return {"log": [str(await asyncio.gather(one(30), one(60)))]}

    graph = chain(("node", node)).compile(checkpointer=kept)
    assert waiting(graph.invoke({}, thread()))
    for _ in range(3):
        clock.advance(60)
        result = graph.invoke(None, thread())
    assert result == {"log": ["[30, 60]"]}


def test_sleep_until_a_time_that_has_passed_goes_on_at_once(call: Call, kept: Saver) -> None:
    node = Counted("node", lambda state: {"log": [repr(sleep_until(at(-1)))]})
    assert call(chain(("node", node)).compile(checkpointer=kept), {}, thread()) == {"log": ["None"]}
    assert node.calls == 1


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", None, True, timedelta(seconds=-1)])
def test_what_is_no_length_of_time_is_refused(kept: Saver, seconds: Any) -> None:
    graph = chain(("nap", nap("nap", seconds))).compile(checkpointer=kept)
    with pytest.raises(InvalidWaitError, match="sleep takes seconds"):
        graph.invoke({}, thread())


@pytest.mark.parametrize("when", [datetime(2030, 1, 1), 5, "tomorrow"])  # noqa: DTZ001
def test_a_time_without_its_zone_is_refused(kept: Saver, when: Any) -> None:
    def node(state: Any) -> dict[str, Any]:
        sleep_until(when)
        return {}

    with pytest.raises(InvalidWaitError, match="with a time zone"):
        chain(("node", node)).compile(checkpointer=kept).invoke({}, thread())


def test_a_sleep_in_a_router_calls_the_router_alone_again(call: Call, kept: Saver, clock: FakeClock) -> None:
    def route(state: Any) -> str:
        sleep(60)
        return "b"

    node = Counted("a")
    graph = chain(("a", node)).add_node("b", note("b")).add_conditional_edges("a", route, ["b"])
    compiled = graph.compile(checkpointer=kept)
    assert waiting(call(compiled, {}, thread()))
    clock.advance(60)
    assert call(compiled, None, thread()) == {"log": ["a", "b"]}
    assert node.calls == 1


# -- crashes ----------------------------------------------------------------------------------------------------------


def test_S5_the_window_of_a_wait_does_not_begin_anew_in_another_process(tmp_path: Any, clock: FakeClock) -> None:
    """INV-9: an absolute time, written when the wait was first reached."""

    def process() -> Any:
        saver = SqliteSaver(tmp_path / "threads.db")
        return saver, chain(("ask", expect("ask", "answer", timeout=60))).compile(checkpointer=saver)

    saver, graph = process()
    assert waiting(graph.invoke({}, thread()))[0].until == at(60)
    saver.close()
    clock.advance(50)
    saver, graph = process()
    assert waiting(graph.invoke(None, thread()))[0].until == at(60)
    saver.close()
    clock.advance(10)
    saver, graph = process()
    with pytest.raises(WaitTimeoutError):
        graph.invoke(None, thread())
    saver.close()


def test_S5_a_crash_beside_a_waiting_task_leaves_its_deadline(kept: Saver, deaths: Deaths) -> None:
    graph = fan(("ask", expect("ask", "answer", timeout=60)), ("slow", note("slow"))).compile(checkpointer=kept)
    deaths.dies_at(points.TASK_FINISHED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread(max_concurrency=1))
    deaths.revive()
    assert graph.get_state(thread()).tasks[0].waiting[0].until == at(60)
    left = graph.invoke(None, thread())
    assert (left["log"], waiting(left)[0].until) == (["slow"], at(60))


@pytest.mark.parametrize("wait", [lambda: wait_for("answer", timeout=60), lambda: sleep(60)], ids=["wait", "sleep"])
def test_S5_a_node_that_runs_again_for_another_reason_leaves_the_deadline_of_its_wait(
    call: Call, kept: Saver, clock: FakeClock, wait: Any
) -> None:
    @task
    def waits() -> Any:
        return wait()

    @task
    def asks() -> Any:
        return interrupt("sure?")

    def both(state: Any) -> dict[str, list[str]]:
        waited, asked = waits(), asks()
        answer = asked.result()
        waited.result()
        return {"log": [answer]}

    graph = chain(("both", both)).compile(checkpointer=kept)
    assert waiting(call(graph, {}, thread()))[0].until == at(60)
    clock.advance(50)
    assert waiting(call(graph, Command(resume="yes"), thread()))[0].until == at(60)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_S5_a_process_that_dies_while_it_waits_in_place_leaves_the_deadline(
    kept: Saver, deaths: Deaths, durability: str
) -> None:
    graph = chain(("ask", expect("ask", "answer", timeout=1))).compile(checkpointer=kept)
    deaths.dies_at(points.WAIT_DURABLE)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread(), durability=durability)
    assert status(graph) == "running"
    deaths.revive()  # later than the deadline
    graph.signal(thread(), "answer", "too late")
    with pytest.raises(WaitTimeoutError):
        graph.invoke(None, thread())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_died_before_its_timer_was_due_goes_on_as_itself(
    kept: Saver, deaths: Deaths, clock: FakeClock, durability: str
) -> None:
    node = Counted("nap", nap("nap", 1))
    graph = chain(("a", note("a")), ("nap", node)).compile(checkpointer=kept)
    deaths.dies_at(points.WAIT_DURABLE)
    with pytest.raises(SimulatedCrash):
        graph.invoke({"log": ["in"]}, thread(run_id="r"), durability=durability)
    deaths.revive()
    assert graph.invoke(None, thread(), durability=durability) == {"log": ["in", "a", "nap"]}
    [run] = kept.runs("t")
    assert (run.run_id, run.status, run.attempts) == ("r", "finished", 2)


def test_a_run_that_died_parked_ends_as_waiting(kept: Saver, deaths: Deaths, clock: FakeClock) -> None:
    graph = chain(("nap", nap("nap", 1))).compile(checkpointer=kept)
    deaths.dies_at(points.WAIT_DURABLE)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    deaths.revive()
    clock.wall_microseconds -= 3_600_000_000  # the clock was set back: it is far from due
    assert waiting(graph.invoke(None, thread()))
    assert status(graph) == "waiting"


def test_a_cancelled_run_keeps_what_it_waited_for(saver: SqliteSaver) -> None:
    graph = chain(("nap", nap("nap", 0.9))).compile(checkpointer=saver)

    async def main() -> None:
        task = asyncio.ensure_future(graph.ainvoke({}, thread()))
        points.hook = lambda point: task.cancel() if point == points.WAIT_DURABLE else None
        try:
            await task
        finally:
            points.hook = None

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert status(graph) == "cancelled"
    assert graph.invoke(None, thread()) == {"log": ["nap"]}


def test_a_loop_is_not_blocked_while_a_run_waits_in_place(saver: SqliteSaver) -> None:
    graph = chain(("nap", nap("nap", 0.5))).compile(checkpointer=saver)
    turns: list[str] = []

    async def beside() -> None:
        while "done" not in turns:
            turns.append("turn")
            await asyncio.sleep(0)

    async def main() -> None:
        other = asyncio.ensure_future(beside())
        points.hook = lambda point: turns.append("waits") if point == points.WAIT_DURABLE else None
        try:
            while "waits" not in turns:  # what is due by the time it would be written is not waited for
                await graph.ainvoke({}, thread(f"{len(turns)}"))
        finally:
            points.hook = None
        turns.append("done")
        await other

    asyncio.run(main())
    assert "turn" in turns[turns.index("waits") : turns.index("done")]


# -- steps ------------------------------------------------------------------------------------------------------------


def test_a_step_may_wait_and_is_recorded_once_it_is_over(
    call: Call, kept: Saver, clock: FakeClock, any_durability: str
) -> None:
    bodies: list[str] = []

    @task
    def before() -> str:
        bodies.append("before")
        return "before"

    @task
    def waits(seconds: float) -> Any:
        sleep(seconds)
        bodies.append("waited")
        return wait_for("go")

    def node(state: Any) -> dict[str, list[str]]:
        return {"log": [before().result(), waits(60).result()]}

    graph = chain(("node", node)).compile(checkpointer=kept)
    assert waiting(call(graph, {}, thread(), durability=any_durability))[0].until == at(60)
    clock.advance(60)
    assert waiting(call(graph, None, thread(), durability=any_durability))[0].key == "go"
    graph.signal(thread(), "go", "went")
    assert call(graph, None, thread(), durability=any_durability) == {"log": ["before", "went"]}
    assert bodies == ["before", "waited", "waited"]


def test_async_steps_beside_each_other_wait_each_for_its_own(kept: Saver, clock: FakeClock) -> None:
    @task
    async def waits(key: str) -> Any:
        return wait_for(key)

    async def node(state: Any) -> dict[str, list[str]]:
        return {"log": await asyncio.gather(waits("a"), waits("b"))}

    graph = chain(("node", node)).compile(checkpointer=kept)
    assert {each.key for each in waiting(graph.invoke({}, thread()))} <= {"a", "b"}
    for key in "ba":
        graph.signal(thread(), key, key)
    assert graph.invoke(None, thread()) == {"log": ["a", "b"]}
