"""What every saver does with whole threads and with runs, whatever keeps its rows: copies, origins, runs, their logs.

A subclass says how its store is opened. A saver lives until `close()`, or to the end of its block, `with` or
`async with`. Use after that is a `SaverClosedError`.
"""

from __future__ import annotations

import asyncio

from stepwell.events import LoggedEvent
from stepwell.runtime.config import thread_id_of
from stepwell.runtime.editing.origins import origin_of
from stepwell.savers.copying import copy_thread
from stepwell.savers.lifetime import Closable
from stepwell.savers.retaining import RetainingSaver
from stepwell.savers.runs import RunPage, RunRecord, ThreadId, read_events, read_run, read_runs
from stepwell.stores.encrypted.locked import LockedStore
from stepwell.stores.encrypted.unopened import layer_of
from stepwell.stores.encrypted.wrapping import Rekeyed, rekey
from stepwell.superstep.origin import Origin


class KeepingSaver(Closable, RetainingSaver):
    """A saver that can also copy threads, tell of runs, and be closed."""

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

    @property
    def is_locked(self) -> bool:
        """Whether the database is encrypted and no key was given."""
        return layer_of(self.store, LockedStore) is not None

    def rekey(self) -> Rekeyed:
        """Wrap every data key anew that another key has wrapped than the current one. No row of any thread changes.

        Each page of them is durable before the next; a call that was interrupted is repeated, and goes on there. A key
        that wraps no data key any more can go. Raises InvalidConfigError where the saver has no `encryption`.
        """
        return rekey(self.store)

    async def arekey(self) -> Rekeyed:
        """Do as `rekey`, without blocking the event loop."""
        return await asyncio.to_thread(self.rekey)

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

    def _release(self) -> None:
        self.store.close()
