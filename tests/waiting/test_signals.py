"""Signals: delivered once, in order, to one wait each, whether they come before, while or after it is asked for."""

from typing import Any

import pytest

from stepwell import (
    START,
    InvalidWaitError,
    MessageConflictError,
    NoCheckpointerError,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    WaitTimeoutError,
    points,
    wait_for,
)
from stepwell.testing import FakeClock
from tests.runtime.deaths import Saver
from tests.runtime.graphs import Call, Counted, Log, chain, fan, note, thread
from tests.waiting.nodes import expect, status, waiting


def test_a_signal_goes_on_with_the_thread_that_waits_for_it(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=saver)
    assert waiting(call(graph, {}, thread(), durability=any_durability))[0].until is None
    graph.signal(thread(), "go", 1)
    assert call(graph, None, thread(), durability=any_durability) == {"log": ["go=1"]}


@pytest.mark.parametrize("value", [None, 0, "", False, {"a": [1, 2]}, ("t", 1)])
def test_any_value_is_a_signal(kept: Saver, value: Any) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    graph.signal(thread(), "go", value)
    assert graph.invoke(None, thread()) == {"log": [f"go={value!r}"]}


def test_a_signal_sent_before_it_is_waited_for_is_delivered(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    graph = chain(("a", note("a")), ("go", expect("go", "go"))).compile(checkpointer=saver)
    graph.signal(thread(), "go", "early")
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["a", "go='early'"]}


def test_signals_of_a_key_are_delivered_in_the_order_in_which_they_were_sent(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("go", expect("go", "a", "b", "a", "a"))).compile(checkpointer=saver)
    for number, key in enumerate(["a", "a", "b", "a"]):
        graph.signal(thread(), key, number)
    assert call(graph, {}, thread()) == {"log": ["go=0", "go=2", "go=1", "go=3"]}


def test_each_signal_goes_to_one_of_those_that_wait(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("b", expect("b", "go")), ("a", expect("a", "go"))).compile(checkpointer=saver)
    assert len(waiting(call(graph, {}, thread()))) == 2
    graph.signal(thread(), "go", 1)
    left = call(graph, None, thread())
    assert (left["log"], len(waiting(left))) == (["a=1"], 1)
    graph.signal(thread(), "go", 2)
    assert call(graph, None, thread()) == {"log": ["a=1", "b=2"]}


def test_a_signal_that_nobody_waits_for_stays(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=saver)
    graph.signal(thread(), "other", 1)
    graph.signal(thread(), "go", 1)
    graph.signal(thread(), "go", 2)
    assert call(graph, {}, thread()) == {"log": ["go=1"]}
    with saver.store.reading() as reader:
        assert [row.key for row in reader.inbox("t")] == ["other", "go"]
    assert call(graph, {}, thread()) == {"log": ["go=1", "go=2"]}


