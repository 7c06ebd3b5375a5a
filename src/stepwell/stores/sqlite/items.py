"""Writes of items inside a transaction that a leader opened.

An item is read under the write lock before it is written: its place and the time it was made stay, and its digest
covers them. Nothing here is called where nobody keeps items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stepwell.store import Counts, ItemRow, digest_of, written
from stepwell.stores.shared.rows import ITEMS
from stepwell.stores.sqlite.sql import query
from stepwell.superstep.items import ItemWrite

Execute = Callable[..., Any]


def write_items(execute: Execute, counts: Counts, writes: Sequence[ItemWrite]) -> None:
    """Apply the writes, in their order."""
    for write in writes:
        counts.statements += 1
        row = _find(execute, write.namespace, write.key)
        after = written(row, write)
        if row is not None and (after is None or after.ordinal == 0):
            counts.statements += 1
            execute(query("delete_item"), (row.ordinal,))
        if after is not None and after != row:
            _put(execute, counts, after)


def _put(execute: Execute, counts: Counts, row: ItemRow) -> None:
    ordinal = row.ordinal
    if ordinal == 0:
        counts.statements += 1
        ordinal = (execute(query("last_item")).fetchall()[0][0] or 0) + 1
    columns = (ordinal, *row[1:-1])
    counts.statements += 1
    counts.bytes += len(row.value)
    execute(query("put_item"), (*columns, digest_of("item", columns)))


def sweep_items(execute: Execute, counts: Counts, now: int) -> int:
    """Delete what has expired; return how many items that were."""
    counts.statements += 1
    return len(execute(query("sweep_items"), (now,)).fetchall())


def seal_of(execute: Execute, writes: Sequence[ItemWrite]) -> bytes:
    """Return what the last write left at its item: the row's digest, b"" where it left none."""
    if not writes:
        return b""
    row = _find(execute, writes[-1].namespace, writes[-1].key)
    return b"" if row is None else row.digest


def _find(execute: Execute, namespace: str, key: str) -> ItemRow | None:
    found = execute(query("item"), {"namespace": namespace, "key": key}).fetchall()
    return ITEMS.verified(found[0]) if found else None
