"""What user code can reach while it runs: its config, runtime, writer, and the questions it may ask.

One `Scope` per attempt, found through a context variable, so it follows the node into threads and asyncio tasks. A
question is noted in the scope before the pause is raised: however the node leaves, it is interrupted.

Call ids follow the place of the call: (callee, ordinal) in the thread or asyncio task in which the node itself runs,
(callee, input digest, occurrence) in helpers running beside it, where order is not deterministic.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from stepwell.errors import EffectDeclarationError, GraphInterrupt
from stepwell.graph.types import MISSING, Interrupt
from stepwell.ids import interrupt_id
from stepwell.superstep.outcome import Awaited, Question
from stepwell.superstep.steps import Step

if TYPE_CHECKING:
    from stepwell.items import TaskItems
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.deadlines import Deadline
    from stepwell.runtime.steps.children import Children
    from stepwell.superstep.items import ItemWrite

Context = TypeVar("Context")
StreamWriter = Callable[[Any], None]


class MessageWriter(Protocol):
    """Sends a message, or a piece of one, to the stream mode "messages"."""

    def __call__(self, message: Any, /, **metadata: Any) -> None: ...


def unheard() -> None:
    """Stand in for a heartbeat where no idle timeout waits for one."""


def ignore(chunk: Any, /, **metadata: Any) -> None:
    """Stand in for a writer where nobody asked to see what it sends."""


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Where the running node stands."""

    checkpoint_id: str
    checkpoint_ns: str
    task_id: str
    thread_id: str | None
    run_id: str | None
    node_attempt: int
    """1 for the first attempt."""
    node_first_attempt_time: float | None
    """Seconds since the epoch at which the first attempt began."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Which deployed graph a server runs, and for whom: what the caller's configurable says of it."""

    assistant_id: str
    graph_id: str
    user: Any = None


def server_of(configurable: Mapping[str, Any]) -> ServerInfo | None:
    """Return what a server has put into configurable; None where none has."""
    assistant, graph = configurable.get("assistant_id"), configurable.get("graph_id")
    if not (assistant or graph):
        return None
    return ServerInfo(str(assistant or ""), str(graph or ""), configurable.get("langgraph_auth_user"))


