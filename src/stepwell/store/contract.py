"""What a database must do: the verbs of reading and writing, and what each may answer.

What they are given is in `writes.py` and `queries.py`, the rows in `rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stepwell.store.faults import Fault, RawRow
from stepwell.store.items import ItemReader, ItemWrites
from stepwell.store.keys import KeyRow, KeyWrites
from stepwell.store.queries import (
    CheckpointOutline,
    EffectsQuery,
    HistoryQuery,
    JournalQuery,
    RecordOutline,
    ThreadsQuery,
)
from stepwell.store.queued import Queued
from stepwell.store.rows import (
    AnchorRow,
    BlobRow,
    CheckpointRow,
    EffectRow,
    EventRow,
    LineageRow,
    MessageRow,
    RecordRow,
    RunRow,
    ThreadRow,
)
from stepwell.store.sealing import Sealer
from stepwell.store.writes import (
    Claim,
    Commit,
    Counts,
    Deletion,
    Message,
    Pruned,
    Pruning,
    Repair,
    Restoration,
    StoredRow,
    StoreSize,
)


class Reader(ItemReader, Protocol):
    """Reads of one consistent snapshot. Every row returned has been verified."""

    def expect(self, asked: str, *of: Any) -> None:
        """Say that a method of this name is about to be called with these arguments: a database that is far away is
        asked for all that is expected at once, one that is near does nothing."""
        ...

    def thread(self, thread_id: str) -> ThreadRow | None: ...

    def checkpoint(self, thread_id: str, namespace: str, checkpoint_id: str) -> CheckpointRow | None: ...

    def raw_checkpoint(self, thread_id: str, seq: int) -> RawRow | None:
        """Return what stands at a seq, verified or not: the one read that a damaged row does not refuse."""
        ...

    def seq_of(self, thread_id: str, namespace: str, checkpoint_id: str) -> int | None:
        """Return the seq of a checkpoint, without reading it: a cursor works on a damaged one too."""
        ...

    def id_of(self, thread_id: str, seq: int) -> str:
        """Return the id of the checkpoint at a seq; a missing one is a `CorruptRecordError`. Of one that was pruned,
        that of the nearest one before it that is kept; "" where there is none."""
        ...

    def lineage_of(self, thread_id: str, seq: int) -> int | None:
        """Return the lineage of the checkpoint at a seq, without reading it."""
        ...

    def newest_seq(self, thread_id: str, namespace: str) -> int | None:
        """Return the seq of the newest checkpoint of a namespace, without reading it."""
        ...

    def newest(self, thread_id: str, namespace: str, lineage: int | None = None) -> CheckpointRow | None:
        """Return the newest checkpoint by seq, of the lineage or of all. Checks the thread's head against the rows:
        a missing tail is a `CorruptRecordError`."""
        ...

    def head_seq(self, thread_id: str, namespace: str, lineage: int) -> int | None:
        """Return the seq of the newest checkpoint of a lineage, without reading it; None where there is none."""
        ...

    def lineages(self, thread_id: str) -> list[LineageRow]:
        """Return the lineages of the root namespace that have a checkpoint, each with its head as it is now."""
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

    def records_of(self, thread_id: str, base_seqs: Sequence[int]) -> dict[int, list[RecordRow]]:
        """Return the records of several bases, as `records` does; bases without any are left out."""
        ...

    def records_at(self, thread_id: str, seqs: Sequence[int]) -> list[RecordRow]:
        """Return these records, in seq order; a missing one is a `CorruptRecordError`."""
        ...

    def records_of_kind(self, thread_id: str, kind: str) -> list[RecordRow]: ...

    def effects_told(self, thread_id: str, lineage: int, since_seq: int, until_seq: int) -> list[RecordRow]:
        """Return what is recorded of effects, in all lineages, on bases up to `until_seq`: from that on on which the
        lineage stood at `since_seq`, edits and forks passed over; 0: from the first on. In order of bases."""
        ...

    def journal(self, query: JournalQuery) -> list[RecordRow]:
        """Return the records a query selects. One that is missing before them on their base, as far as the list goes,
        is a `CorruptRecordError`."""
        ...

    def record(self, thread_id: str, seq: int) -> RecordRow:
        """Return the record at a seq; a missing one is a `CorruptRecordError`."""
        ...

    def everything(self, thread_id: str) -> tuple[list[CheckpointRow], list[RecordRow]]:
        """Return every checkpoint and every record of a thread, in all namespaces, each in seq order. Checks the
        thread's head against them."""
        ...

    def anchors(self, thread_id: str) -> list[AnchorRow]:
        """Return what stands for rows that were pruned, by seq."""
        ...

    def outline(self, thread_id: str) -> Iterator[CheckpointOutline]:
        """Yield the thread's checkpoints without their bodies, in seq order; their digests are not checked."""
        ...

    def record_outline(self, thread_id: str) -> Iterator[RecordOutline]:
        """Yield the thread's records without their bodies, in seq order; their digests are not checked."""
        ...

    def stored(self, thread_id: str) -> Iterator[StoredRow]:
        """Yield every row of a thread as it is stored, its own first, table by table. One that does not verify is a
        `CorruptRecordError`."""
        ...

    def blobs(self, thread_id: str, names: Sequence[bytes] | None = None) -> list[BlobRow]:
        """Return a thread's values of these names, by name, or all of them; what is not there is left out."""
        ...

    def blob_names(self, thread_id: str) -> set[bytes]:
        """Return the names of a thread's values, without reading them."""
        ...

    def effect(self, key: str) -> list[EffectRow]:
        """Return the rows under a key, by thread id: one, or one for each thread that shares it."""
        ...

    def effects_at(self, thread_id: str, position: str) -> list[EffectRow]:
        """Return a thread's effects at a position, of all its lineages, the last one first."""
        ...

    def effects(self, query: EffectsQuery) -> list[EffectRow]:
        """Return the effects a query selects. In a list over all threads, one that does not verify is `DAMAGED`."""
        ...

    def history(self, query: HistoryQuery) -> list[CheckpointRow]: ...

    def run(self, run_id: str) -> RunRow | None: ...

    def runs(self, thread_id: str, limit: int | None = None, before: str | None = None) -> list[RunRow]:
        """Return the thread's runs, last admitted first: at most `limit`, and only those before the run `before`."""
        ...

    def events(self, run_id: str, after: int = 0, limit: int | None = None) -> list[EventRow]:
        """Return the run's log behind the ordinal `after`. An entry that is missing, its last ones included once the
        run has counted them, is a `CorruptRecordError`."""
        ...

    def threads(self, query: ThreadsQuery) -> list[ThreadRow]:
        """Return the threads a query selects. One whose row does not verify is listed as `DAMAGED`."""
        ...

    def inbox(self, thread_id: str, kind: str | None = None) -> list[MessageRow]:
        """Return the messages that wait, of one kind or of all, in the order in which they came."""
        ...

    def message(self, thread_id: str, message_id: str) -> MessageRow | None:
        """Return a message, consumed or not."""
        ...

    def faults(self, thread_id: str) -> list[Fault]:
        """Check every row of a thread and of its inbox, also where its own row is missing; none where it is sound."""
        ...

    def raw_rows(self, thread_id: str, table: str) -> list[RawRow]:
        """Return all of a thread's rows in a table as they stand, verified or not."""
        ...

    def shape(self, fingerprint: str) -> str | None:
        """Return the shape of the graphs that have this fingerprint."""
        ...

    def key(self, thread_id: str) -> KeyRow | None:
        """Return the thread's data key, wrapped; `WHOLE_DATABASE`: the database's own."""
        ...

    def keys(self, after: str | None, limit: int) -> list[KeyRow]:
        """Return data keys, wrapped, by thread id: those behind a thread id, None for the first."""
        ...


