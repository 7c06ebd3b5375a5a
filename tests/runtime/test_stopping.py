"""A run stopped at an odd moment leaves a thread that anybody can go on with, and one that has ended stays so."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import operator
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    InMemorySaver,
    NodeCancelledError,
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


# -- more than one interruption ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_that_is_cancelled_again_and_again_frees_its_thread(
    streamed: bool, durability: Any, tmp_path: Path
) -> None:
    """As anyio's scopes cancel, at every turn of the loop until the task has ended; here from a commit on."""
    with SqliteSaver(tmp_path / "threads.db") as saver:
        lock, reached = saver.store._writer.lock, asyncio.Event()

        async def a(state: Log) -> Log:
            lock.acquire()  # from here on no write lands
            reached.set()  # the engine goes on in this turn of the loop, up to where it waits
            return {"log": ["a"]}

        async def b(state: Log) -> Log:
            return {"log": ["b"]}

        async def c(state: Log) -> Log:
            return {"log": ["c"]}

        graph = chain(a, b, c).compile(checkpointer=saver)

        async def run() -> None:
            if streamed:
                async for _ in graph.astream({}, THREAD, durability=durability):
                    pass
            else:
                await graph.ainvoke({}, THREAD, durability=durability)

        running = asyncio.create_task(run())
        await reached.wait()
        for turn in itertools.count():
            running.cancel()
            if turn == 3:
                lock.release()
            await asyncio.sleep(0)
            if running.done():
                break
        with pytest.raises(asyncio.CancelledError):
            await running
        with saver.store.reading() as reader:
            row = reader.thread("t")
        assert row is not None
        assert row.run_id == ""
        await graph.ainvoke(None, THREAD)
        assert graph.get_state(THREAD).values == {"log": ["a", "b", "c"]}


class Left(Exception):
    """What a consumer raises."""


def lone_writer(state: Log, runtime: Runtime[None]) -> Log:
    runtime.stream_writer("live")
    raise ValueError("the node's own")


@pytest.mark.parametrize("error", [Left, KeyboardInterrupt])
def test_what_a_consumer_throws_in_is_not_replaced_by_how_its_run_fails(error: type[BaseException]) -> None:
    graph = chain(lone_writer).compile(checkpointer=InMemorySaver())
    stream: Any = graph.stream({}, THREAD, stream_mode="custom")
    assert next(stream) == "live"
    with pytest.raises(error):
        stream.throw(error())
    assert graph.get_state(THREAD).tasks[0].error is not None


@pytest.mark.parametrize("leave", ["close", "throw"])
async def test_leaving_a_stream_whose_run_fails_meanwhile_raises_nothing_of_it(leave: str) -> None:
    """The chunk is handed out while the end of the run is asked for: that is written first."""
    graph = chain(lone_writer).compile(checkpointer=InMemorySaver())
    stream: Any = graph.astream({}, THREAD, stream_mode=["tasks", "custom"])
    async for mode, _ in stream:
        if mode == "custom":
            break
    if leave == "close":
        await stream.aclose()
    else:
        with pytest.raises(Left):
            await stream.athrow(Left())
    assert "the node's own" in str((await graph.aget_state(THREAD)).tasks[0].error)


async def test_a_consumer_that_is_cancelled_is_handed_nothing_more() -> None:
    """Not even what was sent before: it might leave at that, and its cancellation would be lost."""
    consumers: list[asyncio.Task[None]] = []

    async def node(state: Log, runtime: Runtime[None]) -> Log:
        await asyncio.sleep(0)
        consumers[0].cancel()
        runtime.stream_writer("too late")
        await asyncio.Event().wait()
        return {}

    graph = chain(node).compile(checkpointer=InMemorySaver())

    async def consume() -> None:
        async for _ in graph.astream({}, THREAD, stream_mode="custom"):
            break

    consumers.append(asyncio.create_task(consume()))
    with pytest.raises(asyncio.CancelledError):
        await consumers[0]
    assert "CancelledError" in str(graph.get_state(THREAD).tasks[0].error)


# -- coroutines that nobody drives any more ---------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
def test_a_run_whose_coroutine_is_closed_frees_its_thread(wide: bool, saver: SqliteSaver) -> None:
    """As a loop that is torn down does it: nothing can be awaited any more."""
    reached: list[bool] = []

    async def a(state: Log) -> Log:
        if not reached:
            reached.append(True)
            await asyncio.Event().wait()
        return {"log": ["a"]}

    async def b(state: Log) -> Log:
        return {"log": ["b"]}

    builder: Any = chain(a)
    graph = (builder.add_node(b).add_edge(START, "b") if wide else builder).compile(checkpointer=saver)

    async def close_it() -> None:
        coroutine = graph.ainvoke({}, THREAD)
        running = asyncio.create_task(coroutine)
        while not reached:
            await asyncio.sleep(0)
        coroutine.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(close_it())
    assert graph.invoke(None, THREAD) == {"log": ["a", "b"] if wide else ["a"]}


async def test_a_node_that_raises_GeneratorExit_frees_its_thread(saver: SqliteSaver, any_durability: str) -> None:
    healed = False

    async def a(state: Log) -> Log:
        await asyncio.sleep(0)
        if not healed:
            raise GeneratorExit
        return {"log": ["a"]}

    graph = chain(a).compile(checkpointer=saver)
    with pytest.raises(GeneratorExit):
        await graph.ainvoke({}, THREAD, durability=any_durability)
    healed = True
    assert await graph.ainvoke(None, THREAD) == {"log": ["a"]}


async def test_a_timeout_inside_a_node_is_no_cancellation_of_its_run(saver: SqliteSaver) -> None:
    async def a(state: Log) -> Log:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return {"log": ["timed out"]}
        return {}

    graph = chain(a).compile(checkpointer=saver)
    assert await graph.ainvoke({}, THREAD) == {"log": ["timed out"]}


async def test_a_node_that_gives_up_inside_a_cancelled_task_fails_and_is_no_cancellation(saver: SqliteSaver) -> None:
    """The caller winds up after a cancellation of its own: what it runs meanwhile is not cancelled by that."""

    async def a(state: Log) -> Log:
        await asyncio.sleep(0)
        raise asyncio.CancelledError

    graph = chain(a).compile(checkpointer=saver)

    async def caller() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(NodeCancelledError):
                await graph.ainvoke({}, THREAD)

    calling = asyncio.create_task(caller())
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert "NodeCancelledError" in str(graph.get_state(THREAD).tasks[0].error)


async def test_a_lone_node_that_swallows_a_cancellation_keeps_it_from_its_run(saver: SqliteSaver) -> None:
    """It runs in the caller's own task, as any coroutine that is awaited: there is no telling who was meant."""
    reached = asyncio.Event()

    async def a(state: Log) -> Log:
        reached.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return {"log": ["a"]}

    running = asyncio.create_task(chain(a).compile(checkpointer=saver).ainvoke({}, THREAD))
    await reached.wait()
    running.cancel()
    assert await running == {"log": ["a"]}
