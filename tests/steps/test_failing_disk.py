"""A disk that is full at the nth write of a run whose nodes record what they do: the run says so, and is over."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stepwell import START, SqliteSaver, StateGraph, StoreError, effect, points, task
from tests.effects.acting import Outside
from tests.runtime.deaths import failing_at
from tests.runtime.graphs import Log, anote, thread


@pytest.mark.parametrize("nth", range(2, 8))
def test_the_write_that_failed_is_told_and_the_thread_goes_on(tmp_path: Path, nth: int) -> None:
    """Also where another write was queued behind it, which the fence then keeps out: in `async` they overlap."""
    outside = Outside()

    @task
    async def ask(question: str) -> str:
        return question

    @effect
    async def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    async def pay(state: Any) -> Any:
        return {"log": [await ask("?"), await charge(len(state["log"]))]}

    builder = StateGraph(Log).add_node("a", anote("a")).add_node("b", pay).add_node("c", pay).add_edge(START, "a")
    builder.add_edge("a", "b").add_edge("b", "c")
    with SqliteSaver(tmp_path / "db") as saver:
        graph = builder.compile(checkpointer=saver)
        points.hook = failing_at(nth)
        try:
            asyncio.run(graph.ainvoke({"log": ["in"]}, thread(), durability="async"))
        except StoreError as error:
            assert "The disk is full" in str(error)
            [row] = saver.threads()
            assert row.status == "failed"
        points.hook = None
        ended = asyncio.run(graph.ainvoke(None, thread()))
        assert ended == {"log": ["in", "a", "?", "2 #1", "?", "4 #2"]}
        assert len(outside.done) == 2
        assert list(saver.store.verify()) == []
