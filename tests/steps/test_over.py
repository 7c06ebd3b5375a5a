"""When a piece of code is over that has started steps: however it leaves, and what comes too late (INV-4)."""

import asyncio
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from stepwell import (
    Command,
    InMemorySaver,
    NodeTimeoutError,
    RetryPolicy,
    SqliteSaver,
    StepOverError,
    StoreError,
    interrupt,
    points,
    task,
)
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import failing_at
from tests.runtime.graphs import Call
from tests.steps.nodes import CONFIG, Counted, Log, one_node, siblings

ONE_AT_A_TIME = {**CONFIG, "max_concurrency": 1}


def noted(calls: list[Any], name: str, wait: Callable[[], Any] = lambda: None) -> Any:
    """Return a sync step that notes its name, and waits."""

    def step() -> str:
        calls.append(name)
        wait()
        return name

    return task(step, name=name)


# -- a node that pauses or fails --------------------------------------------------------------------------------------


def test_B10_steps_beside_one_that_asks_run_to_their_end_and_ask_as_well(saver: SqliteSaver, call: Call) -> None:
    asked = asyncio.Event()
    calls = []

    @task
    async def first() -> Any:
        try:
            return interrupt("first")
        finally:
            asked.set()

    @task
    async def second() -> Any:
        await asked.wait()
        return interrupt("second")

    @task
    async def works() -> str:
        calls.append("works")
        await asked.wait()
        return "done"

    async def node(state: Log) -> Any:
        asked.clear()
        return {"log": await asyncio.gather(first(), second(), works())}

    graph = one_node(node, saver)
    questions = call(graph, {"log": []}, CONFIG)["__interrupt__"]
    assert sorted(question.value for question in questions) == ["first", "second"]
    answers = {question.id: question.value for question in questions}
    assert call(graph, Command(resume=answers), CONFIG)["log"] == ["first", "second", "done"]
    assert calls == ["works"]


@pytest.mark.parametrize("is_async", [False, True])
def test_what_runs_beside_a_step_that_fails_its_node_is_recorded_and_not_called_again(
    is_async: bool, saver: SqliteSaver, call: Call
) -> None:
    begun, failed, calls = threading.Event(), threading.Event(), []
    fails = [True]

    @task
    def breaks() -> str:
        if fails.pop() if fails else False:
            raise ValueError("once")
        return "well"

    def waits() -> str:
        calls.append("works")
        begun.set()
        failed.wait()
        return "works"

    async def awaits() -> str:
        calls.append("works")
        while not failed.is_set():
            await asyncio.sleep(0)
        return "works"

    works = task(awaits if is_async else waits, name="works")

    def node(state: Log) -> Any:
        working = works()
        begun.wait()
        try:
            return {"log": [breaks().result(), working.result()]}
        finally:
            failed.set()

    async def anode(state: Log) -> Any:
        working = works()
        await asyncio.sleep(0)
        try:
            return {"log": [await breaks(), await working]}
        finally:
            failed.set()

    graph = one_node(anode if is_async else node, saver)
    with pytest.raises(ValueError, match="once"):
        call(graph, {"log": []}, CONFIG)
    assert call(graph, None, CONFIG)["log"] == ["well", "works"]
    assert calls == ["works"]


@pytest.mark.parametrize("is_async", [False, True])
def test_what_has_not_begun_when_the_node_fails_does_not_begin(is_async: bool, saver: SqliteSaver, call: Call) -> None:
    begun, failing, calls = threading.Event(), threading.Event(), list[str]()

    def begins() -> None:
        begun.set()
        failing.wait()

    first, second = noted(calls, "first", begins), noted(calls, "second")

    def node(state: Log) -> Any:
        first()
        second()
        begun.wait()
        failing.set()
        raise ValueError("no")

    async def anode(state: Log) -> Any:
        first()
        second()
        while not begun.is_set():
            await asyncio.sleep(0)
        failing.set()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        call(one_node(anode if is_async else node, saver), {"log": []}, ONE_AT_A_TIME)
    assert calls == ["first"]


