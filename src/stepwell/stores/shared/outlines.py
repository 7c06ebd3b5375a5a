"""Rows without their bodies, page by page; and whether some of the records read are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stepwell.store import AnchorRow, RecordRow
from stepwell.stores.shared.rows import RECORDS, Table, corrupt

PAGE = 1000


def pages(fetch: Callable[..., list[Any]], name: str, table: Table[Any], thread_id: str) -> Iterator[Any]:
    """Yield what a query finds, so many rows at a time; their first column is what they are in the order of."""
    after = -1
    while found := fetch(name, table, {"thread_id": thread_id, "after": after, "max_rows": PAGE}):
        yield from found
        after = found[-1][0]


def check_span(fetch: Callable[..., list[Any]], thread_id: str, base_seq: int, first: int, last: int) -> None:
    """Raise where one of the records of a base from this ordinal to that is missing."""
    where = {"thread_id": thread_id, "base_seq": base_seq, "first": first, "last": last}
    [(there,)] = fetch("count_records", RECORDS, where)
    if there != last - first + 1:
        reason = f"{last - first + 1 - there} of the records {first} to {last} of this base are missing"
        raise corrupt("records", thread_id, base_seq, reason)


def without_gaps(rows: list[RecordRow], anchors: Callable[..., list[AnchorRow]]) -> list[RecordRow]:
    """Return the records of a base; raise where one is missing before another and was not pruned."""
    for ordinal, row in enumerate(rows):
        if row.ordinal != ordinal:
            found = anchors(thread_id=row.thread_id, seq=row.base_seq)
            if not found or found[0].notes != len(rows):
                reason = f"record {ordinal} of base {row.base_seq} is missing before it"
                raise corrupt("records", row.thread_id, row.seq, reason)
            break
    return rows


def spans(newest_first: Sequence[RecordRow], goes_on: bool) -> list[tuple[int, int, int]]:
    """Return the ordinals of each base that must all be there for these records to be listed: from its first one on,
    but for the base in whose midst the list is cut."""
    ends: dict[int, tuple[int, int]] = {}
    for row in newest_first:
        ends[row.base_seq] = (row.ordinal, ends.get(row.base_seq, (0, row.ordinal))[1])
    cut = newest_first[-1].base_seq if newest_first and goes_on else None
    return [(base_seq, first if base_seq == cut else 0, last) for base_seq, (first, last) in ends.items()]
