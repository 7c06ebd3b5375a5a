"""INV-7: what cannot be known is in doubt: after an exception, a timeout, a cancellation, a death."""

import asyncio
import threading
from typing import Any

import pytest

from stepwell import (
    START,
    Doubt,
    EffectBusyError,
    EffectInDoubtError,
    EffectNotPerformed,
    InMemorySaver,
    NodeTimeoutError,
    PendingWorkError,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    effect,
    points,
)
from stepwell.testing import SimulatedCrash
from tests.effects.acting import DURABILITIES, Outside, one, rows, statuses
from tests.effects.test_life import acharging, charging, paying
from tests.runtime.conftest import call as call
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Log, thread


@pytest.fixture
def outside() -> Outside:
    return Outside()


# -- looking the truth up ---------------------------------------------------------------------------------------------


def looked_up(outside: Outside, seen: list[Doubt]) -> Any:
    def look_up(doubt: Doubt) -> str:
        seen.append(doubt)
        if doubt.key not in outside.done:
            raise EffectNotPerformed
        return outside.done[doubt.key]

    return look_up


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("point", [points.INTENT_DURABLE, points.BODY_RETURNED])
def test_a_function_that_looks_the_truth_up_settles_it(
    call: Call, outside: Outside, durability: str, point: str
) -> None:
    deaths, seen = Deaths(), []  # type: ignore[var-annotated]
    saver = Saver(deaths.clock)
    graph = one(paying(charging(outside, on_doubt=looked_up(outside, seen))), saver)
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        call(graph, {}, thread(), durability=durability)
    deaths.revive()
    assert call(graph, None, thread(), durability=durability) == {"log": ["5 #1"]}
    assert outside.times == {5: 1}
    (doubt,) = seen
    assert (doubt.key, doubt.name, doubt.args, doubt.attempts, doubt.error) == (outside.keys[0], "charge", (5,), 1, "")
    assert statuses(saver) == ["done"]


def test_it_is_asked_as_soon_as_the_body_has_raised(call: Call, outside: Outside) -> None:
    saver, seen = InMemorySaver(), []  # type: ignore[var-annotated]
    outside.losses = [OSError("lost")]
    graph = one(paying(charging(outside, on_doubt=looked_up(outside, seen))), saver)
    assert call(graph, {}, thread()) == {"log": ["5 #1"]}
    assert [doubt.error for doubt in seen] == ["OSError('lost')"]
    assert outside.times == {5: 1}


def test_what_it_says_has_not_happened_is_a_failure_and_may_be_tried_again(outside: Outside) -> None:
    saver, seen = InMemorySaver(), []  # type: ignore[var-annotated]
    outside.refusals = [OSError("no route"), OSError("no route"), OSError("no route")]
    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=2, retry_on=OSError)
    graph = one(paying(charging(outside, on_doubt=looked_up(outside, seen), retry_policy=policy)), saver)
    with pytest.raises(OSError, match="no route"):
        graph.invoke({}, thread())
    assert statuses(saver) == ["failed"]
    assert graph.invoke(None, thread()) == {"log": ["5 #1"]}
    assert len(seen) == 3


def test_a_look_that_fails_leaves_it_in_doubt(call: Call, outside: Outside) -> None:
    saver = InMemorySaver()
    outside.losses = [OSError("lost")]

    def look_up(doubt: Doubt) -> str:
        raise KeyError("nobody answers")

    graph = one(paying(charging(outside, on_doubt=look_up)), saver)
    for _ in range(2):
        with pytest.raises(EffectInDoubtError, match="lost") as caught:
            call(graph, {} if not rows(saver) else None, thread())
        assert isinstance(caught.value.__cause__, KeyError)
    assert statuses(saver) == ["doubt"]
    assert outside.times == {5: 1}


def test_an_async_look_up_is_awaited(outside: Outside) -> None:
    saver = InMemorySaver()
    outside.losses = [OSError("lost")]

    async def look_up(doubt: Doubt) -> str:
        await asyncio.sleep(0)
        return f"found {doubt.kwargs}"

    graph = one(paying(acharging(outside, on_doubt=look_up)), saver)
    assert asyncio.run(graph.ainvoke({}, thread())) == {"log": ["found {}"]}


# -- timeouts and cancellations ---------------------------------------------------------------------------------------


