"""What `get_state` and `get_state_history` find: which checkpoints a call means, and reading them page by page.

Order is `seq`, never a clock and never an id. Each page is read in a snapshot of its own; since checkpoints never
change, the pages fit together, and a thread that was deleted in between is an error, not a short list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from stepwell.codec import Codec
from stepwell.errors import InvalidConfigError, UnknownCheckpointError
from stepwell.plan.tables import Plan
from stepwell.runtime.config import RunConfig
from stepwell.runtime.reading.page import Page
from stepwell.runtime.reading.paging import Paged, checked_filter, checked_limit
from stepwell.runtime.reading.snapshot import StateSnapshot, before_input, complete, config_of, snapshot_of
from stepwell.store import CheckpointRow, HistoryQuery, Reader, Store

Line = int | Literal["current"]
Item = TypeVar("Item")


def read_state(
    reader: Reader, codec: Codec, plan: Plan, thread_id: str, namespace: str, checkpoint_id: str | None
) -> StateSnapshot | None:
    """Return the snapshot of a checkpoint, or of the thread's head; None where there is none."""
    live = checkpoint_id is None
    row = reader.newest(thread_id, namespace) if live else reader.checkpoint(thread_id, namespace, checkpoint_id or "")
    if live and not namespace and (run_id := _beginning(reader, thread_id, row)) is not None:
        before = (
            None if row is None else complete(snapshot_of(Page(reader, [row], whole=True, plan=plan), codec, plan, row))
        )
        return before_input(before, thread_id, run_id, plan.entry)
    if row is None:
        return None
    return complete(snapshot_of(Page(reader, [row], whole=live, plan=plan), codec, plan, row, live))


def _beginning(reader: Reader, thread_id: str, newest: CheckpointRow | None) -> str | None:
    """Return the run whose input only its own row holds as yet: in `exit` mode, until the run ends."""
    thread = reader.thread(thread_id)
    if thread is None or not thread.run_id or (newest is not None and newest.run_id == thread.run_id):
        return None
    run = reader.run(thread.run_id)
    return run.run_id if run is not None and run.input else None


def history(
    store: Store,
    codec: Codec,
    plan: Plan,
    address: RunConfig,
    *,
    filter: Mapping[str, Any] | None = None,
    before: RunConfig | None = None,
    limit: int | None = None,
    lineage: Line | None = None,
) -> Paged[StateSnapshot]:
    """Return the checkpoints these arguments select, newest first. Whatever is wrong with them is raised here."""
    checked_limit(limit)

    def shown(page: Page, row: CheckpointRow) -> StateSnapshot:
        return snapshot_of(page, codec, plan, row)

    return Paged(Walk(store, address, shown, filter=filter, before=before, lineage=lineage, plan=plan).turn, limit)


class Walk(Generic[Item]):
    """Where in a history its reader stands. What is wrong with the arguments is raised when it is made."""

    def __init__(
        self,
        store: Store,
        address: RunConfig,
        shown: Callable[[Page, CheckpointRow], Item],
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunConfig | None = None,
        lineage: Line | None = None,
        plan: Plan | None = None,
    ) -> None:
        with store.reading() as reader:
            start = _start(reader, address, before, lineage)
        self._store, self._shown, self._plan = store, shown, plan
        self._query = start
        self._filter = checked_filter(filter)
        self._to_its_end = before is None and address.checkpoint_id is None
        self._whole = filter is None and start == HistoryQuery(address.thread_id or "", address.namespace)
        self._later: dict[int, CheckpointRow] = {}
        self._expected: CheckpointRow | None = None

    def turn(self, size: int) -> tuple[Sequence[Item], dict[str, Any] | None]:
        """Read the next page. One row more is read than shown: it says whether anything is left."""
        rows, page = self._read(size)
        shown = [self._shown(page, row) for row in rows[:size]]
        if len(rows) <= size:
            return shown, None
        return shown, config_of(rows[size - 1]) if size else None

    def _read(self, size: int) -> tuple[list[CheckpointRow], Page]:
        query = self._query
        with self._store.reading() as reader:
            if query is not None and self._to_its_end and self._expected is None:
                reader.newest(query.thread_id, "")  # a lost tail is noticed, not listed around
            rows = [] if query is None else reader.history(_limited(query, size + 1, self._filter))
            self._check(query, rows)
            page = Page(reader, rows, later=self._later.values(), whole=self._whole, plan=self._plan)
        if query is not None and len(rows) > size:
            self._expected = rows[size]
            self._query = _from(query, rows[size])
            for row in rows[:size]:  # descending: the last one kept is the oldest of its lineage
                self._later[row.lineage] = row
        return rows, page

    def _check(self, query: HistoryQuery | None, rows: Sequence[CheckpointRow]) -> None:
        expected = self._expected
        if expected is not None and query is not None and (not rows or rows[0] != expected):
            told = f"Thread {query.thread_id} was deleted or pruned while its history was read: list it again."
            raise UnknownCheckpointError(told, thread_id=query.thread_id, checkpoint_id=expected.checkpoint_id)


