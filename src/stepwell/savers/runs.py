"""What a saver says of runs: their records, and the logs they keep. Read only; runs are written by those that drive
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from stepwell.errors import InvalidConfigError, UnknownRunError
from stepwell.events import LoggedEvent, event_of
from stepwell.ids import is_holdable
from stepwell.runtime.config import thread_id_of
from stepwell.store import Reader, RunRow, Store, ThreadRow
from stepwell.superstep import lifecycle

ThreadId = str | int | UUID

CRASHED = "crashed"

RunStatus = Literal["running", "crashed", "paused", "waiting", "failed", "cancelled", "finished"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is on disk about one run."""

    run_id: str
    thread_id: str
    lineage: int
    """The lineage it began on."""
    kind: str
    """What the call was: input | continue | answer | command | retry | replay | compensate"""
    status: RunStatus
    """How it ended; `running` while a live process drives it, `crashed` where that process is gone or its lease has
    run out: `invoke(None, config)` goes on with it."""
    durability: str
    attempts: int
    """How often the run was driven: 1, and one more for each process that took it over."""
    started_at: datetime
    finished_at: datetime | None
    """None until it has ended."""
    error: str | None
    """The error it failed or was cancelled with, as text."""
    checkpoint_id: str | None
    """The checkpoint it ended at; before that, the one it was admitted with, None in `exit` mode."""
    events: int
    """How many events its log held when its row was last written; 0 where it keeps none."""

    @property
    def config(self) -> dict[str, dict[str, str]]:
        """The config that addresses the run's last checkpoint, or its thread where there is none."""
        at = {"checkpoint_id": self.checkpoint_id} if self.checkpoint_id is not None else {}
        return {"configurable": {"thread_id": self.thread_id, "checkpoint_ns": "", **at}}


class RunPage(list[RunRecord]):
    """Some runs of a thread."""

    more: str | None = None
    """What to pass as `before=` to go on behind a limit; None where nothing is left."""


def read_runs(store: Store, given: ThreadId, limit: int | None, before: str | None) -> RunPage:
    """Return a page of the thread's runs."""
    _check(limit)
    thread_id = thread_id_of(given)
    with store.reading() as reader:
        if before is not None:
            known = find_run(reader, before)
            if known is None or known.thread_id != thread_id:
                raise UnknownRunError(f"Thread {thread_id} has no run {before}.", run_id=before, thread_id=thread_id)
        thread = reader.thread(thread_id)
        rows = reader.runs(thread_id, None if limit is None else limit + 1, before)
    page = RunPage(_record(store, row, thread) for row in rows[:limit])
    if limit is not None and len(rows) > limit:
        page.more = page[-1].run_id
    return page


def find_run(reader: Reader, run_id: str) -> RunRow | None:
    """Return the run with this id; None where there is none, or never can be. InvalidConfigError for no id at all."""
    if not isinstance(run_id, str) or not run_id:
        raise InvalidConfigError(reason=f"a run id is text that is not empty, not {run_id!r}", key="run_id")
    return reader.run(run_id) if is_holdable(run_id) else None


def read_run(store: Store, run_id: str) -> RunRecord | None:
    """Return one run."""
    with store.reading() as reader:
        row = find_run(reader, run_id)
        return None if row is None else _record(store, row, reader.thread(row.thread_id))


def read_events(store: Store, run_id: str, after: int, limit: int | None) -> list[LoggedEvent]:
    """Return a part of the run's log."""
    _check(limit)
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise InvalidConfigError(reason=f"after is an offset of a log, not {after!r}", key="after")
    with store.reading() as reader:
        if find_run(reader, run_id) is None:
            raise UnknownRunError(run_id=run_id)
        rows = reader.events(run_id, after, limit)
    return [
        LoggedEvent(row.ordinal, event_of(row.kind, row.body, row.run_id, row.thread_id, row.created_at))
        for row in rows
    ]


def _check(limit: int | None) -> None:
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidConfigError(reason=f"limit is a number from 1 on, not {limit!r}", key="limit")


def _record(store: Store, row: RunRow, thread: ThreadRow | None) -> RunRecord:
    return RunRecord(
        run_id=row.run_id,
        thread_id=row.thread_id,
        lineage=row.lineage,
        kind=row.kind,
        status=_status(store, row, thread),  # type: ignore[arg-type]  # the lifecycle's words
        durability=row.durability,
        attempts=row.takeovers + 1,
        started_at=_time(row.started_at),
        finished_at=_time(row.finished_at) if row.finished_at else None,
        error=row.error or None,
        checkpoint_id=row.checkpoint_id or None,
        events=row.events,
    )


def _status(store: Store, row: RunRow, thread: ThreadRow | None) -> str:
    """Return the run's status: a row that says running tells the truth only while its run holds a live lease."""
    if row.status != lifecycle.RUNNING:
        return row.status
    held = thread is not None and thread.run_id == row.run_id and store.is_held(thread)
    return row.status if held else CRASHED


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)
