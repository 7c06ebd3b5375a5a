"""The graphs that are measured, each written once for both engines. The rule: a node does next to nothing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from benchmarks.engines import Engine


class Counting(TypedDict):
    n: int


class Carrying(TypedDict):
    n: int
    steps: int
    payload: str


class Spreading(TypedDict):
    width: int
    out: Annotated[list[int], operator.add]


def one_more(state: Counting) -> dict[str, int]:
    return {"n": state["n"] + 1}


async def one_more_async(state: Counting) -> dict[str, int]:
    return {"n": state["n"] + 1}


def chain(engine: Engine, length: int, node: Callable[..., Any]) -> Any:
    """Build `length` nodes, one after the other: one task a superstep."""
    graph = engine.StateGraph(Counting)
    names = [f"n{number}" for number in range(length)]
    for name in names:
        graph.add_node(name, node)
    for before, after in zip([engine.START, *names], [*names, engine.END], strict=True):
        graph.add_edge(before, after)
    return graph


def loop(engine: Engine, length: int, node: Callable[..., Any], *, is_async: bool = False) -> Any:
    """Build one node that routes to itself until it has run `length` times; the router is async or not."""

    def route(state: Counting) -> str:
        return "again" if state["n"] < length else str(engine.END)

    async def route_async(state: Counting) -> str:
        return route(state)

    graph = engine.StateGraph(Counting)
    graph.add_node("again", node)
    graph.add_edge(engine.START, "again")
    graph.add_conditional_edges("again", route_async if is_async else route)
    return graph


def carrier(engine: Engine) -> Any:
    """Build a loop of `steps` rounds that carries a payload along, and a last node after it."""

    def again(state: Carrying) -> dict[str, int]:
        return {"n": state["n"] + 1}

    def last(state: Carrying) -> dict[str, int]:
        return {"n": state["n"]}

    graph = engine.StateGraph(Carrying)
    graph.add_node("again", again)
    graph.add_node("last", last)
    graph.add_edge(engine.START, "again")
    graph.add_conditional_edges("again", lambda state: "again" if state["n"] < state["steps"] else "last")
    graph.add_edge("last", engine.END)
    return graph


def fan(engine: Engine, is_async: bool) -> Any:
    """Build a fan-out of `width` sends of one node, merged into a list."""

    def work(task: dict[str, int]) -> dict[str, list[int]]:
        return {"out": [task["i"]]}

    async def work_async(task: dict[str, int]) -> dict[str, list[int]]:
        return {"out": [task["i"]]}

    def spread(state: Spreading) -> dict[str, Any]:
        return {}

    def each(state: Spreading) -> list[Any]:
        return [engine.Send("work", {"i": index}) for index in range(state["width"])]

    graph = engine.StateGraph(Spreading)
    graph.add_node("spread", spread)
    graph.add_node("work", work_async if is_async else work)
    graph.add_edge(engine.START, "spread")
    graph.add_conditional_edges("spread", each, ["work"])
    graph.add_edge("work", engine.END)
    return graph
