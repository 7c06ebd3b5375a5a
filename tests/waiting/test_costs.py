"""What waiting costs in transactions, counted exactly."""

from typing import Any

import pytest

from stepwell import points
from stepwell.testing import FakeClock
from tests.runtime.deaths import Saver
from tests.runtime.graphs import Call, chain, note, thread
from tests.waiting.nodes import expect, nap


@pytest.fixture
def spent(kept: Saver) -> Any:
    """Return a function that tells how many transactions were begun since it was last asked."""
    seen = [kept.store.counts.transactions]

    def since() -> int:
        seen.append(kept.store.counts.transactions)
        return seen[-1] - seen[-2]

    return since


def test_a_pause_costs_one_and_so_does_going_on(call: Call, kept: Saver, clock: FakeClock, spent: Any) -> None:
    """A run of one superstep costs two: its admission, and its end or its pause."""
    graph = chain(("nap", nap("nap", 60))).compile(checkpointer=kept)
    call(graph, {}, thread())
    assert spent() == 2
    call(graph, None, thread())
    assert spent() == 0
    clock.advance(60)
    call(graph, None, thread())
    assert spent() == 2


def test_a_signal_costs_one_to_send_and_one_to_take(call: Call, kept: Saver, any_durability: str, spent: Any) -> None:
    graph = chain(("a", note("a")), ("go", expect("go", "go"))).compile(checkpointer=kept)
    call(graph, {}, thread(), durability=any_durability)
    assert spent() == (2 if any_durability == "exit" else 3)
    graph.signal(thread(), "go", 1)
    assert spent() == 1
    call(graph, None, thread(), durability=any_durability)
    assert spent() == 3


def test_a_signal_that_is_there_already_is_registered_and_taken_in_one(
    call: Call, kept: Saver, any_durability: str, spent: Any
) -> None:
    graph = chain(("go", expect("go", "go", "go"))).compile(checkpointer=kept)
    graph.signal(thread(), "go", 1)
    graph.signal(thread(), "go", 2)
    assert spent() == 2
    call(graph, {}, thread(), durability=any_durability)
    assert spent() == 2 + 2


def test_a_timeout_is_recorded_before_the_node_is_told(kept: Saver, clock: FakeClock, spent: Any) -> None:
    graph = chain(("go", expect("go", "go", timeout=60))).compile(checkpointer=kept)
    graph.invoke({}, thread())
    clock.advance(60)
    assert spent() == 2
    graph.run(None, thread())
    assert spent() == 3


def test_a_short_sleep_costs_one(kept: Saver, clock: FakeClock, spent: Any) -> None:
    graph = chain(("nap", nap("nap", 0.01))).compile(checkpointer=kept)
    points.hook = lambda point: clock.advance(1) if point == points.WAIT_DURABLE else None
    try:
        assert graph.invoke({}, thread()) == {"log": ["nap"]}
    finally:
        points.hook = None
    assert spent() == 3
