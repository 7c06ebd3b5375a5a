"""The public contract of item stores: every method is one operation, handed to `batch` or `abatch`.

A store of your own overrides these two. Handed to `compile(store=...)` it reaches nodes as it is: only Stepwell's own
stores hold a node's writes back until its outcome is committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from stepwell.errors import InvalidItemError
from stepwell.items.names import checked_key, checked_labels, checked_namespace
from stepwell.items.ops import (
    NOT_PROVIDED,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

Index = Literal[False] | list[str] | None
TTL = float | None | NotProvided


class BaseStore(ABC):
    """Values under a namespace (a tuple of labels) and a key, for all threads."""

    supports_ttl: bool = False
    ttl_config: TTLConfig | None = None

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; return one result for each, in their order.

        Reads see what was there before the batch. Its writes are one transaction: all of them or none; of two to one
        item the later one counts.
        """

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, without blocking the event loop."""

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Return an item; None where there is none, or it has expired."""
        return self.batch([self._get(namespace, key, refresh_ttl)])[0]  # type: ignore[return-value]

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Do as `get`, without blocking the event loop."""
        return (await self.abatch([self._get(namespace, key, refresh_ttl)]))[0]  # type: ignore[return-value]

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Return the items at or below a namespace whose values match `filter`, those written first in front.

        `filter`: what top-level keys of a value must be, or operators: `$eq $ne $gt $gte $lt $lte`. `()` searches all.
        """
        op = self._search(namespace_prefix, filter, limit, offset, query, refresh_ttl)
        return self.batch([op])[0]  # type: ignore[return-value]

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Do as `search`, without blocking the event loop."""
        op = self._search(namespace_prefix, filter, limit, offset, query, refresh_ttl)
        return (await self.abatch([op]))[0]  # type: ignore[return-value]

    def put(
        self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Index = None, *, ttl: TTL = NOT_PROVIDED
    ) -> None:
        """Write an item over what is there. `ttl`: minutes after which it expires, None for never."""
        self.batch([self._put(namespace, key, value, index, ttl)])

    async def aput(
        self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Index = None, *, ttl: TTL = NOT_PROVIDED
    ) -> None:
        """Do as `put`, without blocking the event loop."""
        await self.abatch([self._put(namespace, key, value, index, ttl)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete an item. One that is not there is no error."""
        self.batch([PutOp(checked_labels(namespace), checked_key(key), None)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """Do as `delete`, without blocking the event loop."""
        await self.abatch([PutOp(checked_labels(namespace), checked_key(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: Namespace | None = None,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Return the namespaces that hold items, sorted. In `prefix` and `suffix` "*" stands for any one label;
        `max_depth` cuts them to so many labels."""
        return self.batch([_listing(prefix, suffix, max_depth, limit, offset)])[0]  # type: ignore[return-value]

    async def alist_namespaces(
        self,
        *,
        prefix: Namespace | None = None,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Do as `list_namespaces`, without blocking the event loop."""
        found = await self.abatch([_listing(prefix, suffix, max_depth, limit, offset)])
        return found[0]  # type: ignore[return-value]

    # -- operations ---------------------------------------------------------------------------------------------------

    def _get(self, namespace: Namespace, key: str, refresh_ttl: bool | None) -> GetOp:
        return GetOp(checked_labels(namespace), checked_key(key), self._refreshes(refresh_ttl))

    def _search(
        self,
        prefix: Namespace,
        filter: Mapping[str, Any] | None,
        limit: int,
        offset: int,
        query: str | None,
        refresh_ttl: bool | None,
    ) -> SearchOp:
        return SearchOp(checked_labels(prefix), filter, limit, offset, query, self._refreshes(refresh_ttl))

    def _put(self, namespace: Namespace, key: str, value: Mapping[str, Any], index: Index, ttl: TTL) -> PutOp:
        if value is None:
            raise InvalidItemError(reason=f"the value of {key!r} is None; delete() deletes an item")
        minutes = (self.ttl_config or {}).get("default_ttl") if isinstance(ttl, NotProvided) else ttl
        if minutes is not None and not self.supports_ttl:
            raise InvalidItemError(reason=f"{type(self).__name__} keeps items for ever: put without ttl=")
        return PutOp(checked_namespace(namespace), checked_key(key), value, index, minutes)

    def _refreshes(self, refresh_ttl: bool | None) -> bool:
        return (self.ttl_config or {}).get("refresh_on_read", True) if refresh_ttl is None else refresh_ttl


def _listing(
    prefix: Namespace | None, suffix: Namespace | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    conditions = []
    if prefix:
        conditions.append(MatchCondition("prefix", prefix))
    if suffix:
        conditions.append(MatchCondition("suffix", suffix))
    return ListNamespacesOp(tuple(conditions) or None, max_depth, limit, offset)
