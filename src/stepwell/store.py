"""The contract between the engine and a database: the records, and what a store must promise about them.

A store remembers; it decides nothing. It moves bytes that the layers above encoded and fences every write by the
thread's epoch. What is written:

- a *checkpoint* row per superstep, edit, fork or input: immutable, chained to its parent by digest;
- a *record* row per pending outcome, failure, question, answer or attempt: immutable, chained to its base checkpoint;
- a *run* row per drive and a *thread* row per thread: the only rows that are updated, always under the epoch;
- an *event* row per lifecycle event of a run that keeps a log: immutable, chained to the event before it.

**Lock order.** Every writing transaction locks the thread row first, by updating it under its epoch and head, and
writes nothing if that update changed no row. Reads never lock.

**Digests.** `seal_checkpoint` and `seal_record` hash every column, the body as stored and the parent's digest. A store
verifies each row it returns and raises `CorruptRecordError`; it never skips one. Thread, run and event rows are sealed
by the store, which alone knows the lease columns and the ends of the logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

NO_DIGEST = b"\x00" * 16
"""The parent digest of a row that has no parent."""


class CheckpointRow(NamedTuple):
    """The committed state after one superstep."""

    thread_id: str
    namespace: str
    lineage: int
    seq: int
    checkpoint_id: str
    parent_seq: int | None
    parent_digest: bytes
    step: int
    source: str
    run_id: str
    graph_id: str
    version: str
    fingerprint: str
    created_at: int
    metadata: str
    """JSON object of what the caller gave; "" where nothing was given."""
    body: bytes
    digest: bytes


class RecordRow(NamedTuple):
    """Something that happened on a base checkpoint before the next one: see `kind`."""

    thread_id: str
    namespace: str
    lineage: int
    seq: int
    base_seq: int
    base_digest: bytes
    ordinal: int
    """Position among the records of this base, from 0 without gaps: a lost one is visible."""
    kind: str
    """succeeded | failed | interrupted | cancelled | attempt | answer"""
    task_id: str
    run_id: str
    created_at: int
    body: bytes
    digest: bytes


class RunRow(NamedTuple):
    """One drive of a thread."""

    run_id: str
    thread_id: str
    lineage: int
    status: str
    """running | paused | waiting | failed | cancelled | finished"""
    durability: str
    input: bytes
    """The input as encoded; b"" where the run continues what is there."""
    input_digest: bytes
    base_seq: int
    """The checkpoint the run started from; 0 where there was none."""
    started_at: int
    finished_at: int
    """0 while it runs."""
    recoveries: int
    """Takeovers since the run last made progress."""
    progress_seq: int
    """The thread's head when the run was last taken over."""
    checkpoint_id: str
    """The last checkpoint the run committed, "" before the first."""
    error: str
    kind: str
    """What the call was: input | continue | answer | command | retry | replay"""
    takeovers: int
    """How often another process went on with it, in all."""
    events: int
    """Events its log held when this row was last written. The store fills it in where the write adds events."""


class EventRow(NamedTuple):
    """One entry of a run's log."""

    run_id: str
    thread_id: str
    ordinal: int
    """Position in the log, from 1 without gaps: a lost one is visible."""
    kind: str
    """The event's name, as `stepwell.events` has it."""
    created_at: int
    previous_digest: bytes
    """Digest of the event before it; `NO_DIGEST` for the first."""
    body: bytes
    digest: bytes


class EventDraft(NamedTuple):
    """An event to add to the log of a run of the thread that is written; the store gives it its place."""

    run_id: str
    kind: str
    created_at: int
    body: bytes


class ThreadRow(NamedTuple):
    """The head of a thread, and who may write it."""

    thread_id: str
    graph_id: str
    status: str
    """running | paused | waiting | failed | cancelled | finished"""
    epoch: int
    """Fencing number: each takeover adds one, and only the current one may write."""
    run_id: str
    """The run that holds the lease, "" while nobody does."""
    holder: str
    """Which process that is, as the store tells processes apart."""
    lease_until: float
    head_seq: int
    head_digest: bytes
    lineages: int
    """How many lineages the thread has; the next one gets this number."""
    updated_at: int


class Rows(NamedTuple):
    """What one transaction adds to a thread, and the head it leaves."""

    head_seq: int
    head_digest: bytes
    lineages: int
    checkpoints: Sequence[CheckpointRow]
    records: Sequence[RecordRow]
    events: Sequence[EventDraft] = ()


@dataclass(slots=True)
class Claim:
    """Ask for a thread: lease, run row and first rows become durable together (INV-3), or not at all.

    `seen` is the thread as the caller read it (None: there was none). The claim lands only if the thread is still at
    that epoch and head.
    """

    thread_id: str
    graph_id: str
    seen: ThreadRow | None
    run: RunRow | None
    """None for an edit, which is no run."""
    rows: Rows
    lease_seconds: float | None
    """None: take the thread for this transaction only (an edit), leaving it free."""
    status: str
    now: int
    ended: RunRow | None = None
    """The run of a dead process whose thread this claim takes for something else, as its row shall be."""


