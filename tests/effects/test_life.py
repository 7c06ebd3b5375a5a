"""INV-7: the intent before the body, the receipt before the caller, in every durability mode, however it is called."""

import asyncio
import threading
from typing import Any

import pytest

from stepwell import (
    END,
    START,
    Command,
    EffectInDoubtError,
    EffectNotPerformed,
    InMemorySaver,
    NoCheckpointerError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    effect,
    interrupt,
    points,
    task,
    wrap_tool,
)
from stepwell.testing import SimulatedCrash
from tests.effects.acting import DURABILITIES, Outside, one, rows, statuses
from tests.runtime.conftest import call as call
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Log, thread

POINTS = (points.INTENT_DURABLE, points.BODY_RETURNED, points.RECEIPT_DURABLE)


@pytest.fixture
def outside() -> Outside:
    return Outside()


def charging(outside: Outside, **options: Any) -> Any:
    @effect(**options)
    def charge(amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    return charge


def acharging(outside: Outside, **options: Any) -> Any:
    @effect(**options)
    async def charge(amount: int, idempotency_key: str) -> str:
        await asyncio.sleep(0)
        return outside.act(idempotency_key, amount)

    return charge


def paying(charge: Any) -> Any:
    def node(state: Any) -> Any:
        return {"log": [charge(5)]}

    async def anode(state: Any) -> Any:
        return {"log": [await charge(5)]}

    return anode if charge.declared.step.is_async else node


@pytest.mark.parametrize("charging", [charging, acharging])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_call_returns_what_the_body_returns_and_the_node_that_runs_again_gets_it_back(
    call: Call, outside: Outside, durability: str, charging: Any
) -> None:
    saver = InMemorySaver()
    failures = [ValueError("once")]
    inner = paying(charging(outside))

    async def anode(state: Any) -> Any:
        return after(await inner(state))

    def node(state: Any) -> Any:
        return after(inner(state))

    def after(result: Any) -> Any:
        if failures:
            raise failures.pop()
        return result

    graph = one(anode if asyncio.iscoroutinefunction(inner) else node, saver)
    with pytest.raises(ValueError, match="once"):
        call(graph, {}, thread(), durability=durability)
    assert statuses(saver) == ["done"]
    assert call(graph, None, thread(), durability=durability) == {"log": ["5 #1"]}
    assert outside.times == {5: 1}
    assert list(saver.store.verify()) == []


@pytest.mark.parametrize("charging", [charging, acharging])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("point", POINTS)
def test_K2_a_process_that_dies_at_each_point_repeats_nothing_that_was_known(
    call: Call, outside: Outside, durability: str, point: str, charging: Any
) -> None:
    """Fault K2: done replays the result, started without done follows the policy: here the same key again."""
    deaths = Deaths()
    saver = Saver(deaths.clock)
    graph = one(paying(charging(outside)), saver)
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        call(graph, {}, thread(), durability=durability)
    deaths.revive()
    before = list(outside.asked)
    assert statuses(saver) == (["done"] if point == points.RECEIPT_DURABLE else ["intent"])
    assert call(graph, None, thread(), durability=durability) == {"log": ["5 #1"]}
    assert len(outside.done) == 1
    assert len(set(outside.keys)) == 1
    assert len(outside.asked) == {points.INTENT_DURABLE: 1, points.BODY_RETURNED: 2, points.RECEIPT_DURABLE: 1}[point]
    assert outside.asked[: len(before)] == before
    assert statuses(saver) == ["done"]
    assert list(saver.store.verify()) == []


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("point", POINTS[:2])
def test_without_key_support_nothing_is_repeated_and_the_doubt_stays(
    call: Call, outside: Outside, durability: str, point: str
) -> None:
    deaths = Deaths()
    saver = Saver(deaths.clock)

    @effect(on_doubt="raise")
    def charge(amount: int) -> str:
        return outside.act("no key", amount)

    graph = one(paying(charge), saver)
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        call(graph, {}, thread(), durability=durability)
    deaths.revive()
    asked = len(outside.asked)
    for _ in range(2):
        with pytest.raises(EffectInDoubtError, match="its process died") as caught:
            call(graph, None, thread(), durability=durability)
        assert caught.value.fields()["key"] == rows(saver)[0].key
    assert len(outside.asked) == asked
    assert statuses(saver) == ["intent"]


def test_the_intent_is_on_disk_before_the_body_begins(tmp_path: Any) -> None:
    seen: list[Any] = []
    path = tmp_path / "db"

    @effect
    def charge(amount: int, idempotency_key: str) -> int:
        with SqliteSaver(path) as other:
            seen.extend((row.status, row.key == idempotency_key) for row in rows(other, durability))
            assert other.store.counts.transactions == 0
        return amount

    with SqliteSaver(path) as saver:
        for durability in DURABILITIES:
            one(paying(wrap_tool(charge.func, name=durability)), saver).invoke(
                {}, thread(durability), durability=durability
            )
            assert seen[-1] == ("intent", True)
        assert seen.count(("intent", True)) == 3


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("store", ["memory", "file"])
def test_an_effect_costs_two_transactions(outside: Outside, durability: str, store: str, tmp_path: Any) -> None:
    saver = InMemorySaver() if store == "memory" else SqliteSaver(tmp_path / "db")
    with saver:
        charge = charging(outside)
        bare = one(lambda state: {"log": ["x"]}, saver).run({}, thread("bare"), durability=durability)
        for count in (1, 2, 5):

            def node(state: Any, count: int = count) -> Any:
                return {"log": [charge(amount) for amount in range(count)]}

            run = one(node, saver).run({}, thread(f"{count}"), durability=durability)
            assert run.cost.transactions == bare.cost.transactions + 2 * count
            if store == "file":
                assert run.cost.syncs >= 2 * count


def test_a_replayed_effect_costs_nothing(outside: Outside) -> None:
    saver = InMemorySaver()
    charge = charging(outside)

    def node(state: Any) -> Any:
        return {"log": [charge(1), interrupt("?"), charge(2)]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    bare = one(lambda state: {"log": [interrupt("?")]}, saver)
    bare.invoke({}, thread("bare"))
    run, plain = graph.run(Command(resume="!"), thread()), bare.run(Command(resume="!"), thread("bare"))
    assert run.value == {"log": ["1 #1", "!", "2 #2"]}
    assert run.cost.transactions == plain.cost.transactions + 2


def test_falsy_and_composite_receipts_count() -> None:
    saver = InMemorySaver()
    receipts: list[Any] = [None, 0, "", [], {}, False, (1, {"a": {2}})]
    calls: list[int] = []

    @effect
    def give(index: int, idempotency_key: str) -> Any:
        calls.append(index)
        return receipts[index]

    got: list[Any] = []

    def node(state: Any) -> Any:
        got.append([give(index) for index in range(len(receipts))])
        interrupt("?")
        return {}

    graph = one(node, saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume=1), thread())
    assert got == [receipts, receipts]
    assert calls == list(range(len(receipts)))


def test_what_cannot_be_stored_leaves_the_call_in_doubt(outside: Outside) -> None:
    saver = InMemorySaver()

    @effect(on_doubt="raise")
    def odd() -> Any:
        outside.act("odd", 1)
        return object()

    graph = one(lambda state: {"log": [odd()]}, saver)
    with pytest.raises(UnserializableValueError, match="receipt of odd"):
        graph.invoke({}, thread())
    assert statuses(saver) == ["doubt"]
    with pytest.raises(EffectInDoubtError, match="receipt of odd"):
        graph.invoke(None, thread())
    assert outside.times == {1: 1}


def test_arguments_that_cannot_be_stored_are_refused_before_anything_happens(outside: Outside) -> None:
    saver = InMemorySaver()

    @effect
    def charge(client: Any, amount: int, idempotency_key: str) -> str:
        return outside.act(idempotency_key, amount)

    with pytest.raises(UnserializableValueError, match="inputs of charge"):
        one(lambda state: {"log": [charge(object(), 1)]}, saver).invoke({}, thread())
    assert rows(saver) == []
    without = effect(exclude=["client"])(charge.func)
    assert one(lambda state: {"log": [without(object(), 1)]}, saver).invoke({}, thread("u")) == {"log": ["1 #1"]}


def test_without_a_checkpointer_an_effect_is_refused(outside: Outside) -> None:
    with pytest.raises(NoCheckpointerError, match="effect 'charge' needs a checkpointer"):
        one(paying(charging(outside)), None).invoke({})
    assert outside.asked == []


def test_arguments_that_do_not_fit_are_an_error_of_the_call(outside: Outside) -> None:
    saver = InMemorySaver()
    charge = charging(outside)
    with pytest.raises(TypeError, match=r"charge\(\): missing a required argument: 'amount'"):
        one(lambda state: charge(), saver).invoke({}, thread())
    with pytest.raises(TypeError, match=r"charge\(\) gets its idempotency_key from the engine"):
        one(lambda state: charge(1, idempotency_key="mine"), saver).invoke({}, thread("u"))
    assert rows(saver) == []


# -- where it is called -----------------------------------------------------------------------------------------------


def test_effects_in_loops_have_a_key_each(call: Call, outside: Outside) -> None:
    charge = charging(outside)
    graph = one(lambda state: {"log": [charge(1) for _ in range(3)]}, InMemorySaver())
    assert call(graph, {}, thread()) == {"log": ["1 #1", "1 #2", "1 #3"]}


def test_effects_in_a_loop_of_the_graph_have_a_key_each_round(call: Call, outside: Outside) -> None:
    charge = charging(outside)
    graph = StateGraph(Log).add_node("pay", lambda state: {"log": [charge(1)]}).add_edge(START, "pay")
    graph.add_conditional_edges("pay", lambda state: "pay" if len(state["log"]) < 3 else END, ["pay", END])
    assert call(graph.compile(checkpointer=InMemorySaver()), {}, thread()) == {"log": ["1 #1", "1 #2", "1 #3"]}


def test_gathered_effects_keep_their_receipts(outside: Outside) -> None:
    saver = InMemorySaver()
    charge = acharging(outside)

    async def node(state: Any) -> Any:
        receipts = await asyncio.gather(*(charge(amount) for amount in (1, 2, 1)))
        return {"log": [*receipts, interrupt("?")]}

    graph = one(node, saver)
    asyncio.run(graph.ainvoke({}, thread()))
    first = dict(zip(outside.keys, outside.done.values(), strict=True))
    result = asyncio.run(graph.ainvoke(Command(resume="!"), thread()))
    assert sorted(result["log"][:3]) == sorted(first.values())
    assert outside.times == {1: 2, 2: 1}


def test_effects_in_helper_threads_keep_their_receipts(outside: Outside) -> None:
    import contextvars

    saver = InMemorySaver()
    charge = charging(outside)

    def node(state: Any) -> Any:
        got: dict[int, str] = {}
        contexts = [(contextvars.copy_context(), amount) for amount in (1, 2)]
        threads = [
            threading.Thread(target=context.run, args=(lambda amount=amount: got.update({amount: charge(amount)}),))
            for context, amount in contexts
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return {"log": [got[1], got[2], interrupt("?")]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    result = graph.invoke(Command(resume="!"), thread())
    assert {text.split()[0] for text in result["log"][:2]} == {"1", "2"}
    assert outside.times == {1: 1, 2: 1}


def test_effects_nested_in_tasks_happen_once(outside: Outside) -> None:
    saver = InMemorySaver()
    charge = charging(outside)
    failures = [ValueError("once")]

    @task
    def order(amount: int) -> list[str]:
        receipts = [charge(amount), charge(amount)]
        if failures:
            raise failures.pop()
        return receipts

    graph = one(lambda state: {"log": order(7).result()}, saver)
    with pytest.raises(ValueError, match="once"):
        graph.invoke({}, thread())
    assert graph.invoke(None, thread()) == {"log": ["7 #1", "7 #2"]}
    assert outside.times == {7: 2}


def test_parallel_tasks_and_sends_have_a_key_each(call: Call, outside: Outside) -> None:
    charge = charging(outside)
    graph = StateGraph(Log).add_node("s", lambda arg: {"log": [charge(arg)]})
    graph.add_conditional_edges(START, lambda state: [Send("s", 1), Send("s", 1), Send("s", 2)], ["s"])
    result = call(graph.compile(checkpointer=InMemorySaver()), {}, thread())
    assert sorted(result["log"]) == sorted(outside.done.values())
    assert outside.times == {1: 2, 2: 1}


# -- what fails -------------------------------------------------------------------------------------------------------


def test_what_was_not_performed_is_raised_and_performed_when_the_node_runs_again(call: Call, outside: Outside) -> None:
    saver = InMemorySaver()
    outside.refusals = [ConnectionRefusedError("nobody there"), EffectNotPerformed("no credit")]
    graph = one(paying(charging(outside, on_doubt="raise")), saver)
    with pytest.raises(ConnectionRefusedError, match="nobody there"):
        call(graph, {}, thread())
    assert statuses(saver) == ["failed"]
    with pytest.raises(EffectNotPerformed, match="no credit"):
        call(graph, None, thread())
    assert call(graph, None, thread()) == {"log": ["5 #1"]}
    assert rows(saver)[0].attempts == 3


@pytest.mark.parametrize("error", [ConnectionRefusedError("no"), EffectNotPerformed("no")])
def test_a_failure_that_the_node_went_on_from_is_told_again_when_it_runs_again(
    outside: Outside, error: Exception
) -> None:
    """Otherwise it would pay here as well, having paid there."""
    saver = InMemorySaver()
    outside.refusals = [error]
    first, second = charging(outside, name="first"), charging(outside, name="second")

    def node(state: Any) -> Any:
        try:
            receipt = first(1)
        except type(error):
            receipt = second(2)
        return {"log": [receipt, interrupt("?")]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    assert graph.invoke(Command(resume="!"), thread()) == {"log": ["2 #1", "!"]}
    assert outside.times == {2: 1}


def test_an_exception_leaves_it_in_doubt(call: Call, outside: Outside) -> None:
    saver = InMemorySaver()
    outside.losses = [OSError("connection lost")]
    graph = one(paying(charging(outside, on_doubt="raise")), saver)
    with pytest.raises(EffectInDoubtError, match="connection lost") as caught:
        call(graph, {}, thread())
    assert isinstance(caught.value.__cause__, OSError)
    assert statuses(saver) == ["doubt"]
    with pytest.raises(EffectInDoubtError, match="connection lost"):
        call(graph, None, thread())
    assert outside.times == {5: 1}


@pytest.mark.parametrize("charging", [charging, acharging])
def test_a_doubt_is_retried_under_the_same_key(call: Call, outside: Outside, charging: Any) -> None:
    saver = InMemorySaver()
    outside.losses = [ConnectionResetError("lost"), TimeoutError("again")]
    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3)
    graph = one(paying(charging(outside, retry_policy=policy)), saver)
    assert call(graph, {}, thread()) == {"log": ["5 #1"]}
    assert len(outside.asked) == 3
    assert len(set(outside.keys)) == 1
    assert (rows(saver)[0].status, rows(saver)[0].attempts) == ("done", 3)


def test_a_retry_policy_does_not_repeat_a_doubt_that_must_not_be(outside: Outside) -> None:
    saver = InMemorySaver()
    outside.refusals, outside.losses = [ConnectionRefusedError("no")], [OSError("lost")]
    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=5)
    graph = one(paying(charging(outside, on_doubt="raise", retry_policy=policy)), saver)
    with pytest.raises(EffectInDoubtError, match="lost"):
        graph.invoke({}, thread())
    assert outside.times == {5: 1}
    assert rows(saver)[0].attempts == 2


def test_fails_on_says_which_exceptions_mean_that_nothing_happened(outside: Outside) -> None:
    class Declined(Exception):
        pass

    def by_text(error: BaseException) -> bool:
        return "declined" in str(error)

    for number, fails_on in enumerate([Declined, (KeyError, Declined), by_text]):
        saver = InMemorySaver()
        outside.refusals = [Declined("declined")]
        graph = one(paying(charging(outside, on_doubt="raise", fails_on=fails_on)), saver)
        with pytest.raises(Declined):
            graph.invoke({}, thread(str(number)))
        assert statuses(saver) == ["failed"]
