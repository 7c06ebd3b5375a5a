"""Processes that run the agent to its end as a person would, and may be killed on the way. See `tests.e2e.forked`."""

import os
import signal
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import Approve
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve
from tests.examples.conftest import load

KILLED = -signal.SIGKILL


class Job(NamedTuple):
    """What one process is to do: run the agent in this folder, and die at this point, if it comes by."""

    folder: str
    crash: str = ""


def work(job: Job) -> None:
    """Run the agent. What the model is asked and what people are asked is noted in files."""
    os.chdir(job.folder)
    agent = load("agent")
    complete = agent.model.complete

    def noting(messages: list[Any]) -> Any:
        note("model", str(len(messages)))
        return complete(messages)

    def decide(request: Any) -> Approve:
        note("asked", request.effect)
        return Approve(by="ann")

    agent.model.complete = noting
    vars(agent)["decide"] = decide
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    with redirect_stdout(StringIO()):  # stdout is where `serve` says how a process ended
        agent.main()


def note(name: str, line: str) -> None:
    with Path(name).open("a") as file:
        file.write(f"{line}\n")


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    load("agent")
    serve(lambda job: work(Job(**job)))
