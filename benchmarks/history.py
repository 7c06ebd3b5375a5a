"""Rows that ask what reading back costs: a whole history beside LangGraph's, and a page, the state and a fork of a long
thread beside those of a short one.

A history is listed, and looked into: the values, what is next, and the config of every checkpoint.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.engines import Engine, folder, langgraph, stepwell
from benchmarks.graphs import carrier
from benchmarks.measure import Row, Run, Side, Target

WHOLE = 500
SHORT, LONG = 10, 10_000
CONFIG = {"recursion_limit": 100_000, "configurable": {"thread_id": "carrier"}}


def listed(graph: Any) -> object:
    """List all there is."""
    return list(graph.get_state_history(CONFIG))


def whole(graph: Any) -> object:
    """Read all there is."""
    return [(snapshot.values, snapshot.next, snapshot.config) for snapshot in graph.get_state_history(CONFIG)]


def page(graph: Any) -> object:
    """Read the last ten checkpoints."""
    return [(found.values, found.next, found.config) for found in graph.get_state_history(CONFIG, limit=10)]


def state(graph: Any) -> object:
    """Read the newest state."""
    return graph.get_state(CONFIG).values


def fork(graph: Any) -> object:
    """Branch off the newest checkpoint."""
    return graph.update_state(graph.get_state(CONFIG).config, {"n": 0}, as_node="again")


CALLS: dict[str, Callable[[Any], object]] = {"a page of 10": page, "get_state": state, "a fork": fork}


def rows() -> list[Row]:
    """Return the rows. LangGraph's own growth is for information."""
    made = []
    for name, read in {"listed": listed, "looked into": whole}.items():
        ours, theirs = (_side(engine, WHOLE, read, WHOLE) for engine in (stepwell, langgraph))
        label = f"history of {WHOLE} {name}, LangGraph vs Stepwell"
        made.append(Row(label, theirs, ours, "checkpoint", Target("at least", 10)))
    for name, call in CALLS.items():
        for engine, label, target in ((stepwell, "Stepwell", Target("at most", 1.3)), (langgraph, "LangGraph", None)):
            long, short = _side(engine, LONG, call), _side(engine, SHORT, call)
            made.append(Row(f"{name} after {LONG:,} steps vs {SHORT}, {label}", long, short, "call", target))
    return made


def _side(engine: Callable[[], Engine], steps: int, call: Callable[[Any], object], count: int = 1) -> Side:
    return Side(f"{engine.__name__}, {steps:,} steps", count, partial(_reopened, engine, steps, call))


@contextmanager
def _reopened(engine: Callable[[], Engine], steps: int, call: Callable[[Any], object]) -> Iterator[Run]:
    with folder() as path:
        shutil.copytree(_thread_of(engine, steps).name, path, dirs_exist_ok=True)
        with engine().sqlite(path / "thread.db") as saver:
            graph = carrier(engine()).compile(checkpointer=saver)
            state(graph)  # the first read opens the file
            yield lambda: call(graph)


@cache
def _thread_of(engine: Callable[[], Engine], steps: int) -> TemporaryDirectory[str]:
    """Run a thread of so many steps; the file goes when the process ends."""
    place = TemporaryDirectory(prefix="stepwell-bench-")
    with engine().sqlite(Path(place.name) / "thread.db") as saver:
        graph = carrier(engine()).compile(checkpointer=saver)
        graph.invoke({"n": 0, "steps": steps, "payload": "x" * 1_000}, CONFIG, durability="async")
    return place
