"""What to do with a base checkpoint: run tasks, wait, stop or finish. The one place that knows when a run ends.

`decide` looks at the plan, the base with what is recorded on it, and the rules of this run. It is asked on every base,
before the commit that makes it durable, so that the last commit can release the lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stepwell.superstep import lifecycle
from stepwell.superstep.answer import open_now
from stepwell.superstep.outcome import Awaited, Cancelled, Failed, Interrupted, Outcome, Question, Succeeded
from stepwell.superstep.state import Base, Task
from stepwell.superstep.waiting import open_waits


class Rules(NamedTuple):
    """What this run may do."""

    first_step: int
    """Step of the first user superstep of this run."""
    limit: int
    """User supersteps this run may execute."""
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    thread_limit: int | None = None
    """Steps the thread's history may have, inputs and edits included; None: any number."""
    resumed_at: str = ""
    """Checkpoint at which breakpoints are passed over: the run continues from a pause there."""

    def remaining(self, step: int) -> int:
        """Return how many supersteps are left after the one with this number."""
        return self.limit - (step - self.first_step + 1)


class RunTasks(NamedTuple):
    """Run these tasks (positions in the base), then merge. Empty: all are done, merge at once."""

    indexes: tuple[int, ...]


class Wait(NamedTuple):
    """Nothing can go on: open questions, what else is awaited, or a breakpoint (neither)."""

    questions: tuple[Question, ...]
    awaited: tuple[Awaited, ...] = ()

    @property
    def status(self) -> str:
        """The status of a thread that stands so: `waiting` where it needs nobody's answer, only time or a signal."""
        return lifecycle.WAITING if self.awaited and not self.questions else lifecycle.PAUSED


class Stop(NamedTuple):
    """The limit is used up and work is left."""

    limit: int


class Finish(NamedTuple):
    """Nothing is planned."""


Decision = RunTasks | Wait | Stop | Finish
_ONE = RunTasks((0,))
_FINISH = Finish()


def decide(base: Base, rules: Rules) -> Decision:
    """Return what happens next on this base."""
    tasks = base.tasks
    if not tasks:
        return _FINISH
    if (rules.before or rules.after) and base.checkpoint_id != rules.resumed_at and _breaks(base, rules):
        return Wait(())
    step = base.state.step + 1
    if step - rules.first_step >= rules.limit:
        return Stop(rules.limit)
    if rules.thread_limit is not None and step > rules.thread_limit:
        return Stop(rules.thread_limit)
    if len(tasks) == 1 and base.outcomes[0] is None:
        return _ONE
    runnable = tuple(i for i, task in enumerate(tasks) if _runs(base, task, base.outcomes[i]))
    if runnable or all(type(outcome) is Succeeded for outcome in base.outcomes):
        return RunTasks(runnable)
    return standstill(base)


def ending(decision: Decision, limit_fails: bool) -> str | None:
    """Return the status a run ends with, or None where it goes on."""
    if isinstance(decision, RunTasks):
        return None
    if isinstance(decision, Finish):
        return lifecycle.FINISHED
    if isinstance(decision, Wait):
        return decision.status
    return lifecycle.FAILED if limit_fails else lifecycle.PAUSED


def _runs(base: Base, task: Task, outcome: Outcome | None) -> bool:
    """A task runs unless it is done, or waits for an answer that has not come."""
    if isinstance(outcome, Interrupted):
        return task.id in base.fresh
    return not isinstance(outcome, Succeeded)


def _breaks(base: Base, rules: Rules) -> bool:
    if any(task.node in rules.before for task in base.tasks):
        return True
    return any(node in rules.after for node in base.state.writers)


def standstill(base: Base) -> Wait:
    """Return what a base on which nothing runs stands still for."""
    return Wait(open_questions(base), tuple(awaited for _, awaited in open_waits(base)))


def open_questions(base: Base) -> tuple[Question, ...]:
    """Return the questions nobody has answered, in listing order."""
    return tuple(question for _, question in open_now(base))


def first_failure(base: Base, order: Sequence[int]) -> int | None:
    """Return the position of the first failed or cancelled task in merge order."""
    return next((i for i in order if isinstance(base.outcomes[i], Failed | Cancelled)), None)
