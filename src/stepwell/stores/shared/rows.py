"""From what a database returns to rows that have been verified, and from rows to what is stored.

Every row's digest is checked here on its way out; one that fails is a `CorruptRecordError` naming table, thread and
seq. Thread and run rows are sealed here too: their digest covers every column, the lease's included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_type_hints

from stepwell.errors import CorruptRecordError
from stepwell.ids import fingerprint_of
from stepwell.store import (
    DAMAGED,
    NO_DIGEST,
    AnchorRow,
    BlobRow,
    CheckpointRow,
    EffectRow,
    EventRow,
    ItemRow,
    KeyRow,
    LineageRow,
    MessageRow,
    RawRow,
    RecordRow,
    RunRow,
    ShapeRow,
    ThreadRow,
    digest_of,
)

Row = TypeVar("Row")

NOT_ITS_DIGEST = "its columns do not match its digest"
NOT_TEXT = "a text column does not hold valid UTF-8"
NOT_ITS_TYPE = "a column holds a value of another type"


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """How the rows of one table are named, sealed and made.

    `place` is the column that tells rows of a thread apart, `text` those that are text, `optional` those that may be
    null.
    """

    name: str
    tag: str
    thread: int
    place: int | None
    make: Callable[[Sequence[Any]], Row]
    text: tuple[int, ...]
    optional: tuple[int, ...]

    def verified(self, columns: Sequence[Any]) -> Row:
        """Return the row these columns are, or raise where the digest says they are not."""
        return self.all_verified((columns,))[0]

    def all_verified(self, found: Sequence[Sequence[Any]]) -> list[Row]:
        """Return the rows that these are, or raise for the first one whose digest says it is not."""
        tag, make, wrong = self.tag, self.make, None
        rows = []
        try:
            for columns in found:
                wrong = columns
                if digest_of(tag, columns[:-1]) != columns[-1]:
                    break
                rows.append(make(columns))
            else:
                return rows
        except (TypeError, ValueError):
            pass  # a value of a type that no row was ever sealed with
        assert wrong is not None
        raise self.corrupt(wrong, NOT_ITS_DIGEST)

    def matches(self, columns: Sequence[Any]) -> bool:
        """Tell whether the last column is the digest of the others."""
        try:
            return bool(digest_of(self.tag, columns[:-1]) == columns[-1])
        except (TypeError, ValueError):
            return False  # a value of a type that no row was ever sealed with

    def corrupt(self, columns: Sequence[Any], reason: str) -> CorruptRecordError:
        """Return the error for the row that has these columns, which may be as a raw query found them."""
        columns = [_shown(each) if index in self.text else each for index, each in enumerate(columns)]
        return corrupt(self.name, columns[self.thread], "" if self.place is None else columns[self.place], reason)

    def decoded(self, raw: Sequence[Any]) -> list[Any]:
        """Return what a raw query found, its text decoded. Raises ValueError with the reason where that cannot be."""
        columns = list(raw)
        if any(column is None and index not in self.optional for index, column in enumerate(columns)):
            raise ValueError(NOT_ITS_TYPE)
        try:
            for index in self.text:
                columns[index] = _text(columns[index])
        except UnicodeDecodeError:
            raise ValueError(NOT_TEXT) from None
        return columns

    def fault(self, raw: Sequence[Any]) -> str | None:
        """Return what is wrong with a row as a raw query found it."""
        try:
            return None if self.matches(self.decoded(raw)) else NOT_ITS_DIGEST
        except ValueError as error:
            return str(error)


def listed(table: Table[Row], found: Sequence[Sequence[Any]], damaged: Row) -> list[Row]:
    """Return the rows that a raw query found, for a list in which none hides another: in place of one that does not
    verify, `damaged` with what places it."""
    rows: list[Row] = []
    for raw in found:
        if table.fault(raw) is None:
            rows.append(table.make(table.decoded(raw)))
        else:
            rows.append(_placed(raw, damaged))
    return rows


def all_sound(table: Table[Any], found: list[Any]) -> list[Any]:
    """Return rows of `listed` in which none is damaged; raises for the first one that is."""
    for row in found:
        if row.status == DAMAGED:
            raise table.corrupt(row, NOT_ITS_DIGEST)
    return found


def _placed(raw: Sequence[Any], damaged: Any) -> Any:
    given = dict(zip(damaged._fields, raw, strict=False))
    places = {name: given[name] for name in PLACES if given.get(name) is not None}
    return damaged._replace(**{name: _shown(value) for name, value in places.items()})


def _shown(value: Any) -> Any:
    """Return text as it can be shown, whatever a raw query found in its place."""
    return value.decode("utf-8", "backslashreplace") if type(value) is bytes else value


PLACES = ("thread_id", "updated_at", "key", "seq")
"""The columns by which lists over all threads go on."""
DAMAGED_THREAD = ThreadRow("", "", DAMAGED, 0, "", "", 0.0, 0, NO_DIGEST, 0, 0)
DAMAGED_EFFECT = EffectRow("", "", "", 0, "", "", 0, "", "", DAMAGED, 0, "", "", 0, 0, 0, 0, b"", NO_DIGEST)


def _text(value: str | bytes) -> str:
    """Return a text as a raw query gives it: as bytes, where the database may hold what is none."""
    return value if isinstance(value, str) else value.decode()


class _ItemTable(Table[ItemRow]):
    """Items belong to no thread: namespace and key name them."""

    __slots__ = ()

    def corrupt(self, columns: Sequence[Any], reason: str) -> CorruptRecordError:
        """Return the error for the item that has these columns."""
        record = f"item {columns[2]!r} of namespace {columns[1]!r}"
        return CorruptRecordError(record=record, reason=reason, table=self.name, thread_id="", seq=None)


def raw_row(table: Table[Any], raw: Sequence[Any]) -> RawRow:
    """Return a row as a raw query found it, with what is wrong with it."""
    columns = [
        column.decode("utf-8", "backslashreplace") if index in table.text and type(column) is bytes else column
        for index, column in enumerate(raw)
    ]
    return RawRow(dict(zip(_COLUMNS[table.name], columns, strict=True)), table.fault(raw), tuple(raw))


_COLUMNS = {
    "threads": (*ThreadRow._fields, "digest"),
    "runs": (*RunRow._fields, "epoch", "digest"),
    "checkpoints": CheckpointRow._fields,
    "lineages": (*LineageRow._fields, "digest"),
    "records": RecordRow._fields,
    "events": EventRow._fields,
    "inbox": MessageRow._fields,
    "effects": EffectRow._fields,
    "blobs": BlobRow._fields,
}
"""The columns that raw queries return, in their order."""


def corrupt(table: str, thread_id: object, at: object, reason: str) -> CorruptRecordError:
    """Return the error for one row: `at` is its seq, its run id, or "" for the thread's own row."""
    record = f"{table} row of thread {thread_id!r}" + (f" at {at!r}" if at != "" else "")
    return CorruptRecordError(record=record, reason=reason, table=table, thread_id=thread_id, seq=at)


