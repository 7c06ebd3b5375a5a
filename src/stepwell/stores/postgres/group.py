"""A transaction of many members: claims as one statement, commits as one, in one round trip.

Every row is packed beforehand. A member that its statement passes over or keeps out drops out alone: it is known by its
thread's absence from the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from stepwell import points
from stepwell.store import CheckpointRow, Claim, Commit, Counts, Rows, RunRow
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection
from stepwell.stores.postgres.packing import pack_numbers, pack_rows, pack_texts
from stepwell.stores.postgres.pipelined import Pipelined
from stepwell.stores.postgres.session import LEAVE_TO_SYSTEM
from stepwell.stores.postgres.texts import loaded
from stepwell.stores.shared.member import Member
from stepwell.stores.shared.rows import run_digest, thread_digest
from stepwell.stores.shared.writes import DIGEST, Writes, check_stray

_THREAD = DIGEST + 1
_PARENT = CheckpointRow._fields.index("parent_seq")
NOT_THERE = -1
"""The head of a thread that a claim is to open."""


class RowTypes(NamedTuple):
    """What the rows of tables are called as types, in one database."""

    threads: int
    checkpoints: int
    records: int
    runs: int


class Group:
    """The members of a wave, as one transaction."""

    def __init__(self, members: Sequence[Member], writes: Writes, types: RowTypes) -> None:
        self.members = members
        claims = [member for member in members if type(member.work) is Claim]
        commits = [member for member in members if type(member.work) is not Claim] if claims else members
        self._statements: list[tuple[str, tuple[Any, ...]]] = []
        if claims:
            self._statements.append(("admit", _admission(claims, writes, types)))
        if commits:
            self._statements.append(("commit", _commit(commits, writes, types)))
        self.flush = bool(claims) or any(getattr(member.work, "flush", False) for member in commits)

    def send(self, connection: Connection, schema: str) -> tuple[dict[str, bool], float | None]:
        """Run the statements; return the threads whose rows were free, each with whether its write landed, and the
        database's time. One round trip."""
        points.reach(points.BEGUN)
        points.reach(points.FENCED)
        points.reach(points.WRITTEN)
        cursors = [psycopg.RawCursor(connection, row_factory=tuple_row) for _ in self._statements]
        if self.flush and len(cursors) == 1:
            self._execute(cursors, schema)
        else:
            with Pipelined(connection):
                connection.execute(sql.BEGIN, prepare=False)
                if not self.flush:
                    connection.execute(LEAVE_TO_SYSTEM, prepare=False)
                self._execute(cursors, schema)
                connection.execute(sql.COMMIT, prepare=False)
        found = [row for cursor in cursors for row in cursor.fetchall()]
        return {loaded(thread_id): landed for thread_id, landed, _ in found}, found[0][2] if found else None

    def _execute(self, cursors: Sequence[psycopg.RawCursor[Any]], schema: str) -> None:
        for cursor, (name, given) in zip(cursors, self._statements, strict=True):
            cursor.execute(sql.query(name, schema), given, prepare=False, binary=True)

    def count(self, counts: Counts) -> None:
        """Count what it cost, for the store and for whoever asked: each member is one statement to who asked."""
        counts.transactions += 1
        counts.statements += len(self._statements)
        counts.syncs += self.flush
        for member in self.members:
            work = member.work
            assert isinstance(work, Claim | Commit)
            size = _size(work.rows, work.run)
            counts.bytes += size
            if work.cost is not None:
                work.cost.transactions += 1
                work.cost.statements += 1
                work.cost.bytes += size
                work.cost.syncs += self.flush


class _Packing:
    """The rows that members of one kind bring."""

    def __init__(self, types: RowTypes) -> None:
        self._types = types
        self._checkpoints: list[Sequence[Any]] = []
        self._records: list[Sequence[Any]] = []
        self._runs: list[Sequence[Any]] = []

    def add(self, rows: Rows, run: RunRow | None, epoch: int) -> None:
        self._checkpoints += rows.checkpoints
        self._records += rows.records
        if run is not None:
            self.add_run(run, epoch)

    def add_run(self, run: RunRow, epoch: int) -> None:
        columns = (*run, epoch)
        self._runs.append((*columns, run_digest(columns)))

    def packed(self) -> tuple[Any, ...]:
        """Return checkpoints, records and runs."""
        types = self._types
        return (
            pack_rows(types.checkpoints, self._checkpoints, _PARENT),
            pack_rows(types.records, self._records),
            pack_rows(types.runs, self._runs),
        )


def _commit(members: Sequence[Member], writes: Writes, types: RowTypes) -> tuple[Any, ...]:
    """Return what `commit.sql` is given."""
    threads, seen, writers = [], [], []
    rows = _Packing(types)
    for member in members:
        work = member.work
        assert isinstance(work, Commit)
        fence = writes.fence(work)
        member.sealed = fence[DIGEST]
        threads.append(fence[:_THREAD])
        seen.append(fence[_THREAD])
        writers.append(fence[_THREAD + 1])
        check_stray(work.thread_id, work.rows, work.run)
        rows.add(work.rows, work.run, work.epoch)
    return (pack_rows(types.threads, threads), pack_numbers(seen), pack_texts(writers), fence[-1], *rows.packed())


def _admission(members: Sequence[Member], writes: Writes, types: RowTypes) -> tuple[Any, ...]:
    """Return what `admit.sql` is given."""
    threads, seen, dead, shapes = [], [], [], {}
    rows = _Packing(types)
    for member in members:
        work = member.work
        assert isinstance(work, Claim)
        check_stray(work.thread_id, work.rows, work.run, work.ended)
        row = member.result = writes.claimed(work)
        member.sealed = thread_digest(row)
        threads.append((*row, member.sealed))
        seen.append(NOT_THERE if work.seen is None else work.seen.head_seq)
        if work.seen is not None:
            if writes.is_dead(work.seen):
                dead.append(work.thread_id)
            if work.ended is not None:
                rows.add_run(work.ended, work.seen.epoch)
        rows.add(work.rows, work.run, row.epoch)
        if work.shape is not None:
            shapes[work.shape.fingerprint] = work.shape.shape
    given = (pack_rows(types.threads, threads), pack_numbers(seen), pack_texts(dead), writes.asked())
    return (*given, *rows.packed(), pack_texts(tuple(shapes)), pack_texts(tuple(shapes.values())))


def _size(rows: Rows, run: RunRow | None) -> int:
    size = sum([len(row.body) + len(row.metadata.encode()) for row in rows.checkpoints])
    return size + sum([len(row.body) for row in rows.records]) + (len(run.input) if run is not None else 0)
