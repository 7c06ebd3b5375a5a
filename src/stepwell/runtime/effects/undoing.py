"""The run under which compensations are called: it holds the thread, writes their records, and makes no checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from stepwell import points
from stepwell.errors import NestedThreadError, StoreError, ThreadBusyError, UnknownCheckpointError
from stepwell.runtime.again import Moved, until_written
from stepwell.runtime.calls import TaskRun
from stepwell.runtime.effects.selecting import Done, select
from stepwell.runtime.ledger import LEASE_SECONDS, Ledger
from stepwell.runtime.loading import check_input_kept, superseded
from stepwell.store import CheckpointRow, Claim, EffectRow, Reader, Rows, RunRow, ThreadRow
from stepwell.superstep import lifecycle
from stepwell.superstep.outcome import text_of
from stepwell.superstep.state import Base, Identity, Planned, State, Task

if TYPE_CHECKING:
    from stepwell.runtime.run import Run


class UndoingRun:
    """One call of `compensate` that has the thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._status: str = lifecycle.FINISHED
        """What the thread goes back to."""

    def owner(self, row: EffectRow | None) -> TaskRun:
        """Return what stands for the task of a node: an effect's own node is over."""
        return _Owner(self.run, row)

    # -- begin and end: these block ----------------------------------------------------------------------------------

    def begin(self) -> Sequence[Done]:
        """Return what there is to undo; where anything is, the thread is this run's from here on."""
        run = self.run
        if run.thread in run.driving:
            raise NestedThreadError(thread_id=run.config.thread_id)
        return until_written(run.config.thread_id or "", self._begin)

    def _begin(self) -> Sequence[Done]:
        run = self.run
        assert run.store is not None
        with run.store.reading() as reader:
            head = self._head(reader)
            if head is None:
                return ()
            self._check_free(reader)
            found = select(reader, head)
            if all(done.compensation is None for done in found):
                return found
            claim = self._claim(reader, head)
        if (thread := run.store.admit(claim)) is None:
            raise Moved
        run.ledger.follow(thread)
        run.admitted = True
        if run.leases is not None:
            run.leases.hold(run)
        points.reach(points.ADMITTED)
        return found

    def end(self, error: BaseException | None) -> None:
        """Record how it ended, and free the thread."""
        run = self.run
        assert run.store is not None and run.ledger.run_row is not None
        if run.leases is not None:
            run.leases.let_go(run)
        if run.journal is not None:
            run.journal.finish()
        status = lifecycle.FINISHED
        if error is not None:
            status = lifecycle.FAILED if isinstance(error, Exception) else lifecycle.CANCELLED
        text = "" if error is None else text_of(error)
        row = run.ledger.run_row._replace(status=status, finished_at=run.clock.now(), error=text)
        try:
            run.store.commit(run.ledger.commit_of(self._status, row))
        except StoreError as second:
            if error is None:
                raise
            error.add_note(f"The end of the run could not be recorded: {second}")
        points.reach(points.ENDED)

    def _check_free(self, reader: Reader) -> None:
        """Refuse to look at what somebody is doing: it would be told as in doubt."""
        thread = reader.thread(self.run.config.thread_id or "")
        assert self.run.store is not None
        if thread is not None and thread.run_id and self.run.store.is_held(thread):
            facts = {"thread_id": thread.thread_id, "holder": thread.holder, "run_id": thread.run_id}
            raise ThreadBusyError(expires_in=LEASE_SECONDS, **facts)

    def _head(self, reader: Reader) -> CheckpointRow | None:
        """Return the newest checkpoint of the lineage that the config names."""
        config = self.run.config
        thread_id, wanted = config.thread_id or "", config.checkpoint_id
        if wanted is None:
            return reader.newest(thread_id, "")
        seq = reader.seq_of(thread_id, "", wanted)
        if seq is None:
            raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted)
        return reader.newest(thread_id, "", reader.lineage_of(thread_id, seq))

    def _claim(self, reader: Reader, head: CheckpointRow) -> Claim:
        run, thread = self.run, reader.thread(head.thread_id)
        assert thread is not None
        crashed = reader.run(thread.run_id) if thread.run_id else None
        check_input_kept(crashed)
        self._status = thread.status if thread.status in lifecycle.ENDED else lifecycle.FAILED
        run.run_id = run.config.run_id or run.ids.new()
        run.ledger = Ledger(run)
        run.base = _base(head, len(reader.records(head.thread_id, head.seq)))
        row = run.ledger.run_row = self._row(head, thread)
        return Claim(
            thread_id=head.thread_id,
            graph_id=thread.graph_id,
            seen=thread,
            run=row,
            rows=Rows(thread.head_seq, thread.head_digest, thread.lineages, [], []),
            lease_seconds=LEASE_SECONDS,
            status=lifecycle.RUNNING,
            now=row.started_at,
            ended=superseded(crashed, row.run_id, row.started_at),
        )

    def _row(self, head: CheckpointRow, thread: ThreadRow) -> RunRow:
        return RunRow(
            run_id=self.run.run_id,
            thread_id=head.thread_id,
            lineage=head.lineage,
            status=lifecycle.RUNNING,
            durability=self.run.durability,
            input=b"",
            input_digest=b"",
            base_seq=head.seq,
            started_at=self.run.clock.now(),
            finished_at=0,
            recoveries=0,
            progress_seq=thread.head_seq,
            checkpoint_id=head.checkpoint_id,
            error="",
            kind=lifecycle.COMPENSATE,
            takeovers=0,
            events=0,
        )


def _base(head: CheckpointRow, records: int) -> Base:
    """Return the checkpoint to record on: nothing of it is read, and nothing planned."""
    identity = Identity(head.graph_id, head.version, head.thread_id, head.namespace, head.checkpoint_id)
    base = Base(State({}), identity, head.lineage, head.seq, head.digest)
    base.records = records
    return base


class _Owner(TaskRun):
    """What stands for a node's task where none runs."""

    def __init__(self, run: Run, row: EffectRow | None) -> None:
        self.run = run
        self._row = row

    @property
    def base(self) -> Base:  # type: ignore[override]  # known once the thread is
        return self.run.base

    @property
    def task(self) -> Task:  # type: ignore[override]
        node, activation = (self._row.node, self._row.activation) if self._row is not None else ("", 0)
        task = Task(Planned(node), activation, self.base.identity)
        task._id = ""  # a record of no task
        return task


def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function as one that a thread calls: it waits for the process's own loop."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        import asyncio

        from stepwell.runtime.ports import background_loop

        async def awaited() -> Any:
            return await function(*args, **kwargs)

        future = asyncio.run_coroutine_threadsafe(awaited(), background_loop.get())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    return call
