"""What can be wrong with an answer to a question, and with a decision about an effect that needs approval."""

from __future__ import annotations

from stepwell.errors.journal import JournalError
from stepwell.errors.root import UsageError


class UnknownInterruptError(UsageError):
    """No open question of thread {thread_id} has the id {interrupt_ids}. Open: {open_ids}. Wrap a value that only
    looks like an id map in Answer(...)."""

    code = "unknown_interrupt"


class InterruptAnsweredError(UsageError):
    """The question {interrupt_ids} of thread {thread_id} is already answered. Open: {open_ids}."""

    code = "interrupt_answered"


class AlreadyDecidedError(InterruptAnsweredError):
    """The question {interrupt_id} of thread {thread_id} is decided: {decision}. A decision is made once. Nothing was
    recorded."""

    code = "already_decided"


class AmbiguousAnswerError(UsageError, RuntimeError):
    """When there are multiple pending interrupts, you must specify the interrupt id when resuming. Thread {thread_id}
    has open: {open_ids}; pass Command(resume={{id: value}})."""

    code = "ambiguous_answer"


class InvalidDecisionError(UsageError):
    """Effect {name!r} of thread {thread_id} asks for a decision ({interrupt_id}): {reason}. Nothing was recorded, and
    nothing is approved. Answer with Approve(by=...), Reject(by=...), or a mapping with "approved" and "by"."""

    code = "invalid_decision"


class ApprovalRejectedError(JournalError, RuntimeError):
    """Effect {name!r} (key {key}) was rejected by {by}: {reason}. It has not happened. Handle this in the
    node, to go on without it."""

    code = "approval_rejected"


class ApprovalExpiredError(JournalError, RuntimeError):
    """Nobody decided about effect {name!r} (key {key}) before {expires_at}. It has not happened, and is not
    approved any more. Handle this in the node, to go on without it, or have it asked anew from an earlier
    checkpoint."""

    code = "approval_expired"