def _limited(query: HistoryQuery, limit: int, filter: Mapping[str, Any] | None) -> HistoryQuery:
    return HistoryQuery(
        query.thread_id, query.namespace, query.before_seq, query.since_seq, query.line_from, limit, filter
    )


def _from(query: HistoryQuery, row: CheckpointRow) -> HistoryQuery:
    """Return the query that goes on with this row."""
    if query.line_from is not None:
        return HistoryQuery(query.thread_id, query.namespace, line_from=row.seq)
    return HistoryQuery(query.thread_id, query.namespace, row.seq + 1, query.since_seq)


def _start(reader: Reader, address: RunConfig, before: RunConfig | None, lineage: Line | None) -> HistoryQuery | None:
    """Return the query that the first page begins with; None where nothing can be found."""
    thread_id, namespace, here = address.thread_id or "", address.namespace, address.checkpoint_id
    older = None if before is None else seq_at(reader, thread_id, namespace, _cursor(before))
    if lineage is None:
        if here is None:
            return HistoryQuery(thread_id, namespace, older)
        seq = seq_at(reader, thread_id, namespace, here)
        return HistoryQuery(thread_id, namespace, min(seq + 1, older or seq + 1), since_seq=seq)
    head = line_head(reader, address, lineage)
    if head is None:
        return None
    if older is None:
        return HistoryQuery(thread_id, namespace, line_from=head)
    if not _is_on_line(reader, thread_id, head, older):
        told = f"before= names a checkpoint that did not lead to lineage {lineage} of thread {thread_id}"
        raise InvalidConfigError(reason=told, key="before")
    return HistoryQuery(thread_id, namespace, older, line_from=older)


def _cursor(before: RunConfig) -> str:
    if before.checkpoint_id is None:
        raise InvalidConfigError(reason="before= needs a checkpoint_id in configurable", key="before")
    return before.checkpoint_id


def seq_at(reader: Reader, thread_id: str, namespace: str, checkpoint_id: str) -> int:
    """Return the seq of a checkpoint. UnknownCheckpointError where it is not there."""
    seq = reader.seq_of(thread_id, namespace, checkpoint_id)
    if seq is None:
        raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=checkpoint_id)
    return seq


def line_head(reader: Reader, address: RunConfig, lineage: Line) -> int | None:
    """Return the checkpoint from which a line is walked back."""
    thread_id, namespace = address.thread_id or "", address.namespace
    if address.checkpoint_id is not None:
        if lineage != "current":
            raise InvalidConfigError(
                reason='give a checkpoint_id with lineage="current", or a lineage\'s number without one', key="lineage"
            )
        return seq_at(reader, thread_id, namespace, address.checkpoint_id)
    if lineage == "current":
        return reader.newest_seq(thread_id, namespace)
    if isinstance(lineage, bool) or not isinstance(lineage, int):
        raise InvalidConfigError(reason=f'lineage is a number or "current", not {lineage!r}', key="lineage")
    head = reader.head_seq(thread_id, namespace, lineage)
    if head is None:
        known = ", ".join(str(row.lineage) for row in reader.lineages(thread_id)) or "none"
        raise InvalidConfigError(
            reason=f"thread {thread_id} has no lineage {lineage}; it has: {known}", key="lineage", thread_id=thread_id
        )
    return head


def _is_on_line(reader: Reader, thread_id: str, head: int, seq: int) -> bool:
    """Tell whether a checkpoint is the head of a line or an ancestor of it, in as many steps as there are forks."""
    lineages = {row.lineage: row for row in reader.lineages(thread_id)}
    wanted, at, end = reader.lineage_of(thread_id, seq), reader.lineage_of(thread_id, head), head
    while at != wanted:
        row = lineages.get(at) if at is not None else None
        if row is None or row.parent_seq is None:
            return False
        at, end = row.parent_lineage, row.parent_seq
    return seq <= end
