"""The public savers: what users pass as `checkpointer=`. Each carries one store, which serves sync and async callers
alike.

A saver made with `SqliteSaver(path)` lives until `close()`; `from_conn_string` closes it at the end of its block,
`with` or `async with`. Use after that is a `SaverClosedError`.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self

from stepwell.errors import InvalidConfigError, UnsupportedStorageError
from stepwell.events import LoggedEvent
from stepwell.runtime.config import thread_id_of
from stepwell.runtime.editing.origins import origin_of
from stepwell.savers.copying import copy_thread
from stepwell.savers.reading import OnUnknownType, ReadingSaver
from stepwell.savers.runs import RunPage, RunRecord, ThreadId, read_events, read_run, read_runs
from stepwell.stores.sqlite.saver import SqliteStore
from stepwell.superstep.origin import Origin

MEMORY = ":memory:"
LEAST_BYTES = 1 << 18
"""What an in-memory saver may be held to: its empty tables take some of it."""


class SqliteSaver(ReadingSaver):
    """Keeps threads in one SQLite file, durable through power loss (`synchronous="full"`) unless asked for less.

    `on_unknown_type` says what becomes of a value whose type no schema and no `register_type` lists: "raise", an
    `UnknownTypeError` that names the channel; "raw", a `RawValue`; or a function of its name and stored parts.

    A file that an older release wrote is migrated as it is opened, in one transaction for each migration; with
    `migrate=False` it is refused (SchemaOutdatedError) until `stepwell migrate` has done it. A file that a newer
    release has migrated is refused either way: SchemaNewerError.
    """

    store: SqliteStore

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "full",
        on_unknown_type: OnUnknownType = "raise",
        migrate: bool = True,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UnsupportedStorageError(
                f"SqliteSaver takes a path, not a {type(path).__module__}.{type(path).__qualname__}: "
                'pass the file\'s name, as in SqliteSaver("threads.db"); the saver opens its own connections.',
                reason="not a path",
            )
        super().__init__(SqliteStore(path, synchronous=synchronous, migrate=migrate), on_unknown_type)

    @classmethod
    def from_conn_string(cls, conn_string: str, *, synchronous: str = "full", migrate: bool = True) -> Self:
        """Open the file for one block: `with SqliteSaver.from_conn_string("threads.db") as saver: ...`."""
        return cls(conn_string, synchronous=synchronous, migrate=migrate)

    def setup(self) -> None:
        """Do nothing: tables are made, and migrated, when the file is opened."""

    async def asetup(self) -> None:
        """Do nothing: tables are made, and migrated, when the file is opened."""

    def copy_thread(self, source_thread_id: ThreadId, target_thread_id: ThreadId) -> None:
        """Write all of a thread (lineages, records, runs) under another id, in one transaction; durable on return.

        The copy reads, resumes and verifies as the original does, and neither knows of what the other does next. A run
        that is going on is copied as if its process had died. Raises UnknownThreadError, and ThreadExistsError where
        the target is not empty.
        """
        source, target = thread_id_of(source_thread_id), thread_id_of(target_thread_id)
        copy_thread(self.store, source, target, self._clock.now())

    async def acopy_thread(self, source_thread_id: ThreadId, target_thread_id: ThreadId) -> None:
        """Do as `copy_thread`, without blocking the event loop."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    def get_origin(self, thread_id: ThreadId) -> Origin | None:
        """Return which row of which thread this one was copied or forked from; None where it began by itself."""
        with self.store.reading() as reader:
            return origin_of(reader, thread_id_of(thread_id))

    async def aget_origin(self, thread_id: ThreadId) -> Origin | None:
        """Do as `get_origin`, without blocking the event loop."""
        return await asyncio.to_thread(self.get_origin, thread_id)

    def close(self) -> None:
        """Finish what is queued and release the file. A second call does nothing."""
        self.store.close()

    async def aclose(self) -> None:
        """Close without blocking the event loop."""
        await asyncio.to_thread(self.store.close)

    def runs(self, thread_id: ThreadId, *, limit: int | None = None, before: str | None = None) -> RunPage:
        """Return the thread's runs, last started or taken over first: at most `limit`, and only those before the run
        `before`. The page says whether there are more."""
        return read_runs(self.store, thread_id, limit, before)

    async def aruns(self, thread_id: ThreadId, *, limit: int | None = None, before: str | None = None) -> RunPage:
        """Do as `runs`, without blocking the event loop."""
        return await asyncio.to_thread(read_runs, self.store, thread_id, limit, before)

    def get_run(self, run_id: str) -> RunRecord | None:
        """Return what is recorded of a run; None where there is no such run."""
        return read_run(self.store, run_id)

    async def aget_run(self, run_id: str) -> RunRecord | None:
        """Do as `get_run`, without blocking the event loop."""
        return await asyncio.to_thread(read_run, self.store, run_id)

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[LoggedEvent]:
        """Return the run's log behind the offset `after`, oldest first: what graphs compiled with `events=True` keep.

        To follow a run, read on behind the last offset until an event says that it ended. Raises UnknownRunError.
        """
        return read_events(self.store, run_id, after, limit)

    async def aevents(self, run_id: str, *, after: int = 0, limit: int | None = None) -> list[LoggedEvent]:
        """Do as `events`, without blocking the event loop."""
        return await asyncio.to_thread(read_events, self.store, run_id, after, limit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class InMemorySaver(SqliteSaver):
    """The same store on ":memory:": everything but the disk. What it holds ends with the process.

    It grows with every run on it, and nothing is dropped by itself: `delete_thread` makes room. With `max_bytes` a run
    for whose writes there is none fails with StoreError, and its thread stays as it was.
    """

    def __init__(self, *, max_bytes: int | None = None, on_unknown_type: OnUnknownType = "raise") -> None:
        if max_bytes is not None and max_bytes < LEAST_BYTES:
            raise InvalidConfigError(reason=f"max_bytes is at least {LEAST_BYTES}, not {max_bytes}", key="max_bytes")
        ReadingSaver.__init__(self, SqliteStore(MEMORY, max_bytes=max_bytes), on_unknown_type)


AsyncSqliteSaver = SqliteSaver
MemorySaver = InMemorySaver
