"""What the graph layer knows of a compiled graph used as a node. The engine's compiled graph fulfils it."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, TypeGuard

from stepwell.graph.types import MISSING


class Subgraph(Protocol):
    """A compiled graph: it has a plan of its own and is called like a Runnable."""

    @property
    def plan(self) -> Any:
        """The compiled tables."""
        ...

    def invoke(self, input: Any, config: Any = None) -> Any:
        """Run the graph on the caller's thread."""
        ...

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        """Run the graph in the caller's event loop."""
        ...


def is_subgraph(item: Any) -> TypeGuard[Subgraph]:
    """Return whether `item` is a compiled graph. No property of it is evaluated: it may be any object of the user."""
    if isinstance(item, type):
        return False
    return all(inspect.getattr_static(item, name, MISSING) is not MISSING for name in ("plan", "invoke", "ainvoke"))