class Store(Protocol):
    """What a database must do. `stepwell.testing.store_suite` is the specification; this names the verbs.

    Methods block. They may be called from any thread and any event loop's thread; a store whose `blocking` is True must
    not be called from a loop (the engine reaches it through `queue` or a worker thread).
    """

    blocking: bool
    """False for a store that never touches a disk or a network."""
    counts: Counts

    @property
    def sealer(self) -> Sealer:
        """Makes rows ready to be written here."""
        ...

    def admit(self, claim: Claim) -> ThreadRow | None:
        """Take the thread: epoch + 1, and everything of the claim durable when this returns.

        Returns None, having written nothing, where the thread is not as `seen` any more: read again and claim again.
        Raises ThreadBusyError where another run holds a live lease.
        """
        ...

    def commit(self, commit: Commit) -> None:
        """Write under the fence; durable when this returns. LeaseLostError: nothing was written."""
        ...

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        """Queue the same write and return at once. Writes land in the order in which they were queued.

        `wake` is False where the caller goes on to `settle` the future: then nobody else has to begin.
        """
        ...

    def settle(self, future: Queued) -> None:
        """Wait for a queued write, writing on this thread what is queued. Raises what the write failed with."""
        ...

    def append(self, message: Message) -> MessageRow:
        """Leave a message; durable when this returns. Needs no lease, and the thread need not be there yet.

        The same message under its id again is the one that is there already, consumed or not: it is returned, and
        nothing is written. Another one under that id is refused: MessageConflictError.
        """
        ...

    def write_items(self, writes: ItemWrites) -> int:
        """Write items of no run; durable when this returns. Returns how many expired ones were deleted on request."""
        ...

    def write_keys(self, writes: KeyWrites) -> int:
        """Write data keys; durable when this returns. Returns how many rows changed."""
        ...

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        """Extend the lease. False: it is somebody else's now."""
        ...

    def is_same(self, other: Store) -> bool:
        """Tell whether another store object keeps the same database, so that one transaction can write both's rows."""
        ...

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive, as far as can be known: not expired, not dead."""
        ...

    def delete(self, deletion: Deletion) -> bool:
        """Delete a thread's inbox and every row of it but its tombstone; durable when this returns. False: there was no
        such thread, or it is not as it was seen.

        Its data key goes first. Effects of the scope "global" stay: they are not the thread's.

        The thread can be begun anew. A run that still drives it writes nothing more: LeaseLostError.
        """
        ...

    def prune(self, pruning: Pruning) -> Pruned | None:
        """Take rows out of a thread, with anchors in their place; durable when this returns. None, having written
        nothing, where the thread is not as seen any more. Raises ThreadBusyError where a run holds a live lease."""
        ...

    def restore(self, restoration: Restoration) -> bool:
        """Write a thread as it was stored elsewhere, in one transaction; durable when this returns. False, having
        written nothing, where there is such a thread."""
        ...

    def repair(self, repair: Repair) -> bool:
        """Write a repair; durable when this returns. False, having written nothing, where the thread's row is not as
        seen any more."""
        ...

    def size(self) -> StoreSize:
        """Return what the database takes."""
        ...

    def vacuum(self, full: bool = False) -> None:
        """Give back what holds nothing any more. `full`: also where that locks others out meanwhile. A StoreError where
        there is no room for it: nothing was changed."""
        ...

    def reading(self) -> AbstractContextManager[Reader]:
        """Open one consistent snapshot for reads."""
        ...

    def verify(self) -> Iterator[Fault]:
        """Check every row of every thread; yield every fault found."""
        ...

    def close(self) -> None:
        """Finish what is queued, release everything. Calls after it raise SaverClosedError."""
        ...
