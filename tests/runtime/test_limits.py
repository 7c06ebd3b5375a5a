"""Step limits: what stops a run that goes on too long, and how its thread goes on from there."""

from typing import Any, TypedDict

import pytest

from stepwell import GraphRecursionError, SqliteSaver, StateGraph
from tests.runtime.graphs import Call, chain, thread


class Turns(TypedDict, total=False):
    turn: int


def turning(rounds: int) -> StateGraph[Any, Any, Any, Any]:
    graph = chain(("go", lambda state: {"turn": state["turn"] + 1}), schema=Turns)
    return graph.add_conditional_edges("go", lambda state: "go" if state["turn"] < rounds else "__end__")


def test_M5_the_limit_leaves_a_thread_that_goes_on(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """LangGraph's report 148: at the step limit the work of a long job was gone."""
    graph = turning(30).compile(checkpointer=saver)
    config = thread(recursion_limit=25)
    with pytest.raises(GraphRecursionError) as raised:
        call(graph, {"turn": 0}, config, durability=any_durability)
    snapshot = graph.get_state(thread())
    assert snapshot.values == {"turn": 25}
    assert raised.value.fields() == {
        "limit": 25,
        "thread_id": "t",
        "checkpoint_id": snapshot.config["configurable"]["checkpoint_id"],
    }
    assert call(graph, None, config, durability=any_durability) == {"turn": 30}


def test_M5_the_limit_may_end_a_run_gracefully(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """`on_limit="stop"` returns the state instead of raising; what is left goes on with a fresh limit."""
    graph = turning(30).compile(checkpointer=saver)
    options = {"durability": any_durability, "on_limit": "stop"}
    assert call(graph, {"turn": 0}, thread(recursion_limit=25), **options) == {"turn": 25}
    assert graph.get_state(thread()).next == ("go",)
    assert call(graph, None, thread(recursion_limit=3), **options) == {"turn": 28}
    assert call(graph, None, thread(), **options) == {"turn": 30}
    assert graph.get_state(thread()).next == ()


def test_M7_a_thread_may_have_a_budget_of_its_own(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """`thread_step_limit` counts over all runs, so a loop that pauses every round is bounded too."""
    graph = turning(100).compile(checkpointer=saver, interrupt_after=["go"])
    options: dict[str, Any] = {"durability": any_durability, "thread_step_limit": 5}
    for given in ({"turn": 0}, None, None, None):
        call(graph, given, thread(), **options)
    assert graph.get_state(thread()).values == {"turn": 4}
    with pytest.raises(GraphRecursionError, match="5"):
        for _ in range(3):
            call(graph, None, thread(), **options)
    assert graph.get_state(thread()).values == {"turn": 5}
    assert call(graph, None, thread(), durability=any_durability) == {"turn": 6}, "without it the thread goes on"


def test_M7_steps_go_on_counting_over_pauses(saver: SqliteSaver) -> None:
    """tinyagents' review, finding I3: counters began anew on each resume and the history ran backwards."""
    graph = turning(100).compile(checkpointer=saver, interrupt_after=["go"])
    graph.invoke({"turn": 0}, thread(recursion_limit=2))
    for _ in range(99):
        graph.invoke(None, thread(recursion_limit=2))
    steps = [snapshot.metadata["step"] for snapshot in graph.get_state_history(thread())]
    assert steps == list(range(100, -2, -1))
    assert graph.get_state(thread()).next == ()
