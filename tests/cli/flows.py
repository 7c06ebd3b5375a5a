"""The graphs the command line is tested with. They are named `flows.py:NAME` on it."""

import operator
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from stepwell import (
    END,
    START,
    Approval,
    ApprovalRejectedError,
    InMemorySaver,
    RetryPolicy,
    Send,
    StateGraph,
    ThreadBusyError,
    effect,
    interrupt,
    task,
    wait_for,
)


@dataclass
class Point:
    x: int
    label: str


class State(TypedDict, total=False):
    n: int
    seen: Annotated[list[str], operator.add]
    point: Point
    answer: Any


class Item(TypedDict):
    i: int


def note(name: str) -> State:
    """Witness outside Stepwell that a node ran."""
    if "WITNESS" in os.environ:
        with Path(os.environ["WITNESS"]).open("a") as file:
            file.write(f"{name}\n")
    return {"seen": [name]}


def first(state: State) -> State:
    return {**note("first"), "point": Point(state.get("n", 0), "a marker in a body")}


def wide(item: Item) -> State:
    return note(f"wide {item['i']}")


def ask(state: State) -> State:
    return {"answer": interrupt({"seen": len(state["seen"])})}


def ask_a(state: State) -> State:
    return {"seen": [f"a {interrupt('a?')}"]}


def ask_b(state: State) -> State:
    return {"seen": [f"b {interrupt('b?')}"]}


def waits(state: State) -> State:
    return {"answer": wait_for("go", timeout=3600)}


def broken(state: State) -> State:
    raise ValueError("no\nsuch \x1b[31mluck")


def piped(state: State) -> State:
    raise BrokenPipeError(32, "Broken pipe")


def leaves(state: State) -> State:
    sys.exit(3)


def confused(state: State) -> State:
    raise ThreadBusyError(thread_id="another", holder="?", run_id="?", expires_in=1.0)


def hangs(state: State) -> State:
    """Report to the parent process and wait for its signal, if there is one."""
    if "HANG" in os.environ:
        sys.stdout.write("at work\n")
        sys.stdout.flush()
        sys.stdin.read()
    return note("hangs")


_tried: list[int] = []


@task(retry_policy=RetryPolicy(initial_interval=0.0, max_attempts=2))
def locate(n: int) -> Point:
    """Fail the first time, each time it is called anew."""
    _tried.append(n)
    if len(_tried) % 2:
        raise ConnectionError("no line")
    return Point(n, "found")


def work(state: State) -> State:
    return {"point": locate(state["n"]).result()}


@effect(on_doubt="raise")
def charge(n: int) -> Any:
    raise TimeoutError("no answer")


@effect(approval=Approval(expires=3600, show=lambda order, cents: {"limit": 500}), planned_action="give the money back")
def refund(order: str, cents: int, idempotency_key: str) -> str:
    note("refund")
    return f"refunded {cents} for {order}"


def give_back(state: State) -> State:
    try:
        return {"answer": refund("o", state["n"])}
    except ApprovalRejectedError as no:
        return {"answer": f"no: {no.fields()['reason']}"}


def buy(state: State) -> State:
    return {"answer": charge(state["n"])}


def sends(state: State) -> list[Send]:
    return [Send("wide", {"i": i}) for i in range(state["n"])]


def chain(*nodes: Any) -> StateGraph[Any]:
    graph = StateGraph(State)
    graph.add_sequence(list(nodes))
    graph.add_edge(START, nodes[0].__name__)
    return graph


def beside(*nodes: Any) -> StateGraph[Any]:
    graph = StateGraph(State)
    for node in nodes:
        graph.add_node(node)
        graph.add_edge(START, node.__name__)
    return graph


def approval() -> StateGraph[Any]:
    graph = StateGraph(State)
    for node in (first, wide, ask):
        graph.add_node(node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", sends, ["wide"])
    graph.add_edge("wide", "ask")
    graph.add_edge("ask", END)
    return graph


def countdown() -> StateGraph[Any]:
    graph = StateGraph(State)
    graph.add_node("less", lambda state: {"n": state["n"] - 1})
    graph.add_edge(START, "less")
    graph.add_conditional_edges("less", lambda state: "less" if state["n"] > 0 else END, ["less", END])
    return graph


builder = approval()
graph = approval().compile(name="approval")
questions = beside(ask_a, ask_b).compile(name="questions")
fails = beside(first, broken).compile(name="fails")
sigpipe = beside(piped).compile(name="sigpipe")
confuses = beside(confused).compile(name="confuses")
exits = beside(leaves).compile(name="exits")
long = chain(first, hangs).compile(name="long")
long_beside = beside(first, hangs).compile(name="long_beside")
endless = countdown().compile(name="endless").with_config({"recursion_limit": 2})
waiting = chain(waits).compile(name="waiting")
pays = chain(buy).compile(name="pays")
refunds = chain(give_back).compile(name="refunds")
steps = chain(work).compile(name="steps")
counts = countdown().compile(name="counts")
own = approval().compile(InMemorySaver(), name="own")
not_a_graph = approval
