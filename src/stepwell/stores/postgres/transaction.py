"""Batches of members, written: plain claims and commits together, every other member as a transaction of its own.

Called by the leader, who holds the lock; a connection is taken for each transaction. An error that the server says
undid the transaction. Where the connection is lost instead, nobody knows: `recovery.py` looks. A member whose thread's
row another transaction has is put off, so that it stalls nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.errors import LockNotAvailable

from stepwell import points
from stepwell.clock import Clock
from stepwell.errors import DatabaseUnavailableError
from stepwell.store import Claim, Commit, Counts, Deletion, Pruning, Repair
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection, Connections
from stepwell.stores.postgres.damage import is_lost
from stepwell.stores.postgres.group import Group, RowTypes
from stepwell.stores.postgres.grouping import Places, is_plain, waves
from stepwell.stores.postgres.leases import LeaseClock
from stepwell.stores.postgres.recovery import Recovery
from stepwell.stores.postgres.refusals import PASSING, refused
from stepwell.stores.postgres.session import Session, understands_rows
from stepwell.stores.postgres.stragglers import Stragglers
from stepwell.stores.shared.applying import apply
from stepwell.stores.shared.charging import charging
from stepwell.stores.shared.member import Member, Renewal
from stepwell.stores.shared.statements import Statements
from stepwell.stores.shared.writes import Writes

ATTEMPTS = 3


class Busy(Exception):
    """Another transaction has the row of the member's thread."""


