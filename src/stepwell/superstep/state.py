"""The values a superstep starts from: the merged state, what is planned on it, and what is recorded on it.

A `State` is what merging made; a `Base` is a state with an identity (its checkpoint) and the records gathered on it so
far. States are never changed; a base only gathers outcomes and answers until its superstep is merged into the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import MISSING
from stepwell.ids import TaskIds, structural_hash
from stepwell.superstep.effects.told import Told
from stepwell.superstep.outcome import Outcome
from stepwell.superstep.steps import ATTEMPT, Step, Steps, without_failures

new = tuple.__new__
"""Makes a named tuple of all its fields at a third of the cost of calling its class: for those made every superstep."""


class Planned(NamedTuple):
    """An entry of `next`: a pull of a node (no index) or one send to it."""

    node: str
    at: int | None = None
    """Position among the sends; None for a pull."""
    arg: Any = MISSING
    timeout: TimeoutPolicy | None = None


class State(NamedTuple):
    """The committed state after a superstep, without identity."""

    values: Mapping[str, Any]
    next: tuple[Planned, ...] = ()
    """Sends by index, then pulls by name."""
    barriers: Mapping[str, frozenset[str]] = {}
    """Join id → sources that arrived since it was last released."""
    deferred: frozenset[str] = frozenset()
    """Deferred nodes that were reached and wait until nothing else would run."""
    activations: Mapping[str, int] = {}
    """Node → tasks of it committed or abandoned along this lineage."""
    writers: tuple[str, ...] = ()
    """Nodes of the superstep that made this state, in merge order."""
    step: int = -1


class Identity(NamedTuple):
    """What task ids of a base are made from."""

    graph_id: str
    version: str
    thread_id: str
    namespace: str
    checkpoint_id: str

    def following(self, checkpoint_id: str, version: str) -> Identity:
        """Return the identity of a checkpoint after this one, planned by `version`."""
        return new(Identity, (self.graph_id, version, self.thread_id, self.namespace, checkpoint_id))


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Task:
    """One activation of a node in a superstep. Its id is computed when asked for: most tasks are never asked."""

    __slots__ = ("_id", "_identity", "activation", "arg", "index", "node", "timeout")

    def __init__(self, planned: Planned, activation: int, identity: Identity) -> None:
        self.node, self.index, self.arg, self.timeout = planned
        self.activation = activation
        self._identity = identity
        self._id: str | None = None

    @property
    def id(self) -> str:
        """32 hex digits over graph, version, thread, namespace, base checkpoint and task path."""
        if self._id is None:
            self._id = TaskIds(*self._identity).of(self.node, self.index)
        return self._id

    @property
    def path(self) -> tuple[Any, ...]:
        return ("__pregel_pull", self.node) if self.index is None else ("__pregel_push", self.index, False)

    def __repr__(self) -> str:
        place = "" if self.index is None else f"[{self.index}]"
        return f"Task({self.node}{place} #{self.activation})"


class Base:
    """A checkpoint with its planned tasks and everything recorded on it.

    `outcomes[i]` belongs to `tasks[i]` (listing order); None where the task has not run.
    """

    answers: Mapping[str, Mapping[str, Any]] = _NOTHING
    """Task id → call id → answer."""
    fresh: frozenset[str] = frozenset()
    """Ids of tasks answered since they last paused."""
    attempts: Mapping[str, tuple[int, int, int]] = _NOTHING
    """Task id → attempts that failed, wall time of the first one, wall time of the next try (microseconds)."""
    steps: Mapping[str, Steps] = _NOTHING
    """Task id → the steps its node has recorded."""
    effects: Mapping[str, Told] = _NOTHING
    """Key → what was told of an effect by the records on this base when it was loaded."""
    records = 0
    """Rows recorded on this base so far."""

    def __init__(self, state: State, identity: Identity, lineage: int = 0, seq: int = 0, digest: bytes = b"") -> None:
        self.state = state
        self.identity = identity
        self.lineage = lineage
        self.seq = seq
        self.digest = digest
        self.tasks = plan_tasks(state, identity)
        self.outcomes: list[Outcome | None] = [None] * len(self.tasks)

    def answer(self, task_id: str, call_id: str, value: Any) -> None:
        """Note an answer to a question of this task."""
        self.answers = {**self.answers, task_id: {**self.answers.get(task_id, _NOTHING), call_id: value}}

    def discard(self, index: int) -> None:
        """Forget the outcome of a task and its steps: it runs anew, with the answers it has."""
        self.outcomes[index] = None
        if self.steps:
            self.steps = {task_id: steps for task_id, steps in self.steps.items() if task_id != self.tasks[index].id}
        if self.fresh:
            self.fresh -= {self.tasks[index].id}

    def attempted(self, task_id: str, attempts: int, first_at: int, next_at: int) -> None:
        """Note that an attempt failed and another is due."""
        self.attempts = {**self.attempts, task_id: (attempts, first_at, next_at)}

    def stepped(self, task_id: str, step: Step) -> None:
        """Note what came of a step of this task. An attempt that failed calls anew what failed within it."""
        if self.steps is _NOTHING:
            self.steps = {}
        if step.status == ATTEMPT:
            self.forget_failures(task_id, f"{step.call_id}/")
        self.steps.setdefault(task_id, {})[step.call_id] = step  # type: ignore[attr-defined]

    def forget_failures(self, task_id: str, within: str = "") -> None:
        """Forget the steps of a task that failed: an attempt of its node is over, and the next one calls them anew.
        `within`: those whose ids begin so."""
        if task_id in self.steps:  # in place: other tasks note steps at the same moment
            self.steps[task_id] = without_failures(self.steps[task_id], within)  # type: ignore[index]

    @property
    def checkpoint_id(self) -> str:
        return self.identity.checkpoint_id

    def task_index(self, task_id: str) -> int | None:
        """Return the position of the task with this id, or None."""
        return next((i for i, task in enumerate(self.tasks) if task.id == task_id), None)

    def __repr__(self) -> str:
        done = sum(outcome is not None for outcome in self.outcomes)
        return f"Base(step {self.state.step}, seq {self.seq}, {done}/{len(self.tasks)} done, next {list(self.tasks)})"


def plan_tasks(state: State, identity: Identity) -> tuple[Task, ...]:
    """Return the tasks of `next` in listing order, each with its activation number."""
    planned = state.next
    if len(planned) == 1:
        return (Task(planned[0], state.activations.get(planned[0].node, 0), identity),)
    tasks = tuple(Task(entry, 0, identity) for entry in planned)
    counts = dict(state.activations)
    for i in merge_order(tasks):
        task = tasks[i]
        task.activation = counts.get(task.node, 0)
        counts[task.node] = task.activation + 1
    return tasks


def merge_order(tasks: Sequence[Task]) -> list[int]:
    """Return the positions in merge order: pulls by node name, then sends by index."""
    if len(tasks) == 1:
        return [0]
    pulls = sorted((i for i, task in enumerate(tasks) if task.index is None), key=lambda i: tasks[i].node)
    return pulls + [i for i, task in enumerate(tasks) if task.index is not None]


def position_id(task: Task, call_id: str) -> str:
    """Return the position of a call: what stays the same over forks and edits, unlike the task id."""
    return structural_hash("position", task._identity.namespace, task.node, task.activation, call_id)
