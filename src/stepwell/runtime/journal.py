"""What nodes record while they run: durable before it is handed on, from whatever thread or loop the node's code is on.

An `Entry` is the records of one call. Entries that wait at the same moment become one commit: staged under the
ledger's lock and queued in order with what the run itself writes, waited for outside it. A sync caller leads, on its
own thread; a loop never blocks. What comes from a call that is over, or was given up, is refused. A write that fails is
the end of the run: whatever the node makes of the error, the run raises it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from stepwell import points
from stepwell.errors import StepOverError, StoreError
from stepwell.runtime.steps.threads import StepThreads
from stepwell.superstep import lifecycle

if TYPE_CHECKING:
    import asyncio

    from stepwell.runtime.calls import Call, TaskRun
    from stepwell.runtime.effects.working import Work
    from stepwell.runtime.run import Run
    from stepwell.runtime.scope import Scope
    from stepwell.runtime.steps.turns import Turns
    from stepwell.store import Commit, Queued, RecordRow
    from stepwell.superstep.effects.told import Told
    from stepwell.superstep.origin import Origin


class Draft(NamedTuple):
    """A record without its place."""

    kind: str
    body: bytes


class Entry:
    """Records that one call wants written together, and what has become of them."""

    __slots__ = (
        "arrival",
        "call",
        "commit",
        "drafts",
        "effect",
        "error",
        "flush",
        "future",
        "late",
        "noted",
        "scope",
        "step_id",
        "taken",
    )

    def __init__(
        self,
        scope: Scope,
        step_id: str,
        drafts: Sequence[Draft],
        flush: bool = False,
        noted: Callable[[TaskRun, Sequence[RecordRow]], None] | None = None,
    ) -> None:
        self.scope = scope
        self.call: Call = scope.root  # type: ignore[assignment]  # the outermost scope of a node's code is its call
        self.step_id = step_id
        self.drafts = drafts
        self.flush = flush
        """Whether it waits for the disk, and its base with it, in every durability mode."""
        self.noted = noted
        """Called, under the ledger's lock, once the records are staged: lays them over the base the node runs on. Held
        back in `exit` mode, there are no rows."""
        self.taken = False
        self.late = False
        """Whether it tells of a call that was given up: nobody waits for it, and it is written with the next entry."""
        self.commit: Commit | None = None
        """What it was written with."""
        self.effect = b""
        """Digest of the effect's row that is written with it, if one is."""
        self.future: Queued | None = None
        """The write to wait for, where one is to be waited for."""
        self.error: BaseException | None = None
        self.arrival: asyncio.Future[None] | None = None
        """Resolved once it is written or refused: for who waits on a loop."""


