"""`CompiledGraph`: the public object, and the one place where layers are wired together.

Every method pair (`invoke`/`ainvoke`, ...) makes the same coroutine and hands it to one of the two drivers. What a run
does is the runtime's; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from stepwell.clock import SystemClock
from stepwell.codec import Codec, Registry, register_type
from stepwell.errors import InvalidCheckpointerError, InvalidConfigError, NoCheckpointerError
from stepwell.graph.state_graph import StateGraph, use_engine
from stepwell.graph.types import MISSING, Command, Interrupt, Missing, Overwrite, Send
from stepwell.ids import TimeOrderedIds
from stepwell.plan.tables import Plan
from stepwell.runtime.config import RunConfig, parse_config
from stepwell.runtime.context import coerce_context
from stepwell.runtime.drive import Ending, drive
from stepwell.runtime.edit import Edit, edit
from stepwell.runtime.run import DURABILITIES, Request, Run
from stepwell.runtime.snapshot import StateSnapshot, empty_snapshot, read_history, read_state
from stepwell.runtime.stream import Stream, as_interrupt, output_of, visible_values
from stepwell.runtime.sync_driver import SyncPort, drive_sync, stream_sync
from stepwell.store import HistoryQuery, Store
from stepwell.worker.lease import LeaseKeeper

if TYPE_CHECKING:
    from stepwell.runtime.async_driver import AsyncPort

Config = Mapping[str, Any] | None
StreamMode = str | Sequence[str]
Keys = str | Sequence[str] | None
Breakpoints = Sequence[str] | Literal["*"] | None


class RunOptions(TypedDict, total=False):
    """What every way to run a graph takes beside its input and config."""

    context: Any
    """What nodes get as `runtime.context`; a dict becomes the graph's context schema."""
    interrupt_before: Breakpoints
    interrupt_after: Breakpoints
    """Nodes to pause at, instead of those the graph was compiled with; "*" for all."""
    durability: Literal["sync", "async", "exit"] | None
    """When supersteps become durable; "sync" unless given."""
    on_pending: Literal["raise", "discard", "finish"] | None
    """What a new input does with unfinished work; raise over open questions and discard otherwise, unless given."""
    on_limit: Literal["raise", "stop"]
    """Whether a step limit raises, or returns the state reached."""
    thread_step_limit: int | None
    """Bounds the steps of the thread's whole history, where the config's `recursion_limit` bounds this run."""


