"""What Stepwell's item stores do with operations: check them, read rows, turn writes into `ItemWrite`s.

The same for a store itself and for a node's view of one: a view lays the writes that are not committed yet over the
rows it reads. Values pass the codec when they are written, so that what cannot be stored fails where it was put.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stepwell.clock import Clock
from stepwell.codec import Codec, Registry
from stepwell.errors import InvalidItemError
from stepwell.items.contract import BaseStore
from stepwell.items.filters import check_filter, matches
from stepwell.items.listing import check_listing, check_window, listed
from stepwell.items.names import checked_key, checked_labels, checked_namespace, is_below, joined, split
from stepwell.items.ops import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp, TTLConfig
from stepwell.store import ItemRow, ItemWrites, Reader, Store, is_there, written
from stepwell.superstep.items import DELETE, PUT, TOUCH, ItemWrite

MINUTE = 60_000_000
"""In microseconds."""
_CODEC = Codec(Registry())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Done(NamedTuple):
    """What a batch found, and what it is to write."""

    results: list[Result]
    writes: list[ItemWrite]


class ItemTable(BaseStore):
    """The items of one database."""

    supports_ttl = True

    def __init__(self, rows: Store, clock: Clock, ttl: TTLConfig | None = None) -> None:
        self.rows = rows
        self.clock = clock
        self.ttl_config = _checked_ttl(ttl)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; what they write is durable when this returns, in one transaction."""
        results, writes = self.run(list(ops))
        if writes:
            self.rows.write_items(
                ItemWrites(self.rows.sealer.items(writes), flush=any(write.kind != TOUCH for write in writes))
            )
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops)) if self.rows.blocking else self.batch(ops)

    def sweep_ttl(self) -> int:
        """Delete the items that have expired; return how many that were. They are not found before it either."""
        return self.rows.write_items(ItemWrites(expired_at=self.clock.now()))

    async def asweep_ttl(self) -> int:
        """Do as `sweep_ttl`, without blocking the event loop."""
        return await asyncio.to_thread(self.sweep_ttl)

    # -- operations ---------------------------------------------------------------------------------------------------

    def run(self, ops: Sequence[Op], ahead: Sequence[ItemWrite] = ()) -> Done:
        """Carry out operations on the rows with the writes `ahead` laid over them. Nothing is written."""
        now = self.clock.now()
        checked = [_checked(op) for op in ops]
        puts = [self._write(op, now) for op in checked if isinstance(op, PutOp)]
        if len(puts) == len(checked):
            return Done([None] * len(puts), puts)
        with self.rows.reading() as reader:
            view = _Rows(reader, ahead, now)
            results = [_answer(view, op) for op in checked]
        return Done(results, [*view.touched, *puts])

    def _write(self, op: PutOp, now: int) -> ItemWrite:
        namespace = joined(op.namespace)
        if op.value is None:
            return ItemWrite(DELETE, namespace, op.key, now)
        value = _CODEC.dumps(dict(op.value), f"item {namespace}/{op.key}")
        return ItemWrite(PUT, namespace, op.key, now, value, None if op.ttl is None else round(op.ttl * MINUTE))


class _Rows:
    """The rows of one snapshot with writes laid over them, and which of them were read to live on."""

    def __init__(self, reader: Reader, ahead: Sequence[ItemWrite], now: int) -> None:
        self._reader = reader
        self._now = now
        self._ahead: dict[tuple[str, str], list[ItemWrite]] = {}
        for write in ahead:
            self._ahead.setdefault((write.namespace, write.key), []).append(write)
        self.touched: list[ItemWrite] = []

    def one(self, namespace: str, key: str) -> ItemRow | None:
        """Return an item."""
        return self._over(self._reader.item(namespace, key), (namespace, key))

    def below(self, prefix: str) -> Iterator[ItemRow]:
        """Yield the items of a namespace and those below it, those made last at the end."""
        made: dict[tuple[str, str], ItemRow | None] = {
            place: None for place in self._ahead if is_below(place[0], prefix)
        }
        for row in self._reader.items(prefix, self._now):
            place = (row.namespace, row.key)
            after = self._over(row, place)
            if after is None or after.ordinal == 0:
                made[place] = after
            else:
                made.pop(place, None)
                yield after
        for place in made:
            if (last := made[place] or self._over(None, place)) is not None:
                yield last

    def namespaces(self) -> list[str]:
        """Return the namespaces that hold an item."""
        if not self._ahead:
            return self._reader.item_namespaces(self._now)
        found = set(self._reader.item_namespaces(self._now))
        for namespace in {namespace for namespace, _ in self._ahead}:
            found.discard(namespace)
            if any(row.namespace == namespace for row in self.below(namespace)):
                found.add(namespace)
        return list(found)

    def read(self, row: ItemRow, refresh: bool) -> dict[str, Any]:
        """Return an item's value; where it expires, let its time begin anew if that is asked for."""
        if refresh and row.ttl is not None:
            self.touched.append(ItemWrite(TOUCH, row.namespace, row.key, self._now))
        return dict(_CODEC.loads(row.value, f"item {row.namespace}/{row.key}"))

    def _over(self, row: ItemRow | None, place: tuple[str, str]) -> ItemRow | None:
        for write in self._ahead.get(place, ()):
            row = written(row, write)
        return row if row is not None and is_there(row, self._now) else None


