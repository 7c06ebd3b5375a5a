"""Guards that are often missing around effects, one test each."""

from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    EffectInDoubtError,
    IdempotencyConflictError,
    IncompatibleGraphError,
    InMemorySaver,
    NoCheckpointerError,
    NonDeterminismError,
    RetryPolicy,
    Runtime,
    StateGraph,
    interrupt,
    points,
    task,
    wrap_tool,
)
from stepwell.runtime.effects.decorator import registered
from stepwell.testing import FakeClock, SimulatedCrash
from tests.effects.acting import DURABILITIES, Outside, one, statuses
from tests.effects.test_life import charging
from tests.runtime.conftest import call as call
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Log, note, thread


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.mark.parametrize("durability", DURABILITIES)
def test_duplicate_notification(call: Call, outside: Outside, durability: str) -> None:
    """The first send succeeded and its acknowledgement was lost: the retry of the node sends under the same key, and
    who honours keys is told once."""
    outside.losses = [ConnectionResetError("no acknowledgement")]
    send = charging(outside, name="send")
    policy = RetryPolicy(initial_interval=0.0, jitter=False)
    graph = one(lambda state: {"log": [send("hello")]}, InMemorySaver(), retry_policy=policy)
    assert call(graph, {}, thread(), durability=durability) == {"log": ["hello #1"]}
    assert len(outside.asked) == 2
    assert len(outside.done) == 1


@pytest.mark.parametrize("scope", ["thread", "global"])
def test_key_collision(call: Call, outside: Outside, scope: str) -> None:
    """Two operations that got one key are told apart by what they do: the second is refused, not skipped."""
    saver = InMemorySaver()
    charge = charging(outside, key="weak", scope=scope)
    graph = one(lambda state: {"log": [charge(1), charge(2)]}, saver)
    with pytest.raises(IdempotencyConflictError, match=r"Key 'weak' of effect 'charge'.*amount=2") as caught:
        call(graph, {}, thread())
    assert caught.value.fields()["key"] == outside.keys[0]
    assert outside.times == {1: 1}
    refund = charging(outside, name="refund", key="weak", scope=scope)
    with pytest.raises(IdempotencyConflictError):
        call(one(lambda state: {"log": [refund(1)]}, saver), {}, thread(), on_pending="discard")


def test_non_determinism(outside: Outside) -> None:
    """What a node did not put into a step differs when it runs again: the other call is refused, both are shown."""
    dice = iter([1, 2])
    charge = charging(outside)
    graph = one(lambda state: {"log": [charge(next(dice)), interrupt("?")]}, InMemorySaver())
    graph.invoke({}, thread())
    with pytest.raises(NonDeterminismError, match=r"charge\(amount=1\), and is now called as charge\(amount=2\)"):
        graph.invoke(Command(resume="!"), thread())

    rolled = iter([1, 2])

    @task
    def roll() -> int:
        return next(rolled)

    steady = one(lambda state: {"log": [charge(roll().result()), interrupt("?")]}, InMemorySaver())
    steady.invoke({}, thread("steady"))
    assert steady.invoke(Command(resume="!"), thread("steady"))["log"] == ["1 #2", "!"]


def test_an_effect_under_another_name_is_another_effect_and_the_old_doubt_stays(outside: Outside) -> None:
    """A function renamed while its call is in doubt happens anew, under another key; under its old name it goes on."""
    saver = InMemorySaver()
    for name, asked in (("thread", "bill"), ("kept", "charge")):
        outside.losses = [TimeoutError("no answer")]
        with pytest.raises(TimeoutError):
            one(lambda state: {"log": [charging(outside)(1)]}, saver).invoke({}, thread(name))
        renamed = charging(outside, name=asked)
        one(lambda state, renamed=renamed: {"log": [renamed(1)]}, saver).invoke(None, thread(name))
    assert sorted(statuses(saver, "thread")) == ["done", "doubt"]
    assert statuses(saver, "kept") == ["done"]
    lost, anew, first, again = outside.keys
    assert lost != anew
    assert first == again


