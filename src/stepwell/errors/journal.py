"""What can be wrong with durable steps: calls that a node makes and that are recorded."""

from __future__ import annotations

from stepwell.errors.root import StepwellError


class JournalError(StepwellError):
    """What a node did cannot be squared with what is recorded of it."""

    code = "journal_error"


class NonDeterminismError(JournalError, RuntimeError):
    """Thread {thread_id}: step {step_id} was recorded as {recorded}, and is now called as {attempted} (recorded by code
    {recorded_code}, this is {called_code}). A node must make the same calls when it runs again. Go on with the code
    that recorded it, give the call that changed a name of its own, or run the node anew: graph.retry(config,
    tasks=[...])."""

    code = "non_determinism"


class StepError(JournalError, RuntimeError):
    """Step {step_id} failed before, and fails again as recorded: {error}. It is called anew once its node has failed;
    its exception is of no built-in type, so it is not made again."""

    code = "step_failed"


class StepOverError(JournalError, RuntimeError):
    """Step {step_id} came too late: its node was over, or given up, by then. Nothing was recorded. Wait for what a node
    starts before the node returns."""

    code = "step_over"
