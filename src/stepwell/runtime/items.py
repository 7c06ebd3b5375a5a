"""What the nodes of a run write to the item store, between their outcomes and the database.

Where the item store lies in the saver's database, the writes are part of the commit that consumes their outcomes.
Anywhere else they are written ahead of it: a crash between the two repeats them with their superstep, and loses none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stepwell import points
from stepwell.items import ItemTable, TaskItems
from stepwell.runtime.requests import Settle
from stepwell.runtime.scope import current
from stepwell.store import ItemWrites, Queued, Store
from stepwell.superstep.items import ItemWrite
from stepwell.superstep.outcome import Outcome, Succeeded
from stepwell.superstep.state import Task, merge_order

if TYPE_CHECKING:
    from stepwell.runtime.calls import Call


def items_of_run(item_store: Any, store: Store | None) -> RunItems | None:
    """Return what binds a run to its item store, where that is one of Stepwell's; others are left to the nodes."""
    return RunItems(item_store, store) if isinstance(item_store, ItemTable) else None


class RunItems:
    """The item store of one run."""

    def __init__(self, table: ItemTable, store: Store | None) -> None:
        self._table = table
        self.apart = store is None or not table.rows.is_same(store)
        """Whether the items lie elsewhere than the thread."""
        self._staged: list[ItemWrite] = []
        self._sent: dict[int, tuple[ItemWrite, ...]] = {}

    def view(self, call: Call) -> TaskItems:
        """Return what one call of a node sees and writes."""
        return TaskItems(self._table, self._ahead, call, current.get)

    def stage(self, tasks: Sequence[Task], outcomes: Iterable[Outcome | None]) -> None:
        """Take what these outcomes wrote: they have been merged."""
        made = list(outcomes)
        for i in merge_order(tasks):
            outcome = made[i]
            if isinstance(outcome, Succeeded):
                self._staged.extend(outcome.items)

    def take(self) -> tuple[ItemWrite, ...]:
        """Return what is staged, for the commit. The run goes on to see it until it has landed."""
        if self.apart or not self._staged:
            return ()
        return self._send()

    def landed(self, writes: Sequence[ItemWrite]) -> None:
        """Note that these are in the database."""
        self._sent.pop(id(writes), None)

    def landing(self, future: Queued, writes: Sequence[ItemWrite]) -> None:
        """Note that these are in the database once the future is answered."""
        future.add_done_callback(lambda done: self.landed(writes))

    def forget(self) -> None:
        """Drop what was never written."""
        self._staged.clear()
        self._sent.clear()

    async def write_apart(self, leads: bool) -> None:
        """Where the items lie elsewhere: write what is staged, ahead of the commit that consumes its outcomes. `leads`
        is the port's."""
        if not self.apart or not self._staged:
            return
        writes = self._send()
        rows = self._table.rows
        if rows.blocking:
            await Settle(rows.queue(ItemWrites(writes), not leads), rows)
        else:
            rows.write_items(ItemWrites(writes))
        self.landed(writes)
        points.reach(points.ITEMS_WRITTEN)

    def _send(self) -> tuple[ItemWrite, ...]:
        staged = tuple(self._staged)
        writes = self._table.rows.sealer.items(staged)
        self._sent[id(writes)] = staged  # before it is unstaged: a reader misses nothing
        self._staged = []
        return writes

    def _ahead(self) -> list[ItemWrite]:
        staged = self._staged
        return [*(write for writes in list(self._sent.values()) for write in writes), *staged]
