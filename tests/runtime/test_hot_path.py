"""What a superstep costs beside the transaction it needs: counted, not timed."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import END, START, InMemorySaver, SqliteSaver, StateGraph
from tests.runtime.graphs import Log, thread


def counting(steps: int) -> StateGraph[Log]:
    """A node that a router sends round `steps` times."""
    graph: StateGraph[Log] = StateGraph(Log)
    graph.add_node("more", lambda state: {"log": ["x"]})
    graph.add_edge(START, "more")
    graph.add_conditional_edges("more", lambda state: "more" if len(state["log"]) < steps else END, ["more", END])
    return graph


def left_behind(call: Callable[[], Any]) -> set[str]:
    """Return the types of what nothing but the garbage collector can free after this call."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        call()
        gc.collect()
        return {type(found).__name__ for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("durable", [False, True])
def test_a_superstep_leaves_nothing_for_the_garbage_collector(durable: bool) -> None:
    graph: Any = counting(3).compile(checkpointer=InMemorySaver() if durable else None)
    left = left_behind(lambda: graph.invoke({}, thread()))
    assert "Run" in left  # a run itself is one cycle; of what it did, nothing is left
    assert left.isdisjoint({"TaskRun", "Call", "Task", "Merged", "CheckpointRow", "Commit", "Member"})


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts what other threads hand back to it."""

    hand_backs = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override]
        self.hand_backs += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def test_a_sync_node_and_its_router_are_one_turn_of_a_pool_thread() -> None:
    loop = CountingLoop()
    try:
        graph: Any = counting(5).compile()
        assert loop.run_until_complete(graph.ainvoke({})) == {"log": ["x"] * 5}
        assert loop.hand_backs == 5
    finally:
        loop.close()


def test_a_loop_that_runs_were_made_on_is_free_to_go(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        graph: Any = counting(3).compile(checkpointer=saver)
        loop = CountingLoop()
        assert loop.run_until_complete(graph.ainvoke({}, thread())) == {"log": ["x"] * 3}
        loop.close()
        gone = weakref.ref(loop)
        del loop
        gc.collect()
        assert gone() is None


def test_an_async_chain_without_waiting_takes_no_turn_of_the_loop() -> None:
    async def more(state: Log) -> dict[str, list[str]]:
        return {"log": ["x"]}

    async def scenario() -> list[str]:
        turns: list[str] = []
        asyncio.get_running_loop().call_soon(turns.append, "the loop had a turn")
        graph: StateGraph[Log] = StateGraph(Log)
        graph.add_sequence([(f"n{i}", more) for i in range(5)]).add_edge(START, "n0")
        compiled: Any = graph.compile(checkpointer=InMemorySaver())
        assert await compiled.ainvoke({}, thread()) == {"log": ["x"] * 5}
        return list(turns)  # as they are now: the loop turns once more when this is done

    assert asyncio.run(scenario()) == []
