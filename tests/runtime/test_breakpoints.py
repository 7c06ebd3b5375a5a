"""Static breakpoints: pauses that the caller places, without a question, before or after nodes."""

from typing import Any

import pytest

from stepwell import (
    START,
    AnswerNotUsedWarning,
    Command,
    InvalidConfigError,
    NoCheckpointerError,
    Send,
    SqliteSaver,
    StateGraph,
    UnknownInterruptError,
)
from tests.runtime.graphs import Call, Log, ask, chain, fan, letters, note, thread


def test_a_run_pauses_before_a_node_and_goes_on(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["b"])
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["a"]}
    assert graph.get_state(thread()).next == ("b",)
    assert graph.get_state(thread()).interrupts == ()
    assert call(graph, None, thread(), durability=any_durability) == {"log": ["a", "b", "c"]}
    assert graph.get_state(thread()).next == ()


def test_a_run_pauses_after_a_node_and_goes_on(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_after=["a", "b"])
    for log in (["a"], ["a", "b"], ["a", "b", "c"]):
        given: Any = {} if log == ["a"] else None
        assert call(graph, given, thread(), durability=any_durability) == {"log": log}


def test_a_breakpoint_may_stand_on_every_node(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before="*")
    seen, given = [], {}  # type: ignore[var-annotated]
    for _ in range(4):
        seen.append(call(graph, given, thread())["log"])
        given = None  # type: ignore[assignment]
    assert seen == [[], ["a"], ["a", "b"], ["a", "b", "c"]]


def test_the_call_may_place_other_breakpoints_than_the_graph(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["b"])
    assert call(graph, {}, thread(), interrupt_before=["c"]) == {"log": ["a", "b"]}
    assert call(graph, None, thread()) == {"log": ["a", "b", "c"]}
    assert call(graph, {}, thread("all"), interrupt_after="*") == {"log": ["a"]}
    assert call(graph, {}, thread("none"), interrupt_before=[]) == {"log": ["a", "b", "c"]}


@pytest.mark.parametrize("more", [{}, {"update": {"log": ["in"]}}], ids=["alone", "with-an-update"])
def test_an_answer_where_nothing_is_asked_goes_on_and_says_that_it_is_not_used(
    call: Call, saver: SqliteSaver, more: Any
) -> None:
    """A value goes on from a breakpoint, as in LangGraph; a question that is asked later gets an answer of its own."""
    graph = chain(("a", ask("a"))).compile(checkpointer=saver, interrupt_before=["a"])
    call(graph, {}, thread())
    with pytest.warns(AnswerNotUsedWarning, match="Thread t asks nothing as it stands"):
        paused = call(graph, Command(resume="early", **more), thread())
    assert [question.value for question in paused["__interrupt__"]] == ["a"]
    assert call(graph, Command(resume="mine"), thread())["log"][-1] == "a='mine'"


def test_an_id_map_where_nothing_is_asked_is_refused(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, interrupt_before=["b"])
    call(graph, {}, thread())
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={"0" * 32: "yes"}), thread())
    assert call(graph, None, thread()) == {"log": ["a", "b"]}
    with pytest.raises(UnknownInterruptError, match="no open question to answer"):
        call(graph, Command(resume="yes"), thread())


