"""The command line: `stepwell`, and `python -m stepwell`.

`application.py` is the command group and the edge where errors become one line and an exit status; `commands/` has one
file a command. Not here: anything a library user needs. The rule: importing this package imports no click, so that the
command can say what to install where it is missing.
"""

from __future__ import annotations

import os
import sys
import threading

MISSING_CLI = "pip install 'stepwell[cli]'"
INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process and return its exit status."""
    try:
        import click  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write(f"{MISSING_CLI}\n")
        return 2
    try:
        status = _run()
    except KeyboardInterrupt:  # before or after the part that knows how to stop
        status = INTERRUPTED
    if status == INTERRUPTED:
        _leave_working_threads()
    return status


def _run() -> int:
    from stepwell.cli.application import stepwell

    try:
        stepwell.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0


def _leave_working_threads() -> None:
    """End the process although a node that was given up still computes: what it returns is fenced out anyway."""
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
