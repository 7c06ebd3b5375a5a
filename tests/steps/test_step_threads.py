"""Where sync steps run: on their caller's thread where it waits for them at once, else beside it, so many at a time."""

import operator
import threading
from concurrent.futures import wait
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import START, StateGraph, task
from stepwell.runtime.ports import SYNC_CALLS


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def run(node: Any, **config: Any) -> Any:
    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile().invoke({"log": []}, config)["log"]


def test_a_step_that_is_waited_for_at_once_runs_on_its_callers_thread() -> None:
    @task
    def where() -> int:
        return threading.get_ident()

    assert run(lambda state: {"log": [where().result() for _ in range(20)]}) == [threading.get_ident()] * 20


def test_a_step_runs_beside_a_caller_that_does_something_else() -> None:
    begun = threading.Event()

    @task
    def begins() -> None:
        begun.set()

    def node(state: Log) -> Any:
        future = begins()
        waited = begun.wait(30)
        return {"log": [waited, future.result()]}

    assert run(node) == [True, None]


def test_two_steps_run_beside_each_other() -> None:
    meeting = threading.Barrier(2)

    @task
    def meets() -> bool:
        return meeting.wait(30) >= 0

    def node(state: Log) -> Any:
        return {"log": [future.result() for future in [meets(), meets()]]}

    assert run(node) == [True, True]


@pytest.mark.parametrize("limit", [1, 3, None])
def test_no_more_steps_of_a_run_are_in_flight_than_max_concurrency_allows(limit: int | None) -> None:
    lock, counts = threading.Lock(), {"now": 0, "most": 0}

    @task
    def counted(number: int) -> int:
        with lock:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        with lock:
            counts["now"] -= 1
        return number

    def node(state: Log) -> Any:
        futures = [counted(number) for number in range(100)]
        return {"log": [future.result() for future in futures]}

    assert run(node, max_concurrency=limit) == list(range(100))
    assert counts["most"] <= (limit or 32) + 1  # the caller runs what it waits for itself


def test_steps_that_wait_for_steps_of_their_own_do_not_wait_for_ever() -> None:
    @task
    def inner(number: int) -> int:
        return number

    @task
    def outer(number: int) -> int:
        return sum(future.result() for future in [inner(n) for n in range(number)])

    def node(state: Log) -> Any:
        return {"log": [future.result() for future in [outer(number) for number in range(40)]]}

    assert run(node, max_concurrency=1) == [sum(range(number)) for number in range(40)]


@pytest.mark.parametrize("limit", [1, 2, None])
def test_steps_that_wait_for_those_within_them_leave_these_their_threads(limit: int | None) -> None:
    """`concurrent.futures.wait` runs no step itself: each needs a thread, however many of those around them wait."""
    count = (limit or SYNC_CALLS) + 1

    @task
    def inner(number: int) -> int:
        return number

    @task
    def outer(number: int) -> int:
        done, _ = wait([inner(number), inner(number)], 30)
        return len(done)

    def node(state: Log) -> Any:
        steps = [outer(number) for number in range(count)]
        done, _ = wait(steps, 30)
        return {"log": [len(done), {step.result() for step in steps}]}

    assert run(node, max_concurrency=limit) == [count, {2}]
