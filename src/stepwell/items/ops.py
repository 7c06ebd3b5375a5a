"""What an item store can be asked, as values, and what it answers. Nothing is checked or carried out here."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict

Namespace = tuple[str, ...]


class NotProvided:
    """Stands for an argument that was not given, where None means something."""

    def __repr__(self) -> str:
        return "NOT_PROVIDED"


NOT_PROVIDED = NotProvided()


class Item:
    """A stored value with its place and times (UTC). The value is the caller's own copy: changing it stores nothing."""

    __slots__ = ("created_at", "key", "namespace", "updated_at", "value")

    def __init__(
        self, *, value: dict[str, Any], key: str, namespace: Namespace, created_at: datetime, updated_at: datetime
    ) -> None:
        self.value = value
        self.key = key
        self.namespace = tuple(namespace)
        self.created_at = _moment(created_at)
        self.updated_at = _moment(updated_at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.namespace, self.key))

    def _parts(self) -> tuple[Any, ...]:
        return (self.namespace, self.key, self.value, self.created_at, self.updated_at)

    def dict(self) -> dict[str, Any]:
        """Return the item as plain data, the times as ISO texts."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.dict().items())})"


class SearchItem(Item):
    """An item that a search found. `score` is None: nothing is ranked here."""

    __slots__ = ("score",)

    def __init__(
        self,
        namespace: Namespace,
        key: str,
        value: builtins.dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        score: float | None = None,
    ) -> None:
        super().__init__(value=value, key=key, namespace=namespace, created_at=created_at, updated_at=updated_at)
        self.score = score

    def dict(self) -> builtins.dict[str, Any]:
        """Return the item as plain data, with its score."""
        return {**super().dict(), "score": self.score}


def _moment(given: datetime | str) -> datetime:
    return datetime.fromisoformat(given) if isinstance(given, str) else given


class GetOp(NamedTuple):
    """Read one item."""

    namespace: Namespace
    key: str
    refresh_ttl: bool = True
    """Whether reading an item that expires lets its time begin anew."""


class SearchOp(NamedTuple):
    """Find items below a namespace, oldest first."""

    namespace_prefix: Namespace
    filter: Mapping[str, Any] | None = None
    """Per top-level key of the value what it must be: a value, or operators such as `{"$gte": 4}`."""
    limit: int = 10
    offset: int = 0
    query: str | None = None
    """Refused: there is no index."""
    refresh_ttl: bool = True


class MatchCondition(NamedTuple):
    """What a namespace must begin or end with; "*" stands for any one label."""

    match_type: Literal["prefix", "suffix"]
    path: Namespace


class ListNamespacesOp(NamedTuple):
    """List the namespaces that hold items, sorted."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    max_depth: int | None = None
    """Cut each namespace to this many labels, and list each result once."""
    limit: int = 100
    offset: int = 0


class PutOp(NamedTuple):
    """Write an item, or delete it where the value is None."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    index: Literal[False] | list[str] | None = None  # type: ignore[assignment]  # LangGraph's name, and tuple's
    """Refused where it names fields: there is no index."""
    ttl: float | None = None
    """Minutes after which the item expires; None: never."""


Op = GetOp | SearchOp | PutOp | ListNamespacesOp
Result = Item | list[Item] | list[SearchItem] | list[Namespace] | None


class TTLConfig(TypedDict, total=False):
    """How a store treats items that expire."""

    refresh_on_read: bool
    """Whether reading lets an item's time begin anew where a call does not say; True unless given."""
    default_ttl: float | None
    """Minutes for items put without `ttl`."""
