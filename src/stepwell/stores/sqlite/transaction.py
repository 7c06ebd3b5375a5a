"""One batch of members as one transaction: begin, each member, commit, and what an error means for each of them.

Called by the leader, who holds the lock. A member that the fence keeps out has written nothing and drops out alone. One
that fails half-way has the batch begin anew, with a savepoint each. Before COMMIT every error means rolled back. An
error at COMMIT is unknown for all until `outcome.py` has looked. An interruption (Ctrl-C, a simulated crash) belongs to
the thread it hit: members of others run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from stepwell import points
from stepwell.clock import Clock
from stepwell.errors import CommitUnknownError, StoreError
from stepwell.store import Claim, Counts
from stepwell.stores.shared.applying import apply
from stepwell.stores.shared.charging import charging
from stepwell.stores.shared.holder import is_gone, this_process
from stepwell.stores.shared.member import Member, Renewal
from stepwell.stores.shared.statements import Leases, Statements, locked_already
from stepwell.stores.shared.unwritten import unwritten
from stepwell.stores.shared.writes import Writes
from stepwell.stores.sqlite import sql
from stepwell.stores.sqlite.connection import MEMORY, open_writer
from stepwell.stores.sqlite.damage import translated
from stepwell.stores.sqlite.outcome import find_outcome


class _UndoneAll(Exception):
    """SQLite gave the whole transaction up because of one member's error (a full disk, an I/O error)."""

    def __init__(self, member: Member, error: Exception) -> None:
        super().__init__()
        self.member, self.error = member, error


class _HalfWritten(Exception):
    """A member of a group failed after it had written: what it wrote cannot be told from what the others did."""


