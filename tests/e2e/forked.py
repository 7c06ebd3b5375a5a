"""Jobs in processes of their own, forked from one that has everything loaded: an interpreter takes longer than a test.

`serve` is what the module named to `Processes` runs when it is started with "serve".
"""

import faulthandler
import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
HANGS_SECONDS = 60
"""How long a job may take before it says on stderr where each of its threads is: a test is given up after 120."""


def environment() -> dict[str, str]:
    """Return the environment in which a child finds the package and the tests."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


class Processes:
    """Runs jobs one after the other, each in a process of its own. A job is a NamedTuple of what JSON can say."""

    def __init__(self, module: str) -> None:
        command, pipe = [sys.executable, "-m", module, "serve"], subprocess.PIPE
        self._server = subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe, text=True)
        self._running = 0

    def start(self, job: NamedTuple) -> int:
        """Start the job; return the id of its process. One that a failed test has left behind is ended first."""
        self._end()
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job._asdict()) + "\n")
        self._server.stdin.flush()
        self._running = self._told("began")
        return self._running

    def wait(self) -> int:
        """Return the exit status of the job that was started, negative for a signal."""
        status = self._told("ended")
        self._running = 0
        return status

    def run(self, job: NamedTuple) -> int:
        """Run the job to its end; return its exit status, negative for a signal."""
        self.start(job)
        return self.wait()

    def close(self) -> None:
        self._end()
        self._server.communicate()

    def _end(self) -> None:
        if self._running:
            with suppress(ProcessLookupError):
                os.kill(self._running, signal.SIGKILL)
            self.wait()

    def _told(self, what: str) -> int:
        assert self._server.stdout is not None
        said, number = self._server.stdout.readline().split()
        assert said == what
        return int(number)


def serve(work: Callable[[dict[str, Any]], None]) -> None:
    """Fork a process for each line on stdin, a job as JSON; print its id, and how it ended."""
    gc.freeze()  # what is loaded stays shared: a collection in a fork does not touch it
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(HANGS_SECONDS, exit=False)
            try:
                work(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print("began", pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)
