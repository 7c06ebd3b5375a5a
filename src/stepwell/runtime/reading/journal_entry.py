"""`JournalEntry`: one thing that a thread's journal says, as a user reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One attempt of a step or an effect, and how it ended; what somebody decided about an effect; what a wait got.

    A call that went well at once has one entry. Entries are never changed: what comes later is another entry.
    """

    kind: Literal["step", "effect", "approval", "wait"]
    name: str
    """The name of the step or effect; what was awaited."""
    step_id: str
    """The id of the call within its node: the same each time the node runs."""
    status: str
    """done | failed; of a step also attempt (it failed, and another attempt is due); of an effect also running and
    in doubt: its end is not known. Of an approval approved | rejected | expired; of a wait came | late."""
    planned_action: str
    """What was to be done, for people."""
    inputs: Any
    """What it was called with: of an effect, the arguments by name; of a step, shortened, as text."""
    versions: Mapping[str, str]
    """The versions that made the call: of its code and, where declared, of prompt and tool."""
    approval_status: str | None
    """approved; of an approval also rejected | expired: then the effect was not attempted. None: nobody was asked."""
    receipt: Any
    """What it returned, where it is done."""
    retry_count: int
    """Attempts before this one."""
    error_state: str | None
    """What it raised, as text; None where it is done."""
    key: str | None
    """The idempotency key of an effect."""
    fingerprint: str
    """Digest of what it was called with; "" where that cannot be told."""
    attempts: int
    started_at: datetime | None
    """When a step's first attempt, or this one of an effect, began."""
    finished_at: datetime | None
    """When it was over; None while that is not known."""
    node: str
    """The node that made the call."""
    task_id: str
    """That node's task on the checkpoint."""
    lineage: int
    run_id: str
    """The run that recorded it; "" for a decision."""
    checkpoint_id: str
    """The checkpoint on which it was made."""
    seq: int
    """Position among everything ever written on the thread; what `before=` takes."""
    recorded_at: datetime
    digest: str
    """Hex digest of the stored row, which names the checkpoint's."""
    approval: Any = None
    """That decision: who, when, what was said to it, and arguments that were changed."""
    decision: Literal["receipt", "failed", "retry"] | None = None
    """What was decided about a doubt, where this is that."""
    decided_by: str | None = None
    """Who decided."""
    reason: str | None = None
    """Why, in their words."""
