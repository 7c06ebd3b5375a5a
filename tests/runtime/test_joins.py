"""Surprises of routing, declared: joins never released, jumps beside static edges, jumps to where nothing is."""

import warnings
from typing import Any

import pytest

from stepwell import END, START, Command, InvalidUpdateError, JoinNotReleasedWarning, Send, SqliteSaver, StateGraph
from tests.runtime.graphs import Call, Log, chain, fan, letters, note, thread


def skipping() -> StateGraph[Any, Any, Any, Any]:
    """Return a graph whose router skips one of the two sources of a join."""
    graph = StateGraph(Log).add_node("split", note("split")).add_node("a", note("a")).add_node("b", note("b"))
    graph.add_node("join", note("join")).add_edge(START, "split").add_edge(["a", "b"], "join")
    return graph.add_conditional_edges("split", lambda state: "a", ["a", "b"])


def test_N4_a_join_that_is_never_released_is_told(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """LangGraph.js's report 2666: the run ended normally, and what follows the join was silently missing."""
    graph = skipping().compile(checkpointer=saver)
    with pytest.warns(JoinNotReleasedWarning, match=r"join:a\+b:join.* b did not run"):
        assert call(graph, {}, thread(), durability=any_durability) == {"log": ["split", "a"]}
    assert dict(graph.get_state(thread()).joins) == {"join:a+b:join": ("a",)}
    assert graph.get_state(thread()).next == ()


def test_N4_a_released_join_is_not_mentioned(call: Call, saver: SqliteSaver) -> None:
    """Neither by a warning nor in the snapshot."""
    graph = fan(("a", note("a")), ("b", note("b"))).add_node("join", note("join")).add_edge(["a", "b"], "join")
    compiled = graph.compile(checkpointer=saver)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(compiled, {}, thread()) == {"log": ["a", "b", "join"]}
    assert dict(compiled.get_state(thread()).joins) == {}


def test_N4_a_join_that_waits_at_a_pause_is_no_news(call: Call, saver: SqliteSaver) -> None:
    """It may still be released: only the end of the run tells."""
    graph = fan(("a", note("a")), ("b", note("b"))).add_node("b2", note("b2")).add_node("join", note("join"))
    compiled = graph.add_edge("b", "b2").add_edge(["a", "b2"], "join").compile(checkpointer=saver)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(compiled, {}, thread(), interrupt_before=["b2"])
    assert dict(compiled.get_state(thread()).joins) == {"join:a+b2:join": ("a",)}
    assert call(compiled, None, thread()) == {"log": ["a", "b", "b2", "join"]}


def jumping(goto: str, target: Any = "c") -> Any:
    """Return a graph whose node has a static edge to b and jumps to c."""

    def jump(state: Log) -> Command[Any]:
        return Command(update={"log": ["a"]}, goto=target)

    graph = StateGraph(Log).add_node("a", jump, goto=goto, destinations=("c",)).add_node("b", note("b"))  # type: ignore[arg-type]
    return graph.add_node("c", note("c")).add_edge(START, "a").add_edge("a", "b").compile()


def test_N5_a_jump_adds_to_the_static_edge(call: Call) -> None:
    """LangGraph's report 5829: both targets run. As there, unless the node declares the other."""
    assert call(jumping("add"), {}) == {"log": ["a", "b", "c"]}


def test_N5_a_node_may_declare_that_its_jumps_replace_its_edges(call: Call) -> None:
    """`add_node(goto="replace")`."""
    assert call(jumping("replace"), {}) == {"log": ["a", "c"]}
    assert call(jumping("replace", [Send("c", {"log": []})]), {}) == {"log": ["a", "c"]}


@pytest.mark.parametrize("target", [(), []])
def test_N5_without_a_jump_the_edge_is_taken_in_both_modes(target: Any, call: Call) -> None:
    """A command that only updates replaces nothing."""
    for mode in ("add", "replace"):
        assert call(jumping(mode, target), {}) == {"log": ["a", "b"]}


def test_N5_a_jump_to_the_end_replaces_the_edge_too(call: Call) -> None:
    """END is a destination: the branch ends there instead of going on."""
    assert call(jumping("replace", END), {}) == {"log": ["a"]}
    assert call(jumping("add", END), {}) == {"log": ["a", "b"]}


# -- jumps to where nothing is ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("goto", ["nowhere", ["b", "nowhere"], [Send("nowhere", 1)]])
def test_a_jump_to_an_unknown_node_fails_its_own_node_and_poisons_nothing(
    goto: Any, call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """The mistake is found before it is committed: the node can be run again, the thread edited."""
    targets = iter([goto, "b"])
    graph = chain(("a", lambda state: Command(update={"log": ["a"]}, goto=next(targets)))).add_node("b", note("b"))
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="nowhere"):
        call(compiled, {}, thread(), durability=any_durability)
    assert compiled.get_state(thread()).next == ("a",)
    assert call(compiled, None, thread(), durability=any_durability) == {"log": ["a", "b"]}


@pytest.mark.parametrize("goto", ["nowhere", [Send("nowhere", 1)]])
def test_a_command_to_an_unknown_node_is_refused_and_changes_nothing(goto: Any, call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    call(graph, {}, thread())
    before = graph.get_state(thread())
    with pytest.raises(InvalidUpdateError, match="nowhere"):
        call(graph, Command(goto=goto), thread())
    assert graph.get_state(thread()) == before
