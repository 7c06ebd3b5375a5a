"""The rows of the contract, and the digests that seal them.

A row is immutable once written, but for those of threads, runs and lineages. What is promised about rows is in
`contract.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


class EffectRow(NamedTuple):
    """How an effect stands now: its key, and what the records say of it. Replaced as it goes on."""

    key: str
    """The idempotency key. A thread that was copied shares the keys of what it took along with its origin."""
    thread_id: str
    """The thread it belongs to; for the scope "global" the one that wrote the row last."""
    scope: str
    """position | thread | global"""
    lineage: int
    """-1 for what came along when the thread was forked off another one."""
    position: str
    """The place of the call, the same over forks and edits."""
    node: str
    activation: int
    call_id: str
    name: str
    status: str
    """intent | done | failed | doubt | compensated"""
    epoch: int
    """The epoch under which the row was written: an intent of an epoch that has passed is in doubt."""
    run_id: str
    fingerprint: str
    """Of what was called, and with what."""
    seq: int
    """The record that says how it stands; 0 where the row itself does, in `body`."""
    attempts: int
    started_at: int
    """When its first attempt began."""
    finished_at: int
    """0 while it is open."""
    body: bytes
    """What that record says, where the thread may not hold it: in the scope "global" and for what came along."""
    digest: bytes


class EffectChange(NamedTuple):
    """An effect's row as it shall be, if the rows under its key are still those that were seen."""

    row: EffectRow
    seen: tuple[bytes, ...] | None = ()
    """Digests of all rows under the key, in their order; None: whatever stands there."""


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
    """What the call was: input | continue | answer | command | retry | replay | compensate"""
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


PRUNED = -1
"""In the place of the seq of a record that was pruned."""


class MessageRow(NamedTuple):
    """A message to a thread from outside. It stays when it was consumed, without its body: its id is known for good."""

    thread_id: str
    message_id: str
    ordinal: int
    """Position among the messages of its thread: those of one thread have an order that no clock decides."""
    kind: str
    key: str
    created_at: int
    content: bytes
    """Digest of kind, key and body: it tells a message sent twice from another one under its id."""
    consumed_seq: int
    """Seq of the record that says what came of it; 0 while it waits, `PRUNED` once that record was pruned."""
    body: bytes
    """b"" once it was consumed."""
    digest: bytes


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


DELETED = "deleted"
"""The status of a thread row that is only a tombstone: it keeps the epoch, so that no late writer brings the thread
back. Readers do not see it; a claim of a thread that was not there takes it."""


DAMAGED = "damaged"
"""The status of a row, in a list over all threads, that does not verify: only what places it in the list is filled in,
as far as it can be read. It hides no other; whoever reads the thread, or the effect, is told what is wrong with it."""


class BlobRow(NamedTuple):
    """A large value of a thread, stored once however many rows refer to it; never updated."""

    thread_id: str
    name: bytes
    """Made of the content: equal values of a thread have one row."""
    body: bytes
    digest: bytes


class LineageRow(NamedTuple):
    """Where a lineage of the root namespace began, and where it ends."""

    thread_id: str
    lineage: int
    parent_lineage: int | None
    """None for the lineage that the first input opened."""
    parent_seq: int | None
    """The checkpoint it was forked from."""
    head_seq: int
    """Its newest checkpoint. As stored: as of when another lineage got the thread's newest."""


COUNTING = -1
"""The seq of the row among the anchors of a thread that stands for no checkpoint: its `notes` are how many others there
are."""


class AnchorRow(NamedTuple):
    """Where a thread was pruned: what stands for a checkpoint that was cut, or that is only held."""

    thread_id: str
    seq: int
    held: int
    """1: the checkpoint is still there, since others need it, and shows nowhere."""
    parent_seq: int | None
    """The nearest checkpoint before it that is there."""
    parent_digest: bytes
    """Its digest; `NO_DIGEST` where there is none."""
    shown_seq: int | None
    """The nearest one before it that is kept: the history goes on with it."""
    row_digest: bytes
    """The digest of the checkpoint itself, which what follows it names."""
    checkpoints: int
    """How many were cut from `parent_seq` on, itself included; 0 where it is held."""
    records: int
    """How many of its records were cut."""
    notes: int
    """How many of them are still there."""
    pruned_at: int
    digest: bytes


class ShapeRow(NamedTuple):
    """What graphs with one fingerprint have in common. The fingerprint is the hash of the text, so it seals itself."""

    fingerprint: str
    shape: str


def sealed_checkpoint(columns: tuple[Any, ...]) -> CheckpointRow:
    """Return the row of these columns (all but the digest) with its digest."""
    return tuple.__new__(CheckpointRow, (*columns, digest_of("checkpoint", columns)))


def seal_checkpoint(row: CheckpointRow) -> CheckpointRow:
    """Return the row with its digest filled in."""
    return sealed_checkpoint(row[:-1])


def seal_record(row: RecordRow) -> RecordRow:
    """Return the row with its digest filled in."""
    columns = row[:-1]
    return RecordRow(*columns, digest_of("record", columns))


def seal_blob(row: BlobRow) -> BlobRow:
    """Return the row with its digest filled in."""
    columns = row[:-1]
    return BlobRow(*columns, digest_of("blob", columns))


def content_digest(kind: str, key: str, body: bytes) -> bytes:
    """Return the digest by which two messages are the same."""
    return digest_of("content", (kind, key, body))


def seal_effect(row: EffectRow) -> EffectRow:
    """Return the row with its digest filled in."""
    columns = row[:-1]
    return EffectRow(*columns, digest_of("effect", columns))


def seal_anchor(row: AnchorRow) -> AnchorRow:
    """Return the row with its digest filled in."""
    columns = row[:-1]
    return AnchorRow(*columns, digest_of("anchor", columns))


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
