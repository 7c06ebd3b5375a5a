"""What a consumer sees of a run: events shaped into the chunks of each stream mode, handed out in order.

State (`values`, `updates`, task results) is noted as it happens and published only when the run says it is durable;
`custom` chunks and task starts are live. Chunks are LangGraph's, key for key.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stepwell.errors import InvalidConfigError, InvalidUpdateError, MergeError
from stepwell.graph.types import START, Interrupt
from stepwell.plan.tables import Plan
from stepwell.superstep.merge import view
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Outcome, Question, Succeeded, summary
from stepwell.superstep.state import Base, Task, merge_order

MODES = ("values", "updates", "custom", "tasks")


class Halted(BaseException):
    """The consumer of a stream went away: the run stops as if it were cancelled."""


class Stream:
    """One consumer's chunks."""

    def __init__(self, modes: str | Sequence[str], plan: Plan, output_keys: str | Sequence[str] | None = None) -> None:
        self.modes = frozenset([modes] if isinstance(modes, str) else modes)
        unknown = self.modes.difference(MODES)
        if unknown or not self.modes:
            names = ", ".join(sorted(unknown)) or "none"
            raise InvalidConfigError(
                reason=f"unknown stream mode {names}; known: {', '.join(MODES)}", key="stream_mode"
            )
        self.labelled = not isinstance(modes, str)
        self.live = "custom" in self.modes
        self.waiting_since: float | None = None
        """Since when (monotonic seconds) the consumer has been holding a chunk; None while the run works."""
        self.wake: Callable[[], None] = lambda: None
        self._plan = plan
        self._keys = output_keys
        self._chunks: deque[Any] = deque()
        self._unpublished: list[tuple[str, Any]] = []

    # -- the consumer's side -----------------------------------------------------------------------------------------

    def take(self) -> Iterator[Any]:
        """Yield what is published so far."""
        while self._chunks:
            chunk = self._chunks.popleft()
            self.waiting_since = time.monotonic()
            yield chunk
            self.waiting_since = None

    def _put(self, mode: str, payload: Any) -> None:
        self._chunks.append((mode, payload) if self.labelled else payload)

    # -- the run's side ----------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Hand out what was noted: it is durable now, or as durable as the mode makes it."""
        for mode, payload in self._unpublished:
            self._put(mode, payload)
        self._unpublished.clear()

    def forget(self) -> None:
        """Drop what was noted and never became durable."""
        self._unpublished.clear()

    def custom(self, chunk: Any) -> None:
        """Hand out a chunk of user code at once, from whatever thread."""
        if "custom" in self.modes:
            self._put("custom", chunk)
            self.wake()

    def task_started(self, task: Task, given: Any) -> None:
        if "tasks" in self.modes and task.node != START:
            triggers = (f"branch:to:{task.node}",) if task.index is None else ("__pregel_push",)
            self._put("tasks", {"id": task.id, "name": task.node, "input": given, "triggers": triggers})

    def task_settled(self, task: Task, outcome: Outcome, cached: bool = False) -> None:
        """Note what became of a task."""
        if task.node == START:
            return
        if "tasks" in self.modes and not cached:
            self._unpublished.append(("tasks", _task_result(task, outcome)))
        if "updates" in self.modes and isinstance(outcome, Succeeded):
            update: dict[str, Any] = {task.node: _update(outcome, self._keys)}
            if cached:
                update["__metadata__"] = {"cached": True}
            self._unpublished.append(("updates", update))

    def values(self, base: Base, changed: Sequence[str]) -> None:
        """Note the state after a superstep, where it changed something a consumer sees."""
        if "values" in self.modes and any(key in self._plan.output.keys for key in changed):
            self._unpublished.append(("values", self._output(base.state.values)))

    def current(self, base: Base) -> None:
        """Note the state a resumed run begins with."""
        if "values" in self.modes:
            self._unpublished.append(("values", self._output(base.state.values)))

    def paused(self, base: Base, questions: Sequence[Question]) -> None:
        """Note a pause: questions, or none at a breakpoint."""
        asked = tuple(as_interrupt(question) for question in questions)
        if "updates" in self.modes:
            self._unpublished.append(("updates", {"__interrupt__": asked}))
        if "values" in self.modes and asked:
            values = self._output(visible_values(self._plan, base))
            chunk = {**values, "__interrupt__": asked} if isinstance(values, dict) else {"__interrupt__": asked}
            self._unpublished.append(("values", chunk))

    def _output(self, values: Mapping[str, Any]) -> Any:
        return output_of(self._plan, values, self._keys)


def as_interrupt(question: Question) -> Interrupt:
    return Interrupt(value=question.value, id=question.interrupt_id)


def output_of(plan: Plan, values: Mapping[str, Any], keys: str | Sequence[str] | None = None) -> Any:
    """Return the values a caller gets: those of the output schema, or of `keys`."""
    if plan.output.is_root:
        return values.get("__root__")
    if isinstance(keys, str):
        return values.get(keys)
    wanted = plan.output.keys if keys is None else keys
    return {key: values[key] for key in wanted if key in values}


def visible_values(plan: Plan, base: Base) -> Mapping[str, Any]:
    """Return the base's values with the finished tasks of its superstep applied, as `get_state` shows them.

    Where their writes cannot be combined, the base's own: a thread must be readable to be repaired.
    """
    done = [base.outcomes[i] for i in merge_order(base.tasks)]
    writes = [write for outcome in done if isinstance(outcome, Succeeded) for write in outcome.writes]
    try:
        return view(plan, base.state, writes) if writes else base.state.values
    except (InvalidUpdateError, MergeError):
        return base.state.values


def _update(outcome: Succeeded, keys: str | Sequence[str] | None) -> Any:
    writes = outcome.writes
    if keys is not None:
        wanted = {keys} if isinstance(keys, str) else set(keys)
        writes = tuple(write for write in writes if write[0] in wanted)
    names = [key for key, _ in writes]
    if len(names) == len(set(names)):
        return summary(writes)
    parts: list[dict[str, Any]] = []
    for key, value in writes:  # a node that wrote a channel twice shows one mapping per round of writes
        if not parts or key in parts[-1]:
            parts.append({})
        parts[-1][key] = value
    return parts


def _task_result(task: Task, outcome: Outcome) -> dict[str, Any]:
    failed = isinstance(outcome, Failed | Cancelled)
    return {
        "id": task.id,
        "name": task.node,
        "error": outcome.text if failed else None,  # type: ignore[union-attr]
        "result": (summary(outcome.writes) or {}) if isinstance(outcome, Succeeded) else {},
        "interrupts": [as_interrupt(q) for q in outcome.questions] if isinstance(outcome, Interrupted) else [],
    }