@dataclass(slots=True)
class Commit:
    """One fenced write of a run. Lands only while `epoch` is the thread's and its head is `seen_seq`."""

    thread_id: str
    run_id: str
    epoch: int
    seen_seq: int
    rows: Rows
    status: str
    lease_seconds: float | None
    """None releases the lease in this transaction."""
    run: RunRow | None
    """The run row as it shall be, where it changes."""
    now: int
    flush: bool = True
    """False: it may survive the process and not yet a power loss when it is answered; the next flushed write of the
    store brings it to the disk."""


@dataclass(slots=True)
class Counts:
    """What a store has spent on writing since it was opened. Tests assert these exactly."""

    transactions: int = 0
    statements: int = 0
    bytes: int = 0
    """Bytes of bodies, inputs, metadata and events handed to the database."""
    syncs: int = 0
    """Transactions that were not answered before the disk had them."""
    renewals: int = 0


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which checkpoints to list, newest first by seq."""

    thread_id: str
    namespace: str = ""
    before_seq: int | None = None
    limit: int | None = None
    filter: Mapping[str, Any] | None = None
    """Equality on `source`, `step`, `run_id`, `lineage` or a top-level key of the metadata. Keys and values are
    bound, never interpolated."""


class Reader(Protocol):
    """Reads of one consistent snapshot. Every row returned has been verified."""

    def thread(self, thread_id: str) -> ThreadRow | None: ...

    def checkpoint(self, thread_id: str, namespace: str, checkpoint_id: str) -> CheckpointRow | None: ...

    def newest(self, thread_id: str, namespace: str, lineage: int | None = None) -> CheckpointRow | None:
        """Return the newest checkpoint by seq, of the lineage or of all. Checks the thread's head against the rows:
        a missing tail is a `CorruptRecordError`."""
        ...

    def checkpoints(self, thread_id: str, seqs: Sequence[int]) -> list[CheckpointRow]:
        """Return these rows; a missing one is a `CorruptRecordError`."""
        ...

    def child(self, thread_id: str, parent_seq: int, lineage: int) -> CheckpointRow | None:
        """Return the checkpoint of this lineage whose parent is `parent_seq`."""
        ...

    def records(self, thread_id: str, base_seq: int) -> list[RecordRow]:
        """Return the records of a base in seq order; a gap in the ordinals is a `CorruptRecordError`."""
        ...

    def records_of_kind(self, thread_id: str, kind: str) -> list[RecordRow]: ...

    def history(self, query: HistoryQuery) -> list[CheckpointRow]: ...

    def run(self, run_id: str) -> RunRow | None: ...

    def runs(self, thread_id: str, limit: int | None = None, before: str | None = None) -> list[RunRow]:
        """Return the thread's runs, last admitted first: at most `limit`, and only those before the run `before`."""
        ...

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """Return the run's log behind the ordinal `after`. An entry that is missing, its last ones included once the
        run has counted them, is a `CorruptRecordError`."""
        ...

    def threads(self, limit: int | None = None) -> list[ThreadRow]:
        """Return threads, last changed first."""
        ...


class Store(Protocol):
    """What a database must do. `stepwell.testing.store_suite` is the specification; this names the verbs.

    Methods block. They may be called from any thread and any event loop's thread; a store whose `blocking` is True must
    not be called from a loop (the engine reaches it through `queue` or a worker thread).
    """

    blocking: bool
    """False for a store that never touches a disk or a network."""
    counts: Counts

    def admit(self, claim: Claim) -> ThreadRow | None:
        """Take the thread: epoch + 1, and everything of the claim durable when this returns.

        Returns None, having written nothing, where the thread is not as `seen` any more: read again and claim again.
        Raises ThreadBusyError where another run holds a live lease.
        """
        ...

    def commit(self, commit: Commit) -> None:
        """Write under the fence; durable when this returns. LeaseLostError: nothing was written."""
        ...

    def queue(self, commit: Commit) -> Future[None]:
        """Queue the same write and return at once. Writes land in the order in which they were queued."""
        ...

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        """Extend the lease. False: it is somebody else's now."""
        ...

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive, as far as can be known: not expired, not dead."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        ...

    def verify(self) -> Iterator[str]:
        """Check every row of every thread; yield one sentence per fault found."""
        ...

    def close(self) -> None:
        """Finish what is queued, release everything. Calls after it raise SaverClosedError."""
        ...


def sealed_checkpoint(columns: tuple[Any, ...]) -> CheckpointRow:
    """Return the row of these columns (all but the digest) with its digest."""
    return CheckpointRow._make((*columns, digest_of("checkpoint", columns)))


def seal_checkpoint(row: CheckpointRow) -> CheckpointRow:
    """Return the row with its digest filled in."""
    return sealed_checkpoint(row[:-1])


def seal_record(row: RecordRow) -> RecordRow:
    """Return the row with its digest filled in."""
    columns = row[:-1]
    return RecordRow(*columns, digest_of("record", columns))


def digest_of(tag: str, columns: Sequence[Any]) -> bytes:
    """Return the 16-byte digest of a row's columns: blake2b-128 over their msgpack array, which frames every field."""
    return hashlib.blake2b(_packb((tag, *columns)), digest_size=16).digest()


def _first_packb(fields: tuple[Any, ...]) -> bytes:
    """Load ormsgpack on first use, and stand aside."""
    global _packb
    import ormsgpack

    _packb = ormsgpack.packb
    return _packb(fields)


_packb: Callable[[tuple[Any, ...]], bytes] = _first_packb
