"""Data keys inside a transaction that a leader opened. Nothing here is called where nothing is encrypted."""

from __future__ import annotations

from stepwell.errors import KeyTakenError
from stepwell.store import Counts, KeyRow, KeyWrites
from stepwell.stores.shared.statements import Statements


def put_key(on: Statements, counts: Counts, row: KeyRow) -> None:
    """Write a thread's data key. KeyTakenError where it has another: nothing of the member is to be written then."""
    counts.statements += 1
    if not on.execute(on.query("put_key"), row).fetchall():
        raise KeyTakenError(thread_id=row.thread_id)


def write_keys(on: Statements, counts: Counts, work: KeyWrites) -> tuple[int, bytes]:
    """Write data keys of no member's rows; return how many rows changed, and the digest the last one has now."""
    changed, last = 0, b""
    for row in work.new:
        counts.statements += 1
        ours = on.execute(on.query("put_key"), row).fetchall() == [(row.digest,)]
        changed, last = changed + ours, row.digest if ours else last
    for row, seen in work.rewrapped:
        counts.statements += 1
        ours = bool(on.execute(on.query("rewrap_key"), (*row, seen)).fetchall())
        changed, last = changed + ours, row.digest if ours else last
    return changed, last
