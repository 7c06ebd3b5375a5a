"""What every part of `CompiledGraph` stands on: its surroundings, the checks of a call, and the two drivers.

The parts are cut by subject: this, `engine/reading.py`, `engine/editing.py`, `engine/shape.py`, and running, in
`engine/compiled.py`. No part is used alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from stepwell.clock import Clock, SystemClock
from stepwell.codec import Codec, Registry, register_type
from stepwell.errors import InvalidCheckpointerError, InvalidConfigError, InvalidGraphError, NoCheckpointerError
from stepwell.graph.own_types import OWN_TYPES
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import MISSING, Missing
from stepwell.graph.workflow import Workflow
from stepwell.ids import Ids, TimeOrderedIds
from stepwell.plan.tables import Plan
from stepwell.runtime.config import RunConfig, parse_config
from stepwell.runtime.run import DURABILITIES, Request, Run
from stepwell.runtime.stream.consumer import Stream, wish_of
from stepwell.runtime.sync_driver import SyncPort
from stepwell.runtime.telling import audience
from stepwell.store import Store
from stepwell.store.cache import Cache
from stepwell.worker.lease import LeaseKeeper

if TYPE_CHECKING:
    from stepwell.runtime.async_driver import AsyncPort

Config = Mapping[str, Any] | None
Modes = str | Sequence[str] | None
Keys = str | Sequence[str] | None
Breakpoints = Sequence[str] | Literal["*"] | None


class RunOptions(TypedDict, total=False):
    """What every way to run a graph takes beside its input and config."""

    context: Any
    """What nodes get as `runtime.context`; a dict becomes the graph's context schema."""
    interrupt_before: Breakpoints
    interrupt_after: Breakpoints
    """Nodes to pause at, instead of those the graph was compiled with; "*" for all."""
    keep_breakpoints: bool
    """Keep this call's with the thread: later calls that place none stop there too, until a call keeps others or []."""
    durability: Literal["sync", "async", "exit"] | None
    """When supersteps become durable; "sync" unless given."""
    on_pending: Literal["raise", "discard", "finish"] | None
    """What a new input does with unfinished work; raise over open questions and discard otherwise, unless given."""
    on_limit: Literal["raise", "stop"]
    """Whether a step limit raises, or returns the state reached."""
    thread_step_limit: int | None
    """Bounds the steps of the thread's whole history, where the config's `recursion_limit` bounds this run."""


class StreamOptions(RunOptions, total=False):
    """What `invoke` and `stream` take beside: how what they hand out is shaped."""

    output_keys: Keys
    """The channels to show: a list of names for a mapping, one name for its value; those of the output unless given."""
    print_mode: Modes
    """Stream modes to print on stdout as well, for debugging; it does not change what is handed out."""
    debug: bool | None
    """Print the modes "updates" and "values", where print_mode does not say what."""
    version: Literal["v1", "v2"]
    """"v2" hands out typed parts and a `GraphOutput`; "v1", unless given, bare chunks and values."""
    subgraphs: bool
    """Say in each chunk which graph it comes from: a tuple of namespaces, () for this one."""


