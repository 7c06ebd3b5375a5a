"""What one member does inside a transaction that its leader opened: take a thread, commit under the fence, renew.

Each update of the thread row comes first and decides: if it changed no row, nothing else of the member is written.
Beginning, committing and undoing are the leader's (`transaction.py`). The commit is the hot path of every run: tuples,
one cursor, no lookups that can be kept.
"""

from __future__ import annotations

from typing import Any

from stepwell import points
from stepwell.errors import LeaseLostError, RunConflictError, ThreadBusyError
from stepwell.store import (
    DELETED,
    NO_DIGEST,
    Claim,
    Commit,
    Counts,
    Deletion,
    ItemWrites,
    KeyWrites,
    Message,
    MessageRow,
    Pruned,
    Pruning,
    Repair,
    Restoration,
    Rows,
    RunRow,
    ThreadRow,
)
from stepwell.stores.shared import items
from stepwell.stores.shared.branches import note_branches, note_lineage
from stepwell.stores.shared.effect_rows import are_as_seen, put_effects
from stepwell.stores.shared.event_log import add_events, counted
from stepwell.stores.shared.inbox import append, consume
from stepwell.stores.shared.keys import put_key, write_keys
from stepwell.stores.shared.member import Renewal
from stepwell.stores.shared.pruning import prune, put_anchors
from stepwell.stores.shared.repairing import write_repair
from stepwell.stores.shared.restoring import restore
from stepwell.stores.shared.rows import THREADS, run_digest, thread_digest
from stepwell.stores.shared.statements import Leases, Statements

_CONTENT = (
    "delete_key",  # first: see there
    "delete_events",  # before what tells which runs the thread had
    "delete_checkpoints",
    "delete_records",
    "delete_blobs",
    "delete_lineages",
    "delete_anchors",
    "delete_effects",
    "delete_runs",
    "delete_inbox",
)


DIGEST = 11
"""Where the fence is given the digest of the thread row."""


