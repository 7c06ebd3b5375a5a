"""Steps that fail: what is recorded of it, what is raised again, and what is called anew."""

import asyncio
import itertools
from contextlib import suppress
from typing import Any

import pytest

from stepwell import (
    Command,
    LeaseLostError,
    NonDeterminismError,
    RetryPolicy,
    SqliteSaver,
    StepError,
    interrupt,
    points,
    register_type,
    task,
)
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call
from tests.steps.nodes import CONFIG, Counted, Log, one_node

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3, retry_on=ValueError)


class Shaky:
    """A step that raises as often as told. Notes its calls."""

    def __init__(self, failures: int, error: type[Exception] = ValueError) -> None:
        self.left = failures
        self.calls = 0
        self.step = task(self._step, name="shaky")
        self._error = error

    def _step(self) -> str:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise self._error("not yet")
        return "well"


class Refused(Exception):
    """An error whose type is registered."""


register_type(
    Refused, name="tests.steps.refused", dump=lambda error: list(error.args), load=lambda args: Refused(*args)
)


def test_an_error_of_a_registered_type_is_made_again(saver: SqliteSaver, call: Call) -> None:
    shaky = Shaky(1, Refused)

    def node(state: Log) -> Any:
        with pytest.raises(Refused, match="not yet"):
            shaky.step().result()
        return {"log": [interrupt("?")]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    assert call(graph, Command(resume=1), CONFIG)["log"] == [1]
    assert shaky.calls == 1


def test_an_error_no_future_may_raise_is_raised_as_a_step_error(saver: SqliteSaver, call: Call) -> None:
    @task
    def stops() -> None:
        raise StopIteration("enough")

    async def node(state: Log) -> Any:
        with pytest.raises((RuntimeError, StepError), match="StopIteration"):
            await stops()
        return {"log": [interrupt("?")]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    assert call(graph, Command(resume=1), CONFIG)["log"] == [1]


def test_a_step_that_is_tried_again_calls_anew_what_failed_within_it(
    saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    steps, shaky = Counted(), Shaky(1)

    @task(retry_policy=AT_ONCE)
    def outer() -> Any:
        return [steps.double(1).result(), shaky.step().result()]

    def node(state: Log) -> Any:
        return {"log": outer().result()}

    assert call(one_node(node, saver), {"log": []}, CONFIG, durability=any_durability)["log"] == [2, "well"]
    assert (steps.calls, shaky.calls) == ([1], 2)


def test_a_node_that_is_tried_again_calls_anew_what_failed_and_nothing_else(
    saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    steps, shaky = Counted(), Shaky(2)

    def node(state: Log) -> Any:
        return {"log": [steps.double(1).result(), shaky.step().result()]}

    graph = one_node(node, saver, retry_policy=AT_ONCE)
    assert call(graph, {"log": []}, CONFIG, durability=any_durability)["log"] == [2, "well"]
    assert (steps.calls, shaky.calls) == ([1], 3)


def test_what_failed_before_a_pause_in_the_attempt_before_is_called_anew(
    saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    """Also in `exit`, where all that stands on disk at the pause was held back until then."""
    shaky, attempts = Shaky(1), itertools.count()

    def node(state: Log) -> Any:
        answer = interrupt("?") if next(attempts) else None
        return {"log": [answer, shaky.step().result()]}

    graph = one_node(node, saver, retry_policy=AT_ONCE)
    call(graph, {"log": []}, CONFIG, durability=any_durability)
    assert call(graph, Command(resume="yes"), CONFIG, durability=any_durability)["log"] == ["yes", "well"]


def test_attempts_of_a_step_that_a_crash_cut_off_go_on_where_they_were(deaths: Deaths) -> None:
    shaky = Shaky(2)
    step = task(shaky._step, name="shaky", retry_policy=AT_ONCE)

    def node(state: Log) -> Any:
        return {"log": [step().result()]}

    with Saver(deaths.clock) as saver:
        graph = one_node(node, saver)
        deaths.dies_at(points.STEP_RECORDED, 2)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        shaky.left = 1
        with pytest.raises(ValueError, match="not yet"):  # the third attempt is the last
            graph.invoke(None, CONFIG)
        assert shaky.calls == 3


def test_a_node_that_hides_that_it_took_another_way_fails_all_the_same(saver: SqliteSaver, call: Call) -> None:
    steps, numbers = Counted(), itertools.count()

    def node(state: Log) -> Any:
        with suppress(RuntimeError):
            steps.double(next(numbers)).result()
        return {"log": [interrupt("?")]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    with pytest.raises(NonDeterminismError, match=r"double\(0\).*double\(1\)"):
        call(graph, Command(resume=1), CONFIG)
    assert graph.get_state(CONFIG).next == ("node",)


def test_ctrl_c_in_a_step_that_nobody_waits_for_stops_the_run(saver: SqliteSaver) -> None:
    calls = []

    @task
    def interrupted() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    def node(state: Log) -> Any:
        interrupted()
        return {"log": ["returned"]}

    graph = one_node(node, saver)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"log": []}, CONFIG)
    assert graph.get_state(CONFIG).next == ("node",)
    assert graph.invoke(None, CONFIG)["log"] == ["returned"]


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_lease_that_is_lost_while_a_step_runs_ends_the_run_and_nothing_of_it_is_kept(
    durability: str, sqlite_saver: SqliteSaver, call: Call
) -> None:
    """The thread is deleted, which takes it from whoever holds it."""

    @task
    def deletes() -> str:
        sqlite_saver.delete_thread("t")
        return "deleted"

    def node(state: Log) -> Any:
        with suppress(Exception):
            deletes().result()
        return {"log": ["went on"]}

    graph = one_node(node, sqlite_saver)
    with pytest.raises(LeaseLostError):
        call(graph, {"log": []}, CONFIG, durability=durability)
    assert graph.get_state(CONFIG).values == {}
    with sqlite_saver.store.reading() as reader:
        assert list(reader.records_of_kind("t", "step")) == []


async def test_a_failure_nobody_looks_at_is_on_record_and_no_complaint_of_asyncio(
    memory_saver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = Shaky(1)

    async def node(state: Log) -> Any:
        shaky.step()
        await asyncio.sleep(0)
        return {"log": ["fine"]}

    assert (await one_node(node, memory_saver).ainvoke({"log": []}, CONFIG))["log"] == ["fine"]
    assert shaky.calls == 1
    assert caplog.records == []
