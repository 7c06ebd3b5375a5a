"""What user code sends while it runs is delivered, wherever it comes from, or refused; no consumer changes a run."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest

from stepwell import (
    START,
    LeaseLostError,
    NodeTimeoutError,
    RetryPolicy,
    Runtime,
    SqliteSaver,
    StreamClosedError,
    StreamWriter,
    get_stream_writer,
)
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing import FakeClock
from tests.runtime.graphs import Chunks, Log, chain, fan, letters, thread

# -- delivered --------------------------------------------------------------------------------------------------------


def test_chunks_come_from_pools_threads_and_tasks(chunks: Chunks) -> None:
    def pools(state: Log, writer: StreamWriter) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(writer, range(5)))
            pool.submit(copy_context().run, lambda: get_stream_writer()(5)).result()

    async def tasks(state: Log) -> None:
        async def nested() -> None:
            await asyncio.create_task(asyncio.to_thread(lambda: get_stream_writer()(6)))
            get_stream_writer()(7)

        async with asyncio.TaskGroup() as group:
            group.create_task(nested())
        await asyncio.get_running_loop().run_in_executor(None, get_stream_writer(), 8)

    graph = chain(("pools", pools), ("tasks", tasks)).compile()
    assert sorted(chunks(graph, {}, stream_mode="custom")) == list(range(9))


def test_what_a_helper_sends_after_its_node_has_returned_is_delivered_while_the_run_goes_on(chunks: Chunks) -> None:
    may_send, helpers = threading.Event(), []

    def starts(state: Log, writer: StreamWriter) -> None:
        def help_out() -> None:
            assert may_send.wait(60)
            writer("late")

        helpers.append(threading.Thread(target=help_out))
        helpers[0].start()

    def waits(state: Log) -> None:
        may_send.set()
        helpers[0].join()

    graph = chain(("starts", starts), ("waits", waits)).compile()
    assert chunks(graph, {}, stream_mode="custom") == ["late"]


def test_a_task_that_outlives_its_node_is_heard_too() -> None:
    async def main() -> list[Any]:
        may_send = asyncio.Event()
        left: list[asyncio.Task[None]] = []

        async def late() -> None:
            await may_send.wait()
            get_stream_writer()("late")

        async def starts(state: Log) -> None:
            left.append(asyncio.create_task(late()))

        async def waits(state: Log) -> None:
            may_send.set()
            await left[0]

        graph = chain(("starts", starts), ("waits", waits)).compile()
        return [chunk async for chunk in graph.astream({}, stream_mode="custom")]

    assert asyncio.run(main()) == ["late"]


def test_chunks_of_a_repeated_attempt_can_be_told_apart(chunks: Chunks) -> None:
    def flaky(state: Log, runtime: Runtime[Any]) -> None:
        runtime.stream_writer("trying")
        if runtime.execution_info is not None and runtime.execution_info.node_attempt == 1:
            raise ConnectionError("not now")

    graph = (
        fan()
        .add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
        .add_edge(START, "flaky")
    )
    found = chunks(graph.compile(), {}, stream_mode="custom", version="v2")
    assert [part["attempt"] for part in found] == [1, 2]
    assert len({part["task_id"] for part in found}) == 1


# -- or refused -------------------------------------------------------------------------------------------------------


def test_a_thread_without_the_nodes_context_is_told_that_it_has_no_writer(chunks: Chunks) -> None:
    told: list[str] = []

    def lost(state: Log) -> None:
        def work() -> None:
            with pytest.raises(RuntimeError) as raised:
                get_stream_writer()("lost")
            told.append(str(raised.value))

        helper = threading.Thread(target=work)
        helper.start()
        helper.join()

    assert chunks(chain(("lost", lost)).compile(), {}, stream_mode="custom") == []
    assert told == ["Called get_stream_writer outside of a runnable context: call it from a node while its graph runs"]


def test_what_is_sent_after_the_run_has_ended_is_an_error(chunks: Chunks) -> None:
    kept: list[Runtime[Any]] = []

    def keep(state: Log, runtime: Runtime[Any]) -> None:
        kept.append(runtime)

    chunks(chain(("keep", keep)).compile(), {}, stream_mode=["custom", "messages"])
    with pytest.raises(StreamClosedError) as raised:
        kept[0].stream_writer("too late")
    assert (raised.value.code, raised.value.fields()) == ("stream_closed", {"mode": "custom"})
    with pytest.raises(StreamClosedError, match="'messages'"):
        kept[0].stream_message("too late")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_is_sent_after_a_run_has_failed_is_an_error(error: type[BaseException], chunks: Chunks) -> None:
    kept: list[StreamWriter] = []

    def fail(state: Log, writer: StreamWriter) -> None:
        kept.append(writer)
        writer("last words")
        raise error("broken")

    with pytest.raises(error, match="broken"):
        chunks(chain(("fail", fail)).compile(), {}, stream_mode="custom")
    with pytest.raises(StreamClosedError):
        kept[0]("too late")


def test_a_node_whose_consumer_has_left_is_told_so(saver: SqliteSaver) -> None:
    left, told = threading.Event(), threading.Event()

    def speaks(state: Log, writer: StreamWriter) -> None:
        writer("one")
        assert left.wait(60)
        try:
            writer("two")
        except StreamClosedError:
            told.set()

    chunks = chain(("speaks", speaks)).compile(checkpointer=saver).stream({}, thread(), stream_mode="custom")
    assert next(chunks) == "one"
    chunks.close()
    left.set()
    assert told.wait(60)


def test_where_nobody_asked_a_writer_says_nothing_even_after_the_run(chunks: Chunks) -> None:
    kept: list[Runtime[Any]] = []

    def keep(state: Log, runtime: Runtime[Any]) -> None:
        kept.append(runtime)

    chunks(chain(("keep", keep)).compile(), {}, stream_mode="values")
    kept[0].stream_writer("ignored")
    kept[0].stream_message("ignored", source="nobody")


# -- a slow consumer --------------------------------------------------------------------------------------------------


def test_a_writer_never_waits_for_the_consumer() -> None:
    finished = threading.Event()

    def talks(state: Log, writer: StreamWriter) -> None:
        for number in range(10_000):
            writer(number)
        finished.set()

    found = []
    for chunk in chain(("talks", talks)).compile().stream({}, stream_mode="custom"):
        assert finished.wait(60), "the first chunk is held until the node has sent its last"
        found.append(chunk)
    assert found == list(range(10_000))


def test_siblings_run_to_their_end_while_the_consumer_holds_a_chunk(saver: SqliteSaver) -> None:
    done = {name: threading.Event() for name in "ab"}

    def node(name: str) -> Any:
        def run(state: Log, writer: StreamWriter) -> dict[str, list[str]]:
            writer(name)
            done[name].set()
            return {"log": [name]}

        return run

    graph = fan(("a", node("a")), ("b", node("b"))).compile(checkpointer=saver)
    for _ in graph.stream({}, thread(), stream_mode="custom"):
        assert all(event.wait(60) for event in done.values())
    assert graph.get_state(thread()).values == {"log": ["a", "b"]}


class WatchedClock(FakeClock):
    """A clock set by hand that tells when a thread not its maker's has read it: a call notes when it returned."""

    def __init__(self) -> None:
        super().__init__()
        self.read_elsewhere = threading.Event()
        self._home = threading.get_ident()

    def monotonic(self) -> float:
        value = super().monotonic()
        if threading.get_ident() != self._home:
            self.read_elsewhere.set()
        return value


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WatchedClock:
    """Return the clock that runs go by."""
    made = WatchedClock()
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", made)
    return made


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("in_time", [True, False], ids=["in-time", "late"])
@pytest.mark.parametrize("limit", ["node", "superstep"])
def test_a_slow_consumer_neither_times_a_node_out_nor_lets_it_off(
    limit: str, in_time: bool, is_async: bool, clock: WatchedClock, saver: SqliteSaver
) -> None:
    """What counts is when the node returned, not when the consumer let the run look."""
    go_on = threading.Event()

    def limited(state: Log, writer: StreamWriter) -> dict[str, list[str]]:
        writer("begun")
        assert go_on.wait(60)
        return {"log": ["done"]}

    async def alimited(state: Log, writer: StreamWriter) -> dict[str, list[str]]:
        return await asyncio.to_thread(limited, state, writer)

    of_node = 60 if limit == "node" else None
    graph = fan().add_node("limited", alimited if is_async else limited, timeout=of_node).add_edge(START, "limited")
    compiled: Any = graph.compile(checkpointer=saver)
    compiled.step_timeout = 60 if limit == "superstep" else None
    chunks = compiled.stream({}, thread(), stream_mode="custom")
    assert next(chunks) == "begun"
    if not in_time:
        clock.advance(100)
    go_on.set()
    assert clock.read_elsewhere.wait(60)
    clock.advance(100)
    if in_time:
        assert list(chunks) == []
    else:
        with pytest.raises(NodeTimeoutError, match="'limited'"):
            next(chunks)
    assert compiled.get_state(thread()).values == {"log": ["done"] if in_time else []}


