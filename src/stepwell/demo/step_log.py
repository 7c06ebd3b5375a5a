"""The step log: a file to which every step adds a line when it starts and when it finishes, and the sums over it.

It stands outside Stepwell on purpose: it is the independent witness of what really ran. The rule: a line is on disk
before the step goes on, and lines are only ever added.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal

Event = Literal["started", "finished"]


@dataclass(frozen=True)
class Line:
    """Process `process` (1 is the first) saw `event` of `step`."""

    process: int
    event: Event
    step: str


@dataclass(frozen=True)
class Tally:
    """How often a step started and finished, and how many later processes built on its result."""

    step: str
    started: int
    finished: int
    reused: int


class StepLog:
    """The log as one process writes it."""

    def __init__(self, path: Path, process: int) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
        self._process = process

    def add(self, event: Event, step: str) -> None:
        """Add a line and wait until it is on disk. One write a line, so that threads do not mix theirs."""
        os.write(self._file, json.dumps([self._process, event, step]).encode() + b"\n")
        os.fsync(self._file)

    def watch(self, report: Callable[[str], None], pace_seconds: float) -> Callable[..., Callable[[Any], Any]]:
        """Return a wrapper for nodes that logs them, reports their start, and slows them to a pace one can watch."""

        def watched(name: str, node: Callable[[Any], Any]) -> Callable[[Any], Any]:
            @wraps(node)
            def logged(state: Any) -> Any:
                step = step_name(name, state.get("commit"))
                self.add("started", step)
                report(step)
                time.sleep(pace_seconds)
                update = node(state)
                self.add("finished", step)
                return update

            return logged

        return watched


def step_name(node: str, commit: Any) -> str:
    """Name a step: its node, and for the tasks of the fan-out their commit's number."""
    return node if commit is None else f"{node} {commit['number']}"


def read_lines(path: Path) -> list[Line]:
    """Return the lines of the log. A line that a killed process left unfinished is passed over."""
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [Line(*json.loads(line)) for line in whole]


def tally(lines: Iterable[Line]) -> list[Tally]:
    """Sum the lines up by step, in the order of their first start."""
    lines = list(lines)
    counts = Counter((line.event, line.step) for line in lines)
    return [
        Tally(step, counts["started", step], counts["finished", step], _reuses(lines, step))
        for step in dict.fromkeys(line.step for line in lines)
    ]


def _reuses(lines: list[Line], step: str) -> int:
    """Count the processes that ran other steps, but not this one, because an earlier process had finished it."""
    last_start = max(line.process for line in lines if line.step == step)
    finished = any(line == Line(last_start, "finished", step) for line in lines)
    return len({line.process for line in lines if line.process > last_start}) if finished else 0
