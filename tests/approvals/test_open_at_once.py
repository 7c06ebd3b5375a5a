"""Approvals of calls in loops, sends, helpers and steps: each has an id of its own, and is decided by it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from stepwell import (
    START,
    Approve,
    Command,
    InMemorySaver,
    Reject,
    Send,
    SqliteSaver,
    StateGraph,
    effect,
    entrypoint,
    interrupt,
    task,
)
from tests.approvals.desks import arefunding, asked, desk, refunding
from tests.effects.acting import DURABILITIES, Outside, one, statuses
from tests.runtime.graphs import Call, Log, thread

ORDERS = ("a", "b", "c")


def sends(saver: SqliteSaver, outside: Outside) -> Any:
    refund = refunding(outside)
    graph = StateGraph(Log).add_node("n", lambda order: {"log": [refund(order)]})
    return graph.add_conditional_edges(START, lambda state: [Send("n", o) for o in ORDERS], ["n"]).compile(saver)


def gathered(saver: SqliteSaver, outside: Outside) -> Any:
    refund = arefunding(outside)

    async def node(state: Any) -> Any:
        return {"log": await asyncio.gather(*(refund(order) for order in ORDERS))}

    return one(node, saver)


def grouped(saver: SqliteSaver, outside: Outside) -> Any:
    """The first to ask cancels its siblings, as a TaskGroup does: what has not begun asks when the node runs again."""
    refund = arefunding(outside)

    async def node(state: Any) -> Any:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(refund(order)) for order in ORDERS]
        return {"log": [each.result() for each in running]}

    return one(node, saver)


def beside(saver: SqliteSaver, outside: Outside) -> Any:
    refund = refunding(outside)

    def node(state: Any) -> Any:
        with ThreadPoolExecutor() as pool:
            running = [pool.submit(copy_context().run, refund, order) for order in ORDERS]
        return {"log": [each.result() for each in running]}

    return one(node, saver)


def steps(saver: SqliteSaver, outside: Outside) -> Any:
    refund = refunding(outside)

    @task
    def through(order: str) -> str:
        return str(refund(order))

    def node(state: Any) -> Any:
        running = [through(order) for order in ORDERS]
        return {"log": [each.result() for each in running]}

    return one(node, saver)


def asteps(saver: SqliteSaver, outside: Outside) -> Any:
    refund = arefunding(outside)

    @task
    async def through(order: str) -> str:
        return str(await refund(order))

    async def node(state: Any) -> Any:
        return {"log": await asyncio.gather(*(through(order) for order in ORDERS))}

    return one(node, saver)


SHAPES = [sends, gathered, beside, steps, asteps]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_ask_at_once_and_are_decided_in_any_order(
    call: Call, saver: SqliteSaver, outside: Outside, durability: str, shape: Any
) -> None:
    graph = shape(saver, outside)
    call(graph, {}, thread(), durability=durability)
    open_now = asked(graph)
    assert sorted(open_now) == list(ORDERS)
    call(graph, Command(resume={open_now["b"]: Approve("ann")}), thread(), durability=durability)
    assert asked(graph) == {order: open_now[order] for order in "ac"}
    assert outside.times in ({}, {"b:100": 1})
    edited = {open_now["a"]: Approve("bob", args={"cents": 1}), open_now["c"]: Approve("ann")}
    log = call(graph, Command(resume=edited), thread(), durability=durability)["log"]
    assert [line.partition(" ")[0] for line in log] == ["a:1", "b:100", "c:100"]
    assert outside.times == {"a:1": 1, "b:100": 1, "c:100": 1}
    assert statuses(saver) == ["done"] * 3
    assert list(saver.store.verify()) == []


def test_what_a_group_cancels_asks_when_its_node_runs_again(saver: SqliteSaver, outside: Outside) -> None:
    graph = grouped(saver, outside)
    graph.invoke({}, thread())
    for _ in ORDERS:
        if open_now := asked(graph):
            graph.invoke(Command(resume=dict.fromkeys(open_now.values(), Approve("ann"))), thread())
    assert graph.get_state(thread()).next == ()
    assert outside.times == {f"{order}:100": 1 for order in ORDERS}


def test_a_body_is_not_broken_off_because_a_sibling_asks(saver: SqliteSaver, outside: Outside) -> None:
    begun, goes_on = [], []

    @effect
    async def charge(idempotency_key: str) -> str:
        begun.append(idempotency_key)
        await asyncio.sleep(0.01)
        goes_on.append(idempotency_key)
        return outside.act(idempotency_key, "charge")

    refund = arefunding(outside)

    async def node(state: Any) -> Any:
        return {"log": await asyncio.gather(charge(), refund("a"))}

    graph = one(node, saver)
    graph.invoke({}, thread())
    assert (begun, statuses(saver)) == (goes_on, ["done"])
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["charge #1", "a:100 #2"]}
    assert outside.times == {"charge": 1, "a:100": 1}


def test_a_body_is_not_broken_off_because_its_node_fails(saver: SqliteSaver, outside: Outside) -> None:
    begun = asyncio.Event()

    @effect
    async def charge(idempotency_key: str) -> str:
        begun.set()
        await asyncio.sleep(0.01)
        return outside.act(idempotency_key, "charge")

    async def fails() -> None:
        await begun.wait()
        raise ValueError("no")

    async def node(state: Any) -> Any:
        await asyncio.gather(charge(), fails())

    with pytest.raises(ValueError, match="no"):
        one(node, saver).invoke({}, thread())
    assert (statuses(saver), outside.times) == (["done"], {"charge": 1})


@pytest.mark.parametrize("refunding", [refunding, arefunding])
def test_calls_in_a_row_ask_one_after_the_other(
    call: Call, saver: SqliteSaver, outside: Outside, refunding: Any
) -> None:
    graph, ids = desk(saver, refunding(outside), *ORDERS), []
    call(graph, {}, thread())
    for order, decision in zip(ORDERS, (Approve("ann"), Reject("ann", "no"), Approve("ann")), strict=True):
        ids.append(asked(graph)[order])
        call(graph, Command(resume={ids[-1]: decision}), thread())
    assert graph.get_state(thread()).values == {"log": ["a:100 #1", "no: no", "c:100 #2"]}
    assert len(set(ids)) == 3
    assert len(outside.asked) == 2


def test_each_lap_of_a_loop_asks_anew(call: Call, saver: SqliteSaver, outside: Outside) -> None:
    refund, ids = refunding(outside), []
    graph = StateGraph(Log).add_node("n", lambda state: {"log": [refund("a")]}).add_edge(START, "n")
    graph.add_conditional_edges("n", lambda state: "n" if len(state["log"]) < 3 else "__end__", ["n", "__end__"])
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {}, thread())
    for _ in range(3):
        ids.append(asked(compiled)["a"])
        call(compiled, Command(resume=Approve("ann")), thread())
    assert compiled.get_state(thread()).values == {"log": ["a:100 #1", "a:100 #2", "a:100 #3"]}
    assert len(set(ids)) == len(set(outside.keys)) == 3


def test_a_node_may_ask_both_kinds_of_question(saver: SqliteSaver, outside: Outside) -> None:
    refund = refunding(outside)

    @entrypoint(checkpointer=saver)
    def flow(order: str) -> Any:
        who = interrupt("who?")
        return [who, refund(order), interrupt("and?")]

    flow.invoke("a", thread())
    flow.invoke(Command(resume={"approved": True, "by": "nobody decides yet"}), thread())
    flow.invoke(Command(resume=Approve("ann")), thread())
    assert flow.invoke(Command(resume=None), thread()) == [
        {"approved": True, "by": "nobody decides yet"},
        "a:100 #1",
        None,
    ]


def test_an_answer_to_one_question_leaves_an_approval_open_under_its_id(saver: SqliteSaver, outside: Outside) -> None:
    refund, runs = arefunding(outside), []

    async def other() -> Any:
        return interrupt("who?")

    async def node(state: Any) -> Any:
        runs.append(1)
        return {"log": await asyncio.gather(refund("a"), other())}

    graph = one(node, InMemorySaver())
    graph.invoke({}, thread())
    first, second = graph.get_state(thread()).interrupts
    assert graph.invoke(Command(resume={second.id: "me"}), thread())["__interrupt__"] == [first]
    assert (len(runs), outside.asked) == (2, [])
    assert graph.invoke(Command(resume=Approve("ann")), thread()) == {"log": ["a:100 #1", "me"]}
