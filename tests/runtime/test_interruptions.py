"""Runs that are stopped in ways of their own: again and again, by a consumer while they fail, by a coroutine that is
closed, by a node that swallows a cancellation. Each leaves a thread that is free."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest

from stepwell import START, InMemorySaver, NodeCancelledError, Runtime, SqliteSaver, StateGraph
from tests.runtime.graphs import Log, Node, chain as named_chain, thread

THREAD = thread()


def chain(*nodes: Node) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that runs the functions one after another."""
    return named_chain(*((node.__name__, node) for node in nodes))


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

    async def node(state: Log, runtime: Runtime[None]) -> Log:
        return lone_writer(state, runtime)

    graph = chain(node).compile(checkpointer=InMemorySaver())
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
