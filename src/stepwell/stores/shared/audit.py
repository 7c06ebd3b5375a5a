"""Every row of every thread, checked: what `verify()` walks.

Reads check what they return; this checks what nobody asked for. Text is read as bytes and a value of another type as
null, so that a row is found whatever became of it. Nothing stops the walk but a database that cannot be read on; that
is a fault too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from stepwell.errors import CorruptRecordError
from stepwell.store import (
    COUNTING,
    NO_DIGEST,
    AnchorRow,
    CheckpointRow,
    EffectRow,
    EventRow,
    Fault,
    LineageRow,
    RecordRow,
    RunRow,
    ThreadRow,
    is_encrypted,
)
from stepwell.stores.shared.referring import Referring
from stepwell.stores.shared.rows import (
    ANCHORS,
    BLOBS,
    CHECKPOINTS,
    EFFECTS,
    EVENTS,
    INBOX,
    ITEMS,
    KEYS,
    LINEAGES,
    NOT_ITS_DIGEST,
    RECORDS,
    RUNS,
    THREADS,
    Row,
    Table,
    is_shape_of,
)
from stepwell.stores.shared.source import Source
from stepwell.stores.shared.tail import before_the_whole


def audit(source: Source) -> Iterator[Fault]:
    """Yield every fault found."""
    try:
        yield from _database(source)
        for raw in source.stream("raw_all_threads", {}):
            yield from _Thread(source, raw).faults()
        for fingerprint, shape in source.stream("raw_shapes", {}):
            if not is_shape_of(shape, fingerprint.decode("utf-8", "backslashreplace")):
                told = f"shapes row {_shown(fingerprint)}: {NOT_ITS_DIGEST}"
                yield Fault.of(told, "shapes", "", _shown(fingerprint), NOT_ITS_DIGEST, is_row=True)
        yield from _messages(source, source.stream("raw_all_inbox", {}))
        for raw, fault in _faults(source, "raw_items", ITEMS):
            place = f"{_shown(raw[1])} at {_shown(raw[2])}"
            yield Fault.of(f"items row of namespace {place}: {fault}", "items", "", place, fault, is_row=True)
        for raw, fault in _faults(source, "raw_keys", KEYS):
            yield _of_key(raw, fault)
        for table, thread_id in source.stream("orphans", {}):
            owner = "run" if table == b"events" else "thread"
            reason = f"rows of thread {_shown(thread_id)} have no {owner} row"
            yield Fault.of(f"{table.decode()}: {reason}", table.decode(), _named(thread_id), "", reason)
    except CorruptRecordError as error:
        reason = f"cannot be read on: {error.fields()['reason']}. Restore it from a backup"
        yield Fault.of(f"{source.place} {reason}", "", "", "", reason)


def audit_thread(source: Source, thread_id: str) -> Iterator[Fault]:
    """Yield every fault of one thread and of its inbox, also where its own row is missing."""
    named = thread_id.encode()
    found = list(source.stream("raw_threads", {"thread_id": named}))
    yield from _Thread(source, found[0] if found else (named,)).faults()
    yield from _messages(source, source.stream("raw_inbox", {"thread_id": named}))
    for raw in source.fetch("key", KEYS, {"thread_id": thread_id}):
        if (fault := KEYS.fault(raw)) is not None:
            yield _of_key(raw, fault)


def _of_key(raw: Any, fault: str) -> Fault:
    return Fault.of(f"keys row of thread {_shown(raw[0])}: {fault}", "keys", _named(raw[0]), "", fault, is_row=True)


def _database(source: Source) -> Iterator[Fault]:
    for (text,) in source.stream("integrity", {}):
        for line in text.decode("utf-8", "backslashreplace").splitlines():
            if line != "ok" and not line.startswith("*** in database"):
                yield Fault.of(f"{source.place}: {line}", "", "", "", line)


def _faults(source: Source, name: str, table: Table[Any]) -> Iterator[tuple[Any, str]]:
    for raw in source.stream(name, {}):
        fault = table.fault(raw)
        if fault is not None:
            yield raw, fault


def _messages(source: Source, found: Iterator[Any]) -> Iterator[Fault]:
    """Check the inboxes, or one of them, apart from threads: a message may come before its thread begins."""
    last: tuple[object, int] = (None, 0)
    for raw in found:
        try:
            columns = INBOX.decoded(raw)
        except ValueError as error:
            yield _of_message(raw, str(error), is_row=True)
            continue
        row = INBOX.make(columns)
        if not INBOX.matches(columns):
            yield _of_message(raw, NOT_ITS_DIGEST, is_row=True)
        before, last = last, (row.thread_id, row.ordinal)
        missing = row.ordinal - 1
        if before != (row.thread_id, missing) and missing:
            yield _of_message(raw, f"message {missing} of the thread is missing before it")
        if row.consumed_seq > 0:
            at = {"thread_id": row.thread_id, "seq": row.consumed_seq}
            if not source.fetch("record_at", RECORDS, at):
                yield _of_message(raw, f"the record {row.consumed_seq} that consumed it is missing")


def _of_message(raw: Any, reason: str, *, is_row: bool = False) -> Fault:
    told = f"inbox row of thread {_shown(raw[0])} at {_shown(raw[1])}: {reason}"
    return Fault.of(told, "inbox", _named(raw[0]), _named(raw[1]), reason, is_row=is_row)


class _Thread:
    """The walk over one thread."""

    def __init__(self, source: Source, raw: Any) -> None:
        self._source = source
        self._raw = raw
        self._digests: dict[int, bytes] = {}
        self._runs: dict[str, RunRow] = {}
        self._logs: dict[str, tuple[int, bytes]] = {}
        self._lineages: dict[int, int] = {}
        self._recorded: set[int] = set()
        self._of_the_whole: set[int] = set()
        self._anchors: dict[int, AnchorRow] = {}
        self._referring = Referring(_named(raw[0]))
        self._encrypted = False
        self._faults: list[Fault] = []

    def faults(self) -> list[Fault]:
        if len(self._raw) == 1:  # only what it is called is known
            thread = None
            self._missing_row()
        else:
            thread = self._row(THREADS, self._raw)
        for run in self._rows(RUNS, "raw_runs"):
            self._runs[run.run_id] = run
        self._anchors = {row.seq: row for row in self._rows(ANCHORS, "raw_anchors")}
        counting = self._anchors.pop(COUNTING, None)
        counted = 0 if counting is None else counting.notes
        if counted != (there := len(self._anchors)):
            self._fault("anchors", COUNTING, f"{counted} anchors were written, {there} are there")
        for checkpoint in self._rows(CHECKPOINTS, "raw_checkpoints"):
            self._checkpoint(checkpoint, thread)
        self._branches()
        ordinals: Counter[int] = Counter()
        for record in self._rows(RECORDS, "raw_records"):
            self._record(record, ordinals)
        for anchor in self._anchors.values():
            self._anchor(anchor, ordinals)
        for effect in self._rows(EFFECTS, "raw_effects"):
            self._effect(effect)
        values = {row.name for row in self._rows(BLOBS, "raw_blobs")}
        for missed in self._referring.missing(self._digests, self._recorded, values, self._under_key, self._anchors):
            self._fault(*missed)
        for event in self._rows(EVENTS, "raw_events"):
            self._event(event)
        self._log_ends()
        if thread is not None:
            self._thread(thread)
        if self._encrypted and not self._source.fetch("key", KEYS, {"thread_id": self._raw[0].decode()}):
            self._fault("keys", "", "the data key is missing that its rows are encrypted with")
        return self._faults

    def _rows(self, table: Table[Row], name: str) -> Iterator[Row]:
        for raw in self._source.stream(name, {"thread_id": self._raw[0]}):
            row = self._row(table, raw)
            if row is not None:
                yield row

    def _row(self, table: Table[Row], raw: Any) -> Row | None:
        """Return the row with its columns as they are; None where they cannot even be decoded."""
        place = "" if table.place is None else raw[table.place]
        try:
            columns = table.decoded(raw)
        except ValueError as error:
            self._fault(table.name, place, str(error), is_row=True)
            return None
        if not table.matches(columns):
            self._fault(table.name, place, NOT_ITS_DIGEST, is_row=True)
        return table.make(columns)

    def _checkpoint(self, row: CheckpointRow, thread: ThreadRow | None) -> None:
        parent = NO_DIGEST if row.parent_seq is None else self._digest_at(row.parent_seq)
        self._linked("checkpoints", row.seq, f"its parent {row.parent_seq}", parent, row.parent_digest)
        self._place("checkpoints", row)
        self._encrypted = self._encrypted or is_encrypted(row.body)
        anchor = self._anchors.get(row.seq)
        self._referring.checkpoint(row, anchor is not None and bool(anchor.held))
        if row.namespace == "":
            self._lineages[row.seq] = row.lineage
        if thread is not None and not 0 <= row.lineage < thread.lineages:
            self._fault("checkpoints", row.seq, f"lineage {row.lineage} is not one of the thread's {thread.lineages}")

    def _branches(self) -> None:
        known = {row.lineage for row in self._rows(LINEAGES, "raw_lineages") if self._lineage(row)}
        for seq, lineage in self._lineages.items():
            if (lineage or known) and lineage not in known:
                self._fault("checkpoints", seq, f"its lineage {lineage} is missing")
                known.add(lineage)

    def _lineage(self, row: LineageRow) -> bool:
        if self._lineages.get(row.head_seq) != row.lineage:
            self._fault("lineages", row.lineage, f"its head {row.head_seq} is missing or of another lineage")
        if row.parent_seq is not None and self._lineages.get(row.parent_seq) != row.parent_lineage:
            self._fault("lineages", row.lineage, f"the checkpoint {row.parent_seq} it was forked from is missing")
        return True

    def _record(self, row: RecordRow, ordinals: Counter[int]) -> None:
        base = NO_DIGEST if row.base_seq == 0 else self._digest_at(row.base_seq)
        self._linked("records", row.seq, f"its base {row.base_seq}", base, row.base_digest)
        self._place("records", row)
        if row.base_seq in self._anchors:
            ordinals[row.base_seq] += 1
        else:
            if row.ordinal != (expected := ordinals[row.base_seq]):
                self._fault("records", row.seq, f"record {expected} of base {row.base_seq} is missing before it")
            ordinals[row.base_seq] = row.ordinal + 1
        self._recorded.add(row.seq)
        if not row.base_seq:
            self._of_the_whole.add(row.seq)
        self._encrypted = self._encrypted or is_encrypted(row.body)
        self._referring.record(row)

    def _digest_at(self, seq: int) -> bytes | None:
        """Return the digest of a checkpoint, or of one that was pruned."""
        found = self._digests.get(seq)
        if found is None and (anchor := self._anchors.get(seq)) is not None and not anchor.held:
            return anchor.row_digest
        return found

    def _anchor(self, row: AnchorRow, found: Counter[int]) -> None:
        here = self._digests.get(row.seq)
        if row.held and here != row.row_digest:
            self._fault("anchors", row.seq, "the checkpoint that is held there is missing or another")
        elif not row.held and here is not None:
            self._fault("anchors", row.seq, "a row is there that it says was pruned")
        parent = NO_DIGEST if row.parent_seq is None else self._digests.get(row.parent_seq)
        self._linked("anchors", row.seq, f"the checkpoint {row.parent_seq} before it", parent, row.parent_digest)
        if row.parent_seq != row.shown_seq and not self._anchors.get(row.parent_seq or 0, row).held:
            self._fault("anchors", row.seq, f"the anchor that holds the checkpoint {row.parent_seq} is missing")
        if found[row.seq] != row.notes:
            reason = f"{row.notes} records of this checkpoint were left, {found[row.seq]} are there"
            self._fault("anchors", row.seq, reason)

    def _effect(self, row: EffectRow) -> None:
        if row.scope != "global" and row.seq and row.seq not in self._recorded:
            self._fault("effects", row.key, f"the record {row.seq} that says how it stands is missing")
        self._referring.effect(row)

    def _under_key(self, key: str) -> list[EffectRow]:
        try:
            found = self._source.fetch("effect", EFFECTS, {"key": key})
        except CorruptRecordError:
            return []
        return [EFFECTS.make(row) for row in found if EFFECTS.fault(row) is None]

    def _event(self, row: EventRow) -> None:
        last, digest = self._logs.get(row.run_id, (0, NO_DIGEST))
        if row.run_id not in self._runs and row.run_id not in self._logs:
            self._fault("events", row.ordinal, f"its run {row.run_id!r} is missing")
        if row.ordinal != last + 1:
            self._fault("events", row.ordinal, f"event {last + 1} of run {row.run_id!r} is missing before it")
        elif row.previous_digest != digest:
            self._fault("events", row.ordinal, "the event before it is another than the one it was written after")
        self._logs[row.run_id] = (row.ordinal, row.digest)

    def _log_ends(self) -> None:
        for run in self._runs.values():
            found = self._logs.get(run.run_id, (0, NO_DIGEST))[0]
            if found < run.events:
                self._fault("runs", run.run_id, f"lost end: it has counted {run.events} events, {found} are there")

    def _linked(self, table: str, seq: int, what: str, found: bytes | None, expected: bytes) -> None:
        if found is None:
            self._fault(table, seq, f"{what} is missing")
        elif found != expected:
            self._fault(table, seq, f"{what} is another row than the one it was written on")

    def _place(self, table: str, row: CheckpointRow | RecordRow) -> None:
        if row.seq in self._digests:
            self._fault(table, row.seq, "another row has the same seq")
        self._digests[row.seq] = row.digest
        if row.run_id and row.run_id not in self._runs:
            self._fault(table, row.seq, f"its run {row.run_id!r} is missing")

    def _thread(self, row: ThreadRow) -> None:
        last = max(self._digests, default=0)
        if last > row.head_seq:
            self._fault("threads", "", f"rows up to seq {last} stand behind its head {row.head_seq}")
        if row.head_seq and self._digests.get(row.head_seq) != row.head_digest:
            self._fault("threads", "", f"lost tail: its last row {row.head_seq} is missing or another")
        before = before_the_whole(row.head_seq, self._of_the_whole)
        if before not in (0, row.head_seq) and before not in self._digests:
            self._fault("threads", "", f"lost tail: the row {before} that its last one was written after is missing")
        if row.run_id and row.run_id not in self._runs:
            self._fault("threads", "", f"its run {row.run_id!r} is missing")

    def _missing_row(self) -> None:
        for table, thread_id in self._source.stream("orphans", {}):
            if table != b"events" and thread_id == self._raw[0]:
                self._fault("threads", "", "it is missing, and the thread has other rows")
                return

    def _fault(self, table: str, at: object, reason: str, *, is_row: bool = False) -> None:
        where = "" if at == "" else f" at {_shown(at)}"
        told = f"{table} row of thread {_shown(self._raw[0])}{where}: {reason}"
        self._faults.append(Fault.of(told, table, _named(self._raw[0]), _named(at), reason, is_row=is_row))


def _named(value: object) -> str:
    return (
        value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else "?" if value is None else str(value)
    )


def _shown(value: object) -> str:
    if value is None:
        return "?"  # the column that names it is damaged
    return repr(value.decode("utf-8", "backslashreplace")) if isinstance(value, bytes) else str(value)