# -- answering --------------------------------------------------------------------------------------------------------


def _answer(rows: _Rows, op: Op) -> Result:
    if isinstance(op, GetOp):
        row = rows.one(joined(op.namespace), op.key)
        return None if row is None else Item(value=rows.read(row, op.refresh_ttl), **_facts(row))
    if isinstance(op, SearchOp):
        return _found(rows, op)
    if isinstance(op, ListNamespacesOp):
        return listed(op, map(split, rows.namespaces()))
    return None


def _found(rows: _Rows, op: SearchOp) -> list[SearchItem]:
    """Return the window of what matches; only what is returned counts as read."""
    found: list[SearchItem] = []
    skip = op.offset
    for row in rows.below(joined(op.namespace_prefix)) if op.limit else ():
        if op.filter and not matches(rows.read(row, False), op.filter):
            continue
        if skip:
            skip -= 1
            continue
        found.append(SearchItem(value=rows.read(row, op.refresh_ttl), **_facts(row)))
        if len(found) == op.limit:
            break
    return found


def _facts(row: ItemRow) -> dict[str, Any]:
    return {
        "namespace": split(row.namespace),
        "key": row.key,
        "created_at": _moment(row.created_at),
        "updated_at": _moment(row.updated_at),
    }


def _moment(microseconds: int) -> datetime:
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


# -- checking ---------------------------------------------------------------------------------------------------------


def _checked(op: Op) -> Op:
    """Return an operation with its names checked. Whatever it could not do is refused before anything is read."""
    if isinstance(op, GetOp):
        return op._replace(namespace=checked_labels(op.namespace), key=checked_key(op.key))
    if isinstance(op, SearchOp):
        if op.query is not None:
            raise InvalidItemError(reason="a search by query needs an index, and there is none; search with filter=")
        check_window(op.limit, op.offset)
        check_filter(op.filter)
        return op._replace(namespace_prefix=checked_labels(op.namespace_prefix))
    if isinstance(op, ListNamespacesOp):
        check_listing(op)
        return op
    if isinstance(op, PutOp):
        return _checked_put(op)
    raise InvalidItemError(reason=f"{op!r} is none of its operations: GetOp, SearchOp, PutOp, ListNamespacesOp")


def _checked_put(op: PutOp) -> PutOp:
    if op.value is None:
        return op._replace(namespace=checked_labels(op.namespace), key=checked_key(op.key))
    if op.index:
        raise InvalidItemError(reason=f"the fields {op.index!r} cannot be indexed: there is no index; leave index= out")
    if not isinstance(op.value, Mapping) or not all(isinstance(key, str) for key in op.value):
        raise InvalidItemError(reason=f"the value of {op.key!r} is no dict with texts as keys")
    if op.ttl is not None:
        _check_minutes(op.ttl, f"ttl of {op.key!r}")
    return op._replace(namespace=checked_namespace(op.namespace), key=checked_key(op.key))


def _checked_ttl(ttl: TTLConfig | None) -> TTLConfig | None:
    if ttl is None:
        return None
    if not isinstance(ttl, Mapping):
        raise InvalidItemError(reason=f'ttl= is a dict, as {{"default_ttl": 60}}, not {ttl!r}')
    unknown = ttl.keys() - TTLConfig.__annotations__.keys()
    if unknown:
        known = ", ".join(TTLConfig.__annotations__)
        reason = f"ttl= takes {known}, not {', '.join(sorted(unknown))}. What has expired is never returned"
        raise InvalidItemError(reason=f"{reason}; sweep_ttl() deletes it")
    if (minutes := ttl.get("default_ttl")) is not None:
        _check_minutes(minutes, "default_ttl")
    return ttl


def _check_minutes(minutes: Any, what: str) -> None:
    number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not number or not 0 < minutes <= 1e9:
        raise InvalidItemError(reason=f"{what} is a number of minutes above 0, not {minutes!r}")
