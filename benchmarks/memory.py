"""Rows that ask whether a process stays as it was: what it holds after many supersteps of one run, and many runs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmarks.drive import Choose, on_sqlite, without_saver
from benchmarks.engines import fresh_config, stepwell
from benchmarks.graphs import chain, loop, one_more
from benchmarks.measure import Row, Run, Side, Target, answered_bytes

SUPERSTEPS, RUNS, TENTH = 100_000, 10_000, 10
FLOOR = 1_000_000
"""Added to what is held more than before, so that a few kilobytes are no ratio."""


def rows() -> list[Row]:
    """Return the rows."""
    flat = Target("at most", 1.05)
    made = []
    for saver, label in ((without_saver, "no saver"), (on_sqlite, "SQLite, async")):
        for name, count, work in (("supersteps of one run", SUPERSTEPS, _one_run), ("runs", RUNS, _many_runs)):
            over, under = (
                Side(f"after {number:,}", 1, partial(_held, saver, work, number)) for number in (count, count // TENTH)
            )
            title = f"held after {count:,} {name}, {label}"
            made.append(Row(title, over, under, "process", flat, answered_bytes, rounds=1))
    return made


def _one_run(saver: Any, count: int) -> Callable[[], None]:
    graph = loop(stepwell(), count, one_more).compile(checkpointer=saver)
    config = fresh_config(recursion_limit=count + 10)
    return lambda: graph.invoke({"n": 0}, config, durability="async")


def _many_runs(saver: Any, count: int) -> Callable[[], None]:
    graph = chain(stepwell(), 2, one_more).compile(checkpointer=saver)

    def run() -> None:
        for _ in range(count):
            graph.invoke({"n": 0}, fresh_config(), durability="async")

    return run


@contextmanager
def _held(saver: Choose, work: Callable[[Any, int], Callable[[], None]], count: int) -> Iterator[Run]:
    with saver(stepwell())() as opened:
        work(opened, 100)()  # what is made once is there
        measured = work(opened, count)

        def run() -> int:
            tracemalloc.start()
            try:
                measured()
                gc.collect()
                return FLOOR + tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

        yield run