class Transactions:
    """The batches of one store. Not thread-safe: the leader's."""

    def __init__(self, connections: Connections, schema: str, clock: Clock | None, counts: Counts) -> None:
        self._connections, self._schema, self._counts = connections, schema, counts
        self._injected = clock
        self._types: RowTypes | None = None
        self._sent: Group | None = None
        self._database: tuple[object, ...] | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.clock = LeaseClock(self._injected)
        nowhere = Statements(lambda name: sql.query(name, self._schema), _nowhere, _nowhere, _nowhere)
        self._writes = Writes(nowhere, self.clock.leases(), self._counts)
        self._places = Places()
        self._stragglers = Stragglers(self._write_late)
        self._recovery = Recovery(self._connections, self._write_in, self._schema)

    def run(self, batch: Sequence[Member], own: Member | None) -> None:
        """Run the batch. A member still open afterwards was undone through no fault of its own: run it again."""
        if self._stragglers.any():
            batch = [member for member in batch if not self._stragglers.take_behind(member)]
        for wave in waves(batch, self._writes, self._places):
            try:
                self._run(wave)
            except BaseException as error:  # every member must be answered, whatever came
                self._settle(wave, own, error)
                if not isinstance(error, Exception):
                    return

    def now(self) -> float:
        """Return the time that leases run by."""
        if not self.clock.known:
            self._ask()
        return self.clock.now()

    def database(self) -> tuple[object, ...]:
        """Return by what this database is known among all databases."""
        if self._database is None:
            self._ask()
        assert self._database is not None
        return self._database

    def close(self) -> None:
        """Do nothing: each transaction gives its connection back."""

    def finish(self) -> None:
        """Wait for what was put off."""
        self._stragglers.join()

    def abandon(self) -> None:
        """Start anew, as another process."""
        self._begin_anew()

    # -- one transaction for many -------------------------------------------------------------------------------------

    def _run(self, wave: Sequence[Member]) -> None:
        if len(wave) == 1 and not is_plain(wave[0], self._writes, self._places):
            self._write(wave[0])
            return
        connection = self._take()
        try:
            self._learn(connection)
            assert self._types is not None
            group = Group(wave, self._writes, self._types)
            self._sent = group
            answers, now = group.send(connection, self._schema)
            self._sent = None
        except Exception as error:
            self._types = None  # as it may be another database by now
            lost = is_lost(error, connection)
            self._connections.give_back(connection)
            self._one_by_one(wave, error, lost)
            return
        except BaseException:
            connection.close()
            self._connections.give_back(connection)
            raise
        self._connections.give_back(connection)
        self._answer(group, answers, now)

    def _answer(self, group: Group, answers: dict[str, bool], now: float | None) -> None:
        group.count(self._counts)
        if now is not None:
            self.clock.told(now)
        landed = [member for member in group.members if answers.get(member.work.thread_id)]
        for member in landed:
            member.open = False
            self._note(member)
        if landed:
            points.reach(points.DURABLE)
        for member in group.members:
            if member.open:  # fenced out, or passed over: on its own it is told why, or waits
                self._write(member)

    def _one_by_one(self, wave: Sequence[Member], error: Exception, lost: bool) -> None:
        sent, self._sent = self._sent, None
        for member in wave:
            if lost and sent is not None:
                self._recovery.settle(member, error)
            else:
                self._write(member)

    def _take(self) -> Connection:
        """Take a connection; from a server that answered before, and starts again, once it does."""
        try:
            return self._connections.take()
        except DatabaseUnavailableError:
            if self._database is None:
                raise
            return self._recovery.patiently()

    def _learn(self, connection: Connection) -> None:
        """Ask a database what it must be asked once: what its rows are called, and what time it is."""
        understands_rows(connection)
        if self._types is not None and self.clock.known:
            return
        asked = connection.execute(sql.query("database", self._schema), prepare=False)
        *types, now, name, identity = asked.fetchall()[0]
        self._types = RowTypes._make(types)
        self._database = (name, identity)
        self.clock.told(now)

    def _ask(self) -> None:
        connection = self._connections.take()
        try:
            self._learn(connection)
        except psycopg.Error as error:
            lost = is_lost(error, connection)
            raise refused(error, "", self._connections.where, lost=lost) from error
        finally:
            self._connections.give_back(connection)

    # -- a transaction of its own -------------------------------------------------------------------------------------

    def _write(self, member: Member, *, wait: bool = False) -> None:
        """Write one member, and close it: landed, failed, or put off."""
        try:
            for attempt in range(ATTEMPTS):
                if self._attempt(member, wait, last=attempt == ATTEMPTS - 1):
                    break
        except Busy:
            self._stragglers.take(member)
        except LockNotAvailable as error:
            if wait:
                member.fail(refused(error, member.work.thread_id, self._connections.where))
            else:
                self._stragglers.take(member)
        except Exception as error:
            member.fail(refused(error, member.work.thread_id, self._connections.where))

    def _attempt(self, member: Member, wait: bool, last: bool) -> bool:
        """Try once; False where the same may be tried again."""
        connection, session = self._take(), None
        try:
            self._learn(connection)
            session = Session(connection, self._schema, flush=_flushes(member), patient=wait)
            with session:
                self._lock(session, member, wait)
                points.reach(points.BEGUN)
                self._write_in(session, member)
                points.reach(points.WRITTEN)
                self._counts.syncs += _flushes(member)
                session.commit()
            member.open = False
        except psycopg.Error as error:
            committing = session is not None and session.committing
            return self._after_error(member, error, lost=is_lost(error, connection), committing=committing, last=last)
        finally:
            self._connections.give_back(connection)
        self._note(member)
        points.reach(points.DURABLE)
        return True

    def _after_error(self, member: Member, error: psycopg.Error, *, lost: bool, committing: bool, last: bool) -> bool:
        """Settle a member whose transaction failed, or raise; False where the same may be tried again."""
        if lost and committing:
            self._recovery.settle(member, error)
            return True
        if lost:
            self._connections.forget_idle()
            if last:
                raise refused(error, member.work.thread_id, self._connections.where, lost=True) from error
            return False
        if last or not isinstance(error, PASSING):
            raise error
        return False

    def _lock(self, session: Session, member: Member, wait: bool) -> None:
        work = member.work
        if isinstance(work, Commit | Deletion | Pruning | Renewal | Repair) or (
            isinstance(work, Claim) and work.seen is not None
        ):
            if wait:
                session.fetch("thread_to_write", {"thread_id": work.thread_id})
            else:
                [(there, free)] = session.fetch("lock_thread", (work.thread_id,))
                if there and not free:
                    raise Busy

    def _write_in(self, session: Session, member: Member) -> None:
        """Write a member inside a transaction that was begun."""
        counted = type(member.work) is not Renewal
        self._counts.transactions += counted
        self._counts.statements += 2 * counted
        cost = getattr(member.work, "cost", None)
        writes = self._writes.on(session.statements())
        if cost is None:
            apply(writes, self._counts, member)
        else:
            with charging(cost, self._counts, _flushes(member)):
                apply(writes, self._counts, member)

    def _write_late(self, member: Member) -> None:
        self._write(member, wait=True)

    # -- afterwards ---------------------------------------------------------------------------------------------------

    def _note(self, member: Member) -> None:
        """Take note of what a write that landed says of its thread."""
        work = member.work
        if type(work) is Claim:
            if member.result is not None:
                self._writes.note(member.result)
        elif type(work) is Commit:
            if work.lease_seconds is None:
                self._writes.forget(work.thread_id)
                self._places.forget(work.thread_id)
            else:
                self._places.note(work.thread_id, work.epoch, work.rows.lineages, work.rows.checkpoints)

    def _settle(self, wave: Sequence[Member], own: Member | None, error: BaseException) -> None:
        """Answer the members of a wave that an error or an interruption struck."""
        sent, self._sent = self._sent, None
        if isinstance(error, Exception):
            failing = [member for member in wave if member.open]
        else:  # it belongs to the thread it hit
            failing = list(wave) if own is None else [own]
        for member in failing:
            member.fail(refused(error, member.work.thread_id, self._connections.where))
        for member in wave:
            if member.open and sent is not None:
                self._recovery.settle(member, error)


def _flushes(member: Member) -> bool:
    return type(member.work) is Claim or bool(getattr(member.work, "flush", False))


def _nowhere(*_: object) -> Any:
    raise AssertionError("a statement was run outside a transaction")
