"""How a run begins: new inputs over unfinished work, run ids, thread ids, and whose a thread is."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from stepwell import (
    Command,
    EmptyInputError,
    GraphMismatchError,
    InvalidConfigError,
    MergeError,
    PendingWorkError,
    RunConflictError,
    RunError,
    SqliteSaver,
    StateGraph,
    points,
)
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Counted, Flaky, Log, ask, chain, fan, letters, note, thread

# -- a new input on a thread that has been used -----------------------------------------------------------------------


def test_a_new_input_goes_on_from_the_finished_state(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    for number in (1, 2, 3):
        result = call(graph, {"log": [str(number)]}, thread(), durability=any_durability)
        assert result["log"] == [x for n in range(1, number + 1) for x in (str(n), "a", "b")]


def test_a_new_input_after_a_failure_drops_what_was_pending(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """INV-6: what finished for the old input never stands in for the new one."""
    a, flaky = Counted("a"), Flaky("flaky")
    graph = fan(("a", a), ("flaky", flaky)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {"log": ["1st"]}, thread(), durability=any_durability)
    result = call(graph, {"log": ["2nd"]}, thread(), durability=any_durability)
    assert result == {"log": ["1st", "2nd", "a", "flaky"]}
    assert (a.calls, flaky.calls) == (2, 2)


def test_what_no_reducer_takes_is_told_as_what_was_given_and_nothing_is_written(call: Call, saver: SqliteSaver) -> None:
    """No task made it, and nothing of it is kept: there is nothing to retry."""
    graph = chain(("a", note("a"))).compile(checkpointer=saver)
    told = r"What was given for channel 'log' could not be combined .* Nothing was written"
    for begun in (False, True):
        gives: list[Callable[[], object]] = [
            lambda: call(graph, {"log": 5}, thread()),
            lambda: call(graph, Command(update={"log": 5}), thread()),
            lambda: graph.update_state(thread(), {"log": 5}),
            lambda: graph.update_state(thread(), {"log": 5}, as_node="a"),
        ]
        for give in gives:
            before = graph.get_state(thread())
            with pytest.raises(MergeError, match=told) as caught:
                give()
            assert isinstance(caught.value.__cause__, TypeError)
            assert graph.get_state(thread()) == before
        if not begun:
            assert list(saver.threads()) == []
            call(graph, {"log": []}, thread())


@pytest.mark.parametrize("given", [Command(), Command(update={}), Command(goto=[]), Command(update=[], goto=())])
def test_a_command_that_says_nothing_is_refused_wherever_the_thread_stands(
    call: Call, saver: SqliteSaver, given: Command[Any]
) -> None:
    """On a thread that is empty it would begin a run without an input, on a paused one it would ask again."""
    a = Counted("a")
    graph = chain(("a", a), ("q", ask("q"))).compile(checkpointer=saver)
    said = r"a Command that neither answers \(resume=\), nor writes"
    with pytest.raises(EmptyInputError, match=said):
        call(graph, given, thread())
    assert list(saver.threads()) == []
    for answer in (None, Command(resume="yes")):
        call(graph, {} if answer is None else answer, thread())
        before = graph.get_state(thread())
        with pytest.raises(EmptyInputError, match=said):
            call(graph, given, thread())
        assert graph.get_state(thread()) == before
    with pytest.raises(EmptyInputError, match=said):
        call(chain(("a", a)).compile(), given)
    assert a.calls == 1


def test_a_new_input_after_a_failure_may_be_refused(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("flaky", Flaky("flaky"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    with pytest.raises(
        PendingWorkError, match=r"^Thread t has unfinished tasks\. Finish it with invoke\(None, config\)"
    ):
        call(graph, {}, thread(), on_pending="raise")
    assert call(graph, None, thread()) == {"log": ["flaky"]}
    assert call(graph, {}, thread(), on_pending="raise") == {"log": ["flaky", "flaky"]}, "nothing is pending any more"


def test_a_new_input_may_wait_until_the_old_one_is_finished(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    a, flaky = Counted("a"), Flaky("flaky")
    graph = fan(("a", a), ("flaky", flaky)).add_node("end", note("end")).add_edge(["a", "flaky"], "end")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(compiled, {"log": ["1st"]}, thread(), durability=any_durability)
    result = call(compiled, {"log": ["2nd"]}, thread(), on_pending="finish", durability=any_durability)
    assert result["log"] == ["1st", "a", "flaky", "end", "2nd", "a", "flaky", "end"]
    assert (a.calls, flaky.calls) == (2, 3)


def test_a_question_beside_a_failure_refuses_a_new_input(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("ask", ask("ask")), ("flaky", Flaky("flaky"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    with pytest.raises(PendingWorkError):
        call(graph, {}, thread())


def test_a_breakpoint_does_not_refuse_a_new_input(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    call(graph, {"log": ["1st"]}, thread(), interrupt_before=["b"])
    assert call(graph, {"log": ["2nd"]}, thread())["log"] == ["1st", "a", "2nd", "a", "b"]


def test_a_command_may_be_the_first_input(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """It acts as what START returned: its update is the input, its jump comes beside the entry."""
    graph = letters("abc").compile(checkpointer=saver)
    command = Command(update={"log": ["in"]}, goto="c")
    assert call(graph, command, thread(), durability=any_durability) == {"log": ["in", "a", "c", "b", "c"]}
    assert call(graph, Command(update={"log": ["in"]}), thread("2"), durability=any_durability)["log"] == ["in", *"abc"]


def test_an_empty_thread_cannot_be_continued(call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(EmptyInputError, match="Received no input for __start__"):
        call(graph, None, thread())
    assert graph.get_state(thread()).created_at is None


@pytest.mark.parametrize("options", [{"on_pending": "drop"}, {"durability": "eventually"}])
def test_an_option_with_an_unknown_value_is_refused(options: dict[str, str], call: Call, saver: SqliteSaver) -> None:
    with pytest.raises(InvalidConfigError, match=next(iter(options.values()))):
        call(letters("a").compile(checkpointer=saver), {}, thread(), **options)


# -- run ids ----------------------------------------------------------------------------------------------------------


def test_a_known_run_with_the_same_input_returns_its_result(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """INV-3: the second call runs nothing, even when the thread has moved on."""
    node = Counted("a")
    graph = chain(("a", node)).compile(checkpointer=saver)
    first = call(graph, {"log": ["in"]}, thread(run_id="r1"), durability=any_durability)
    call(graph, {"log": ["other"]}, thread(run_id="r2"), durability=any_durability)
    assert call(graph, {"log": ["in"]}, thread(run_id="r1"), durability=any_durability) == first
    assert node.calls == 2


def test_a_known_run_with_another_input_or_thread_is_a_conflict(call: Call, saver: SqliteSaver) -> None:
    """INV-3."""
    graph = letters("a").compile(checkpointer=saver)
    call(graph, {"log": ["in"]}, thread(run_id="r1"))
    before = graph.get_state(thread())
    for config, given in ((thread(run_id="r1"), {"log": ["out"]}), (thread("other", run_id="r1"), {"log": ["in"]})):
        with pytest.raises(RunConflictError, match="Run r1 was started with another input or thread"):
            call(graph, given, config)
    assert graph.get_state(thread()) == before
    assert graph.get_state(thread("other")).created_at is None


def test_a_known_run_that_paused_shows_its_questions_again(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver)
    first = call(graph, {}, thread(run_id="r1"))
    assert call(graph, {}, thread(run_id="r1")) == first
    assert first["__interrupt__"]


def test_a_known_run_that_failed_says_so(call: Call, saver: SqliteSaver) -> None:
    flaky = Flaky("flaky")
    graph = chain(("flaky", flaky)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread(run_id="r1"))
    with pytest.raises(RunError, match=r"Run r1 ended as failed: ValueError\('flaky is broken'\)"):
        call(graph, {}, thread(run_id="r1"))
    assert flaky.calls == 1


def test_a_run_id_may_be_a_uuid(call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    call(graph, {}, thread(run_id=UUID(int=5)))
    assert graph.get_state(thread()).run_id == str(UUID(int=5))


@pytest.mark.parametrize("wrong", ["", " ", 5, "x" * 1000, "\ud800"])
def test_J8_a_run_id_that_nobody_could_recover_is_refused(wrong: Any, call: Call, saver: SqliteSaver) -> None:
    """DBOS's report 759: a run under an empty id was begun anew by each sweep. None asks for one that is made."""
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(InvalidConfigError, match="run_id"):
        call(graph, {}, thread(run_id=wrong))
    assert (list(saver.runs("t")), list(saver.threads())) == ([], [])
    call(graph, {}, thread(run_id=None))
    assert [bool(run.run_id.strip()) for run in saver.runs("t")] == [True]


