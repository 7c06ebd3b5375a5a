"""Reads of the item store. Which items are expired is told by the time that a caller names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepwell.store import ItemRow
from stepwell.stores.shared.fetching import Fetching
from stepwell.stores.shared.rows import ITEMS

ITEMS_AT_ONCE = 16
"""As many items are fetched when the first is asked for; then twice as many each time, up to the limit."""
MOST_ITEMS_AT_ONCE = 256


class ItemReader(Fetching):
    """The contract's `ItemReader` on any body's snapshot."""

    __slots__ = ()

    def item(self, namespace: str, key: str) -> ItemRow | None:
        """Return an item, expired or not."""
        found = self._fetch("item", ITEMS, {"namespace": namespace, "key": key})
        return ITEMS.verified(found[0]) if found else None

    def items(self, prefix: str, now: int) -> Iterator[ItemRow]:
        """Yield the items of a namespace and those below it, by ordinal, reading on as they are asked for."""
        where: dict[str, Any] = {"now": now}
        if prefix:
            where |= {"namespace": prefix, "low": f"{prefix}.", "high": f"{prefix}/"}
        found = self._fetch("item_places_below" if prefix else "item_places", ITEMS, where)
        places = sorted(place for (place,) in found)
        start, many = 0, ITEMS_AT_ONCE
        while start < len(places):
            ordinals = self._listed(places[start : start + many])
            yield from self._rows("items", ITEMS, ordinals=ordinals)
            start, many = start + many, min(2 * many, MOST_ITEMS_AT_ONCE)

    def item_namespaces(self, now: int) -> list[str]:
        """Return the namespaces that hold an item."""
        return [namespace for (namespace,) in self._fetch("item_namespaces", ITEMS, {"now": now})]
