"""A process that drives a graph whose nodes put an item each, and dies where it is told to.

`a` is followed by `b` and `c` side by side; `c` puts a second item where `b` has put its own, and `d` ends it.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import START, EmptyInputError, SqliteSaver, SqliteStore, StateGraph
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve
from tests.items.places import puts
from tests.runtime.graphs import Log, thread


class Job(NamedTuple):
    """Where the files lie, whether the items lie beside the threads, and where to die."""

    folder: str
    beside: bool = True
    durability: str = "sync"
    api: str = "sync"
    crash: str = ""


def diamond() -> StateGraph[Any, Any, Any, Any]:
    """Return the graph."""
    graph = StateGraph(Log)
    for name in "abcd":
        graph.add_node(name, puts(name))
    return graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d")


def files(job: Job) -> tuple[SqliteSaver, SqliteStore]:
    """Open the job's files. Against SIGKILL nothing needs to be synced: the kernel outlives us."""
    threads, items = Path(job.folder) / "threads.db", Path(job.folder) / "items.db"
    saver = SqliteSaver(threads, synchronous="normal")
    return saver, SqliteStore(threads if job.beside else items, synchronous="normal")


def work(job: Job) -> None:
    """Drive the thread to its end, wherever it stands."""
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    saver, store = files(job)
    with saver, store:
        graph = diamond().compile(checkpointer=saver, store=store)
        try:
            drive(graph, None, job)
        except EmptyInputError:
            drive(graph, {}, job)


def drive(graph: Any, given: Any, job: Job) -> None:
    """Make one call, in the way the job says."""
    if job.api == "async":
        asyncio.run(graph.ainvoke(given, thread(), durability=job.durability))
    else:
        graph.invoke(given, thread(), durability=job.durability)


if __name__ == "__main__":
    import stepwell.runtime.async_driver
    import stepwell.runtime.items  # noqa: F401

    with SqliteSaver(":memory:") as warm, SqliteStore(warm) as shelf:
        diamond().compile(checkpointer=warm, store=shelf).invoke({}, thread())
    serve(lambda job: work(Job(**job)))
    sys.exit()