class Journal:
    """The entries of one run on their way."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._waiting: deque[Entry] = deque()
        self._late: deque[Entry] = deque()
        self._leading = threading.Lock()
        self._open = True
        self.threads = StepThreads(run.config.max_concurrency)
        """What the sync steps of the run share."""
        self.at_work: dict[str, Work] = {}
        """Key → the effect that is being performed."""
        self.origins: Sequence[Origin] | None = None
        """Where the thread was copied or forked from, once somebody asked."""
        self.told: dict[tuple[int, int, int], Mapping[str, Told]] = {}
        """What spans of records tell of effects, once somebody asked."""
        self._loops: set[asyncio.AbstractEventLoop] = set()
        self.turns: Turns | None = None
        """How many steps are at work, where that is limited."""

    # -- the node's side ---------------------------------------------------------------------------------------------

    def record(self, entry: Entry) -> None:
        """Write the entry and wait for it, as far as the mode says so; on this thread, which is no event loop's.

        Raises StepOverError where the call is over, and what the write failed with.
        """
        self.add(entry)
        if (ahead := self.ahead_of(entry)) is not None:
            ahead.exception()
        with self._leading:  # whoever leads takes along what waits: the others find theirs done
            if not entry.taken:
                self.stage()
            if entry.future is not None:
                self._land(entry)
        self.outcome_of(entry)

    def ahead_of(self, entry: Entry) -> Queued | None:
        """Return the write to wait for before this entry, where it is one that is left behind: at most one is ahead."""
        if not self._lags(entry):
            return None
        with self.run.ledger.lock:
            return self.run.ledger.outbox.last_flying()

    def add(self, entry: Entry) -> None:
        """Have the entry wait for the next `stage`."""
        entry.call.journalled = True  # before it is looked whether the call is over: see `barrier`
        self._waiting.append(entry)

    def leave_late(self, entry: Entry) -> None:
        """Have an entry of a call that was given up written with whatever the run writes next from inside a node, or
        when it ends. Once the run is over it is dropped."""
        entry.late, entry.error = True, None
        self._late.append(entry)

    def stage(self, at_end: bool = False) -> None:
        """Stage every entry that waits, and queue them as one commit.

        What is late goes with an entry of a call that goes on, or at the end: then the run itself stages nothing.
        """
        ledger = self.run.ledger
        with ledger.lock:
            taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
            written = [entry for entry in taken if self._take(entry)]
            if self._late and (written or at_end):
                late = [self._late.popleft() for _ in range(len(self._late))]
                taken += late
                written += [entry for entry in late if self._take(entry)]
            future: Queued | None = None
            try:
                future = self._post(written) if written else None
            except BaseException as error:  # it struck whoever leads; of those it took along nobody knows more
                for entry in written:
                    entry.error = entry.error or StoreError(f"The write of this step was interrupted: {error!r}")
                raise
            finally:
                for entry in taken:  # within the lock: who finds its entry gone from the queue looks here next
                    entry.taken = True
                    entry.future = None if entry.error is not None or self._lags(entry) else future
                _tell(taken, future)

    def stage_in_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stage, at the end of this turn of the loop, what comes in it: as one commit."""
        if loop not in self._loops:
            self._loops.add(loop)
            loop.call_soon(self._end_turn, loop)

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loops.discard(loop)
        if self._waiting:
            self.stage()

    def outcome_of(self, entry: Entry) -> None:
        """Raise what the entry failed with, once it is over."""
        if entry.error is not None:
            raise entry.error
        if entry.future is not None and (error := entry.future.exception()) is not None:
            with self.run.ledger.lock:
                self.run.ledger.outbox.note_flown()
            raise self.run.ledger.outbox.fault or error
        points.reach(points.STEP_RECORDED)

    # -- the run's side ----------------------------------------------------------------------------------------------

    def barrier(self, call: Call) -> Exception | None:
        """Return once nothing of a call that has just been marked as over is being staged any more; return what the
        call fails with, whatever its code made of it.

        Raises what a write failed with, wherever the node let that error go.
        """
        with self.run.ledger.lock:
            self.run.ledger.outbox.note_flown()
            fault = self.run.ledger.outbox.fault
        if fault is not None:
            raise fault
        return call.broken

    def finish(self) -> None:
        """Stage what still waits; refuse what comes later. The run is about to write its end."""
        if self._waiting or self._late:
            self.stage(at_end=True)
        with self.run.ledger.lock:
            self._open = False

    # -- one commit: the ledger's lock is held -----------------------------------------------------------------------

    def _lags(self, entry: Entry) -> bool:
        """Tell whether the entry is not waited for: `async` leaves it behind, at most one ahead."""
        return self.run.durability == "async" and not entry.flush

    def _is_settled(self, entry: Entry) -> bool:
        """Tell whether a thread goes on to settle what this entry is written with. Else the writer has to be woken."""
        return not entry.late and entry.arrival is None and not self._lags(entry)

    def _take(self, entry: Entry) -> bool:
        """Tell whether the entry is to be written now; note why not, or that it is held back until the run stops."""
        ledger, owner = self.run.ledger, entry.call.owner
        given_up = not entry.late and (entry.scope.is_over or owner.base is not self.run.base)
        if not self._open or ledger.run_row is None or given_up:
            entry.error = StepOverError(step_id=entry.step_id)
        elif ledger.outbox.fault is not None:
            entry.error = ledger.outbox.fault
        elif self.run.durability == "exit" and not entry.flush:
            ledger.held += [(owner.task.id, draft.kind, draft.body) for draft in entry.drafts]
            if entry.noted is not None:
                entry.noted(owner, ())
        else:
            return True
        return False

    def _post(self, entries: Sequence[Entry]) -> Queued | None:
        ledger, base = self.run.ledger, self.run.base
        row = None
        if ledger.flush_base(base) and ledger.run_row is not None:
            checkpoint_id = ledger.staged[-1].checkpoint_id  # from here on the run is gone on with from this row
            row = ledger.run_row = ledger.run_row._replace(input=b"", checkpoint_id=checkpoint_id)
        for entry in entries:
            task_id = entry.call.owner.task.id
            rows = [ledger.add_record(base, task_id, draft.kind, draft.body) for draft in entry.drafts]
            if entry.noted is not None:
                entry.noted(entry.call.owner, rows)
        commit = ledger.commit_of(lifecycle.RUNNING, row, silent=True)
        waits = self.run.durability != "async" or any(entry.flush for entry in entries)
        commit.flush = waits or ledger.outbox.is_due()
        for entry in entries:
            entry.commit = commit
        leads = any(self._is_settled(entry) for entry in entries)
        try:
            return ledger.outbox.post(commit, leads)
        except StoreError as error:
            ledger.outbox.fault = ledger.outbox.fault or error
            for entry in entries:
                entry.error = error
            return None

    def _land(self, entry: Entry) -> None:
        assert entry.future is not None and self.run.store is not None
        try:
            self.run.store.settle(entry.future)
        except StoreError:
            return  # `outcome_of` tells


def _tell(entries: Sequence[Entry], future: Queued | None) -> None:
    """Tell those who wait on loops when what they wait for is over."""
    waiting = [entry for entry in entries if entry.arrival is not None]
    if not waiting:
        return
    _arrive([entry.arrival for entry in waiting if entry.future is None])
    pending = [entry.arrival for entry in waiting if entry.future is not None]
    if pending and future is not None:
        future.add_done_callback(lambda _: _arrive(pending))


def _arrive(arrivals: Sequence[asyncio.Future[None] | None]) -> None:
    """Resolve these, each loop's in one turn of it."""
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for arrival in arrivals:
        assert arrival is not None
        loops.setdefault(arrival.get_loop(), []).append(arrival)
    for loop, theirs in loops.items():
        with suppress(RuntimeError):  # a closed loop: nobody waits any more
            loop.call_soon_threadsafe(_resolve, theirs)


def _resolve(arrivals: Sequence[asyncio.Future[None]]) -> None:
    for arrival in arrivals:
        if not arrival.done():
            arrival.set_result(None)


def journal_of(run: Run) -> Journal:
    """Return the run's journal, made when it is first asked for."""
    if run.journal is None:
        with _making:
            if run.journal is None:
                run.journal = Journal(run)
    return run.journal


_making = threading.Lock()
