"""Timeouts: an async node that takes too long is cancelled, a sync one abandoned; neither can write any more."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    InvalidConfigError,
    NodeTimeoutError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    TimeoutPolicy,
)
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Counted, Flaky, Log, ask, chain, note, thread

SHORT = 0.02
"""Seconds: a node given this much never finishes here, so no test depends on how long it is."""

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False)


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that is set only when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def limited(node: Any, timeout: Any = SHORT, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(Log).add_node("slow", node, timeout=timeout, **options).add_edge(START, "slow")


def test_L4_a_sync_node_that_takes_too_long_is_abandoned(
    call: Call, saver: SqliteSaver, never: threading.Event
) -> None:
    """LangGraph's pull request 7631 left sync nodes out. What an abandoned attempt returns later changes nothing."""
    release, returned = threading.Event(), threading.Event()

    def slow(state: Log) -> dict[str, list[str]]:
        release.wait(60)
        returned.set()
        return {"log": ["too late"]}

    graph = limited(slow).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError, match=r"Node 'slow' exceeded its run timeout of 0\.020s"):
        call(graph, {}, thread())
    before = graph.get_state(thread())
    assert "NodeTimeoutError" in before.tasks[0].error
    release.set()
    assert returned.wait(60)
    assert graph.get_state(thread()) == before
    assert before.next == ("slow",)


def test_L4_J14_the_next_attempt_counts_and_the_abandoned_one_does_not(call: Call, saver: SqliteSaver) -> None:
    """Hatchet's report 1022: after a timeout one step was seen at work twice.

    Both run at once at the end: the first was given up, the second is the one that is kept.
    """
    release, attempts = threading.Event(), iter(("first", "second"))

    def slow(state: Log) -> dict[str, list[str]]:
        attempt = next(attempts)
        if attempt == "first":
            release.wait(60)
        else:
            release.set()
        return {"log": [attempt]}

    graph = limited(slow, timeout=1, retry_policy=AT_ONCE).compile(checkpointer=saver)
    assert call(graph, {}, thread()) == {"log": ["second"]}


def test_an_async_node_that_takes_too_long_is_cancelled(call: Call, saver: SqliteSaver) -> None:
    cancelled = threading.Event()

    async def slow(state: Log) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    graph = limited(slow).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError, match="'slow'"):
        call(graph, {}, thread())
    assert cancelled.wait(60)
    assert graph.get_state(thread()).next == ("slow",)


def test_swallowing_the_cancellation_does_not_help(call: Call, saver: SqliteSaver) -> None:
    async def stubborn(state: Log) -> dict[str, list[str]]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return {"log": ["all the same"]}

    graph = limited(stubborn).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError):
        call(graph, {}, thread())
    assert graph.get_state(thread()).values == {"log": []}


def test_a_timeout_is_tried_again_by_default(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    calls: list[int] = []

    async def slow_at_first(state: Log) -> dict[str, list[str]]:
        calls.append(1)
        if len(calls) < 3:
            await asyncio.Event().wait()
        return {"log": ["slow"]}

    graph = limited(slow_at_first, timeout=0.1, retry_policy=AT_ONCE).compile(checkpointer=saver)
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["slow"]}
    assert len(calls) == 3


@pytest.mark.parametrize("timeout", [SHORT, timedelta(seconds=SHORT), TimeoutPolicy(run_timeout=SHORT)])
def test_a_timeout_is_written_in_several_ways(timeout: Any, call: Call, never: threading.Event) -> None:
    with pytest.raises(NodeTimeoutError):
        call(limited(lambda state: never.wait(60), timeout).compile(), {})


def test_a_send_may_bring_its_own_timeout(call: Call, saver: SqliteSaver, never: threading.Event) -> None:
    def carry(number: int) -> dict[str, list[str]]:
        if number == 1:
            never.wait(60)
        return {"log": [str(number)]}

    graph = StateGraph(Log).add_node("carry", carry)
    sends = [Send("carry", 0), Send("carry", 1, timeout=SHORT), Send("carry", 2)]
    graph.add_conditional_edges(START, lambda state: sends, ["carry"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError, match="'carry'"):
        call(compiled, {}, thread())
    assert compiled.get_state(thread()).values == {"log": ["0", "2"]}


def test_siblings_of_a_timed_out_task_keep_their_results(
    call: Call, saver: SqliteSaver, never: threading.Event
) -> None:
    """INV-4."""
    sibling = Counted("sibling")
    fast = [False]

    def slow(state: Log) -> dict[str, list[str]]:
        if not fast[0]:
            never.wait(60)
        return {"log": ["slow"]}

    graph = limited(slow, timeout=0.5).add_node("sibling", sibling).add_edge(START, "sibling")
    graph.add_node("end", note("end")).add_edge(["slow", "sibling"], "end")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError):
        call(compiled, {}, thread())
    fast[0] = True
    assert call(compiled, None, thread()) == {"log": ["sibling", "slow", "end"]}
    assert sibling.calls == 1


