"""Questions: how nodes ask, what a paused thread shows, and that a pause stays one whatever user code does with it."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from stepwell import END, START, Command, Interrupt, Send, SqliteSaver, StateGraph, interrupt
from tests.runtime.graphs import Call, Counted, Log, ask, chain, fan, note, thread


def asked(result: Any) -> dict[Any, str]:
    """Return the questions of a result: what was asked → id."""
    return {question.value: question.id for question in result.get("__interrupt__", [])}


def test_a_question_pauses_and_its_answer_goes_on(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    before = Counted("before")
    graph = chain(("before", before), ("ask", ask("ask", "sure?")), ("after", note("after")))
    compiled = graph.compile(checkpointer=saver)
    paused = call(compiled, {}, thread(), durability=any_durability)
    (question,) = paused.pop("__interrupt__")
    assert paused == {"log": ["before"]}
    assert isinstance(question, Interrupt)
    assert question.value == "sure?"
    assert len(question.id) == 32
    assert int(question.id, 16) >= 0
    snapshot = compiled.get_state(thread())
    assert snapshot.next == ("ask",)
    assert snapshot.interrupts == snapshot.tasks[0].interrupts == (question,)
    answered = call(compiled, Command(resume="yes"), thread(), durability=any_durability)
    assert answered == {"log": ["before", "ask='yes'", "after"]}
    assert before.calls == 1
    assert compiled.get_state(thread()).interrupts == ()


def test_questions_of_one_node_are_asked_one_after_another(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask", "first", "second", "third"))).compile(checkpointer=saver)
    result, ids = call(graph, {}, thread()), []
    for question, answer in [("first", 1), ("second", 2), ("third", 3)]:
        assert list(asked(result)) == [question]
        ids.append(asked(result)[question])
        result = call(graph, Command(resume=answer), thread())
    assert result == {"log": ["ask=1", "ask=2", "ask=3"]}
    assert len(set(ids)) == 3


def test_continuing_without_an_answer_returns_the_same_question_and_runs_nothing(
    call: Call, saver: SqliteSaver
) -> None:
    node = Counted("ask", ask("ask"))
    graph = chain(("ask", node)).compile(checkpointer=saver)
    first = call(graph, {}, thread())
    spent = saver.store.counts.transactions
    assert call(graph, None, thread()) == first
    assert node.calls == 1
    assert saver.store.counts.transactions == spent


def test_sends_ask_each_for_themselves(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    def carry(number: int) -> dict[str, list[str]]:
        return {"log": [f"{number}={interrupt(f'parcel {number}?')}"]}

    graph = StateGraph(Log).add_node("carry", carry)
    graph.add_conditional_edges(START, lambda state: [Send("carry", n) for n in range(4)], ["carry"])
    compiled = graph.compile(checkpointer=saver)
    questions = asked(call(compiled, {}, thread(), durability=any_durability))
    assert list(questions) == [f"parcel {n}?" for n in range(4)]
    assert len(set(questions.values())) == 4
    for number in (2, 0, 3):
        answer = Command(resume={questions[f"parcel {number}?"]: f"no {number}"})
        left = call(compiled, answer, thread(), durability=any_durability)
        assert f"parcel {number}?" not in asked(left)
    done = call(compiled, Command(resume="no 1"), thread(), durability=any_durability)
    assert done == {"log": [f"{n}=no {n}" for n in range(4)]}


def test_a_node_in_a_loop_asks_anew_each_time_it_is_reached(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask", "more?")))
    graph.add_conditional_edges("ask", lambda state: END if state["log"][-1] == "ask='no'" else "ask", ["ask", END])
    compiled = graph.compile(checkpointer=saver)
    ids, result = set(), call(compiled, {}, thread())
    for answer in ["yes", "yes", "no"]:
        ids.add(asked(result)["more?"])
        result = call(compiled, Command(resume=answer), thread())
    assert result == {"log": ["ask='yes'", "ask='yes'", "ask='no'"]}
    assert len(ids) == 3


# -- routers ----------------------------------------------------------------------------------------------------------


def test_a_router_that_asks_does_not_repeat_its_node(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-4: what the node returned is kept while its router waits for an answer."""
    node = Counted("a")
    graph = StateGraph(Log).add_node("a", node).add_node("left", note("left")).add_node("right", note("right"))
    graph.add_edge(START, "a").add_conditional_edges("a", lambda state: interrupt("where?"), ["left", "right"])
    compiled = graph.compile(checkpointer=saver)
    assert list(asked(call(compiled, {}, thread(), durability=any_durability))) == ["where?"]
    answered = call(compiled, Command(resume="right"), thread(), durability=any_durability)
    assert answered == {"log": ["a", "right"]}
    assert node.calls == 1


