"""The two engines, each as the names a user would import. The rule: public API only, the same calls on both."""

from __future__ import annotations

import operator
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

Saver = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Engine:
    """What the graphs and families need of an engine. A saver is opened anew for each round."""

    name: str
    StateGraph: Any
    START: str
    END: str
    Send: Any
    task: Any
    entrypoint: Any
    interrupt: Any
    Command: Any
    appended: Any
    """What gathers lists: the annotation of a channel whose writes are added to its end."""
    memory: Saver
    sqlite: Callable[[Path], AbstractContextManager[Any]]
    async_sqlite: Callable[[Path], AbstractAsyncContextManager[Any]]

    @contextmanager
    def sqlite_file(self) -> Iterator[Any]:
        """Open the SQLite saver on a new file."""
        with folder() as path, self.sqlite(path / "bench.db") as saver:
            yield saver

    @asynccontextmanager
    async def async_sqlite_file(self) -> AsyncIterator[Any]:
        """Open the SQLite saver for `ainvoke`, on a new file."""
        with folder() as path:
            async with self.async_sqlite(path / "bench.db") as saver:
                yield saver


@cache
def stepwell() -> Engine:
    """Return Stepwell."""
    import stepwell as api

    return Engine(
        name="Stepwell",
        StateGraph=api.StateGraph,
        START=api.START,
        END=api.END,
        Send=api.Send,
        task=api.task,
        entrypoint=api.entrypoint,
        interrupt=api.interrupt,
        Command=api.Command,
        appended=operator.add,
        memory=lambda: nullcontext(api.InMemorySaver()),
        sqlite=lambda path: api.SqliteSaver(str(path)),
        async_sqlite=lambda path: api.SqliteSaver(str(path)),
    )


@cache
def langgraph() -> Engine:
    """Return LangGraph."""
    graph, types, func = (import_module(f"langgraph.{name}") for name in ("graph", "types", "func"))
    memory, sqlite = import_module("langgraph.checkpoint.memory"), import_module("langgraph.checkpoint.sqlite")
    aio = import_module("langgraph.checkpoint.sqlite.aio")

    return Engine(
        name="LangGraph",
        StateGraph=graph.StateGraph,
        START=graph.START,
        END=graph.END,
        Send=types.Send,
        task=func.task,
        entrypoint=func.entrypoint,
        interrupt=types.interrupt,
        Command=types.Command,
        appended=operator.add,
        memory=lambda: nullcontext(memory.InMemorySaver()),
        sqlite=lambda path: sqlite.SqliteSaver.from_conn_string(str(path)),
        async_sqlite=lambda path: aio.AsyncSqliteSaver.from_conn_string(str(path)),
    )


@cache
def langgraph_deltas() -> Engine:
    """Return LangGraph with its own delta channel for what is gathered."""

    def extend(before: list[Any], writes: list[list[Any]]) -> list[Any]:
        return [*before, *(entry for write in writes for entry in write)]

    return replace(langgraph(), appended=import_module("langgraph.channels.delta").DeltaChannel(extend))


def no_saver() -> AbstractContextManager[Any]:
    """Open nothing: the graph runs without a saver."""
    return nullcontext()


def fresh_config(**settings: Any) -> dict[str, Any]:
    """Return a config with a thread of its own and no step limit in the way."""
    return {"recursion_limit": 100_000, "configurable": {"thread_id": uuid.uuid4().hex}, **settings}


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder for one round."""
    path = Path(tempfile.mkdtemp(prefix="stepwell-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
