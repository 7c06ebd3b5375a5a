"""The small graphs that tests run: nodes that note their names, questions, failures on demand."""

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from stepwell import START, StateGraph, interrupt

Call = Callable[..., Any]
Chunks = Callable[..., list[Any]]
Node = Callable[..., Any]

GIVEN: tuple[Any, ...] = ({}, None)
"""A first call with an input, and one that continues."""


class Log(TypedDict, total=False):
    """A state that remembers who wrote to it, in merge order."""

    log: Annotated[list[str], operator.add]


def thread(thread_id: str = "t", **more: Any) -> dict[str, Any]:
    """Return the config of a thread; `more` are top-level keys."""
    return {"configurable": {"thread_id": thread_id}, **more}


def note(name: str) -> Node:
    """Return a node that appends its name to the log."""

    def noting(state: Any) -> dict[str, list[str]]:
        return {"log": [name]}

    return noting


def anote(name: str) -> Node:
    """Return the same node as a coroutine function."""

    async def noting(state: Any) -> dict[str, list[str]]:
        return {"log": [name]}

    return noting


def ask(name: str, *questions: Any) -> Node:
    """Return a node that asks each question in turn and logs `name=answer` for each."""

    def asking(state: Any) -> dict[str, list[str]]:
        return {"log": [f"{name}={interrupt(question)!r}" for question in questions or (name,)]}

    return asking


class Flaky:
    """A node that raises as often as told, then logs its name. Counts its calls."""

    def __init__(self, name: str, failures: int = 1, error: Exception | None = None) -> None:
        self.name = name
        self.left = failures
        self.error = error or ValueError(f"{name} is broken")
        self.calls = 0

    def __call__(self, state: Any) -> dict[str, list[str]]:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error
        return {"log": [self.name]}


class Counted:
    """A node that counts how often it is called."""

    def __init__(self, name: str, node: Node | None = None) -> None:
        self.name = name
        self.node = node or note(name)
        self.calls = 0

    def __call__(self, state: Any) -> Any:
        self.calls += 1
        return self.node(state)


class AsyncCounted:
    """A coroutine function that counts how often it is called, then logs its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0

    async def __call__(self, state: Any) -> dict[str, list[str]]:
        self.calls += 1
        return {"log": [self.name]}


def chain(*nodes: tuple[str, Node], schema: Any = Log) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that runs the nodes one after another."""
    return StateGraph(schema).add_sequence(list(nodes)).add_edge(START, nodes[0][0])


def letters(text: str) -> StateGraph[Any, Any, Any, Any]:
    """Return a chain of noting nodes, one for each letter."""
    return chain(*((name, note(name)) for name in text))


def fan(*nodes: tuple[str, Node], schema: Any = Log) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that runs the nodes side by side in one superstep."""
    graph = StateGraph(schema)
    for name, node in nodes:
        graph.add_node(name, node).add_edge(START, name)
    return graph
