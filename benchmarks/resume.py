"""Rows that ask whether going on with a long thread costs more than with a short one of the same state size.

A thread stands at a breakpoint in a file; each round opens a copy of the file, as a new process would.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.engines import folder, stepwell
from benchmarks.graphs import carrier
from benchmarks.measure import Row, Run, Side, Target

SHORT, LONG = 10, 1_000
CONFIG = {"recursion_limit": 100_000, "configurable": {"thread_id": "carrier"}}
STOP = ["last"]

CALLS: dict[str, Callable[[Any], object]] = {
    "get_state": lambda graph: graph.get_state(CONFIG),
    "invoke(None)": lambda graph: graph.invoke(None, CONFIG),
}


def rows() -> list[Row]:
    """Return the rows."""
    flat = Target("at most", 1.3)
    return [
        Row(f"{name} after 1,000 steps vs 10", _side(LONG, call), _side(SHORT, call), "call", flat, rounds=9)
        for name, call in CALLS.items()
    ]


def _side(steps: int, call: Callable[[Any], object]) -> Side:
    return Side(f"Stepwell, {steps:,} steps", 1, partial(_reopened, steps, call))


@contextmanager
def _reopened(steps: int, call: Callable[[Any], object]) -> Iterator[Run]:
    with folder() as path:
        shutil.copytree(_thread_of(steps).name, path, dirs_exist_ok=True)
        with stepwell().sqlite(path / "thread.db") as saver:
            graph = carrier(stepwell()).compile(checkpointer=saver)
            yield lambda: call(graph)


@cache
def _thread_of(steps: int) -> TemporaryDirectory[str]:
    """Run a thread of `steps` steps up to its breakpoint; the file goes when the process ends."""
    place = TemporaryDirectory(prefix="stepwell-bench-")
    with stepwell().sqlite(Path(place.name) / "thread.db") as saver:
        graph = carrier(stepwell()).compile(checkpointer=saver, interrupt_before=STOP)
        graph.invoke({"n": 0, "steps": steps, "payload": "x" * 1_000}, CONFIG, durability="sync")
    return place