@dataclass(frozen=True, slots=True)
class Runtime(Generic[Context]):
    """What a node gets as `runtime`."""

    context: Context = None  # type: ignore[assignment]
    store: Any = None
    stream_writer: StreamWriter = ignore
    """Sends to the stream mode "custom". StreamClosedError once the stream has ended."""
    heartbeat: Callable[[], None] = unheard
    """Tells that the node gets on: its idle timeout starts anew. Does nothing where it has none. Call it from any
    thread."""
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    stream_message: MessageWriter = ignore
    """Sends a message, or a piece of one, to the stream mode "messages", with metadata of its own beside the task's.
    A message with an `id` is not shown again when the node returns it. StreamClosedError once the stream has ended."""
    server_info: ServerInfo | None = None
    _owner: TaskRun | None = field(default=None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The key of this activation of the node, for what it calls by hand: the same when the node runs again, after a
        crash, a retry or a pause; another one in a fork. 32 hex digits. NoCheckpointerError without a checkpointer."""
        from stepwell.runtime.effects.knowing import key_of_activation

        return key_of_activation(self._owner)

    def override(self, **fields: Any) -> Runtime[Context]:
        """Return a copy with these fields in place of its own. TypeError for one that there is not."""
        return replace(self, **fields)

    def merge(self, other: Runtime[Context]) -> Runtime[Context]:
        """Return a copy with every field that `other` was given in place of its own."""
        given = {field.name: getattr(other, field.name) for field in fields(other)}
        absent = {id(stand_in) for stand_in in (None, ignore, unheard)}
        return replace(self, **{name: value for name, value in given.items() if id(value) not in absent})


class Owner(Protocol):
    """Whose code runs in a scope."""

    def task_id(self) -> str: ...

    def answers(self) -> Mapping[str, Any]:
        """Return the answers this code has got: call id → answer."""
        ...

    def config(self, hears: Deadline | None) -> Mapping[str, Any]: ...

    def runtime(self, hears: Deadline | None, items: TaskItems | None) -> Runtime[Any]: ...

    def steps(self) -> Mapping[str, Step]:
        """Return the steps this code has recorded: call id → step."""
        ...

    def digest(self, value: Any) -> str: ...

    def node_name(self) -> str: ...

    def now(self) -> int:
        """Return wall time in microseconds."""
        ...

    def is_durable(self) -> bool:
        """Tell whether the thread outlives the process."""
        ...

    def place_of(self, call_id: str) -> tuple[str, int, str]:
        """Return where a call stands: thread, lineage and position."""
        ...

    def heard_by(self) -> Deadline | None:
        """Return the deadline of the node that runs this code's graph, where that node is to show progress."""
        ...

    def driving(self) -> frozenset[tuple[int, str | None]]: ...


class Scope:
    """One attempt's surroundings. Made for every call of user code, so what most never need are class defaults."""

    owner: Owner
    prefix: str
    questions: tuple[Question | Awaited, ...] = ()
    """What was noted before the node was left: questions, and what else it waits for."""
    is_async: bool
    """Whether the code at home here is async."""
    name: str = ""
    """What the step is called whose body this is."""
    deadline: Deadline | None = None
    """When it has had its time, if it is limited."""
    outer: Scope | None = None
    """Where the step was called whose body this is."""
    over = False
    """Whether its time is over: what it does from here on counts no more."""
    items: TaskItems | None = None
    """What it sees of the item store and writes there, where the graph has one of ours."""
    wrote: tuple[ItemWrite, ...] = ()
    """What it has written there."""
    keeps_items = True
    """Whether it may: an effect may not, since its receipt is all that is known of it."""
    may_pause = True
    """Whether it may be left to be entered again: an effect's body may not where a doubt about it is final."""
    repeatable = True
    """Whether what it returns hangs on its input alone, as far as is known: then a cache may keep it."""
    children: Children | None = None
    """The steps it has started, where it has."""
    journalled = False
    """Whether anything was ever recorded from inside it, or `broken` is set."""
    broken: Exception | None = None
    """What it fails with, whatever its code made of it: it called other steps than are on record."""
    _home: tuple[int, object] | None = None
    _counts: dict[tuple[str, ...], int] | None = None

    @property
    def hears(self) -> Deadline | None:
        """What is told of progress made here: its own deadline, else that of the node which runs this graph."""
        return self.owner.heard_by() if self.deadline is None else self.deadline.hears

    @property
    def root(self) -> Scope:
        """The node's own call, in which this runs."""
        return self if self.outer is None else self.outer.root

    @property
    def is_over(self) -> bool:
        return self.over or (self.outer is not None and self.outer.is_over)

    def enter(self) -> None:
        """Take the calling thread or asyncio task as the one in which the node itself runs."""
        current.set(self)
        self._home = _place()

    def hangs_on_more(self) -> None:
        """Note, here and in all code around it, that what this returns hangs on more than its input."""
        self.repeatable = False
        if self.outer is not None:
            self.outer.hangs_on_more()

    def calls_on_loop(self) -> bool:
        """Tell whether the code that calls is on an event loop, and awaits what it calls."""
        place = _place()
        return self.is_async if place == self._home else place[1] is not None

    def call_id(self, callee: str, value: Any) -> str:
        """Return the id of this call of `callee`: the same when the node runs again."""
        at_home = _place() == self._home
        key: tuple[str, ...] = (callee,) if at_home else (callee, self.owner.digest(value))
        with _lock:
            counts = self._counts = self._counts or {}
            ordinal = counts.get(key, 0)
            counts[key] = ordinal + 1
        return "/".join((self.prefix, *key, str(ordinal)))

    def ask(self, value: Any) -> Any:
        """Return the answer to this occurrence, or note the question and leave the node."""
        call_id = self.call_id("interrupt", value)
        answer = self.owner.answers().get(call_id, MISSING)
        if answer is not MISSING:
            return answer
        question = Question(interrupt_id(self.owner.task_id(), call_id), call_id, value)
        self.note(question)
        raise GraphInterrupt((Interrupt(value=value, id=question.interrupt_id),))

    def note(self, stop: Question | Awaited) -> None:
        """Note what the node is about to be left for. EffectDeclarationError in the body of an effect that nobody would
        enter again."""
        for scope in self.around():
            if not scope.may_pause:
                raise EffectDeclarationError(name=scope.name, reason=_PAUSES)
        root = self.root
        with _lock:
            root.questions = (*root.questions, stop)  # after the call is back nobody looks any more

    def around(self) -> Iterator[Scope]:
        """Return this scope and those it runs in, the node's own last."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def asked(self) -> tuple[Question | Awaited, ...]:
        """Return what was noted so far, in order, each once."""
        return tuple({question.call_id: question for question in self.questions}.values())


_PAUSES = (
    'its body asks or waits, and with on_doubt="raise" nobody enters it again to go on. Ask or wait in the node before'
    " it is called, or give on_doubt another value."
)


def _place() -> tuple[int, object]:
    """Return what tells the running thread or asyncio task apart."""
    asyncio = sys.modules.get("asyncio")
    loop = asyncio._get_running_loop() if asyncio is not None else None
    return get_ident(), asyncio.current_task(loop) if asyncio is not None and loop is not None else None


_lock = threading.Lock()  # guards every scope's counters and questions: held for a few dictionary operations
current: ContextVar[Scope | None] = ContextVar("stepwell_scope", default=None)


def running(caller: str) -> Scope:
    """Return the scope of the code that calls. RuntimeError outside of a run."""
    scope = current.get()
    if scope is None:
        raise RuntimeError(f"Called {caller} outside of a runnable context: call it from a node while its graph runs")
    return scope


def interrupt(value: Any) -> Any:
    """Ask a human: leave the node now, and return the answer when it is run again with one.

    The node runs again from its start; each call of `interrupt` is a question of its own, answered at most once. The
    question is durable before it is reported, the answer before anything runs on it. None is an answer.
    """
    return running("interrupt").ask(value)


def get_config() -> Mapping[str, Any]:
    """Return the config of the running node."""
    scope = running("get_config")
    return scope.owner.config(scope.hears)


def get_runtime(context_schema: type[Context] | None = None) -> Runtime[Context]:
    """Return the runtime of the running node."""
    scope = running("get_runtime")
    return scope.owner.runtime(scope.hears, scope.root.items)


def get_stream_writer() -> StreamWriter:
    """Return the function that sends to the stream mode "custom"."""
    scope = running("get_stream_writer")
    return scope.owner.runtime(scope.hears, scope.root.items).stream_writer


def get_store() -> Any:
    """Return the item store the graph was compiled with, as the running node sees it."""
    scope = running("get_store")
    return scope.owner.runtime(None, scope.root.items).store