class CompiledGraph:
    """A graph that runs. With a checkpointer every run is durable; without one the same engine keeps nothing."""

    def __init__(
        self,
        builder: StateGraph[Any, Any, Any, Any],
        plan: Plan,
        *,
        checkpointer: Any = None,
        store: Any = None,
        debug: bool = False,
        name: str | None = None,
        config: Config = None,
    ) -> None:
        self.builder = builder
        self.plan = plan
        self.name = name or "LangGraph"
        self.checkpointer = checkpointer
        self.store = store
        self.debug = debug
        self._config = config
        self._durable = _store_of(checkpointer)
        registry = Registry.from_schemas(*plan.schemas).with_types(Send, Command, Interrupt, Overwrite)
        self.codec = Codec(registry, getattr(checkpointer, "on_unknown_type", None))
        self._leases = keeper_of(self._durable) if self._durable is not None else None

    # -- running ------------------------------------------------------------------------------------------------------

    def invoke(
        self,
        input: Any,
        config: Config = None,
        *,
        stream_mode: StreamMode = "values",
        output_keys: Keys = None,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Run to the end or to a pause and return the state's values, with `__interrupt__` where questions are open.

        `input` is a new input, `None` to continue, or a `Command`; `options` are those of `RunOptions`. On return
        everything is durable as `durability` says. Works inside a running event loop too. With another `stream_mode`,
        the list of chunks.
        """
        if stream_mode != "values":
            return list(self.stream(input, config, stream_mode=stream_mode, output_keys=output_keys, **options))
        run = self._run(input, config, **options)
        return self._result(run, drive_sync(drive(run), _sync_port(run)), output_keys)

    async def ainvoke(
        self,
        input: Any,
        config: Config = None,
        *,
        stream_mode: StreamMode = "values",
        output_keys: Keys = None,
        **options: Unpack[RunOptions],
    ) -> Any:
        """Do as `invoke`, on this event loop."""
        if stream_mode != "values":
            chunks = self.astream(input, config, stream_mode=stream_mode, output_keys=output_keys, **options)
            return [chunk async for chunk in chunks]
        run = self._run(input, config, **options)
        return self._result(run, await self._drive_async(run), output_keys)

    def stream(
        self,
        input: Any,
        config: Config = None,
        *,
        stream_mode: StreamMode = "updates",
        output_keys: Keys = None,
        **options: Unpack[RunOptions],
    ) -> Iterator[Any]:
        """Run as far as the consumer pulls, yielding chunks of the modes asked for ((mode, chunk) for a list of modes).

        Closing or dropping the iterator stops the run: it is recorded, finished tasks are kept, the thread is freed.
        """
        run = self._run(input, config, Stream(stream_mode, self.plan, output_keys), **options)
        return stream_sync(lambda: drive(run), _sync_port(run))

    async def astream(
        self,
        input: Any,
        config: Config = None,
        *,
        stream_mode: StreamMode = "updates",
        output_keys: Keys = None,
        **options: Unpack[RunOptions],
    ) -> AsyncIterator[Any]:
        """Do as `stream`, on this event loop."""
        from stepwell.runtime.async_driver import stream_async

        run = self._run(input, config, Stream(stream_mode, self.plan, output_keys), **options)
        chunks = stream_async(lambda: drive(run), _async_port(run))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    def retry(self, config: Config, **options: Unpack[RunOptions]) -> Any:
        """Run what failed again, and only what is missing. NothingToRetryError where nothing failed."""
        run = self._run(None, config, retry_only=True, **options)
        return self._result(run, drive_sync(drive(run), _sync_port(run)), None)

    async def aretry(self, config: Config, **options: Unpack[RunOptions]) -> Any:
        """Do as `retry`, on this event loop."""
        run = self._run(None, config, retry_only=True, **options)
        return self._result(run, await self._drive_async(run), None)

    # -- looking ------------------------------------------------------------------------------------------------------

    def get_state(self, config: Config) -> StateSnapshot:
        """Return the thread's state: its head with finished tasks applied or, by checkpoint id, as committed."""
        checked = self._addressed(config, "get_state")
        assert self._durable is not None and checked.thread_id is not None
        with self._durable.reading() as reader:
            address = (checked.thread_id, checked.namespace, checked.checkpoint_id)
            found = read_state(reader, self.codec, self.plan, *address)
        return found if found is not None else empty_snapshot(config or {})

    async def aget_state(self, config: Config) -> StateSnapshot:
        """Do as `get_state`, without blocking the event loop."""
        return await self._off_loop(lambda: self.get_state(config))  # type: ignore[no-any-return]

    def get_state_history(
        self,
        config: Config,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """Return the thread's checkpoints, newest first: those matching `filter`, older than `before`, at most
        `limit`."""
        checked = self._addressed(config, "get_state_history")
        assert self._durable is not None and checked.thread_id is not None
        with self._durable.reading() as reader:
            older = parse_config(before).checkpoint_id if before is not None else None
            row = reader.checkpoint(checked.thread_id, checked.namespace, older) if older else None
            before_seq = row.seq if row is not None else None
            query = HistoryQuery(checked.thread_id, checked.namespace, before_seq, limit, filter)
            return iter(read_history(reader, self.codec, self.plan, query))

    async def aget_state_history(
        self,
        config: Config,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Do as `get_state_history`, without blocking the event loop."""
        found = await self._off_loop(lambda: self.get_state_history(config, filter=filter, before=before, limit=limit))
        for snapshot in found:
            yield snapshot

    # -- editing ------------------------------------------------------------------------------------------------------

    def update_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Write a new checkpoint as if `as_node` had returned `values`; return the config that addresses it.

        Durable on return. At the head, outcomes, answers and questions of the tasks that stay are kept; at an older
        checkpoint a new lineage begins. Without `as_node` the last node that wrote is taken.
        """
        run = self._editing(config, "update_state")
        return self._drive_edit(run, Edit(values, as_node))

    async def aupdate_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Do as `update_state`, on this event loop."""
        run = self._editing(config, "update_state")
        return await self._adrive_edit(run, Edit(values, as_node))

    def fork(self, config: Config, values: Any = None, as_node: str | None = None) -> dict[str, Any]:
        """Begin a new lineage at a checkpoint, optionally edited; return the config that addresses its first one."""
        run = self._editing(config, "fork")
        return self._drive_edit(run, Edit(values, as_node, fork=True))

    async def afork(self, config: Config, values: Any = None, as_node: str | None = None) -> dict[str, Any]:
        """Do as `fork`, on this event loop."""
        run = self._editing(config, "fork")
        return await self._adrive_edit(run, Edit(values, as_node, fork=True))

    # -- wiring -------------------------------------------------------------------------------------------------------

    def with_config(self, config: Config = None, **more: Any) -> CompiledGraph:
        """Return the same graph with config to lay every call's own over."""
        bound = {**(self._config or {}), **(config or {}), **more}
        return CompiledGraph(
            self.builder,
            self.plan,
            checkpointer=self.checkpointer,
            store=self.store,
            debug=self.debug,
            name=self.name,
            config=bound,
        )

    def _run(
        self,
        input: Any,
        config: Config,
        stream: Stream | None = None,
        *,
        retry_only: bool = False,
        **options: Unpack[RunOptions],
    ) -> Run:
        _check(options)
        request = Request(
            input,
            parse_config(config, self._config) if self._config else parse_config(config),
            durability=options.get("durability") or "sync",
            context=coerce_context(self.plan.context, options.get("context")),
            before=self._breakpoints(options.get("interrupt_before"), self.plan.interrupt_before),
            after=self._breakpoints(options.get("interrupt_after"), self.plan.interrupt_after),
            on_pending=options.get("on_pending"),
            on_limit=options.get("on_limit") or "raise",
            thread_step_limit=options.get("thread_step_limit"),
            retry_only=retry_only,
        )
        return self._new_run(request, stream)

    def _new_run(self, request: Request, stream: Stream | None = None) -> Run:
        return Run(self.plan, self.codec, self._durable, request, _CLOCK, _IDS, self.store, stream, self._leases)

    def _breakpoints(self, given: Sequence[str] | Literal["*"] | None, default: frozenset[str]) -> frozenset[str]:
        if given is None:
            return default
        names = self.plan.nodes if given == "*" else [given] if isinstance(given, str) else given
        for name in names:
            if name not in self.plan.nodes:
                raise InvalidConfigError(f"Interrupt node `{name}` not found", key="interrupt")
        return frozenset(names)

    def _result(self, run: Run, ending: Ending, keys: str | Sequence[str] | None) -> Any:
        values = output_of(self.plan, visible_values(self.plan, ending.base), keys)
        if not ending.questions:
            return values
        asked = [as_interrupt(question) for question in ending.questions]
        return {**values, "__interrupt__": asked} if isinstance(values, dict) else {"__interrupt__": asked}

    def _addressed(self, config: Config, operation: str) -> RunConfig:
        """Return the config of a call that needs a thread on disk."""
        if self._durable is None:
            raise NoCheckpointerError(operation=operation)
        checked = parse_config(config, self._config) if self._config else parse_config(config)
        if checked.thread_id is None:
            raise InvalidConfigError(reason=f"{operation} needs a thread_id in configurable", key="thread_id")
        return checked

    def _editing(self, config: Config, operation: str) -> Run:
        return self._new_run(Request(None, self._addressed(config, operation)))

    async def _drive_async(self, run: Run) -> Ending:
        from stepwell.runtime.async_driver import drive_async

        return await drive_async(drive(run), _async_port(run))

    def _drive_edit(self, run: Run, change: Edit) -> dict[str, Any]:
        return drive_sync(edit(run, change), _sync_port(run))

    async def _adrive_edit(self, run: Run, change: Edit) -> dict[str, Any]:
        from stepwell.runtime.async_driver import drive_async

        return await drive_async(edit(run, change), _async_port(run))

    async def _off_loop(self, function: Any) -> Any:
        from stepwell.runtime.async_driver import blocking

        return await blocking(function, self._durable)

    def __repr__(self) -> str:
        return f"CompiledGraph({self.plan.graph_id}, nodes={list(self.plan.nodes)})"


register_type(Missing, name="stepwell:MISSING", dump=lambda value: None, load=lambda stored: MISSING)
_CLOCK = SystemClock()
_IDS = TimeOrderedIds()


def _check(options: RunOptions) -> None:
    """Refuse an option nobody knows, and a value that is none of its choices, before anything is read."""
    unknown = options.keys() - RunOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown options {', '.join(sorted(unknown))}; known: {', '.join(RunOptions.__annotations__)}")
    for name, choices in _CHOICES.items():
        value = options.get(name)
        if value is not None and value not in choices:
            raise InvalidConfigError(reason=f"{name} is one of {', '.join(choices)}, not {value!r}", key=name)
    limit = options.get("thread_step_limit")
    if limit is not None and limit < 1:
        raise InvalidConfigError(reason=f"thread_step_limit is at least 1, not {limit}", key="thread_step_limit")


_CHOICES = {"durability": DURABILITIES, "on_pending": ("raise", "discard", "finish"), "on_limit": ("raise", "stop")}


def _sync_port(run: Run) -> SyncPort:
    port = run.port = SyncPort(run)
    if run.stream is not None:
        run.stream.wake = port.wake
    return port


def _async_port(run: Run) -> AsyncPort:
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


def keeper_of(store: Store) -> LeaseKeeper:
    """Return the one lease keeper of a store."""
    keeper = getattr(store, "_lease_keeper", None)
    if keeper is None:
        keeper = store._lease_keeper = LeaseKeeper(store)  # type: ignore[attr-defined]
    return keeper


use_engine(CompiledGraph)
