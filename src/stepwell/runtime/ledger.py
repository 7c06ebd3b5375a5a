"""What a run has written and has yet to write: rows, seqs, digests, and the durability mode that says when.

The one commit path. Every superstep, outcome, failure, question and end of a run becomes rows here and goes to the
store as one fenced `Commit`. `sync` waits for each; `async` queues it and waits for the one before; `exit` holds
everything back until the run ends. Without a store nothing is written and the same methods keep the base moving.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from stepwell import points
from stepwell.errors import StoreError, UnserializableValueError
from stepwell.runtime.reporting import report_end
from stepwell.runtime.requests import Enqueue, Settle, Write
from stepwell.store import (
    NO_DIGEST,
    CheckpointRow,
    Commit,
    RecordRow,
    Rows,
    RunRow,
    ThreadRow,
    seal_record,
    sealed_checkpoint,
)
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.merge import Merged
from stepwell.superstep.outcome import Failed, Interrupted, Outcome, Succeeded, text_of
from stepwell.superstep.state import Base, Identity, State, Task

if TYPE_CHECKING:
    from stepwell.runtime.run import Run

LEASE_SECONDS = 30.0
FLUSH_SECONDS = 0.25
"""In `async` durability: a commit that comes this long after the last one that reached the disk waits for the disk."""


class Draft(NamedTuple):
    """A checkpoint without its row."""

    identity: Identity
    state: State
    lineage: int
    source: str
    parent_seq: int | None
    parent_digest: bytes
    sources: Sequence[layout.Source] = ()
    abandoned: tuple[Task, ...] = ()


class Ledger:
    """The writing side of one run."""

    __slots__ = (
        "ahead", "draft", "epoch", "flushed_at", "head_digest", "head_seq", "holds", "landed", "lineages", "metadata",
        "queued_seq", "recorded", "run", "run_row", "staged", "staged_records", "unrecorded"
    )  # fmt: skip

    def __init__(self, run: Run) -> None:
        self.run = run
        self.epoch = 0
        self.head_seq = 0
        self.head_digest = NO_DIGEST
        self.queued_seq = 0
        """The head the store has, or will have when everything queued has landed."""
        self.landed = (0, NO_DIGEST)
        """The head (seq, digest) to go back to when a write fails."""
        self.lineages = 1
        self.holds: dict[str, int] = {}
        """Channel → seq of the row that holds its value; a channel that is missing was changed since."""
        self.run_row: RunRow | None = None
        self.metadata = run.config.metadata_json
        self.flushed_at = run.clock.monotonic()
        self.draft: Draft | None = None
        """`exit` mode: the checkpoint the run stands on, while no row holds it."""
        self.staged: list[CheckpointRow] = []
        self.staged_records: list[RecordRow] = []
        self.ahead: tuple[Future[None], int, bytes] | None = None
        """The write that was queued last and not waited for, and the head it leaves."""
        self.recorded: dict[int, int] = {}
        """Position in the base → seq of the record that holds its outcome."""
        self.unrecorded: list[int] = []
        """Positions in the base whose outcome no row holds."""
        if run.tell is not None:
            run.tell.begin_anew()

    def follow(self, thread: ThreadRow | None) -> None:
        """Go on from the head the thread has."""
        if thread is not None:
            self.epoch, self.lineages = thread.epoch, thread.lineages
            self.head_seq = self.queued_seq = thread.head_seq
            self.head_digest = thread.head_digest
            self.landed = (thread.head_seq, thread.head_digest)

    def stand_on(self, holds: dict[str, int], recorded: dict[int, int]) -> None:
        """Take over what the rows of the base say."""
        self.holds = holds
        self.recorded = recorded

    # -- supersteps --------------------------------------------------------------------------------------------------

    def advance(self, base: Base, merged: Merged) -> Base:
        """Return the next base; `commit` makes it durable.

        UnserializableValueError, with nothing changed, where a value cannot be stored.
        """
        state, changed = merged
        run = self.run
        if run.store is None:
            return Base(state, base.identity.following(f"{run.run_id}:{state.step}", run.plan.version))
        identity = base.identity.following(run.ids.new(), run.plan.version)
        done: list[Succeeded] = base.outcomes  # type: ignore[assignment]  # or there would be nothing to advance to
        if self.recorded:
            sources = [layout.Source(task, done[i], self.recorded.get(i)) for i, task in enumerate(base.tasks)]
        else:
            sources = [layout.Source(task, outcome) for task, outcome in zip(base.tasks, done, strict=True)]
        return self.add(Draft(identity, state, base.lineage, "loop", *self.parent(base), sources), changed)

    def own(self, base: Base) -> None:
        """In `exit` mode: replace what user code still holds by what would be stored.

        UnserializableValueError where a value cannot be stored: it is refused where it was made, not at the end.
        """
        run = self.run
        if run.store is None or run.durability != "exit":
            return
        for index, (task, outcome) in enumerate(zip(base.tasks, base.outcomes, strict=True)):
            if isinstance(outcome, Succeeded):
                base.outcomes[index] = layout.stored_copy(run.codec, run.plan, task, outcome)

    def parent(self, base: Base) -> tuple[int | None, bytes]:
        """Return the row the next checkpoint follows: the base's, or what its draft follows."""
        if self.draft is not None:
            return self.draft.parent_seq, self.draft.parent_digest
        return (base.seq, base.digest) if base.digest else (None, NO_DIGEST)

    def add(self, draft: Draft, changed: Iterable[str]) -> Base:
        """Return the base a draft becomes: sealed into a row and staged or, in `exit` mode, kept as the draft."""
        if self.run.store is None:
            return Base(draft.state, draft.identity)
        following = self._added(draft, changed)
        self.recorded = {}
        self.unrecorded = []
        return following

    def _added(self, draft: Draft, changed: Iterable[str]) -> Base:
        holds = self.holds.copy()
        for key in changed:
            holds.pop(key, None)
        if self.run.durability == "exit" and draft.source in ("loop", "input"):
            before = self.draft.abandoned if self.draft is not None else ()
            self.draft = draft._replace(abandoned=before + draft.abandoned)
            self.holds = holds
            return Base(draft.state, draft.identity, draft.lineage, self.head_seq + 1)
        return self._seal(draft, holds)

    def _seal(self, draft: Draft, holds: dict[str, int]) -> Base:
        run = self.run
        identity, state = draft.identity, draft.state
        seq = self.head_seq + 1
        encoded = layout.encode_checkpoint(run.codec, run.plan, state, seq, draft.sources, holds, draft.abandoned)
        row = sealed_checkpoint(
            (
                identity.thread_id,
                identity.namespace,
                draft.lineage,
                seq,
                identity.checkpoint_id,
                draft.parent_seq,
                draft.parent_digest,
                state.step,
                draft.source,
                run.run_id,
                identity.graph_id,
                identity.version,
                run.plan.fingerprint,
                run.clock.now(),
                self.metadata,
                encoded.body,
            )
        )
        self.holds = holds
        for key in encoded.values:
            if key not in holds and run.plan.channels[key].tracked:
                holds[key] = seq
        self.head_seq = seq
        self.head_digest = row.digest
        self.staged.append(row)
        if run.tell is not None:
            run.tell.checkpoint(row, state.writers)
        if encoded.values is not state.values:
            state = state._replace(values=encoded.values)
        return Base(state, identity, draft.lineage, seq, row.digest)

    async def commit(self) -> None:
        """Make the staged checkpoint durable as the mode says; in `exit` mode nothing is staged yet."""
        if self.staged:
            await self._write(self._commit(lifecycle.RUNNING, None))

    # -- records on the base -----------------------------------------------------------------------------------------

    async def outcomes(self, base: Base) -> None:
        """Record what has finished on the base so far, while siblings still run."""
        if self.run.store is None or self.run.durability == "exit" or not self.unrecorded:
            return
        self.stage_outcomes(base)
        await self._write(self._commit(lifecycle.RUNNING, None))
        points.reach(points.OUTCOMES_RECORDED)

    async def attempt(
        self, base: Base, index: int, error: BaseException, attempts: int, first_at: int, next_at: int
    ) -> None:
        """Record a failed attempt and when the next one is due."""
        task_id = base.tasks[index].id
        base.attempted(task_id, attempts, first_at, next_at)
        if self.run.store is None or self.run.durability == "exit":
            return
        self.add_record(
            base, task_id, lifecycle.ATTEMPT, layout.encode_attempt(text_of(error), attempts, first_at, next_at)
        )
        await self._write(self._commit(lifecycle.RUNNING, None))

    async def end(self, base: Base, status: str, error: str = "") -> None:
        """Write everything the run still holds back, its end and the release of the lease, in one transaction."""
        if self.run_row is None:
            return
        self.stage_outcomes(base)
        if self.run.tell is not None:
            self.run.tell.ended(base, status, error)
        run_row, self.run_row = self.run_row, None
        try:
            await self._settle()
            await Write(self._commit(status, self._closed(run_row, base, status, error)))
        except StoreError:  # not written: the end is still to be told
            self.run_row = run_row
            raise
        report_end(self.run, base, status, error)

    async def release(self, base: Base, status: str, error: str) -> None:
        """After a write failed: give up what is not durable, say so, free the thread."""
        run_row, self.run_row = self.run_row, None
        if run_row is None:
            return
        self.staged.clear()
        self.staged_records.clear()
        self.head_seq, self.head_digest = self.landed
        self.queued_seq = self.head_seq
        if self.run.tell is not None:
            self.run.tell.forget()
            self.run.tell.ended(base, status, error)
        await Write(self._commit(status, self._closed(run_row, base, status, error)))
        report_end(self.run, base, status, error)

    def _closed(self, run_row: RunRow, base: Base, status: str, error: str) -> RunRow:
        now = self.run.clock.now()
        return run_row._replace(
            status=status, finished_at=now, checkpoint_id=base.checkpoint_id, error=error, recoveries=0
        )

    def stage_outcomes(self, base: Base) -> None:
        """Turn the outcomes no row holds into records; a success that cannot be stored becomes a failure."""
        if self.run.store is None:
            return
        if self.draft is not None:
            draft, self.draft = self.draft, None
            base.digest = self._seal(draft, self.holds).digest
        pending, self.unrecorded = self.unrecorded, []
        for index in pending:
            task, outcome = base.tasks[index], base.outcomes[index]
            assert outcome is not None
            try:
                kind, body = self._encode(task, outcome)
            except UnserializableValueError as error:
                outcome = base.outcomes[index] = Failed(text_of(error), error)
                kind, body = self._encode(task, outcome)
                if self.run.tell is not None:
                    self.run.tell.refused(base, index)
            record = self.add_record(base, task.id, kind, body)
            if kind == lifecycle.SUCCEEDED:
                self.recorded[index] = record.seq

    def storable(self, base: Base, index: int) -> bool:
        """Tell whether this outcome can be stored."""
        outcome = base.outcomes[index]
        try:
            return outcome is None or bool(self._encode(base.tasks[index], outcome))
        except UnserializableValueError:
            return False

    def _encode(self, task: Task, outcome: Outcome) -> tuple[str, bytes]:
        codec, plan = self.run.codec, self.run.plan
        if isinstance(outcome, Succeeded):
            return lifecycle.SUCCEEDED, layout.encode_succeeded(codec, plan, task, outcome)
        if isinstance(outcome, Interrupted):
            return lifecycle.INTERRUPTED, layout.encode_interrupted(codec, plan, task, outcome)
        kind = lifecycle.FAILED if isinstance(outcome, Failed) else lifecycle.CANCELLED
        return kind, layout.encode_failed(codec, plan, task, outcome)

    def add_record(self, base: Base, task_id: str, kind: str, body: bytes) -> RecordRow:
        """Stage a record on the base and move the head past it."""
        identity = base.identity
        self.head_seq += 1
        row = seal_record(
            RecordRow(
                identity.thread_id,
                identity.namespace,
                base.lineage,
                self.head_seq,
                base.seq,
                base.digest,
                base.records,
                kind,
                task_id,
                self.run.run_id,
                self.run.clock.now(),
                body,
                b"",
            )
        )
        base.records += 1
        self.head_digest = row.digest
        self.staged_records.append(row)
        return row

    # -- writing -----------------------------------------------------------------------------------------------------

    def take_rows(self) -> Rows:
        """Return everything staged as what one transaction adds."""
        checkpoints, self.staged = self.staged, []
        records, self.staged_records = self.staged_records, []
        drafts = self.run.tell.take() if self.run.tell is not None else ()
        return Rows(self.head_seq, self.head_digest, self.lineages, checkpoints, records, drafts)

    def _commit(self, status: str, run_row: RunRow | None) -> Commit:
        run = self.run
        assert run.config.thread_id is not None
        return Commit(
            thread_id=run.config.thread_id,
            run_id=run.run_id,
            epoch=self.epoch,
            seen_seq=self.queued_seq,
            rows=self.take_rows(),
            status=status,
            lease_seconds=LEASE_SECONDS if run_row is None else None,
            run=run_row,
            now=run.clock.now(),
            cost=run.cost,
        )

    async def _write(self, commit: Commit) -> None:
        head = (commit.rows.head_seq, commit.rows.head_digest)
        self.queued_seq = head[0]
        if self.run.durability != "async":
            await Write(commit)
            self.landed = head
            if self.run.tell is not None:
                self.run.tell.publish()
            return
        now = self.run.clock.monotonic()
        commit.flush = now - self.flushed_at >= FLUSH_SECONDS
        if commit.flush:
            self.flushed_at = now
        await self._settle()
        future = await Enqueue(commit)
        if future is None:
            self.landed = head
        else:
            self.ahead = (future, *head)
        if self.run.tell is not None:
            self.run.tell.publish()

    async def _settle(self) -> None:
        """Wait for the write that is ahead."""
        if self.ahead is not None:
            (future, seq, digest), self.ahead = self.ahead, None
            await Settle(future)
            self.landed = (seq, digest)
