"""Answers: which question each is for, what is refused, and that one is durable before anything runs on it."""

from typing import Any
from uuid import uuid4

import pytest

from stepwell import (
    AmbiguousAnswerError,
    Answer,
    Command,
    EmptyInputError,
    InterruptAnsweredError,
    PendingWorkError,
    SqliteSaver,
    UnknownInterruptError,
    interrupt,
    points,
)
from stepwell.testing import SimulatedCrash, crash_at
from tests.runtime.graphs import Call, Counted, Flaky, Log, ask, chain, fan, letters, note, thread


def ids(result: Any) -> dict[Any, str]:
    """Return the questions of a result: what was asked → id."""
    return {question.value: question.id for question in result["__interrupt__"]}


def paused(saver: SqliteSaver, *nodes: tuple[str, Any], durability: str = "sync") -> tuple[Any, dict[Any, str]]:
    """Return a graph of parallel nodes that has run to its questions, and their ids."""
    graph = fan(*nodes).compile(checkpointer=saver)
    return graph, ids(graph.invoke({}, thread(), durability=durability))


# -- whose answer it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}, {"a": 1}, {"0" * 32: 1, "other": 2}])
def test_any_value_is_an_answer(answer: Any, call: Call, saver: SqliteSaver) -> None:
    """INV-8: None is an answer, and so is a dict that is no map of ids."""
    graph, _ = paused(saver, ("ask", ask("ask")))
    assert call(graph, Command(resume=answer), thread()) == {"log": [f"ask={answer!r}"]}


def test_none_answers_by_id_too(call: Call, saver: SqliteSaver) -> None:
    graph, questions = paused(saver, ("a", ask("a")), ("b", ask("b")))
    left = call(graph, Command(resume={questions["b"]: None}), thread())
    assert list(ids(left)) == ["a"]
    assert call(graph, Command(resume=None), thread()) == {"log": ["a=None", "b=None"]}


