"""Jobs in processes of their own, forked from one that has everything loaded: an interpreter takes longer than a test.

`serve` is what the module named to `Processes` runs when it is started with "serve".
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """Return the environment in which a child finds the package and the tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


class Processes:
    """Runs jobs one after the other, each in a process of its own. A job is a NamedTuple of what JSON can say."""

    def __init__(self, module: str) -> None:
        command, pipe = [sys.executable, "-m", module, "serve"], subprocess.PIPE
        self._server = subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, text=True)

    def start(self, job: NamedTuple) -> int:
        """Start the job; return the id of its process."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job._asdict()) + "\n")
        self._server.stdin.flush()
        return self._number()

    def wait(self) -> int:
        """Return the exit status of the job that was started, negative for a signal."""
        return self._number()

    def run(self, job: NamedTuple) -> int:
        """Run the job to its end; return its exit status, negative for a signal."""
        self.start(job)
        return self.wait()

    def close(self) -> None:
        self._server.communicate()

    def _number(self) -> int:
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())


def serve(work: Callable[[dict[str, Any]], None]) -> None:
    """Fork a process for each line on stdin, a job as JSON; print its id, and how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                work(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
