"""Commits on their way to the store: what `sync` waits for, what `async` leaves behind, how far all has landed.

`exit` sends nothing before the run ends, so it needs no rule here. What is in a commit is the ledger's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING

from stepwell.errors import LeaseLostError, StoreError
from stepwell.runtime.requests import Blocking, Settle, Write
from stepwell.store import NO_DIGEST, Commit, Queued

if TYPE_CHECKING:
    from stepwell.runtime.run import Run

FLUSH_SECONDS = 0.25
"""In `async` durability: a commit that comes this long after the last one that reached the disk waits for the disk."""


class Sent(Write):
    """A write whose outbox takes note of it when it has landed."""

    __slots__ = ("_outbox",)

    def __init__(self, commit: Commit, outbox: Outbox) -> None:
        self.commit, self._outbox = commit, outbox

    def __await__(self) -> Generator[Write, None, None]:
        yield self
        self._outbox.note_landed(self.commit)


class Outbox:
    """The commits of one run, in order."""

    __slots__ = (
        "_ahead",
        "_broken",
        "_flushed_at",
        "_flying",
        "_run",
        "_struck",
        "checkpoint_id",
        "fault",
        "landed",
        "queued_seq",
    )

    def __init__(self, run: Run) -> None:
        self._run = run
        self._flushed_at = run.clock.monotonic()
        self._ahead: tuple[Queued, Commit] | None = None
        """The write that was queued last and not waited for."""
        self._struck: Commit | None = None
        """The write that is being waited for. One still here when an exception passes may have landed, or not."""
        self._flying: deque[tuple[Queued, Commit]] = deque()
        """Writes that were queued in order with those of other threads, and not seen to land yet."""
        self._broken: Commit | None = None
        """The first posted write that an interruption struck: it may have landed, or not."""
        self.fault: StoreError | None = None
        """What a write from inside a node failed with: the run is at its end."""
        self.queued_seq = 0
        """The head the store has, or will have when everything queued has landed."""
        self.landed = (0, NO_DIGEST)
        """The head (seq, digest) to go back to when a write fails."""
        self.checkpoint_id = ""
        """The newest checkpoint of this run that has landed after its admission."""

    def start_from(self, head_seq: int, head_digest: bytes) -> None:
        """Take this head as what the store has."""
        self.queued_seq = head_seq
        self.landed = (head_seq, head_digest)

    def go_back(self) -> tuple[int, bytes]:
        """After a write failed, and all others are over: leave what came behind it; return the head the store has."""
        if self._ahead is not None and self._ahead[0].exception() is None:
            self._note_head(self._ahead[1])
        self._struck = self._broken = self._ahead = self.fault = None
        self.queued_seq = self.landed[0]
        return self.landed

    # -- beside other threads: the ledger's lock is held ---------------------------------------------------------------

    def post(self, commit: Commit, leads: bool) -> Queued | None:
        """Queue a write behind everything queued so far, also by other threads. Return the future to wait for, or None
        where it is written. `leads` says that the caller goes on to settle it."""
        self.note_flown()
        store = self._run.store
        assert store is not None
        self.queued_seq = commit.rows.head_seq
        if not store.blocking:
            self._broken = self._broken or commit  # until it is known
            store.commit(commit)
            self._broken = None
            self._note_head(commit)
            return None
        future = store.queue(commit, not leads)
        self._flying.append((future, commit))
        return future

    def note_flown(self) -> None:
        """Take note of the posted writes that are over."""
        while self._flying and self._flying[0][0].done():
            future, commit = self._flying.popleft()
            error = future.exception()
            if error is None:
                self._note_head(commit)
            elif not isinstance(error, StoreError):
                self._broken = self._broken or commit
            elif self.fault is None:
                error = self._cause(error)
                self.fault = (
                    error if self._broken is None else StoreError(f"A write before it was interrupted: {error}")
                )

    def _cause(self, error: StoreError) -> StoreError:
        """Return what a posted write failed with or, where the fence kept it out because the write that is ahead had
        failed, what that one failed with."""
        if isinstance(error, LeaseLostError) and self._ahead is not None and self._ahead[0].done():
            before = self._ahead[0].exception()
            return before if isinstance(before, StoreError) else error
        return error

    def last_flying(self) -> Queued | None:
        """Return the newest posted write that is not known to be over."""
        return self._flying[-1][0] if self._flying else None

    # -- the run's own -----------------------------------------------------------------------------------------------

    def send(self, commit: Commit) -> Awaitable[None] | None:
        """Write a commit as the mode says; return what is left to await for that, or None where it is done."""
        self.queued_seq = commit.rows.head_seq
        if self._run.durability == "async":
            return self._leave_behind(commit)
        self._struck = commit
        if not self._run.port.write(commit):
            return Sent(commit, self)
        self.note_landed(commit)
        return None

    async def write(self, commit: Commit) -> None:
        """Write a commit and wait for it, whatever the mode."""
        self.queued_seq = commit.rows.head_seq
        self._struck = commit
        await self.settle()
        await Sent(commit, self)

    async def settle(self) -> None:
        """Wait for the write that is ahead, if one is, and for those posted beside it. Raises what they failed with."""
        await self.land()
        self._note_ahead()
        if self.fault is not None:
            raise self.fault

    async def land(self) -> None:
        """Wait until every write that was queued is over."""
        if self._ahead is not None:
            with suppress(StoreError):
                await Settle(self._ahead[0])
        lock = self._run.ledger.lock
        while (last := self.last_flying()) is not None:
            with suppress(StoreError):
                await Settle(last)
            with lock:
                self.note_flown()

    async def make_sure(self) -> None:
        """After an interruption: bring the write that it struck to its end, so that what was finished is kept."""
        await self.settle()
        for commit in (self._broken, self._struck):
            if commit is not None:
                await self._bring(commit)

    async def _bring(self, commit: Commit) -> None:
        if await Blocking(lambda: self._is_open(commit)):
            await Sent(commit, self)
        else:
            self.note_landed(commit)

    def _is_open(self, commit: Commit) -> bool:
        """Tell whether a commit is still to land. LeaseLostError where it cannot any more."""
        assert self._run.store is not None
        with self._run.store.reading() as reader:
            thread = reader.thread(commit.thread_id)
        if thread is None or thread.epoch != commit.epoch:
            raise LeaseLostError(thread_id=commit.thread_id, run_id=commit.run_id, epoch=commit.epoch)
        return (thread.run_id, thread.head_seq) == (commit.run_id, commit.seen_seq)

    def note_landed(self, commit: Commit) -> None:
        """Take note of the run's own write, which has landed."""
        self._struck = self._broken = None
        self._note_head(commit)
        if self._run.tell is not None:
            self._run.tell.publish()

    def _note_head(self, commit: Commit) -> None:
        if commit.rows.head_seq > self.landed[0]:
            self.landed = commit.rows[:2]
        if commit.items and self._run.items is not None:
            self._run.items.landed(commit.items)
        if commit.rows.checkpoints:
            self.checkpoint_id = commit.rows.checkpoints[-1].checkpoint_id

    # -- async: at most one ahead ------------------------------------------------------------------------------------

    def _leave_behind(self, commit: Commit) -> Awaitable[None] | None:
        """Queue a write. The one before is over first, or raises what it failed with."""
        commit.flush = self.is_due()
        self._struck = commit
        if self._ahead is not None and not self._ahead[0].done():
            return self._after_the_last(commit)
        self._note_ahead()
        self._enqueue(commit)
        return None

    def is_due(self) -> bool:
        """Tell whether it is time that a commit waits for the disk."""
        now = self._run.clock.monotonic()
        if now - self._flushed_at < FLUSH_SECONDS:
            return False
        self._flushed_at = now
        return True

    async def _after_the_last(self, commit: Commit) -> None:
        await self.settle()
        self._enqueue(commit)

    def _enqueue(self, commit: Commit) -> None:
        future = self._run.port.enqueue(commit)
        if future is None:
            self.note_landed(commit)
            return
        self._struck, self._ahead = None, (future, commit)
        if commit.items and self._run.items is not None:
            self._run.items.landing(future, commit.items)
        if self._run.tell is not None:
            self._run.tell.publish()

    def _note_ahead(self) -> None:
        """Take note of the write that was ahead and is over; raises what it failed with."""
        if self._ahead is not None:
            future, commit = self._ahead
            if (error := future.exception()) is not None:
                with self._run.ledger.lock:
                    self.note_flown()  # the fence keeps out what was queued behind a write that failed
                raise self.fault or error
            self._ahead = None
            self._note_head(commit)
