"""A run of the model: superstep by superstep, stopping wherever a process may die.

What is durable by then is in the thread, and a recovery begins from the thread alone. The checks of a run are made at
each attempt: no success again, no question again, nothing on a question that is still open.
"""

from collections.abc import Callable, Iterator
from typing import Any

from stepwell.graph.types import MISSING, START
from stepwell.plan.compile import compile_plan
from stepwell.superstep.begin import start_outcome
from stepwell.superstep.decide import Rules, RunTasks, decide, first_failure
from stepwell.superstep.merge import branch_targets, merge, view
from stepwell.superstep.outcome import Failed, Interrupted, Outcome, Question, Returned, Succeeded, returned
from stepwell.superstep.state import Base, Identity, Task, merge_order
from stepwell.testing.graphs import GraphScript, RouterScript, ScheduledFailure, World
from tests.pure.model.parts import codec_of, question_id
from tests.pure.model.thread import Point, Thread

Life = Iterator[str]
"""A run in one life of the process: yields where it may die."""
LIMIT = 200


class Asked(BaseException):
    """Leaves the node where it asked."""

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        self.question = question


class Runs:
    """Runs of one graph on one thread."""

    def __init__(
        self, graph: GraphScript, *, failing: bool = True, order: Callable[[list[int]], list[int]] = list
    ) -> None:
        self.script, self.order = graph, order
        self.world = World(failing)
        self.plan = compile_plan(graph.build(self.world))
        self.thread = Thread(self.plan, codec_of(self.plan))
        self.version = 1
        self.at: Point | None = None
        """The point that the run in progress was admitted at; what a recovery knows of it is its lineage."""
        self.first_step = 1
        self.succeeded: set[tuple[Any, ...]] = set()
        self.answered: set[tuple[Any, ...]] = set()

    def standing(self) -> Base:
        """Return the newest base of the lineage at work, as the thread holds it."""
        assert self.at is not None
        return self.thread.base(self.thread.newest(self.at.lineage))

    def failed(self) -> bool:
        """Tell whether a task has failed there."""
        base = self.standing()
        return first_failure(base, merge_order(base.tasks)) is not None

    def identity(self) -> Identity:
        """Return the identity of the point that is added next."""
        return self.thread.identity(f"v{self.version}")

    # -- superstep by superstep ----------------------------------------------------------------------------------

    def drive(self) -> Life:
        """Run from what the thread holds until nothing more can be done; each outcome is durable as it comes."""
        rules = Rules(self.first_step, LIMIT)
        while isinstance(decision := decide(base := self.standing(), rules), RunTasks):
            point = self.thread.points[base.seq]
            for index in self.order(list(decision.indexes)):
                yield "task started"
                outcome = self._attempt(base, index)
                yield "task finished"
                base.outcomes[index] = outcome
                point.records.append(self.thread.encode(base.tasks[index], outcome))
                self._acknowledge(base, index, outcome)
                yield "outcome recorded"
            outcomes = [outcome for outcome in base.outcomes if isinstance(outcome, Succeeded)]
            if len(outcomes) < len(base.tasks):
                return
            yield "before merge"
            self.commit(base, outcomes)
            yield "committed"

    def commit(self, base: Base, outcomes: list[Succeeded]) -> None:
        """Add the point that these outcomes make of a base."""
        state = merge(self.plan, base.state, base.tasks, outcomes).state
        pairs = list(zip(base.tasks, outcomes, strict=True))
        self.thread.add(state, self.identity(), base.lineage, self.thread.points[base.seq], "loop", pairs)

    def _acknowledge(self, base: Base, index: int, outcome: Outcome) -> None:
        if isinstance(outcome, Succeeded):
            self.succeeded.add((base.lineage, base.tasks[index].node, base.tasks[index].activation))

    def _attempt(self, base: Base, index: int) -> Outcome:
        """Do a task, or the rest of it. INV-4 and INV-8 are checked here, by position within the lineage."""
        task, before = base.tasks[index], base.outcomes[index]
        place = (base.lineage, task.node, task.activation)
        assert place not in self.succeeded, f"{task} succeeded before"
        if isinstance(before, Interrupted):
            asked, answered = {q.call_id for q in before.questions}, set(base.answers.get(task.id, ()))
            assert asked & answered, f"{task} was not answered"
        kept = before.kept if isinstance(before, Interrupted | Failed) else None
        if task.node == START:
            return self.routed(base, task, kept or self.started(task), self.script.start)
        script = self.script.node(task.node)
        try:
            if kept is None:
                given = base.state.values if task.arg is MISSING else task.arg
                value = script.act(given, self._ask(base, task, "node"), self.world.fail)
                kept = returned(self.plan, self.plan.nodes[task.node], value, lambda: task.id)
        except Asked as asked:
            return Interrupted((asked.question,))
        except ScheduledFailure as error:
            return Failed(repr(error), error)
        return self.routed(base, task, kept, script.router)

    def routed(self, base: Base, task: Task, kept: Returned, router: RouterScript | None) -> Outcome:
        """Route what a node returned; where its router fails or asks, what it returned is kept."""
        if router is None:
            return Succeeded(kept.writes, kept.routes)
        try:
            chosen = router.choose(view(self.plan, base.state, kept.writes), self._ask(base, task, "router"))
            self.world.fail("", f"router of {task.node}", router.fails)
        except Asked as asked:
            return Interrupted((asked.question,), kept)
        except ScheduledFailure as error:
            return Failed(repr(error), error, kept)
        return Succeeded(kept.writes, (*kept.routes, *branch_targets(self.plan, task.node, None, chosen)))

    def _ask(self, base: Base, task: Task, prefix: str) -> Callable[[Any], Any]:
        asked: list[Any] = []

        def ask(value: Any) -> Any:
            call = f"{prefix} {len(asked)}"
            asked.append(value)
            answers = base.answers.get(task.id, {})
            if call in answers:
                return answers[call]
            assert (base.lineage, task.node, task.activation, call) not in self.answered, f"{task} asks {call} again"
            raise Asked(Question(question_id(task, call), call, value))

        return ask

    def started(self, task: Task) -> Returned:
        """Return what START makes of an input."""
        return start_outcome(self.plan, task.arg, lambda: task.id)


def dies(life: Life, nth: int | None) -> bool:
    """Let a process live until its nth stop, or to its end; tell whether it died."""
    return any(stop == nth for stop, _ in enumerate(life, start=1))