class Transactions:
    """The writing connection, and the batches run on it. Not thread-safe: the leader's."""

    def __init__(self, path: str, synchronous: str, clock: Clock, counts: Counts, vfs: str | None) -> None:
        self._path, self._synchronous, self._vfs = path, synchronous, vfs
        self._clock, self._counts = clock, counts
        self._chooses = path != MEMORY and synchronous == "full"
        self._committing = False
        self._abandoned: tuple[object, ...] = ()
        self.connection: apsw.Connection | None = None
        self._open(create=True)

    def _open(self, *, create: bool = False) -> None:
        self.connection = open_writer(self._path, self._synchronous, self._vfs, create=create)
        cursor = self.connection.cursor()  # one: a statement read half-way on another would hold its snapshot
        self._execute = cursor.execute
        self._full: bool | None = True
        boot_id = self._clock.boot_id()
        now, holder = self._clock.boottime, this_process(boot_id)
        leases = Leases(holder, now, now, lambda holder: is_gone(holder, boot_id))
        self._on = Statements(sql.query, cursor.execute, self.connection.changes, locked_already)
        self._writes = Writes(self._on, leases, self._counts)

    def opened(self) -> apsw.Connection:
        """Return the connection; the caller holds the lock."""
        if self.connection is None:
            self._open()
        assert self.connection is not None
        return self.connection

    def limit(self, max_bytes: int) -> None:
        """Have SQLite refuse, as on a full disk, what would make the database larger than this."""
        assert self.connection is not None
        self.connection.pragma("max_page_count", max(1, max_bytes // self.connection.pragma("page_size")))

    def close(self) -> None:
        """Close the connection. The last one to close a file folds its log into it."""
        if self.connection is not None:
            self.connection.close(True)
            self.connection = None

    def abandon(self) -> None:
        """Leave the connection, if it is open, to the process this one was forked from: unclosed, unfinalized."""
        if self.connection is not None:
            self._abandoned = (*self._abandoned, self.connection, self._execute, self._writes)
            self.connection = None

    def run(self, batch: Sequence[Member], own: Member | None) -> None:
        """Run the batch. A member still open afterwards was undone through no fault of its own: run it again."""
        try:
            self._transact(batch)
        except BaseException as error:  # every member must be answered, whatever came
            self._settle(batch, own, error)

    def _transact(self, batch: Sequence[Member]) -> None:
        if self.connection is None:
            self._open()
        if self._chooses:
            self._choose_sync(batch)
        try:
            self._write_and_commit(batch, self._apply_each if len(batch) > 1 else self._apply_alone)
        except _HalfWritten:
            self._undo()
            self._write_and_commit([member for member in batch if member.open], self._apply_each_undoable)

    def _write_and_commit(self, batch: Sequence[Member], apply: Callable[[Sequence[Member]], None]) -> None:
        execute, counted = self._execute, self._count(batch)
        self._counts.statements += counted
        execute(sql.BEGIN_WRITE)
        points.reach(points.BEGUN)
        apply(batch)
        points.reach(points.WRITTEN)
        self._counts.statements += counted
        self._committing = True
        execute(sql.COMMIT)
        self._committing = False
        for member in batch:
            member.open = False
        points.reach(points.DURABLE)

    def _choose_sync(self, batch: Sequence[Member]) -> None:
        """Have COMMIT wait for the disk, unless nobody in the batch needs that: renewals and unflushed commits."""
        full = any(type(member.work) is Claim or getattr(member.work, "flush", False) for member in batch)
        if full is not self._full:
            self._full = None  # until it is known: an interruption may strike between the lines
            self._execute(sql.WAIT_FOR_DISK if full else sql.LEAVE_TO_SYSTEM)
            self._full = full
        self._counts.syncs += full

    def _count(self, batch: Sequence[Member]) -> int:
        """Count the transaction, unless it only renews: renewals are counted apart. Return 1 if it counts."""
        for member in batch:
            if type(member.work) is not Renewal:
                self._counts.transactions += 1
                return 1
        return 0

    def _apply(self, member: Member) -> None:
        cost = getattr(member.work, "cost", None)
        if cost is None:
            return apply(self._writes, self._counts, member)
        with charging(cost, self._counts, bool(self._chooses and self._full)):
            return apply(self._writes, self._counts, member)

    def _apply_alone(self, batch: Sequence[Member]) -> None:
        self._apply(batch[0])

    def _apply_each(self, batch: Sequence[Member]) -> None:
        for member in batch:
            assert self.connection is not None
            before = self.connection.total_changes()
            try:
                self._apply(member)
            except Exception as error:
                if self.connection is None or not self.connection.in_transaction:
                    raise _UndoneAll(member, error) from error
                if self.connection.total_changes() != before:
                    raise _HalfWritten from error
                member.fail(translated(error, member.work.thread_id))

    def _apply_each_undoable(self, batch: Sequence[Member]) -> None:
        for member in batch:
            counted = 1 if type(member.work) is not Renewal else 0
            self._counts.statements += 2 * counted
            self._execute(sql.SAVEPOINT)
            try:
                self._apply(member)
            except Exception as error:
                if self.connection is None or not self.connection.in_transaction:
                    raise _UndoneAll(member, error) from error
                self._counts.statements += counted
                self._execute(sql.UNDO)
                member.fail(translated(error, member.work.thread_id))
            self._execute(sql.RELEASE)

    # -- after an error -----------------------------------------------------------------------------------------------

    def _settle(self, batch: Sequence[Member], own: Member | None, error: BaseException) -> None:
        committing, self._committing = self._committing, False
        undecided = [member for member in batch if member.open]
        if committing:
            self._settle_commit(undecided, error)
        else:
            self._undo()
        if isinstance(error, _UndoneAll):
            _fail([error.member], error.error)
        elif isinstance(error, Exception) and undecided:
            _fail([member for member in undecided if member.open], error)
        else:  # it belongs to the thread it hit, or came after the commit
            _fail(batch if own is None else [own], error)

    def _undo(self) -> None:
        if self.connection is None or not self.connection.in_transaction:
            return
        self._counts.statements += 1
        try:
            self._execute(sql.ROLLBACK)
        except apsw.Error:
            self._discard()

    def _settle_commit(self, members: Sequence[Member], error: BaseException) -> None:
        """Find out what an error at COMMIT meant, and close each member accordingly."""
        try:
            landed = self._look(members, error)
        except Exception as second:  # whatever kept us from looking, the outcome is unknown
            landed, error = None, second
        for member in members:
            thread_id = member.work.thread_id
            if landed:
                member.open = False
            elif landed is None:
                told = None if thread_id else f"The store could not say whether items landed: {error}. Read them again."
                member.fail(_caused(CommitUnknownError(told, thread_id=thread_id, reason=str(error)), error))
            else:
                reason = f"The commit failed ({error}). {unwritten(thread_id)}"
                member.fail(_caused(StoreError(reason, thread_id=thread_id), error))

    def _look(self, members: Sequence[Member], error: BaseException) -> bool | None:
        if self._path == MEMORY:
            self._undo()
        else:
            self._discard()
            self._open()
        assert self.connection is not None
        return find_outcome(self.connection, self._on, members, error)

    def _discard(self) -> None:
        if self.connection is None or self._path == MEMORY:  # memory lives in the connection: it is kept
            return
        connection, self.connection = self.connection, None
        try:
            connection.close(True)
        except apsw.Error:
            self._abandoned = (*self._abandoned, connection)  # kept, so that nothing tries again


def _fail(members: Sequence[Member], error: BaseException) -> None:
    for member in members:
        member.fail(translated(error, member.work.thread_id))


def _caused(error: StoreError, cause: BaseException) -> StoreError:
    error.__cause__ = cause
    return error
