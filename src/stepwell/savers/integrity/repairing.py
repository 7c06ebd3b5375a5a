"""A damaged thread goes on from its last good checkpoint, as a recorded fork: one transaction, and nothing is deleted.

Checkpoints, records and events stay as they are, damaged or not. What says how things stand (the thread's own row, its
lineages, runs, effects and messages) is made anew where it is damaged. A record on the fork says who repaired, when and
why, what was left behind, and what stood in the rows that were made anew. Not here: what is wrong (`examining.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepwell import points
from stepwell.clock import Clock
from stepwell.errors import (
    CannotRepairError,
    InvalidConfigError,
    NothingToRepairError,
    ThreadBusyError,
    UnknownCheckpointError,
    UnknownThreadError,
)
from stepwell.ids import Ids
from stepwell.runtime.again import Moved, until_written
from stepwell.runtime.effects.resolving import this_user
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.snapshot import config_at
from stepwell.savers.integrity.effects_anew import Untold, effects_anew
from stepwell.savers.integrity.examining import Examination, as_left, examine
from stepwell.savers.integrity.remaking import (
    Anew,
    known_epochs,
    lineages_anew,
    messages_anew,
    remade,
    runs_anew,
)
from stepwell.store import (
    DELETED,
    CheckpointRow,
    LineageRow,
    RawRow,
    Reader,
    RecordRow,
    Repair,
    Rows,
    Store,
    ThreadRow,
)
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.going_on import going_on
from stepwell.superstep.repaired import Remade, Repaired, encode_repaired

LARGEST = 2**63 - 3
"""The last seq that leaves room for the two rows of a repair."""


@dataclass(frozen=True, slots=True)
class RepairedThread:
    """What a repair has done. It is durable."""

    config: Mapping[str, Any]
    """The checkpoint with which the thread goes on, the first one of a new lineage."""
    lineage: int
    repaired_from: str
    """The checkpoint that it was forked from."""
    left_behind: tuple[str, ...]
    """What stays damaged where it is, one sentence each. Nothing depends on it any more."""
    made_anew: tuple[tuple[str, str], ...]
    """Table and place of each row that was damaged and is now told anew."""


def repair(
    store: Store, thread_id: str, wanted: str | None, by: str | None, reason: str, clock: Clock, ids: Ids
) -> RepairedThread:
    """Go on with a damaged thread from the checkpoint `wanted`, or from the last good one."""
    who = this_user() if by is None else by
    for name, given in (("by", who), ("reason", reason)):
        if not isinstance(given, str):
            raise InvalidConfigError(reason=f"{name} is a text, not {given!r}", key=name)

    def attempt() -> RepairedThread:
        with store.reading() as reader:
            written, told = _Composing(store, reader, thread_id, clock.now()).composed(wanted, who, reason, ids.new())
        points.reach(points.REPAIR_READ)
        if not store.repair(written):
            raise Moved
        return told

    return until_written(thread_id, attempt)


class _Composing:
    """The repair of one thread, from one snapshot."""

    def __init__(self, store: Store, reader: Reader, thread_id: str, now: int) -> None:
        self._store, self._reader = store, reader
        self._thread_id, self._now = thread_id, now
        stored = reader.raw_rows(thread_id, "threads")
        self._stored: RawRow | None = stored[0] if stored else None
        self._is_sound = self._stored is not None and self._stored.fault is None
        self._runs = reader.raw_rows(thread_id, "runs")

    def composed(self, wanted: str | None, by: str, reason: str, checkpoint_id: str) -> tuple[Repair, RepairedThread]:
        """Return what is to be written, and what it means. Raises what says that this thread cannot be repaired so."""
        found = self._examined()
        target = self._target(found, wanted)
        self._check(found, target.checkpoint_id)
        seq, lineage = self._next_seq(found), self._next_lineage()
        epoch = self._epoch()
        runs = runs_anew(self._reader, self._thread_id, epoch, self._now)
        messages = messages_anew(self._reader, self._thread_id, seq + 1, self._now)
        lineages = lineages_anew(self._reader, self._thread_id, lineage)
        effects = self._effects(target.checkpoint_id)
        kept = [*self._own_row(), *(each for anew in (lineages, runs, messages, effects) for each in anew.remade)]
        said = Repaired(by, reason, target.seq, as_left(found.faults), tuple(kept))
        fork = self._fork(target, seq, lineage, checkpoint_id)
        record = self._record(fork, said)
        planned = layout.open_checkpoint(target.body, row_name(target)).next
        status = lifecycle.PAUSED if planned else lifecycle.FINISHED
        thread = ThreadRow(
            *(self._thread_id, target.graph_id, status, epoch, "", "", 0.0),
            *(record.seq, record.digest, lineage + 1, self._now),
        )
        written = Repair(
            thread=thread,
            seen=None if self._stored is None else (self._stored.columns["digest"],),
            rows=Rows(record.seq, record.digest, lineage + 1, [fork], [record], (), effects.rows),
            lineages=[*lineages.rows, LineageRow(self._thread_id, lineage, target.lineage, target.seq, seq)],
            runs=runs.rows,
            messages=messages.rows,
            removed=[*effects.removed, *messages.removed],
        )
        return written, self._told(found, target, lineage, checkpoint_id, kept)

    def _examined(self) -> Examination:
        columns = {} if self._stored is None else self._stored.columns
        if self._is_sound and columns["status"] == DELETED:
            raise UnknownThreadError(thread_id=self._thread_id)
        found = examine(self._reader, self._thread_id)
        if self._stored is None and not found.faults:
            raise UnknownThreadError(thread_id=self._thread_id)
        self._refuse_if_held(columns)
        if found.is_sound:
            raise NothingToRepairError(thread_id=self._thread_id)
        return found

    def _refuse_if_held(self, columns: Mapping[str, Any]) -> None:
        """Raise ThreadBusyError where the thread's row says that a run is going on, as far as it can be read, and the
        run's own row agrees."""
        row = ThreadRow(*(columns.get(name) for name in ThreadRow._fields))  # type: ignore[arg-type]
        readable = all(isinstance(each, str) for each in (row.run_id, row.holder)) and row.lease_until is not None
        if not readable or not self._store.is_held(row):
            return
        ended = [run for run in self._runs if run.fault is None and run.columns["run_id"] == row.run_id]
        if self._is_sound or not ended or ended[0].columns["status"] == lifecycle.RUNNING:
            raise ThreadBusyError(thread_id=self._thread_id, holder=row.holder, run_id=row.run_id, expires_in=0.0)

    def _target(self, found: Examination, wanted: str | None) -> CheckpointRow:
        chosen = found.last_good if wanted is None else wanted
        if chosen is None:
            raise self._cannot(found, "it", "no checkpoint of it can be read. Restore it from a backup, or delete it")
        standing = next((each for each in found.checkpoints if each.checkpoint_id == chosen), None)
        if standing is None:
            raise UnknownCheckpointError(thread_id=self._thread_id, checkpoint_id=chosen)
        if standing.fault is not None:
            raise self._cannot(found, chosen, standing.fault)
        return self._reader.checkpoints(self._thread_id, [standing.seq])[0]

    def _check(self, found: Examination, chosen: str) -> None:
        """Refuse what no fork mends: rows of the whole thread that cannot be told anew."""
        records = self._reader.raw_rows(self._thread_id, "records")
        whole = {row.columns["seq"] for row in records if row.columns["base_seq"] == 0}
        for fault in found.faults:
            if fault.table == "keys":
                raise self._cannot(found, chosen, f"{fault}. Restore that row from a backup")
            if fault.table == "records" and fault.place.isdecimal() and int(fault.place) in whole:
                raise self._cannot(found, chosen, f"{fault}, which is of the whole thread. Restore it from a backup")

    def _effects(self, chosen: str) -> Anew:
        try:
            return effects_anew(self._store, self._reader, self._thread_id, self._now)
        except Untold as error:
            told = f"{error}. Restore the row from a backup"
            raise CannotRepairError(
                thread_id=self._thread_id, checkpoint_id=chosen, reason=told, sound="none"
            ) from None

    def _cannot(self, found: Examination, chosen: str, reason: str) -> CannotRepairError:
        good = ", ".join(each.checkpoint_id for each in found.checkpoints[::-1] if each.is_good) or "none"
        return CannotRepairError(thread_id=self._thread_id, checkpoint_id=chosen, reason=reason, sound=good)

    # -- numbers that nobody has had ----------------------------------------------------------------------------------

    def _next_seq(self, found: Examination) -> int:
        seqs = [
            row.columns["seq"]
            for table in ("checkpoints", "records")
            for row in self._reader.raw_rows(self._thread_id, table)
        ]
        known = [seq for seq in seqs if seq is not None]
        if self._is_sound and self._stored is not None:
            known.append(self._stored.columns["head_seq"])
        last = max(known, default=0)
        if last > LARGEST:
            raise self._cannot(found, "any checkpoint", f"a damaged row has the seq {last}, and nothing comes after it")
        return last + 1

    def _next_lineage(self) -> int:
        if self._is_sound and self._stored is not None:
            return int(self._stored.columns["lineages"])
        rows = [
            row
            for table in ("checkpoints", "lineages")
            for row in self._reader.raw_rows(self._thread_id, table)
            if row.fault is None
        ]
        return 1 + max((row.columns["lineage"] for row in rows), default=-1)

    def _epoch(self) -> int:
        if self._is_sound and self._stored is not None:
            return int(self._stored.columns["epoch"]) + 1
        return 1 + max([0, *known_epochs(self._runs), *known_epochs(self._reader.raw_rows(self._thread_id, "effects"))])

    # -- what is written ----------------------------------------------------------------------------------------------

    def _own_row(self) -> list[Remade]:
        return [] if self._stored is None or self._is_sound else [remade("threads", "", self._stored)]

    def _fork(self, target: CheckpointRow, seq: int, lineage: int, checkpoint_id: str) -> CheckpointRow:
        return self._store.sealer.checkpoint(
            (
                *(self._thread_id, "", lineage, seq, checkpoint_id, target.seq, target.digest, target.step + 1, "fork"),
                *("", target.graph_id, target.version, target.fingerprint, self._now, "", fork_body(target, seq)),
            )
        )

    def _record(self, fork: CheckpointRow, said: Repaired) -> RecordRow:
        place = self._thread_id, "", fork.lineage, fork.seq + 1, fork.seq, fork.digest
        row = RecordRow(*place, 0, lifecycle.REPAIRED, "", "", self._now, encode_repaired(said), b"")
        return self._store.sealer.record(row)

    def _told(
        self, found: Examination, target: CheckpointRow, lineage: int, checkpoint_id: str, kept: list[Remade]
    ) -> RepairedThread:
        places = [(table, place) for table, place, _ in kept]
        left = tuple(str(fault) for fault in found.faults if (fault.table, fault.place) not in places)
        stays = tuple(told for told in left if not told.startswith("threads row"))
        config = config_at(self._thread_id, "", checkpoint_id)
        return RepairedThread(config, lineage, target.checkpoint_id, stays, tuple(places))


def fork_body(target: CheckpointRow, seq: int) -> bytes:
    """Return the body of a fork of a checkpoint."""
    return going_on(layout.open_checkpoint(target.body, row_name(target)), target.seq, seq)
