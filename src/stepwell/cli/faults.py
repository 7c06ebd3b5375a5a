"""Errors that only the command line has: they are made here for one line on the terminal, and never reach a program.

Not here: how they are printed (`complaints.py`) and their exit status (`exit_status.py`).
"""

from __future__ import annotations

from stepwell.errors import GraphError, RunError, StepwellError, StoreError


class ImportFailedError(GraphError):
    """Importing {module} raised {raised}."""

    code = "import_failed"


class UnknownDatabaseError(StoreError):
    """There is no database {path!r}. `run` makes one; --db names another."""

    code = "unknown_database"


class NodeFailedError(RunError):
    """Node {node!r} of thread {thread_id!r} raised {raised}."""

    code = "node_failed"


class UserCodeFailedError(RunError):
    """Thread {thread_id!r}: the graph's code raised {raised}."""

    code = "node_failed"


class RunInterruptedError(RunError):
    """The run of thread {thread_id!r} was interrupted; what it finished is recorded."""

    code = "interrupted"


class RunStopped(Exception):
    """A run ended in `error`, and `again` is the command line that goes on with its thread."""

    def __init__(self, error: StepwellError, again: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.again = again
