"""What a run has written and has yet to write: rows, seqs, digests.

The one commit path. Every superstep, outcome, failure, question and end of a run becomes rows here and goes to the
store as one fenced `Commit` (`outbox.py` says when). `exit` holds everything back until the run ends. Without a store
nothing is written and the same methods keep the base moving.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from stepwell import points
from stepwell.errors import StoreError, UnserializableValueError
from stepwell.runtime.blobs import Shelf
from stepwell.runtime.draft import Draft
from stepwell.runtime.growing import Growing
from stepwell.runtime.outbox import Outbox
from stepwell.runtime.owning import prove
from stepwell.runtime.reporting import report_end
from stepwell.runtime.requests import Settle
from stepwell.store import (
    NO_DIGEST,
    CheckpointRow,
    Commit,
    EffectChange,
    RecordRow,
    Rows,
    RunRow,
    ThreadRow,
)
from stepwell.store.sealing import PLAIN
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.merge import Merged
from stepwell.superstep.outcome import Failed, Outcome, Succeeded, text_of
from stepwell.superstep.outcome_body import encode_outcome
from stepwell.superstep.state import Base, Task, merge_order, new

if TYPE_CHECKING:
    from stepwell.runtime.loading import Loaded
    from stepwell.runtime.run import Run

LEASE_SECONDS = 30.0


class Ledger:
    """The writing side of one run."""

    __slots__ = (
        "counted", "draft", "epoch", "growing", "head_digest", "head_seq", "held", "holds", "lineages", "lock",
        "metadata", "outbox", "owned", "recorded", "run", "run_row", "shelf", "staged", "staged_effects",
        "staged_records", "unrecorded"
    )  # fmt: skip

    def __init__(self, run: Run) -> None:
        self.run = run
        self.epoch = 0
        self.head_seq = 0
        self.head_digest = NO_DIGEST
        self.outbox = Outbox(run)
        self.lock = threading.Lock()
        """Held from staging to queueing where nodes run meanwhile, which may record steps: rows are queued in order."""
        self.lineages = 1
        self.holds: dict[str, int] = {}
        """Channel → seq of the row that holds its value; a channel that is missing was changed since."""
        self.growing = Growing(run.plan) if run.plan.deltas else None
        self.run_row: RunRow | None = None
        self.metadata = run.config.metadata_json
        self.draft: Draft | None = None
        """`exit` mode: the checkpoint the run stands on, while no row holds it."""
        self.staged: list[CheckpointRow] = []
        self.staged_records: list[RecordRow] = []
        self.staged_effects: tuple[EffectChange, ...] = ()
        self.recorded: dict[int, int] = {}
        """Position in the base → seq of the record that holds its outcome."""
        self.counted = (0, 0)
        """The base that was recorded on last, or stood on, and how many records it has."""
        self.unrecorded: list[int] = []
        """Positions in the base whose outcome no row holds."""
        self.held: list[tuple[str, str, bytes]] = []
        """`exit` mode: records on the base (task id, kind, body) that are written only if the run stops there."""
        self.owned: tuple[Base | None, set[int]] = (None, set())
        """`exit` mode: the positions in a base whose outcome is known to be storable, and user code's no more."""
        self.shelf = Shelf(PLAIN if run.store is None else run.store.sealer)
        if run.tell is not None:
            run.tell.begin_anew()

    def follow(self, thread: ThreadRow | None) -> None:
        """Go on from the head the thread has."""
        if thread is not None:
            self.epoch, self.lineages = thread.epoch, thread.lineages
            self.head_seq, self.head_digest = thread.head_seq, thread.head_digest
            self.outbox.start_from(thread.head_seq, thread.head_digest)

    def stand_on(self, loaded: Loaded, recorded: dict[int, int]) -> None:
        """Take over what the rows of the base say."""
        self.holds, self.recorded, self.counted = loaded.holds, recorded, (loaded.row.seq, loaded.base.records)
        if self.growing is not None:
            self.growing.chains = dict(loaded.chains)
        self.shelf.know(loaded.blobs)

    # -- supersteps --------------------------------------------------------------------------------------------------

    def advance(self, base: Base, merged: Merged) -> Base:
        """Return the next base; `commit` makes it durable.

        UnserializableValueError, with nothing changed, where a value cannot be stored.
        """
        state, changed = merged
        run = self.run
        if run.store is None:
            self.unrecorded.clear()
            if run.items is not None:
                run.items.stage(base.tasks, base.outcomes)
            return Base(state, base.identity.following(f"{run.run_id}:{state.step}", run.plan.version))
        identity = base.identity.following(run.ids.new(), run.plan.version)
        known = self.recorded
        done: list[Succeeded] = base.outcomes  # type: ignore[assignment]  # or there would be nothing to advance to
        sources = [(base.tasks[i], done[i], known.get(i)) for i in merge_order(base.tasks)]
        parts = (identity, state, base.lineage, "loop", *self.parent(base), sources, (), base.state.values)
        following = self.add(new(Draft, parts), changed)
        if run.items is not None:
            run.items.stage(base.tasks, base.outcomes)
        return following

    def parent(self, base: Base) -> tuple[int | None, bytes]:
        """Return the row the next checkpoint follows: the base's, or what its draft follows."""
        if self.draft is not None:
            return self.draft.parent_seq, self.draft.parent_digest
        return (base.seq, base.digest) if base.digest else (None, NO_DIGEST)

    def add(self, draft: Draft, changed: Iterable[str]) -> Base:
        """Return the base a draft becomes: sealed into a row and staged or, in `exit` mode, kept as the draft."""
        if self.run.store is None:
            return Base(draft.state, draft.identity)
        holds = self.holds.copy()
        for key in changed:
            holds.pop(key, None)
        if self.run.durability == "exit" and draft.source in ("loop", "input"):
            if self.growing is not None:
                self.growing.leave(self.draft)
            self.draft = draft.instead_of(self.draft)
            self.holds = holds
            following = Base(draft.state, draft.identity, draft.lineage, self.head_seq + 1)
        else:
            following = self._seal(draft, holds)
        self.recorded.clear()
        self.unrecorded.clear()
        if self.held:
            self.held = []
        return following

    def _seal(self, draft: Draft, holds: dict[str, int]) -> Base:
        run = self.run
        identity, state, lineage, source, parent_seq, parent_digest, sources, abandoned, before = draft
        graph_id, version, thread_id, namespace, checkpoint_id = identity
        seq = self.head_seq + 1
        ground = self.growing.ground(before) if self.growing is not None else None
        encode = layout.encode_checkpoint
        counted = self.counted[1] if self.counted[0] == parent_seq else 0
        body, values, chains = encode(run.codec, run.plan, state, seq, sources, holds, abandoned, ground, counted)
        body = self.shelf.apart(thread_id, body)
        row = run.store.sealer.checkpoint(  # type: ignore[union-attr]  # a row is made only where there is a store
            (
                thread_id,
                namespace,
                lineage,
                seq,
                checkpoint_id,
                parent_seq,
                parent_digest,
                state.step,
                source,
                run.run_id,
                graph_id,
                version,
                run.plan.fingerprint,
                run.clock.now(),
                self.metadata,
                body,
            )
        )
        self.holds = holds
        for key in values:
            if key not in holds and run.plan.channels[key].tracked:
                holds[key] = seq
        if self.growing is not None:
            self.growing.follow(chains, holds, seq, partial(self.shelf.reference, thread_id))
        self.head_seq = seq
        self.head_digest = row.digest
        self.staged.append(row)
        if run.tell is not None:
            run.tell.checkpoint(row, state.writers)
        if values is not state.values:
            state = state._replace(values=values)
        return Base(state, identity, lineage, seq, row.digest)

    def commit(self) -> Awaitable[None] | None:
        """Make the staged checkpoint durable as the mode says; in `exit` mode nothing is staged yet.

        Returns what is left to await for that, or None where it is done.
        """
        return self.outbox.send(self.commit_of(lifecycle.RUNNING, None)) if self.staged else None

    # -- records on the base -----------------------------------------------------------------------------------------

    async def outcomes(self, base: Base) -> None:
        """Record what has finished on the base so far, while siblings still run; in `exit` mode it is only checked."""
        if self.run.store is None or not self.unrecorded:
            return
        if self.run.durability == "exit":
            prove(self, base)
            return
        await self._record(base)
        points.reach(points.OUTCOMES_RECORDED)

    async def attempt(
        self, base: Base, index: int, error: BaseException, attempts: int, first_at: int, next_at: int
    ) -> None:
        """Record a failed attempt and when the next one is due, with what has finished beside it."""
        task_id = base.tasks[index].id
        base.attempted(task_id, attempts, first_at, next_at)
        if self.run.store is None:
            return
        body = layout.encode_attempt(text_of(error), attempts, first_at, next_at)
        if self.run.durability == "exit":
            prove(self, base)
            if task_id in base.steps:  # what failed among them is over with the attempt
                with self.lock:
                    self.held.append((task_id, lifecycle.ATTEMPT, body))
            return
        await self._record(base, (task_id, lifecycle.ATTEMPT, body))

    async def end(self, base: Base, status: str, error: str = "") -> None:
        """Write everything the run still holds back, its end and the release of the lease, in one transaction."""
        if self.run_row is None:
            return
        if self.run.journal is not None:
            self.run.journal.finish()
        self.stage_outcomes(base)
        if self.run.tell is not None:
            self.run.tell.ended(base, status, error)
        run_row, self.run_row = self.run_row, None
        try:
            await self.outbox.write(self.commit_of(status, self._closed(run_row, base.checkpoint_id, status, error)))
        except StoreError:  # not written: the end is still to be told
            self.run_row = run_row
            raise
        report_end(self.run, base, status, error)

    async def release(self, base: Base, status: str, error: str) -> None:
        """After a write failed: give up what is not durable, say so, free the thread."""
        with self.lock:  # from here on nothing comes from inside a node any more
            run_row, self.run_row = self.run_row, None
        if run_row is None:
            return
        await self.outbox.land()
        self.staged.clear()
        self.staged_records.clear()
        self.staged_effects = ()
        self.held.clear()
        self.shelf.forget()
        if self.run.items is not None:
            self.run.items.forget()
        self.head_seq, self.head_digest = self.outbox.go_back()
        if self.run.tell is not None:
            self.run.tell.forget()
            self.run.tell.ended(base, status, error)
        stands = self.outbox.checkpoint_id or run_row.checkpoint_id
        await self.outbox.write(self.commit_of(status, self._closed(run_row, stands, status, error)))
        report_end(self.run, base, status, error)

    def _closed(self, run_row: RunRow, checkpoint_id: str, status: str, error: str) -> RunRow:
        now = self.run.clock.now()
        return run_row._replace(status=status, finished_at=now, checkpoint_id=checkpoint_id, error=error, recoveries=0)

    def stage_outcomes(self, base: Base) -> None:
        """Turn the outcomes no row holds into records; a success that cannot be stored becomes a failure."""
        if self.run.store is None:
            return
        if self.draft is not None or self.held:
            self.flush_base(base)
        pending, self.unrecorded = self.unrecorded, []
        for index in pending:
            task, outcome = base.tasks[index], base.outcomes[index]
            assert outcome is not None
            try:
                kind, body = self.encode(task, outcome)
            except UnserializableValueError as error:
                kind, body = self.encode(task, self.refuse(base, index, error))
            record = self.add_record(base, task.id, kind, body)
            if kind == lifecycle.SUCCEEDED:
                self.recorded[index] = record.seq

    def refuse(self, base: Base, index: int, error: UnserializableValueError) -> Failed:
        """Turn an outcome that cannot be stored into a failure, also for those who are yet to be told."""
        failed = base.outcomes[index] = Failed(text_of(error), error)
        if self.run.tell is not None:
            self.run.tell.refused(base, index)
        return failed

    def storable(self, base: Base, index: int) -> bool:
        """Tell whether this outcome can be stored."""
        outcome = base.outcomes[index]
        try:
            return outcome is None or bool(self.encode(base.tasks[index], outcome))
        except UnserializableValueError:
            return False

    def encode(self, task: Task, outcome: Outcome) -> tuple[str, bytes]:
        """Return the kind and body of the record of an outcome. UnserializableValueError where it cannot be stored."""
        return encode_outcome(self.run.codec, self.run.plan, task, outcome)

    def add_record(self, base: Base, task_id: str, kind: str, body: bytes) -> RecordRow:
        """Stage a record on the base and move the head past it."""
        identity = base.identity
        body = self.shelf.apart(identity.thread_id, body)
        self.head_seq += 1
        row = self.run.store.sealer.record(  # type: ignore[union-attr]
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
        self.counted = (base.seq, base.records)
        self.head_digest = row.digest
        self.staged_records.append(row)
        return row

    # -- writing -----------------------------------------------------------------------------------------------------

    def take_rows(self, silent: bool = False) -> Rows:
        """Return everything staged as what one transaction adds; `silent`: but for the events, which are the run's."""
        checkpoints, records, effects = tuple(self.staged), tuple(self.staged_records), self.staged_effects
        self.staged.clear()
        self.staged_records.clear()
        self.staged_effects = ()
        drafts = self.run.tell.take() if self.run.tell is not None and not silent else ()
        head = (self.head_seq, self.head_digest, self.lineages)
        return new(Rows, (*head, checkpoints, records, drafts, effects, self.shelf.take()))

    def commit_of(self, status: str, run_row: RunRow | None, silent: bool = False) -> Commit:
        """Return everything staged as a commit that leaves the thread with this status."""
        run = self.run
        assert run.config.thread_id is not None
        seen, rows = self.outbox.queued_seq, self.take_rows(silent)
        lease = LEASE_SECONDS if status == lifecycle.RUNNING else None
        commit = Commit(
            run.config.thread_id, run.run_id, self.epoch, seen, rows, status, lease, run_row, run.clock.now()
        )
        if run.cost is not None:
            commit.cost = run.cost
        if run.items is not None:
            commit.items = run.items.take()
        return commit

    async def _record(self, base: Base, *records: tuple[str, str, bytes]) -> None:
        """Write the outcomes so far, and these records (task id, kind, body), while nodes still run."""
        run, outbox = self.run, self.outbox
        if run.durability == "async":
            await outbox.settle()
        with self.lock:
            self.stage_outcomes(base)
            for record in records:
                self.add_record(base, *record)
            commit = self.commit_of(lifecycle.RUNNING, None)
            commit.flush = run.durability != "async" or outbox.is_due()
            future = outbox.post(commit, leads=run.port.leads and run.durability != "async")
        if future is not None and run.durability != "async":
            await Settle(future)
            with self.lock:
                outbox.note_flown()
        if run.tell is not None:
            run.tell.publish()

    def flush_base(self, base: Base) -> bool:
        """In `exit` mode: have the base's row, and what is held back on it, staged. Return whether it had not been."""
        draft, self.draft = self.draft, None
        if draft is not None:
            base.digest = self._seal(draft, self.holds).digest
        held, self.held = self.held, []
        for record in held:
            self.add_record(base, *record)
        return draft is not None
