"""Reads of what threads have come to: their heads, checkpoints, lineages. A tail that is lost is noticed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stepwell.store import (
    DELETED,
    CheckpointOutline,
    CheckpointRow,
    HistoryQuery,
    LineageRow,
    RawRow,
    RecordRow,
    ThreadRow,
)
from stepwell.stores.shared.fetching import Fetching, bound, first
from stepwell.stores.shared.filters import filter_text
from stepwell.stores.shared.outlines import pages
from stepwell.stores.shared.rows import CHECKPOINTS, LINEAGES, RECORDS, THREADS, corrupt, raw_row
from stepwell.stores.shared.source import Source
from stepwell.stores.shared.tail import check_tail


class HistoryReader(Fetching):
    """Threads and their checkpoints."""

    __slots__ = ("_checked",)

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._checked: dict[str, ThreadRow | None] = {}
        """The threads whose tails were checked."""

    def thread(self, thread_id: str) -> ThreadRow | None:
        """Return the thread's row."""
        if thread_id in self._checked:
            row = self._checked[thread_id]
        else:
            row = first(self._rows("thread", THREADS, thread_id=thread_id))
        return None if row is None or row.status == DELETED else row

    def checkpoint(self, thread_id: str, namespace: str, checkpoint_id: str) -> CheckpointRow | None:
        """Return the checkpoint with this id."""
        where = {"thread_id": thread_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        return first(self._rows("checkpoint", CHECKPOINTS, **where))

    def raw_checkpoint(self, thread_id: str, seq: int) -> RawRow | None:
        """Return what stands at a seq, verified or not."""
        found = list(self._stream("raw_checkpoint", {"thread_id": thread_id.encode(), "seq": seq}))
        return raw_row(CHECKPOINTS, found[0]) if found else None

    def seq_of(self, thread_id: str, namespace: str, checkpoint_id: str) -> int | None:
        """Return the seq of a checkpoint, without reading it."""
        where = {"thread_id": thread_id, "namespace": namespace, "checkpoint_id": checkpoint_id}
        found = self._fetch("seq_of", CHECKPOINTS, where)
        return found[0][0] if found else None

    def id_of(self, thread_id: str, seq: int) -> str:
        """Return the id of the checkpoint at a seq."""
        found = self._fetch("id_of", CHECKPOINTS, {"thread_id": thread_id, "seq": seq})
        if not found:
            raise corrupt("checkpoints", thread_id, seq, "it is missing")
        return str(found[0][0])

    def lineage_of(self, thread_id: str, seq: int) -> int | None:
        """Return the lineage of the checkpoint at a seq, without reading it."""
        found = self._fetch("lineage_of", CHECKPOINTS, {"thread_id": thread_id, "seq": seq})
        return found[0][0] if found else None

    def newest_seq(self, thread_id: str, namespace: str) -> int | None:
        """Return the seq of the newest checkpoint of a namespace, without reading it."""
        found = self._fetch("newest_place", CHECKPOINTS, {"thread_id": thread_id, "namespace": namespace})
        return found[0][0] if found else None

    def newest(self, thread_id: str, namespace: str, lineage: int | None = None) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace, after checking that the thread's tail is there."""
        where: dict[str, Any] = {"thread_id": thread_id, "namespace": namespace}
        if lineage is None:
            self.expect("newest", thread_id, namespace)
        self._checked[thread_id], child = check_tail(self._fetch, thread_id)
        if child is not None and not namespace:
            self.checkpoints(thread_id, [child])
        if lineage is None:
            return first(self._rows("newest", CHECKPOINTS, **where))
        seq = self.head_seq(thread_id, namespace, lineage)
        return None if seq is None else self.checkpoints(thread_id, [seq])[0]

    def head_seq(self, thread_id: str, namespace: str, lineage: int) -> int | None:
        """Return the seq of the newest checkpoint of a lineage."""
        where: dict[str, Any] = {"thread_id": thread_id, "namespace": namespace}
        found = self._fetch("newest_place", CHECKPOINTS, where)
        if not found or found[0][1] == lineage:
            return found[0][0] if found else None
        if namespace:
            found = self._fetch("newest_of_lineage", CHECKPOINTS, where | {"lineage": lineage})
            return found[0][0] if found else None
        row = first(self._rows("lineage", LINEAGES, thread_id=thread_id, lineage=lineage))
        return None if row is None else row.head_seq

    def lineages(self, thread_id: str) -> list[LineageRow]:
        """Return the lineages that have a checkpoint, each with its head."""
        found = self._fetch("newest_place", CHECKPOINTS, {"thread_id": thread_id, "namespace": ""})
        if not found:
            return []
        ((seq, current),) = found
        rows = self._rows("lineages", LINEAGES, thread_id=thread_id) or [
            LineageRow(thread_id, current, None, None, seq)
        ]
        known = {row.lineage for row in rows}
        for needed in (current, *(row.parent_lineage for row in rows if row.parent_lineage is not None)):
            if needed not in known:
                raise corrupt("lineages", thread_id, needed, "it is missing")
        return [row._replace(head_seq=seq) if row.lineage == current else row for row in rows]

    def checkpoints(self, thread_id: str, seqs: Sequence[int]) -> list[CheckpointRow]:
        """Return the checkpoints at these seqs, in seq order."""
        return self._at("checkpoints", CHECKPOINTS, thread_id, seqs)

    def child(self, thread_id: str, parent_seq: int, lineage: int) -> CheckpointRow | None:
        """Return the checkpoint of this lineage that continues `parent_seq`."""
        where = {"thread_id": thread_id, "parent_seq": parent_seq, "lineage": lineage}
        return first(self._rows("child", CHECKPOINTS, **where))

    def history(self, query: HistoryQuery) -> list[CheckpointRow]:
        """Return checkpoints, newest first."""
        where: dict[str, Any] = {"thread_id": query.thread_id, "namespace": query.namespace}
        where |= {"before_seq": query.before_seq, "max_rows": bound(query.limit), "filter": filter_text(query.filter)}
        if query.line_from is not None:
            return self._rows("line", CHECKPOINTS, **where, line_from=query.line_from)
        return self._rows("history", CHECKPOINTS, **where, since_seq=query.since_seq)

    def everything(self, thread_id: str) -> tuple[list[CheckpointRow], list[RecordRow]]:
        """Return every checkpoint and record of a thread, after checking that its tail is there."""
        check_tail(self._fetch, thread_id)
        checkpoints = self._rows("all_checkpoints", CHECKPOINTS, thread_id=thread_id)
        return checkpoints, self._rows("all_records", RECORDS, thread_id=thread_id)

    def outline(self, thread_id: str) -> Iterator[CheckpointOutline]:
        """Yield the thread's checkpoints without their bodies, page by page."""
        return map(CheckpointOutline._make, pages(self._fetch, "outline_checkpoints", CHECKPOINTS, thread_id))
