"""What a run costs in transactions, counted exactly: a promise as firm as any other. Renewals are counted apart."""

from typing import Any, TypedDict, get_args

import pytest

from stepwell import START, Command, InMemorySaver, RetryPolicy, Send, SqliteSaver, StateGraph, StreamMode
from tests.runtime.graphs import Call, Flaky, Log, ask, chain, fan, letters, note, thread


@pytest.fixture
def spent(saver: SqliteSaver) -> Any:
    """Return a function that tells how many transactions were begun since it was last asked."""
    seen = [saver.store.counts.transactions]

    def since() -> int:
        seen.append(saver.store.counts.transactions)
        return seen[-1] - seen[-2]

    return since


@pytest.mark.parametrize("length", [1, 3, 10])
def test_a_chain_of_n_costs_n_plus_one(length: int, call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = letters("abcdefghij"[:length]).compile(checkpointer=saver)
    call(graph, {}, thread(), durability="sync")
    assert spent() == length + 1


@pytest.mark.parametrize("length", [1, 3, 10])
def test_a_chain_of_any_length_costs_two_in_exit_mode(length: int, call: Call, saver: SqliteSaver, spent: Any) -> None:
    call(letters("abcdefghij"[:length]).compile(checkpointer=saver), {}, thread(), durability="exit")
    assert spent() == 2


@pytest.mark.parametrize("length", [1, 3, 10])
def test_async_mode_costs_no_more_than_sync(length: int, call: Call, saver: SqliteSaver, spent: Any) -> None:
    call(letters("abcdefghij"[:length]).compile(checkpointer=saver), {}, thread(), durability="async")
    assert spent() <= length + 1


def test_a_second_input_costs_the_same_as_the_first(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    for _ in range(3):
        call(graph, {}, thread())
        assert spent() == 4


@pytest.mark.parametrize("width", [2, 5, 20])
def test_a_superstep_of_k_tasks_costs_at_most_k(width: int, call: Call, saver: SqliteSaver, spent: Any) -> None:
    call(fan(*((f"n{i}", note(f"n{i}")) for i in range(width))).compile(checkpointer=saver), {}, thread())
    assert 2 <= spent() <= 1 + width


@pytest.mark.parametrize("width", [2, 5, 20])
def test_sends_cost_at_most_one_each_and_two_in_exit_mode(
    width: int, call: Call, saver: SqliteSaver, spent: Any
) -> None:
    graph = StateGraph(Log).add_node("plan", note("plan")).add_node("s", lambda arg: {"log": [arg]})
    graph.add_conditional_edges("plan", lambda state: [Send("s", str(i)) for i in range(width)], ["s"])
    compiled = graph.add_edge(START, "plan").compile(checkpointer=saver)
    call(compiled, {}, thread("sync"))
    assert 3 <= spent() <= 2 + width
    call(compiled, {}, thread("exit"), durability="exit")
    assert spent() == 2


def test_a_pause_costs_one_and_an_answer_the_admission_alone(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    assert spent() == 1 + 1 + 1, "admission, a, pause"
    call(graph, Command(resume="yes"), thread())
    assert spent() == 1 + 2, "the answer is the admission; ask, b"


def test_a_pause_in_exit_mode_costs_two(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    call(graph, {}, thread(), durability="exit")
    assert spent() == 2
    call(graph, Command(resume="yes"), thread(), durability="exit")
    assert spent() == 2


@pytest.mark.parametrize(("durability", "cost"), [("sync", 2 + 2), ("exit", 2)])
def test_each_failed_attempt_costs_one_and_none_in_exit_mode(
    durability: str, cost: int, call: Call, saver: SqliteSaver, spent: Any
) -> None:
    policy = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)
    graph = StateGraph(Log).add_node("node", Flaky("node", 2), retry_policy=policy).add_edge(START, "node")
    call(graph.compile(checkpointer=saver), {}, thread(), durability=durability)
    assert spent() == cost


def test_a_failure_costs_what_a_success_would(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    assert spent() == 3
    call(graph, None, thread())
    assert spent() == 2


def test_an_entry_that_routes_through_user_code_costs_one_more(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_conditional_edges(START, lambda state: "a", ["a"])
    call(graph.compile(checkpointer=saver), {}, thread())
    assert spent() == 3


def test_looking_costs_nothing_and_an_edit_costs_one(saver: SqliteSaver, spent: Any) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    spent()
    graph.get_state(thread())
    list(graph.get_state_history(thread()))
    assert spent() == 0
    graph.update_state(thread(), {"log": ["x"]})
    assert spent() == 1
    graph.fork(thread())
    assert spent() == 1


def test_a_streamed_run_costs_the_same(saver: SqliteSaver, spent: Any) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    list(graph.stream({}, thread(), stream_mode=get_args(StreamMode)))
    assert spent() == 4


def test_continuing_what_is_finished_costs_nothing(call: Call, saver: SqliteSaver, spent: Any) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    call(graph, {}, thread())
    spent()
    assert call(graph, None, thread()) == {"log": ["a", "b", "c"]}
    assert spent() == 0


class Luggage(TypedDict, total=False):
    heavy: str
    light: int


def bytes_of(supersteps: int, weight: int) -> int:
    """Return what a run stores that carries an unchanged value of this weight along."""
    nodes = [(f"n{i}", lambda state: {"light": 1}) for i in range(supersteps)]
    with InMemorySaver() as saver:
        chain(*nodes, schema=Luggage).compile(checkpointer=saver).invoke({"heavy": "x" * weight}, thread())
        return saver.store.counts.bytes


def test_G2_an_unchanged_value_is_not_stored_again() -> None:
    """pizza-bot's report 58: one payload was stored anew in each step.

    INV-13: 100 kB that nobody touches cost as much in a run of fifty supersteps as in a run of one.
    """
    assert bytes_of(50, 100_000) - bytes_of(50, 1) == bytes_of(1, 100_000) - bytes_of(1, 1)
    assert bytes_of(50, 1) < 50 * 400
