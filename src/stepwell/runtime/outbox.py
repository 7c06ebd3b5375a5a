"""Commits on their way to the store: what `sync` waits for, what `async` leaves behind, how far all has landed.

`exit` sends nothing before the run ends, so it needs no rule here. What is in a commit is the ledger's.
"""

from __future__ import annotations

from collections.abc import Awaitable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from stepwell.runtime.requests import Settle, Write
from stepwell.store import NO_DIGEST, Commit

if TYPE_CHECKING:
    from stepwell.runtime.run import Run

FLUSH_SECONDS = 0.25
"""In `async` durability: a commit that comes this long after the last one that reached the disk waits for the disk."""


class Outbox:
    """The commits of one run, in order."""

    __slots__ = ("_ahead", "_flushed_at", "_run", "landed", "queued_seq")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._flushed_at = run.clock.monotonic()
        self._ahead: tuple[Future[None], tuple[int, bytes]] | None = None
        """The write that was queued last and not waited for, and the head it leaves."""
        self.queued_seq = 0
        """The head the store has, or will have when everything queued has landed."""
        self.landed = (0, NO_DIGEST)
        """The head (seq, digest) to go back to when a write fails."""

    def start_from(self, head_seq: int, head_digest: bytes) -> None:
        """Take this head as what the store has."""
        self.queued_seq = head_seq
        self.landed = (head_seq, head_digest)

    def send(self, commit: Commit) -> Awaitable[None] | None:
        """Write a commit as the mode says; return what is left to await for that, or None where it is done."""
        self.queued_seq = commit.rows.head_seq
        if self._run.durability == "async":
            return self._leave_behind(commit)
        rest = self._run.port.write(commit)
        if rest is not None:
            return self._landing(rest, commit)
        self._note_landed(commit)
        return None

    async def settle(self) -> None:
        """Wait for the write that is ahead, if one is."""
        if self._ahead is not None:
            (future, head), self._ahead = self._ahead, None
            await Settle(future)
            self.landed = head

    async def _landing(self, write: Write, commit: Commit) -> None:
        await write
        self._note_landed(commit)

    def _note_landed(self, commit: Commit) -> None:
        self.landed = commit.rows[:2]
        if self._run.tell is not None:
            self._run.tell.publish()

    # -- async: at most one ahead ------------------------------------------------------------------------------------

    def _leave_behind(self, commit: Commit) -> Awaitable[None] | None:
        """Queue a write. The one before is over first, or raises what it failed with."""
        now = self._run.clock.monotonic()
        commit.flush = now - self._flushed_at >= FLUSH_SECONDS
        if commit.flush:
            self._flushed_at = now
        if self._ahead is not None:
            future, head = self._ahead
            if not future.done():
                return self._after_the_last(commit)
            self._ahead = None
            future.result()
            self.landed = head
        self._enqueue(commit)
        return None

    async def _after_the_last(self, commit: Commit) -> None:
        await self.settle()
        self._enqueue(commit)

    def _enqueue(self, commit: Commit) -> None:
        future = self._run.port.enqueue(commit)
        if future is None:
            self.landed = commit.rows[:2]
        else:
            self._ahead = (future, commit.rows[:2])
        if self._run.tell is not None:
            self._run.tell.publish()
