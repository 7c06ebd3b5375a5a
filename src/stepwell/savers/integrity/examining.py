"""One thread, looked at whole: what is wrong with it, which checkpoints can still be read, and where it can go on.

A checkpoint can be read if reading it works: it is tried, so that whatever it refers to counts, directly or by a chain.
Values of classes that are not at hand are no damage. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.codec import Codec, Registry
from stepwell.codec.raw_value import RawValue
from stepwell.errors import CorruptRecordError, DatabaseEncryptedError, EncryptionError, StepwellError
from stepwell.runtime.loading import gathered, row_name, values_of
from stepwell.runtime.reading.unreadable import LenientCodec
from stepwell.store import Fault, RawRow, Reader
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.repaired import Left, Repaired, decode_repaired


class Standing(NamedTuple):
    """A checkpoint of the root namespace, as its row stands, and what keeps it from being read."""

    seq: int
    checkpoint_id: str
    lineage: int
    parent_seq: int | None
    step: int
    fault: str | None

    @property
    def is_good(self) -> bool:
        """Whether a thread can go on from it."""
        return self.fault is None


@dataclass(frozen=True, slots=True)
class LineageHealth:
    """A lineage, and how far it can be read."""

    lineage: int
    head: str | None
    """Its newest checkpoint; None where no row of it is left."""
    last_good: str | None
    """The last checkpoint from which it can go on, its own or an ancestor's; None where there is none."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing of it is lost."""
        return self.head is not None and self.head == self.last_good


