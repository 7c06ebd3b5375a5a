"""A graph as it was, and as it is after a deployment: named `changed.py:NAME`."""

from typing import Any, TypedDict

from stepwell import START, StateGraph, interrupt


class State(TypedDict, total=False):
    n: int
    text: str


class Retyped(TypedDict, total=False):
    n: str
    text: str


def ask(state: Any) -> dict[str, Any]:
    interrupt("go on?")
    return {}


def fine(state: Any) -> dict[str, Any]:
    return {}


def _graph(schema: Any, last: str, **options: Any) -> Any:
    graph = StateGraph(schema).add_node("first", fine).add_node(last, ask)
    return graph.add_edge(START, "first").add_edge("first", last).compile(name="g", **options)


def _migrate(values: dict[str, Any], from_version: str) -> dict[str, Any]:
    return {**values, "n": str(10 // values["n"])}


before = _graph(State, "review", version="1")
renamed = _graph(State, "approve", version="2")
aliased = _graph(State, "approve", version="2", aliases={"review": "approve"})
retyped = _graph(Retyped, "review", version="2")
migrated = _graph(Retyped, "review", version="2", migrate=_migrate)
pinned = _graph(State, "approve", version="2", aliases={"review": "approve"}, on_change="raise")
other = StateGraph(State).add_node("first", fine).add_edge(START, "first").compile(name="other")