class Writes:
    """The writing statements on one connection, for one process.

    Texts of the statements that every run needs are kept: looking one up costs what binding a column does.
    """

    def __init__(self, on: Statements, leases: Leases, counts: Counts) -> None:
        self._on = on
        self._execute = on.execute
        self._changes = on.changes
        self._leases = leases
        self._counts = counts
        self._holder = leases.holder
        self._graphs: dict[str, tuple[int, str]] = {}
        """Of each thread that is driven here: the epoch, and the graph."""
        self._fence, self._checkpoint = on.query("fence_thread"), on.query("insert_checkpoint")
        self._record, self._run = on.query("insert_record"), on.query("put_run")

    def commit(self, commit: Commit) -> bytes:
        """Write under the fence; return the digest of the thread row as written."""
        thread_id, epoch, rows = commit.thread_id, commit.epoch, commit.rows
        fence = self.fence(commit)
        self._counts.statements += 1
        self._execute(self._fence, fence)
        if self._changes() != 1:
            raise self._lost(commit)
        points.reach(points.FENCED)
        self._insert(thread_id, epoch, rows, commit.run)
        if commit.consumed:
            consume(self._on, self._counts, thread_id, commit.consumed)
        if rows.effects:
            commit.refused = put_effects(self._on, self._counts, thread_id, rows.effects)
        if commit.items:
            items.write_items(self._on, self._counts, commit.items)
        if commit.lease_seconds is None:
            self._graphs.pop(thread_id, None)
        digest: bytes = fence[DIGEST]
        return digest

    def fence(self, commit: Commit) -> tuple[Any, ...]:
        """Return what the fence is given: the thread row as it shall be, its digest, and what it must be now."""
        thread_id, epoch, rows, seconds = commit.thread_id, commit.epoch, commit.rows, commit.lease_seconds
        known = self._graphs.get(thread_id)
        graph_id = known[1] if known is not None and known[0] == epoch else self._graph_of(commit)
        run_id, holder, until = ("", "", 0.0) if seconds is None else self._lease(commit.run_id, seconds)
        head = (thread_id, graph_id, commit.status, epoch, run_id, holder, until, rows[0], rows[1], rows[2], commit.now)
        return (*head, thread_digest(head), commit.seen_seq, commit.run_id, self._holder)

    def knows(self, commit: Commit) -> bool:
        """Tell whether `fence` need not look anything up."""
        known = self._graphs.get(commit.thread_id)
        return known is not None and known[0] == commit.epoch

    def on(self, statements: Statements) -> Writes:
        """Return the same, on another connection: what is known of threads is shared."""
        same = Writes(statements, self._leases, self._counts)
        same._graphs = self._graphs
        return same

    def forget(self, thread_id: str) -> None:
        """A thread that is not driven here any more needs no note."""
        self._graphs.pop(thread_id, None)

    def admit(self, claim: Claim) -> tuple[ThreadRow, bytes] | None:
        """Take the thread; return its row and digest as written, or None where it is not as seen any more."""
        if claim.whole and not are_as_seen(self._on, self._counts, claim.rows.effects):
            return None
        row = self.claimed(claim)
        digest = thread_digest(row)
        self._counts.statements += 1
        if claim.seen is None:
            self._execute(self._on.query("open_thread"), (*row, digest))
        else:
            asked = (claim.seen.head_seq, self.asked(), self.is_dead(claim.seen))
            self._execute(self._on.query("claim_thread"), (*row, digest, *asked))
        if self._changes() != 1:
            tombstone = self._refuse(claim)
            if tombstone is None:
                return None
            claim.seen = tombstone
            return self.admit(claim)
        points.reach(points.FENCED)
        if claim.key is not None:
            put_key(self._on, self._counts, claim.key)
        self._put_what_was_pruned(claim)
        self._insert(claim.thread_id, row.epoch, claim.rows, claim.run)
        if claim.rows.effects:
            put_effects(self._on, self._counts, claim.thread_id, claim.rows.effects)
        if claim.ended is not None and claim.seen is not None:
            ended = counted(self._on, self._counts, claim.ended) if claim.rows.events else claim.ended
            self._put_run(claim.thread_id, claim.seen.epoch, ended)
        items.write_items(self._on, self._counts, claim.items)
        for behind, run in enumerate(claim.runs):  # their epochs, which order them, end with this one
            self._put_run(claim.thread_id, row.epoch - behind, run)
        if claim.shape is not None:
            self._counts.statements += 1
            self._execute(self._on.query("insert_shape"), claim.shape)
        self.note(row)
        return row, digest

    def claimed(self, claim: Claim) -> ThreadRow:
        """Return the thread row that a claim writes."""
        epoch = 1 if claim.seen is None else claim.seen.epoch + 1
        owner = ("", "", 0.0)
        if claim.lease_seconds is not None:
            if claim.run is None:
                raise ValueError(f"a claim of thread {claim.thread_id!r} asks for a lease without a run to hold it")
            owner = self._lease(claim.run.run_id, claim.lease_seconds)
        elif claim.at_work:
            owner = (claim.at_work, "", 0.0)
        seq, digest, lineages = claim.rows[:3]
        return ThreadRow(claim.thread_id, claim.graph_id, claim.status, epoch, *owner, seq, digest, lineages, claim.now)

    def is_dead(self, seen: ThreadRow) -> bool:
        """Tell whether whoever was seen at work on a thread needs no waiting for."""
        return bool(seen.run_id) and self._leases.is_gone(seen.holder)

    def asked(self) -> float | None:
        """Return what a claim is told to compare leases with; None where the database asks its own clock."""
        return self._leases.asked()

    def note(self, row: ThreadRow) -> None:
        """Take note of a thread that was taken: while it is driven here, a commit need not look up its graph."""
        if row.run_id:
            self._graphs[row.thread_id] = (row.epoch, row.graph_id)

    def _put_what_was_pruned(self, claim: Claim) -> None:
        for lineage in claim.lineages:
            note_lineage(self._on, self._counts, lineage)
        put_anchors(self._on, self._counts, claim.thread_id, claim.anchors)

    def prune(self, pruning: Pruning) -> tuple[Pruned, bytes] | None:
        """Take rows out of a thread; None where it is not as seen any more. Nothing says that it was changed."""
        seen = pruning.seen
        head = Rows(seen.head_seq, seen.head_digest, seen.lineages, [], [])
        taken = self.admit(
            Claim(
                seen.thread_id, seen.graph_id, seen, None, head, None, seen.status, seen.updated_at, at_work=seen.run_id
            )
        )
        return None if taken is None else (prune(self._on, self._counts, pruning), taken[1])

    def restore(self, restoration: Restoration) -> bytes | None:
        """Write a thread that comes from elsewhere; return the digest of its row, or None where there is one."""
        restored = restore(self._on, self._counts, restoration)
        return None if restored is None else restored[1]

    def append(self, message: Message) -> MessageRow:
        """Leave a message in a thread's inbox; return it as it stands there."""
        return append(self._on, self._counts, message)

    def write_keys(self, work: KeyWrites) -> tuple[int, bytes]:
        """Write data keys; return how many rows changed, and the seal of the last one."""
        return write_keys(self._on, self._counts, work)

    def renew(self, renewal: Renewal) -> bool:
        """Extend the lease; False where it is not this run's in this process any more."""
        row = self._thread(renewal.thread_id)
        if row is None or (row.epoch, row.run_id, row.holder) != (renewal.epoch, renewal.run_id, self._holder):
            return False
        row = row._replace(lease_until=self._leases.now() + renewal.lease_seconds)
        given = row._asdict() | {"digest": thread_digest(row)}
        self._execute(self._on.query("renew_thread"), given)
        return True

    def write_items(self, work: ItemWrites) -> tuple[int, bytes]:
        """Write items of no run; return how many expired ones were deleted, and the seal of the last write."""
        items.write_items(self._on, self._counts, work.writes)
        swept = 0 if work.expired_at is None else items.sweep_items(self._on, self._counts, work.expired_at)
        return swept, items.seal_of(self._on, work.writes)

    def delete(self, deletion: Deletion) -> bytes | None:
        """Leave of a thread its tombstone; return the tombstone's digest, or None where there is no such thread.

        The row is not verified: a damaged thread can be deleted.
        """
        where = {"thread_id": deletion.thread_id}
        self._counts.statements += 1
        found: list[tuple[int]] = self._execute(self._on.query("epoch"), where).fetchall()
        if not found:  # it never began, and may have got messages all the same; or its own row was lost
            self._delete_content(where)
            return None
        if deletion.seen is not None and not self._is_as_seen(deletion.seen):
            return None
        nobody = ("", "", 0.0)
        epoch = deletion.epoch = found[0][0] + 1
        row = ThreadRow(deletion.thread_id, "", DELETED, epoch, *nobody, 0, NO_DIGEST, 0, deletion.now)
        digest = thread_digest(row)
        self._execute(self._on.query("delete_thread"), (*row, digest))
        self._counts.statements += 1
        points.reach(points.FENCED)
        self._delete_content(where)
        points.reach(points.ROWS_DELETED)
        self._graphs.pop(deletion.thread_id, None)
        return digest

    def _delete_content(self, where: dict[str, Any]) -> None:
        """Delete every row of a thread but its own."""
        for name in _CONTENT:
            self._execute(self._on.query(name), where)
        self._counts.statements += len(_CONTENT)

    def _is_as_seen(self, seen: ThreadRow) -> bool:
        """Tell whether a thread is still as it was seen, and nobody is at work on it."""
        self._counts.statements += 1
        free = not seen.run_id or seen.lease_until <= self._leases.now() or self._leases.is_gone(seen.holder)
        return free and self._thread(seen.thread_id) == seen

    def repair(self, repair: Repair) -> bytes | None:
        """Write a repair; return the digest of the thread row, or None where it is not as seen any more."""
        digest = write_repair(self._on, self._counts, repair)
        if digest is not None:
            self._graphs.pop(repair.thread_id, None)
        return digest

    def _lease(self, run_id: str, seconds: float) -> tuple[str, str, float]:
        return run_id, self._holder, self._leases.now() + seconds

    def _refuse(self, claim: Claim) -> ThreadRow | None:
        """Say why a claim changed no row: busy is an error, changed is None, deleted the tombstone to take instead."""
        self._counts.statements += 1
        row = self._thread(claim.thread_id)
        seen = claim.seen
        if row is not None and seen is None and row.status == DELETED:
            return row
        if row is None or seen is None or (row.epoch, row.head_seq) != (seen.epoch, seen.head_seq):
            return None
        left = max(0.0, row.lease_until - self._leases.now())
        raise ThreadBusyError(thread_id=row.thread_id, holder=row.holder, run_id=row.run_id, expires_in=left)

    def _insert(self, thread_id: str, epoch: int, rows: Rows, run: RunRow | None) -> None:
        on, execute, counts = self._on, self._execute, self._counts
        if rows[2] > 1:
            counts.statements += note_branches(on, thread_id, rows.checkpoints)
        for blob in rows.blobs:
            if blob.thread_id != thread_id:
                raise _stray(thread_id, blob.thread_id)
            counts.statements += 1
            counts.bytes += len(blob.body)
            execute(on.query("insert_blob"), blob)
        for checkpoint in rows.checkpoints:
            if checkpoint.thread_id != thread_id:
                raise _stray(thread_id, checkpoint.thread_id)
            counts.statements += 1
            counts.bytes += len(checkpoint.body) + (len(checkpoint.metadata.encode()) if checkpoint.metadata else 0)
            execute(self._checkpoint, checkpoint)
        for record in rows.records:
            if record.thread_id != thread_id:
                raise _stray(thread_id, record.thread_id)
            counts.statements += 1
            counts.bytes += len(record.body)
            execute(self._record, record)
        if rows.events:
            add_events(on, counts, thread_id, rows.events)
            run = counted(on, counts, run) if run is not None else None
        if run is not None:
            self._put_run(thread_id, epoch, run)

    def _put_run(self, thread_id: str, epoch: int, run: RunRow) -> None:
        if run.thread_id != thread_id:
            raise _stray(thread_id, run.thread_id)
        self._counts.statements += 1
        self._counts.bytes += len(run.input)
        columns = (*run, epoch)
        self._execute(self._run, (*columns, run_digest(columns)))
        if self._changes() != 1:
            told = f"Run {run.run_id} belongs to another thread than {thread_id!r}. Use a new run_id."
            raise RunConflictError(told, run_id=run.run_id, thread_id=thread_id)

    def _lost(self, commit: Commit) -> LeaseLostError:
        """Return the error for a commit that the fence kept out. Raises CorruptRecordError if damage is the reason."""
        self._counts.statements += 1
        row = self._thread(commit.thread_id)
        self._graphs.pop(commit.thread_id, None)
        told = None
        if row is None or row.status == DELETED:
            told = f"Run {commit.run_id} lost thread {commit.thread_id}: it was deleted. Nothing was written."
        return LeaseLostError(told, thread_id=commit.thread_id, run_id=commit.run_id, epoch=commit.epoch)

    def _graph_of(self, commit: Commit) -> str:
        """Return the graph of a thread that another store object of this process admitted."""
        self._counts.statements += 1
        row = self._thread(commit.thread_id)
        if row is None or row.epoch != commit.epoch:
            raise self._lost(commit)
        self._graphs[commit.thread_id] = (row.epoch, row.graph_id)
        return row.graph_id

    def _thread(self, thread_id: str) -> ThreadRow | None:
        found = self._execute(self._on.query("thread_to_write"), {"thread_id": thread_id}).fetchall()
        return THREADS.verified(found[0]) if found else None


def check_stray(thread_id: str, rows: Rows, *runs: RunRow | None) -> None:
    """Raise where a write to a thread holds a row of another one."""
    for row in (*rows.checkpoints, *rows.records, *rows.blobs, *runs):
        if row is not None and row.thread_id != thread_id:
            raise _stray(thread_id, row.thread_id)


def _stray(thread_id: str, other: str) -> ValueError:
    return ValueError(f"a write to thread {thread_id!r} holds a row of thread {other!r}")
