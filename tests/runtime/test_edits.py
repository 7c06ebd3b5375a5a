"""Edits, forks and replays: the past never changes, and what still holds after an edit is not done again."""

import operator
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import START, Command, InvalidUpdateError, SqliteSaver, StateGraph, UnknownCheckpointError, interrupt
from tests.runtime.graphs import GIVEN, Call, Counted, Flaky, Log, ask, chain, fan, letters, note, thread


def history(graph: Any, config: Any = None) -> list[Any]:
    return list(graph.get_state_history(config or thread()))


def at_step(graph: Any, step: int) -> Any:
    """Return the config of the newest checkpoint with this step."""
    return next(s.config for s in history(graph) if s.metadata["step"] == step)


# -- update_state -----------------------------------------------------------------------------------------------------


def test_an_edit_acts_as_the_last_node_that_wrote(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_after=["a"])
    call(graph, {}, thread())
    config = graph.update_state(thread(), {"log": ["edit"]})
    edited = graph.get_state(thread())
    assert edited.config == config
    assert (edited.values, edited.next) == ({"log": ["a", "edit"]}, ("b",))
    assert (edited.metadata["source"], edited.metadata["step"], edited.lineage) == ("update", 2, 0)
    assert edited.parent_config == history(graph)[1].config
    assert call(graph, None, thread()) == {"log": ["a", "edit", "b", "c"]}


def test_an_edit_as_a_node_goes_where_that_node_leads(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["b"])
    call(graph, {}, thread())
    graph.update_state(thread(), {"log": ["for b"]}, as_node="b")
    assert graph.get_state(thread()).next == ("c",)
    assert call(graph, None, thread()) == {"log": ["a", "for b", "c"]}


def test_an_edit_runs_the_routers_over_the_edited_state(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_node("yes", note("yes")).add_node("no", note("no"))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "yes" if "edit" in state["log"] else "no", ["yes", "no"])
    compiled = graph.compile(checkpointer=saver)
    assert call(compiled, {}, thread()) == {"log": ["a", "no"]}
    compiled.update_state(thread(), {"log": ["edit"]}, as_node="a")
    assert compiled.get_state(thread()).next == ("yes",)
    assert call(compiled, None, thread()) == {"log": ["a", "no", "edit", "yes"]}


