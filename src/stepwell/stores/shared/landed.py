"""Whether the transaction of a member landed, as far as the rows can tell. Nothing is guessed.

Rows are immutable, so a member that wrote rows is found by its last one. A member that wrote none is found by the
thread row it left; once another epoch has written that row, it cannot tell any more.
"""

from __future__ import annotations

from stepwell.store import Claim, Commit, Deletion, ItemWrites, KeyWrites, Message, Pruning, Repair, Restoration
from stepwell.stores.shared.items import seal_of
from stepwell.stores.shared.member import Member
from stepwell.stores.shared.statements import Statements

_EPOCH = 3
"""Where the thread row keeps it."""


def landed(on: Statements, member: Member) -> bool | None:
    """Return whether what a member wrote is there; None where that cannot be known any more."""
    work = member.work
    if isinstance(work, Message):
        named = {"thread_id": work.thread_id, "message_id": work.message_id}
        return bool(on.execute(on.query("message"), named).fetchall())
    if isinstance(work, ItemWrites):  # what it left may have been written over since: then nobody knows
        return True if work.writes and seal_of(on, work.writes) == member.sealed else None
    if isinstance(work, KeyWrites):  # as with items; to write them once more changes nothing
        written = [*work.new, *(row for row, _ in work.rewrapped)]
        there = [on.execute(on.query("key"), {"thread_id": row.thread_id}).fetchall() for row in written]
        return True if any(found and found[0][-1] == member.sealed for found in there) else None
    assert isinstance(work, Commit | Claim | Deletion | Pruning | Repair | Restoration)
    rows = None if isinstance(work, Deletion | Pruning | Restoration) else work.rows
    if rows is not None and (rows.checkpoints or rows.records):
        at = {"thread_id": work.thread_id, "seq": rows.head_seq}
        return (rows.head_digest,) in on.execute(on.query("head"), at).fetchall()
    found = on.execute(on.query("thread_to_write"), {"thread_id": work.thread_id}).fetchall()
    if not found:
        return False
    row = found[0]
    if row[-1] == member.sealed:
        return True
    if isinstance(work, Restoration):  # whatever is there otherwise, it was not
        return False
    if isinstance(work, Deletion):
        return False if row[_EPOCH] < work.epoch else None
    return False if row[_EPOCH] <= _epoch_of(work) else None


def _epoch_of(work: Commit | Claim | Pruning | Repair) -> int:
    if isinstance(work, Commit):
        return work.epoch
    if isinstance(work, Repair):
        return work.thread.epoch
    return 1 if work.seen is None else work.seen.epoch + 1