@dataclass(frozen=True, slots=True)
class Examination:
    """What is wrong with a thread, and what that means for it."""

    thread_id: str
    faults: tuple[Fault, ...]
    """What is wrong with it, the first bad record first. What a repair has left behind is not among it."""
    left_behind: tuple[Fault, ...]
    """What repairs have left behind: it is damaged, and nothing depends on it any more."""
    checkpoints: tuple[Standing, ...]
    """Those of the root namespace, oldest first."""
    lineages: tuple[LineageHealth, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong but what was left behind."""
        return not self.faults

    @property
    def unreadable(self) -> tuple[Standing, ...]:
        """The checkpoints that cannot be read: damaged themselves, or referring to what is."""
        return tuple(each for each in self.checkpoints if not each.is_good)

    @property
    def last_good(self) -> str | None:
        """Where `repair` goes on unless it is told: the last good checkpoint of the newest lineage that has one."""
        found = (health.last_good for health in reversed(self.lineages) if health.last_good is not None)
        return next(found, None)


def examine(reader: Reader, thread_id: str) -> Examination:
    """Look at every row of a thread, in one snapshot."""
    found = reader.faults(thread_id)
    records = [row for row in reader.raw_rows(thread_id, "records") if row.fault is None]
    left = [each for repair in _repairs(reader, records) for each in repair.left]
    new = sorted((fault for fault in found if not _is_left(fault, left)), key=_rank)
    old = tuple(fault for fault in found if _is_left(fault, left))
    checkpoints = _checkpoints(reader, thread_id) if found else ()
    return Examination(thread_id, tuple(new), old, checkpoints, _health(checkpoints))


def check_sound(reader: Reader, thread_id: str) -> None:
    """Raise CorruptRecordError where something of a thread is damaged or lost: what is made of it elsewhere would be
    taken for whole. What a repair has left behind is none of it."""
    for fault in examine(reader, thread_id).faults:
        at = int(fault.place) if fault.place.isdecimal() else fault.place
        record = f"{fault.table} row of thread {thread_id!r}" + (f" at {at!r}" if fault.place else "")
        raise CorruptRecordError(record=record, reason=fault.reason, table=fault.table, thread_id=thread_id, seq=at)


def as_left(faults: Sequence[Fault]) -> tuple[Left, ...]:
    """Return faults as a repair records them."""
    return tuple((fault.table, fault.place, fault.reason, fault.is_row) for fault in faults)


def _repairs(reader: Reader, raw: Sequence[RawRow]) -> list[Repaired]:
    found = []
    for row in raw:
        if row.columns["kind"] == lifecycle.REPAIRED:
            try:
                record = reader.record(row.columns["thread_id"], row.columns["seq"])
            except EncryptionError:  # without its key nobody can tell
                continue
            found.append(decode_repaired(record.body, row_name(record)))
    return found


def _is_left(fault: Fault, left: Sequence[Left]) -> bool:
    return any(
        (table, place) == (fault.table, fault.place) and (is_row or reason == fault.reason)
        for table, place, reason, is_row in left
    )


def _rank(fault: Fault) -> tuple[int, int]:
    """Order faults so that the first bad record comes first: by seq, then what has none."""
    in_history = fault.table in ("checkpoints", "records") and fault.place.lstrip("-").isdecimal()
    return (0, int(fault.place)) if in_history else (1, 0)


# -- what can be read -------------------------------------------------------------------------------------------------

_OPAQUE = LenientCodec(Codec(Registry(), RawValue))


def _checkpoints(reader: Reader, thread_id: str) -> tuple[Standing, ...]:
    rows = [row for row in reader.raw_rows(thread_id, "checkpoints") if _is_root(row.columns)]
    found = [_standing(reader, thread_id, row) for row in rows]
    return tuple(sorted(found, key=lambda each: each.seq))


def _is_root(columns: Mapping[str, Any]) -> bool:
    return columns["namespace"] in ("", None) and columns["seq"] is not None


def _standing(reader: Reader, thread_id: str, row: RawRow) -> Standing:
    columns = row.columns
    place = columns["seq"], str(columns["checkpoint_id"]), columns["lineage"], columns["parent_seq"], columns["step"]
    fault = row.fault if row.fault is not None else _unreadable(reader, thread_id, columns["seq"])
    return Standing(*place, fault)


def _unreadable(reader: Reader, thread_id: str, seq: int) -> str | None:
    """Return why a checkpoint whose row verifies cannot be read; None where it can."""
    try:
        (row,) = reader.checkpoints(thread_id, [seq])
        opened = layout.open_checkpoint(row.body, row_name(row))
        with layout.reading(row_name(row)):
            holders = gathered(reader, row, opened)
            holders.fetch_referred(reader, seq, ())
            values_of(holders, _OPAQUE, row)
            layout.decode_next(holders.reading(_OPAQUE), opened.next)
        lost = next((name for name, body in holders.blobs.items() if body is None), None)
        return None if lost is None else f"it needs value {lost.hex()}: it is missing"
    except CorruptRecordError as error:
        return f"it needs {error.fields()['record']}: {error.fields()['reason']}"
    except DatabaseEncryptedError:
        return None  # its row verifies, and no more can be told without the key
    except StepwellError as error:  # what does not decrypt, a format of a later release
        return str(error)


# -- lineages ---------------------------------------------------------------------------------------------------------


def _health(checkpoints: Sequence[Standing]) -> tuple[LineageHealth, ...]:
    """Return the lineages, the one that was written to last at the end."""
    own: dict[int, list[Standing]] = {}
    for each in checkpoints:
        if isinstance(each.lineage, int):
            own.setdefault(each.lineage, []).append(each)
    order = sorted(own, key=lambda lineage: own[lineage][-1].seq)
    at = {each.seq: each for each in checkpoints}
    return tuple(
        LineageHealth(lineage, own[lineage][-1].checkpoint_id, _last_good(own[lineage][-1], at)) for lineage in order
    )


def _last_good(head: Standing, at: Mapping[int, Standing]) -> str | None:
    seen: set[int] = set()
    each: Standing | None = head
    while each is not None and not each.is_good and each.seq not in seen:
        seen.add(each.seq)
        each = _before(each, at)
    return each.checkpoint_id if each is not None and each.is_good else None


def _before(each: Standing, at: Mapping[int, Standing]) -> Standing | None:
    """Return the checkpoint before one: its parent, or, where that is lost, the one below it in its lineage."""
    if each.parent_seq is not None and each.parent_seq in at:
        return at[each.parent_seq]
    below = [other for other in at.values() if other.lineage == each.lineage and other.seq < each.seq]
    return max(below, key=lambda other: other.seq, default=None)
