"""A durable step as recorded: a call made inside a node, and what came of it. One record on the base when it is over.

Nothing here runs a step; `runtime/steps` does. The rule kept: a step that succeeded counts for as long as its task is
the same task, one that failed until its node fails: then it is forgotten, and the next attempt calls it anew.
"""

from __future__ import annotations

from typing import NamedTuple

from stepwell.superstep.items import ItemWrite

DONE = "done"
FAILED = "failed"
ATTEMPT = "attempt"
"""An attempt failed, and another is due."""


class Step(NamedTuple):
    """One call, as its newest record says it. Times are microseconds of wall time."""

    call_id: str
    callee: str
    inputs: str
    """Digest of what it was called with; "" where that cannot be told."""
    shown: str
    """What it was called with, shortened, for people."""
    code: str
    """Version of the code that made the call."""
    status: str
    """done | failed | attempt"""
    value: bytes
    """What it returned, encoded; b"" unless it is done."""
    error: str
    """What the last attempt raised, as text."""
    raised: bytes
    """The type and arguments of that exception, encoded, where it can be made again; else b""."""
    attempts: int
    """Attempts made so far."""
    first_at: int
    at: int
    """When it was over; of an attempt, when the next one is due."""
    items: tuple[ItemWrite, ...] = ()
    """What it wrote to the item store, once it is done: the node's own when it is called again, too."""


Steps = dict[str, Step]
"""Call id → step."""


def without_failures(steps: Steps, within: str = "") -> Steps:
    """Return the steps an attempt begins with after one that failed; `within`: what was called inside of it, by id."""
    return {call_id: step for call_id, step in steps.items() if step.status != FAILED or not call_id.startswith(within)}
