"""Processes that drive a workflow to its end, or are killed on the way. `serve` runs jobs, see `tests.e2e.forked`."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import SqliteSaver
from stepwell.testing import arm_from_environment
from tests.e2e.crash_child import load_everything
from tests.e2e.forked import serve
from tests.steps.nodes import CONFIG
from tests.steps.workflows import ALWAYS, Ask, Called, Code, Effect, Node, Signal, Step, Together, drive

WORKFLOW = (
    Node(
        "n0",
        False,
        (
            Together(
                (Step("n0.0.0", "a"), Step("n0.0.1", "b", is_async=True), Step("n0.0.2", "a", fails=1)), beside=True
            ),
            Effect("n0.1"),
            Step("n0.2", "b", retried=True, within=(Step("n0.2.0", "a", fails=ALWAYS), Ask("n0.2.1"))),
        ),
    ),
    Node(
        "n1",
        True,
        (Together((Step("n1.0.0", "a", is_async=True), Step("n1.0.1", "b"))), Signal("n1.1"), Effect("n1.2")),
    ),
    Node("n2", False, (Step("n2.0", "a"),)),
)


class Job(NamedTuple):
    folder: str
    durability: str
    api: str
    crash: str = ""


class OnDisk:
    """A world that outlives its processes: lines in a file."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / "world.txt"

    def begins(self, called: Called) -> None:
        self._note("begins", called.epoch, called.step)

    def failures(self, path: str) -> int:
        return sum(line == ["fails", path] for line in self.lines())

    def fails(self, path: str) -> None:
        self._note("fails", path)

    def pays(self, key: str, path: str) -> None:
        self._note("pays", key, path)

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def _note(self, *words: object) -> None:
        with self._path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")


def open_saver(folder: str) -> SqliteSaver:
    """Open the folder's threads. Against SIGKILL nothing needs to be synced to the disk: the kernel outlives us."""
    return SqliteSaver(Path(folder) / "threads.db", synchronous="normal")


def work(job: Job) -> None:
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    with open_saver(job.folder) as saver:
        drive(Code(WORKFLOW, OnDisk(job.folder)).graph(saver), CONFIG, job.api, job.durability)


def _serve(given: dict[str, Any]) -> None:
    work(Job(**given))


if __name__ == "__main__" and sys.argv[1] == "serve":
    load_everything()
    serve(_serve)
