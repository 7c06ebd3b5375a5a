"""Whether a transaction landed whose COMMIT ended in an error. Nothing is guessed: the rows say it, or it is unknown.

A transaction is atomic, so one member that is found, or found missing, speaks for all. Rows are immutable, so a member
that wrote rows is found by its last one. A member that wrote none is found by the thread row it left; once another
epoch has written that row, it cannot tell any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from stepwell.store import Claim, Commit, Deletion, ItemWrites, KeyWrites, Message
from stepwell.stores.shared.member import Member
from stepwell.stores.sqlite import sql
from stepwell.stores.sqlite.items import seal_of

_EPOCH = 3
"""Where the thread row keeps it."""


def find_outcome(connection: apsw.Connection, members: Sequence[Member], error: BaseException) -> bool | None:
    """Return whether these members' transaction landed; None where it cannot be known any more.

    The look itself is a durable write. Without it a log whose sync failed could still bring the lost transaction back
    when it is recovered after a crash, and "not committed" would have been a lie. A full disk needs no such write, and
    would refuse it: the frame that ends the transaction never reached the log.
    """
    connection.execute(sql.BEGIN_WRITE)
    try:
        verdicts = [_landed(connection.execute, member) for member in members if member.sealed is not None]
        if not isinstance(error, apsw.FullError):
            connection.execute(sql.query("overwrite_log"))
        connection.execute(sql.COMMIT)
    except BaseException:
        if connection.in_transaction:
            connection.execute(sql.ROLLBACK)
        raise
    if True in verdicts:
        return True
    return False if False in verdicts or not verdicts else None


def _landed(execute: Callable[..., Any], member: Member) -> bool | None:
    work = member.work
    if isinstance(work, Message):
        named = {"thread_id": work.thread_id, "message_id": work.message_id}
        return bool(execute(sql.query("message"), named).fetchall())
    if isinstance(work, ItemWrites):  # what it left may have been written over since: then nobody knows
        return True if work.writes and seal_of(execute, work.writes) == member.sealed else None
    if isinstance(work, KeyWrites):  # as with items; to write them once more changes nothing
        written = [*work.new, *(row for row, _ in work.rewrapped)]
        there = [execute(sql.query("key"), {"thread_id": row.thread_id}).fetchall() for row in written]
        return True if any(found and found[0][-1] == member.sealed for found in there) else None
    assert isinstance(work, Commit | Claim | Deletion)
    rows = None if isinstance(work, Deletion) else work.rows
    if rows is not None and (rows.checkpoints or rows.records):
        at = {"thread_id": work.thread_id, "seq": rows.head_seq}
        return (rows.head_digest,) in execute(sql.query("head"), at).fetchall()
    found = execute(sql.query("thread"), {"thread_id": work.thread_id}).fetchall()
    if not found:
        return False
    row = found[0]
    if row[-1] == member.sealed:
        return True
    if isinstance(work, Deletion):
        return False if row[_EPOCH] < work.epoch else None
    return False if row[_EPOCH] <= _epoch_of(work) else None


def _epoch_of(work: Commit | Claim) -> int:
    if isinstance(work, Commit):
        return work.epoch
    return 1 if work.seen is None else work.seen.epoch + 1
