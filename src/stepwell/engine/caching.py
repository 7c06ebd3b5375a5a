"""`CompiledGraph`: what its cache keeps of its nodes, and how that is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.engine.wiring import Wired
from stepwell.errors import InvalidConfigError, NoCacheError
from stepwell.runtime.caching import node_name


class Caching(Wired):
    """The cache of a compiled graph."""

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget what the cache keeps of these nodes; without `nodes`, all it keeps of this graph, its tasks' too.

        Raises NoCacheError, a ValueError, where the graph has none, and InvalidConfigError for a node that is none.
        """
        if self.cache is None:
            raise NoCacheError()
        if nodes is None:
            self.cache.clear(self.plan.graph_id)
            return
        for name in nodes:
            if name not in self.plan.nodes:
                raise InvalidConfigError(f"Node `{name}` not found", key="nodes")
            self.cache.clear(self.plan.graph_id, node_name(name))

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Do as `clear_cache`, without blocking the event loop."""
        if self.cache is None or not self.cache.blocking:
            self.clear_cache(nodes)
            return
        from stepwell.runtime.async_driver import on_pool

        await on_pool(lambda: self.clear_cache(nodes))
