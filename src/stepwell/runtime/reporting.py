"""What an operator reads of a run: lines by the logger `stepwell.run`, and the events of its beginning.

A line names run, thread and checkpoint, and says what to do where something is to be done. Lines are about runs, never
about supersteps: a run that goes well writes two of them, at INFO. Events are for programs; these lines are for people.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stepwell import events
from stepwell.runtime.loading import superseded
from stepwell.superstep import lifecycle
from stepwell.superstep.outcome import text_of
from stepwell.superstep.state import Base

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.opening import Place
    from stepwell.runtime.run import Run
    from stepwell.store import Claim, RunRow

log = logging.getLogger("stepwell.run")


def note_beginning(run: Run, place: Place, row: RunRow) -> None:
    """Note what a run begins with, for listeners and its log, before the claim that makes it so."""
    if run.tell is None:
        return
    loaded, thread, changed = place.loaded, place.thread, run.graph_changed
    where, before = run.tell.where(), list[events.Event]()
    if thread is not None and thread.run_id:
        epoch = thread.epoch + 1
        taken = events.LeaseTakenOver(**where, from_run_id=thread.run_id, holder=thread.holder, epoch=epoch)
        before.append(taken)
    if (dead := superseded(place.crashed, row.run_id, 0)) is not None:
        theirs = {**where, "run_id": dead.run_id}
        before.append(events.RunFailed(**theirs, checkpoint_id=dead.checkpoint_id, error=dead.error))
    if loaded is not None:
        at = loaded.row
        before.append(
            events.CheckpointRestored(
                **where, checkpoint_id=at.checkpoint_id, step=at.step, lineage=at.lineage, seq=at.seq
            )
        )
    if changed is not None:
        before.append(
            events.GraphChanged(
                **where,
                checkpoint_id=changed.checkpoint_id,
                from_version=changed.from_version,
                to_version=changed.to_version,
                from_fingerprint=changed.from_fingerprint,
                to_fingerprint=changed.to_fingerprint,
                differences=changed.differences,
            )
        )
    run.tell.started(row.kind, row.takeovers + 1, *before)


def report_beginning(run: Run, claim: Claim) -> None:
    """Tell the operator, and whoever listens, that a claim landed: a run begins, or a dead process's goes on."""
    if run.tell is not None:
        run.tell.publish()
    row, seen = claim.run, claim.seen
    if row is None:
        return
    if seen is not None and seen.run_id:
        log.warning(
            "lease of thread %s taken over from %s, which was driving run %s (epoch %d)",
            *(row.thread_id, seen.holder, seen.run_id, seen.epoch + 1),
        )
    if claim.ended is not None:
        log.warning("run %s of thread %s is given up: %s", claim.ended.run_id, row.thread_id, claim.ended.error)
    at = run.base.checkpoint_id
    if row.takeovers:
        log.warning(
            "resuming run %s of thread %s from checkpoint %s: attempt %d, %d without progress",
            *(row.run_id, row.thread_id, at, row.takeovers + 1, row.recoveries),
        )
    else:
        log.info("run %s (%s) of thread %s begins at checkpoint %s", row.run_id, row.kind, row.thread_id, at)
    if row.status != lifecycle.RUNNING:  # it was over before it began, or is given up
        report_end(run, run.base, row.status, row.error)


def report_retry(run: Run, task_run: TaskRun, error: BaseException, due_at: int) -> None:
    """Tell the operator that an attempt failed and another one is due, and note it for whoever listens."""
    if run.tell is not None:
        run.tell.retry(task_run, error, task_run.attempt - 1, due_at)
    log.info(
        "run %s of thread %s: attempt %d of node %s (task %s) failed, retry scheduled in %.2f s: %s",
        *(run.run_id, run.config.thread_id, task_run.attempt - 1, task_run.task.node, task_run.task.id),
        *((due_at - run.clock.now()) / 1e6, text_of(error)),
    )


def report_end(run: Run, base: Base, status: str, error: str) -> None:
    """Tell the operator, and whoever listens, that a run's end is on disk."""
    if run.tell is not None:
        run.tell.publish()
    thread_id, at = run.config.thread_id, base.checkpoint_id
    if status == lifecycle.FAILED:
        log.warning(
            "run %s of thread %s failed at checkpoint %s: %s. Mend the cause, then retry(config)",
            *(run.run_id, thread_id, at, error),
        )
    else:
        log.info("run %s of thread %s %s at checkpoint %s", run.run_id, thread_id, status, at)
