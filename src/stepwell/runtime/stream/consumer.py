"""What a consumer sees of a run: the events it asked for, in order, from whatever thread or task they come.

State (`values`, `updates`, `checkpoints`, task results, written messages) is noted as it happens and published only
when the run says it is durable; `custom`, tokens and task starts are live. Nothing that user code sends is dropped: it
is handed out, or its sender is told that the stream is closed. How an event looks is `stream_payloads`'.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from stepwell.clock import Clock
from stepwell.errors import InvalidConfigError, StreamClosedError
from stepwell.graph.types import START
from stepwell.plan.tables import Plan
from stepwell.runtime.scope import MessageWriter, StreamWriter, ignore
from stepwell.runtime.stream import payloads as payloads
from stepwell.runtime.stream.messages import Messages
from stepwell.runtime.stream.parts import CheckpointPayload, StreamMode
from stepwell.superstep.decide import Wait
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import Base, Task

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.run import Run

MODES: tuple[str, ...] = get_args(StreamMode)
_NO_STOP = Wait(())


class Halted(BaseException):
    """The consumer of a stream went away: the run stops as if it were cancelled."""

    def __init__(self) -> None:
        super().__init__("the consumer left the stream")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a consumer asked for, checked."""

    modes: frozenset[str]
    printed: frozenset[str] = frozenset()
    labelled: bool = False
    """Whether each chunk names its mode: for a list of modes."""
    located: bool = False
    """Whether each chunk names its graph."""
    typed: bool = False
    """Whether chunks are the parts of "v2"."""
    keys: str | Sequence[str] | None = None

    @property
    def all_modes(self) -> frozenset[str]:
        return self.modes | self.printed


def wish_of(modes: str | Sequence[str] | None, options: Mapping[str, Any], debug: bool = False) -> Wish:
    """Return what a call asks to see; no `modes` where it only prints. InvalidConfigError names what nobody knows."""
    printed = options.get("print_mode") or ()
    if not printed and (debug if options.get("debug") is None else options["debug"]):
        printed = ("updates", "values")
    return Wish(
        _modes(modes, "stream_mode") if modes is not None else frozenset(),
        _modes(printed, "print_mode") if printed else frozenset(),
        labelled=not isinstance(modes, str),
        located=bool(options.get("subgraphs")),
        typed=options.get("version") == "v2",
        keys=options.get("output_keys"),
    )


def check_keys(plan: Plan, keys: str | Sequence[str] | None) -> None:
    """Refuse output keys that are no channels."""
    for key in [keys] if isinstance(keys, str) else keys or ():
        if key not in plan.channels:
            known = ", ".join(plan.channels)
            raise InvalidConfigError(f"Key {key} not in channels: output_keys are among {known}", key="output_keys")


def _modes(given: str | Sequence[str], option: str) -> frozenset[str]:
    if not isinstance(given, Iterable):
        raise InvalidConfigError(reason=f"{option} is a stream mode or a list of them, not {given!r}", key=option)
    modes = frozenset([given] if isinstance(given, str) else given)
    unknown = modes.difference(MODES)
    if unknown or not modes:
        names = ", ".join(sorted(map(str, unknown))) or "none"
        raise InvalidConfigError(reason=f"unknown stream mode {names}; known: {', '.join(MODES)}", key=option)
    return modes