def test_the_router_of_the_entry_may_ask(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = StateGraph(Log).add_node("left", note("left")).add_node("right", note("right"))
    graph.add_conditional_edges(START, lambda state: interrupt("where?"), ["left", "right"])
    compiled = graph.compile(checkpointer=saver)
    assert list(asked(call(compiled, {"log": ["in"]}, thread(), durability=any_durability))) == ["where?"]
    assert compiled.get_state(thread()).next == (START,)
    answered = call(compiled, Command(resume="left"), thread(), durability=any_durability)
    assert answered == {"log": ["in", "left"]}


# -- several at once --------------------------------------------------------------------------------------------------


async def gathered(*values: str, turns: dict[str, int] | None = None) -> list[Any]:
    """Ask all of these at once, each after so many turns of the loop."""

    async def one(value: str) -> Any:
        for _ in range((turns or {}).get(value, 0)):
            await asyncio.sleep(0)
        return interrupt(value)

    return await asyncio.gather(*map(one, values))


def test_B1_concurrent_questions_of_a_node_each_get_their_own_answer(memory_saver: SqliteSaver) -> None:
    """LangGraph's reports 6626 and 6533: questions asked at once shared an id, so answers reached the wrong tool."""
    chance = random.Random(1)
    turns: dict[str, int] = {}

    async def node(state: Log) -> dict[str, list[str]]:
        return {"log": await gathered("A", "B", turns=turns)}

    graph = chain(("node", node)).compile(checkpointer=memory_saver)
    for number in range(200):
        turns.update(A=chance.randrange(4), B=chance.randrange(4))
        result = graph.invoke({}, thread(f"t{number}"))
        while questions := asked(result):
            turns.update(A=chance.randrange(4), B=chance.randrange(4))
            answers = {question_id: letter for letter, question_id in questions.items()}
            result = graph.invoke(Command(resume=answers), thread(f"t{number}"))
        assert result == {"log": ["A", "B"]}


def test_B10_questions_asked_together_are_reported_together(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 6624: only the first of several concurrent questions ever surfaced."""

    async def node(state: Log) -> dict[str, list[str]]:
        return {"log": await gathered("a", "b", "c")}

    graph = chain(("node", node)).compile(checkpointer=saver)
    questions = asked(call(graph, {}, thread()))
    assert list(questions) == ["a", "b", "c"]
    answers = {question_id: value.upper() for value, question_id in questions.items()}
    assert call(graph, Command(resume=answers), thread()) == {"log": ["A", "B", "C"]}


def test_pauses_in_a_task_group_are_found_inside_the_exception_group(call: Call, saver: SqliteSaver) -> None:
    async def node(state: Log) -> dict[str, list[str]]:
        async def one(value: str) -> Any:
            return interrupt(value)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(value)) for value in "ab"]
        return {"log": [task.result() for task in tasks]}

    graph = chain(("node", node)).compile(checkpointer=saver)
    result = call(graph, {}, thread())
    while questions := asked(result):
        result = call(graph, Command(resume={i: value.upper() for value, i in questions.items()}), thread())
    assert result == {"log": ["A", "B"]}


def test_questions_from_helper_threads_are_told_apart(call: Call, saver: SqliteSaver) -> None:
    def node(state: Log) -> dict[str, list[str]]:
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(copy_context().run, interrupt, value) for value in "abc"]
        return {"log": [future.result() for future in futures]}

    graph = chain(("node", node)).compile(checkpointer=saver)
    questions = asked(call(graph, {}, thread()))
    assert sorted(questions) == ["a", "b", "c"]
    answers = {question_id: value.upper() for value, question_id in questions.items()}
    assert call(graph, Command(resume=answers), thread()) == {"log": ["A", "B", "C"]}


def test_B7_an_open_question_is_shown_once_and_an_answered_one_never_again(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 5952: while a sibling waited, answered questions were asked again."""
    p, q = Counted("p", ask("p", "p1", "p2")), Counted("q", ask("q", "q1", "q2", "q3"))
    graph = fan(("p", p), ("q", q)).compile(checkpointer=saver)
    result: Any = call(graph, {}, thread())
    answered: list[str] = []
    for expected, chosen in [
        (["p1", "q1"], "q1"),
        (["p1", "q2"], "p1"),
        (["p2", "q2"], "q2"),
        (["p2", "q3"], "q3"),
        (["p2"], "p2"),
    ]:
        shown = [question.value for question in result["__interrupt__"]]
        assert shown == expected
        assert [question.value for question in graph.get_state(thread()).interrupts] == expected
        assert not set(answered) & set(shown)
        result = call(graph, Command(resume={asked(result)[chosen]: chosen.upper()}), thread())
        answered.append(chosen)
    assert result == {"log": ["p='P1'", "p='P2'", "q='Q1'", "q='Q2'", "q='Q3'"]}
    assert (p.calls, q.calls) == (3, 4), "a task that is not answered does not run again"


# -- swallowed pauses -------------------------------------------------------------------------------------------------


def test_B8_a_node_that_asks_until_it_is_satisfied_takes_one_answer_a_question(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 7780: such loops needed more resumes than questions, and asked what was answered.

    What stands before a question in its node runs again with each answer; what the node asked before does not.
    """
    begun: list[str] = []

    def amount(state: Log) -> dict[str, list[str]]:
        begun.append("begun")
        asked: list[Any] = []
        while not asked or not str(asked[-1]).isdigit():
            asked.append(interrupt(f"question {len(asked) + 1}"))
        return {"log": [str(answer) for answer in asked]}

    graph = chain(("amount", amount)).compile(checkpointer=saver)
    result = call(graph, {}, thread())
    seen = []
    for answer in ("x", -1, 7):
        (question,) = result["__interrupt__"]
        seen.append(question.value)
        result = call(graph, Command(resume=answer), thread())
    assert seen == ["question 1", "question 2", "question 3"]
    assert result == {"log": ["x", "-1", "7"]}
    assert len(begun) == 4


def hiding_exceptions(state: Log) -> dict[str, list[str]]:
    try:
        return {"log": [interrupt("sure?")]}
    except Exception:
        return {"log": ["went on as if answered"]}


def hiding_everything(state: Log) -> dict[str, list[str]]:
    try:
        return {"log": [interrupt("sure?")]}
    except BaseException:
        return {"log": ["went on as if answered"]}


def raising_instead(state: Log) -> dict[str, list[str]]:
    try:
        return {"log": [interrupt("sure?")]}
    except BaseException as pause:
        raise ValueError("tool failed") from pause


def returning_in_finally(state: Log) -> dict[str, list[str]]:
    answer = ["went on as if answered"]
    try:
        answer = [interrupt("sure?")]
    finally:
        return {"log": answer}  # noqa: B012


async def hiding_in_gather(state: Log) -> dict[str, list[str]]:
    async def tool() -> Any:
        return interrupt("sure?")

    results = await asyncio.gather(tool(), return_exceptions=True)
    return {"log": list(map(str, results))}


SWALLOWING = [hiding_exceptions, hiding_everything, raising_instead, returning_in_finally, hiding_in_gather]


@pytest.mark.parametrize("node", SWALLOWING, ids=lambda node: node.__name__)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_B11_a_swallowed_pause_is_still_a_pause(node: Any, call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 8217: a wrapper around a tool call turned the pause into an error, and the graph went on."""
    graph = chain(("node", node), ("after", note("after"))).compile(checkpointer=saver)
    paused = call(graph, {}, thread())
    assert asked(paused).keys() == {"sure?"}
    assert paused["log"] == []
    assert call(graph, Command(resume="yes"), thread()) == {"log": ["yes", "after"]}