def test_a_node_that_succeeds_while_its_caller_handles_an_error_waits_for_what_it_started(saver: SqliteSaver) -> None:
    goes_on, calls = threading.Event(), list[str]()
    first, second = noted(calls, "first", goes_on.wait), noted(calls, "second")

    def node(state: Log) -> Any:
        first()
        second()
        goes_on.set()
        return {"log": []}

    try:
        raise ValueError("of the caller")
    except ValueError:
        one_node(node, saver).invoke({"log": []}, ONE_AT_A_TIME)
    assert calls == ["first", "second"]


def test_a_step_is_over_when_the_steps_it_started_are(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    returned = threading.Event()

    @task
    def inner() -> str:
        returned.wait()
        steps.calls.append("inner")
        return "inner"

    @task
    def outer() -> str:
        inner()
        threading.Timer(0, returned.set).start()
        return "outer"

    @task
    async def aouter() -> str:
        steps.adouble(3)
        return "aouter"

    def node(state: Log) -> Any:
        return {"log": [outer().result(), aouter().result(), interrupt("?")]}

    graph = one_node(node, saver)
    call(graph, {"log": []}, CONFIG)
    assert steps.calls == ["inner", 3]
    assert call(graph, Command(resume=1), CONFIG)["log"] == ["outer", "aouter", 1]
    assert steps.calls == ["inner", 3]
    with saver.store.reading() as reader:
        assert len(list(reader.records_of_kind("t", "step"))) == 4


def test_what_interrupts_a_step_nobody_waits_for_ends_the_run(saver: SqliteSaver, call: Call) -> None:
    @task
    def dies() -> None:
        raise SimulatedCrash("here")

    @task
    async def adies() -> None:
        raise SimulatedCrash("here")

    def node(state: Log) -> Any:
        dies()
        return {"log": ["went on"]}

    async def anode(state: Log) -> Any:
        adies()
        return {"log": ["went on"]}

    for function in (node, anode):
        graph = one_node(function, saver)
        with pytest.raises(SimulatedCrash):
            call(graph, {"log": []}, CONFIG)
        assert graph.get_state(CONFIG).values == {"log": []}
        saver.delete_thread("t")


# -- cancellation -----------------------------------------------------------------------------------------------------


async def test_a_node_that_is_cancelled_while_it_waits_for_its_steps_leaves_none_running(sqlite_saver: Any) -> None:
    begun, cleaned = asyncio.Event(), list[str]()

    @task
    async def endless() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    async def node(state: Log) -> Any:
        endless()
        return {"log": ["returned"]}

    graph = one_node(node, sqlite_saver)
    running = asyncio.create_task(graph.ainvoke({"log": []}, CONFIG))
    await begun.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cleaned == ["cleaned"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with sqlite_saver.store.reading() as reader:
        assert reader.thread("t").status == "cancelled"


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_what_a_body_returned_is_recorded_whenever_the_cancellation_comes(
    durability: str, sqlite_saver: SqliteSaver
) -> None:
    """A cancellation at each turn of the loop: the body that is over is not called again."""
    for turn in range(30):
        ended: list[int] = []
        graph = one_node(three_steps(ended), sqlite_saver)
        config = {"configurable": {"thread_id": f"t{turn}"}}
        running = asyncio.create_task(graph.ainvoke({"log": []}, config, durability=durability))
        while not ended and not running.done():
            await asyncio.sleep(0)
        for _ in range(turn):
            await asyncio.sleep(0)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        over = list(ended)
        assert (await graph.ainvoke(None, config, durability=durability))["log"] == [0, 1, 2]
        assert ended == [0, 1, 2], f"cancelled {turn} turns on, when {over} were over"


def three_steps(ended: list[int]) -> Any:
    """Return a node with a step after the other, which note when they are over."""

    @task
    async def step(n: int) -> int:
        await asyncio.sleep(0)
        ended.append(n)
        return n

    async def node(state: Log) -> Any:
        return {"log": [await step(n) for n in range(3)]}

    return node


async def test_a_step_cancelled_before_it_began_leaves_nothing_behind(memory_saver: InMemorySaver) -> None:
    steps = Counted()

    async def node(state: Log) -> Any:
        steps.adouble(1).cancel()
        return {"log": [await steps.adouble(2)]}

    assert (await one_node(node, memory_saver).ainvoke({"log": []}, CONFIG))["log"] == [4]
    gc.collect()  # a coroutine that nobody awaited would be told of here
    assert steps.calls == [2]


def test_a_timed_out_step_takes_the_steps_within_it_along(saver: SqliteSaver, call: Call) -> None:
    cancelled = []

    @task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("inner")
            raise

    @task(timeout=0.01)
    async def outer() -> None:
        await asyncio.gather(endless(), asyncio.Event().wait())

    async def node(state: Log) -> Any:
        with pytest.raises(NodeTimeoutError, match="outer"):
            await outer()
        return {"log": list(cancelled)}

    assert call(one_node(node, saver), {"log": []}, CONFIG)["log"] == ["inner"]


# -- what comes too late ----------------------------------------------------------------------------------------------


def test_a_node_that_was_given_up_calls_no_step_any_more(saver: SqliteSaver) -> None:
    steps = Counted()
    goes_on, tried = threading.Event(), threading.Event()
    came = []

    def node(state: Log) -> Any:
        goes_on.wait()
        try:
            steps.double(1).result()
        except StepOverError as error:
            came.append(error.fields()["step_id"])
        tried.set()

    with pytest.raises(NodeTimeoutError):
        one_node(node, saver, timeout=0.01).invoke({"log": []}, CONFIG)
    goes_on.set()
    assert tried.wait(30)
    assert came == ["node/double/0"]
    assert steps.calls == []


async def test_a_thread_that_outlives_its_cancelled_run_calls_no_step_and_leaves_the_thread_free(saver: Any) -> None:
    steps = Counted()
    begun, goes_on, tried = threading.Event(), threading.Event(), threading.Event()
    came: list[BaseException] = []

    def node(state: Log) -> Any:
        begun.set()
        goes_on.wait()
        try:
            steps.double(1).result()
        except BaseException as error:
            came.append(error)
        tried.set()

    graph = one_node(node, saver)
    running = asyncio.create_task(graph.ainvoke({"log": []}, CONFIG))
    while not begun.is_set():
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    goes_on.set()
    assert tried.wait(30)
    assert [type(error) for error in came] == [StepOverError]
    assert steps.calls == []
    with saver.store.reading() as reader:
        row = reader.thread("t")
    assert (row.run_id, row.status) == ("", "cancelled")


def test_a_step_that_is_over_after_the_store_has_failed_its_run_changes_nothing(sqlite_saver: SqliteSaver) -> None:
    """Its run has given up what was not durable and has freed the thread: nothing of it is written any more."""
    working, goes_on, tried = threading.Event(), threading.Event(), threading.Event()
    came: list[BaseException] = []

    @task
    def works() -> None:
        working.set()
        goes_on.wait()

    def node(state: Log) -> Any:
        try:
            works().result()
        except BaseException as error:
            came.append(error)
        tried.set()

    @task
    def quick() -> None:
        points.hook = failing_at(1)  # from here on the disk is full, once

    def other(state: Log) -> Any:
        working.wait()
        quick().result()

    graph = siblings(sqlite_saver, node=node, other=other)
    try:
        with pytest.raises(StoreError, match="disk"):
            graph.invoke({"log": []}, CONFIG)
    finally:
        points.hook = None
    goes_on.set()
    assert tried.wait(30)
    assert [type(error) for error in came] == [StepOverError]
    with sqlite_saver.store.reading() as reader:
        row = reader.thread("t")
        assert row is not None
        assert (row.run_id, row.status) == ("", "failed")
        assert list(reader.records_of_kind("t", "step")) == []


def test_the_attempt_after_a_timeout_runs_its_steps_and_the_one_before_records_none(saver: SqliteSaver) -> None:
    steps = Counted()
    goes_on, attempts = threading.Event(), []

    @task
    def slow(attempt: int) -> int:
        steps.calls.append(attempt)
        if attempt == 0:
            goes_on.wait()
        return attempt

    def node(state: Log) -> Any:
        attempts.append(1)
        return {"log": [slow(0 if len(attempts) == 1 else 1).result()]}

    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph = one_node(node, saver, timeout=0.05, retry_policy=policy)
    assert graph.invoke({"log": []}, CONFIG)["log"] == [1]
    goes_on.set()
    assert steps.calls == [0, 1]
    with saver.store.reading() as reader:
        assert len(list(reader.records_of_kind("t", "step"))) == 1
