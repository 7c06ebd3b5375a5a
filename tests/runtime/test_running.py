"""A graph runs the same whoever drives it: sync or async, from sync or async nodes, with or without a saver."""

import asyncio
import gc
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from stepwell import (
    END,
    START,
    Command,
    EmptyInputError,
    GraphRecursionError,
    IsLastStep,
    NoCheckpointerError,
    RemainingSteps,
    SqliteSaver,
    StateGraph,
    interrupt,
)
from stepwell.runtime.ledger import Ledger
from stepwell.runtime.run import Run
from stepwell.superstep.state import Base
from tests.runtime.graphs import Call, Log, anote, ask, chain, fan, letters, note, thread


def test_a_chain_runs_its_nodes_in_order(call: Call) -> None:
    assert call(letters("abc").compile(), {"log": ["in"]}) == {"log": ["in", "a", "b", "c"]}


def test_sync_and_async_nodes_mix_in_a_chain_and_side_by_side(call: Call) -> None:
    graph = fan(("a", note("a")), ("b", anote("b")), ("c", note("c")))
    graph.add_node("d", anote("d")).add_node("e", note("e")).add_edge(["a", "b", "c"], "d").add_edge("d", "e")
    assert call(graph.compile(), {}) == {"log": ["a", "b", "c", "d", "e"]}


