"""Processes that ask for an approval, decide it, or go on with the thread, and may be killed on the way.

`serve` runs jobs, see `tests.e2e.forked`. A job dies at a crash point of the engine, or before or after its body has
refunded ("calling", "called").
"""

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import AlreadyDecidedError, Approve, Command, SqliteSaver, effect
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve
from tests.effects.acting import one
from tests.runtime.graphs import thread

KILLED = -signal.SIGKILL
DECIDED = 3
"""How a process exits that is told that somebody else has decided."""


class Job(NamedTuple):
    """What one process is to do: ask, decide by this name, or go on."""

    folder: str
    durability: str
    what: str = ""
    crash: str = ""


def build(job: Job, saver: SqliteSaver) -> Any:
    """Return the graph: a refund is a line with its key in a file."""

    @effect(approval=True)
    def refund(order: str, idempotency_key: str) -> str:
        _reach(job, "calling")
        with Path(job.folder, "refunds.txt").open("a") as file:
            file.write(f"{idempotency_key}\n")
        _reach(job, "called")
        return f"refunded {order}"

    return one(lambda state: {"log": [refund("a")]}, saver)


def done(job: Job) -> list[str]:
    """Return the keys of all refunds asked for."""
    return Path(job.folder, "refunds.txt").read_text().split()


def _reach(job: Job, moment: str) -> None:
    if job.crash == moment:
        os.kill(os.getpid(), signal.SIGKILL)


def work(job: Job) -> None:
    """Do the job."""
    if ":" in job.crash:
        os.environ["STEPWELL_CRASH_AT"] = job.crash
        arm_from_environment()
    with SqliteSaver(Path(job.folder) / "threads.db", synchronous="normal") as saver:
        graph = build(job, saver)
        given: Any = {"ask": {}, "go on": None}.get(job.what, Command(resume=Approve(job.what)))
        try:
            graph.invoke(given, thread(), durability=job.durability)
        except AlreadyDecidedError:
            os._exit(DECIDED)


def load_everything() -> None:
    """Import now what each process would import."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder, "sync")
        with SqliteSaver(":memory:") as saver:
            graph = build(job, saver)
            graph.invoke({}, thread())
            graph.invoke(Command(resume=Approve("nobody")), thread())


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    load_everything()
    serve(lambda job: work(Job(**job)))
