"""Reads of what was recorded on checkpoints. A record that is missing among others is noticed here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from stepwell.store import JournalQuery, RecordOutline, RecordRow
from stepwell.stores.shared.fetching import Fetching, bound
from stepwell.stores.shared.outlines import check_span, pages, spans, without_gaps
from stepwell.stores.shared.rows import ANCHORS, RECORDS


class RecordReader(Fetching):
    """Records, by their base, their seq, their kind."""

    __slots__ = ()

    def records(self, thread_id: str, base_seq: int) -> list[RecordRow]:
        """Return the records of a base, in seq order, without gaps."""
        return self._without_gaps(self._rows("records", RECORDS, thread_id=thread_id, base_seq=base_seq))

    def records_of(self, thread_id: str, base_seqs: Sequence[int]) -> dict[int, list[RecordRow]]:
        """Return the records of several bases; bases without any are left out."""
        found: dict[int, list[RecordRow]] = {}
        for row in self._rows("records_of", RECORDS, thread_id=thread_id, base_seqs=self._listed(list(base_seqs))):
            found.setdefault(row.base_seq, []).append(row)
        return {base_seq: self._without_gaps(rows) for base_seq, rows in found.items()}

    def records_at(self, thread_id: str, seqs: Sequence[int]) -> list[RecordRow]:
        """Return the records at these seqs, in seq order."""
        return self._at("records_at", RECORDS, thread_id, seqs)

    def records_of_kind(self, thread_id: str, kind: str) -> list[RecordRow]:
        """Return the thread's records of one kind, in seq order."""
        return self._rows("records_of_kind", RECORDS, thread_id=thread_id, kind=kind)

    def effects_told(self, thread_id: str, lineage: int, since_seq: int, until_seq: int) -> list[RecordRow]:
        """Return what is recorded of effects on these bases."""
        where = {"thread_id": thread_id, "lineage": lineage, "since_seq": since_seq, "until_seq": until_seq}
        return self._rows("effects_told", RECORDS, **where)

    def journal(self, query: JournalQuery) -> list[RecordRow]:
        """Return records of steps, effects and waits, newest first."""
        found = self._rows(
            "journal",
            RECORDS,
            thread_id=query.thread_id,
            before_seq=query.before_seq,
            base_seq=query.base_seq,
            line=None if query.line is None else json.dumps(query.line),
            max_rows=bound(query.limit),
        )
        goes_on = query.limit is not None and len(found) == query.limit
        for base_seq, first, last in spans(found, goes_on):
            check_span(self._fetch, query.thread_id, base_seq, first, last)
        return found

    def record(self, thread_id: str, seq: int) -> RecordRow:
        """Return the record at a seq."""
        return self.records_at(thread_id, [seq])[0]

    def record_outline(self, thread_id: str) -> Iterator[RecordOutline]:
        """Yield the thread's records without their bodies, page by page."""
        return map(RecordOutline._make, pages(self._fetch, "outline_records", RECORDS, thread_id))

    def _without_gaps(self, rows: list[RecordRow]) -> list[RecordRow]:
        return without_gaps(rows, lambda **where: self._rows("anchor", ANCHORS, **where))
