"""Idle timeouts: an async node that shows no progress for too long is cancelled; what shows progress starts them anew.

Time is set by hand: a node lets it pass as it likes, and is in time or late by that.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

from stepwell import (
    START,
    Command,
    InvalidGraphError,
    InvalidUpdateError,
    NodeTimeoutError,
    RetryPolicy,
    Runtime,
    Send,
    SqliteSaver,
    StateGraph,
    TimeoutPolicy,
    get_runtime,
    get_stream_writer,
)
from stepwell.testing.clock import FakeClock
from tests.runtime.graphs import Call, Log, anote, note, thread

SHORT = 0.02
"""Seconds of the real clock: a node given this much never finishes here, so no test depends on how long it is."""

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False)
IDLE = TimeoutPolicy(idle_timeout=60)
STRICT = TimeoutPolicy(idle_timeout=60, refresh_on="heartbeat")

Signal = Callable[[Runtime[Any], RunnableConfig], Awaitable[None]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Return the clock that runs go by."""
    made = FakeClock()
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", made)
    return made


def limited(node: Any, timeout: Any = IDLE, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(Log).add_node("slow", node, timeout=timeout, **options).add_edge(START, "slow")


def working(clock: FakeClock, signal: Signal, seconds: float = 40) -> Any:
    """Return a node that works three times as long as told, showing progress after each third."""

    async def work(state: Log, runtime: Runtime[Any], config: RunnableConfig) -> dict[str, list[str]]:
        for _ in range(3):
            clock.advance(seconds)
            await signal(runtime, config)
        return {"log": ["done"]}

    return work


# -- what shows progress ----------------------------------------------------------------------------------------------


async def beats(runtime: Runtime[Any], config: RunnableConfig) -> None:
    runtime.heartbeat()


async def beats_by_the_context(runtime: Runtime[Any], config: RunnableConfig) -> None:
    get_runtime().heartbeat()


async def beats_on_a_thread(runtime: Runtime[Any], config: RunnableConfig) -> None:
    await asyncio.get_running_loop().run_in_executor(None, runtime.heartbeat)


async def writes(runtime: Runtime[Any], config: RunnableConfig) -> None:
    runtime.stream_writer("still here")


async def writes_by_the_context(runtime: Runtime[Any], config: RunnableConfig) -> None:
    get_stream_writer()("still here")


async def sends_a_message(runtime: Runtime[Any], config: RunnableConfig) -> None:
    runtime.stream_message({"role": "ai", "content": "still here"})


async def calls_langchain(runtime: Runtime[Any], config: RunnableConfig) -> None:
    await RunnableLambda(anote("inner")).ainvoke({})


async def calls_langchain_with_its_config(runtime: Runtime[Any], config: RunnableConfig) -> None:
    await RunnableLambda(anote("inner")).ainvoke({}, config)


async def runs_a_graph(runtime: Runtime[Any], config: RunnableConfig) -> None:
    await StateGraph(Log).add_node("inner", note("inner")).add_edge(START, "inner").compile().ainvoke({})


async def beats_inside_a_graph(runtime: Runtime[Any], config: RunnableConfig) -> None:
    def inner(state: Log, runtime: Runtime[Any]) -> None:
        runtime.heartbeat()

    await StateGraph(Log).add_node("inner", inner).add_edge(START, "inner").compile().ainvoke({})


HEARTBEATS: list[Signal] = [beats, beats_by_the_context, beats_on_a_thread, beats_inside_a_graph]
ACTIVITY: list[Signal] = [
    writes,
    writes_by_the_context,
    sends_a_message,
    calls_langchain,
    calls_langchain_with_its_config,
    runs_a_graph,
]


@pytest.mark.parametrize("signal", HEARTBEATS + ACTIVITY)
def test_progress_starts_the_idle_time_anew(signal: Signal, call: Call, clock: FakeClock) -> None:
    assert call(limited(working(clock, signal)).compile(), {}) == {"log": ["done"]}


@pytest.mark.parametrize("signal", HEARTBEATS)
def test_a_strict_idle_timeout_hears_heartbeats(signal: Signal, call: Call, clock: FakeClock) -> None:
    assert call(limited(working(clock, signal), STRICT).compile(), {}) == {"log": ["done"]}


@pytest.mark.parametrize("signal", ACTIVITY)
def test_a_strict_idle_timeout_hears_nothing_else(signal: Signal, call: Call, clock: FakeClock) -> None:
    with pytest.raises(NodeTimeoutError) as raised:
        call(limited(working(clock, signal), STRICT).compile(), {})
    assert (raised.value.kind, raised.value.elapsed) == ("idle", 60.0)


def test_progress_that_comes_too_late_saves_nothing(call: Call, clock: FakeClock) -> None:
    """The time is over when it is over, also where nobody has looked yet."""
    with pytest.raises(NodeTimeoutError) as raised:
        call(limited(working(clock, beats, seconds=61)).compile(), {})
    assert raised.value.elapsed == 60.0


def test_the_error_says_when_progress_ended(call: Call, clock: FakeClock) -> None:
    async def work(state: Log, runtime: Runtime[Any]) -> None:
        clock.advance(40)
        runtime.heartbeat()
        clock.advance(100)

    with pytest.raises(NodeTimeoutError, match=r"Node 'slow' exceeded its idle timeout of 60\.000s") as raised:
        call(limited(work, TimeoutPolicy(run_timeout=120, idle_timeout=60)).compile(), {})
    error = raised.value
    assert (error.kind, error.timeout, error.elapsed) == ("idle", 60.0, 100.0)
    assert (error.node, error.run_timeout, error.idle_timeout) == ("slow", 120.0, 60.0)


def test_no_progress_moves_the_run_timeout(call: Call, clock: FakeClock) -> None:
    with pytest.raises(NodeTimeoutError, match=r"its run timeout of 100\.000s") as raised:
        call(limited(working(clock, beats), TimeoutPolicy(run_timeout=100, idle_timeout=60)).compile(), {})
    error = raised.value
    assert (error.kind, error.timeout, error.elapsed) == ("run", 100.0, 100.0)
    assert (error.run_timeout, error.idle_timeout) == (100.0, 60.0)


def test_a_heartbeat_without_an_idle_timeout_does_nothing(call: Call) -> None:
    def node(state: Log, runtime: Runtime[Any]) -> dict[str, list[str]]:
        runtime.heartbeat()
        return {"log": ["done"]}

    assert call(StateGraph(Log).add_node("node", node).add_edge(START, "node").compile(), {}) == {"log": ["done"]}
    assert Runtime().merge(Runtime()) == Runtime()


def test_a_graph_that_is_a_node_makes_progress_with_each_of_its_tasks(call: Call, clock: FakeClock) -> None:
    def step(state: Log) -> dict[str, list[str]]:
        clock.advance(40)
        return {"log": ["step"]}

    inner = StateGraph(Log).add_sequence([("a", step), ("b", step), ("c", step)]).add_edge(START, "a").compile()
    assert call(limited(inner).compile(), {}) == {"log": ["step"] * 3}


def test_a_task_inside_shows_progress_as_it_begins_and_as_it_ends(call: Call, clock: FakeClock) -> None:
    def step(state: Log) -> None:
        clock.advance(40)

    inner = StateGraph(Log).add_node("step", step).add_edge(START, "step").compile()

    async def outer(state: Log) -> dict[str, list[str]]:
        clock.advance(40)
        await inner.ainvoke({})
        clock.advance(40)
        return {"log": ["outer"]}

    assert call(limited(outer).compile(), {}) == {"log": ["outer"]}


def test_a_graph_inside_a_limited_node_is_limited_by_its_own_timeouts_too(call: Call, clock: FakeClock) -> None:
    """The inner node is idle for too long, and that is no progress of the outer one either."""

    async def outer(state: Log) -> dict[str, list[str]]:
        inner = limited(working(clock, writes, seconds=25), TimeoutPolicy(idle_timeout=20)).compile()
        with pytest.raises(NodeTimeoutError) as raised:
            await inner.ainvoke({})
        assert raised.value.idle_timeout == 20.0
        return {"log": ["outer"]}

    assert call(limited(outer, TimeoutPolicy(idle_timeout=80)).compile(), {}) == {"log": ["outer"]}


# -- an idle node -----------------------------------------------------------------------------------------------------


def test_an_idle_node_is_cancelled(call: Call, saver: SqliteSaver) -> None:
    cancelled = threading.Event()

    async def idle(state: Log) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    graph = limited(idle, TimeoutPolicy(idle_timeout=SHORT)).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError, match=r"Node 'slow' exceeded its idle timeout of 0\.020s"):
        call(graph, {}, thread())
    assert cancelled.wait(60)
    assert graph.get_state(thread()).next == ("slow",)