def test_a_map_answers_any_number_of_questions(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    nodes = [(name, ask(name)) for name in "abcd"]
    graph, questions = paused(saver, *nodes, durability=any_durability)
    some = Command(resume={questions["d"]: 4, questions["b"]: 2})
    left = call(graph, some, thread(), durability=any_durability)
    assert list(ids(left)) == ["a", "c"]
    rest = Command(resume={questions["a"]: 1, questions["c"]: 3})
    assert call(graph, rest, thread(), durability=any_durability) == {"log": ["a=1", "b=2", "c=3", "d=4"]}


def test_one_value_for_several_questions_is_refused_and_the_ids_are_listed(call: Call, saver: SqliteSaver) -> None:
    graph, questions = paused(saver, ("a", ask("a")), ("b", ask("b")))
    with pytest.raises(AmbiguousAnswerError, match="you must specify the interrupt id when resuming") as raised:
        call(graph, Command(resume="yes"), thread())
    assert sorted(raised.value.fields()["open_ids"]) == sorted(questions.values())
    assert isinstance(raised.value, RuntimeError), "what LangGraph raises"


def test_B4_an_unknown_id_is_refused_and_changes_nothing(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 8836: a map of ids that match nothing was silently ignored."""
    graph, questions = paused(saver, ("ask", ask("ask")))
    before, spent = graph.get_state(thread()), saver.store.counts.transactions
    ticket = uuid4().hex
    with pytest.raises(UnknownInterruptError, match=ticket) as raised:
        call(graph, Command(resume={ticket: "approve"}), thread())
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={ticket: "approve", questions["ask"]: "half of it"}), thread())
    assert raised.value.fields()["open_ids"] == [questions["ask"]]
    assert graph.get_state(thread()) == before
    assert saver.store.counts.transactions == spent


def test_B4_a_dict_that_looks_like_a_map_is_passed_as_an_answer(call: Call, saver: SqliteSaver) -> None:
    """The wrapper says that it is one value."""
    graph, _ = paused(saver, ("ask", ask("ask")))
    lookalike = {uuid4().hex: "approve"}
    assert call(graph, Command(resume=Answer(lookalike)), thread()) == {"log": [f"ask={lookalike!r}"]}


def test_a_question_is_answered_at_most_once(call: Call, saver: SqliteSaver) -> None:
    """INV-8."""
    graph, questions = paused(saver, ("a", ask("a")), ("b", ask("b")))
    call(graph, Command(resume={questions["a"]: 1}), thread())
    with pytest.raises(InterruptAnsweredError, match=questions["a"]) as raised:
        call(graph, Command(resume={questions["a"]: 2}), thread())
    assert raised.value.fields()["open_ids"] == [questions["b"]]
    assert call(graph, Command(resume={questions["b"]: 2}), thread()) == {"log": ["a=1", "b=2"]}
    with pytest.raises(InterruptAnsweredError):
        call(graph, Command(resume={questions["b"]: 3}), thread())


def test_an_answer_where_nothing_was_asked_is_refused(call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    with pytest.raises(EmptyInputError):
        call(graph, Command(resume="yes"), thread())
    call(graph, {}, thread())
    with pytest.raises(UnknownInterruptError, match="no open question"):
        call(graph, Command(resume="yes"), thread())


# -- what an answer runs ----------------------------------------------------------------------------------------------


def test_only_what_was_answered_runs_again(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-4 and INV-8: neither a finished sibling nor one that still waits is called a second time."""
    done, waits, asks = Counted("done"), Counted("waits", ask("waits")), Counted("asks", ask("asks"))
    nodes = (("done", done), ("waits", waits), ("asks", asks))
    graph, questions = paused(saver, *nodes, durability=any_durability)
    call(graph, Command(resume={questions["asks"]: 1}), thread(), durability=any_durability)
    assert (done.calls, waits.calls, asks.calls) == (1, 1, 2)
    result = call(graph, Command(resume=2), thread(), durability=any_durability)
    assert result == {"log": ["asks=1", "done", "waits=2"]}
    assert (done.calls, waits.calls, asks.calls) == (1, 2, 2)


def test_an_answer_is_durable_before_anything_runs_on_it(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-8, in every mode: the node that gets the answer finds it on disk."""
    found: list[int] = []

    def node(state: Log) -> dict[str, list[str]]:
        answer = interrupt("sure?")
        with saver.store.reading() as reader:
            found.append(len(reader.records_of_kind("t", "answer")))
        return {"log": [answer]}

    graph = chain(("before", note("before")), ("node", node)).compile(checkpointer=saver)
    call(graph, {}, thread(), durability=any_durability)
    call(graph, Command(resume="yes"), thread(), durability=any_durability)
    assert found == [1]


@pytest.mark.parametrize("point", [points.TASK_STARTED, points.TASK_FINISHED, points.MERGED])
def test_an_answer_survives_a_crash(point: str, memory_saver: SqliteSaver, any_durability: str) -> None:
    graph = chain(("ask", ask("ask")), ("after", note("after"))).compile(checkpointer=memory_saver)
    graph.invoke({}, thread(), durability=any_durability)
    with pytest.raises(SimulatedCrash), crash_at(point):
        graph.invoke(Command(resume="yes"), thread(), durability=any_durability)
    assert graph.invoke(None, thread(), durability=any_durability) == {"log": ["ask='yes'", "after"]}


def test_a_question_beside_a_failure_stays_answerable(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    flaky = Flaky("flaky")
    graph = fan(("ask", ask("ask")), ("flaky", flaky)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="flaky is broken"):
        call(graph, {}, thread(), durability=any_durability)
    asks, fails = graph.get_state(thread()).tasks
    assert [question.value for question in asks.interrupts] == ["ask"]
    assert fails.error == "ValueError('flaky is broken')"
    answered = call(graph, Command(resume="yes"), thread(), durability=any_durability)
    assert answered == {"log": ["ask='yes'", "flaky"]}


# -- beside other things ----------------------------------------------------------------------------------------------


def test_B13_a_jump_beside_an_answer_is_scheduled_and_other_questions_stay(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's pull request 8195: a command with a jump and an answer did not reach the jump's target."""
    graph = fan(("a", ask("a")), ("b", ask("b"))).add_node("other", note("other")).add_node("end", note("end"))
    graph.add_edge("a", "end").add_conditional_edges("b", lambda state: "other", ["other"])
    compiled = graph.compile(checkpointer=saver)
    questions = ids(call(compiled, {}, thread()))
    left = call(compiled, Command(goto="other", resume={questions["a"]: 1}), thread())
    assert list(ids(left)) == ["b"]
    assert sorted(left["log"]) == ["a=1", "other"]
    done = call(compiled, Command(resume={questions["b"]: 2}), thread())
    assert done == {"log": ["a=1", "b=2", "other", "end", "other"]}


def test_an_update_beside_an_answer_is_seen_by_the_node(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", lambda state: {"log": [interrupt("?") + str(len(state["log"]))]})).compile(checkpointer=saver)
    call(graph, {}, thread())
    result = call(graph, Command(resume="seen:", update={"log": ["x", "y"]}), thread())
    assert result == {"log": ["x", "y", "seen:2"]}


def test_B14_a_second_answer_to_the_same_pause_forks(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 6663: resuming one paused checkpoint with another value yielded the first value."""
    sibling = Counted("sibling")
    graph = fan(("ask", ask("ask")), ("sibling", sibling)).compile(checkpointer=saver)
    call(graph, {}, thread())
    pause = graph.get_state(thread()).config
    assert call(graph, Command(resume=True), pause) == {"log": ["ask=True", "sibling"]}
    first = graph.get_state(thread())
    assert call(graph, Command(resume=False), pause) == {"log": ["ask=False", "sibling"]}
    second = graph.get_state(thread())
    assert graph.get_state(first.config).values == {"log": ["ask=True", "sibling"]}
    assert second.values == {"log": ["ask=False", "sibling"]}
    assert (first.lineage, second.lineage) == (0, 1)
    assert sibling.calls == 1, "what the sibling had finished came along"


def test_B14_earlier_answers_of_the_same_node_come_along(call: Call, saver: SqliteSaver) -> None:
    """An answer at an older checkpoint keeps what was answered before that question."""
    graph = chain(("ask", ask("ask", "first", "second"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    first = call(graph, Command(resume=1), thread())
    pause = graph.get_state(thread()).config
    second = ids(first)["second"]
    assert call(graph, Command(resume=2), thread()) == {"log": ["ask=1", "ask=2"]}
    again = call(graph, Command(resume={second: 3}), pause)
    assert again == {"log": ["ask=1", "ask=3"]}


def test_the_newest_checkpoint_by_its_id_is_answered_in_place(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    assert call(graph, Command(resume=1), graph.get_state(thread()).config) == {"log": ["ask=1"]}
    assert graph.get_state(thread()).lineage == 0


# -- a new input instead of an answer ---------------------------------------------------------------------------------


def test_C2_a_new_input_over_an_open_question_is_refused(call: Call, saver: SqliteSaver) -> None:
    """langchain-ai/agent-chat-ui's report 85: a reply sent as a new input threw the question away, again and again."""
    graph, questions = paused(saver, ("ask", ask("ask")))
    before = graph.get_state(thread())
    with pytest.raises(PendingWorkError, match=questions["ask"]):
        call(graph, {"log": ["hello?"]}, thread())
    with pytest.raises(PendingWorkError):
        call(graph, {"log": ["hello?"]}, thread(), on_pending="raise")
    assert graph.get_state(thread()) == before
    assert call(graph, Command(resume="yes"), thread()) == {"log": ["ask='yes'"]}


def test_C2_the_caller_may_discard_the_question(call: Call, saver: SqliteSaver) -> None:
    """What is dropped stays in the history, and its id answers nothing any more."""
    graph, questions = paused(saver, ("ask", ask("ask")))
    asked_anew = call(graph, {"log": ["hello?"]}, thread(), on_pending="discard")
    assert asked_anew["log"] == ["hello?"]
    assert ids(asked_anew)["ask"] != questions["ask"]
    with pytest.raises(UnknownInterruptError):
        call(graph, Command(resume={questions["ask"]: "late"}), thread())
