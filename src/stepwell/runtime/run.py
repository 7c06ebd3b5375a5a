"""One run: what it works with, and nothing of what it does. Built by the engine, handed to every part here."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from stepwell.clock import Clock
from stepwell.codec import Codec
from stepwell.errors import UnserializableValueError
from stepwell.ids import Ids, structural_hash
from stepwell.plan.tables import Plan
from stepwell.runtime import progress
from stepwell.runtime.config import RunConfig
from stepwell.runtime.scope import current
from stepwell.runtime.stream.payloads import triggers_of
from stepwell.runtime.telling import Audience, Teller
from stepwell.store import Counts, Store
from stepwell.superstep.decide import Rules
from stepwell.superstep.state import Base

if TYPE_CHECKING:
    from stepwell.plan.compatibility import GraphChange
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.deadlines import Deadline
    from stepwell.runtime.items import RunItems
    from stepwell.runtime.journal import Journal
    from stepwell.runtime.ledger import Ledger
    from stepwell.runtime.ports import Port
    from stepwell.runtime.stream.consumer import Stream
    from stepwell.store.cache import Cache

DURABILITIES = ("sync", "async", "exit")


class Leases(Protocol):
    """Who keeps the run's lease alive while it works."""

    def hold(self, run: Run) -> None: ...

    def let_go(self, run: Run) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """What a call asks of the engine, checked."""

    input: Any
    """A new input, None to continue, or a Command."""
    config: RunConfig
    durability: str = "sync"
    context: Any = None
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    on_pending: str | None = None
    """What a new input does with unfinished work: raise | discard | finish; None: raise, over open questions."""
    on_limit: str = "raise"
    """What happens at a step limit: raise | stop."""
    thread_step_limit: int | None = None
    retry_only: bool = False
    places_breakpoints: bool = False
    """Whether the call says where to stop; else the thread may."""
    keep_breakpoints: bool = False
    """Whether later calls on the thread shall stop there too."""
    step_timeout: float | None = None
    """Seconds that a superstep may take."""
    tasks: tuple[str, ...] | None = None
    """The tasks, by id or node, that a retry runs anew; None: what has failed."""


