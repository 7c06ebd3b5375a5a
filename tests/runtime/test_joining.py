"""Calls that repeat a run's id while it is still being driven: they wait for it and are shown how it ended."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stepwell import SqliteSaver
from tests.runtime.graphs import Log, chain, thread

SUBMITS = 10


def counted(calls: list[int], goes_on: threading.Event) -> Any:
    def node(state: Log) -> Log:
        calls.append(1)
        goes_on.wait(30)
        return {"log": ["done"]}

    return node


def test_K1_calls_with_one_run_id_at_the_same_moment_are_one_execution(saver: SqliteSaver) -> None:
    """Ten submits at once, one idempotency key: one runs, the others attach to it, and all get the same result."""
    calls, goes_on, submitted = list[int](), threading.Event(), threading.Barrier(SUBMITS + 1)
    graph = chain(("node", counted(calls, goes_on))).compile(checkpointer=saver)

    def submit(number: int) -> Any:
        submitted.wait(30)
        return graph.invoke({"log": ["in"]}, thread(run_id="order-7"))

    with ThreadPoolExecutor(SUBMITS) as pool:
        futures = [pool.submit(submit, number) for number in range(SUBMITS)]
        submitted.wait(30)
        goes_on.set()
        assert [future.result()["log"] for future in futures] == [["in", "done"]] * SUBMITS
    assert calls == [1]


def test_K1_the_same_on_an_event_loop(saver: SqliteSaver) -> None:
    calls, goes_on = list[int](), threading.Event()
    graph = chain(("node", counted(calls, goes_on))).compile(checkpointer=saver)

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(graph.ainvoke({"log": ["in"]}, thread(run_id="order-7"))) for _ in range(SUBMITS)]
        await asyncio.sleep(0)
        goes_on.set()
        return await asyncio.gather(*tasks)

    assert [result["log"] for result in asyncio.run(main())] == [["in", "done"]] * SUBMITS
    assert calls == [1]
