"""Approvals, as users and people see them: what an effect asks for, what somebody is asked, what they decide.

What a decision means is decided elsewhere (`superstep/effects/approval.py`). The rule kept here: each of these values
is stored as it is, so what was asked and decided can be read for as long as the thread is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from stepwell.codec import register_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What `@effect(approval=...)` asks for: that somebody decides before the effect happens.

    `expires` is how long there is to decide, in seconds or as a timedelta: the deadline is fixed when the question is
    first asked. `show` makes of the call's arguments what people are shown beside them: any value that can be stored.
    """

    expires: float | timedelta | None = None
    show: Callable[..., Any] | None = None

    @property
    def lasts(self) -> timedelta | None:
        """How long there is to decide."""
        return timedelta(seconds=self.expires) if isinstance(self.expires, int | float) else self.expires


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The question of an effect that waits for a decision: the `value` of its `Interrupt`."""

    effect: str
    """The effect's name."""
    planned_action: str
    """What is about to happen, for people."""
    inputs: Mapping[str, Any]
    """What it is called with, by name, without what is left out of its record."""
    key: str
    """The idempotency key under which it would happen."""
    step_id: str
    """The id of the call within its node."""
    asked_at: datetime
    """When the question was first asked, in UTC."""
    expires_at: datetime | None = None
    """Until when it can be decided, in UTC. None: for ever."""
    shown: Any = None
    """What the effect's `show` made of the call."""
    editable: tuple[str, ...] = ()
    """The arguments that an approval may change."""


@dataclass(frozen=True, slots=True)
class Approve:
    """Let the effect happen: `Command(resume=Approve(by="ann"))`. `args` are arguments to call it with instead of its
    own, by name."""

    by: str
    note: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not let the effect happen: its call raises ApprovalRejectedError in the node."""

    by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision as it was recorded: who, when, what."""

    status: Literal["approved", "rejected", "expired"]
    """expired: nobody decided in time."""
    by: str
    """Who decided; "" where nobody did."""
    at: datetime
    """When it was recorded, in UTC; of an expired one, the deadline."""
    note: str | None = None
    """Why, in their words."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that were changed."""

    def __str__(self) -> str:
        who = f" by {self.by}" if self.by else ""
        changed = ", ".join(f"{name}={value!r}" for name, value in self.args.items())
        said = f" ({'; '.join(part for part in (changed, self.note) if part)})" if changed or self.note else ""
        return f"{self.status}{who} at {self.at.isoformat(timespec='seconds')}{said}"


register_type(ApprovalRequest, name="stepwell:ApprovalRequest")
register_type(Decision, name="stepwell:Decision")
