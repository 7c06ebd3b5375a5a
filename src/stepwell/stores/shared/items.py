"""Writes of items inside a transaction that a leader opened.

An item is read under the write lock before it is written: its place and the time it was made stay, and its digest
covers them. Nothing here is called where nobody keeps items.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.store import Counts, ItemRow, digest_of, written
from stepwell.stores.shared.rows import ITEMS
from stepwell.stores.shared.statements import Statements
from stepwell.superstep.items import ItemWrite


def write_items(on: Statements, counts: Counts, writes: Sequence[ItemWrite]) -> None:
    """Apply the writes, in their order."""
    if writes:
        on.lock("item", [f"{write.namespace}/{write.key}" for write in writes])
    for write in writes:
        counts.statements += 1
        row = _find(on, write.namespace, write.key)
        after = written(row, write)
        if row is not None and (after is None or after.ordinal == 0):
            counts.statements += 1
            on.execute(on.query("delete_item"), (row.ordinal,))
        if after is not None and after != row:
            _put(on, counts, after)


def _put(on: Statements, counts: Counts, row: ItemRow) -> None:
    ordinal = row.ordinal
    if ordinal == 0:
        counts.statements += 1
        ordinal = (on.execute(on.query("last_item")).fetchall()[0][0] or 0) + 1
    columns = (ordinal, *row[1:-1])
    counts.statements += 1
    counts.bytes += len(row.value)
    on.execute(on.query("put_item"), (*columns, digest_of("item", columns)))


def sweep_items(on: Statements, counts: Counts, now: int) -> int:
    """Delete what has expired; return how many items that were."""
    counts.statements += 1
    return len(on.execute(on.query("sweep_items"), (now,)).fetchall())


def seal_of(on: Statements, writes: Sequence[ItemWrite]) -> bytes:
    """Return what the last write left at its item: the row's digest, b"" where it left none."""
    if not writes:
        return b""
    row = _find(on, writes[-1].namespace, writes[-1].key)
    return b"" if row is None else row.digest


def _find(on: Statements, namespace: str, key: str) -> ItemRow | None:
    found = on.execute(on.query("item"), {"namespace": namespace, "key": key}).fetchall()
    return ITEMS.verified(found[0]) if found else None
