"""Which record an outcome becomes, and its body."""

from __future__ import annotations

from stepwell.codec import Codec
from stepwell.plan.tables import Plan
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.outcome import Failed, Interrupted, Outcome, Succeeded
from stepwell.superstep.state import Task
from stepwell.superstep.waiting import encode_wait


def encode_outcome(codec: Codec, plan: Plan, task: Task, outcome: Outcome) -> tuple[str, bytes]:
    """Return the kind and body of the record of an outcome. UnserializableValueError where it cannot be stored."""
    if isinstance(outcome, Succeeded):
        return lifecycle.SUCCEEDED, layout.encode_succeeded(codec, plan, task, outcome)
    if isinstance(outcome, Interrupted):
        if outcome.awaited:
            return lifecycle.WAIT, encode_wait(codec, plan, task, outcome)
        return lifecycle.INTERRUPTED, layout.encode_interrupted(codec, plan, task, outcome)
    kind = lifecycle.FAILED if isinstance(outcome, Failed) else lifecycle.CANCELLED
    return kind, layout.encode_failed(codec, plan, task, outcome)
