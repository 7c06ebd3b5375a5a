"""What every saver offers to keep threads small: prune and sweep them, and say what they weigh."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import Any

from stepwell.errors import InvalidConfigError
from stepwell.runtime.config import thread_id_of
from stepwell.savers.reading import ReadingSaver
from stepwell.savers.retention.choosing import Age, PruneReport, Strategy, Threads, Ttl, prune, sweep, ttl_of
from stepwell.savers.retention.deleting import RunsReport, delete_for_runs
from stepwell.savers.retention.moving import ThreadFile, export_thread, import_thread
from stepwell.savers.retention.weighing import Stats, weigh
from stepwell.savers.runs import ThreadId
from stepwell.store import StoreSize


class RetainingSaver(ReadingSaver):
    """The side of a saver that throws away. Nothing is thrown away by itself."""

    _ttl: Ttl | None = None

    def prune(
        self,
        threads: Threads,
        *,
        keep_last: int | None = None,
        older_than: Age | None = None,
        strategy: Strategy | None = None,
        unfinished: bool = False,
    ) -> PruneReport:
        """Delete checkpoints of a thread, of several, or of those that a filter selects ({} selects all); durable on
        return, thread by thread.

        `keep_last` keeps so many of the newest checkpoints of each lineage, `older_than` (an age, or a moment with a
        time zone) all that are younger; with both, what either keeps stays. `strategy="keep_latest"`, as without any
        of them, is keep_last=1; "delete" deletes whole threads, with `older_than` those not changed since, and skips
        those of which something is still to come, as `sweep` does, unless `unfinished` is true.

        What something stands on stays: the newest checkpoint of every lineage, where a lineage was forked, an open
        question or an effect in doubt, a run to be continued. Receipts of effects always do. What those need stays
        too, and is not listed. A thread that a run is at work on raises ThreadBusyError; among several it is skipped.
        """
        return prune(self.store, self._clock.now(), threads, keep_last, older_than, strategy, unfinished)

    async def aprune(
        self,
        threads: Threads,
        *,
        keep_last: int | None = None,
        older_than: Age | None = None,
        strategy: Strategy | None = None,
        unfinished: bool = False,
    ) -> PruneReport:
        """Do as `prune`, without blocking the event loop."""
        return await asyncio.to_thread(
            self.prune,
            threads,
            keep_last=keep_last,
            older_than=older_than,
            strategy=strategy,
            unfinished=unfinished,
        )

    def delete_for_runs(self, run_ids: Iterable[str], *, missing_ok: bool = False) -> RunsReport:
        """Delete the checkpoints, records and logs that these runs wrote; durable on return, thread by thread.

        What something stands on stays, as for `prune`: the newest checkpoint of every lineage, so that every thread
        stands as it did, fork points, open questions, doubts, receipts, and what another run has worked on. `left` of
        the report says what. A run of which nothing is left is forgotten; a thread to which nobody else wrote, and of
        which nothing is still to come, is deleted as a whole.

        Raises UnknownRunError, unless `missing_ok`, and RunNotEndedError, both before anything goes.
        """
        return delete_for_runs(self.store, run_ids, self._clock.now(), missing_ok)

    async def adelete_for_runs(self, run_ids: Iterable[str], *, missing_ok: bool = False) -> RunsReport:
        """Do as `delete_for_runs`, without blocking the event loop."""
        return await asyncio.to_thread(self.delete_for_runs, run_ids, missing_ok=missing_ok)

    def sweep(
        self, *, ttl: Any = None, unfinished: bool = False, filter: Mapping[str, Any] | None = None
    ) -> PruneReport:
        """Delete the threads that nothing has changed for as long as `ttl` says (default: the saver's own), or prune
        them, as its strategy says; durable on return, thread by thread. Call it from a scheduler.

        `filter`: only those that `threads` selects by it. Threads that shall live longer or shorter than others say so
        in their metadata, and each kind has a sweep of its own.

        A thread with an open question, a wait, a doubt, a message or a run that has not ended is skipped, unless
        `unfinished` is true. One that a run is at work on always is.
        """
        chosen = self._ttl if ttl is None else ttl_of(ttl)
        if chosen is None:
            raise InvalidConfigError(reason="sweep() needs a ttl: give it one, or make the saver with one", key="ttl")
        return sweep(self.store, self._clock.now(), chosen, unfinished, {} if filter is None else filter)

    async def asweep(
        self, *, ttl: Any = None, unfinished: bool = False, filter: Mapping[str, Any] | None = None
    ) -> PruneReport:
        """Do as `sweep`, without blocking the event loop."""
        return await asyncio.to_thread(self.sweep, ttl=ttl, unfinished=unfinished, filter=filter)

    def stats(self, thread_id: ThreadId | None = None, *, limit: int | None = None) -> Stats:
        """Weigh a thread, or all of them, the heaviest first and at most `limit`: bytes by table and by channel, and
        the channel that grows with every superstep. No value is decoded. Raises UnknownThreadError.
        """
        return weigh(self.store, None if thread_id is None else thread_id_of(thread_id), limit)

    async def astats(self, thread_id: ThreadId | None = None, *, limit: int | None = None) -> Stats:
        """Do as `stats`, without blocking the event loop."""
        return await asyncio.to_thread(self.stats, thread_id, limit=limit)

    def vacuum(self, *, full: bool = False) -> tuple[StoreSize, StoreSize]:
        """Give back the room of what was deleted; return what the database took before and takes now.

        SQLite writes its file anew: that takes twice its size of free disk, and who writes waits meanwhile. PostgreSQL
        makes the room usable again; with `full` it gives it back, and nobody reads or writes meanwhile.
        """
        before = self.store.size()
        self.store.vacuum(full)
        return before, self.store.size()

    async def avacuum(self, *, full: bool = False) -> tuple[StoreSize, StoreSize]:
        """Do as `vacuum`, without blocking the event loop."""
        return await asyncio.to_thread(self.vacuum, full=full)

    def export_thread(self, thread_id: ThreadId, path: str | os.PathLike[str]) -> ThreadFile:
        """Write a thread to a file of its own: all lineages, records, runs, logs, effects and messages, as one snapshot
        shows them. The file is on the disk on return; one that is there is not written over.

        What is encrypted stays so, and takes its wrapped key along. Raises FileTakenError for a file that is there,
        UnusableFileError for one that cannot be written, UnknownThreadError, and CorruptRecordError where a row of the
        thread is damaged or missing.
        """
        return export_thread(self.store, thread_id_of(thread_id), path, self._clock.now())

    async def aexport_thread(self, thread_id: ThreadId, path: str | os.PathLike[str]) -> ThreadFile:
        """Do as `export_thread`, without blocking the event loop."""
        return await asyncio.to_thread(self.export_thread, thread_id, path)

    def import_thread(self, path: str | os.PathLike[str]) -> ThreadFile:
        """Write the thread of a file into this database, row for row, in one transaction; durable on return.

        A run that was going on can be continued, as if its process had died. Raises ThreadExistsError where there is
        such a thread, ThreadFileError where the file is damaged or not one, UnusableFileError where it cannot be read,
        RunConflictError where a run id is taken.
        """
        return import_thread(self.store, path)

    async def aimport_thread(self, path: str | os.PathLike[str]) -> ThreadFile:
        """Do as `import_thread`, without blocking the event loop."""
        return await asyncio.to_thread(self.import_thread, path)
