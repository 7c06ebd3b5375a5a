"""Processes of operators: they run a thread, resolve its doubt, or undo what it did, and may be killed on the way.

`serve` runs jobs, see `tests.e2e.forked`. What is done outside stands in a file, a line for each request.
"""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import START, EffectInDoubtError, SqliteSaver, StateGraph, effect
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve
from tests.runtime.graphs import Log

CONFIG = {"configurable": {"thread_id": "t"}}


class Job(NamedTuple):
    """What one process is to do: run | resolve | compensate."""

    what: str
    folder: str
    crash: str = ""


class World:
    """The other side: it notes each request."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "world.txt"

    def note(self, *words: object) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()] if self.path.exists() else []


def build(folder: str, saver: SqliteSaver) -> Any:
    """Return a graph that books three things; the answer to the last one is lost."""
    world = World(folder)

    def cancel(receipt: str, idempotency_key: str) -> None:
        world.note("cancel", receipt, idempotency_key)

    def book(what: str) -> str:
        world.note("book", what)
        if what == "car":
            raise ValueError("lost")
        return what

    booking = effect(on_doubt="raise", compensate=cancel)(book)
    node = lambda state: {"log": [booking(what) for what in ("room", "flight", "car")]}  # noqa: E731
    return StateGraph(Log).add_node("book", node).add_edge(START, "book").compile(checkpointer=saver, name="trip")


def open_saver(folder: str) -> SqliteSaver:
    """Open the folder's threads. Against SIGKILL nothing needs to be synced to the disk: the kernel outlives us."""
    return SqliteSaver(Path(folder) / "threads.db", synchronous="normal")


def work(job: Job) -> None:
    """Do the job."""
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    with open_saver(job.folder) as saver:
        graph = build(job.folder, saver)
        if job.what == "run":
            try:
                graph.invoke({"log": []}, CONFIG)
            except EffectInDoubtError:
                return
        if job.what == "resolve":
            [entry] = [entry for entry in graph.get_journal(CONFIG) if entry.status == "in doubt"]
            graph.resolve_effect(CONFIG, entry.key, receipt="car", by="ann")
        if job.what == "compensate":
            graph.compensate(CONFIG)


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    with SqliteSaver(":memory:") as warm:  # import now what each process would import
        build(".", warm).compensate(CONFIG)
    serve(lambda job: work(Job(**job)))