def test_J8_a_recovered_run_keeps_its_id_and_counts_its_attempts(deaths: Deaths) -> None:
    saver = Saver(deaths.clock)
    graph = letters("ab").compile(checkpointer=saver)
    for life in range(3):
        deaths.dies_at(points.TASK_STARTED)
        with pytest.raises(SimulatedCrash):
            graph.invoke(None if life else {}, thread(run_id=None if life else "r1"))
        deaths.revive()
    graph.invoke(None, thread())
    assert [(run.run_id, run.attempts, run.status) for run in saver.runs("t")] == [("r1", 4, "finished")]


# -- whose thread it is -----------------------------------------------------------------------------------------------


def test_another_graph_cannot_use_the_thread(call: Call, saver: SqliteSaver) -> None:
    letters("a").compile(checkpointer=saver, name="first").invoke({}, thread())
    other = letters("b").compile(checkpointer=saver, name="second")
    with pytest.raises(GraphMismatchError, match="Thread t belongs to graph 'first', not to 'second'"):
        call(other, {}, thread())
    with pytest.raises(GraphMismatchError):
        other.update_state(thread(), {"log": []})
    renamed = letters("b").compile(checkpointer=saver, name="first")
    assert call(renamed, {}, thread()) == {"log": ["a", "b"]}


