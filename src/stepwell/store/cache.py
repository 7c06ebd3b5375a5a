"""The contract of a cache: results of user code by key, for as long as they may serve. Losing one loses nothing."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class CacheKey(NamedTuple):
    """Where a result is kept."""

    graph_id: str
    callee: str
    """The node, or the function of the task."""
    digest: str
    """32 hex digits over code, version and input."""


class Cache(Protocol):
    """What `compile(cache=)` takes. Called from any thread, and on an event loop where it does not block."""

    @property
    def blocking(self) -> bool:
        """Whether a call may wait for a disk or a network: then it is kept off event loops."""
        ...

    def get(self, key: CacheKey) -> bytes | None:
        """Return what is kept under the key and may still serve, or None."""
        ...

    def set(self, key: CacheKey, value: bytes, ttl: float | None) -> None:
        """Keep a result, in place of what is there, for `ttl` seconds; None: until it is cleared."""
        ...

    def clear(self, graph_id: str | None = None, callee: str | None = None) -> None:
        """Forget what is kept of this graph and this callee; None: of all of them."""
        ...