def test_a_saver_changes_nothing_about_the_result(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    assert call(graph, {"log": []}, thread(), durability=any_durability) == {"log": ["a", "b", "c"]}
    assert graph.get_state(thread()).values == {"log": ["a", "b", "c"]}


def test_G8_nothing_of_a_run_is_kept_once_it_is_over(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 3481: memory grew with the number of runs. Here what runs and states are made of is gone."""
    graph = letters("ab").compile(checkpointer=saver)

    def left() -> int:
        gc.collect()
        return sum(isinstance(found, Run | Base | Ledger) for found in gc.get_objects())

    call(graph, {"log": []}, thread("first"))
    before = left()
    for number in range(20):
        call(graph, {"log": []}, thread(f"t{number}"))
        list(graph.stream({"log": []}, thread(f"s{number}")))
    assert left() < before + 20  # of 40 runs: other tests' threads may still be letting go of theirs


async def test_sync_calls_return_inside_a_running_loop_and_beside_async_ones(saver: SqliteSaver) -> None:
    graph = fan(("a", anote("a")), ("b", note("b"))).compile(checkpointer=saver)
    assert graph.invoke({}, thread("sync")) == {"log": ["a", "b"]}
    assert await graph.ainvoke({}, thread("async")) == {"log": ["a", "b"]}
    assert graph.get_state(thread("async")) == await graph.aget_state(thread("async"))
    assert list(graph.get_state_history(thread("sync"))) == [s async for s in graph.aget_state_history(thread("sync"))]


async def test_many_threads_run_at_once_on_one_loop(saver: SqliteSaver) -> None:
    graph = chain(("a", anote("a")), ("b", note("b"))).compile(checkpointer=saver)
    results = await asyncio.gather(*(graph.ainvoke({"log": [str(i)]}, thread(f"t{i}")) for i in range(20)))
    assert results == [{"log": [str(i), "a", "b"]} for i in range(20)]


def test_one_saver_serves_several_loops_and_threads(saver: SqliteSaver) -> None:
    graph = chain(("a", anote("a")), ("b", note("b"))).compile(checkpointer=saver)
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = asyncio.run(graph.ainvoke({}, thread(f"t{number}")))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == {i: {"log": ["a", "b"]} for i in range(8)}


# -- what a state can be ----------------------------------------------------------------------------------------------


@dataclass
class Order:
    number: int
    lines: Annotated[list[str], lambda a, b: a + b] = field(default_factory=list)


class Invoice(BaseModel):
    total: int
    notes: Annotated[list[str], lambda a, b: a + b] = []


def test_a_dataclass_is_what_its_nodes_receive(call: Call, saver: SqliteSaver) -> None:
    def add(state: Order) -> dict[str, Any]:
        return {"number": state.number + 1, "lines": [type(state).__name__]}

    graph = chain(("add", add), ("again", add), schema=Order).compile(checkpointer=saver)
    assert call(graph, Order(1), thread()) == {"number": 3, "lines": ["Order", "Order"]}


def test_a_pydantic_model_is_what_its_nodes_receive(call: Call, saver: SqliteSaver) -> None:
    def add(state: Invoice) -> dict[str, Any]:
        return {"total": state.total * 2, "notes": [type(state).__name__]}

    graph = chain(("add", add), ("again", add), schema=Invoice).compile(checkpointer=saver)
    assert call(graph, {"total": "4"}, thread()) == {"total": 16, "notes": ["Invoice", "Invoice"]}


def test_a_state_without_keys_is_one_value(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Annotated[int, lambda a, b: a + b])
    graph.add_sequence([("double", lambda state: state), ("one", lambda state: 1)]).add_edge(START, "double")
    compiled = graph.compile(checkpointer=saver)
    assert call(compiled, 5, thread()) == 11
    assert compiled.get_state(thread()).values == 11


class Question(TypedDict):
    question: str


class Reply(TypedDict):
    reply: str


class Talk(Question, Reply):
    secret: str


def test_input_and_output_schemas_bound_what_goes_in_and_out(call: Call) -> None:
    graph = StateGraph(Talk, input_schema=Question, output_schema=Reply)
    graph.add_node("think", lambda state: {"secret": state["question"].upper()})
    graph.add_node("say", lambda state: {"reply": f"{state['secret']}!"})
    graph.add_edge(START, "think").add_edge("think", "say")
    assert call(graph.compile(), {"question": "why", "secret": "dropped"}) == {"reply": "WHY!"}


# -- how far it goes --------------------------------------------------------------------------------------------------


class Counter(TypedDict):
    count: int
    steps: RemainingSteps
    last: IsLastStep
    seen: Annotated[list[tuple[bool, int]], lambda a, b: a + b]


def test_remaining_steps_count_down_as_in_langgraph(call: Call) -> None:
    def look(state: Counter) -> dict[str, Any]:
        return {"seen": [(state["last"], state["steps"])]}

    graph = chain(("a", look), ("b", look), ("c", look), schema=Counter).compile()
    assert call(graph, {}, {"recursion_limit": 4})["seen"] == [(False, 3), (False, 2), (True, 1)]


def test_M8_the_superstep_at_the_limit_is_told_that_nothing_follows_and_may_end_the_run(call: Call) -> None:
    def look(state: Counter) -> dict[str, Any]:
        return {"seen": [(state["last"], state["steps"])]}

    graph = chain(("a", look), ("b", look), ("c", look), schema=Counter).compile()
    assert call(graph, {}, {"recursion_limit": 3})["seen"] == [(False, 2), (True, 1), (True, 0)]


def loop_of(rounds: int) -> Any:
    def again(state: Counter) -> Literal["turn", "__end__"]:
        return "turn" if state["count"] < rounds else END

    graph = StateGraph(Counter).add_node("turn", lambda state: {"count": state["count"] + 1})
    return graph.add_edge(START, "turn").add_conditional_edges("turn", again)


@pytest.mark.parametrize(("limit", "enough"), [(4, False), (5, True), (6, True)])
def test_M8_the_limit_is_the_number_of_supersteps_that_run(limit: int, enough: bool, call: Call) -> None:
    """LangGraph's report 5548: the last step before the limit was off by one. Five rounds need a limit of five."""
    graph = loop_of(5).compile()
    if enough:
        assert call(graph, {"count": 0}, {"recursion_limit": limit})["count"] == 5
        return
    with pytest.raises(GraphRecursionError, match=f"Recursion limit of {limit}") as raised:
        call(graph, {"count": 0}, {"recursion_limit": limit})
    assert raised.value.fields()["limit"] == limit
    assert isinstance(raised.value, RecursionError)


# -- without a saver --------------------------------------------------------------------------------------------------


def test_without_a_saver_a_question_ends_the_run_and_cannot_be_answered(call: Call) -> None:
    graph = chain(("a", note("a")), ("b", ask("b"))).compile()
    asked = call(graph, {})
    assert asked["log"] == ["a"]
    assert [question.value for question in asked["__interrupt__"]] == ["b"]
    with pytest.raises(NoCheckpointerError, match=r"Cannot use Command\(resume=\.\.\.\) without checkpointer"):
        call(graph, Command(resume="yes"))


def test_without_a_saver_there_is_nothing_to_continue_or_to_look_at(call: Call) -> None:
    graph = letters("a").compile()
    with pytest.raises(EmptyInputError, match="Received no input for __start__"):
        call(graph, None)
    for look in (graph.get_state, graph.get_state_history, graph.fork):
        with pytest.raises(NoCheckpointerError, match="No checkpointer set"):
            look(thread())
    with pytest.raises(NoCheckpointerError, match=r"^update_state needs a checkpointer"):
        graph.update_state(thread(), {"log": ["x"]})
    with pytest.raises(NoCheckpointerError, match=r"^retry needs a checkpointer"):
        graph.retry(thread())


def test_with_a_saver_a_thread_id_is_needed(call: Call, saver: SqliteSaver) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        call(letters("a").compile(checkpointer=saver), {})


# -- on which thread --------------------------------------------------------------------------------------------------


def test_F13_a_lone_sync_node_runs_on_the_callers_thread(saver: SqliteSaver, any_durability: str) -> None:
    """LangGraph's report 8820: what is bound to the calling thread was lost on pool threads."""
    bound = threading.local()
    bound.transaction = "open"
    graph = chain(*((name, lambda state: {"log": [bound.transaction]}) for name in "abc"))
    compiled = graph.compile(checkpointer=saver)
    assert compiled.invoke({}, thread(), durability=any_durability) == {"log": ["open"] * 3}


async def test_under_the_async_api_a_sync_node_never_blocks_the_loop() -> None:
    here = threading.get_ident()
    going, may_finish = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait(state: Log) -> dict[str, list[str]]:
        loop.call_soon_threadsafe(going.set)
        assert may_finish.wait(30)
        return {"log": [str(threading.get_ident() == here)]}

    running = asyncio.create_task(chain(("wait", wait)).compile().ainvoke({}))
    await going.wait()
    may_finish.set()
    assert await running == {"log": ["False"]}


def test_a_node_may_run_another_graph(call: Call, saver: SqliteSaver) -> None:
    inner = chain(("ask", lambda state: {"log": [interrupt("inner")]})).compile(checkpointer=saver)
    outer = chain(("call", lambda state: {"log": inner.invoke({}, thread("inner"))["log"]}))
    compiled = outer.compile(checkpointer=saver)
    assert call(compiled, {"log": ["x"]}, thread("outer"))["log"] == ["x"]
    assert inner.get_state(thread("inner")).next == ("ask",)
