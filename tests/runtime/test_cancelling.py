"""Runs that are stopped from outside: cancelled, interrupted from the keyboard, or left by the consumer of a stream.

Each leaves a record, keeps what had finished, and frees the thread at once.
"""

import asyncio
import contextlib
import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import START, SqliteSaver, StateGraph, points
from tests.runtime.graphs import AsyncCounted, Call, Counted, Log, anote, chain, fan, letters, note, thread


class Gate:
    """An async node that waits until it is opened, and tells when it was reached."""

    def __init__(self, name: str = "slow") -> None:
        self.name = name
        self.reached = asyncio.Event()
        self.open = False
        self.calls = 0

    async def __call__(self, state: Log) -> dict[str, list[str]]:
        self.calls += 1
        self.reached.set()
        if not self.open:
            await asyncio.Event().wait()
        return {"log": [self.name]}


async def cancelled(graph: Any, gate: Gate, durability: str = "sync", config: Any = None) -> None:
    """Start a run, and cancel it once the gate is reached."""
    running = asyncio.create_task(graph.ainvoke({}, config or thread(), durability=durability))
    await gate.reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancelled_run_is_recorded_and_continued(saver: SqliteSaver, any_durability: str) -> None:
    before, gate = Counted("before"), Gate()
    graph = chain(("before", before), ("slow", gate), ("after", note("after"))).compile(checkpointer=saver)
    await cancelled(graph, gate, any_durability)
    snapshot = graph.get_state(thread())
    assert (snapshot.next, snapshot.values) == (("slow",), {"log": ["before"]})
    assert "CancelledError" in (snapshot.tasks[0].error or "")
    gate.open = True
    assert await graph.ainvoke(None, thread()) == {"log": ["before", "slow", "after"]}
    assert (before.calls, gate.calls) == (1, 2)


@pytest.mark.parametrize("done_first", [True, False])
async def test_L1_the_record_of_a_cancellation_is_the_same_in_every_mode(done_first: bool, saver: SqliteSaver) -> None:
    """LangGraph's report 5672: with `exit` durability a cancellation mid-step left no trace of what was cancelled."""
    records = {}
    for mode in ("sync", "async", "exit"):
        done, gate = AsyncCounted("done"), Gate()
        nodes = (("done", done), ("slow", gate)) if done_first else (("slow", gate), ("done", done))
        graph = fan(*nodes).compile(checkpointer=saver)
        await cancelled(graph, gate, mode, thread(mode))
        snapshot = graph.get_state(thread(mode))
        records[mode] = [(task.name, task.error, task.result) for task in snapshot.tasks]
        assert (snapshot.values, snapshot.next) == ({"log": ["done"]}, ("slow",))
        gate.open = True
        assert graph.invoke(None, thread(mode)) == {"log": ["done", "slow"]}
        assert done.calls == 1
    assert records["sync"] == records["async"] == records["exit"]
    assert records["sync"][0] == ("done", None, {"log": ["done"]})
    assert records["sync"][1][0] == "slow"
    assert "CancelledError" in str(records["sync"][1][1])


