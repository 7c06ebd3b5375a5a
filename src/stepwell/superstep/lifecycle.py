"""Which states a thread, a run and a task can be in, and which record kinds lead there: the one table of them."""

from __future__ import annotations

from typing import Final, Literal

ThreadStatus = Literal["empty", "running", "paused", "waiting", "failed", "cancelled", "finished"]

RUNNING: Final = "running"
PAUSED: Final = "paused"
WAITING: Final = "waiting"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
FINISHED: Final = "finished"

ENDED: Final = frozenset({PAUSED, WAITING, FAILED, CANCELLED, FINISHED})
"""Statuses of a run that is over. A run that is `running` without a live lease has crashed."""

SUCCEEDED: Final = "succeeded"
INTERRUPTED: Final = "interrupted"
ATTEMPT: Final = "attempt"
WAIT: Final = "wait"
ANSWER: Final = "answer"
DECISION: Final = "decision"
ARRIVED: Final = "arrived"
DISCARDED: Final = "discarded"
STEP: Final = "step"
INTENT: Final = "intent"
RECEIPT: Final = "receipt"
EFFECT_FAILED: Final = "effect_failed"
DOUBT: Final = "doubt"
RESOLVED: Final = "resolved"
ORIGIN: Final = "origin"
REPAIRED: Final = "repaired"
BREAKPOINTS: Final = "breakpoints"

PAUSES: Final = (INTERRUPTED, WAIT)
"""Outcomes of a task that goes on when something has come: an answer, a time, a signal."""

ANSWERS: Final = (ANSWER, DECISION)
"""What answers a question: a value, or of an effect that needs approval, the decision about it."""

EFFECT_KINDS: Final = (INTENT, RECEIPT, EFFECT_FAILED, DOUBT, RESOLVED)

JOURNAL_KINDS: Final = (STEP, *EFFECT_KINDS, DECISION, ARRIVED)
"""What a thread's journal tells."""

RECORD_KINDS: Final = (
    *(SUCCEEDED, FAILED, INTERRUPTED, CANCELLED, WAIT),
    *(ATTEMPT, *ANSWERS, ARRIVED, DISCARDED, STEP),
    *EFFECT_KINDS,
    *(REPAIRED, ORIGIN, BREAKPOINTS),
)
"""What can be recorded on a base checkpoint. The newest of the first five is the task's outcome, unless the task was
discarded since. The last two stand on no checkpoint (base 0): they are of the whole thread."""

SOURCES: Final = ("input", "loop", "update", "fork")
"""What made a checkpoint."""

COMPENSATE: Final = "compensate"

RUN_KINDS: Final = ("input", "continue", ANSWER, "command", "retry", "replay", COMPENSATE)
"""What call made a run. An edit and a fork are no runs."""
