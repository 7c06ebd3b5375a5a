"""The model: what each operation on a thread means, from the rules as they are written down.

It shares with the engine the pure functions that decide and merge, and nothing else. Runs are `run.py`'s, the thread
that they leave behind is `thread.py`'s.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from stepwell.errors import StepwellError
from stepwell.graph.types import MISSING, Command, StateUpdate
from stepwell.superstep.answer import match_answers, open_now
from stepwell.superstep.begin import commanded, count, input_state
from stepwell.superstep.carry import abandoned, carry, earlier_answers
from stepwell.superstep.decide import Rules, RunTasks, decide, open_questions
from stepwell.superstep.edit import Acting, acting, acting_base, cleared
from stepwell.superstep.merge import merge, view
from stepwell.superstep.outcome import Failed, Question, Succeeded, returned, summary
from stepwell.superstep.state import Base, Task, merge_order, position_id
from stepwell.testing.graphs import ScheduledFailure
from tests.pure.model.run import LIMIT, Life, Runs, dies
from tests.pure.model.scripts import (
    Begin,
    Continue,
    Edit,
    Fork,
    Op,
    Redeploy,
    Redirect,
    Replay,
    Reply,
    ReplyByOldId,
    ReplyEarlier,
    Retry,
    Rewrite,
    Step,
    chosen_of,
)
from tests.pure.model.seen import FAILED, Seen
from tests.pure.model.thread import Point


class Spot(NamedTuple):
    """Where the next superstep of an edit is written, and the lineage it continues; None where it opens one."""

    point: Point
    lineage: int | None


class Model(Runs):
    """One thread of one graph under a script."""

    def play(self, step: Step) -> Seen:
        """Carry out a step, dying after as many stops as each of its crashes says; return what there is to see."""
        self.world.broken = step.broken
        before = [(point, point.body, list(point.records)) for point in self.thread.points]
        self.at = None
        try:
            error = self._carry_out(step)
        except StepwellError as refused:
            error = refused.code
        self._check_history(before)
        return self.look(error)

    def _carry_out(self, step: Step) -> str:
        stops = [nth for _, nth in step.crashes]
        life = self._begin(step.op)
        while True:
            if dies(life, stops.pop(0) if stops else None):
                life = self.drive() if self.at is not None else self._begin(step.op)
            elif self.at is None or not self.failed():
                return ""
            elif step.broken:
                return FAILED
            else:
                self.first_step = self.standing().state.step + 1
                life = self.drive()

    def _check_history(self, before: list[tuple[Point, bytes, list[Any]]]) -> None:
        """INV-9: no point changes; records are added to a point of the lineage at work only."""
        for point, body, records in before:
            assert point.body == body
            assert point.records[: len(records)] == records
            if self.at is None or point.lineage != self.at.lineage:
                assert len(point.records) == len(records)

    # -- how a step begins -------------------------------------------------------------------------------------------

    def _begin(self, op: Op) -> Life:
        yield "before admission"
        self._admit(op)
        if self.at is not None and not isinstance(op, Edit | Rewrite | Fork):
            yield "admitted"
            yield from self.drive()

    def _admit(self, op: Op) -> None:
        match op:
            case Redeploy():
                self.version += 1
            case Begin(text):
                self._input({"log": [text]})
            case Continue():
                self._resume(self.thread.head)
            case Replay(back):
                self._resume(self._back(back))
            case Redirect(text, goto):
                self._command(Command(update={"log": [text]}, goto=self._node(goto)))
            case Reply(which, value):
                self._reply(self.thread.head, self._open(), which, value)
            case ReplyEarlier(back, value):
                self._reply(self._back(back), self.thread.answerable(self._back(back)), 0, value)
            case ReplyByOldId(number, value):
                self._reply_by_old_id(number, value)
            case Retry(which):
                self._retry(which)
            case _:
                self._write(op)

    def _write(self, op: Op) -> None:
        match op:
            case Edit(back, node, text):
                self._rewrite(self._back(back), [("act", (node,))], text)
            case Rewrite(back, supersteps, text):
                self._rewrite(self._back(back), supersteps, text)
            case Fork(back):
                self.at = self._fork(self._back(back))

    def _node(self, number: int) -> str:
        return self.script.nodes[number % len(self.script.nodes)].name

    def _back(self, back: int) -> Point:
        return self.thread.points[::-1][back % len(self.thread.points)]

    def _is_newest(self, point: Point) -> bool:
        return self.thread.newest(point.lineage) is point

    def _work_at(self, point: Point, first_step: int | None = None) -> None:
        self.at = point
        self.first_step = point.step + 1 if first_step is None else first_step

    def _input(self, raw: Any) -> None:
        """A new input opens a new base, whatever was going on; START is routed at once where no user code does it."""
        parent = self.thread.points[-1] if self.thread.points else None
        base = self.thread.base(parent)
        lineage = parent.lineage if parent is not None else 0
        state = input_state(base.state, raw, base.tasks)
        point = self.thread.add(state, self.identity(), lineage, parent, "input")
        self._work_at(point, point.step + 2)
        if self.script.start is None:
            self.commit(self.thread.base(point), [Succeeded(*self.started(self.thread.base(point).tasks[0]))])

    def _resume(self, point: Point) -> None:
        """The newest of a lineage is continued, a finished one is left alone, an older one is replayed in a fork."""
        base = self.thread.base(point)
        if not base.tasks:
            return
        if not self._is_newest(point):
            self._work_at(self._fork(point))
        elif isinstance(decide(base, Rules(0, LIMIT)), RunTasks):
            self._work_at(point)

    def _fork(self, point: Point, records: Any = ()) -> Point:
        state = self.thread.state(point)
        following = state._replace(step=state.step + 1)
        return self.thread.add(following, self.identity(), self.thread.open_lineage(), point, "fork", (), records)

    def _command(self, command: Command[Any]) -> None:
        old = self.thread.head
        base, identity = self.thread.base(old), self.identity()
        state = commanded(self.plan, base, command, identity).state
        kept = carry(base, Base(state, identity), self.thread.everything_on(old), lambda *_: True)
        self._work_at(self.thread.add(state, identity, old.lineage, old, "update", (), kept))

    def _open(self) -> list[tuple[Task, Question]]:
        """Return the open questions at the head, in listing order."""
        base = self.thread.base(self.thread.head)
        return list(open_now(base))

    def _reply(self, point: Point, asked: list[tuple[Task, Question]], which: int, value: Any) -> None:
        """Answer by id. At an older point the answered task keeps its earlier answers, and all others everything."""
        if not asked:
            self._resume(point)
            return
        chosen = [one for i, one in enumerate(asked) if which >> i & 1] or [asked[which % len(asked)]]
        base = self.thread.base(point)
        if self._is_newest(point):
            already = {q.interrupt_id for _, q in chosen} - {q.interrupt_id for q in open_questions(base)}
            if already:
                raise _Answered()
        else:
            point = self._fork_for(point, base, chosen)
        self._record(point, chosen, value)

    def _record(self, point: Point, chosen: list[tuple[Task, Question]], value: Any) -> None:
        base = self.thread.base(point)
        for task, question in chosen:
            now = next(t for t in base.tasks if (t.node, t.index) == (task.node, task.index))
            point.records.append(self.thread.encode_answer(now, question, value))
            self.answered.add((point.lineage, now.node, now.activation, question.call_id))
        self._work_at(point)

    def _reply_by_old_id(self, number: int, value: Any) -> None:
        """An id from before an edit or fork stays valid: it is mapped by position to the question open there."""
        shown = [question.interrupt_id for point in self.thread.points for _, question in self.thread.answerable(point)]
        ids = list(dict.fromkeys(shown))
        if not ids:
            self._resume(self.thread.head)
            return
        answered = self.thread.answered_ids()
        today = {position_id(task, q.call_id): q.interrupt_id for task, q in self._open()}
        then = [(place, old) for point in self.thread.points for place, old in self.thread.places(point)]
        aliases = {old: today[place] for place, old in then if place in today and old not in answered}
        resume = {ids[number % len(ids)]: value}
        found = match_answers("t", self._open(), resume, aliases, answered)
        self._record(self.thread.head, [(one.task, one.question) for one in found], value)

    def _fork_for(self, point: Point, base: Base, chosen: list[tuple[Task, Question]]) -> Point:
        everything = self.thread.everything_on(point)
        calls = {task.id: question.call_id for task, question in chosen}
        kept = [record for record in everything if record.task_id not in calls]
        for task_id, call in calls.items():
            asks = lambda r, c=call: c in {q.call_id for q in self.thread.decoded(r).questions}  # type: ignore[union-attr] # noqa: E731
            kept += earlier_answers(everything, task_id, asks)
        identity = self.identity()
        state = base.state._replace(step=base.state.step + 1)
        carried = carry(base, Base(state, identity), kept, lambda *_: True)
        return self._fork(point, carried)

    def _retry(self, which: int) -> None:
        """Discard the outcomes of the chosen tasks, with a record that says so; their answers stay."""
        point = self.thread.head
        base = self.thread.base(point)
        if not base.tasks:
            return
        for index in chosen_of(base.tasks, which):
            task = base.tasks[index]
            for i, other in enumerate(base.tasks):
                if other.id == task.id and base.outcomes[i] is not None:
                    point.records.append(self.thread.discarded(other))
            self.succeeded.discard((base.lineage, task.node, task.activation))
        self._work_at(point)

    def _rewrite(self, point: Point, supersteps: Sequence[tuple[str, tuple[int, ...]]], text: str) -> None:
        """Write one point for each superstep of updates, or none of them; a router that fails is asked again."""
        while not self._rewritten(point, supersteps, text):
            pass

    def _rewritten(self, point: Point, supersteps: Sequence[tuple[str, tuple[int, ...]]], text: str) -> bool:
        points, lineages = len(self.thread.points), self.thread.lineages
        spot = Spot(point, point.lineage if self._is_newest(point) else None)
        before = dict(point.merged), dict(point.edited)
        try:
            for kind, nodes in supersteps:
                spot = self._superstep(spot, kind, [self._node(number) for number in nodes], text)
        except (StepwellError, ScheduledFailure) as error:
            del self.thread.points[points:]
            self.thread.lineages = lineages
            point.merged, point.edited = before
            if isinstance(error, StepwellError):
                raise
            return False
        self.at = spot.point
        return True

    def _superstep(self, spot: Spot, kind: str, nodes: list[str], text: str) -> Spot:
        point, lineage = spot
        base, identity = self.thread.base(point), self.identity()
        if kind == "act":
            return self._act(spot, nodes, text)
        if kind == "copy":
            beside = base.state._replace(step=base.state.step + 1)
            parent = point.parent
            copied = self.thread.add(beside, identity, self.thread.open_lineage(), parent, "fork")
            grouped = sorted(nodes, key=nodes.index)
            return self._act(Spot(copied, copied.lineage), grouped, text) if nodes else Spot(copied, copied.lineage)
        at = lineage if lineage is not None else self.thread.open_lineage()
        if kind == "input":
            state = input_state(base.state, {"log": [text]}, base.tasks if lineage is not None else ())
            return Spot(self.thread.add(state, identity, at, point, "input"), at)
        left = cleared(self.plan, base, lineage is not None)
        done = [(base.tasks[i], outcome) for i in left.finished if isinstance(outcome := base.outcomes[i], Succeeded)]
        return Spot(self.thread.add(left.state, identity, at, point, "update", done), at)

    def _act(self, spot: Spot, nodes: list[str], text: str) -> Spot:
        """Act as the nodes: their routing over the edited state is what is planned next. At the newest point of a
        lineage the activations that stay (node, index, input) keep their records, the others are abandoned, counted."""
        point, lineage = spot
        old = self.thread.base(point)
        acts = acting(self.plan, old, [StateUpdate({"log": [text], "total": 1}, node) for node in nodes])
        acted = acting_base(old, acts)
        outcomes = [self._acted(acted, i, act) for i, act in enumerate(acts)]
        merged = merge(self.plan, acted.state, acted.tasks, outcomes).state
        state, identity = merged._replace(writers=old.state.writers), self.identity()
        new = Base(state, identity)

        def stays(before: Task, after: Task) -> bool:
            return lineage is not None and self._given(old, before) == self._given(new, after)

        if lineage is not None:
            state = state._replace(activations=count(state.activations, abandoned(old, new, stays)))
        records = self.thread.everything_on(point) if lineage is not None else []
        kept = carry(old, Base(state, identity), records, stays)
        at = lineage if lineage is not None else self.thread.open_lineage()
        pairs = [(act.place, outcome) for act, outcome in zip(acts, outcomes, strict=True)]
        return Spot(self.thread.add(state, identity, at, point, "update", pairs, kept), at)

    def _acted(self, acted: Base, index: int, act: Acting) -> Succeeded:
        made = returned(self.plan, self.plan.nodes[act.node], act.values, lambda: "edit")
        outcome = self.routed(acted, acted.tasks[index], made, self.script.node(act.node).router)
        if isinstance(outcome, Failed):
            raise outcome.error or AssertionError
        if not isinstance(outcome, Succeeded):
            raise _Invalid()
        return outcome

    def _given(self, base: Base, task: Task) -> Any:
        return dict(base.state.values) if task.arg is MISSING else task.arg

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, error: str = "") -> Seen:
        """Return what a user sees."""
        base = self.thread.base(self.thread.head)
        finished = [base.outcomes[i] for i in merge_order(base.tasks) if isinstance(base.outcomes[i], Succeeded)]
        writes = [write for outcome in finished if isinstance(outcome, Succeeded) for write in outcome.writes]
        pending = [t for t, o in zip(base.tasks, base.outcomes, strict=True) if not isinstance(o, Succeeded)]
        questions = [question.value for _, question in self._open()]
        values = dict(view(self.plan, base.state, writes))
        history = [self._shown(point) for point in reversed(self.thread.points)]
        return Seen(error, values, tuple(task.node for task in pending), questions, history)

    def _shown(self, point: Point) -> Any:
        base = self.thread.base(point)
        state = base.state
        joins = {join: tuple(sorted(arrived)) for join, arrived in state.barriers.items()}
        tasks = [self._task(point, base, i) for i in range(len(base.tasks))]
        next_ = tuple(task.node for task in base.tasks)
        return (point.lineage, point.step, point.source, dict(state.values), next_, joins, tasks)

    def _task(self, point: Point, base: Base, index: int) -> Any:
        task, outcome = base.tasks[index], self.thread.outcome(point, base, index)
        asked = [question.value for owner, question in self.thread.answerable(point) if owner.id == task.id]
        error = outcome.text if isinstance(outcome, Failed) else None
        result = (summary(outcome.writes) or {}) if isinstance(outcome, Succeeded) else None
        return (task.node, task.path, error, asked, result)


class _Answered(StepwellError):
    """The question is answered."""

    code = "interrupt_answered"


class _Invalid(StepwellError):
    """The edit's router did not say where to go."""

    code = "invalid_update"
