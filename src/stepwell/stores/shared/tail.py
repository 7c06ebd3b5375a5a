"""Whether a thread's end is there: the row it names as its last, and what that row stands on."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

from stepwell.store import DELETED, ThreadRow
from stepwell.stores.shared.rows import RECORDS, THREADS, corrupt

Fetch = Callable[..., list[Any]]
LOST_TAIL = "lost tail: the last row committed is missing or another"


class Tail(NamedTuple):
    """What a thread's end says."""

    thread: ThreadRow | None
    child: int | None
    """The seq of the newest checkpoint, if it says that it is a child's. Until it is verified it may as well be the
    thread's own, damaged."""


def check_tail(fetch: Fetch, thread_id: str) -> Tail:
    """Return a thread's end. Raise where its last row is missing or another, where what that stands on is, and where
    rows follow it."""
    ((*columns, last, checkpoint, record, child),) = fetch("tail", THREADS, {"thread_id": thread_id})
    row = None if columns[0] is None else THREADS.verified(columns)
    head_seq = 0 if row is None or row.status == DELETED else row.head_seq
    if not isinstance(last, int) or last > head_seq:
        raise corrupt("threads", thread_id, "", f"rows up to seq {last!r} stand behind its head {head_seq}")
    if row is None or not head_seq or {checkpoint, record} == {row.head_digest, None}:
        return Tail(row, child)
    if (checkpoint, record) != (None, None) or not _ends_in_the_whole(fetch, row):
        raise corrupt("threads", thread_id, head_seq, LOST_TAIL)
    return Tail(row, child)


def _ends_in_the_whole(fetch: Fetch, thread: ThreadRow) -> bool:
    """Tell whether the head is a record of the whole thread, and the row that was the head before it is there."""
    where = {"thread_id": thread.thread_id}
    found = RECORDS.all_verified(fetch("records", RECORDS, {**where, "base_seq": 0}))
    digests = {row.seq: row.digest for row in found}
    if digests.get(thread.head_seq) != thread.head_digest:
        return False
    before = before_the_whole(thread.head_seq, digests)
    return not before or bool(fetch("stands", RECORDS, {**where, "seq": before}))


def before_the_whole(seq: int, of_the_whole: Container[int]) -> int:
    """Return the seq of the last row up to this one that is no record of the whole thread (base 0); 0 where there is
    none. Such a record takes the seq behind the head there was, in the transaction that makes it the head."""
    while seq in of_the_whole:
        seq -= 1
    return seq
