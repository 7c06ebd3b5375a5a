"""What a saver can be asked about damage: what is wrong and what depends on it, and to go on from the last good
checkpoint.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from stepwell.clock import Clock
from stepwell.errors import CorruptRecordError, UnknownThreadError
from stepwell.ids import TimeOrderedIds
from stepwell.runtime.config import thread_id_of
from stepwell.savers.integrity.examining import Examination, examine
from stepwell.savers.integrity.repairing import RepairedThread, repair
from stepwell.savers.runs import ThreadId
from stepwell.store import Fault, Store

_IDS = TimeOrderedIds()


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking a database has found."""

    faults: tuple[Fault, ...]
    """Everything that is wrong, in the order of the walk: sentences that know table, thread and place."""
    threads: tuple[Examination, ...]
    """Each thread with a fault: what depends on it, and where it can go on."""
    left_behind: tuple[Fault, ...]
    """What repairs have left behind. It is damaged, and nothing depends on it."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong but what was left behind."""
        return not self.faults


class Mending:
    """The side of a saver that finds damage, and goes on from it."""

    store: Store
    _clock: Clock

    def verify(self, thread_id: ThreadId | None = None) -> Verification:
        """Check every row of the database, or of one thread, and say what is wrong and what depends on it.

        It reads everything, changes nothing and stops at nothing. No graph is needed, and no key of an encrypted
        database, without which it is not told which checkpoints depend on a damaged one. Raises UnknownThreadError
        where there is nothing of such a thread.
        """
        if thread_id is not None:
            return _verified_one(self.store, thread_id_of(thread_id))
        found = list(self.store.verify())
        damaged = dict.fromkeys(fault.thread_id for fault in found if fault.thread_id)
        return _verified(self.store, found, list(damaged))

    async def averify(self, thread_id: ThreadId | None = None) -> Verification:
        """Do as `verify`, without blocking the event loop."""
        return await asyncio.to_thread(self.verify, thread_id)

    def repair(
        self, thread_id: ThreadId, checkpoint_id: str | None = None, *, by: str | None = None, reason: str = ""
    ) -> RepairedThread:
        """Go on with a damaged thread from a checkpoint, or from the last good one: a fork, recorded with who (the user
        of this process, unless `by` says), when and why. Durable on return, in one transaction.

        The thread's newest checkpoint is then that fork: `get_state` shows it, `invoke(None, config)` goes on. What
        cannot be read stays where it is and is named. An effect of which nothing sound says how it ended is in doubt.

        Raises NothingToRepairError where the thread is sound, CannotRepairError where the checkpoint cannot be read or
        no fork would mend the thread, UnknownCheckpointError, UnknownThreadError, ThreadBusyError while somebody runs
        it.
        """
        return repair(self.store, thread_id_of(thread_id), checkpoint_id, by, reason, self._clock, _IDS)

    async def arepair(
        self, thread_id: ThreadId, checkpoint_id: str | None = None, *, by: str | None = None, reason: str = ""
    ) -> RepairedThread:
        """Do as `repair`, without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.repair(thread_id, checkpoint_id, by=by, reason=reason))


def _verified_one(store: Store, thread_id: str) -> Verification:
    told = _verified(store, None, [thread_id])
    if told.is_sound:
        with store.reading() as reader:
            if reader.thread(thread_id) is None:
                raise UnknownThreadError(thread_id=thread_id)
    return told


def _verified(store: Store, found: list[Fault] | None, thread_ids: list[str]) -> Verification:
    examined = []
    with store.reading() as reader:
        for thread_id in thread_ids:
            try:
                examined.append(examine(reader, thread_id))
            except CorruptRecordError:  # not even its columns can be looked at: the walk has said so
                continue
    left = [fault for each in examined for fault in each.left_behind]
    faults = [fault for each in examined for fault in each.faults] if found is None else found
    known = set(map(str, left))
    new = tuple(fault for fault in faults if str(fault) not in known)
    return Verification(new, tuple(each for each in examined if not each.is_sound), tuple(left))
