"""What a store is asked to write: claims, commits, messages, deletions, and what writing has cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.store.keys import KeyRow
from stepwell.store.rows import (
    AnchorRow,
    BlobRow,
    CheckpointRow,
    EffectChange,
    EventDraft,
    LineageRow,
    MessageRow,
    RecordRow,
    RunRow,
    ShapeRow,
    ThreadRow,
)
from stepwell.superstep.items import ItemWrite

Consumed = tuple[str, int]
"""The id of a message, and the seq of the record that says what came of it."""


class Rows(NamedTuple):
    """What one transaction adds to a thread, and the head it leaves."""

    head_seq: int
    head_digest: bytes
    lineages: int
    checkpoints: Sequence[CheckpointRow]
    records: Sequence[RecordRow]
    events: Sequence[EventDraft] = ()
    effects: Sequence[EffectChange] = ()
    blobs: Sequence[BlobRow] = ()
    """Values that the other rows refer to; one that the thread has already is left as it is."""


@dataclass(slots=True)
class Counts:
    """What writing has cost: a store since it was opened, or one run. Tests assert these exactly."""

    transactions: int = 0
    statements: int = 0
    bytes: int = 0
    """Bytes of bodies, inputs, metadata and events handed to the database."""
    syncs: int = 0
    """Transactions that were not answered before the disk had them."""
    renewals: int = 0


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
    cost: Counts | None = None
    """Where to add what this write costs, beside the store's own counts. A transaction that several writes share counts
    for each of them."""
    shape: ShapeRow | None = None
    """The shape of the graph that makes this claim; stored once, however many threads have it."""
    runs: Sequence[RunRow] = ()
    """Runs that come with a copied thread, last admitted first."""
    at_work: str = ""
    """The one among them that was going on: the thread is left as if its process had died, for anybody to take."""
    items: Sequence[ItemWrite] = ()
    """As in `Commit`."""
    key: KeyRow | None = None
    """The data key its rows are encrypted with, to be written with them. KeyTakenError, with nothing written, where the
    thread has another one."""
    anchors: Sequence[AnchorRow] = ()
    """What was pruned of a thread that is copied."""
    lineages: Sequence[LineageRow] = ()
    """Those of a thread that is copied, where it has branched: not all can be told from the rows of a pruned one."""
    whole: bool = False
    """Whether the rows of all its effects must be as seen too, or nothing is written: it is only about them."""


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
    cost: Counts | None = None
    """As in `Claim`."""
    consumed: Sequence[Consumed] = ()
    """The messages whose records this write brings: in the inbox they are done with from here on."""
    refused: tuple[bytes, ...] = ()
    """Filled in by the store: digests of the effect rows that were left out, since what is under their keys is not as
    seen any more. All else has landed, other rows under the same keys included."""
    items: Sequence[ItemWrite] = ()
    """What the outcomes that this write consumes wrote to the item store, in merge order."""


@dataclass(slots=True)
class Message:
    """Leave a message in a thread's inbox, whoever holds the thread, and whether or not it has begun."""

    thread_id: str
    message_id: str
    kind: str
    key: str
    body: bytes
    now: int
    flush: bool = True
    content: bytes = b""
    """By what the same message is known; b"": the digest of its kind, key and body."""
    data_key: KeyRow | None = None
    """As the `key` of a `Claim`."""


Range = tuple[int, int]
"""First and last seq, both included."""


@dataclass(slots=True)
class Pruning:
    """Take rows out of a thread that nobody drives: like an edit it holds the thread for its own transaction, and it
    lands only if the thread is as `seen`. A run whose process died can go on with it afterwards."""

    seen: ThreadRow
    checkpoints: Sequence[Range]
    records: Sequence[Range]
    anchors: Sequence[AnchorRow]
    """Those that are new or other than before."""
    dropped: Sequence[int]
    """Seqs of anchors that stand for nothing any more."""
    logs: Sequence[str] = ()
    """Runs whose logs go."""
    runs: Sequence[str] = ()
    """Runs that are forgotten: their ids are free again."""
    flush: bool = True
    blobs: Sequence[bytes] = ()
    """Names of values that nothing refers to any more."""

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self.seen.thread_id


StoredRow = tuple[str, tuple[Any, ...]]
"""The table of a row, and its columns as they are stored, its digest the last."""


@dataclass(slots=True)
class Restoration:
    """Write a thread that is not there, row for row as it was stored in another database: nothing is sealed anew but
    its own row, which nobody holds."""

    thread: ThreadRow
    rows: Callable[[], Iterator[StoredRow]]
    """Called each time the write is tried."""
    flush: bool = True

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self.thread.thread_id


class StoreSize(NamedTuple):
    """What a database takes on its disk, or in memory."""

    bytes: int
    free: int | None
    """Bytes of it that hold nothing, and that `vacuum` gives back; None where the database does not say."""


class Pruned(NamedTuple):
    """How many rows went."""

    checkpoints: int
    records: int
    events: int
    runs: int


@dataclass(slots=True)
class Deletion:
    """Delete a thread, whoever holds it: its epoch moves on, so the holder's next write is refused."""

    thread_id: str
    now: int
    epoch: int = 0
    """That of the tombstone, filled in by the store."""
    seen: ThreadRow | None = None
    """The thread as it was when it was decided to delete it: it is left alone if it has moved since, or is held."""
    flush: bool = True


@dataclass(slots=True)
class Repair:
    """Give a damaged thread a row that verifies, with the rows from which it goes on, and what says how it stands.

    Lands only while the thread's row is the one that was seen, whatever is wrong with it. What is never updated
    (checkpoints, records, events) stays as it is.
    """

    thread: ThreadRow
    """As it shall be: free, under an epoch that nobody has had."""
    seen: tuple[bytes | None] | None
    """The digest that the thread's row has, which need not be right; None where the row is missing."""
    rows: Rows
    lineages: Sequence[LineageRow]
    """All of them, in place of those that are there."""
    runs: Sequence[tuple[RunRow, int]] = ()
    """Runs whose rows are made anew, each with the epoch that admitted it."""
    messages: Sequence[MessageRow] = ()
    """Messages whose rows are made anew. The store seals them."""
    removed: Sequence[tuple[str, bytes, bytes]] = ()
    """Rows that are in the way: table ("effects" or "inbox"), and the two columns of its key, as they stand."""
    flush: bool = True

    @property
    def thread_id(self) -> str:
        """The thread."""
        return self.thread.thread_id
