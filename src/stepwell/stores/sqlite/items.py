"""Items on one connection: reads of a snapshot, verified, and writes inside a transaction that a leader opened.

An item is read under the write lock before it is written: its place and the time it was made stay, and its digest
covers them. Nothing here is called where nobody keeps items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apsw

from stepwell.errors import CorruptRecordError
from stepwell.store import Counts, ItemRow, digest_of, written
from stepwell.stores.sqlite.damage import DAMAGE, damaged, unreadable
from stepwell.stores.sqlite.rows import ITEMS, NOT_ITS_DIGEST, NOT_TEXT
from stepwell.stores.sqlite.sql import query
from stepwell.superstep.items import ItemWrite

Execute = Callable[..., Any]
_BEYOND = b""
"""Greater than every text: SQLite sorts blobs behind it."""


# -- reading ----------------------------------------------------------------------------------------------------------


def find_item(execute: Execute, namespace: str, key: str) -> ItemRow | None:
    """Return an item, expired or not."""
    found = _fetch(execute, "item", (namespace, key))
    return _verified(found[0]) if found else None


def items_below(execute: Execute, prefix: str, now: int) -> Iterator[ItemRow]:
    """Yield the items of a namespace ("" for all) and those below it, in order, each read when it is asked for."""
    low, high = (f"{prefix}.", f"{prefix}/") if prefix else ("", _BEYOND)
    where = {"namespace": prefix, "low": low, "high": high, "now": now}
    for ordinal in sorted(place for (place,) in _fetch(execute, "item_places", where)):
        for found in _fetch(execute, "item_at", {"ordinal": ordinal}):
            yield _verified(found)


def namespaces_of_items(execute: Execute, now: int) -> list[str]:
    """Return the namespaces that hold an item."""
    return [namespace for (namespace,) in _fetch(execute, "item_namespaces", {"now": now})]


def _fetch(execute: Execute, name: str, where: Any) -> list[Any]:
    try:
        found: list[Any] = execute(query(name), where).fetchall()
    except UnicodeDecodeError as error:
        raise CorruptRecordError(record="an item", reason=NOT_TEXT, table="items", thread_id="", seq=None) from error
    except DAMAGE as error:
        raise damaged(error, "items", "") from error
    except apsw.Error as error:
        raise unreadable(error, "items", "") from error
    return found


def _verified(columns: Sequence[Any]) -> ItemRow:
    if not ITEMS.matches(columns):
        record = f"item {columns[2]!r} of namespace {columns[1]!r}"
        raise CorruptRecordError(record=record, reason=NOT_ITS_DIGEST, table="items", thread_id="", seq=None)
    return ItemRow._make(columns)


# -- writing ----------------------------------------------------------------------------------------------------------


def write_items(execute: Execute, counts: Counts, writes: Sequence[ItemWrite]) -> None:
    """Apply the writes, in their order."""
    for write in writes:
        counts.statements += 1
        row = find_item(execute, write.namespace, write.key)
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
    row = find_item(execute, writes[-1].namespace, writes[-1].key)
    return b"" if row is None else row.digest
