"""Rows that say how things stand, made anew where they are damaged: a thread's runs, messages and lineages.

They are not history: they are replaced as a thread goes on. What stood in a damaged one is kept in the record of the
repair. The rule: nothing is made up. A run whose row is lost has failed, a message whose row is lost is consumed
unread, and both say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.runtime.loading import superseded
from stepwell.store import NO_DIGEST, LineageRow, MessageRow, RawRow, Reader, RunRow
from stepwell.superstep import lifecycle
from stepwell.superstep.repaired import Remade, columns_as_stored

LOST = "its row was damaged; a repair made it anew, and what it said is lost"


class Anew(NamedTuple):
    """What is written anew in a table, and what stood there."""

    rows: list[Any]
    remade: list[Remade]
    removed: list[tuple[str, bytes, bytes]]


def remade(table: str, place: object, row: RawRow) -> Remade:
    """Return what a repair keeps of a row that it makes anew."""
    return table, str(place), columns_as_stored(row.stored)


# -- runs -------------------------------------------------------------------------------------------------------------


def runs_anew(reader: Reader, thread_id: str, newest_epoch: int, now: int) -> Anew:
    """Return the runs whose rows are to be written, each with its epoch: the damaged ones, and the one that a dead
    process left behind."""
    found = Anew([], [], [])
    for raw in reader.raw_rows(thread_id, "runs"):
        run_id, epoch = raw.columns["run_id"], raw.columns["epoch"]
        if raw.fault is None:
            run = reader.run(run_id)
            if run is not None and run.status == lifecycle.RUNNING:
                found.rows.append((superseded(run, "", now), epoch))
        elif isinstance(run_id, str):
            plausible = epoch if isinstance(epoch, int) and 0 <= epoch < newest_epoch else 0
            found.rows.append((_lost_run(reader, thread_id, run_id, raw.columns, now), plausible))
            found.remade.append(remade("runs", run_id, raw))
    return found


def _lost_run(reader: Reader, thread_id: str, run_id: str, columns: Mapping[str, Any], now: int) -> RunRow:
    events = sum(row.columns["run_id"] == run_id for row in reader.raw_rows(thread_id, "events"))
    return RunRow(
        run_id=run_id,
        thread_id=thread_id,
        lineage=0,
        status=lifecycle.FAILED,
        durability="sync",
        input=b"",
        input_digest=NO_DIGEST,
        base_seq=0,
        started_at=columns["started_at"] or now,
        finished_at=now,
        recoveries=0,
        progress_seq=0,
        checkpoint_id="",
        error=LOST,
        kind="continue",
        takeovers=0,
        events=events,
    )


# -- messages ---------------------------------------------------------------------------------------------------------


def messages_anew(reader: Reader, thread_id: str, seq: int, now: int) -> Anew:
    """Return the damaged messages as consumed by the record at `seq`, without what they said."""
    found = Anew([], [], [])
    known = {record.columns["seq"] for record in reader.raw_rows(thread_id, "records")}
    for raw in reader.raw_rows(thread_id, "inbox"):
        if raw.fault is None:
            continue
        columns, place = raw.columns, raw.stored[1]
        if not isinstance(columns["message_id"], str) or not isinstance(columns["ordinal"], int):
            continue
        consumed = columns["consumed_seq"] if columns["consumed_seq"] in known else seq
        found.rows.append(
            MessageRow(
                thread_id=thread_id,
                message_id=columns["message_id"],
                ordinal=columns["ordinal"],
                kind=columns["kind"] or "",
                key=columns["key"] or "",
                created_at=columns["created_at"] or now,
                content=columns["content"] or NO_DIGEST,
                consumed_seq=consumed,
                body=b"",
                digest=b"",
            )
        )
        found.remade.append(remade("inbox", columns["message_id"], raw))
        found.removed.append(("inbox", thread_id.encode(), place))
    return found


# -- lineages ---------------------------------------------------------------------------------------------------------


def lineages_anew(reader: Reader, thread_id: str, lineages: int) -> Anew:
    """Return every lineage that has a checkpoint, as its rows say where it began and where it ends."""
    stored = {row.columns["lineage"]: row for row in reader.raw_rows(thread_id, "lineages")}
    checkpoints = _root_rows(reader, thread_id, lineages)
    lineage_at = {columns["seq"]: columns["lineage"] for columns, _ in checkpoints}
    own: dict[int, list[tuple[dict[str, Any], bool]]] = {}
    for columns, is_sound in checkpoints:
        own.setdefault(columns["lineage"], []).append((columns, is_sound))
    found = Anew([], [], [])
    for lineage, rows in sorted(own.items()):
        parent_seq = _forked_from(stored.get(lineage), rows[0])
        parent = None if parent_seq is None else lineage_at.get(parent_seq)
        parent_seq = None if parent is None else parent_seq
        found.rows.append(LineageRow(thread_id, lineage, parent, parent_seq, rows[-1][0]["seq"]))
    found.remade.extend(remade("lineages", lineage, row) for lineage, row in stored.items() if row.fault is not None)
    return found


def _root_rows(reader: Reader, thread_id: str, lineages: int) -> list[tuple[dict[str, Any], bool]]:
    """Return the columns of the root checkpoints by seq, and whether each verifies, as far as they name a lineage."""
    found = []
    for row in reader.raw_rows(thread_id, "checkpoints"):
        columns = row.columns
        placed = isinstance(columns["seq"], int) and isinstance(columns["lineage"], int)
        if columns["namespace"] == "" and placed and 0 <= columns["lineage"] < lineages:
            found.append((columns, row.fault is None))
    return sorted(found, key=lambda each: each[0]["seq"])


def _forked_from(stored: RawRow | None, first: tuple[dict[str, Any], bool]) -> int | None:
    """Return the seq that a lineage was forked from: as its row says, if that is sound, or its first checkpoint."""
    if stored is not None and stored.fault is None:
        seq: int | None = stored.columns["parent_seq"]
        return seq
    columns, is_sound = first
    return columns["parent_seq"] if is_sound and columns["lineage"] else None


def known_epochs(rows: Sequence[RawRow]) -> list[int]:
    """Return the epochs that rows which verify name."""
    return [row.columns["epoch"] for row in rows if row.fault is None]
