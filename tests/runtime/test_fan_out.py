"""Supersteps of many tasks: sends, joins, jumps, routers, deferred nodes, and how many run at once."""

import asyncio
import operator
import threading
from typing import Annotated, Any, Literal, TypedDict

import pytest

from stepwell import (
    END,
    START,
    Command,
    InvalidConfigError,
    InvalidUpdateError,
    Send,
    SqliteSaver,
    StateGraph,
    interrupt,
)
from tests.runtime.graphs import Call, Counted, Log, anote, chain, fan, note, thread


class Parcels(TypedDict, total=False):
    parcels: list[int]
    done: Annotated[list[int], operator.add]


def to_each(state: Parcels) -> list[Send]:
    return [Send("carry", number) for number in state["parcels"]]


def carriers(carry: Any) -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(Parcels).add_node("carry", carry).add_conditional_edges(START, to_each, ["carry"])


# -- a node that two ways lead to -------------------------------------------------------------------------------------


def test_C1_a_node_that_two_ways_lead_to_runs_once_after_an_approval(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 4397: an approval, then a tool node reached by an edge and by a router, gave two results."""

    def approve(state: Log) -> Command[Any]:
        return Command(update={"log": [f"approved: {interrupt('run it?')}"]}, goto="tool")

    tool = Counted("tool")
    graph = StateGraph(Log).add_node("approve", approve).add_node("tool", tool).add_edge(START, "approve")
    graph.add_edge("approve", "tool").add_conditional_edges("approve", lambda state: "tool", ["tool"])
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {}, thread())
    assert call(compiled, Command(resume="yes"), thread()) == {"log": ["approved: yes", "tool"]}
    assert tool.calls == 1


# -- sends ------------------------------------------------------------------------------------------------------------


def test_each_send_runs_on_its_own_argument(call: Call, saver: SqliteSaver) -> None:
    graph = carriers(lambda number: {"done": [number * 10]}).compile(checkpointer=saver)
    assert call(graph, {"parcels": [3, 1, 2]}, thread())["done"] == [30, 10, 20]


def test_results_are_folded_in_the_order_of_the_sends_whatever_finishes_first(saver: SqliteSaver) -> None:
    """INV-5: completion order leaves no trace. Here the last send finishes first, then the one before it, and so on."""
    turns = [threading.Event() for _ in range(9)]
    turns[-1].set()

    def carry(number: int) -> dict[str, list[int]]:
        assert turns[number + 1].wait(30)
        turns[number].set()
        return {"done": [number]}

    graph = carriers(carry).compile(checkpointer=saver)
    assert graph.invoke({"parcels": list(range(8))}, thread())["done"] == list(range(8))
    assert graph.get_state(thread()).values["done"] == list(range(8))


async def test_async_tasks_all_begin_before_one_of_them_goes_on(saver: SqliteSaver) -> None:
    """Not one after another, each a turn of the loop later, while the first ones already finish."""
    running: set[int] = set()
    most: list[int] = []

    async def carry(number: int) -> dict[str, list[int]]:
        running.add(number)
        await asyncio.sleep(0)
        most.append(len(running))
        running.discard(number)
        return {"done": [number]}

    graph = carriers(carry).compile(checkpointer=saver)
    await graph.ainvoke({"parcels": list(range(50))}, thread())
    assert max(most) == 50


async def test_async_sends_are_folded_in_order_too(saver: SqliteSaver) -> None:
    """INV-5, on an event loop."""
    turns = [asyncio.Event() for _ in range(201)]
    turns[-1].set()

    async def carry(number: int) -> dict[str, list[int]]:
        await turns[number + 1].wait()
        turns[number].set()
        return {"done": [number]}

    graph = carriers(carry).compile(checkpointer=saver)
    assert (await graph.ainvoke({"parcels": list(range(200))}, thread()))["done"] == list(range(200))


def test_sends_are_listed_before_pulls_and_folded_after_them(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_node("s", lambda arg: {"log": [arg]}).add_node("z", note("z"))
    graph.add_edge(START, "a").add_edge("a", "z")
    graph.add_conditional_edges("a", lambda state: [Send("s", "s0"), Send("s", "s1")], ["s"])
    compiled = graph.compile(checkpointer=saver, interrupt_after=["a"])
    assert call(compiled, {}, thread()) == {"log": ["a"]}
    assert compiled.get_state(thread()).next == ("s", "s", "z")
    assert call(compiled, None, thread()) == {"log": ["a", "z", "s0", "s1"]}


# -- joins and deferred nodes -----------------------------------------------------------------------------------------


def test_a_join_waits_for_all_its_sources_and_runs_once(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = fan(("a", note("a")), ("b", note("b")))
    graph.add_node("b2", note("b2")).add_node("b3", note("b3")).add_node("end", note("end"))
    graph.add_edge("b", "b2").add_edge("b2", "b3").add_edge(["a", "b3"], "end")
    compiled = graph.compile(checkpointer=saver)
    assert call(compiled, {}, thread(), durability=any_durability)["log"] == ["a", "b", "b2", "b3", "end"]


def test_a_join_in_a_loop_waits_anew_each_round(call: Call) -> None:
    def again(state: Log) -> Literal["a", "b", "__end__"] | list[str]:
        return ["a", "b"] if state["log"].count("end") < 3 else END

    graph = fan(("a", note("a")), ("b", note("b"))).add_node("end", note("end"))
    graph.add_edge(["a", "b"], "end").add_conditional_edges("end", again, ["a", "b", END])
    assert call(graph.compile(), {})["log"] == ["a", "b", "end"] * 3


def test_single_edges_into_one_node_coalesce_within_a_superstep(call: Call) -> None:
    graph = fan(("a", note("a")), ("b", note("b"))).add_node("c", note("c")).add_edge("a", "c").add_edge("b", "c")
    assert call(graph.compile(), {})["log"] == ["a", "b", "c"]


def test_a_deferred_node_runs_when_nothing_else_is_left(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", anote("b"))).add_node("b2", note("b2")).add_node("b3", note("b3"))
    graph.add_node("late", note("late"), defer=True).add_node("last", note("last"), defer=True)
    graph.add_edge("a", "late").add_edge("b", "b2").add_edge("b2", "b3").add_edge("b3", "late").add_edge("late", "last")
    assert call(graph.compile(checkpointer=saver), {}, thread())["log"] == ["a", "b", "b2", "b3", "late", "last"]


def test_a_deferred_join_waits_for_its_sources_and_for_everything_else(call: Call) -> None:
    graph = fan(("a", note("a")), ("b", note("b")), ("c", note("c"))).add_node("c2", note("c2"))
    graph.add_node("join", note("join"), defer=True).add_edge(["a", "b"], "join").add_edge("c", "c2")
    assert call(graph.compile(), {})["log"] == ["a", "b", "c", "c2", "join"]


# -- jumps and routers ------------------------------------------------------------------------------------------------


def test_a_command_updates_and_jumps(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    def choose(state: Log) -> Command[Literal["b", "c"]]:
        return Command(update={"log": ["a"]}, goto="c")

    graph = StateGraph(Log).add_node("a", choose).add_node("b", note("b")).add_node("c", note("c")).add_edge(START, "a")
    assert call(graph.compile(checkpointer=saver), {}, thread(), durability=any_durability)["log"] == ["a", "c"]


def test_a_command_may_jump_to_several_nodes_send_and_end(call: Call) -> None:
    def choose(state: Log) -> Command[Any]:
        return Command(goto=["c", Send("b", "sent"), END, "d"])

    graph = StateGraph(Log).add_node("a", choose, destinations=("b", "c", "d"))
    graph.add_node("b", lambda arg: {"log": [f"b:{arg}"]}).add_node("c", note("c")).add_node("d", note("d"))
    assert call(graph.add_edge(START, "a").compile(), {})["log"] == ["c", "d", "b:sent"]


def test_a_node_may_return_several_commands_and_updates(call: Call) -> None:
    def several(state: Log) -> list[Any]:
        return [Command(update={"log": ["one"]}, goto="b"), {"log": ["two"]}, Command(update={"log": ["three"]})]

    graph = StateGraph(Log).add_node("a", several, destinations=("b",)).add_node("b", note("b")).add_edge(START, "a")
    assert call(graph.compile(), {})["log"] == ["one", "two", "three", "b"]


@pytest.mark.parametrize(
    ("answer", "path"), [(True, ["a", "yes"]), (False, ["a", "no"]), ("both", ["a", "no", "yes"]), ("end", ["a"])]
)
def test_a_router_chooses_by_what_its_own_node_just_wrote(answer: Any, path: list[str], call: Call) -> None:
    def choose(state: Log) -> Any:
        assert state["log"] == ["a"]
        return {"both": ["yes", "no"], "end": END}.get(answer, "yes" if answer else "no")

    graph = StateGraph(Log).add_node("a", note("a")).add_node("yes", note("yes")).add_node("no", note("no"))
    graph.add_edge(START, "a").add_conditional_edges("a", choose, ["yes", "no", END])
    assert call(graph.compile(), {})["log"] == path


def test_a_path_map_translates_what_a_router_returns(call: Call) -> None:
    graph = StateGraph(Log).add_node("odd", note("odd")).add_node("even", note("even"))
    graph.add_conditional_edges(START, lambda state: len(state["log"]) % 2, {1: "odd", 0: "even"})
    assert call(graph.compile(), {"log": ["one"]})["log"] == ["one", "odd"]


def test_a_router_sees_its_own_nodes_writes_and_not_those_of_its_siblings(call: Call) -> None:
    seen: list[list[str]] = []

    async def look(state: Log) -> str:
        seen.append(state["log"])
        return str(END)

    graph = fan(("a", note("a")), ("b", note("b"))).add_conditional_edges("a", look, [END])
    assert call(graph.compile(), {"log": ["in"]})["log"] == ["in", "a", "b"]
    assert seen == [["in", "a"]]


@pytest.mark.parametrize("result", [None, START, "nowhere", 3])
def test_a_router_that_names_no_destination_is_an_error(result: Any, call: Call) -> None:
    graph = chain(("a", note("a"))).add_conditional_edges("a", lambda state: result, {"a": "a", "end": END})
    with pytest.raises(ValueError, match=r"destination|not a node"):
        call(graph.compile(), {})


def test_nothing_can_be_sent_to_the_end(call: Call) -> None:
    graph = chain(("a", note("a"))).add_conditional_edges("a", lambda state: Send(END, 1), ["a", END])
    with pytest.raises(InvalidUpdateError, match="Cannot send a packet to the END node"):
        call(graph.compile(), {})


# -- how many at once -------------------------------------------------------------------------------------------------


class Crowd:
    """Counts how many nodes are inside at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = self.peak = 0

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            self.peak = max(self.peak, self.inside)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1


@pytest.mark.parametrize("limit", [1, 2, 4, None])
def test_N1_no_limit_drops_a_task(limit: int | None, call: Call, saver: SqliteSaver) -> None:
    """LangGraph.js's report 2656: with a limit of one every task after the first was dropped."""
    graph = carriers(lambda number: {"done": [number]}).compile(checkpointer=saver)
    config = thread(max_concurrency=limit)
    assert call(graph, {"parcels": list(range(6))}, config)["done"] == list(range(6))


@pytest.mark.parametrize("limit", [1, 2, 4, 12])
def test_N2_the_limit_is_kept_and_used_by_sync_nodes(limit: int, call: Call) -> None:
    """LangGraph's report 8920: a limit was ignored. The barrier opens for `limit` at once only."""
    crowd, barrier = Crowd(), threading.Barrier(limit)

    def carry(number: int) -> dict[str, list[int]]:
        with crowd:
            barrier.wait(30)
            return {"done": [number]}

    config = {"max_concurrency": limit}
    assert call(carriers(carry).compile(), {"parcels": list(range(12))}, config)["done"] == list(range(12))
    assert crowd.peak == limit


@pytest.mark.parametrize("limit", [1, 2, 4, 12])
def test_N2_the_limit_is_kept_and_used_by_async_nodes(limit: int, call: Call) -> None:
    """The same for coroutine functions."""
    crowd, barrier = Crowd(), asyncio.Barrier(limit)

    async def carry(number: int) -> dict[str, list[int]]:
        with crowd:
            await barrier.wait()
            return {"done": [number]}

    config = {"max_concurrency": limit}
    assert call(carriers(carry).compile(), {"parcels": list(range(12))}, config)["done"] == list(range(12))
    assert crowd.peak == limit


@pytest.mark.parametrize("config", [{"configurable": {"max_concurrency": 2}}, {"max_concurency": 2}])
def test_N2_a_misplaced_or_unknown_limit_is_refused(config: dict[str, Any]) -> None:
    """One place for each option: what would be ignored is an error."""
    with pytest.raises(InvalidConfigError, match=r"max_concurr?ency"):
        carriers(lambda number: None).compile().invoke({"parcels": [1]}, config)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (0, "at least 1, not 0"),
        (-1, "at least 1, not -1"),
        (True, "a whole number, and at least 1, not True"),
        ("2", "a whole number, and at least 1, not '2'"),
    ],
)
def test_a_limit_is_a_positive_number(limit: Any, told: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"max_concurrency must be {told}"):
        carriers(lambda number: None).compile().invoke({"parcels": [1]}, {"max_concurrency": limit})


def test_a_thousand_sync_sends_all_run(saver: SqliteSaver) -> None:
    graph = carriers(lambda number: {"done": [number]}).compile(checkpointer=saver)
    assert graph.invoke({"parcels": list(range(1000))}, thread())["done"] == list(range(1000))