@pytest.mark.parametrize(
    ("given", "stored"), [(7, "7"), (UUID(int=1), str(UUID(int=1))), ("x" * 512, "x" * 512), (" a ", " a ")]
)
def test_thread_ids_become_text_by_one_rule(given: Any, stored: str, call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    call(graph, {}, {"configurable": {"thread_id": given}})
    assert graph.get_state(thread(stored)).config["configurable"]["thread_id"] == stored
    assert graph.get_state(thread(stored)).values == {"log": ["a"]}


@pytest.mark.parametrize("wrong", ["", "  ", True, 1.5, None, b"t", "x" * 513, "é" * 300, "a\x00b", "\ud800"])
def test_a_thread_id_that_could_be_mistaken_is_refused(wrong: Any, call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(InvalidConfigError, match="thread_id"):
        call(graph, {}, {"configurable": {"thread_id": wrong}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"thread_id": "t"}, r"unknown key 'thread_id' \(it belongs in configurable\)"),
        ({"recursion_limt": 3}, "unknown key 'recursion_limt'; known: "),
        ({"configurable": {"thread_id": "t", "recursion_limit": 3}}, "recursion_limit is a top-level key"),
        ({"configurable": {"thread-id": "t"}}, "configurable has 'thread-id'; did you mean 'thread_id'"),
        ({"configurable": {"thraed_id": "t"}}, "did you mean 'thread_id'"),
        ({"configurable": {"thread_id": "t", "checkpointId": "x"}}, "did you mean 'checkpoint_id'"),
        ({"configurable": {"checkpoint_id": "x"}}, "checkpoint_id needs a thread_id beside it"),
        ({"configurable": {"thread_id": "t"}, "recursion_limit": 0}, "recursion_limit must be at least 1"),
        ({"configurable": {"thread_id": "t"}, "metadata": {"x": object()}}, "metadata must be JSON"),
        ({"configurable": {"thread_id": "t"}, "metadata": 3}, "metadata is a dict, not 3"),
        ({"configurable": "t"}, "configurable is a dict, not 't'"),
        ({"tags": "abc"}, "tags is a list of texts, not 'abc'"),
        ({"tags": 5}, "tags is a list of texts, not 5"),
        ({"tags": ["a", 5]}, "tags is a list of texts, and 5 is none"),
        ({"run_name": 5}, "run_name is text, not 5"),
        (
            {"configurable": {"thread_id": "t"}, "recursion_limit": "5"},
            "must be a whole number, and at least 1, not '5'",
        ),
        ([("configurable", {})], "a config is a dict"),
    ],
)
def test_a_config_that_would_be_ignored_is_refused(config: Any, message: str, call: Call, saver: SqliteSaver) -> None:
    graph: Any = StateGraph(Log).add_sequence([("a", note("a"))]).set_entry_point("a").compile(checkpointer=saver)
    with pytest.raises(InvalidConfigError, match=message):
        call(graph, {}, config)


@pytest.mark.parametrize("own", ["thread_ids", "thread", "threadId", "thread_name", "checkpoint"])
def test_keys_of_the_callers_own_reach_the_nodes_however_they_are_called(
    own: str, call: Call, saver: SqliteSaver
) -> None:
    def node(state: Log, config: Any) -> dict[str, list[str]]:
        return {"log": [config["configurable"][own]]}

    graph = StateGraph(Log).add_node("a", node).set_entry_point("a").compile(checkpointer=saver)
    assert call(graph, {}, {"configurable": {"thread_id": "t", own: "mine"}})["log"] == ["mine"]


def test_a_paused_run_called_again_shows_what_it_asked_whatever_was_answered_since(
    call: Call, saver: SqliteSaver
) -> None:
    """INV-3: the result of a run is what it ended with, not what other runs have made of its thread."""
    graph: Any = fan(("a", ask("a")), ("b", ask("b"))).compile(checkpointer=saver)
    first = call(graph, {}, thread(run_id="r1"))
    asked = first["__interrupt__"]
    assert len(asked) == 2
    for question in asked:
        call(graph, Command(resume={question.id: "yes"}), thread())
        again = call(graph, {}, thread(run_id="r1"))
        assert again == first
    assert graph.get_state(thread()).next == ()
    repeated = graph.run({}, thread(run_id="r1"))
    assert (repeated.status, list(repeated.interrupts)) == ("paused", asked)