class Stream:
    """One consumer's chunks."""

    def __init__(self, wish: Wish, plan: Plan, clock: Clock) -> None:
        self.wish = wish
        modes = self.modes = wish.all_modes
        steps = plan.is_workflow and not modes.isdisjoint(("updates", "tasks", "debug"))
        self.live = steps or "custom" in modes or "messages" in modes
        """Whether user code may have something to say while it runs: a workflow's steps do."""
        self.checkpoints = not modes.isdisjoint(("checkpoints", "debug"))
        self.waiting_since: float | None = None
        """Since when (monotonic seconds) the consumer has been holding a chunk; None while the run works."""
        self.wake: Callable[[], None] = lambda: None
        self.stored: Mapping[str, Any] | None = None
        """The config of the newest checkpoint that a row holds: the parent of the next."""
        self.messages = Messages(self) if "messages" in modes else None
        self._tasks = not modes.isdisjoint(("tasks", "debug"))
        keys = wish.keys
        everything = plan.output.keys if plan.is_workflow else tuple(plan.channels)
        self._watched = everything if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
        self._plan = plan
        self._clock = clock
        self._chunks: deque[Any] = deque()
        self._unpublished: list[Callable[[], None]] = []
        self._closed = False
        self._lock = threading.Lock()  # between user code that sends and the run that closes

    # -- the consumer's side -----------------------------------------------------------------------------------------

    def take(self) -> Iterator[Any]:
        """Yield what is published so far."""
        while self._chunks:
            chunk = self._chunks.popleft()
            self.waiting_since = time.monotonic()
            yield chunk
            self.waiting_since = None

    def close(self) -> None:
        """Take nothing more from user code: from here on it is told so."""
        with self._lock:
            self._closed = True

    def rest(self) -> Iterator[Any]:
        """Close, and yield what came before."""
        self.close()
        return self.take()

    # -- user code's side --------------------------------------------------------------------------------------------

    def send(self, mode: str, payload: Any, more: Mapping[str, Any] = {}) -> None:
        """Hand out what user code sends, at once, from whatever thread. StreamClosedError if nobody will take it."""
        with self._lock:
            if self._closed:
                raise StreamClosedError(mode=mode)
            self._put(mode, payload, more)
        try:
            self.wake()
        except RuntimeError:  # the consumer's event loop is closed
            raise StreamClosedError(mode=mode) from None

    def show(self, mode: str, payload: Any) -> None:
        """Hand out what a step tells, at once, from whatever thread; nothing once the run has ended."""
        if mode not in self.modes:
            return
        with self._lock:
            if self._closed:
                return
            self._put(mode, payload)
        with suppress(RuntimeError):  # the consumer's event loop is closed: nobody reads on
            self.wake()

    def writer(self, task_run: TaskRun) -> StreamWriter:
        """Return what sends to the mode `custom` for this attempt; where nobody asked for it, what does nothing."""
        if "custom" not in self.modes:
            return ignore
        origin = {"task_id": task_run.task.id, "attempt": task_run.attempt}
        return lambda chunk: self.send("custom", chunk, origin)

    def message_writer(self, task_run: TaskRun) -> MessageWriter:
        """Return what sends to the mode `messages` for this attempt; where nobody asked for it, what does nothing."""
        return ignore if self.messages is None else self.messages.writer(task_run)

    # -- the run's side ----------------------------------------------------------------------------------------------

    def publish(self) -> None:
        """Hand out what was noted: it is durable now, or as durable as the mode makes it."""
        noted, self._unpublished = self._unpublished, []
        for show in noted:
            show()

    def forget(self) -> None:
        """Drop what was noted and never became durable."""
        self._unpublished.clear()

    def task_started(self, task_run: TaskRun, given: Any) -> None:
        """Say at once that an attempt begins."""
        if task_run.task.node == START:
            return
        if self.messages is not None:
            self.messages.know(given, self._plan.channels)
        if self._tasks:
            payload = payloads.task_start(task_run, given)
            self._put("tasks", payload)
            step = task_run.base.state.step + 1
            self._put("debug", payloads.debug_event("task", step, payload, self._clock.now()))

    def task_settled(self, task_run: TaskRun) -> None:
        """Note that a task has an outcome. It is read when it is published: a success may prove not to be storable."""
        if task_run.task.node != START:
            seen = self._clock.now()
            self._unpublished.append(lambda: self._show_settled(task_run, seen))

    def _show_settled(self, task_run: TaskRun, seen: int) -> None:
        task, outcome = task_run.task, task_run.base.outcomes[task_run.index]
        assert outcome is not None
        if isinstance(outcome, Succeeded):
            if self.messages is not None:
                for message in self.messages.written(task_run, payloads.shown_writes(outcome.writes)):
                    self._put("messages", message)
            if "updates" in self.modes:
                shown = {task.node: payloads.update_of(outcome, self.wish.keys)}
                self._put("updates", {**shown, **payloads.CACHED} if task_run.reused else shown)
        if self._tasks and not task_run.reused:
            payload = payloads.task_result(task, outcome, self.wish.keys)
            self._put("tasks", payload)
            self._put("debug", payloads.debug_event("task_result", task_run.base.state.step + 1, payload, seen))

    def task_reused(self, task: Task, outcome: Succeeded) -> None:
        """Note a task that had finished before this run began."""
        if "updates" in self.modes:
            update = payloads.update_of(outcome, self.wish.keys)
            self.note("updates", {task.node: update, **payloads.CACHED})

    def superstep(self, run: Run, base: Base, changed: Sequence[str]) -> None:
        """Publish a superstep that was just committed: its state, where it changed what a consumer sees, and itself."""
        if "values" in self.modes and self.watches(changed):
            self.values(base.state.values)
        if self.checkpoints and run.store is not None:
            self.checkpoint(payloads.fresh_checkpoint(run, base, self.stored), stored=base.digest != b"")
        self.publish()

    def watches(self, changed: Iterable[str]) -> bool:
        """Return whether the consumer is shown one of these channels."""
        return any(key in self._watched for key in changed)

    def values(self, values: Mapping[str, Any], stop: Wait = _NO_STOP) -> None:
        """Note the state, and what the run stops at: questions, and what else it waits for."""
        asked, waiting = (
            tuple(map(payloads.as_interrupt, stop.questions)),
            tuple(map(payloads.as_waiting, stop.awaited)),
        )
        if "values" not in self.modes or not (asked or waiting or self.wish.keys is None or self.watches(values)):
            return
        shown = payloads.shown_state(self._plan, values, self.wish.keys, self.wish.typed)
        if self.wish.typed:
            self.note("values", shown, {"interrupts": asked, **({"waiting": waiting} if waiting else {})})
        else:
            self.note("values", payloads.interrupted(shown, asked, waiting) if asked or waiting else shown)

    def checkpoint(self, payload: CheckpointPayload, stored: bool) -> None:
        """Note a checkpoint; a stored one is the parent of the next."""
        if stored:
            self.stored = payload["config"]
        if self.wish.typed and START not in payload["next"]:
            payload["values"] = payloads.typed_state(self._plan, payload["values"])
        self.note("checkpoints", payload)
        step = payload["metadata"]["step"]
        self.note("debug", payloads.debug_event("checkpoint", step, payload, self._clock.now()))

    def paused(self, base: Base, stop: Wait) -> None:
        """Publish a pause: questions, what else is awaited, or neither at a breakpoint."""
        if "updates" in self.modes:
            if stop.questions or not stop.awaited:
                self.note("updates", {"__interrupt__": tuple(map(payloads.as_interrupt, stop.questions))})
            if stop.awaited:
                self.note("updates", {"__waiting__": tuple(map(payloads.as_waiting, stop.awaited))})
        if stop.questions or stop.awaited:
            self.values(payloads.visible_values(self._plan, base), stop)
        self.publish()

    # -- both --------------------------------------------------------------------------------------------------------

    def note(self, mode: str, payload: Any, more: Mapping[str, Any] = {}) -> None:
        """Keep a payload until it may be published."""
        if mode in self.modes:
            self._unpublished.append(lambda: self._put(mode, payload, more))

    def _put(self, mode: str, payload: Any, more: Mapping[str, Any] = {}) -> None:
        wish = self.wish
        if mode in wish.printed:
            print(f"\x1b[1m[{mode}]\x1b[0m {payload!r}")  # noqa: T201  this is what print_mode asks for
        if mode not in wish.modes:
            return
        chunk: Any
        if wish.typed:
            chunk = {"type": mode, "ns": ROOT_NAMESPACE, "data": payload, **more}
        elif wish.located:
            chunk = (ROOT_NAMESPACE, mode, payload) if wish.labelled else (ROOT_NAMESPACE, payload)
        else:
            chunk = (mode, payload) if wish.labelled else payload
        self._chunks.append(chunk)


ROOT_NAMESPACE: tuple[str, ...] = ()
"""Which graph a chunk comes from: this one, and no subgraph."""
