"""`CompiledGraph`: what is read from a thread. Nothing here writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from stepwell.engine_wiring import Config, Wired
from stepwell.runtime.config import parse_config
from stepwell.runtime.snapshot import StateSnapshot, empty_snapshot, read_history, read_state
from stepwell.store import HistoryQuery


class Reading(Wired):
    """The reading side of a compiled graph."""

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