def test_duplicate_notification_a_signal_sent_twice_under_its_id_is_delivered_once(
    call: Call, saver: SqliteSaver
) -> None:
    graph = chain(("go", expect("go", "go", "go"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    assert graph.signal(thread(), "go", 1, id="one") == graph.signal(thread(), "go", 1, id="one") == "one"
    assert waiting(call(graph, None, thread()))
    graph.signal(thread(), "go", 1, id="one")  # long after the first was delivered
    assert waiting(call(graph, None, thread()))
    graph.signal(thread(), "go", 2, id="two")
    assert call(graph, None, thread()) == {"log": ["go=1", "go=2"]}


def test_another_signal_under_a_known_id_is_refused(saver: SqliteSaver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=saver)
    graph.signal(thread(), "go", 1, id="one")
    with pytest.raises(MessageConflictError):
        graph.signal(thread(), "go", 2, id="one")
    with pytest.raises(MessageConflictError):
        graph.signal(thread(), "stop", 1, id="one")
    assert graph.invoke({}, thread()) == {"log": ["go=1"]}


def test_threads_do_not_hear_each_others_signals(saver: SqliteSaver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=saver)
    graph.signal(thread("u"), "go", 1)
    assert waiting(graph.invoke({}, thread("t")))
    assert graph.invoke({}, thread("u")) == {"log": ["go=1"]}


def test_a_signal_that_comes_while_the_run_waits_in_place_is_delivered(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    graph = chain(("go", expect("go", "go", timeout=1))).compile(checkpointer=saver)

    def hook(point: str) -> None:
        if point == points.WAIT_DURABLE:
            points.hook = None
            graph.signal(thread(), "go", 1)

    points.hook = hook
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["go=1"]}
    assert len(list(saver.runs("t"))) == 1


def test_a_node_may_signal_its_own_thread(call: Call, saver: SqliteSaver) -> None:
    def tell(state: Any) -> dict[str, list[str]]:
        graph.signal(thread(), "go", "self", id="told")
        return {"log": ["tell"]}

    graph = chain(("tell", tell), ("go", expect("go", "go"))).compile(checkpointer=saver)
    assert call(graph, {}, thread()) == {"log": ["tell", "go='self'"]}


async def test_signals_are_sent_from_a_loop(saver: SqliteSaver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=saver)
    await graph.ainvoke({}, thread())
    assert await graph.asignal(thread(), "go", 1, id="one") == "one"
    assert await graph.ainvoke(None, thread()) == {"log": ["go=1"]}


# -- timeouts ---------------------------------------------------------------------------------------------------------


def test_a_wait_ends_at_its_deadline(call: Call, kept: Saver, clock: FakeClock) -> None:
    def patient(state: Any) -> dict[str, list[str]]:
        try:
            return {"log": [wait_for("go", timeout=60)]}
        except WaitTimeoutError as error:
            return {"log": [f"{error.fields()['kind']} {error.fields()['key']} late"]}

    graph = chain(("patient", patient)).compile(checkpointer=kept)
    call(graph, {}, thread())
    clock.advance(60)
    assert call(graph, None, thread()) == {"log": ["signal go late"]}


def test_what_a_wait_gets_depends_on_when_it_was_sent_and_not_on_who_looks_when(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    graph = chain(("go", expect("go", "go", timeout=60))).compile(checkpointer=kept)
    for thread_id in ("in time", "late"):
        call(graph, {}, thread(thread_id))
    clock.advance(59)
    graph.signal(thread("in time"), "go", 1)
    clock.advance(2)
    graph.signal(thread("late"), "go", 1)
    clock.advance(3600)
    assert call(graph, None, thread("in time")) == {"log": ["go=1"]}
    with pytest.raises(WaitTimeoutError):
        call(graph, None, thread("late"))


def test_a_wait_that_came_to_nothing_stays_so_when_its_node_runs_again(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    """What a node was told once it is told again: it may have acted on it."""

    def node(state: Any) -> dict[str, list[str]]:
        try:
            first = wait_for("go", timeout=60)
        except WaitTimeoutError:
            first = "late"
        return {"log": [first, wait_for("then")]}

    graph = chain(("node", node)).compile(checkpointer=kept)
    call(graph, {}, thread())
    clock.advance(61)
    assert waiting(call(graph, None, thread()))[0].key == "then"
    graph.signal(thread(), "go", "now it comes")
    graph.signal(thread(), "then", 1)
    assert call(graph, None, thread()) == {"log": ["late", 1]}


def test_a_node_that_failed_by_a_timeout_waits_anew_when_it_is_retried(
    call: Call, kept: Saver, clock: FakeClock
) -> None:
    graph = chain(("go", expect("go", "a", "b", timeout=60))).compile(checkpointer=kept)
    call(graph, {}, thread())
    graph.signal(thread(), "a", 1)
    assert waiting(call(graph, None, thread()))[0].key == "b"
    clock.advance(61)
    with pytest.raises(WaitTimeoutError):
        call(graph, None, thread())
    assert status(graph) == "failed"
    assert waiting(call(graph, None, thread()))[0].key == "b"
    graph.signal(thread(), "b", 2)
    assert call(graph, None, thread()) == {"log": ["go=1", "go=2"]}


def test_a_retry_policy_gives_each_attempt_a_window_of_its_own(kept: Saver, clock: FakeClock) -> None:
    policy = RetryPolicy(initial_interval=0, retry_on=WaitTimeoutError)
    graph = StateGraph(Log).add_node("go", expect("go", "go", timeout=60), retry_policy=policy)
    compiled = graph.add_edge(START, "go").compile(checkpointer=kept)
    compiled.invoke({}, thread())
    clock.advance(61)
    assert waiting(compiled.invoke(None, thread()))[0].key == "go"


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", None, 5])
def test_a_key_is_text(kept: Saver, key: Any) -> None:
    graph = chain(("go", expect("go", key))).compile(checkpointer=kept)
    with pytest.raises(InvalidWaitError, match="key"):
        graph.signal(thread(), key, 1)
    with pytest.raises(InvalidWaitError, match="key"):
        graph.invoke({}, thread())


@pytest.mark.parametrize("id", ["", 5])
def test_an_id_is_text(kept: Saver, id: Any) -> None:
    with pytest.raises(InvalidWaitError, match="id of a signal"):
        chain(("go", expect("go", "go"))).compile(checkpointer=kept).signal(thread(), "go", 1, id=id)


def test_a_value_that_cannot_be_stored_is_refused_before_it_is_sent(kept: Saver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=kept)
    with pytest.raises(UnserializableValueError):
        graph.signal(thread(), "go", object())
    with kept.store.reading() as reader:
        assert reader.inbox("t") == []


def test_signals_need_a_checkpointer() -> None:
    with pytest.raises(NoCheckpointerError):
        chain(("go", expect("go", "go"))).compile().signal(thread(), "go")


def test_deleting_a_thread_drops_its_signals(kept: Saver) -> None:
    graph = chain(("go", expect("go", "go"))).compile(checkpointer=kept)
    graph.signal(thread(), "go", 1)
    kept.delete_thread("t")
    assert waiting(graph.invoke({}, thread()))


def test_a_node_is_called_once_for_each_wait_and_once_more(kept: Saver) -> None:
    node = Counted("go", expect("go", "a", "b"))
    graph = chain(("go", node)).compile(checkpointer=kept)
    graph.signal(thread(), "a")
    graph.signal(thread(), "b")
    graph.invoke({}, thread())
    assert node.calls == 3
