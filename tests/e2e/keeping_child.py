"""Processes that die while they look after a database: they prune, delete, move and encrypt threads."""

import operator
import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from stepwell import START, Encryption, SqliteSaver, StateGraph
from stepwell.stores.encrypted import wrapping
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve

OLD, NEW = bytes(32), bytes([1]) * 32
THREAD: Any = {"configurable": {"thread_id": "t"}}
OTHERS = 4


class Job(NamedTuple):
    """What one process is to do in a folder, and where it dies."""

    verb: str
    folder: str
    crash: str = ""


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def opened(folder: str, current: str = "old") -> SqliteSaver:
    """Open the folder's database with both keys, one of which wraps."""
    encryption = Encryption({"old": OLD, "new": NEW}, current=current)
    return SqliteSaver(Path(folder) / "threads.db", encryption=encryption, synchronous="normal")


def graph_of(saver: SqliteSaver) -> Any:
    builder = StateGraph(Log)
    builder.add_node("say", lambda state: {"log": ["said"]})
    builder.add_edge(START, "say")
    return builder.compile(checkpointer=saver, name="log", events=True)


def live(folder: str) -> None:
    """Have a thread with four runs, and others with a message each."""
    with opened(folder) as saver:
        graph = graph_of(saver)
        for number in range(4):
            graph.invoke({"log": [f"{number}"]}, {**THREAD, "run_id": f"r{number}"})
        for number in range(OTHERS):
            graph.signal({"configurable": {"thread_id": f"u{number}"}}, "key", number)


def do(verb: str, folder: str) -> None:
    """Do one thing to the database."""
    with opened(folder, "new" if verb == "rekey" else "old") as saver:
        if verb == "prune":
            saver.prune("t", keep_last=1)
        elif verb == "delete runs":
            saver.delete_for_runs(["r1"], missing_ok=True)
        elif verb == "delete":
            saver.delete_thread("t")
        elif verb == "rekey":
            wrapping.PAGE = 2
            saver.rekey()
        elif verb == "signal":
            graph_of(saver).signal({"configurable": {"thread_id": "new"}}, "key", 1, id="m")


def work(given: dict[str, Any]) -> None:
    job = Job(**given)
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    do(job.verb, job.folder)


if __name__ == "__main__":
    serve(work)
