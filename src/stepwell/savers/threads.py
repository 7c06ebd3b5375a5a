"""What a saver says of its threads: the list of them, one row each, last changed first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from stepwell.errors import CorruptRecordError, EncryptionError, InvalidConfigError
from stepwell.graph.types import Waiting
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.paging import Paged, checked_filter
from stepwell.runtime.stream.payloads import as_waiting
from stepwell.savers.runs import CRASHED
from stepwell.store import DAMAGED, CheckpointRow, Reader, Store, ThreadRow, ThreadsQuery
from stepwell.superstep import lifecycle
from stepwell.superstep.waiting import awaited_in

ThreadStatus = Literal["running", "crashed", "paused", "waiting", "failed", "cancelled", "finished", "damaged"]
Statuses = str | Collection[str] | None


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread in a list."""

    thread_id: str
    graph_id: str
    status: ThreadStatus
    """`running` only while a live process holds the lease; `crashed` where that process is gone or its lease has run
    out, and `invoke(None, config)` goes on; `damaged` where the thread's own row does not verify."""
    updated_at: datetime
    """When something was last written, by the clock of who wrote it."""
    run_id: str | None
    """The run that drives it, or was driving it as its process died."""
    checkpoint_id: str | None
    """Its newest checkpoint; None before the first one."""
    step: int | None
    """That checkpoint's."""
    lineages: int
    """How many lineages it has."""
    error: str | None
    """What its last run failed or was cancelled with."""
    waiting: tuple[Waiting, ...] = ()
    """What it waits for, where its status is `waiting`."""
    damage: str | None = None
    """Why its row, its newest checkpoint or its runs cannot be read, where they cannot: `verify` says more."""

    @property
    def config(self) -> dict[str, dict[str, str]]:
        """The config that addresses the thread."""
        return {"configurable": {"thread_id": self.thread_id}}


def list_threads(
    store: Store, status: Statuses, filter: Mapping[str, Any] | None, before: str | None, limit: int | None
) -> Paged[ThreadSummary]:
    """Return the threads that these arguments select."""
    wanted = _checked(status)
    at = None if before is None else _place(before)
    return Paged(_List(store, wanted, filter, at).turn, limit)


class _List:
    """Where in the list its reader stands."""

    def __init__(
        self,
        store: Store,
        statuses: frozenset[str] | None,
        filter: Mapping[str, Any] | None,
        at: tuple[int, str] | None,
    ) -> None:
        self._store, self._statuses, self._filter, self._at = store, statuses, checked_filter(filter), at
        self._stored = None
        if statuses is not None and DAMAGED not in statuses:  # such a row says anything
            self._stored = sorted({lifecycle.RUNNING if each == CRASHED else each for each in statuses})

    def turn(self, size: int) -> tuple[Sequence[ThreadSummary], str | None]:
        """Read on until a page is full or nothing is left. One thread more is looked for than shown."""
        found: list[tuple[ThreadRow, str]] = []
        with self._store.reading() as reader:
            while len(found) <= size:
                rows = reader.threads(ThreadsQuery(self._stored, self._filter, self._at, size + 1))
                found += [(row, status) for row in rows if self._fits(status := status_of(self._store, row))]
                if len(rows) <= size:
                    break
                self._at = _place_of(rows[-1])
            shown = [_summary(reader, row, status) for row, status in found[:size]]
        if len(found) <= size:
            return shown, None
        self._at = _place_of(found[size - 1][0]) if size else self._at
        return shown, cursor_of(found[size - 1][0]) if size else None

    def _fits(self, status: str) -> bool:
        return self._statuses is None or status in self._statuses


def status_of(store: Store, row: ThreadRow) -> str:
    """Return a thread's status; a row that says running tells the truth only while its lease is live."""
    return CRASHED if row.status == lifecycle.RUNNING and not store.is_held(row) else row.status


def cursor_of(row: ThreadRow) -> str:
    """Return what to pass as `before=` to list on from this thread."""
    return f"{row.updated_at}:{row.thread_id}"


def _place_of(row: ThreadRow) -> tuple[int, str]:
    return row.updated_at, row.thread_id


def _place(cursor: str) -> tuple[int, str]:
    moment, found, thread_id = cursor.partition(":") if isinstance(cursor, str) else ("", "", "")
    if not found or not moment.lstrip("-").isdecimal():
        raise InvalidConfigError(reason=f"before= is the `more` of a list of threads, not {cursor!r}", key="before")
    return int(moment), thread_id


def _checked(status: Statuses) -> frozenset[str] | None:
    if status is None:
        return None
    known = get_args(ThreadStatus)
    if not isinstance(status, Collection):
        raise InvalidConfigError(
            reason=f"status is one of {', '.join(known)}, or several, not {status!r}", key="status"
        )
    wanted = frozenset([status] if isinstance(status, str) else status)
    for each in wanted:
        if each not in known:
            raise InvalidConfigError(reason=f"status is one of {', '.join(known)}, not {each!r}", key="status")
    return wanted


def _summary(reader: Reader, row: ThreadRow, status: str) -> ThreadSummary:
    newest, runs, damage = None, [], None
    waiting: tuple[Waiting, ...] = ()
    try:
        newest = reader.newest(row.thread_id, "")
        runs = reader.runs(row.thread_id, 1)
        waiting = _waiting(reader, newest) if newest is not None and status == lifecycle.WAITING else ()
    except (CorruptRecordError, EncryptionError) as error:  # the others are listed all the same; this one says why
        damage = str(error)
    return ThreadSummary(
        thread_id=row.thread_id,
        graph_id=row.graph_id,
        status=status,  # type: ignore[arg-type]  # the lifecycle's words
        updated_at=_moment(row.updated_at),
        run_id=row.run_id or None,
        checkpoint_id=None if newest is None else newest.checkpoint_id,
        step=None if newest is None else newest.step,
        lineages=row.lineages,
        error=(runs[0].error or None) if runs else None,
        waiting=waiting,
        damage=damage,
    )


def _moment(microseconds: int) -> datetime:
    began = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        return began + timedelta(microseconds=microseconds)
    except OverflowError:  # of a row that is damaged
        return began


def _waiting(reader: Reader, newest: CheckpointRow) -> tuple[Waiting, ...]:
    """Return what a waiting thread waits for: of each task, what its newest record says. No value is decoded."""
    last = {
        record.task_id: record
        for record in reader.records(newest.thread_id, newest.seq)
        if record.kind in (*lifecycle.PAUSES, lifecycle.SUCCEEDED)
    }
    waits = [record for record in last.values() if record.kind == lifecycle.WAIT]
    return tuple(as_waiting(each) for record in waits for each in awaited_in(record.body, row_name(record)))