class Run:
    """The run's surroundings, fixed for its life, and the three things that move: base, ledger, rules."""

    __slots__ = (
        "admitted", "ambient", "asked_by", "base", "cache", "clock", "codec", "config", "context", "context_vars",
        "cost", "driving", "durability", "ended_before", "graph_changed", "hears", "ids", "input_wrote", "item_store",
        "items", "jitter", "journal", "leases", "ledger", "live", "plan", "port", "request", "rules", "run_id", "store",
        "stream", "tell",
    )  # fmt: skip

    base: Base
    ledger: Ledger
    rules: Rules
    port: Port

    def __init__(
        self,
        plan: Plan,
        codec: Codec,
        store: Store | None,
        request: Request,
        clock: Clock,
        ids: Ids,
        item_store: Any = None,
        stream: Stream | None = None,
        leases: Leases | None = None,
        audience: Audience | None = None,
    ) -> None:
        self.plan = plan
        self.codec, self.store = codec, store
        self.request = request
        self.config, self.durability, self.context = request.config, request.durability, request.context
        self.clock = clock
        self.ids = ids
        self.item_store = item_store
        self.items = _items_of_run(item_store, store) if item_store is not None else None
        """What the nodes write to the item store, where it is one of Stepwell's."""
        self.stream = stream
        self.leases = leases
        outer = current.get()
        self.driving: frozenset[tuple[int, str | None]] = outer.owner.driving() if outer is not None else frozenset()
        """Threads that are being driven by the code that makes this call: (store, thread id)."""
        self.asked_by: str | None = outer.owner.node_name() if outer is not None else None
        """The node whose code makes this call, if any."""
        self.tell = Teller(self, audience) if audience is not None else None
        self.cost: Counts | None = None
        """Where the store adds up what the run costs, if somebody asked."""
        self.hears = outer.hears if outer is not None else None
        """What is told of this run's progress: the deadline of the node that makes this call, if it may be idle."""
        self.live = (stream is not None and stream.live) or request.step_timeout is not None or self.hears is not None
        """Whether even a lone task is not to run in place: what it sends is handed out meanwhile, or it has a limit."""
        self.ambient = (
            bool(request.config.given.get("callbacks"))
            or (stream is not None and stream.messages is not None)
            or self.hears is not None
        )
        """Whether langchain objects that nodes call without a config are to find the node's own."""
        self.journal: Journal | None = None
        """What nodes record while they run, once one has."""
        self.cache: Cache | None = None
        """Where results of nodes and tasks serve again, if the graph has one."""
        self.run_id: str = ""
        self.admitted = False
        """Whether the run has begun: from then on its end must be recorded."""
        self.ended_before = False
        """Whether this call repeats the id of a run that has ended: it is shown, and nothing runs."""
        self.graph_changed: GraphChange | None = None
        """What had changed in the graph when the run began, if anything had."""
        self.input_wrote: Collection[str] | None = None
        """The channels that a new input wrote where START called no user code; None where the run goes on."""
        self.context_vars: Context = copy_context()
        self.jitter: Callable[[], float] = _jitter

    def continuation(self) -> Run:
        """Return a run that continues this one's thread, through the same driver and stream."""
        config = replace(self.config, run_id=None)
        request = replace(self.request, input=None, config=config, on_pending=None)
        parts = (self.plan, self.codec, self.store, request, self.clock, self.ids, self.item_store)
        audience = self.tell.audience if self.tell is not None else None
        run = Run(*parts, self.stream, self.leases, audience)
        run.port, run.cache = self.port, self.cache
        return run

    @property
    def thread(self) -> tuple[int, str | None]:
        """Which thread of which store this run drives."""
        return (id(self.store), self.config.thread_id)

    def digest(self, value: Any) -> str:
        """Return the digest of a value for call ids: equal values have equal digests."""
        try:
            return structural_hash("value", self.codec.canonical(value))
        except UnserializableValueError as error:
            if self.store is None:
                return ""  # nothing is ever looked up
            error.add_note("Calls made beside a node's own code are told apart by what they are called with")
            raise

    def metadata_of(self, task_run: TaskRun) -> dict[str, Any]:
        """Return what is said of a task beside what it does: the caller's metadata, the node's, and where it stands."""
        task = task_run.task
        metadata = {**(self.config.given.get("metadata") or {}), **task_run.node.metadata}
        if self.config.thread_id is not None:
            metadata["thread_id"] = self.config.thread_id
        metadata["langgraph_step"] = task_run.base.state.step + 1
        metadata["langgraph_node"] = task.node
        metadata["langgraph_triggers"] = triggers_of(task)
        metadata["langgraph_path"] = task.path
        metadata["langgraph_checkpoint_ns"] = f"{task.node}:{task.id}"
        metadata["stepwell_task_id"] = task.id
        metadata["stepwell_attempt"] = task_run.attempt
        return metadata

    def node_config(self, task_run: TaskRun, hears: Deadline | None) -> Mapping[str, Any]:
        """Return the config a node sees: the caller's, with the ids of this run.

        The caller's `run_id`, `run_name` and `checkpoint_id` are this run's alone: what a node calls with its config is
        another run, and may be on another thread.
        """
        given = {k: v for k, v in self.config.given.items() if k not in ("run_id", "run_name")}
        inner = {
            **(given.get("configurable") or {}),
            "checkpoint_ns": task_run.base.identity.namespace,
            "checkpoint_id": None,
        }
        if self.config.thread_id is not None:
            inner["thread_id"] = self.config.thread_id
        filled = {"recursion_limit": self.config.recursion_limit, "tags": [], "callbacks": None, **given}
        if self.stream is not None and self.stream.messages is not None:
            filled["callbacks"] = self.stream.messages.with_handler(filled["callbacks"])
        if hears is not None:
            filled["callbacks"] = progress.with_callbacks(filled["callbacks"], hears)
        return {**filled, "configurable": inner, "metadata": self.metadata_of(task_run)}


def _items_of_run(item_store: Any, store: Store | None) -> RunItems | None:
    from stepwell.runtime.items import items_of_run  # runs without an item store do without

    return items_of_run(item_store, store)


def _jitter() -> float:
    return random.uniform(0, 1)
