"""The model's store: one thread as a list of points, each a checkpoint in bytes with the records gathered on it.

Nothing is ever changed but by appending: a point, or a record to a point. What a crash leaves is exactly this list.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stepwell.codec import Codec
from stepwell.plan.tables import Plan
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.begin import empty_state, initial_values
from stepwell.superstep.carry import Record
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Outcome, Question, Succeeded
from stepwell.superstep.state import Base, Identity, State, Task, position_id


@dataclass
class Point:
    """A checkpoint."""

    seq: int
    lineage: int
    parent: "Point | None"
    source: str
    step: int
    identity: Identity
    body: bytes
    records: list[Record] = field(default_factory=list)
    merged: dict[tuple[str, int | None], Succeeded] = field(default_factory=dict)
    """Outcomes that the next point of this lineage has taken in."""
    edited: dict[tuple[str, int | None], Succeeded] = field(default_factory=dict)
    """What an edit that is the next point of this lineage wrote in the place of tasks."""

    def __repr__(self) -> str:
        return f"Point({self.seq}, lineage {self.lineage}, step {self.step}, {self.source})"


class Thread:
    """Everything under one thread id."""

    def __init__(self, plan: Plan, codec: Codec) -> None:
        self.plan, self.codec = plan, codec
        self.points: list[Point] = []
        self.lineages = 1

    # -- writing -----------------------------------------------------------------------------------------------------

    def identity(self, version: str) -> Identity:
        """Return the identity of the point that is added next."""
        return Identity("model", version, "t", "", f"checkpoint {len(self.points)}")

    def add(
        self,
        state: State,
        identity: Identity,
        lineage: int,
        parent: Point | None,
        source: str,
        outcomes: Sequence[tuple[Task, Succeeded]] = (),
        records: Sequence[Record] = (),
    ) -> Point:
        """Append a point; what it holds must read back as it is (INV-5, INV-12)."""
        seq = len(self.points)
        sources = [layout.Source(task, outcome) for task, outcome in outcomes]
        encoded = layout.encode_checkpoint(self.codec, self.plan, state, seq, sources, {})
        point = Point(seq, lineage, parent, source, state.step, identity, encoded.body, list(records))
        assert self.state(point) == state._replace(values=encoded.values)
        assert encoded.values == state.values
        if parent is not None and parent.lineage == lineage and source in ("loop", "input"):
            parent.merged = {(task.node, task.index): outcome for task, outcome in outcomes}
        elif parent is not None and parent.lineage == lineage:
            parent.edited = {(task.node, task.index): outcome for task, outcome in outcomes}
        self.points.append(point)
        return point

    def open_lineage(self) -> int:
        """Return the number of a new lineage."""
        self.lineages += 1
        return self.lineages - 1

    def encode(self, task: Task, outcome: Outcome) -> Record:
        """Return the record of an outcome; it must read back as it is, but for a live exception."""
        kind, body = self._encoded(task, outcome)
        record = Record(kind, task.id, body)
        assert self.decoded(record) == (outcome._replace(error=None) if isinstance(outcome, Failed) else outcome)
        return record

    def encode_answer(self, task: Task, question: Question, value: Any) -> Record:
        """Return the record of an answer."""
        body = layout.encode_answer(self.codec, question.interrupt_id, question.call_id, value)
        return Record(lifecycle.ANSWER, task.id, body)

    def discarded(self, task: Task) -> Record:
        """Return the record that a task's outcome does not count any more."""
        return Record(lifecycle.DISCARDED, task.id, layout.encode_discarded())

    def _encoded(self, task: Task, outcome: Outcome) -> tuple[str, bytes]:
        if isinstance(outcome, Succeeded):
            return lifecycle.SUCCEEDED, layout.encode_succeeded(self.codec, self.plan, task, outcome)
        if isinstance(outcome, Interrupted):
            return lifecycle.INTERRUPTED, layout.encode_interrupted(self.codec, self.plan, task, outcome)
        kind = lifecycle.FAILED if isinstance(outcome, Failed) else lifecycle.CANCELLED
        return kind, layout.encode_failed(self.codec, self.plan, task, outcome)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def head(self) -> Point:
        """The newest point of all."""
        return self.points[-1]

    def newest(self, lineage: int) -> Point:
        """Return the newest point of a lineage."""
        return next(point for point in reversed(self.points) if point.lineage == lineage)

    def state(self, point: Point) -> State:
        """Return the state of a point, read from its bytes."""
        opened = layout.open_checkpoint(point.body, repr(point))
        stored = {key: self.codec.loads(layout.value_bytes(opened, key, "point"), key) for key in opened.channels}
        return State(
            {**initial_values(self.plan), **stored},
            layout.decode_next(self.codec, opened.next),
            {join: frozenset(arrived) for join, arrived in opened.barriers.items()},
            frozenset(opened.deferred),
            opened.activations,
            tuple(opened.writers),
            point.step,
        )

    def base(self, point: Point | None) -> Base:
        """Return a point as a base with its records laid over, oldest first; before the first, the empty one."""
        if point is None:
            return Base(empty_state(self.plan), Identity("model", "", "t", "", ""))
        base = Base(self.state(point), point.identity, point.lineage, point.seq)
        for record in point.records:
            index = base.task_index(record.task_id)
            if index is not None:
                self._lay(base, index, record)
        return base

    def _lay(self, base: Base, index: int, record: Record) -> None:
        task = base.tasks[index]
        if record.kind == lifecycle.DISCARDED:
            base.discard(index)
            return
        if record.kind != lifecycle.ANSWER:
            base.outcomes[index] = self.decoded(record)
            base.fresh -= {task.id}
            return
        _, call_id, value = layout.decode_answer(self.codec, record.body, "answer")
        base.answer(task.id, call_id, value)
        base.fresh |= {task.id}

    def decoded(self, record: Record) -> Outcome:
        """Return the outcome that a record holds."""
        if record.kind == lifecycle.SUCCEEDED:
            return layout.decode_succeeded(self.codec, record.body, "r")
        if record.kind == lifecycle.INTERRUPTED:
            return layout.decode_interrupted(self.codec, record.body, "r")
        if record.kind == lifecycle.FAILED:
            return layout.decode_failed(self.codec, record.body, "r")
        assert record.kind == lifecycle.CANCELLED
        decoded: Cancelled = layout.decode_cancelled(self.codec, record.body, "r")
        return decoded

    def everything_on(self, point: Point) -> list[Record]:
        """Return the records of a point, and what its next point took in without a record."""
        base = self.base(point)
        recorded = {record.task_id for record in point.records if record.kind == lifecycle.SUCCEEDED}
        taken = [
            self.encode(task, point.merged[task.node, task.index])
            for task in base.tasks
            if (task.node, task.index) in point.merged and task.id not in recorded
        ]
        return [*point.records, *taken]

    def asked(self, point: Point, task: Task) -> list[Question]:
        """Return every question a task has asked on a point, in order, each once."""
        found: dict[str, Question] = {}
        for record in point.records:
            if record.task_id == task.id and record.kind == lifecycle.INTERRUPTED:
                outcome = layout.decode_interrupted(self.codec, record.body, "r")
                found.update({question.interrupt_id: question for question in outcome.questions})
        return list(found.values())

    def places(self, point: Point) -> list[tuple[str, str]]:
        """Return the position of every question asked on a point, with its id."""
        tasks = self.base(point).tasks
        return [(position_id(task, q.call_id), q.interrupt_id) for task in tasks for q in self.asked(point, task)]

    def answered_ids(self) -> set[str]:
        """Return the ids of all questions answered anywhere on the thread."""
        answers = [r for point in self.points for r in point.records if r.kind == lifecycle.ANSWER]
        return {layout.decode_answer(self.codec, record.body, "answer")[0] for record in answers}

    def outcome(self, point: Point, base: Base, index: int) -> Outcome | None:
        """Return what became of a task, whether a record says so or the next point."""
        task, outcome = base.tasks[index], base.outcomes[index]
        if isinstance(outcome, Succeeded):
            return outcome
        place = (task.node, task.index)
        return point.merged.get(place, point.edited.get(place, outcome))

    def answerable(self, point: Point) -> list[tuple[Task, Question]]:
        """Return the questions that can be answered at a point: those open there and, at an older one, those that a
        finished task had asked, since answering them anew is what a fork is for."""
        base = self.base(point)
        found: list[tuple[Task, Question]] = []
        for i, task in enumerate(base.tasks):
            done = isinstance(self.outcome(point, base, i), Succeeded)
            answered = base.answers.get(task.id, {})
            found += [(task, q) for q in self.asked(point, task) if done or q.call_id not in answered]
        return found
