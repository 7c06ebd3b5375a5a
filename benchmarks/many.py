"""Rows of many threads at once in one process: 200 of 20 steps each, on one event loop and one saver.

Both engines sync fully.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.engines import Engine, fresh_config, langgraph, stepwell
from benchmarks.graphs import chain, one_more_async
from benchmarks.measure import Row, Run, Side, Target, answered

THREADS, STEPS = 200, 20


def rows() -> list[Row]:
    """Return the rows."""
    over, under = (
        Side(engine.__name__, THREADS * STEPS, partial(_at_once, engine)) for engine in (langgraph, stepwell)
    )
    commits, syncs = (Side(label, 1, partial(_counted, label)) for label in ("commits", "syncs"))
    return [
        Row("200 threads x 20 steps at once, SQLite", over, under, "step", Target("at least", 25), rounds=3),
        Row("commits of these threads over syncs", commits, syncs, "run", Target("at least", 5), answered, rounds=1),
    ]


@contextmanager
def _at_once(engine: Callable[[], Engine]) -> Iterator[Run]:
    with asyncio.Runner() as runner:
        saver = engine().async_sqlite_file()
        opened = runner.run(saver.__aenter__())
        try:
            graph = chain(engine(), STEPS, one_more_async).compile(checkpointer=opened)
            runner.run(each_at_once(graph, 2))
            yield lambda: runner.run(each_at_once(graph, THREADS))
        finally:
            runner.run(saver.__aexit__(None, None, None))


async def each_at_once(graph: Any, threads: int) -> None:
    await asyncio.gather(
        *(graph.ainvoke({"n": 0}, fresh_config(), durability="sync") for _ in range(threads)),
    )


@contextmanager
def _counted(what: str) -> Iterator[Run]:
    """Run Stepwell's side once more and count: commits that each run asked for, or syncs of the file."""
    with stepwell().sqlite_file() as saver:
        graph = chain(stepwell(), STEPS, one_more_async).compile(checkpointer=saver)

        def run() -> int:
            before = saver.store.counts.syncs
            asyncio.run(each_at_once(graph, THREADS))
            return THREADS * (STEPS + 1) if what == "commits" else int(saver.store.counts.syncs - before)

        yield run
