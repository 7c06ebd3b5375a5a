"""What a running node sees of the item store: what is committed, and what its own call has written.

Writes are held with the code that made them: they become part of its outcome, or are dropped with it. Siblings have
views of their own and see nothing of them before the superstep is committed. What a step inside a node writes is kept
with the step's record, and the node's once the step is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from stepwell.errors import InvalidItemError, ItemsClosedError
from stepwell.items.contract import BaseStore
from stepwell.items.ops import Op, PutOp, Result
from stepwell.items.table import ItemTable
from stepwell.superstep.items import TOUCH, ItemWrite


class Place(Protocol):
    """The code that writes: a call of a node or, inside it, a step."""

    wrote: tuple[ItemWrite, ...]

    keeps_items: bool

    @property
    def root(self) -> Place: ...

    @property
    def outer(self) -> Place | None: ...

    @property
    def is_over(self) -> bool: ...


class TaskItems(BaseStore):
    """The item store of one call of a node or router."""

    supports_ttl = True

    def __init__(
        self,
        table: ItemTable,
        ahead: Callable[[], Sequence[ItemWrite]],
        call: Place,
        here: Callable[[], Place | None],
    ) -> None:
        self._table = table
        self._ahead = ahead
        self._call = call
        self._here = here
        self.ttl_config = table.ttl_config
        self._lock = threading.Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; what they write is applied in the transaction that commits this superstep.

        Raises ItemsClosedError for a write once the call is over.
        """
        place = self._place()
        ahead = [*self._ahead(), *(write for wrote in reversed([*_outward(place)]) for write in wrote)]
        results, writes = self._table.run(list(ops), ahead)
        if writes:
            self.hold(place, writes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, without blocking the event loop."""
        ops = list(ops)
        reads = self._table.rows.blocking and not all(isinstance(op, PutOp) for op in ops)
        return await asyncio.to_thread(self.batch, ops) if reads else self.batch(ops)

    def hold(self, place: Place, writes: Sequence[ItemWrite]) -> None:
        """Keep writes with the code that made them. ItemsClosedError where that is over."""
        only_read = all(write.kind == TOUCH for write in writes)
        with self._lock:
            if not place.is_over and place.keeps_items:
                place.wrote = (*place.wrote, *writes)
            elif only_read:
                return
            elif place.is_over:
                raise ItemsClosedError(namespace=writes[-1].namespace, key=writes[-1].key)
            else:
                told = "an effect writes no items: it is not run again, so they would be lost; write what it returned"
                raise InvalidItemError(reason=told)

    def taken(self) -> tuple[ItemWrite, ...]:
        """Return what the call, which is over, has written. Nothing is added any more."""
        with self._lock:
            return self._call.wrote

    def _place(self) -> Place:
        here = self._here()
        return here if here is not None and here.root is self._call else self._call


def _outward(place: Place | None) -> Iterator[tuple[ItemWrite, ...]]:
    while place is not None:
        yield place.wrote
        place = place.outer