class Wired:
    """A compiled graph's surroundings."""

    def __init__(
        self,
        builder: StateGraph[Any, Any, Any, Any] | Workflow,
        plan: Plan,
        *,
        checkpointer: Any = None,
        store: Any = None,
        cache: Cache | None = None,
        debug: bool = False,
        name: str | None = None,
        config: Config = None,
        listeners: Sequence[Any] = (),
        events: bool = False,
    ) -> None:
        self.builder = builder
        self.plan = plan
        self.name = name or "LangGraph"
        self.checkpointer = checkpointer
        self.store = store
        self.cache = _cache_of(cache)
        self.debug = debug
        self._config = config
        self._step_timeout: float | None = None
        self._durable = _store_of(checkpointer)
        if events and self._durable is None:
            raise NoCheckpointerError(operation="compile(events=True)")
        self.listeners = tuple(listeners)
        self.events = events
        self._audience = audience(self.listeners, events)
        registry = Registry.from_schemas(*plan.schemas).with_those_of(OWN_TYPES)
        self.codec = Codec(registry, getattr(checkpointer, "on_unknown_type", None))
        self._leases = keeper_of(self._durable) if self._durable is not None else None
        if hasattr(checkpointer, "know"):
            checkpointer.know(plan.graph_id, self.codec, plan.rules)

    @property
    def step_timeout(self) -> float | None:
        """Seconds that a superstep may take, attempts and the waits between them included; None, unless set: no limit.

        When they are over, each task without an outcome fails with `NodeTimeoutError` and is not tried again in this
        run; what had finished is kept. As LangGraph, it is an attribute to set, and counts for calls from then on.
        """
        return self._step_timeout

    @step_timeout.setter
    def step_timeout(self, seconds: float | None) -> None:
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            raise InvalidConfigError(reason=f"step_timeout is a number of seconds, not {seconds!r}", key="step_timeout")
        self._step_timeout = seconds

    def _addressed(self, config: Config, operation: str) -> RunConfig:
        """Return the config of a call that needs a thread on disk."""
        if self._durable is None:
            raise NoCheckpointerError(operation=operation)
        checked = parse_config(config, self._config) if self._config else parse_config(config)
        if checked.thread_id is None:
            raise InvalidConfigError(reason=f"{operation} needs a thread_id in configurable", key="thread_id")
        return checked

    def _new_run(self, request: Request, stream: Stream | None = None) -> Run:
        parts = (self.plan, self.codec, self._durable, request, _CLOCK, _IDS, self.store)
        run = Run(*parts, stream, self._leases, self._audience)
        run.cache = self.cache
        return run

    def _stream(self, modes: Modes, options: StreamOptions) -> Stream:
        """Return what hands out and prints what a call asks to see. No mode is the usual one, as in LangGraph."""
        return Stream(wish_of("updates" if modes is None else modes, options, self.debug), self.plan, _CLOCK)

    def _printer(self, options: StreamOptions) -> Stream | None:
        """Return what prints what a call asks to see, and hands out nothing; None where it asks for nothing."""
        if not self.debug and "print_mode" not in options and "debug" not in options:
            return None
        wish = wish_of(None, options, self.debug)
        return Stream(wish, self.plan, _CLOCK) if wish.printed else None

    def _sending(self, operation: str) -> tuple[Store, Codec, Clock, Ids]:
        """Return what it takes to send a message to a thread."""
        if self._durable is None:
            raise NoCheckpointerError(operation=operation)
        return self._durable, self.codec, _CLOCK, _IDS

    async def _off_loop(self, function: Any) -> Any:
        from stepwell.runtime.async_driver import blocking

        return await blocking(function, self._durable)


register_type(Missing, name="stepwell:MISSING", dump=lambda value: None, load=lambda stored: MISSING)
_CLOCK = SystemClock()
_IDS = TimeOrderedIds()


def check_options(options: RunOptions, kind: type[RunOptions] = StreamOptions) -> None:
    """Refuse an option nobody knows, and a value that is none of its choices, before anything is read."""
    unknown = options.keys() - kind.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown options {', '.join(sorted(unknown))}; known: {', '.join(kind.__annotations__)}")
    for name, choices in _CHOICES.items():
        value = options.get(name)
        if value is not None and value not in choices:
            raise InvalidConfigError(reason=f"{name} is one of {', '.join(choices)}, not {value!r}", key=name)
    limit = options.get("thread_step_limit")
    if limit is not None and limit < 1:
        raise InvalidConfigError(reason=f"thread_step_limit is at least 1, not {limit}", key="thread_step_limit")


_CHOICES = {
    "durability": DURABILITIES,
    "on_pending": ("raise", "discard", "finish"),
    "on_limit": ("raise", "stop"),
    "version": ("v1", "v2"),
}


def sync_port(run: Run) -> SyncPort:
    port = run.port = SyncPort(run)
    if run.stream is not None:
        run.stream.wake = port.wake
    return port


def async_port(run: Run) -> AsyncPort:
    from stepwell.runtime.async_driver import AsyncPort

    port = run.port = AsyncPort(run)
    if run.stream is not None:
        run.stream.wake = port.wake
    return port


def _store_of(checkpointer: Any) -> Store | None:
    """Return the store behind a checkpointer; what is no saver of ours is refused with what to pass instead."""
    if checkpointer is None or checkpointer is False:
        return None
    store = getattr(checkpointer, "store", None)
    if store is None or not hasattr(store, "admit"):
        kind = f"{type(checkpointer).__module__}.{type(checkpointer).__qualname__}"
        raise InvalidCheckpointerError(given=kind)
    return store  # type: ignore[no-any-return]


def _cache_of(cache: Any) -> Cache | None:
    """Return the cache; what is none of ours, nor like one, is refused with what to pass instead."""
    if cache is not None and not all(hasattr(cache, name) for name in ("get", "set", "clear", "blocking")):
        kind = f"{type(cache).__module__}.{type(cache).__qualname__}"
        raise InvalidGraphError(f"cache is an InMemoryCache(), a SqliteCache(path) or a stepwell.Cache, not a {kind}.")
    return cache  # type: ignore[no-any-return]


def keeper_of(store: Store) -> LeaseKeeper:
    """Return the one lease keeper of a store."""
    keeper = getattr(store, "_lease_keeper", None)
    if keeper is None:
        keeper = store._lease_keeper = LeaseKeeper(store)  # type: ignore[attr-defined]
    return keeper