def test_a_node_that_was_idle_leaves_no_task_on_the_loop() -> None:
    ended = asyncio.Event()

    async def idle(state: Log) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main() -> set[Any]:
        with pytest.raises(NodeTimeoutError):
            await limited(idle, TimeoutPolicy(idle_timeout=SHORT)).compile().ainvoke({})
        await ended.wait()
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(main()) == set()


def test_an_idle_attempt_is_tried_again_by_default(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    attempts: list[int] = []

    async def idle_at_first(state: Log) -> dict[str, list[str]]:
        attempts.append(1)
        if len(attempts) < 3:
            await asyncio.Event().wait()
        return {"log": ["done"]}

    graph = limited(idle_at_first, TimeoutPolicy(idle_timeout=0.1), retry_policy=AT_ONCE).compile(checkpointer=saver)
    assert call(graph, {}, thread(), durability=any_durability) == {"log": ["done"]}
    assert len(attempts) == 3


def test_the_heartbeat_of_one_attempt_is_not_that_of_the_next(call: Call, clock: FakeClock) -> None:
    """What a helper of an attempt that failed still reports says nothing of the one that runs now."""
    beats_made: list[Callable[[], None]] = []

    async def work(state: Log, runtime: Runtime[Any]) -> None:
        beats_made.append(runtime.heartbeat)
        if len(beats_made) == 1:
            raise ConnectionError
        for _ in range(3):
            clock.advance(40)
            beats_made[0]()

    with pytest.raises(NodeTimeoutError):
        call(limited(work, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0, jitter=False)).compile(), {})
    assert len(beats_made) == 2


