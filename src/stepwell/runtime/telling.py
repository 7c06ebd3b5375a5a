"""Tells what happens in a run: to listeners, and to the run's log. The events themselves are `stepwell.events`.

The rule: state is told when it is durable, as the run's mode makes it (INV-11). Events are noted where they happen and
handed to listeners by `publish`; what is about to run is told at once. What the log gets goes out with the next write
of the run, in the order in which it happened (INV-1), and costs no transaction of its own. What was noted and never
became durable is forgotten.

A run has a `Teller` only where somebody listens or a log is kept; everybody else pays one comparison at each place.
Listeners are called on the thread that drives the run. What one raises is logged and changes nothing.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stepwell import events
from stepwell.errors import InvalidConfigError, LeaseLostError
from stepwell.events import Event
from stepwell.graph.types import START
from stepwell.store import CheckpointRow, EventDraft
from stepwell.superstep import lifecycle
from stepwell.superstep.decide import open_questions, standstill
from stepwell.superstep.outcome import Awaited, Cancelled, Failed, Interrupted, Outcome, Succeeded, text_of
from stepwell.superstep.state import Base, Task
from stepwell.superstep.steps import FAILED, Step
from stepwell.superstep.waiting import next_deadline

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.run import Run

Listener = Callable[[Event], Any]

log = logging.getLogger("stepwell.events")
logging.getLogger("stepwell").addHandler(logging.NullHandler())


_REFUSABLE = (events.TaskFinished, events.InterruptRaised, events.WaitStarted)
"""What is noted of outcomes that may prove not to be storable."""


class Audience(NamedTuple):
    """Who is told of a graph's runs."""

    listeners: tuple[Listener, ...]
    keeps_log: bool


def audience(listeners: Sequence[Any], keeps_log: bool) -> Audience | None:
    """Return who is to be told; None for nobody. Raises InvalidConfigError for what cannot listen."""
    found = tuple(_listener(given) for given in listeners)
    return Audience(found, keeps_log) if found or keeps_log else None


def _listener(given: Any) -> Listener:
    hear = getattr(given, "on_event", given)
    if not callable(hear) or inspect.iscoroutinefunction(hear):
        reason = f"a listener is a function of one event, or an object with on_event(event), not {given!r}"
        raise InvalidConfigError(reason=f"{reason}; it is called without await", key="listeners")
    return hear  # type: ignore[no-any-return]


