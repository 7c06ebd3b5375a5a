"""What the tests of the command line share: where its graphs are, and how it is called as a real process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import Result

import stepwell

FLOWS = Path(__file__).with_name("flows.py")
Call = Callable[..., Result]
"""Call the command line and return what click's runner saw; `status=` is the exit status it must have."""
Answer = Callable[..., Any]
"""Call a command with --json and return what it printed."""


@dataclass
class Working:
    """A real process whose node is at work."""

    process: subprocess.Popen[str]

    def stop(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal, with the node still at work; return the exit status and what stderr said."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=30)
        assert self.process.stderr is not None
        return status, self.process.stderr.read()


Work = Callable[..., Working]
"""Start a command as a process and return once its node `hangs` is at work."""


def placed(*words: str) -> list[str]:
    """Let `flows.py:` stand for this folder's graphs, whatever the working folder is."""
    return [word.replace("flows.py:", f"{FLOWS}:") for word in words]


def command_line(*words: str) -> list[str]:
    return [sys.executable, "-m", "stepwell", *placed(*words)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(stepwell.__file__).parents[1]), **more}


def witnessed(folder: Path) -> list[str]:
    """Return the nodes that ran, in the order they did."""
    path = folder / "witness"
    return path.read_text().splitlines() if path.exists() else []
