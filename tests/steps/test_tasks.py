"""`@task`: calls inside a node that are recorded when they are over and not made again."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from stepwell import (
    Command,
    InMemorySaver,
    InvalidGraphError,
    NodeTimeoutError,
    NonDeterminismError,
    RetryPolicy,
    SqliteSaver,
    StepError,
    StepOverError,
    StoreError,
    UnserializableValueError,
    interrupt,
    points,
    task,
)
from stepwell.testing import SimulatedCrash, crash_at
from tests.runtime.deaths import Saver, failing_at
from tests.runtime.graphs import Call
from tests.steps.nodes import CONFIG, Counted, Log, one_node


def sync_node(steps: Counted, pause: bool) -> Any:
    def node(state: Log) -> Any:
        futures = [steps.double(n) for n in range(3)]
        later = steps.adouble(10)
        found = [future.result() for future in futures] + [later.result()]
        return {"log": [*found, interrupt("go on?") if pause else None]}

    return node


def async_node(steps: Counted, pause: bool) -> Any:
    async def node(state: Log) -> Any:
        found = await asyncio.gather(*(steps.adouble(n) for n in range(3)))
        found.append(await steps.double(10))
        return {"log": [*found, interrupt("go on?") if pause else None]}

    return node


NODES = pytest.mark.parametrize("make", [sync_node, async_node], ids=["sync-node", "async-node"])


@NODES
def test_a_node_that_runs_again_after_a_pause_gets_what_its_steps_returned(
    make: Any, saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    steps = Counted()
    graph = one_node(make(steps, pause=True), saver)
    call(graph, {"log": []}, CONFIG, durability=any_durability)
    assert sorted(steps.calls) == [0, 1, 2, 10]
    ended = call(graph, Command(resume="yes"), CONFIG, durability=any_durability)
    assert ended["log"] == [0, 2, 4, 20, "yes"]
    assert sorted(steps.calls) == [0, 1, 2, 10]


@NODES
def test_steps_need_no_checkpointer(make: Any, call: Call) -> None:
    steps = Counted()
    assert call(one_node(make(steps, pause=False), None), {"log": []})["log"] == [0, 2, 4, 20, None]


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False])
def test_what_is_false_is_a_result_too(value: Any, saver: SqliteSaver) -> None:
    calls = []

    @task
    def step() -> Any:
        calls.append(value)
        return value

    def node(state: Log) -> Any:
        return {"log": [step().result(), interrupt("?")]}

    graph = one_node(node, saver)
    graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(Command(resume=1), CONFIG)["log"] == [value, 1]
    assert calls == [value]


def test_a_step_that_was_recorded_is_not_called_again_after_a_crash(deaths: Any) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        return {"log": [steps.double(1).result(), steps.double(2).result()]}

    with Saver(deaths.clock) as saver:
        graph = one_node(node, saver)
        deaths.dies_at(points.STEP_RECORDED)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        assert graph.invoke(None, CONFIG)["log"] == [2, 4]
        assert steps.calls == [1, 2]


def test_a_step_costs_one_transaction_and_none_in_exit_mode(saver: SqliteSaver, any_durability: str) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        return {"log": [steps.double(n).result() for n in range(10)]}

    before = saver.store.counts.transactions
    one_node(node, saver).invoke({"log": []}, CONFIG, durability=any_durability)
    assert saver.store.counts.transactions - before == {"sync": 12, "async": 12, "exit": 2}[any_durability]


def test_steps_that_finish_in_the_same_turn_of_a_loop_share_a_transaction(saver: SqliteSaver) -> None:
    steps = Counted()

    async def node(state: Log) -> Any:
        return {"log": await asyncio.gather(*(steps.adouble(n) for n in range(100)))}

    before = saver.store.counts.transactions
    asyncio.run(one_node(node, saver).ainvoke({"log": []}, CONFIG))
    memory = isinstance(saver, InMemorySaver)
    assert saver.store.counts.transactions - before == (102 if memory else 3)


def test_what_a_step_raised_is_raised_again_as_recorded(saver: SqliteSaver) -> None:
    calls = []

    class Unlisted(Exception):
        pass

    @task
    def fails(kind: str) -> None:
        calls.append(kind)
        raise ValueError("no", 7) if kind == "builtin" else Unlisted("never mind")

    def node(state: Log) -> Any:
        with pytest.raises(ValueError) as first:
            fails("builtin").result()
        with pytest.raises((Unlisted, StepError)) as second:
            fails("other").result()
        return {"log": [first.value.args, type(second.value).__name__, interrupt("?")]}

    graph = one_node(node, saver)
    graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(Command(resume=1), CONFIG)["log"] == [("no", 7), "StepError", 1]
    assert calls == ["builtin", "other"]


def test_a_step_that_failed_its_node_is_called_anew_by_the_next_attempt_and_what_succeeded_is_not(
    saver: SqliteSaver, any_durability: str
) -> None:
    steps = Counted()
    fails = [True]

    @task
    def shaky() -> str:
        steps.calls.append("shaky")
        if fails.pop() if fails else False:
            raise ValueError("once")
        return "well"

    def node(state: Log) -> Any:
        return {"log": [steps.double(1).result(), shaky().result()]}

    graph = one_node(node, saver)
    with pytest.raises(ValueError, match="once"):
        graph.invoke({"log": []}, CONFIG, durability=any_durability)
    assert graph.invoke(None, CONFIG, durability=any_durability)["log"] == [2, "well"]
    assert steps.calls == [1, "shaky", "shaky"]


def test_a_step_is_tried_again_as_its_policy_says(saver: SqliteSaver, call: Call) -> None:
    calls = []

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, max_attempts=3))
    def shaky() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError("down")
        return len(calls)

    def node(state: Log) -> Any:
        return {"log": [shaky().result()]}

    assert call(one_node(node, saver), {"log": []}, CONFIG)["log"] == [3]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_step_that_takes_too_long_is_given_up(is_async: bool, saver: SqliteSaver, call: Call) -> None:
    never = threading.Event()

    async def aslow() -> None:
        await asyncio.Event().wait()

    step = task(aslow if is_async else lambda: never.wait(), name="slow", timeout=0.01)

    def node(state: Log) -> Any:
        with pytest.raises(NodeTimeoutError, match="slow"):
            step().result()
        return {"log": ["given up"]}

    assert call(one_node(node, saver), {"log": []}, CONFIG)["log"] == ["given up"]
    never.set()


def test_a_step_called_with_other_arguments_than_recorded_is_an_error_that_shows_both(saver: SqliteSaver) -> None:
    steps = Counted()
    numbers = [1]

    def node(state: Log) -> Any:
        return {"log": [steps.double(numbers[0]).result(), interrupt("?")]}

    graph = one_node(node, saver)
    graph.invoke({"log": []}, CONFIG)
    numbers[0] = 2
    with pytest.raises(NonDeterminismError, match=r"double\(1\).*double\(2\)") as caught:
        graph.invoke(Command(resume=1), CONFIG)
    assert caught.value.fields()["thread_id"] == "t"
    assert graph.retry(CONFIG, tasks=["node"])["log"] == [4, 1]  # the way on that the error names
    assert steps.calls == [1, 2]


def test_steps_within_steps_are_recorded_and_ask_for_their_node(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()

    @task
    def outer(value: int) -> Any:
        inner = steps.double(value).result()
        return [inner, interrupt("from within")]

    def node(state: Log) -> Any:
        return {"log": [outer(1).result()]}

    graph = one_node(node, saver)
    asked = call(graph, {"log": []}, CONFIG)["__interrupt__"]
    assert [question.value for question in asked] == ["from within"]
    assert call(graph, Command(resume="yes"), CONFIG)["log"] == [[2, "yes"]]
    assert steps.calls == [1]


def test_a_step_is_called_within_a_run_alone() -> None:
    with pytest.raises(RuntimeError, match="outside of a runnable context"):
        Counted().double(1)


@pytest.mark.parametrize(
    ("function", "options", "reason"),
    [
        ("price", {}, "A step is a function, not 'price'. Its options have names"),
        (len, {"name": ""}, "name of a step must be a text"),
        (len, {"name": 3}, "name of a step must be a text"),
        (len, {"retry_policy": "twice"}, "retry_policy is a RetryPolicy or a sequence of them"),
        (lambda: 1, {}, "a lambda has none: give name="),
    ],
)
def test_what_cannot_be_a_step_is_refused_where_it_is_declared(function: Any, options: Any, reason: str) -> None:
    with pytest.raises((InvalidGraphError, TypeError), match=reason):
        task(**options)(function)
    with pytest.raises((InvalidGraphError, TypeError), match=reason):
        task(function, **options)


def test_a_result_that_cannot_be_stored_fails_its_step(saver: SqliteSaver) -> None:
    @task
    def opens() -> Any:
        return threading.Lock()

    def node(state: Log) -> Any:
        return {"log": [opens().result()]}

    with pytest.raises(UnserializableValueError, match="result of opens"):
        one_node(node, saver).invoke({"log": []}, CONFIG)


def test_a_step_that_nobody_waited_for_is_no_result_and_the_error_says_why(saver: SqliteSaver) -> None:
    @task
    def double(n: int) -> int:
        return 2 * n

    with pytest.raises(UnserializableValueError, match=r"StepFuture.*: it has not been waited for"):
        one_node(lambda state: {"log": [double(1)]}, saver).invoke({"log": []}, CONFIG)


def test_a_node_is_over_when_the_steps_it_started_are(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        steps.double(1)
        steps.double(2)
        return {"log": ["returned"]}

    call(one_node(node, saver), {"log": []}, CONFIG)
    assert sorted(steps.calls) == [1, 2]


def test_what_comes_from_a_node_that_was_given_up_is_not_recorded(saver: SqliteSaver) -> None:
    steps = Counted()
    goes_on, came = threading.Event(), list[BaseException]()
    tried = threading.Event()

    def node(state: Log) -> Any:
        goes_on.wait()
        try:
            steps.double(1).result()
        except StepOverError as error:
            came.append(error)
        tried.set()

    graph = one_node(node, saver, timeout=0.01)
    with pytest.raises(NodeTimeoutError):
        graph.invoke({"log": []}, CONFIG)
    goes_on.set()
    assert tried.wait(30)
    assert [error.step_id for error in came] == ["node/double/0"]  # type: ignore[attr-defined]


def test_a_crash_before_the_record_calls_the_step_again(deaths: Any) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        return {"log": [steps.double(1).result()]}

    with Saver(deaths.clock) as saver:
        graph = one_node(node, saver)
        deaths.dies_at(points.WRITTEN, 2)
        with pytest.raises(SimulatedCrash):
            graph.invoke({"log": []}, CONFIG)
        deaths.revive()
        assert graph.invoke(None, CONFIG)["log"] == [2]
        assert steps.calls == [1, 1]


def test_an_interruption_that_strikes_the_record_of_a_step_does_not_lose_it(saver: SqliteSaver) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        return {"log": [steps.double(1).result()]}

    graph = one_node(node, saver)
    with pytest.raises(SimulatedCrash), crash_at(points.WRITTEN, 2):
        graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(None, CONFIG)["log"] == [2]
    assert steps.calls == [1]


def test_a_failed_write_ends_the_run_also_where_the_node_hides_the_error(saver: SqliteSaver) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        with suppress(Exception):
            steps.double(1).result()
        return {"log": ["went on"]}

    graph = one_node(node, saver)
    points.hook = failing_at(2)
    try:
        with pytest.raises(StoreError, match="disk"):
            graph.invoke({"log": []}, CONFIG)
    finally:
        points.hook = None
    assert graph.get_state(CONFIG).next == ("node",)
    assert graph.invoke(None, CONFIG)["log"] == ["went on"]
    assert steps.calls == [1, 1]