@pytest.mark.parametrize("gap", [40, 61], ids=["in-time", "late"])
def test_a_slow_consumer_neither_makes_a_node_idle_nor_busy(gap: float, clock: FakeClock, saver: SqliteSaver) -> None:
    """The consumer holds a chunk all the while; what counts is what the node did, and when."""
    go_on, over = threading.Event(), threading.Event()

    async def work(state: Log, runtime: Runtime[Any]) -> dict[str, list[str]]:
        runtime.stream_writer("begun")
        await asyncio.to_thread(go_on.wait, 60)
        for _ in range(3):
            clock.advance(gap)
            runtime.heartbeat()
        over.set()
        return {"log": ["done"]}

    graph = limited(work).compile(checkpointer=saver)
    chunks = graph.stream({}, thread(), stream_mode="custom")
    assert next(chunks) == "begun"
    go_on.set()
    assert over.wait(60)
    if gap < 60:
        assert list(chunks) == []
    else:
        with pytest.raises(NodeTimeoutError, match="idle timeout"):
            next(chunks)
    assert graph.get_state(thread()).values == {"log": ["done"] if gap < 60 else []}


# -- sends ------------------------------------------------------------------------------------------------------------


def sending(node: Any, timeout: Any, *sends: Send) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Log).add_node("slow", node, timeout=timeout)
    return graph.add_conditional_edges(START, lambda state: list(sends), ["slow"])


