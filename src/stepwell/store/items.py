"""The rows of the item store, and what one write makes of one: the same for a database and for a node's own view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stepwell.superstep.items import DELETE, TOUCH, ItemWrite


class ItemRow(NamedTuple):
    """One item."""

    ordinal: int
    """Items are listed in this order; 0 before the database has given it."""
    namespace: str
    """Its labels, joined by periods."""
    key: str
    value: bytes
    created_at: int
    updated_at: int
    ttl: int | None
    """Microseconds it is kept after it was last put or read; None: for ever."""
    expires_at: int | None
    """From then on it is not there any more. A sweep deletes it some time."""
    digest: bytes


@dataclass(slots=True)
class ItemWrites:
    """Writes of items that belong to no run: one transaction, unfenced; the last one of an item counts."""

    writes: Sequence[ItemWrite] = ()
    expired_at: int | None = None
    """Delete, too, what has expired by then."""
    flush: bool = True
    """False: it may be lost with the machine's power."""
    thread_id: str = ""
    """None: items belong to no thread."""


class ItemReader(Protocol):
    """Reads of the items in one consistent snapshot, each verified."""

    def item(self, namespace: str, key: str) -> ItemRow | None:
        """Return an item, expired or not."""
        ...

    def items(self, prefix: str, now: int) -> Iterator[ItemRow]:
        """Yield the items of a namespace ("" for all) and those below it that have not expired, by ordinal. Read on
        only while the snapshot is open."""
        ...

    def item_namespaces(self, now: int) -> list[str]:
        """Return the namespaces that hold an item that has not expired, in any order."""
        ...


def is_there(row: ItemRow, now: int) -> bool:
    """Tell whether an item has not expired."""
    return row.expires_at is None or row.expires_at > now


def written(row: ItemRow | None, write: ItemWrite) -> ItemRow | None:
    """Return the item as a write leaves it, unsealed where it changed; None where there is none any more.

    An item that is put again keeps its place and the time it was made. One that had expired is made anew.
    """
    if row is not None and not is_there(row, write.at):
        row = None
    if write.kind == DELETE:
        return None
    if write.kind == TOUCH:
        return row if row is None or row.ttl is None else row._replace(expires_at=write.at + row.ttl, digest=b"")
    ordinal, created_at = (row.ordinal, row.created_at) if row is not None else (0, write.at)
    expires_at = None if write.ttl is None else write.at + write.ttl
    columns = (write.namespace, write.key, write.value, created_at, write.at, write.ttl, expires_at)
    return ItemRow(ordinal, *columns, b"")
