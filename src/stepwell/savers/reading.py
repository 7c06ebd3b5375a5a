"""What every saver can be asked, whatever keeps its rows: threads, checkpoints in LangGraph's shape, raw ones, and to
delete a thread. The rows are the store's; values are read as the graphs that wrote them would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from stepwell.clock import Clock, SystemClock
from stepwell.codec import Codec
from stepwell.codec.raw_value import RawValue
from stepwell.errors import InvalidConfigError, ReadOnlySaverError
from stepwell.graph.own_types import OWN_TYPES
from stepwell.runtime.config import RunConfig, parse_config, thread_id_of
from stepwell.runtime.holders import NO_RULES, Known, Rules
from stepwell.runtime.reading.paging import AsyncPaged, Paged
from stepwell.savers.integrity.saver import Mending
from stepwell.savers.raw import RawCheckpoint, read_raw
from stepwell.savers.runs import ThreadId
from stepwell.savers.threads import Statuses, ThreadSummary, list_threads
from stepwell.savers.tuples import Checkpoint, CheckpointTuple, Tuples, list_tuples
from stepwell.store import Deletion, Store

Config = Mapping[str, Any]
OnUnknownType = str | Callable[[str, Any], Any] | None
Result = TypeVar("Result")


class ReadingSaver(Mending):
    """The side of a saver that is asked. `on_unknown_type` says what becomes of a value whose type is not at hand:

    "raise" (default), an `UnknownTypeError` that names the channel; "raw", a `RawValue` with its parts; or a function
    of the stored type's name and parts, whose result takes the value's place.
    """

    def __init__(self, store: Store, on_unknown_type: OnUnknownType = None) -> None:
        self.store = store
        self.on_unknown_type = hook_of(on_unknown_type)
        self._clock: Clock = SystemClock()
        self._known: dict[str, Known] = {}
        self._unknown = Known(Codec(OWN_TYPES, self.on_unknown_type))

    def know(self, graph_id: str, codec: Codec, rules: Rules = NO_RULES) -> None:
        """Read what this graph wrote with its own types and reducers from now on. `compile(checkpointer=...)` calls
        this."""
        self._known[graph_id] = Known(codec, rules)

    # -- threads ------------------------------------------------------------------------------------------------------

    def threads(
        self,
        *,
        status: Statuses = None,
        filter: Mapping[str, Any] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Paged[ThreadSummary]:
        """List the threads, last changed first, reading them page by page as the iterator is read.

        `status`: one status or several; `running` only where a live process holds the lease, else `crashed`. `filter`:
        only where the newest checkpoint's `source`, `step`, `run_id`, `lineage` or a key of its metadata is this. Where
        `limit` cut the list, the iterator's `more` is what to pass as `before` next. A thread that changes while the
        list is read moves to its front.
        """
        return list_threads(self.store, status, filter, before, limit)

    def athreads(
        self,
        *,
        status: Statuses = None,
        filter: Mapping[str, Any] | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> AsyncPaged[ThreadSummary]:
        """Do as `threads`, without blocking the event loop: `async for` it."""
        return AsyncPaged(lambda: self.threads(status=status, filter=filter, before=before, limit=limit), _off_loop)

    def delete_thread(self, thread_id: ThreadId) -> None:
        """Delete a thread: its checkpoints, records, runs and their logs, in one transaction; durable on return.

        A thread that is not there is no error. A run that is going on is fenced out: whatever it still writes is
        refused with `LeaseLostError`. The id can be used anew.
        """
        self.store.delete(Deletion(thread_id_of(thread_id), self._clock.now()))

    async def adelete_thread(self, thread_id: ThreadId) -> None:
        """Do as `delete_thread`, without blocking the event loop."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the thread's newest; None where there is none.

        Raises UnknownTypeError for a value of a class that neither `register_type` nor a graph compiled with this saver
        lists, unless `on_unknown_type` says otherwise.
        """
        return self._tuples().read(self.store, _addressed(config))

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Do as `get_tuple`, without blocking the event loop."""
        return await asyncio.to_thread(self.get_tuple, config)

    def get(self, config: Config) -> Checkpoint | None:
        """Return the `checkpoint` of `get_tuple`."""
        found = self.get_tuple(config)
        return None if found is None else found.checkpoint

    async def aget(self, config: Config) -> Checkpoint | None:
        """Do as `get`, without blocking the event loop."""
        return await asyncio.to_thread(self.get, config)

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Paged[CheckpointTuple]:
        """List a thread's checkpoints, newest first; those of all threads, one thread after the other, for None.

        `filter`, `before`, `limit` and the iterator's `more` are those of `get_state_history`. Of all threads, one that
        is damaged hides none behind it: a warning is logged, and where the list ends its CorruptRecordError is raised.
        """
        address = None if config is None else _addressed(config)
        older = None if before is None else _addressed(before)
        return list_tuples(self.store, self._tuples(), address, filter, older, limit)

    def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list`, without blocking the event loop: `async for` it."""
        return AsyncPaged(lambda: self.list(config, filter=filter, before=before, limit=limit), _off_loop)

    def read_raw(self, config: Config) -> RawCheckpoint:
        """Read a checkpoint, or the thread's newest, whatever is wrong with it: nothing is verified, and what cannot be
        read is said beside what can.

        Raises UnknownThreadError or UnknownCheckpointError where there is no such row.
        """
        return read_raw(self.store, self._known, self._unknown, _addressed(config))

    async def aread_raw(self, config: Config) -> RawCheckpoint:
        """Do as `read_raw`, without blocking the event loop."""
        return await asyncio.to_thread(self.read_raw, config)

    # -- what only runs do --------------------------------------------------------------------------------------------

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: only runs and edits write checkpoints."""
        raise ReadOnlySaverError(operation="put")

    def put_writes(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: only runs write outcomes."""
        raise ReadOnlySaverError(operation="put_writes")

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: only runs and edits write checkpoints."""
        raise ReadOnlySaverError(operation="aput")

    async def aput_writes(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: only runs write outcomes."""
        raise ReadOnlySaverError(operation="aput_writes")

    def _tuples(self) -> Tuples:
        return Tuples(self._known, self._unknown)


def _addressed(config: Config) -> RunConfig:
    checked = parse_config(config)
    if checked.thread_id is None:
        raise InvalidConfigError(reason="a saver is asked with a thread_id in configurable", key="thread_id")
    return checked


def hook_of(given: OnUnknownType) -> Callable[[str, Any], Any] | None:
    """Return what the codec calls for a type that is not listed."""
    if given is None or given == "raise":
        return None
    if given == "raw":
        return RawValue
    if callable(given):
        return given
    raise InvalidConfigError(
        reason=f'on_unknown_type is "raise", "raw" or a function of name and parts, not {given!r}',
        key="on_unknown_type",
    )


async def _off_loop(function: Callable[[], Result]) -> Result:
    return await asyncio.to_thread(function)