def test_a_doubt_about_an_effect_that_nothing_declares_is_not_gone_on_with(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lacks the effect calls something else in its place: it is told before anything runs."""
    saver = InMemorySaver()
    outside.losses = [TimeoutError("no answer")]
    charge = charging(outside, name="only here")
    graph = one(lambda state: {"log": [charge(1)]}, saver)
    with pytest.raises(TimeoutError):
        graph.invoke({}, thread())
    with monkeypatch.context() as another_process:
        another_process.delitem(registered, "only here")
        with pytest.raises(IncompatibleGraphError, match=r"effect 'only here'.*resolve_effect") as caught:
            graph.invoke(None, thread())
    assert caught.value.fields()["names"] == ["only here"]
    assert len(outside.asked) == 1
    assert graph.invoke(None, thread())["log"] == ["1 #1"]


def test_thread_id_collision(outside: Outside) -> None:
    """Threads whose ids, nodes and keys run together when they are joined have keys of their own."""
    saver = InMemorySaver()
    places = [("a", "bc", ""), ("ab", "c", ""), ("a", "b", "c"), ("ab", "x", "c"), ("a", "x", "bc")]
    for thread_id, node, user_key in places:
        charge = charging(outside, **({"key": user_key} if user_key else {}))
        graph = StateGraph(Log).add_node(node, lambda state, charge=charge: {"log": [charge(1)]}).add_edge(START, node)
        graph.compile(checkpointer=saver, name="one graph").invoke({}, thread(thread_id))
    assert len(set(outside.keys)) == len(outside.done) == len(places)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_interrupt_under_exit(call: Call, outside: Outside, durability: str) -> None:
    """A pause in the mode that writes last: what happened before the question is on disk, and happens once."""
    deaths = Deaths()
    saver = Saver(deaths.clock)
    charge = charging(outside)

    def node(state: Any) -> Any:
        return {"log": [charge(1), interrupt("?"), charge(2)]}

    graph = StateGraph(Log).add_node("first", note("first")).add_node("n", node)
    compiled = graph.add_edge(START, "first").add_edge("first", "n").compile(checkpointer=saver)
    call(compiled, {}, thread(), durability=durability)
    deaths.dies_at(points.INTENT_DURABLE)
    with pytest.raises(SimulatedCrash):
        call(compiled, Command(resume="!"), thread(), durability=durability)
    deaths.revive()
    assert call(compiled, None, thread(), durability=durability) == {"log": ["first", "1 #1", "!", "2 #2"]}
    assert outside.times == {1: 1, 2: 1}
    assert list(saver.store.verify()) == []


# -- faults of the field ----------------------------------------------------------------------------------------------


def test_K5_finished_children_are_read_from_the_log_and_each_key_happens_once(outside: Outside) -> None:
    """Fault K5: three keyed children, the second fails for good; a reset to it runs it once and no other."""
    saver = InMemorySaver()
    child = charging(outside, key=lambda name: f"child {name}", on_doubt="raise")
    broken = [True]

    def node(state: Any) -> Any:
        receipts = [child("one")]
        if broken[0]:
            outside.refusals = [ConnectionRefusedError("for good")]
        return {"log": [*receipts, child("two"), child("three")]}

    graph = one(node, saver)
    for attempt in range(3):
        with pytest.raises(ConnectionRefusedError):
            graph.invoke({} if attempt == 0 else None, thread())
    broken[0] = False
    assert graph.retry(thread()) == {"log": ["one #1", "two #2", "three #3"]}
    assert outside.times == {"one": 1, "two": 1, "three": 1}


def test_Q4_effects_that_changed_places_say_what_was_recorded_and_how_to_go_on(outside: Outside) -> None:
    """Fault Q4: two effects are reordered between crash and resume."""
    deaths = Deaths()
    saver = Saver(deaths.clock)
    pay = charging(outside, name="step")

    def old(state: Any) -> Any:
        return {"log": [pay("reserve"), pay("charge")]}

    def new(state: Any) -> Any:
        return {"log": [pay("charge"), pay("reserve")]}

    deaths.dies_at(points.RECEIPT_DURABLE)
    with pytest.raises(SimulatedCrash):
        one(old, saver).invoke({}, thread())
    deaths.revive()
    with pytest.raises(NonDeterminismError) as caught:
        one(new, saver).invoke(None, thread())
    told = str(caught.value)
    assert "recorded as step(amount='reserve'), and is now called as step(amount='charge')" in told
    assert "Go on with the code that recorded it" in told
    assert "another effect, and happens beside the recorded one" in told
    assert "retry" not in told  # which keeps the key, and so meets the same record
    with pytest.raises(NonDeterminismError):
        one(new, saver).retry(thread(), tasks=["n"])
    assert caught.value.code == "non_determinism"
    assert caught.value.fields()["recorded_code"] == caught.value.fields()["called_code"] == pay.declared.step.code
    assert outside.times == {"reserve": 1}


@pytest.mark.parametrize(("choice", "times"), [("finish", 1), ("discard", 0)])
def test_L2_what_a_batch_finished_before_it_was_stopped_never_happens_again(
    outside: Outside, choice: str, times: int
) -> None:
    """Fault L2: a batch of three is stopped after two; the next message finishes it, or drops it on the record."""
    deaths = Deaths()
    saver = Saver(deaths.clock)
    charge = charging(outside, key=lambda name: name)
    graph = StateGraph(Log)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [charge(name)]}).add_edge(START, name)
    compiled = graph.compile(checkpointer=saver)
    one_by_one = thread(max_concurrency=1)
    deaths.dies_at(points.RECEIPT_DURABLE, nth=2)
    with pytest.raises(SimulatedCrash):
        compiled.invoke({}, one_by_one)
    deaths.revive()
    assert outside.times == {"a": 1, "b": 1}
    result = compiled.invoke({"log": ["next"]}, one_by_one, on_pending=choice)
    assert result["log"] == ["a #1", "b #2", "c #3"] * times + ["next", "a #1", "b #2", "c #3"]
    assert outside.times == {"a": 1, "b": 1, "c": 1}
    assert statuses(saver) == ["done"] * 3


def test_B8_a_loop_of_questions_performs_what_stands_between_them_once(call: Call, outside: Outside) -> None:
    """Fault B8: the answers "x", -1 and 7 take three resumes, and the notice before each question is sent once."""
    notify = charging(outside, name="notify")

    def node(state: Any) -> Any:
        round_ = 0
        while True:
            notify(f"question {round_}")
            answer = interrupt("a positive number?")
            if isinstance(answer, int) and answer > 0:
                return {"log": [str(answer)]}
            round_ += 1

    graph = one(node, InMemorySaver())
    call(graph, {}, thread())
    for answer in ("x", -1):
        assert "__interrupt__" in call(graph, Command(resume=answer), thread())
    assert call(graph, Command(resume=7), thread()) == {"log": ["7"]}
    assert outside.times == {"question 0": 1, "question 1": 1, "question 2": 1}


def test_C1_an_approved_call_is_executed_once_though_two_paths_lead_to_it(outside: Outside) -> None:
    """Fault C1: an approval, then a tool node that is reached by two paths: one result for one call id."""
    saver = InMemorySaver()
    tool = charging(outside, name="tool", key=lambda call_id: call_id)

    def approve(state: Any) -> Any:
        return Command(goto="tools") if interrupt("run it?") else {}

    graph = StateGraph(Log).add_node("approve", approve, destinations=("tools",))
    graph.add_node("tools", lambda state: {"log": [tool("call-1")]})
    graph.add_edge(START, "approve").add_edge("approve", "tools")
    compiled = graph.compile(checkpointer=saver)
    compiled.invoke({}, thread())
    compiled.invoke(Command(resume=True), thread())
    assert outside.times == {"call-1": 1}
    assert statuses(saver) == ["done"]


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_node_has_a_key_of_its_own_for_calls_by_hand(call: Call, durability: str) -> None:
    saver, keys = InMemorySaver(), []

    def node(state: Any, runtime: Runtime) -> Any:  # type: ignore[type-arg]
        keys.append(runtime.idempotency_key)
        if len(keys) == 1:
            raise ValueError("once")
        return {"log": [interrupt("?")]}

    graph = one(node, saver)
    with pytest.raises(ValueError, match="once"):
        call(graph, {}, thread(), durability=durability)
    call(graph, None, thread(), durability=durability)
    call(graph, Command(resume="!"), thread(), durability=durability)
    assert len(set(keys)) == 1
    call(graph, {}, thread(), durability=durability)
    assert len(set(keys)) == 2
    place = [state.config for state in graph.get_state_history(thread()) if state.next == ("n",)][-1]
    call(graph, None, graph.fork(place))
    assert len(set(keys)) == 3


def test_without_a_checkpointer_there_is_no_key() -> None:
    graph = one(lambda state, runtime: {"log": [runtime.idempotency_key]}, None)
    with pytest.raises(NoCheckpointerError, match=r"runtime\.idempotency_key"):
        graph.invoke({})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of graphs that are compiled from here on, set by hand."""
    made = FakeClock()
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", made)
    return made


def test_a_receipt_is_reused_for_as_long_as_it_is_valid(outside: Outside, clock: FakeClock) -> None:
    saver = Saver(clock)
    quote = charging(outside, valid_for=60)

    def node(state: Any) -> Any:
        return {"log": [quote("EUR"), interrupt("?"), interrupt("!")]}

    graph = one(node, saver)
    graph.invoke({}, thread())
    clock.advance(59)
    graph.invoke(Command(resume=1), thread())
    assert outside.times == {"EUR": 1}
    clock.advance(2)
    assert graph.invoke(Command(resume=2), thread())["log"] == ["EUR #2", 1, 2]
    assert len(set(outside.keys)) == 2
    assert statuses(saver) == ["done", "done"]


def test_a_doubt_does_not_become_too_old(outside: Outside, clock: FakeClock) -> None:
    saver = Saver(clock)
    outside.losses = [OSError("lost")]
    quote = charging(outside, valid_for=60, on_doubt="raise")
    graph = one(lambda state: {"log": [quote("EUR")]}, saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke({}, thread())
    clock.advance(10_000)
    with pytest.raises(EffectInDoubtError):
        graph.invoke(None, thread())
    assert outside.times == {"EUR": 1}


def test_a_tool_is_wrapped_without_being_changed(outside: Outside) -> None:
    class Client:
        def send(self, text: str, idempotency_key: str = "") -> str:
            return outside.act(idempotency_key, text)

    send = wrap_tool(Client().send, name="send", versions={"tool": "2"}, planned_action=lambda text: f"send {text}")
    graph = one(lambda state: {"log": [send("hello")]}, InMemorySaver())
    assert graph.invoke({}, thread()) == {"log": ["hello #1"]}
    assert send.name == "send"