class Teller:
    """What one run tells."""

    __slots__ = (
        "_began",
        "_drafts",
        "_fork",
        "_keeps_log",
        "_listeners",
        "_lock",
        "_news",
        "_over",
        "_run",
        "audience",
    )

    def __init__(self, run: Run, to: Audience) -> None:
        self.audience = to
        self._run = run
        self._listeners = to.listeners
        self._keeps_log = to.keeps_log
        self._news: list[Event] = []
        """Noted for listeners, to be published."""
        self._drafts: list[Event] = []
        """Noted for the log, to be written."""
        self._fork: int | None = None
        """The lineage that begins with the next checkpoint."""
        self._began = False
        self._over = False
        self._lock = threading.Lock()  # between the run and the threads of its nodes' steps

    # -- handing out ---------------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Hand out what was noted: it is durable now, or as durable as the mode makes it."""
        with self._lock:
            news, self._news = self._news, []
        for event in news:
            self._hand_out(event)

    def forget(self) -> None:
        """Drop what was noted: it never became durable."""
        self._news.clear()
        self._drafts.clear()
        self._over = False

    def begin_anew(self) -> None:
        """Drop what was noted: the thread is read, and everything is decided, from the start."""
        self.forget()
        self._began = False
        self._fork = None

    def take(self) -> Sequence[EventDraft]:
        """Return what the next write of the run adds to its log."""
        if not self._drafts:
            return ()
        with self._lock:
            drafts, self._drafts = self._drafts, []
        return [EventDraft(event.run_id, events.name_of(event), event.at, events.body_of(event)) for event in drafts]

    def _hand_out(self, event: Event) -> None:
        for hear in self._listeners:
            try:
                hear(event)
            except Exception:
                log.exception("a listener failed on %r; the run goes on", event)

    def _note(self, event: Event) -> None:
        if self._listeners:
            self._news.append(event)
        if self._keeps_log and event.run_id:
            self._drafts.append(event)

    def _tell(self, event: Event) -> None:
        """Tell at once what says nothing about state; the log has it with the next write."""
        if self._keeps_log:
            self._drafts.append(event)
        self._hand_out(event)

    def where(self, run_id: str | None = None) -> dict[str, Any]:
        """Return what every event carries."""
        run = self._run
        named = run.run_id if run_id is None else run_id
        return {"run_id": named, "thread_id": run.config.thread_id, "at": run.clock.now()}

    # -- the run -------------------------------------------------------------------------------------------------------

    def started(self, kind: str, attempt: int, *before: Event) -> None:
        """Note that the run begins. It goes in front of what beginning it has noted already."""
        run = self._run
        first = events.RunStarted(
            **self.where(), kind=kind, durability=run.durability, attempt=attempt, graph_id=run.plan.graph_id
        )
        news, drafts = self._news, self._drafts
        self._news, self._drafts = [], []
        self._note(first)
        for event in before:
            self._note(event)
        self._news += news
        self._drafts += drafts
        self._began = True

    def ended(self, base: Base, status: str, error: str = "") -> None:
        """Note the end of the run, once."""
        if not self._began or self._over:
            return
        self._over = True
        where, at = self.where(), base.checkpoint_id
        if status == lifecycle.FINISHED:
            for join, arrived in base.state.barriers.items():
                sources = self._run.plan.joins[join].sources if join in self._run.plan.joins else arrived
                missing = tuple(sorted(sources - arrived))
                self._note(events.JoinNotReleased(**where, join=join, missing=missing))
            self._note(events.RunFinished(**where, checkpoint_id=at))
        elif status == lifecycle.PAUSED:
            asked = tuple(question.interrupt_id for question in open_questions(base))
            self._note(events.RunPaused(**where, checkpoint_id=at, interrupt_ids=asked))
        elif status == lifecycle.WAITING:
            waits = standstill(base).awaited
            keys, until = tuple(each.key for each in waits), next_deadline(waits)
            self._note(events.RunWaiting(**where, checkpoint_id=at, keys=keys, until=until))
        elif status == lifecycle.CANCELLED:
            self._note(events.RunCancelled(**where, checkpoint_id=at, error=error))
        else:
            self._note(events.RunFailed(**where, checkpoint_id=at, error=error))

    def over(self, base: Base, status: str, error: BaseException | None) -> None:
        """Be told that the driving has ended; where nothing is stored, nobody else says how."""
        self.ended(base, status, "" if error is None else text_of(error))
        self.publish()

    def cut_off(self, base: Base, error: BaseException) -> None:
        """Be told that the driving was cut off with nothing left to write, or no right to."""
        if isinstance(error, LeaseLostError) and self._began:
            self.forget()  # it is not durable and never will be
            self._over = True
            self._hand_out(events.LeaseLost(**self.where()))
        elif self._over:
            self.forget()  # the end was on its way, and nobody knows whether it landed
        else:
            self.over(base, lifecycle.CANCELLED, error)

    # -- supersteps and checkpoints ------------------------------------------------------------------------------------

    def superstep(self, base: Base, indexes: Sequence[int]) -> None:
        """Tell which tasks are about to run."""
        if not self._began:
            return
        tasks = [base.tasks[index] for index in indexes]
        step = base.state.step + 1
        nodes = tuple(task.node for task in tasks)
        self._tell(events.SuperstepStarted(**self.where(), step=step, nodes=nodes))
        for task in tasks:
            self._tell(events.TaskScheduled(**self._task(base, task), activation=task.activation))

    def checkpoint(self, row: CheckpointRow, writers: tuple[str, ...]) -> None:
        """Note a checkpoint that is about to be written."""
        where, name = self.where(row.run_id), row.checkpoint_id
        if self._fork == row.lineage:
            self._fork = None
            forked = events.ThreadForked(**where, lineage=row.lineage, from_seq=row.parent_seq, checkpoint_id=name)
            self._note(forked)
        if row.source == "loop" and writers != (START,):
            self._note(events.SuperstepCommitted(**where, step=row.step, nodes=writers, checkpoint_id=name))
        self._note(
            events.CheckpointCommitted(
                **where, checkpoint_id=name, step=row.step, source=row.source, lineage=row.lineage, seq=row.seq
            )
        )

    def forking(self, lineage: int) -> None:
        """Be told that the next checkpoint of this lineage is its first."""
        self._fork = lineage

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def _task(self, base: Base, task: Task) -> dict[str, Any]:
        return {**self.where(), "task_id": task.id, "node": task.node, "step": base.state.step + 1}

    def task_started(self, task_run: TaskRun) -> None:
        """Tell that user code of the task is called: its node or, for START, its first router."""
        first = task_run.kept is None or (task_run.task.node == START and task_run.branch == 0)
        if self._began and first:
            where = self._task(task_run.base, task_run.task)
            self._tell(events.TaskStarted(**where, attempt=task_run.attempt))

    def task_settled(self, task_run: TaskRun, outcome: Outcome) -> None:
        """Note what became of a task."""
        if self._began:
            self._settled(task_run.base, task_run.task, outcome, task_run.attempt)

    def _settled(self, base: Base, task: Task, outcome: Outcome, attempt: int) -> None:
        where = self._task(base, task)
        if isinstance(outcome, Succeeded):
            self._note(events.TaskFinished(**where, attempt=attempt))
        elif isinstance(outcome, Failed):
            self._note(events.TaskFailed(**where, attempt=attempt, error=outcome.text))
        elif isinstance(outcome, Cancelled):
            self._note(events.TaskCancelled(**where, error=outcome.text))
        elif isinstance(outcome, Interrupted):
            for question in outcome.questions:
                self._note(events.InterruptRaised(**where, interrupt_id=question.interrupt_id))
            for awaited in outcome.awaited:
                self._note(events.WaitStarted(**where, kind=awaited.kind, key=awaited.key, until=awaited.until))

    def refused(self, base: Base, index: int) -> None:
        """Correct what was noted of a task whose outcome became another after it was settled."""
        task, outcome = base.tasks[index], base.outcomes[index]
        if not self._began or outcome is None:
            return
        attempt = 1
        for noted in (self._news, self._drafts):
            for event in [e for e in noted if isinstance(e, _REFUSABLE) and e.task_id == task.id]:
                attempt = getattr(event, "attempt", attempt)
                noted.remove(event)
        self._settled(base, task, outcome, attempt)

    def retry(self, task_run: TaskRun, error: BaseException, attempt: int, due_at: int) -> None:
        """Note that an attempt failed and when the next one is due."""
        if self._began:
            where = self._task(task_run.base, task_run.task)
            self._note(events.RetryScheduled(**where, attempt=attempt, error=text_of(error), due_at=due_at))

    def step_started(self, task_run: TaskRun, step: Step) -> None:
        """Note that the code of a step is called, on whatever thread."""
        where = {**self._step(task_run, step), "attempt": step.attempts + 1}
        with self._lock:
            self._note(events.StepStarted(**where))

    def step_settled(self, task_run: TaskRun, step: Step) -> None:
        """Note what became of a step, on whatever thread: it is durable."""
        where = {**self._step(task_run, step), "attempt": step.attempts}
        failed = step.status == FAILED
        event = events.StepFailed(**where, error=step.error) if failed else events.StepFinished(**where)
        with self._lock:
            self._note(event)

    def _step(self, task_run: TaskRun, step: Step) -> dict[str, Any]:
        return {**self._task(task_run.base, task_run.task), "step_id": step.call_id, "callee": step.callee}

    def wait_ended(self, base: Base, task: Task, awaited: Awaited, message_id: str) -> None:
        """Note that a wait is over, by a message or (no id) by its time."""
        where = self._task(base, task)
        self._note(events.WaitEnded(**where, kind=awaited.kind, key=awaited.key, message_id=message_id))

    def answered(self, base: Base, task: Task, interrupt_id: str) -> None:
        """Note an answer."""
        self._note(events.AnswerRecorded(**self._task(base, task), interrupt_id=interrupt_id))