class Gate:
    """A body that waits until it is let go on, on whatever thread."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        self.entered.set()
        assert self.opened.wait(20)


def waiting(outside: Outside, gate: Gate, **options: Any) -> Any:
    @effect(**options)
    def charge(amount: int, idempotency_key: str) -> str:
        receipt = outside.act(idempotency_key, amount)
        gate.wait()
        return receipt

    return charge


@pytest.mark.parametrize("durability", DURABILITIES)
def test_K4_a_hung_call_among_several_is_given_up_alone(outside: Outside, durability: str) -> None:
    """Fault K4: each effect has a timeout, a retry and a journal of its own."""
    saver, gate = InMemorySaver(), Gate()
    quick, hung = charging(outside, name="quick"), waiting(outside, gate, timeout=0.05, name="hung", on_doubt="raise")

    def node(state: Any) -> Any:
        return {"log": [quick(1), hung(2), quick(3)]}

    graph = one(node, saver)
    with pytest.raises(EffectInDoubtError, match="exceeded its run timeout") as caught:
        graph.invoke({}, thread(), durability=durability)
    assert isinstance(caught.value.__cause__, NodeTimeoutError)
    assert sorted(statuses(saver)) == ["done", "doubt"]
    gate.opened.set()
    with pytest.raises(EffectInDoubtError):
        graph.invoke(None, thread(), durability=durability)
    assert outside.times == {1: 1, 2: 1}


def test_a_timeout_that_fails_on_names_is_in_doubt_all_the_same(outside: Outside) -> None:
    saver, gate = InMemorySaver(), Gate()
    hung = waiting(outside, gate, timeout=0.05, on_doubt="raise", fails_on=TimeoutError)
    with pytest.raises(EffectInDoubtError):
        one(paying(hung), saver).invoke({}, thread())
    gate.opened.set()
    assert statuses(saver) == ["doubt"]


@pytest.mark.parametrize("store", ["memory", "file"])
def test_a_body_that_returns_late_settles_its_doubt_while_the_node_goes_on(
    outside: Outside, store: str, tmp_path: Any
) -> None:
    gate = Gate()
    with InMemorySaver() if store == "memory" else SqliteSaver(tmp_path / "db") as saver:
        hung = waiting(outside, gate, timeout=0.05, on_doubt="raise")

        def node(state: Any) -> Any:
            with pytest.raises(EffectInDoubtError):
                hung(2)
            gate.opened.set()
            while statuses(saver) != ["done"]:
                pass
            return {"log": ["settled"]}

        graph = one(node, saver)
        assert graph.invoke({}, thread()) == {"log": ["settled"]}
        assert outside.times == {2: 1}
        assert list(saver.store.verify()) == []


def test_a_body_that_returns_after_its_node_was_given_up_settles_its_doubt_with_the_end_of_the_run(
    outside: Outside,
) -> None:
    saver, gate = InMemorySaver(), Gate()
    hung = waiting(outside, gate)
    done = threading.Event()

    def node(state: Any) -> Any:
        try:
            return {"log": [hung(2)]}
        finally:
            done.set()

    async def sibling(state: Any) -> Any:
        while not is_given_up():
            await asyncio.sleep(0)
        gate.opened.set()
        while not done.is_set():
            await asyncio.sleep(0)
        return {"log": ["sibling"]}

    def is_given_up() -> bool:
        with saver.store.reading() as reader:
            return bool(reader.records_of_kind("t", "failed"))

    graph = StateGraph(Log).add_node("n", node, timeout=0.05).add_node("s", sibling)
    compiled = graph.add_edge(START, "n").add_edge(START, "s").compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError):
        compiled.invoke({}, thread())
    assert statuses(saver) == ["done"]
    assert compiled.invoke(None, thread()) == {"log": ["2 #1", "sibling"]}
    assert outside.times == {2: 1}
    assert list(saver.store.verify()) == []


def test_a_cancelled_body_is_in_doubt(outside: Outside) -> None:
    saver = InMemorySaver()
    entered = asyncio.Event()

    @effect(on_doubt="raise")
    async def charge(amount: int) -> str:
        receipt = outside.act("no key", amount)
        entered.set()
        await asyncio.Event().wait()
        return receipt

    graph = one(paying(charge), saver)

    async def main() -> None:
        running = asyncio.create_task(graph.ainvoke({}, thread()))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert [row.status for row in rows(saver, in_doubt=True)] == ["intent"]
    with pytest.raises(EffectInDoubtError):
        asyncio.run(graph.ainvoke(None, thread()))
    assert outside.times == {5: 1}


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["in the node's task", "in a task of its own"])
@pytest.mark.parametrize("store", ["memory", "file"])
def test_the_receipt_of_a_body_that_has_returned_is_written_though_its_caller_is_cancelled(
    outside: Outside, store: str, timeout: float | None, tmp_path: Any
) -> None:
    with InMemorySaver() if store == "memory" else SqliteSaver(tmp_path / "db") as saver:
        running: list[asyncio.Task[Any]] = []

        @effect(on_doubt="raise", timeout=timeout)
        async def charge(amount: int) -> str:
            running[0].cancel()
            return outside.act("no key", amount)

        graph = one(paying(charge), saver)

        async def main() -> None:
            running.append(asyncio.create_task(graph.ainvoke({}, thread())))
            with pytest.raises(asyncio.CancelledError):
                await running[0]

        asyncio.run(main())
        assert statuses(saver) == ["done"]
        assert asyncio.run(graph.ainvoke(None, thread())) == {"log": ["5 #1"]}
        assert outside.times == {5: 1}


# -- while it runs, and while it is open ------------------------------------------------------------------------------


def test_while_another_caller_performs_it_the_key_is_busy(outside: Outside) -> None:
    saver, gate = InMemorySaver(), Gate()
    charge = waiting(outside, gate, key=lambda amount: f"order {amount}", scope="global")
    graph = one(paying(charge), saver)
    first = threading.Thread(target=graph.invoke, args=({}, thread("first")))
    first.start()
    assert gate.entered.wait(20)
    with pytest.raises(EffectBusyError, match=r"performed by run .* of thread first"):
        graph.invoke({}, thread("second"))
    gate.opened.set()
    first.join()
    assert graph.invoke(None, thread("second")) == {"log": ["5 #1"]}
    assert outside.times == {5: 1}


def test_two_calls_with_one_key_at_once_happen_once(outside: Outside) -> None:
    saver = InMemorySaver()
    charge = acharging(outside, key="the one")

    async def node(state: Any) -> Any:
        results = await asyncio.gather(charge(5), charge(5), return_exceptions=True)
        assert [type(each) for each in results] == [str, EffectBusyError]
        return {"log": [await charge(5)]}

    assert asyncio.run(one(node, saver).ainvoke({}, thread())) == {"log": ["5 #1"]}
    assert outside.times == {5: 1}


def test_an_open_doubt_keeps_a_new_input_out(outside: Outside) -> None:
    saver = InMemorySaver()
    outside.losses = [OSError("lost")]
    graph = one(paying(charging(outside, on_doubt="raise")), saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke({}, thread())
    key = rows(saver)[0].key
    with pytest.raises(PendingWorkError, match=rf"effects in doubt .{key}.*pass on_pending") as caught:
        graph.invoke({"log": ["new"]}, thread())
    assert caught.value.fields()["doubts"] == [key]
    assert graph.invoke({"log": ["new"]}, thread(), on_pending="discard") == {"log": ["new", "5 #2"]}
    assert statuses(saver) == ["doubt", "done"]


def test_a_failure_without_a_doubt_lets_a_new_input_in(outside: Outside) -> None:
    saver = InMemorySaver()
    outside.refusals = [ConnectionRefusedError("no")]
    graph = one(paying(charging(outside)), saver)
    with pytest.raises(ConnectionRefusedError):
        graph.invoke({}, thread())
    assert graph.invoke({"log": ["new"]}, thread()) == {"log": ["new", "5 #1"]}


def test_a_doubt_that_a_finished_node_lived_with_keeps_nobody_out(outside: Outside) -> None:
    saver = InMemorySaver()
    outside.losses = [OSError("lost")]
    charge = charging(outside, on_doubt="raise")

    def node(state: Any) -> Any:
        try:
            return {"log": [charge(5)]}
        except EffectInDoubtError:
            return {"log": ["unknown"]}

    graph = one(node, saver)
    assert graph.invoke({}, thread()) == {"log": ["unknown"]}
    assert graph.invoke({}, thread()) == {"log": ["unknown", "5 #2"]}
