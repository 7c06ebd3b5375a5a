"""Rows of going on: a long thread in a new process, and a question asked and answered. On SQLite; both sync fully."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Engine, folder, fresh_config, langgraph, stepwell
from benchmarks.graphs import carrier
from benchmarks.measure import Row, Run, Side, Target
from benchmarks.storage import Build, message

LONG = 1_000
QUESTIONS = 50
CONFIG = {"recursion_limit": 100_000, "configurable": {"thread_id": "carrier"}}


def rows() -> list[Row]:
    """Return the rows."""
    five = Target("at least", 5)
    made = []
    for build, what in ((carrier, "1,000 steps"), (talker, "1,000 messages")):
        over, under = (Side(engine.__name__, 1, partial(_stopped, engine, build)) for engine in (langgraph, stepwell))
        made.append(Row(f"going on with a thread of {what}", over, under, "call", five, rounds=9))
    asked, answered = (Side(engine.__name__, QUESTIONS, partial(_asking, engine)) for engine in (langgraph, stepwell))
    return [*made, Row("a question asked and answered", asked, answered, "question", five)]


def talker(engine: Engine) -> Any:
    """Build what `carrier` is, with a message of a kilobyte more at each step."""
    keys: dict[str, Any] = {"n": int, "steps": int, "payload": str, "said": Annotated[list[str], engine.appended]}
    graph = engine.StateGraph(TypedDict("state", keys))  # type: ignore[operator]
    graph.add_node("again", lambda state: {"n": state["n"] + 1, "said": [message(state["n"])]})
    graph.add_node("last", lambda state: {"n": state["n"]})
    graph.add_edge(engine.START, "again")
    graph.add_conditional_edges("again", lambda state: "again" if state["n"] < state["steps"] else "last")
    graph.add_edge("last", engine.END)
    return graph


@contextmanager
def _stopped(engine: Callable[[], Engine], build: Build) -> Iterator[Run]:
    with folder() as path:
        shutil.copytree(_thread(engine, build).name, path, dirs_exist_ok=True)
        with engine().sqlite(path / "thread.db") as saver:
            graph = build(engine()).compile(checkpointer=saver)
            graph.get_state({"configurable": {"thread_id": "another"}})  # the first read opens the file
            yield lambda: graph.invoke(None, CONFIG, durability="sync")


@cache
def _thread(engine: Callable[[], Engine], build: Build) -> TemporaryDirectory[str]:
    """Run a long thread up to its breakpoint; the file goes when the process ends."""
    place = TemporaryDirectory(prefix="stepwell-bench-")
    with engine().sqlite(Path(place.name) / "thread.db") as saver:
        graph = build(engine()).compile(checkpointer=saver, interrupt_before=["last"])
        graph.invoke({"n": 0, "steps": LONG, "payload": "x" * 1_000}, CONFIG, durability="async")
    return place


class Asking(TypedDict):
    n: int


@contextmanager
def _asking(engine: Callable[[], Engine]) -> Iterator[Run]:
    api = engine()

    def ask(state: Asking) -> dict[str, int]:
        return {"n": state["n"] + int(api.interrupt("how many?"))}

    graph = api.StateGraph(Asking)
    graph.add_node("ask", ask)
    graph.add_edge(api.START, "ask")
    graph.add_edge("ask", api.END)
    with api.sqlite_file() as saver:
        compiled = graph.compile(checkpointer=saver)

        def run() -> None:
            for _ in range(QUESTIONS):
                config = fresh_config()
                compiled.invoke({"n": 1}, config, durability="sync")
                compiled.invoke(api.Command(resume=2), config, durability="sync")

        run()
        yield run
