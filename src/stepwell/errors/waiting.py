"""What can be wrong with messages to a thread, and with waiting for them."""

from __future__ import annotations

from stepwell.errors.root import RunError, UsageError


class MessageConflictError(UsageError):
    """Thread {thread_id} has got another message under the id {message_id} (to {key!r}). Nothing was sent. Give each
    message an id of its own; the same id is for sending the same message again."""

    code = "message_conflict"


class InvalidWaitError(UsageError):
    """This cannot be waited for, or sent: {reason}."""

    code = "invalid_wait"


class AwakeableCompletedError(UsageError):
    """Awakeable {awakeable_id} of thread {thread_id} was completed already, at {completed_at} ({status}: {value!r}).
    Nothing was changed: the first completion counts."""

    code = "awakeable_completed"


class WaitTimeoutError(RunError, TimeoutError):
    """The {kind} {key!r} did not come in time."""

    code = "wait_timeout"


class AwakeableFailedError(RunError):
    """Awakeable {awakeable_id} was completed with an error: {reason}"""

    code = "awakeable_failed"
