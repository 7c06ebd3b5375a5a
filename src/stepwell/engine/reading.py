"""`CompiledGraph`: what is read from a thread. Nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepwell.engine.wiring import Config, Wired
from stepwell.runtime.config import parse_config
from stepwell.runtime.reading.history import Line, history, read_state
from stepwell.runtime.reading.journal import Before, journal
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.runtime.reading.lineages import Lineage, read_lineages
from stepwell.runtime.reading.paging import AsyncPaged, Paged
from stepwell.runtime.reading.snapshot import StateSnapshot, empty_snapshot


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
        lineage: Line | None = None,
    ) -> Paged[StateSnapshot]:
        """List the thread's checkpoints, newest first, reading them page by page as the iterator is read.

        `filter`: only where `source`, `step`, `run_id`, `lineage` or a key of the metadata is this. `before`: only what
        is older than this checkpoint. `lineage`: only what led to the newest checkpoint of this lineage or, with
        "current", to the checkpoint that `config` names or the thread's newest; without it, all lineages. Where `limit`
        cut the list, the iterator's `more` is what to pass as `before` next; it is None at the real end.

        Raises UnknownCheckpointError for a `before` or a checkpoint id that the thread does not have.
        """
        checked = self._addressed(config, "get_state_history")
        assert self._durable is not None
        older = None if before is None else parse_config(before)
        selected = {"filter": filter, "before": older, "limit": limit, "lineage": lineage}
        return history(self._durable, self.codec, self.plan, checked, **selected)  # type: ignore[arg-type]

    def aget_state_history(
        self,
        config: Config,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Config = None,
        limit: int | None = None,
        lineage: Line | None = None,
    ) -> AsyncPaged[StateSnapshot]:
        """Do as `get_state_history`, without blocking the event loop: `async for` it. What is wrong with the arguments
        is raised by its first step."""

        def opened() -> Paged[StateSnapshot]:
            return self.get_state_history(config, filter=filter, before=before, limit=limit, lineage=lineage)

        return AsyncPaged(opened, self._off_loop)

    def get_lineages(self, config: Config) -> tuple[Lineage, ...]:
        """Return the thread's lineages as a tree, by its roots: one, or none where nothing was committed yet.

        Costs a few reads a lineage, however long they are.
        """
        checked = self._addressed(config, "get_lineages")
        assert self._durable is not None and checked.thread_id is not None
        with self._durable.reading() as reader:
            return read_lineages(reader, checked.thread_id)

    async def aget_lineages(self, config: Config) -> tuple[Lineage, ...]:
        """Do as `get_lineages`, without blocking the event loop."""
        return await self._off_loop(lambda: self.get_lineages(config))  # type: ignore[no-any-return]

    def get_journal(
        self, config: Config, *, limit: int | None = None, before: Before = None, lineage: Line | None = None
    ) -> Paged[JournalEntry]:
        """List what the thread has recorded of its durable steps and effects, newest first, page by page as it is read.

        With a checkpoint id in `config`, only what was recorded on that checkpoint. `lineage`: only what this lineage
        and its ancestors hold, each up to where it was forked; "current" is the lineage of the thread's newest
        checkpoint or, with a checkpoint id, what led to that one; without it, all lineages. `before`: only what is
        older than this entry, or than this seq. Where `limit` cut the list, the iterator's `more` is what to pass as
        `before` next.

        The functions that were called need not be there any more; a receipt that cannot be read raises when it is
        looked into. Raises CorruptRecordError for an entry that does not verify, UnknownCheckpointError,
        InvalidConfigError.
        """
        checked = self._addressed(config, "get_journal")
        assert self._durable is not None
        return journal(self._durable, self.codec, checked, before=before, limit=limit, lineage=lineage)

    def aget_journal(
        self, config: Config, *, limit: int | None = None, before: Before = None, lineage: Line | None = None
    ) -> AsyncPaged[JournalEntry]:
        """Do as `get_journal`, without blocking the event loop: `async for` it. What is wrong with the arguments is
        raised by its first step."""

        def opened() -> Paged[JournalEntry]:
            return self.get_journal(config, limit=limit, before=before, lineage=lineage)

        return AsyncPaged(opened, self._off_loop)