def test_a_node_that_is_in_time_notices_nothing(call: Call, saver: SqliteSaver) -> None:
    async def quick(state: Log) -> dict[str, list[str]]:
        await asyncio.sleep(0)
        return {"log": ["quick"]}

    graph = limited(quick, timeout=60).add_node("next", note("next"), timeout=60).add_edge("slow", "next")
    assert call(graph.compile(checkpointer=saver), {}, thread()) == {"log": ["quick", "next"]}


def test_J13_the_time_a_question_stays_open_is_not_the_nodes(call: Call, deaths: Deaths) -> None:
    """Hatchet's report 4128: a task parked on a wait was timed out. A node that asks has ended until it is answered."""
    graph = StateGraph(Log).add_node("ask", ask("ask"), timeout=5).add_edge(START, "ask")
    compiled = graph.compile(checkpointer=Saver(deaths.clock))
    call(compiled, {}, thread())
    deaths.clock.advance(3600.0)
    state = compiled.get_state(thread())
    assert (state.next, state.tasks[0].error) == (("ask",), None)
    assert call(compiled, Command(resume="late"), thread()) == {"log": ["ask='late'"]}
    assert [run.status for run in compiled.checkpointer.runs("t")] == ["finished", "paused"]


# -- a whole superstep ------------------------------------------------------------------------------------------------


def test_a_superstep_that_takes_too_long_fails_what_has_not_finished(
    call: Call, sqlite_saver: SqliteSaver, never: threading.Event
) -> None:
    """The sync task is abandoned, the async one cancelled, neither is tried again, and what had finished is kept."""
    cancelled, slow = threading.Event(), [True]

    def blocks(state: Log) -> dict[str, list[str]]:
        if slow[0]:
            never.wait(60)
        return {"log": ["blocks"]}

    async def waits(state: Log) -> dict[str, list[str]]:
        try:
            await asyncio.Event().wait() if slow[0] else None
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return {"log": ["waits"]}

    quick = Counted("quick")
    graph = StateGraph(Log)
    for name, node in (("quick", quick), ("blocks", blocks), ("waits", waits)):
        graph.add_node(name, node, retry_policy=AT_ONCE).add_edge(START, name)
    compiled = graph.compile(checkpointer=sqlite_saver)
    compiled.step_timeout = STEP
    with pytest.raises(NodeTimeoutError, match=r"Node 'blocks' had not finished when the 0\.5s of its superstep"):
        call(compiled, {}, thread())
    assert cancelled.wait(60)
    assert compiled.get_state(thread()).next == ("blocks", "waits")
    slow[0] = False
    assert call(compiled, None, thread()) == {"log": ["blocks", "quick", "waits"]}
    assert quick.calls == 1


STEP = 0.5
"""Seconds: long enough for a node that returns at once, and what waits for ever waits longer."""


def test_a_lone_task_has_the_superstep_s_time_too(call: Call, saver: SqliteSaver, never: threading.Event) -> None:
    graph = limited(lambda state: never.wait(60), timeout=60).compile(checkpointer=saver)
    graph.step_timeout = SHORT
    with pytest.raises(TimeoutError, match="its superstep"):
        call(graph, {}, thread())


def test_the_wait_for_the_next_attempt_counts(call: Call, saver: SqliteSaver) -> None:
    policy = RetryPolicy(initial_interval=3600, jitter=False, retry_on=ValueError)
    graph = StateGraph(Log).add_node("a", Flaky("a"), retry_policy=policy).add_edge(START, "a")
    compiled = graph.compile(checkpointer=saver)
    compiled.step_timeout = SHORT
    with pytest.raises(NodeTimeoutError, match="its superstep"):
        call(compiled, {}, thread())
    compiled.step_timeout = 60
    assert compiled.retry(thread()) == {"log": ["a"]}


def test_each_superstep_has_its_own_time(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver)
    graph.step_timeout = 60
    assert graph.with_config(tags=["x"]).step_timeout == 60
    assert call(graph, {}, thread()) == {"log": ["a", "b"]}


@pytest.mark.parametrize("wrong", [0, -1, "1", True])
def test_a_time_for_supersteps_that_is_none_is_refused(wrong: Any, saver: SqliteSaver) -> None:
    graph = limited(note("a")).compile(checkpointer=saver)
    with pytest.raises(InvalidConfigError, match="step_timeout is a number of seconds"):
        graph.step_timeout = wrong
    assert graph.step_timeout is None
