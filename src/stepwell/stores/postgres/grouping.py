"""Which members go into one statement, and that statement: many commits at once, in one round trip.

A commit goes in where everything it writes is known beforehand, and no other of its thread is before it. What has to
look first (events, effects, items, messages, a lineage that changes) goes on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from stepwell import points
from stepwell.store import CheckpointRow, Commit, Counts
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.connections import Connection
from stepwell.stores.postgres.packing import pack_numbers, pack_rows, pack_texts
from stepwell.stores.postgres.session import LEAVE_TO_SYSTEM
from stepwell.stores.postgres.texts import loaded
from stepwell.stores.shared.member import Member
from stepwell.stores.shared.rows import run_digest
from stepwell.stores.shared.writes import DIGEST, Writes, check_stray

_THREAD = DIGEST + 1
_PARENT = CheckpointRow._fields.index("parent_seq")


class RowTypes(NamedTuple):
    """What the rows of tables are called as types, in one database."""

    threads: int
    checkpoints: int
    records: int
    runs: int


class Places:
    """Which lineage each thread that is driven here is in: while it stays there, a commit need not look."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, int]] = {}

    def stays(self, commit: Commit) -> bool:
        """Tell whether the root checkpoints of a commit are of the lineage that the thread is known to be in."""
        if commit.rows.lineages <= 1:
            return True
        known = self._of.get(commit.thread_id)
        if known is None or known[0] != commit.epoch:
            return not any(row.namespace == "" for row in commit.rows.checkpoints)
        return all(row.lineage == known[1] for row in commit.rows.checkpoints if row.namespace == "")

    def note(self, thread_id: str, epoch: int, lineages: int, checkpoints: Sequence[CheckpointRow]) -> None:
        """Take note of where a thread is now."""
        if lineages > 1:
            for row in checkpoints:
                if row.namespace == "":
                    self._of[thread_id] = (epoch, row.lineage)

    def forget(self, thread_id: str) -> None:
        """A thread that is not driven here any more needs no note."""
        self._of.pop(thread_id, None)


def is_plain(member: Member, writes: Writes, places: Places) -> bool:
    """Tell whether all that a member writes is known beforehand."""
    work = member.work
    if type(work) is not Commit or work.consumed or work.items or any(work.rows[5:]):
        return False
    return writes.knows(work) and places.stays(work)


def waves(batch: Sequence[Member], writes: Writes, places: Places) -> Iterator[list[Member]]:
    """Yield the members in turns that keep the order of each thread: plain ones together, any other alone."""
    left = list(batch)
    while left:
        wave: list[Member] = []
        behind: list[Member] = []
        seen: set[str] = set()
        for member in left:
            thread_id = member.work.thread_id
            if thread_id in seen or not is_plain(member, writes, places):
                behind.append(member)
            else:
                wave.append(member)
            seen.add(thread_id)
        if not wave:
            wave = [behind.pop(0)]
        left = behind
        yield wave


class Group:
    """The commits of a wave, as one statement."""

    def __init__(self, members: Sequence[Member], writes: Writes, types: RowTypes) -> None:
        self.members = members
        threads, seen, writers = [], [], []
        checkpoints: list[Sequence[Any]] = []
        records: list[Sequence[Any]] = []
        runs: list[Sequence[Any]] = []
        self.sizes = []
        for member in members:
            work = member.work
            assert isinstance(work, Commit)
            fence = writes.fence(work)
            member.sealed = fence[DIGEST]
            threads.append(fence[:_THREAD])
            seen.append(fence[_THREAD])
            writers.append(fence[_THREAD + 1])
            check_stray(work.thread_id, work.rows, work.run)
            checkpoints += work.rows.checkpoints
            records += work.rows.records
            if work.run is not None:
                columns = (*work.run, work.epoch)
                runs.append((*columns, run_digest(columns)))
            self.sizes.append(_size(work))
        self._given = (
            pack_rows(types.threads, threads),
            pack_numbers(seen),
            pack_texts(writers),
            fence[-1],
            pack_rows(types.checkpoints, checkpoints, _PARENT),
            pack_rows(types.records, records),
            pack_rows(types.runs, runs),
        )
        self.flush = any(getattr(member.work, "flush", False) for member in members)

    def send(self, connection: Connection, schema: str) -> tuple[dict[str, bool], float | None]:
        """Run the statement; return the threads whose rows were free, each with whether its commit landed, and the
        database's time. One round trip."""
        cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        statement = sql.query("commit", schema)
        points.reach(points.BEGUN)
        points.reach(points.FENCED)
        points.reach(points.WRITTEN)
        if self.flush:
            cursor.execute(statement, self._given, prepare=False, binary=True)
        else:
            with connection.pipeline():
                connection.execute(sql.BEGIN, prepare=False)
                connection.execute(LEAVE_TO_SYSTEM, prepare=False)
                cursor.execute(statement, self._given, prepare=False, binary=True)
                connection.execute(sql.COMMIT, prepare=False)
        found = cursor.fetchall()
        return {loaded(thread_id): landed for thread_id, landed, _ in found}, found[0][2] if found else None

    def count(self, counts: Counts) -> None:
        """Count what it cost, for the store and for whoever asked: a commit is one statement."""
        counts.transactions += 1
        counts.statements += 1
        counts.bytes += sum(self.sizes)
        counts.syncs += self.flush
        for member, size in zip(self.members, self.sizes, strict=True):
            cost = getattr(member.work, "cost", None)
            if cost is not None:
                cost.transactions += 1
                cost.statements += 1
                cost.bytes += size
                cost.syncs += self.flush


def _size(work: Commit) -> int:
    size = sum(len(row.body) + len(row.metadata.encode()) for row in work.rows.checkpoints)
    return size + sum(len(row.body) for row in work.rows.records) + (len(work.run.input) if work.run else 0)