class HandSet:
    """A store by a clock that is set by hand, in the place of a saver."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = SqliteStore(clock=self.clock)
        self.on_unknown_type = None


@pytest.fixture
def hand_set() -> Iterator[HandSet]:
    made = HandSet()
    yield made
    made.store.close()


def test_a_lease_is_kept_for_a_slow_consumer_and_left_to_others_by_a_stalled_one(saver: SqliteSaver) -> None:
    graph: Any = letters("abc").compile(checkpointer=saver)
    chunks = graph.stream({}, thread())
    next(chunks)
    held, renewals = time.monotonic(), []
    for later in (LEASE_SECONDS / 2, LEASE_SECONDS + 1):
        graph._leases.renew_due(held + later)
        renewals.append(saver.store.counts.renewals)
    assert renewals == [1, 1], "slow: renewed; a whole lease without a pull: not again"
    assert list(chunks) == [{"b": {"log": ["b"]}}, {"c": {"log": ["c"]}}], "nobody took it, so nothing is lost"


def test_a_stalled_stream_that_was_taken_over_is_told_and_changes_nothing(hand_set: HandSet) -> None:
    graph = letters("abc").compile(checkpointer=hand_set)
    chunks = graph.stream({}, thread())
    assert next(chunks) == {"a": {"log": ["a"]}}
    hand_set.clock.advance(LEASE_SECONDS + 1)
    assert graph.invoke(None, thread()) == {"log": ["a", "b", "c"]}
    with pytest.raises(LeaseLostError):
        next(chunks)
    assert graph.get_state(thread()).values == {"log": ["a", "b", "c"]}
