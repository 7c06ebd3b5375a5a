"""Where a graph's items may lie: in its saver's database, or in one of their own; and nodes that write there."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from stepwell import InMemorySaver, InMemoryStore, SqliteSaver, SqliteStore
from tests.runtime.graphs import Node

BESIDE = ("memory", "saver", "path")
"""In the saver's database: made from the saver in memory, from the saver on a file, on the saver's file."""
APART = ("two-memories", "two-files", "memory-and-file", "no-saver")
N = ("n",)
"""The namespace that the tests write to."""


class Place(NamedTuple):
    """A saver, if there is one, and an item store."""

    saver: Any
    store: SqliteStore

    def compiled(self, graph: Any, **options: Any) -> Any:
        return graph.compile(checkpointer=self.saver, store=self.store, **options)

    def keys(self) -> list[str]:
        """Return the keys of what is in the database now."""
        return [item.key for item in self.store.search((), limit=100)]


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[Place]:
    """Open a place of this kind."""
    file, other = folder / "threads.db", folder / "items.db"
    savers: dict[str, Callable[[], Any]] = dict.fromkeys(("memory", "two-memories", "memory-and-file"), InMemorySaver)
    savers["no-saver"] = lambda: None
    with ExitStack() as stack:
        saver = savers.get(kind, lambda: SqliteSaver(file))()
        stores: dict[str, Callable[[], SqliteStore]] = dict.fromkeys(("two-memories", "no-saver"), InMemoryStore)
        stores |= dict.fromkeys(("memory", "saver"), lambda: SqliteStore(saver))
        stores["path"] = lambda: SqliteStore(file)
        if saver is not None:
            stack.enter_context(saver)
        yield Place(saver, stack.enter_context(stores.get(kind, lambda: SqliteStore(other))()))


def puts(name: str, then: Node | None = None) -> Node:
    """Return a node that puts an item named after it, logs its name, or goes on as `then` says."""

    def putting(state: Any, store: Any) -> Any:
        store.put(N, name, {"by": name})
        return {"log": [name]} if then is None else then(state)

    return putting
