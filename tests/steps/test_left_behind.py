"""Writes that `async` leaves behind: each is on its way to the disk as soon as it is queued, whoever waits for what.

Left to a later write, they would land only with that, and a step that waits for the write ahead of it would wait for
ever: nothing else of its run may come to be written.
"""

import threading
from typing import Any

import pytest

from stepwell import NodeTimeoutError, RetryPolicy, SqliteSaver, effect, task
from stepwell.runtime.scope import current
from stepwell.superstep import lifecycle
from tests.runtime.graphs import Call
from tests.steps.nodes import CONFIG, Log, siblings

ONCE_MORE = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)


@task
def step(name: str) -> str:
    return name


@pytest.fixture
def quiet_saver(sqlite_saver: SqliteSaver) -> SqliteSaver:
    """Return a saver whose leases need no renewal: that would be a write, and take along what waits."""
    sqlite_saver.store.renew = lambda *_: True  # type: ignore[method-assign]
    return sqlite_saver


def recorded(saver: SqliteSaver, kind: str) -> list[str]:
    """Return the ids of the tasks that records of this kind are of."""
    with saver.store.reading() as reader:
        return [row.task_id for row in reader.records_of_kind("t", kind)]


def beside_a_failed_attempt(saver: SqliteSaver, node: Any) -> Any:
    """Return a graph whose `node` begins when an attempt of its sibling has failed and been noted, and ends first."""
    tried, again, over = iter([True, False]), threading.Event(), threading.Event()

    def fails_once(state: Log) -> Any:
        if next(tried):
            raise ConnectionError
        again.set()
        assert over.wait(60)
        return {"log": ["once more"]}

    def follows(state: Log) -> Any:
        assert again.wait(60)
        found = node()
        over.set()
        return {"log": [found]}

    return siblings(saver, fails_once=(fails_once, {"retry_policy": ONCE_MORE}), follows=follows)


@pytest.mark.timeout(60)
def test_a_failed_attempt_that_async_leaves_behind_lands_while_its_run_only_waits(
    quiet_saver: SqliteSaver, call: Call
) -> None:
    def node() -> str:
        while not recorded(quiet_saver, lifecycle.ATTEMPT):
            pass
        return "seen"

    graph = beside_a_failed_attempt(quiet_saver, node)
    assert call(graph, {"log": []}, CONFIG, durability="async")["log"] == ["once more", "seen"]


@pytest.mark.timeout(60)
def test_a_step_does_not_wait_for_ever_behind_an_attempt_that_async_left_behind(
    quiet_saver: SqliteSaver, call: Call
) -> None:
    graph = beside_a_failed_attempt(quiet_saver, lambda: [step(name).result() for name in "ab"])
    assert call(graph, {"log": []}, CONFIG, durability="async")["log"] == ["once more", ["a", "b"]]


@pytest.mark.timeout(60)
def test_a_late_receipt_taken_along_by_a_step_that_async_leaves_behind_lands_while_its_run_only_waits(
    quiet_saver: SqliteSaver,
) -> None:
    given_up = threading.Event()

    @effect(on_doubt="raise")
    def pay() -> str:
        assert given_up.wait(60)
        return "paid"

    def pays(state: Log) -> Any:
        return {"log": [pay()]}

    def steps(state: Log) -> Any:
        while not pays_is_given_up():
            pass
        given_up.set()
        while recorded(quiet_saver, lifecycle.INTENT) and not recorded(quiet_saver, lifecycle.RECEIPT):
            step("takes it along").result()
        return {"log": ["settled"]}

    def pays_is_given_up() -> bool:
        scope: Any = current.get()
        return any(outcome is not None for outcome in scope.owner.base.outcomes)

    timeout = 0.05
    while not recorded(quiet_saver, lifecycle.INTENT):  # on a slow machine the time is over before the body begins
        given_up.clear()
        graph = siblings(quiet_saver, pays=(pays, {"timeout": timeout}), steps=steps)
        with pytest.raises(NodeTimeoutError):
            graph.invoke({"log": []}, CONFIG, durability="async")
        timeout *= 4
    [intent] = recorded(quiet_saver, lifecycle.INTENT)
    assert recorded(quiet_saver, lifecycle.RECEIPT) == [intent]
