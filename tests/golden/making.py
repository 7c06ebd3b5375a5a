"""What the golden files hold: threads that stand in every way a thread can stand, with every kind of row.

`make(folder)` writes `threads.db` and `expected.json`. A release that changes the format makes a folder of its own with
it, once, and never touches the older ones: they are what its users have on their disks.
"""

from __future__ import annotations

import json
import operator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import apsw

from stepwell import (
    START,
    Command,
    CompiledGraph,
    SqliteSaver,
    StateGraph,
    effect,
    interrupt,
    register_type,
    task,
    wait_for,
)

LARGE = "large " * 3_000
"""A value that is stored apart."""


@dataclass
class Order:
    """A registered class."""

    number: int
    placed: datetime


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    order: Order
    large: str
    mixed: dict[str, Any]


@task
def prepare(what: str) -> str:
    """Return something that is recorded as a step."""
    return what.upper()


@effect(on_doubt="raise", name="pay")
def pay(what: str) -> str:
    """Return a receipt."""
    return f"paid {what}"


def begin(state: State) -> dict[str, Any]:
    """Write one value of many kinds."""
    mixed = {
        "int": 2**70,
        "float": 0.1,
        "bytes": b"\x00\xff",
        "none": None,
        "tuple": (1, "a"),
        "set": {1, 2},
        "text": "é☃",
    }
    order = Order(7, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    return {"log": ["begin"], "order": order, "large": LARGE, "mixed": mixed}


def act(state: State) -> dict[str, Any]:
    """Act on the outside world."""
    return {"log": [pay(prepare("x").result())]}


def expect(state: State) -> dict[str, Any]:
    """Wait for a signal."""
    return {"log": [f"got {wait_for('go')}"]}


def ask(state: State) -> dict[str, Any]:
    """Ask a question."""
    return {"log": [f"answered {interrupt('go on?')}"]}


def fail(state: State) -> dict[str, Any]:
    """Fail until somebody mends the state."""
    if "mended" not in state["log"]:
        raise ValueError("broken")
    return {"log": ["done"]}


def graph_on(saver: SqliteSaver) -> CompiledGraph:
    """Return the graph of all golden threads."""
    register_type(Order)
    nodes = [("begin", begin), ("act", act), ("expect", expect), ("ask", ask), ("fail", fail)]
    built = StateGraph(State).add_sequence(nodes).add_edge(START, "begin")
    compiled: CompiledGraph = built.compile(checkpointer=saver, name="golden", events=True)
    return compiled


def config(name: str) -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}, "metadata": {"user": "ann"}}


def live(graph: CompiledGraph) -> None:
    """Have the threads stand where their names say."""
    for name in ("waiting", "asked", "failed", "finished", "forked"):
        graph.invoke({}, config(name))
    acted = {}
    for state in graph.get_state_history(config("forked")):
        acted[state.next] = state.config
    graph.fork(acted["act",])
    graph.invoke(None, config("forked"))
    for name in ("asked", "failed", "finished"):
        graph.signal(config(name), "go", name)
        graph.invoke(None, config(name))
    for name in ("failed", "finished"):
        with suppress(ValueError):
            graph.invoke(Command(resume="yes"), config(name))
    graph.update_state(config("finished"), {"log": ["mended"]}, as_node="ask")
    graph.invoke(None, config("finished"))
    graph.signal(config("waiting"), "later", "unread")


def shown(graph: CompiledGraph, name: str) -> dict[str, Any]:
    """Return what is to be read of a thread by every later release."""
    state = graph.get_state(config(name))
    history = [[*each.next, len(each.values.get("log", ()))] for each in graph.get_state_history(config(name))]
    journal = [[entry.kind, entry.name, entry.status] for entry in graph.get_journal(config(name))]
    questions = [question.value for question in state.interrupts]
    return {
        "values": repr({**state.values, "large": len(state.values["large"])}),
        "next": list(state.next),
        "history": history,
        "journal": journal,
        "questions": questions,
    }


def kinds(path: Path) -> dict[str, list[str]]:
    """Return which kinds of rows a file holds, table by table."""
    connection = apsw.Connection(str(path))
    found = {}
    columns = {"records": "kind", "events": "kind", "checkpoints": "source", "runs": "status", "effects": "status"}
    for table in (
        "threads",
        "runs",
        "checkpoints",
        "lineages",
        "records",
        "events",
        "inbox",
        "effects",
        "blobs",
        "shapes",
    ):
        column = columns.get(table, "'a row'")
        rows: Any = connection.execute(f"select distinct {column} from {table} order by 1")
        found[table] = [str(kind) for (kind,) in rows]
    connection.close()
    return found


def make(folder: Path) -> None:
    """Write the files, over those that an earlier call has made or left half made."""
    path = folder / "made.db"
    for old in (*folder.glob("made.db*"), folder / "threads.db"):
        old.unlink(missing_ok=True)
    with SqliteSaver(path) as saver:
        graph = graph_on(saver)
        live(graph)
        expected = {name: shown(graph, name) for name in ("waiting", "asked", "failed", "finished", "forked")}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=True) + "\n")
    connection = apsw.Connection(str(path))
    connection.execute("vacuum into ?", (str(folder / "threads.db"),))
    connection.close()
    for each in folder.glob("made.db*"):
        each.unlink()
