"""Deleting what some runs wrote, thread by thread: a thread of which nothing else is left goes as a whole.

Which runs are known and over is found out before anything goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from stepwell.errors import InvalidConfigError, RunNotEndedError, UnknownRunError
from stepwell.runtime.again import Moved, until_written
from stepwell.savers.retention.open_work import open_work
from stepwell.savers.retention.pruning import RunLeft, prune_thread
from stepwell.savers.runs import find_run
from stepwell.store import Deletion, Reader, RunRow, Store, ThreadRow
from stepwell.superstep.retention import Policy


@dataclass(slots=True)
class RunsReport:
    """What a call of `delete_for_runs` took out, and what it left."""

    deleted: int = 0
    """Threads that were deleted as a whole, since these runs were all there was of them."""
    checkpoints: int = 0
    """Of the threads that are still there, as what follows."""
    records: int = 0
    events: int = 0
    runs: int = 0
    """Runs that are forgotten: their ids are free again."""
    left: dict[str, RunLeft] = field(default_factory=dict)
    """Runs of which something is still there, or that are their thread's last: these stay known."""


def delete_for_runs(store: Store, run_ids: Iterable[str], now: int, missing_ok: bool) -> RunsReport:
    """Delete what these runs wrote and nobody needs."""
    report = RunsReport()
    for thread_id, runs in _by_thread(store, _checked(run_ids), missing_ok).items():
        if until_written(thread_id, partial(_delete_whole, store, thread_id, set(runs), now)):
            report.deleted += 1
        elif (pruned := prune_thread(store, thread_id, Policy(written_by=frozenset(runs)), now)) is not None:
            report.checkpoints += pruned.checkpoints
            report.records += pruned.records
            report.events += pruned.events
            report.runs += pruned.runs
            report.left.update(pruned.left)
    return report


def _checked(run_ids: Iterable[str]) -> list[str]:
    if isinstance(run_ids, str | bytes) or not isinstance(run_ids, Iterable):
        raise InvalidConfigError(reason=f"run_ids is a list of run ids, not {run_ids!r}", key="run_ids")
    return list(map(_checked_id, run_ids))


def _checked_id(given: object) -> str:
    """Return a run id as a config takes it: text, or a UUID."""
    if not isinstance(given, str | UUID) or not str(given):
        raise InvalidConfigError(reason=f"a run id is a UUID or text that is not empty, not {given!r}", key="run_ids")
    return str(given)


def _by_thread(store: Store, run_ids: list[str], missing_ok: bool) -> dict[str, list[str]]:
    """Return thread → runs, all of them known and over."""
    found: dict[str, list[str]] = {}
    with store.reading() as reader:
        for run_id in dict.fromkeys(run_ids):
            run = find_run(reader, run_id)
            if run is not None:
                _check_over(reader, run)
                found.setdefault(run.thread_id, []).append(run_id)
            elif not missing_ok:
                raise UnknownRunError(run_id=run_id)
    return found


def _check_over(reader: Reader, run: RunRow) -> None:
    thread = reader.thread(run.thread_id)
    if not run.finished_at or (thread is not None and thread.run_id == run.run_id):
        raise RunNotEndedError(run_id=run.run_id, thread_id=run.thread_id)


def _delete_whole(store: Store, thread_id: str, runs: set[str], now: int) -> bool:
    """Delete the thread if nobody else wrote to it and nothing of it is still to come."""
    with store.reading() as reader:
        thread = reader.thread(thread_id)
        if thread is None or not _is_all(reader, thread, runs):
            return False
    if not store.delete(Deletion(thread_id, now, seen=thread)):
        raise Moved
    return True


def _is_all(reader: Reader, thread: ThreadRow, runs: set[str]) -> bool:
    wrote = {run.run_id for run in reader.runs(thread.thread_id)}
    wrote |= {point.run_id for point in reader.outline(thread.thread_id)}
    wrote |= {note.run_id for note in reader.record_outline(thread.thread_id)}
    return wrote <= runs and open_work(reader, thread) is None