async def test_a_cancel_during_admission_frees_the_thread(saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    running = asyncio.create_task(graph.ainvoke({}, thread(), durability=any_durability))
    await asyncio.sleep(0)
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        assert await graph.ainvoke({}, thread()) in ({"log": ["a", "b"]}, {"log": ["a", "b", "a", "b"]})
    assert graph.get_state(thread()).next == ()


async def test_a_run_may_be_cancelled_at_every_turn_of_the_loop(saver: SqliteSaver, any_durability: str) -> None:
    """Wherever the cancellation strikes, the thread is free, and it ends in the state of the undisturbed run."""
    graph = fan(("a", anote("a")), ("b", note("b"))).add_node("c", anote("c")).add_node("d", note("d"))
    compiled = graph.add_edge(["a", "b"], "c").add_edge("c", "d").compile(checkpointer=saver)
    for turns in range(25):
        config = thread(f"t{turns}")
        running = asyncio.create_task(compiled.ainvoke({"log": ["in"]}, config, durability=any_durability))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            known = (await compiled.aget_state(config)).created_at is not None
            await compiled.ainvoke(None if known else {"log": ["in"]}, config, durability=any_durability)
        assert (await compiled.aget_state(config)).values == {"log": ["in", "a", "b", "c", "d"]}


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


class Hand:
    """A node during whose first call somebody presses Ctrl-C."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0

    def __call__(self, state: Log) -> dict[str, list[str]]:
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt
        return {"log": [self.name]}


def test_ctrl_c_is_recorded_and_the_thread_is_free(saver: SqliteSaver, any_durability: str) -> None:
    before, hand = Counted("before"), Hand("hand")
    graph = chain(("before", before), ("hand", hand)).compile(checkpointer=saver)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({}, thread(), durability=any_durability)
    (task,) = graph.get_state(thread()).tasks
    assert "KeyboardInterrupt" in (task.error or "")
    assert graph.invoke(None, thread(), durability=any_durability) == {"log": ["before", "hand"]}
    assert (before.calls, hand.calls) == (1, 2)


@pytest.mark.parametrize("wide", [False, True])
def test_ctrl_c_at_any_point_of_a_run_frees_the_thread_and_loses_nothing(
    wide: bool, saver: SqliteSaver, any_durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that it strikes lands all the same: the thread ends in the state of the undisturbed run."""
    if wide:
        builder = fan(("a", note("a")), ("b", note("b"))).add_node("c", note("c")).add_edge(["a", "b"], "c")
    else:
        builder = chain(("a", note("a")), ("b", note("b")), ("c", note("c")))
    graph = builder.compile(checkpointer=saver)
    for nth in itertools.count():
        config, passed = thread(f"t{nth}"), itertools.count()

        def strike(point: str, nth: int = nth, passed: Iterator[int] = passed) -> None:
            if next(passed) == nth:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(points, "hook", strike)
            with contextlib.suppress(KeyboardInterrupt):
                graph.invoke({"log": ["in"]}, config, durability=any_durability)
        begun = any(saver.runs(f"t{nth}"))
        ended = graph.invoke(None if begun else {"log": ["in"]}, config, durability=any_durability)
        assert ended == {"log": ["in", "a", "b", "c"]}
        if next(passed) <= nth:
            break  # there are not so many points
    assert list(saver.store.verify()) == []


async def test_a_cancellation_while_the_write_ahead_is_waited_for_loses_no_superstep(tmp_path: Path) -> None:
    """`async`: the write ahead lands, and so does the one behind it that was about to be queued."""
    with SqliteSaver(tmp_path / "threads.db") as saver:
        lock, reached, calls = saver.store._writer.lock, asyncio.Event(), list[str]()

        async def a(state: Log) -> dict[str, list[str]]:
            lock.acquire()  # from here on no write lands
            calls.append("a")
            return {"log": ["a"]}

        async def b(state: Log) -> dict[str, list[str]]:
            reached.set()  # the engine goes on in this turn of the loop, up to where it waits
            calls.append("b")
            return {"log": ["b"]}

        graph = chain(("a", a), ("b", b), ("c", anote("c"))).compile(checkpointer=saver)
        running = asyncio.create_task(graph.ainvoke({}, thread(), durability="async"))
        await reached.wait()
        running.cancel()
        await asyncio.sleep(0)
        lock.release()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await graph.ainvoke(None, thread()) == {"log": ["a", "b", "c"]}
        assert calls == ["a", "b"]


def interrupted_batch(saver: SqliteSaver, durability: str) -> tuple[Any, list[Any]]:
    """Return a graph of three tasks, one after another, of which the third was interrupted by Ctrl-C."""
    nodes: list[Any] = [Counted("a"), Counted("b"), Hand("c")]
    graph = fan(*((node.name, node) for node in nodes)).add_node("end", note("end"))
    graph.add_edge(["a", "b", "c"], "end")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(KeyboardInterrupt):
        compiled.invoke({"log": ["1st"]}, thread(max_concurrency=1), durability=durability)
    return compiled, nodes


def test_L2_after_ctrl_c_the_step_can_be_finished_before_a_new_input(saver: SqliteSaver, any_durability: str) -> None:
    """EvoScientist's pull request 464: after Ctrl-C the next message lost what had finished or repeated the batch."""
    graph, nodes = interrupted_batch(saver, any_durability)
    assert graph.get_state(thread()).next == ("c",)
    result = graph.invoke({"log": ["2nd"]}, thread(), on_pending="finish", durability=any_durability)
    assert result == {"log": ["1st", "a", "b", "c", "end", "2nd", "a", "b", "c", "end"]}
    assert [node.calls for node in nodes] == [2, 2, 3]


def test_L2_after_ctrl_c_the_rest_can_be_dropped_and_what_had_finished_stays_visible(
    saver: SqliteSaver, any_durability: str
) -> None:
    """What was finished is in the history; nothing of the old input runs again."""
    graph, nodes = interrupted_batch(saver, any_durability)
    result = graph.invoke({"log": ["2nd"]}, thread(), on_pending="discard", durability=any_durability)
    assert result == {"log": ["1st", "2nd", "a", "b", "c", "end"]}
    assert [node.calls for node in nodes] == [2, 2, 2]
    dropped = [s for s in graph.get_state_history(thread()) if any("Keyboard" in (t.error or "") for t in s.tasks)]
    assert [[task.result for task in snapshot.tasks] for snapshot in dropped] == [
        [{"log": ["a"]}, {"log": ["b"]}, None]
    ]


# -- consumers that go away -------------------------------------------------------------------------------------------


def leave_by_closing(chunks: Any) -> None:
    chunks.close()


def leave_by_dropping(chunks: Any) -> None:
    del chunks
    gc.collect()


@pytest.mark.parametrize("leave", [leave_by_closing, leave_by_dropping])
def test_leaving_a_stream_stops_the_run_and_frees_the_thread(
    leave: Callable[[Any], None], saver: SqliteSaver, any_durability: str
) -> None:
    nodes = [Counted(name) for name in "abc"]
    graph = chain(*((node.name, node) for node in nodes)).compile(checkpointer=saver)
    holder = [graph.stream({}, thread(), durability=any_durability)]
    assert next(holder[0]) == {"a": {"log": ["a"]}}
    leave(holder.pop())
    assert graph.get_state(thread()).next in (("b",), ("c",))
    assert graph.invoke(None, thread()) == {"log": ["a", "b", "c"]}
    assert [node.calls for node in nodes] == [1, 1, 1]


async def test_leaving_an_async_stream_stops_the_run_and_frees_the_thread(
    saver: SqliteSaver, any_durability: str
) -> None:
    nodes = [AsyncCounted(name) for name in "abc"]
    graph = chain(*((node.name, node) for node in nodes)).compile(checkpointer=saver)
    chunks = graph.astream({}, thread(), durability=any_durability)
    assert await anext(chunks) == {"a": {"log": ["a"]}}
    await chunks.aclose()
    assert (await graph.aget_state(thread())).next in (("b",), ("c",))
    assert await graph.ainvoke(None, thread()) == {"log": ["a", "b", "c"]}
    assert [node.calls for node in nodes] == [1, 1, 1]


async def test_leaving_a_stream_mid_step_keeps_what_had_finished(saver: SqliteSaver) -> None:
    """INV-4."""
    done, gate = AsyncCounted("done"), Gate()
    graph = fan(("done", done), ("slow", gate)).compile(checkpointer=saver)
    chunks = graph.astream({}, thread())
    assert await anext(chunks) == {"done": {"log": ["done"]}}
    await chunks.aclose()
    gate.open = True
    assert await graph.ainvoke(None, thread()) == {"log": ["done", "slow"]}
    assert done.calls == 1


class Tidy:
    """An async node that waits for ever and, once it is cancelled, takes a few turns of the loop to clean up."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.tidied = False

    async def __call__(self, state: Log) -> dict[str, list[str]]:
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            self.tidied = True
        return {"log": ["never"]}


async def test_a_stream_that_is_left_waits_for_its_async_nodes_to_clean_up(saver: SqliteSaver) -> None:
    node = Tidy()
    chunks = fan(("done", AsyncCounted("done")), ("tidy", node)).compile(checkpointer=saver).astream({}, thread())
    await anext(chunks)
    assert node.reached.is_set()
    await chunks.aclose()
    assert node.tidied


async def test_a_run_that_is_cancelled_waits_for_its_async_nodes_to_clean_up(saver: SqliteSaver) -> None:
    nodes = [Tidy(), Tidy()]
    graph = fan(("a", nodes[0]), ("b", nodes[1])).compile(checkpointer=saver)
    running = asyncio.create_task(graph.ainvoke({}, thread()))
    await nodes[1].reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [node.tidied for node in nodes] == [True, True]


def test_a_stream_that_is_never_read_starts_nothing(saver: SqliteSaver) -> None:
    node = Counted("a")
    graph = chain(("a", node)).compile(checkpointer=saver)
    graph.stream({}, thread()).close()
    assert (node.calls, graph.get_state(thread()).created_at) == (0, None)


# -- the pool ---------------------------------------------------------------------------------------------------------


def pool_threads() -> int:
    return sum(worker.name.startswith("stepwell_") for worker in threading.enumerate())


async def test_L5_cancelling_as_a_sync_task_returns_costs_no_pool_thread() -> None:
    """Temporal's report 1648: a cancellation raised into a pool thread killed it; the worker lost its capacity."""
    loop = asyncio.get_running_loop()
    reached: list[asyncio.Event] = []

    def node(state: Log) -> dict[str, list[str]]:
        loop.call_soon_threadsafe(reached[-1].set)
        return {"log": ["node"]}

    graph = chain(("node", node)).compile()
    await asyncio.gather(*(fan_of_eight().ainvoke({}) for _ in range(1)))
    before = pool_threads()
    for _ in range(1000):
        reached.append(asyncio.Event())
        running = asyncio.create_task(graph.ainvoke({}))
        await reached[-1].wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert before <= pool_threads() <= before + 4
    assert len((await fan_of_eight().ainvoke({}))["log"]) == 8


def fan_of_eight() -> Any:
    """Return a graph whose eight sync nodes must all be on threads at once."""
    together = threading.Barrier(8)

    def node(state: Log) -> dict[str, list[str]]:
        together.wait(60)
        return {"log": ["x"]}

    graph = StateGraph(Log)
    for number in range(8):
        graph.add_node(str(number), node).add_edge(START, str(number))
    return graph.compile()


def test_an_exception_of_the_caller_between_chunks_frees_the_thread(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="consumer"):
        for _ in graph.stream({}, thread()):
            raise RuntimeError("consumer")
    gc.collect()
    assert call(graph, None, thread()) == {"log": ["a", "b", "c"]}
