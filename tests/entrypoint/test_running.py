"""A workflow runs as any graph does: called each way, with what it asks for, to its end, a pause or a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stepwell import (
    Command,
    EmptyInputError,
    InMemorySaver,
    InvalidUpdateError,
    NodeTimeoutError,
    PendingWorkError,
    RetryPolicy,
    RunConflictError,
    Runtime,
    SqliteSaver,
    StreamWriter,
    entrypoint,
    interrupt,
)
from tests.runtime.graphs import Call, thread

THREAD = thread("t")


def later(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an async function that does the same."""

    async def called(value: Any, *, previous: Any = None) -> Any:
        await asyncio.sleep(0)
        return function(value, previous)

    return called


def now(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(value: Any, *, previous: Any = None) -> Any:
        return function(value, previous)

    return called


@pytest.fixture(params=[now, later], ids=["sync", "async"])
def declared(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of (input, previous) a sync one, then an async one."""
    made: Callable[[Callable[..., Any]], Callable[..., Any]] = request.param
    return made


def test_it_returns_what_the_function_returns(call: Call, declared: Any) -> None:
    graph = entrypoint()(declared(lambda value, previous: [value, previous]))
    values: tuple[Any, ...] = (1, 0, "", [], {}, {"a": 1}, False, ("x",))
    for value in values:
        assert call(graph, value) == [value, None]


def test_a_thread_gives_each_run_what_the_last_one_returned(saver: SqliteSaver, call: Call, declared: Any) -> None:
    graph = entrypoint(checkpointer=saver)(declared(lambda value, previous: [value, previous]))
    assert call(graph, 1, THREAD) == [1, None]
    assert call(graph, 2, THREAD) == [2, [1, None]]
    assert call(graph, 3, thread("other")) == [3, None]


def test_what_is_saved_may_differ_from_what_is_returned(saver: SqliteSaver, call: Call, declared: Any) -> None:
    def count(value: int, previous: int | None) -> Any:
        total = (previous or 0) + value
        return entrypoint.final(value=f"total {total}", save=total)

    graph = entrypoint(checkpointer=saver)(declared(count))
    assert [call(graph, number, THREAD) for number in (1, 2, 3)] == ["total 1", "total 3", "total 6"]
    assert graph.get_state(THREAD).values == "total 6"


def test_a_plain_return_after_a_saved_value_is_the_next_previous(memory_saver: InMemorySaver) -> None:
    @entrypoint(checkpointer=memory_saver)
    def keep(value: int, *, previous: Any) -> Any:
        return entrypoint.final(value=None, save="saved") if value == 1 else previous

    assert [keep.invoke(number, THREAD) for number in (1, 2, 3)] == [None, "saved", "saved"]


def test_without_a_checkpointer_nothing_is_previous(call: Call, declared: Any) -> None:
    graph = entrypoint()(declared(lambda value, previous: previous))
    assert [call(graph, 1), call(graph, 2)] == [None, None]


@dataclass
class Tone:
    warm: bool


def test_it_gets_what_it_asks_for(memory_saver: InMemorySaver, call: Call) -> None:
    @entrypoint(checkpointer=memory_saver, context_schema=Tone, store="a store")
    def greet(
        name: str, *, previous: Any, config: dict[str, Any], runtime: Runtime[Tone], writer: StreamWriter, store: Any
    ) -> dict[str, Any]:
        writer("hello")
        return {
            "name": name,
            "before": (previous or {}).get("name"),
            "same": runtime.previous is previous,
            "thread": config["configurable"]["thread_id"],
            "warm": runtime.context.warm,
            "store": store,
        }

    wanted = {"same": True, "thread": "t", "warm": True, "store": "a store"}
    assert call(greet, "Ada", THREAD, context={"warm": True}) == {"name": "Ada", "before": None, **wanted}
    assert call(greet, "Bo", THREAD, context={"warm": True}) == {"name": "Bo", "before": "Ada", **wanted}


def test_nothing_to_continue_is_an_error(memory_saver: InMemorySaver, call: Call) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: value)
    with pytest.raises(EmptyInputError):
        call(graph, None, THREAD)
    with pytest.raises(EmptyInputError):
        call(graph, Command(), THREAD)
    with pytest.raises(EmptyInputError):
        call(entrypoint()(lambda value: value), Command())


def test_a_finished_workflow_continues_to_what_it_returned(memory_saver: InMemorySaver) -> None:
    calls: list[int] = []
    graph = entrypoint(checkpointer=memory_saver)(lambda value: calls.append(value) or "done")  # type: ignore[func-returns-value]
    assert graph.invoke(1, THREAD) == graph.invoke(None, THREAD) == "done"
    assert calls == [1]


@pytest.mark.parametrize("command", [Command(update={"__end__": 1}), Command(goto="ask"), Command(update=1, resume=2)])
def test_writing_into_it_from_outside_is_refused(memory_saver: InMemorySaver, command: Command[Any]) -> None:
    @entrypoint(checkpointer=memory_saver)
    def ask(value: Any) -> Any:
        return interrupt(value)

    with pytest.raises(InvalidUpdateError, match=r"takes no Command\(update=..., goto=...\)"):
        ask.invoke(command, THREAD)
    ask.invoke("?", THREAD)
    with pytest.raises(InvalidUpdateError, match=r"takes no Command\(update=..., goto=...\)"):
        ask.invoke(command, THREAD)
    assert ask.invoke(Command(resume="!"), THREAD) == "!"


def test_a_command_that_it_returns_is_a_value(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: Command(goto=value))
    assert graph.invoke("elsewhere", THREAD) == Command(goto="elsewhere")
    assert graph.get_state(THREAD).values == Command(goto="elsewhere")


def test_a_question_is_answered_once_and_the_function_runs_again(
    saver: SqliteSaver, call: Call, declared: Any, any_durability: Any
) -> None:
    started: list[Any] = []

    def ask(value: str, previous: Any) -> list[Any]:
        started.append(value)
        return [value, interrupt("first?"), interrupt("second?"), previous]

    graph = entrypoint(checkpointer=saver)(declared(ask))
    asked = call(graph, "x", THREAD, durability=any_durability)
    assert [question.value for question in asked["__interrupt__"]] == ["first?"]
    assert graph.get_state(THREAD).next == ("called",)
    asked = call(graph, Command(resume=1), THREAD, durability=any_durability)
    assert [question.value for question in asked["__interrupt__"]] == ["second?"]
    assert call(graph, Command(resume=2), THREAD, durability=any_durability) == ["x", 1, 2, None]
    assert started == ["x", "x", "x"]


def test_a_new_input_over_an_open_question_needs_a_word(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: [value, interrupt("?")])
    graph.invoke(1, THREAD)
    with pytest.raises(PendingWorkError):
        graph.invoke(2, THREAD)
    assert "__interrupt__" in graph.invoke(2, THREAD, on_pending="discard")
    assert graph.invoke(Command(resume="a"), THREAD) == [2, "a"]


def test_an_attempt_that_fails_is_repeated_as_its_policy_says(call: Call, declared: Any) -> None:
    attempts: list[int] = []

    def flaky(value: int, previous: Any) -> int:
        attempts.append(value)
        if len(attempts) < 3:
            raise ConnectionError("not yet")
        return len(attempts)

    policy = RetryPolicy(initial_interval=0, jitter=False)
    assert call(entrypoint(retry_policy=policy)(declared(flaky)), 7) == 3
    assert attempts == [7, 7, 7]


def test_a_failure_keeps_previous_and_the_input_for_the_next_try(
    saver: SqliteSaver, call: Call, any_durability: Any
) -> None:
    broken = [True]

    @entrypoint(checkpointer=saver)
    def work(value: int, *, previous: Any) -> list[Any]:
        if value == 2 and broken:
            raise ValueError("broken")
        return [value, previous]

    call(work, 1, THREAD, durability=any_durability)
    with pytest.raises(ValueError, match="broken"):
        call(work, 2, THREAD, durability=any_durability)
    assert work.get_state(THREAD).values == [1, None]
    broken.clear()
    assert work.retry(THREAD, durability=any_durability) == [2, [1, None]]


def test_a_run_that_takes_too_long_fails(call: Call) -> None:
    @entrypoint(timeout=0.01)
    async def slow(value: int) -> int:
        await asyncio.Event().wait()
        return value

    with pytest.raises(NodeTimeoutError):
        call(slow, 1)


def test_it_is_one_superstep(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: value)
    assert graph.invoke(1, {**THREAD, "recursion_limit": 1}) == 1
    assert graph.run(2, THREAD).steps == 1


def test_a_run_id_runs_once(memory_saver: InMemorySaver) -> None:
    calls: list[int] = []
    graph = entrypoint(checkpointer=memory_saver)(lambda value: calls.append(value) or value)  # type: ignore[func-returns-value]
    config = {**THREAD, "run_id": "r"}
    assert graph.invoke(1, config) == graph.invoke(1, config) == 1
    with pytest.raises(RunConflictError):
        graph.invoke(2, config)
    assert calls == [1]


def test_a_run_costs_two_transactions(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(lambda value: value)
    assert graph.run(1, THREAD).cost.transactions == 2