def test_an_edit_of_an_empty_thread_acts_as_its_input(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.update_state(thread(), {"log": ["seed"]})
    assert graph.get_state(thread()).next == ("a",)
    assert call(graph, None, thread()) == {"log": ["seed", "a", "b"]}


def test_an_edit_that_could_be_anybodys_is_refused(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    with pytest.raises(InvalidUpdateError, match="Ambiguous update, specify as_node"):
        graph.update_state(thread(), {"log": ["x"]})
    with pytest.raises(InvalidUpdateError, match="Node nobody does not exist"):
        graph.update_state(thread(), {"log": ["x"]}, as_node="nobody")
    graph.update_state(thread(), {"log": ["x"]}, as_node="a")
    assert graph.get_state(thread()).values == {"log": ["a", "b", "x"]}


def test_an_edit_at_an_older_checkpoint_begins_a_lineage(saver: SqliteSaver) -> None:
    """Two edits of the same old checkpoint are two branches, each with its own edit alone."""
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    old = at_step(graph, 1)
    branches = [graph.update_state(old, {"log": [name]}) for name in ("x", "y")]
    assert [graph.get_state(branch).values for branch in branches] == [{"log": ["a", "x"]}, {"log": ["a", "y"]}]
    assert [graph.get_state(branch).lineage for branch in branches] == [1, 2]
    assert graph.invoke(None, branches[0]) == {"log": ["a", "x", "b"]}
    assert graph.get_state(branches[1]).next == ("b",)


# -- the carry rule ---------------------------------------------------------------------------------------------------


class Case(TypedDict, total=False):
    facts: str
    remark: str
    log: Annotated[list[str], operator.add]


class Facts(TypedDict):
    facts: str


def court(saver: SqliteSaver) -> tuple[Any, Counted, str]:
    """Return a graph paused with one task done, one asking and one failed, none of which reads `remark`."""
    done, flaky = Counted("done"), Flaky("flaky")
    graph = StateGraph(Case).add_node("open", lambda state: {"facts": "old"}).add_edge(START, "open")
    for name, node in (("done", done), ("asks", ask("asks")), ("flaky", flaky)):
        graph.add_node(name, node, input_schema=Facts).add_edge("open", name)
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="flaky"):
        compiled.invoke({}, thread())
    return compiled, done, compiled.get_state(thread()).interrupts[0].id


def test_what_an_edit_does_not_touch_is_kept(saver: SqliteSaver) -> None:
    """The finished task does not run again, the question keeps its id."""
    graph, done, question = court(saver)
    graph.update_state(thread(), {"remark": "noted"})
    edited = graph.get_state(thread())
    assert [i.id for i in edited.interrupts] == [question]
    assert sorted(edited.next) == ["asks", "flaky"]
    assert graph.invoke(Command(resume={question: "yes"}), thread()) == {
        "facts": "old",
        "remark": "noted",
        "log": ["asks='yes'", "done", "flaky"],
    }
    assert done.calls == 1


def test_what_an_edit_changes_the_input_of_runs_anew(saver: SqliteSaver) -> None:
    graph, done, question = court(saver)
    graph.update_state(thread(), {"facts": "new"})
    assert graph.get_state(thread()).interrupts == ()
    asked = graph.invoke(None, thread())["__interrupt__"]
    assert [i.value for i in asked] == ["asks"]
    assert asked[0].id != question
    assert done.calls == 2


def test_an_edit_as_another_node_abandons_what_was_planned(saver: SqliteSaver) -> None:
    graph, done, _ = court(saver)
    graph.update_state(thread(), {"log": ["verdict"]}, as_node="done")
    assert graph.get_state(thread()).next == ()
    assert graph.invoke(None, thread())["log"] == ["verdict"]
    assert done.calls == 1


# -- forks and replays ------------------------------------------------------------------------------------------------


def test_a_fork_begins_a_lineage_and_changes_nothing_before_it(saver: SqliteSaver) -> None:
    """INV-9: history is immutable; every row before the fork is, byte for byte, what it was."""
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = history(graph)
    config = graph.fork(at_step(graph, 1))
    forked = graph.get_state(config)
    assert (forked.values, forked.next) == ({"log": ["a"]}, ("b",))
    assert (forked.metadata["source"], forked.lineage) == ("fork", 1)
    assert graph.get_state(thread()) == forked, "without a checkpoint id the newest lineage is meant"
    assert graph.invoke(None, thread()) == {"log": ["a", "b", "c"]}
    after = history(graph)
    assert [(s.seq, s.digest) for s in after[3:]] == [(s.seq, s.digest) for s in before]
    assert after[3:] == before


def test_a_fork_may_carry_an_edit(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.fork(at_step(graph, 1), {"log": ["edit"]}, as_node="b")
    assert graph.invoke(None, thread()) == {"log": ["a", "edit", "c"]}


def test_a_fork_asks_again_and_leaves_the_old_question_open(saver: SqliteSaver) -> None:
    node = Counted("ask", ask("ask"))
    graph = chain(("ask", node)).compile(checkpointer=saver)
    graph.invoke({}, thread())
    pause = graph.get_state(thread())
    graph.fork(pause.config)
    assert graph.get_state(thread()).interrupts == ()
    assert [i.value for i in graph.invoke(None, thread())["__interrupt__"]] == ["ask"]
    assert node.calls == 2
    assert graph.get_state(pause.config).interrupts == pause.interrupts


def test_nothing_can_be_forked_where_nothing_is(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(UnknownCheckpointError):
        graph.fork(thread())
    graph.invoke({}, thread())
    lost = {"configurable": {"thread_id": "t", "checkpoint_id": "0" * 32}}
    with pytest.raises(UnknownCheckpointError, match="has no checkpoint"):
        graph.fork(lost)
    with pytest.raises(UnknownCheckpointError, match="has no checkpoint"):
        graph.invoke(None, lost)
    with pytest.raises(UnknownCheckpointError, match="has no checkpoint"):
        graph.update_state(lost, {})


def test_a_replay_runs_on_from_an_old_checkpoint_in_a_lineage_of_its_own(call: Call, saver: SqliteSaver) -> None:
    nodes = [Counted(name) for name in "abc"]
    graph = chain(*((node.name, node) for node in nodes)).compile(checkpointer=saver)
    call(graph, {}, thread())
    before = history(graph)
    assert call(graph, None, at_step(graph, 1)) == {"log": ["a", "b", "c"]}
    assert [node.calls for node in nodes] == [1, 2, 2]
    after = history(graph)
    assert [s.metadata["source"] for s in after[:3]] == ["loop", "loop", "fork"]
    assert [s.lineage for s in after[:3]] == [1, 1, 1]
    assert after[3:] == before


def test_D2_a_replay_asks_the_question_again(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's pull requests 7038 and 7498: a replay from before a question took the old answer for it."""
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    call(graph, Command(resume="once"), thread())
    replayed = call(graph, None, at_step(graph, 1))
    assert [i.value for i in replayed["__interrupt__"]] == ["ask"]
    assert call(graph, Command(resume="twice"), thread()) == {"log": ["a", "ask='twice'"]}


def test_a_replay_of_the_end_does_nothing(call: Call, saver: SqliteSaver) -> None:
    node = Counted("a")
    graph = chain(("a", node)).compile(checkpointer=saver)
    call(graph, {}, thread())
    assert call(graph, None, graph.get_state(thread()).config) == {"log": ["a"]}
    assert (node.calls, len(history(graph))) == (1, 3)


def test_the_newest_checkpoint_by_id_is_continued_in_place(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("a", Counted("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    assert call(graph, None, graph.get_state(thread()).config) == {"log": ["a", "b"]}
    assert graph.get_state(thread()).lineage == 0


def test_a_poisoned_thread_can_still_be_edited(call: Call, saver: SqliteSaver) -> None:
    """A router that always fails does not lock the thread up."""

    def lost(state: Log) -> str:
        raise ValueError("no way")

    graph = chain(("a", note("a"))).add_node("b", note("b")).add_conditional_edges("a", lost, ["b"])
    compiled = graph.compile(checkpointer=saver)
    for given in GIVEN:
        with pytest.raises(ValueError, match="no way"):
            call(compiled, given, thread())
    with pytest.raises(ValueError, match="no way"):
        compiled.update_state(thread(), {"log": ["x"]}, as_node="a")
    compiled.update_state(thread(), {"log": ["by hand"]}, as_node="b")
    assert call(compiled, None, thread()) == {"log": ["by hand"]}


def test_an_id_from_before_an_edit_answers_after_it(call: Call, saver: SqliteSaver) -> None:
    def node(state: Log) -> dict[str, list[str]]:
        return {"log": [interrupt("?")]}

    graph = chain(("ask", node)).compile(checkpointer=saver)
    call(graph, {}, thread())
    (question,) = graph.get_state(thread()).interrupts
    config = graph.get_state(thread()).config
    call(graph, Command(update={"log": ["told"]}), thread())
    assert call(graph, Command(resume={question.id: "yes"}), thread()) == {"log": ["told", "yes"]}
    assert graph.get_state(config).interrupts == (question,)
