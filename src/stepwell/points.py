"""Named crash points: the lines at which a process may die, listed so that tests can kill it at each of them.

Production code calls `reach(POINT)`; without a hook that is one comparison. Only tests set the hook
(`stepwell.testing`). A new durable line gets a new point here, and with it a crash test.
"""

from __future__ import annotations

from collections.abc import Callable

ADMISSION = "run.before_admission"
ADMITTED = "run.admitted"
TASK_STARTED = "task.started"
TASK_FINISHED = "task.finished"
STEP_RECORDED = "step.recorded"
INTENT_DURABLE = "effect.intent_durable"
BODY_RETURNED = "effect.body_returned"
RECEIPT_DURABLE = "effect.receipt_durable"
EFFECT_RESOLVED = "effect.resolved"
APPROVAL_DECIDED = "approval.decided"
OUTCOMES_RECORDED = "superstep.outcomes_recorded"
MERGED = "superstep.merged"
ITEMS_WRITTEN = "items.written"
COMMITTED = "superstep.committed"
ENDED = "run.ended"
WAIT_DURABLE = "wait.durable"
ARRIVED_DURABLE = "wait.arrived_durable"
COPY_READ = "copy.read"
DATA_KEY_WRAPPED = "key.wrapped"
KEYS_REWRAPPED = "key.rewrapped"
PRUNING_READ = "pruning.read"
BEGUN = "transaction.begun"
FENCED = "transaction.fenced"
ROWS_DELETED = "transaction.rows_deleted"
WRITTEN = "transaction.written"
DURABLE = "transaction.durable"

ALL: tuple[str, ...] = (
    ADMISSION,
    ADMITTED,
    TASK_STARTED,
    TASK_FINISHED,
    STEP_RECORDED,
    INTENT_DURABLE,
    BODY_RETURNED,
    RECEIPT_DURABLE,
    EFFECT_RESOLVED,
    APPROVAL_DECIDED,
    OUTCOMES_RECORDED,
    MERGED,
    ITEMS_WRITTEN,
    COMMITTED,
    ENDED,
    WAIT_DURABLE,
    ARRIVED_DURABLE,
    COPY_READ,
    DATA_KEY_WRAPPED,
    KEYS_REWRAPPED,
    PRUNING_READ,
    BEGUN,
    FENCED,
    ROWS_DELETED,
    WRITTEN,
    DURABLE,
)

SCHEMA_CHANGED = "schema.changed"
SCHEMA_DURABLE = "schema.durable"
REPAIR_READ = "repair.read"

APART: tuple[str, ...] = (SCHEMA_CHANGED, SCHEMA_DURABLE, REPAIR_READ)
"""Points that no run passes: those of migrations and of repairs."""

hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Tell whoever watches that this point is reached."""
    if hook is not None:
        hook(point)