def test_a_breakpoint_on_an_unknown_node_is_refused(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    for where in ({"interrupt_before": ["nowhere"]}, {"interrupt_after": ["nowhere"]}):
        with pytest.raises(InvalidConfigError, match="Interrupt node `nowhere` not found"):
            call(graph, {}, thread(), **where)
    assert graph.get_state(thread()).config == thread()


def test_a_breakpoint_after_the_last_node_finds_nothing_to_stop(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, interrupt_after=["b"])
    assert call(graph, {}, thread()) == {"log": ["a", "b"]}
    assert graph.get_state(thread()).next == ()


def test_a_breakpoint_stops_the_whole_superstep_and_sends_too(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", note("b"))).add_node("s", lambda arg: {"log": [arg]})
    graph.add_conditional_edges("a", lambda state: [Send("s", "s0"), Send("s", "s1")], ["s"])
    compiled = graph.compile(checkpointer=saver, interrupt_before=["b", "s"])
    assert call(compiled, {}, thread()) == {"log": []}
    assert call(compiled, None, thread()) == {"log": ["a", "b"]}
    assert compiled.get_state(thread()).next == ("s", "s")
    assert call(compiled, None, thread()) == {"log": ["a", "b", "s0", "s1"]}


def test_a_loop_stops_each_time_it_comes_by(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("turn", note("turn")).add_edge(START, "turn")
    graph.add_conditional_edges("turn", lambda state: "turn" if len(state["log"]) < 3 else "__end__")
    compiled = graph.compile(checkpointer=saver, interrupt_before=["turn"])
    call(compiled, {}, thread())
    assert [len(call(compiled, None, thread())["log"]) for _ in range(3)] == [1, 2, 3]
    assert compiled.get_state(thread()).next == ()


def test_at_a_breakpoint_the_state_can_be_edited(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["b"])
    call(graph, {}, thread())
    graph.update_state(thread(), {"log": ["edited"]})
    assert call(graph, None, thread()) == {"log": ["a", "edited", "b", "c"]}


def test_a_command_at_a_breakpoint_updates_jumps_and_goes_on(call: Call, saver: SqliteSaver) -> None:
    graph = (
        letters("abc").add_node("x", note("x")).add_conditional_edges("c", lambda state: "__end__", ["x", "__end__"])
    )
    compiled = graph.compile(checkpointer=saver, interrupt_before=["b"])
    call(compiled, {}, thread())
    result: Any = call(compiled, Command(update={"log": ["told"]}, goto="x"), thread())
    assert result == {"log": ["a", "told", "b", "x", "c"]}


@pytest.mark.parametrize("modes", ["updates", "values", ["updates", "values"]])
def test_a_breakpoint_shows_in_updates_as_no_questions(modes: Any, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, interrupt_before=["b"])
    chunks = list(graph.stream({"log": []}, thread(), stream_mode=modes))
    updates = [{"a": {"log": ["a"]}}, {"__interrupt__": ()}]
    values = [{"log": []}, {"log": ["a"]}]
    expected = {"updates": updates, "values": values}
    if isinstance(modes, str):
        assert chunks == expected[modes]
    else:
        assert [payload for mode, payload in chunks if mode == "updates"] == updates
        assert [payload for mode, payload in chunks if mode == "values"] == values


def test_without_a_saver_a_breakpoint_ends_the_run(call: Call) -> None:
    assert call(letters("abc").compile(interrupt_before=["c"]), {}) == {"log": ["a", "b"]}


# -- breakpoints that a thread keeps -----------------------------------------------------------------------------------


def test_B16_breakpoints_of_a_call_are_its_own(call: Call, saver: SqliteSaver) -> None:
    """The documentation of LangGraph, pull request 2119: what one call places is unknown to the one that continues."""
    graph = letters("abc").compile(checkpointer=saver)
    assert call(graph, {}, thread(), interrupt_before=["a"], interrupt_after=["b"]) == {"log": []}
    assert call(graph, None, thread()) == {"log": ["a", "b", "c"]}


def test_B16_a_thread_may_keep_the_breakpoints_of_a_call(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    options = {"durability": any_durability}
    kept: Any = {"interrupt_before": ["a"], "interrupt_after": ["b"], "keep_breakpoints": True, **options}
    assert call(graph, {}, thread(), **kept) == {"log": []}
    assert call(graph, None, thread(), **options) == {"log": ["a", "b"]}
    assert call(graph, None, thread(), **options) == {"log": ["a", "b", "c"]}
    assert call(graph, {}, thread(), **options) == {"log": ["a", "b", "c"]}
    assert graph.get_state(thread()).next == ("a",)
    assert call(graph, None, thread(), interrupt_before=["c"], **options) == {"log": ["a", "b", "c", "a", "b"]}


def test_kept_breakpoints_hold_for_other_processes_and_copies_until_others_are_kept(
    call: Call, saver: SqliteSaver
) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    call(graph, {}, thread(), interrupt_before="*", keep_breakpoints=True)
    saver.copy_thread("t", "copy")
    again = letters("abc").compile(checkpointer=saver)
    assert call(again, None, thread("copy")) == {"log": ["a"]}
    assert call(again, None, thread(), interrupt_before=["c"], keep_breakpoints=True) == {"log": ["a", "b"]}
    assert call(again, None, thread()) == {"log": ["a", "b", "c"]}
    call(again, {}, thread(), interrupt_before=[], keep_breakpoints=True)
    assert call(again, {}, thread())["log"] == list("abc" * 3)
    assert call(again, None, thread("copy")) == {"log": ["a", "b"]}


def test_breakpoints_that_are_kept_already_are_not_written_again(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({}, thread(), interrupt_before=["a"], keep_breakpoints=True, on_pending="discard")
    with saver.store.reading() as reader:
        assert len(reader.records_of_kind("t", "breakpoints")) == 1


def test_without_a_checkpointer_no_breakpoint_is_kept(call: Call) -> None:
    with pytest.raises(NoCheckpointerError, match="keep_breakpoints needs a checkpointer"):
        call(letters("a").compile(), {}, interrupt_before=["a"], keep_breakpoints=True)