def thread_digest(columns: Sequence[Any]) -> bytes:
    """Return the digest of a thread row's columns, in the order of `ThreadRow`."""
    return digest_of("thread", columns)


def lineage_digest(columns: Sequence[Any]) -> bytes:
    """Return the digest of a lineage row's columns, in the order of `LineageRow`."""
    return digest_of("lineage", columns)


def run_digest(columns: Sequence[Any]) -> bytes:
    """Return the digest of a run row's columns, in the order of `RunRow`, with the epoch that last admitted it."""
    return digest_of("run", columns)


def is_shape_of(shape: bytes, fingerprint: str) -> bool:
    """Tell whether a stored shape is the one this fingerprint was made of."""
    try:
        return fingerprint_of(shape.decode()) == fingerprint
    except UnicodeDecodeError:
        return False


def _of(kind: object, row: type) -> tuple[int, ...]:
    return tuple(index for index, found in enumerate(get_type_hints(row).values()) if found == kind)


def _kinds(row: type) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return _of(str, row), _of(int | None, row)


THREADS = Table("threads", "thread", 0, None, lambda row: ThreadRow._make(row[:-1]), *_kinds(ThreadRow))
RUNS = Table("runs", "run", 1, 0, lambda row: RunRow._make(row[:-2]), *_kinds(RunRow))
CHECKPOINTS = Table("checkpoints", "checkpoint", 0, 3, CheckpointRow._make, *_kinds(CheckpointRow))
LINEAGES = Table("lineages", "lineage", 0, 1, lambda row: LineageRow._make(row[:-1]), *_kinds(LineageRow))
RECORDS = Table("records", "record", 0, 3, RecordRow._make, *_kinds(RecordRow))
ANCHORS = Table("anchors", "anchor", 0, 1, AnchorRow._make, *_kinds(AnchorRow))
EVENTS = Table("events", "event", 1, 2, EventRow._make, *_kinds(EventRow))
INBOX = Table("inbox", "message", 0, 1, MessageRow._make, *_kinds(MessageRow))
EFFECTS = Table("effects", "effect", 1, 0, EffectRow._make, *_kinds(EffectRow))
ITEMS = _ItemTable("items", "item", 1, 0, ItemRow._make, *_kinds(ItemRow))
BLOBS = Table("blobs", "blob", 0, 1, BlobRow._make, *_kinds(BlobRow))
KEYS = Table("keys", "key", 0, None, KeyRow._make, *_kinds(KeyRow))
SHAPES = Table("shapes", "shape", 0, None, ShapeRow._make, *_kinds(ShapeRow))
"""Its rows have no digest column: `is_shape_of` verifies them."""

BY_NAME: dict[str, Table[Any]] = {
    table.name: table
    for table in (THREADS, RUNS, CHECKPOINTS, LINEAGES, ANCHORS, RECORDS, EVENTS, INBOX, EFFECTS, BLOBS)
}
"""The tables whose rows are a thread's."""
