"""Rows that ask what a thread takes up, and what that costs in time: one that gathers messages, one that carries a
megabyte it does not touch. Sizes are those of the pages in use, by SQLite's own count; both savers sync fully.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Engine, folder, fresh_config, langgraph, langgraph_deltas, stepwell
from benchmarks.measure import Row, Run, Side, Target, answered_bytes

MESSAGES, MESSAGE_BYTES = 500, 1_000
CHANNELS, STEPS = 50, 200
MEGABYTE, KILOBYTE = 1_000_000, 1_000
FILE = "thread.db"
CONFIG = {"recursion_limit": 100_000, "configurable": {"thread_id": "t"}}

Build = Callable[[Engine], Any]


def rows() -> list[Row]:
    """Return the rows. What LangGraph takes up is for information."""
    gathering, carrying = (gatherer, {"n": 0, "messages": []}), (carrier_of(MEGABYTE), {"n": 0})
    made = []
    for engine, label, target in (
        (stepwell, "Stepwell", Target("at most", 3)),
        (langgraph, "LangGraph", None),
        (langgraph_deltas, "LangGraph, DeltaChannel", None),
    ):
        kept, sent = _kept(engine, label, *gathering), _size("the messages", MESSAGES * MESSAGE_BYTES)
        made.append(
            Row(f"{MESSAGES} messages of 1 kB, {label}", kept, sent, "thread", target, answered_bytes, rounds=1)
        )
    made += [
        _versus(f"{MESSAGES} messages of 1 kB, time", _running, MESSAGES, "step", *gathering, Target("at least", 10)),
        _versus("latest state of 500 messages", _state, 1, "call", *gathering, Target("at least", 1)),
        _versus("whole history of 500 messages", _history, MESSAGES, "checkpoint", *gathering, Target("at least", 15)),
        _versus(
            "whole history, LangGraph's DeltaChannel",
            _history,
            MESSAGES,
            "checkpoint",
            *gathering,
            Target("at least", 150),
            against=langgraph_deltas,
        ),
    ]
    for engine, label, target in (
        (stepwell, "Stepwell", Target("at most", 1.3)),
        (langgraph, "LangGraph", None),
    ):
        kept, sent = _kept(engine, label, *carrying), _size("the channels", MEGABYTE)
        made.append(Row(f"a megabyte carried along, {label}", kept, sent, "thread", target, answered_bytes, rounds=1))
    made.append(_versus("a megabyte carried along, time", _running, STEPS, "step", *carrying, Target("at least", 30)))
    heavy, light = (
        Side(f"Stepwell, {size:,} bytes", STEPS, partial(_running, stepwell, carrier_of(size), {"n": 0}))
        for size in (MEGABYTE, KILOBYTE)
    )
    made.append(Row("a step beside a megabyte vs a kilobyte", heavy, light, "step", Target("at most", 1.3)))
    return made


def gatherer(engine: Engine) -> Any:
    """Build a loop that adds a message of a kilobyte, hardly compressible, at each step."""

    keys: dict[str, Any] = {"n": int, "messages": Annotated[list[dict[str, str]], engine.appended]}
    state_of = TypedDict("state_of", keys)  # type: ignore[misc]

    def say(state: dict[str, Any]) -> dict[str, Any]:
        number = state["n"]
        return {"n": number + 1, "messages": [{"role": "user", "content": message(number)}]}

    return _loop(engine, state_of, say, MESSAGES)


@cache
def message(number: int) -> str:
    """Return a text of `MESSAGE_BYTES` that no compressor makes much of."""
    return random.Random(number).randbytes(MESSAGE_BYTES // 2).hex()


@cache
def carrier_of(size: int) -> Build:
    """Return what builds a loop over a state of `CHANNELS` channels of `size` bytes in all, none of which changes."""
    text = {f"c{number}": random.Random(number).randbytes(size // CHANNELS // 2).hex() for number in range(CHANNELS)}

    def build(engine: Engine) -> Any:
        state = TypedDict("state", {"n": int} | dict.fromkeys(text, str))  # type: ignore[misc]

        def count(values: Any) -> dict[str, Any]:
            number = values["n"]
            return {"n": number + 1} | (text if number == 0 else {})

        return _loop(engine, state, count, STEPS)

    return build


def _loop(engine: Engine, state: Any, node: Callable[..., Any], length: int) -> Any:
    graph = engine.StateGraph(state)
    graph.add_node("again", node)
    graph.add_edge(engine.START, "again")
    graph.add_conditional_edges("again", lambda values: "again" if values["n"] < length else engine.END)
    return graph


# -- sides -----------------------------------------------------------------------------------------------------------


def _versus(
    name: str,
    work: Callable[..., Any],
    count: int,
    unit: str,
    build: Build,
    input: dict[str, Any],
    target: Target,
    against: Callable[[], Engine] = langgraph,
) -> Row:
    over, under = (
        Side(label, count, partial(work, engine, build, input))
        for engine, label in ((against, "LangGraph"), (stepwell, "Stepwell"))
    )
    return Row(name, over, under, unit, target, rounds=3)


def _size(label: str, size: int) -> Side:
    @contextmanager
    def known() -> Iterator[Run]:
        yield lambda: size

    return Side(label, 1, known)


def _kept(engine: Callable[[], Engine], label: str, build: Build, input: dict[str, Any]) -> Side:
    @contextmanager
    def measured() -> Iterator[Run]:
        yield lambda: pages_in_use(Path(_thread_of(engine, build, _frozen(input)).name) / FILE)

    return Side(f"{label}, pages in use", 1, measured)


@contextmanager
def _running(engine: Callable[[], Engine], build: Build, input: dict[str, Any]) -> Iterator[Run]:
    with engine().sqlite_file() as saver:
        graph = build(engine()).compile(checkpointer=saver)
        yield lambda: graph.invoke(input, fresh_config(), durability="sync")


@contextmanager
def _reopened(engine: Callable[[], Engine], build: Build, input: dict[str, Any]) -> Iterator[Any]:
    """Open a copy of the file that a run has left, as a new process would."""
    with folder() as path:
        shutil.copytree(_thread_of(engine, build, _frozen(input)).name, path, dirs_exist_ok=True)
        with engine().sqlite(path / FILE) as saver:
            yield build(engine()).compile(checkpointer=saver)


@contextmanager
def _state(engine: Callable[[], Engine], build: Build, input: dict[str, Any]) -> Iterator[Run]:
    with _reopened(engine, build, input) as graph:
        graph.get_state({"configurable": {"thread_id": "another"}})  # the first read opens the file
        yield lambda: graph.get_state(CONFIG).values


@contextmanager
def _history(engine: Callable[[], Engine], build: Build, input: dict[str, Any]) -> Iterator[Run]:
    with _reopened(engine, build, input) as graph:
        yield lambda: [(found.values, found.next, found.config) for found in graph.get_state_history(CONFIG)]


def _frozen(input: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in input.items())


@cache
def _thread_of(
    engine: Callable[[], Engine], build: Build, input: tuple[tuple[str, Any], ...]
) -> TemporaryDirectory[str]:
    """Run the thread to its end; its file goes when the process ends."""
    place = TemporaryDirectory(prefix="stepwell-bench-")
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in input}
    with engine().sqlite(Path(place.name) / FILE) as saver:
        build(engine()).compile(checkpointer=saver).invoke(values, CONFIG, durability="sync")
    return place


def pages_in_use(path: Path) -> int:
    """Return the bytes of the pages that hold something, by SQLite's own count, of a file that nobody has open."""
    connection = sqlite3.connect(path)
    try:
        pragmas = ("page_count", "freelist_count", "page_size")
        pages, free, size = (int(connection.execute(f"pragma {name}").fetchone()[0]) for name in pragmas)
        return (pages - free) * size
    finally:
        connection.close()