def test_a_send_brings_an_idle_timeout_in_place_of_the_nodes(call: Call, saver: SqliteSaver) -> None:
    async def carry(number: int) -> dict[str, list[str]]:
        if number:
            await asyncio.Event().wait()
        return {"log": ["carried"]}

    sends = Send("slow", 0), Send("slow", 1, timeout=TimeoutPolicy(idle_timeout=SHORT))
    graph = sending(carry, TimeoutPolicy(idle_timeout=600, run_timeout=600), *sends).compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError) as raised:
        call(graph, {}, thread())
    assert (raised.value.kind, raised.value.idle_timeout, raised.value.run_timeout) == ("idle", SHORT, None)
    assert graph.get_state(thread()).values == {"log": ["carried"]}


@pytest.mark.parametrize("policy", [STRICT, TimeoutPolicy(run_timeout=70, idle_timeout=60), TimeoutPolicy(70)])
def test_what_limits_a_send_is_stored_with_it(
    policy: TimeoutPolicy, call: Call, clock: FakeClock, saver: SqliteSaver
) -> None:
    """Another process goes on with the limits the sender gave."""
    send = Send("slow", {}, timeout=policy)
    built = sending(working(clock, writes), None, send)
    call(built.compile(checkpointer=saver, interrupt_before=["slow"]), {}, thread())
    with pytest.raises(NodeTimeoutError) as raised:
        call(built.compile(checkpointer=saver), None, thread())
    error = raised.value
    assert (error.run_timeout, error.idle_timeout) == (policy.run_timeout, policy.idle_timeout)
    assert error.kind == ("idle" if policy == STRICT else "run")


def test_a_router_cannot_send_an_idle_timeout_to_a_sync_node(call: Call, saver: SqliteSaver) -> None:
    graph = sending(note("slow"), None, Send("slow", {}, timeout=IDLE)).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match=r"only supported for async nodes.*'slow' is sync"):
        call(graph, {}, thread())


def test_a_command_cannot_send_an_idle_timeout_to_a_sync_node(call: Call, saver: SqliteSaver) -> None:
    jump: Command[Any] = Command(goto=Send("slow", {}, timeout=IDLE))
    graph = StateGraph(Log).add_node("jumps", lambda state: jump, destinations=("slow",)).add_node("slow", note("slow"))
    compiled = graph.add_edge(START, "jumps").compile(checkpointer=saver)
    given: Any
    for given in ({}, jump):
        with pytest.raises(InvalidUpdateError, match="only supported for async nodes"):
            call(compiled, given, thread())


def test_a_send_whose_node_has_become_sync_says_so(call: Call, saver: SqliteSaver) -> None:
    send = Send("slow", {}, timeout=IDLE)
    before = sending(anote("slow"), None, send).compile(checkpointer=saver, interrupt_before=["slow"])
    call(before, {}, thread())
    with pytest.raises(InvalidGraphError, match="'slow' is sync"):
        call(sending(note("slow"), None, send).compile(checkpointer=saver), None, thread())
    assert call(sending(anote("slow"), None, send).compile(checkpointer=saver), None, thread()) == {"log": ["slow"]}


# -- which nodes may have one -----------------------------------------------------------------------------------------


class BothWays:
    """A Runnable, which is called by `invoke` unless it has to be cancellable."""

    def invoke(self, state: Log) -> dict[str, list[str]]:
        return {"log": ["invoke"]}

    async def ainvoke(self, state: Log) -> dict[str, list[str]]:
        return {"log": ["ainvoke"]}


@pytest.mark.parametrize(("timeout", "way"), [(60, "invoke"), (IDLE, "ainvoke")])
def test_a_runnable_with_an_idle_timeout_is_called_by_ainvoke(timeout: Any, way: str, call: Call) -> None:
    assert call(limited(BothWays(), timeout).compile(), {}) == {"log": [way]}
