"""A run stopped at an odd moment leaves a thread that anybody can go on with, and one that has ended stays so."""

from __future__ import annotations

import asyncio
import operator
import os
import signal
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    InMemorySaver,
    PendingWorkError,
    Runtime,
    SqliteSaver,
    StateGraph,
    interrupt,
    points,
)
from stepwell.testing.crash import SimulatedCrash, crash_at


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}


def chain(*nodes: Callable[..., Any], reducer: Any = None) -> StateGraph[Any, Any, Any, Any]:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    return graph.add_sequence(list(nodes)).add_edge(START, nodes[0].__name__)


def tell(state: Log, runtime: Runtime[None]) -> Log:
    runtime.stream_writer("hi")
    return {"log": ["told"]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("leave", ["close", "throw"])
def test_leaving_a_stream_while_a_write_is_asked_for_frees_the_thread(durability: str, leave: str) -> None:
    """The write is done first, then the run is stopped: nothing is half known, nothing is leased."""
    graph = chain(tell).compile(checkpointer=InMemorySaver())
    stream: Any = graph.stream({}, THREAD, stream_mode="custom", durability=durability)
    assert next(stream) == "hi"
    if leave == "close":
        stream.close()
    else:
        with pytest.raises(ValueError, match="mine"):
            stream.throw(ValueError("mine"))
    assert graph.invoke(None, THREAD) == {"log": ["told"]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_leaving_an_async_stream_while_a_write_is_asked_for_frees_the_thread(durability: str) -> None:
    graph = chain(tell).compile(checkpointer=InMemorySaver())
    stream: Any = graph.astream({}, THREAD, stream_mode="custom", durability=durability)
    assert await anext(stream) == "hi"
    await stream.aclose()
    assert await graph.ainvoke(None, THREAD) == {"log": ["told"]}


def test_an_interruption_after_the_claim_has_landed_frees_the_thread() -> None:
    """Ctrl-C between the COMMIT of the admission and its return: the run is known to have begun, and is ended."""
    graph = chain(tell).compile(checkpointer=InMemorySaver())
    with pytest.raises(SimulatedCrash), crash_at("transaction.durable", 1):
        graph.invoke({}, THREAD)
    assert graph.get_state(THREAD).tasks[0].error is not None
    assert graph.invoke(None, THREAD) == {"log": ["told"]}


async def test_siblings_that_came_back_with_the_one_that_ended_the_run_keep_their_results() -> None:
    """SystemExit in one task of a superstep, two others done in the same turn of the loop."""
    calls: list[str] = []

    async def leaves(state: Log) -> Log:
        calls.append("leaves")
        if len(calls) == 1:
            raise SystemExit(3)
        return {"log": ["stayed"]}

    async def one(state: Log) -> Log:
        calls.append("one")
        return {"log": ["one"]}

    async def two(state: Log) -> Log:
        calls.append("two")
        return {"log": ["two"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    for node in (leaves, one, two):
        graph.add_node(node).add_edge(START, node.__name__)
    compiled = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(SystemExit):
        await compiled.ainvoke({}, THREAD)
    assert compiled.get_state(THREAD).next == ("leaves",)
    assert await compiled.ainvoke(None, THREAD) == {"log": ["stayed", "one", "two"]}
    assert sorted(calls) == ["leaves", "leaves", "one", "two"]


def test_the_run_id_of_a_paused_run_shows_the_pause_and_runs_nothing() -> None:
    """INV-3: an ended run is shown, whatever has happened since."""
    calls: list[str] = []

    def first(state: Log) -> Log:
        return {"log": ["first"]}

    def second(state: Log) -> Log:
        calls.append("second")
        return {"log": ["second"]}

    graph = chain(first, second).compile(checkpointer=InMemorySaver())
    named = {**THREAD, "run_id": "r"}
    for _ in range(2):
        assert graph.invoke({"log": ["in"]}, named, interrupt_before=["second"]) == {"log": ["in", "first"]}
    assert (calls, graph.get_state(THREAD).next) == ([], ("second",))
    assert graph.invoke(None, THREAD) == {"log": ["in", "first", "second"]}
    assert graph.invoke({"log": ["in"]}, named, interrupt_before=["second"]) == {"log": ["in", "first"]}
    assert calls == ["second"]


def test_a_repeated_run_id_finishes_nothing_first() -> None:
    graph = chain(ask).compile(checkpointer=InMemorySaver())
    named = {**THREAD, "run_id": "r"}
    asked = graph.invoke({"log": ["in"]}, named)
    assert graph.invoke({"log": ["in"]}, named, on_pending="finish") == asked


def ask(state: Log) -> Log:
    return {"log": [interrupt("?")]}


def test_an_input_that_only_its_run_holds_is_not_answered_past(tmp_path: Any) -> None:
    """INV-6: in `exit` mode a dead process's input stands in its run row; the discarded question stays discarded."""
    with SqliteSaver(tmp_path / "t.db") as saver:
        graph = chain(ask).compile(checkpointer=saver)
        graph.invoke({"log": ["old"]}, THREAD)
        claim_without_end(graph)
        with pytest.raises(PendingWorkError):
            graph.invoke(Command(resume="yes"), THREAD)
        with pytest.raises(PendingWorkError):
            graph.update_state(THREAD, {"log": ["edit"]})
        assert graph.invoke(None, THREAD)["log"] == ["old", "new"]


def claim_without_end(graph: Any) -> None:
    """Admit an `exit` run with a new input in a process that dies at once."""
    pid = os.fork()
    if pid == 0:
        points.hook = lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == points.ADMITTED else None
        graph.invoke({"log": ["new"]}, THREAD, durability="exit", on_pending="discard")
    os.waitpid(pid, 0)


def test_a_sync_invoke_inside_an_async_node_under_sync_invoke_returns() -> None:
    """The background loop cannot wait for itself: the inner graph's async nodes get a loop of their own."""

    async def inner(state: Log) -> Log:
        await asyncio.sleep(0)
        return {"log": [threading.current_thread().name]}

    within = chain(inner).compile()

    async def outer(state: Log) -> Log:
        return {"log": within.invoke({})["log"]}

    assert chain(outer).compile().invoke({}) == {"log": ["stepwell-loop"]}


def test_a_reducer_that_changes_its_argument_counts_once_beside_a_router() -> None:
    class InPlace(TypedDict, total=False):
        log: Annotated[list[Any], operator.iadd]

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(InPlace)
    graph.add_node("a", lambda state: {"log": ["a"]}).add_node("b", lambda state: {"log": ["b"]})
    graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "b", ["b"])
    compiled = graph.compile(checkpointer=InMemorySaver())
    assert compiled.invoke({"log": ["in"]}, THREAD) == {"log": ["in", "a", "b"]} == compiled.get_state(THREAD).values
