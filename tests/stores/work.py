"""Work that SQLite does, counted by its own virtual machine: what a read costs, whatever the machine is busy with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw

from stepwell import InMemorySaver


@dataclass
class Work:
    """Statements run, and steps of SQLite's virtual machine spent on them."""

    statements: int = 0
    steps: int = 0


@contextmanager
def counted(saver: InMemorySaver) -> Iterator[Work]:
    """Count what is run on an in-memory saver inside the block."""
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    work = Work()

    def note(event: dict[str, Any]) -> None:
        work.statements += 1
        work.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    try:
        yield work
    finally:
        connection.trace_v2(0, None)
