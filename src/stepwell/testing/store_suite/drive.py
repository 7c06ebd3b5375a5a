"""A run driven by hand: rows that are sealed and chained as the engine makes them, and the head they leave.

It knows the contract's rows and nothing of graphs. `Drive` is one run of one thread: it admits, commits step after
step, and can hand out a commit without landing it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stepwell.store import (
    NO_DIGEST,
    CheckpointRow,
    Claim,
    Commit,
    HistoryQuery,
    RecordRow,
    Rows,
    RunRow,
    Store,
    ThreadRow,
    seal_checkpoint,
    seal_record,
)

THREAD = "thread-1"


def checkpoint(thread_id: str, seq: int, parent: CheckpointRow | None, **columns: Any) -> CheckpointRow:
    """Return a sealed checkpoint on a parent."""
    row = CheckpointRow(
        thread_id=thread_id,
        namespace="",
        lineage=0,
        seq=seq,
        checkpoint_id=f"checkpoint-{seq}",
        parent_seq=None if parent is None else parent.seq,
        parent_digest=NO_DIGEST if parent is None else parent.digest,
        step=seq - 2,
        source="loop",
        run_id="run-1",
        graph_id="graph",
        version="v1",
        fingerprint="f1",
        created_at=1,
        metadata="",
        body=b"body %d" % seq,
        digest=b"",
    )
    return seal_checkpoint(row._replace(**columns))


def record(base: CheckpointRow, seq: int, ordinal: int, **columns: Any) -> RecordRow:
    """Return a sealed record on a base checkpoint."""
    row = RecordRow(
        thread_id=base.thread_id,
        namespace=base.namespace,
        lineage=base.lineage,
        seq=seq,
        base_seq=base.seq,
        base_digest=base.digest,
        ordinal=ordinal,
        kind="succeeded",
        task_id=f"task-{seq}",
        run_id=base.run_id,
        created_at=1,
        body=b"outcome %d" % seq,
        digest=b"",
    )
    return seal_record(row._replace(**columns))


def run_row(thread_id: str, run_id: str, **columns: Any) -> RunRow:
    """Return a run row."""
    row = RunRow(
        run_id=run_id,
        thread_id=thread_id,
        lineage=0,
        status="running",
        durability="sync",
        input=b"input",
        input_digest=b"i" * 16,
        base_seq=0,
        started_at=1,
        finished_at=0,
        recoveries=0,
        progress_seq=0,
        checkpoint_id="",
        error="",
        kind="input",
        takeovers=0,
        events=0,
    )
    return row._replace(**columns)


def rows_of(head: CheckpointRow | RecordRow, lineages: int, *rows: CheckpointRow | RecordRow) -> Rows:
    """Return what a transaction adds: these rows, `head` the last of them."""
    checkpoints = [row for row in rows if isinstance(row, CheckpointRow)]
    records = [row for row in rows if isinstance(row, RecordRow)]
    return Rows(head.seq, head.digest, lineages, checkpoints, records)


@dataclass
class Drive:
    """One run of one thread, driven by hand."""

    store: Store
    thread_id: str = THREAD
    run_id: str = "run-1"
    graph_id: str = "graph"
    lease_seconds: float | None = 30.0
    epoch: int = 0
    lineages: int = 1
    last: CheckpointRow | None = None
    head: CheckpointRow | RecordRow | None = None
    ordinals: dict[int, int] = field(default_factory=dict)

    @property
    def seq(self) -> int:
        """The head's seq; 0 before the first row."""
        return 0 if self.head is None else self.head.seq

    def claim(self, seen: ThreadRow | None = None, *, rows: bool = True, **columns: Any) -> Claim:
        """Return a claim with one checkpoint, or with none, leaving the head where `seen` has it."""
        if rows:
            self._advance(columns)
            added = rows_of(self._head(), self.lineages, self._head())
        else:
            added = Rows(0, NO_DIGEST, 1, [], []) if seen is None else Rows(*_head_of(seen), seen.lineages, [], [])
        run = run_row(self.thread_id, self.run_id)
        return Claim(self.thread_id, self.graph_id, seen, run, added, self.lease_seconds, "running", 1)

    def admit(self, seen: ThreadRow | None = None, *, rows: bool = True, **columns: Any) -> ThreadRow:
        """Take the thread."""
        row = self.store.admit(self.claim(seen, rows=rows, **columns))
        assert row is not None, "the thread is not as seen"
        self.epoch = row.epoch
        return row

    def take_over(self) -> ThreadRow:
        """Take an existing thread as it is now, adding no row, and go on from its head."""
        with self.store.reading() as reader:
            seen = reader.thread(self.thread_id)
            self.last = self.head = reader.newest(self.thread_id, "")
        assert seen is not None
        return self.admit(seen, rows=False)

    def step(self, *, records: int = 0, **columns: Any) -> Commit:
        """Return the next commit, a checkpoint after `records` records on the last one, without landing it."""
        seen_seq = self.seq
        added = [self.add_record() for _ in range(records)]
        self._advance(columns)
        return self._commit(seen_seq, rows_of(self._head(), self.lineages, *added, self._head()))

    def outcome(self, **columns: Any) -> Commit:
        """Return a commit of one record on the last checkpoint, without landing it."""
        seen_seq = self.seq
        row = self.add_record(**columns)
        return self._commit(seen_seq, rows_of(row, self.lineages, row))

    def ending(self, status: str = "finished") -> Commit:
        """Return a commit without rows that settles the run and frees the thread."""
        digest = NO_DIGEST if self.head is None else self.head.digest
        commit = self._commit(self.seq, Rows(self.seq, digest, self.lineages, [], []))
        commit.lease_seconds, commit.status = None, status
        commit.run = run_row(self.thread_id, self.run_id, status=status, finished_at=2)
        return commit

    def commit(self, *, records: int = 0, **columns: Any) -> CheckpointRow:
        """Land the next step; return its checkpoint."""
        self.store.commit(self.step(records=records, **columns))
        assert self.last is not None
        return self.last

    def add_record(self, **columns: Any) -> RecordRow:
        """Make the next record on the last checkpoint the head."""
        assert self.last is not None
        ordinal = self.ordinals.get(self.last.seq, 0)
        self.ordinals[self.last.seq] = ordinal + 1
        row = record(self.last, self.seq + 1, ordinal, run_id=self.run_id, **columns)
        self.head = row
        return row

    def _advance(self, columns: dict[str, Any]) -> None:
        self.last = self.head = checkpoint(
            self.thread_id, self.seq + 1, self.last, **{"run_id": self.run_id, "graph_id": self.graph_id} | columns
        )

    def _head(self) -> CheckpointRow | RecordRow:
        assert self.head is not None
        return self.head

    def _commit(self, seen_seq: int, rows: Rows) -> Commit:
        return Commit(self.thread_id, self.run_id, self.epoch, seen_seq, rows, "running", self.lease_seconds, None, 2)


def _head_of(row: ThreadRow) -> tuple[int, bytes]:
    return row.head_seq, row.head_digest


def started(store: Store, thread_id: str = THREAD, **options: Any) -> Drive:
    """Return a drive that holds the thread, one checkpoint in."""
    drive = Drive(store, thread_id, **options)
    drive.admit()
    return drive


def everything(store: Store, thread_id: str = THREAD) -> tuple[Any, ...]:
    """Return all that the store says of a thread, to compare before and after."""
    with store.reading() as reader:
        newest = reader.newest(thread_id, "")
        history = reader.history(HistoryQuery(thread_id))
        records = [reader.records(thread_id, row.seq) for row in history]
        return reader.thread(thread_id), newest, history, records, reader.runs(thread_id)
