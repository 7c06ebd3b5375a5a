"""Graphs of one node or of siblings, and steps that note when they are called."""

import asyncio
import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from stepwell import START, StateGraph, task

CONFIG = {"configurable": {"thread_id": "t"}}


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def one_node(node: Callable[..., Any], saver: Any, **options: Any) -> Any:
    """Return a graph of one node."""
    return siblings(saver, node=(node, options))


def siblings(saver: Any, **nodes: Any) -> Any:
    """Return a graph whose nodes all run in its first superstep: name → function, or (function, options)."""
    builder = StateGraph(Log)
    for name, given in nodes.items():
        node, options = given if isinstance(given, tuple) else (given, {})
        builder.add_node(name, node, **options)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=saver, name="graph")


class Counted:
    """Steps that note each time they are called."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.double = task(self._double, name="double")
        self.adouble = task(self._adouble, name="adouble")

    def _double(self, value: int) -> int:
        self.calls.append(value)
        return value * 2

    async def _adouble(self, value: int) -> int:
        self.calls.append(value)
        await asyncio.sleep(0)
        return value * 2


class AtWork:
    """Counts how many are at work at once, and lets each go on once others have had the chance to begin."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1
