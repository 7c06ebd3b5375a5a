"""Steps from wherever the node's code runs, and how many of them are at work at once."""

import asyncio
import contextvars
import threading
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    TimeoutPolicy,
    UnserializableValueError,
    get_stream_writer,
    interrupt,
    task,
)
from stepwell.runtime.journal import Draft, Entry, journal_of
from stepwell.runtime.scope import current
from stepwell.superstep.state import Base, Identity, State
from stepwell.superstep.steps import DONE, FAILED, Step
from stepwell.testing import FakeClock
from tests.runtime.deaths import Saver
from tests.runtime.graphs import Call, Chunks
from tests.steps.nodes import CONFIG, AtWork, Counted, Log, one_node, siblings


def paused_then_answered(graph: Any, call: Call, **options: Any) -> list[Any]:
    call(graph, {"log": []}, CONFIG, **options)
    log: list[Any] = call(graph, Command(resume="yes"), CONFIG, **options)["log"]
    return log


# -- where steps are called -------------------------------------------------------------------------------------------


def test_threads_and_coroutines_beside_the_node_call_steps_too(
    saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    steps = Counted()

    async def node(state: Log) -> Any:
        async def beside(n: int) -> Any:
            return [await steps.adouble(n), await steps.double(n + 1)]

        def on_a_thread(n: int) -> Any:
            return [steps.double(n).result(), steps.adouble(n + 1).result()]

        tasks = [asyncio.create_task(beside(10)), asyncio.create_task(beside(20))]
        threads = [asyncio.to_thread(on_a_thread, 30), asyncio.to_thread(on_a_thread, 40)]
        found = await asyncio.gather(*tasks, *threads)
        return {"log": [*found, interrupt("?")]}

    graph = one_node(node, saver)
    log = paused_then_answered(graph, call, durability=any_durability)
    assert log == [[20, 22], [40, 42], [60, 62], [80, 82], "yes"]
    assert sorted(steps.calls) == [10, 11, 20, 21, 30, 31, 40, 41]


def test_threads_of_a_sync_node_call_steps_too(saver: SqliteSaver, call: Call, any_durability: str) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        with ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(copy_context().run, lambda n=n: steps.double(n).result()) for n in range(8)]
            found = [one.result() for one in calls]
        return {"log": [*found, interrupt("?")]}

    log = paused_then_answered(one_node(node, saver), call, durability=any_durability)
    assert log == [0, 2, 4, 6, 8, 10, 12, 14, "yes"]
    assert sorted(steps.calls) == list(range(8))


def test_a_loop_of_its_own_within_a_sync_node_awaits_steps(saver: SqliteSaver, any_durability: str) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        async def main() -> Any:
            return await asyncio.gather(steps.adouble(1), steps.double(2))

        return {"log": [*asyncio.run(main()), interrupt("?")]}

    graph = one_node(node, saver)
    graph.invoke({"log": []}, CONFIG, durability=any_durability)
    assert graph.invoke(Command(resume="yes"), CONFIG)["log"] == [2, 4, "yes"]
    assert sorted(steps.calls) == [1, 2]


def test_results_are_taken_as_they_come(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()

    def node(state: Log) -> Any:
        found: list[Future[int]] = [steps.double(n) for n in range(5)]
        return {"log": sorted(future.result() for future in as_completed(found))}

    assert call(one_node(node, saver), {"log": []}, CONFIG)["log"] == [0, 2, 4, 6, 8]


def test_a_router_calls_steps_and_gets_them_back_when_it_asks(saver: SqliteSaver, call: Call) -> None:
    steps = Counted()
    nodes = []

    def node(state: Log) -> Any:
        nodes.append(1)
        return {"log": [steps.double(1).result()]}

    def route(state: Log) -> Any:
        return [Send("end", steps.double(5).result()), Send("end", interrupt("?"))]

    builder = StateGraph(Log).add_node("node", node).add_node("end", lambda given: {"log": [given]})
    graph = builder.add_edge(START, "node").add_conditional_edges("node", route, ["end"]).compile(checkpointer=saver)
    assert paused_then_answered(graph, call) == [2, 10, "yes"]
    assert (steps.calls, nodes) == ([1, 5], [1])


@pytest.mark.parametrize("is_async", [False, True])
def test_many_siblings_record_steps_while_the_run_records_what_became_of_others(
    is_async: bool, saver: SqliteSaver, call: Call, any_durability: str
) -> None:
    """Outcomes, attempts and steps are written from many threads at the same moment, in one order."""
    steps, attempts = Counted(), dict[int, int]()

    def fan(state: Log) -> Any:
        return [Send("work", n) for n in range(8)]

    def check(n: int) -> None:
        attempts[n] = attempts.get(n, 0) + 1
        if n % 3 == 0 and attempts[n] == 1:
            raise ConnectionError(n)

    def work(n: int) -> Any:
        found = sum(future.result() for future in [steps.double(100 * n + i) for i in range(3)])
        check(n)
        return {"log": [found + steps.double(100 * n + 3).result()]}

    async def awork(n: int) -> Any:
        found = sum(await asyncio.gather(*(steps.adouble(100 * n + i) for i in range(3))))
        check(n)
        return {"log": [found + await steps.adouble(100 * n + 3)]}

    policy = RetryPolicy(initial_interval=0, jitter=False)
    builder = StateGraph(Log).add_node("work", awork if is_async else work, retry_policy=policy)
    graph = builder.add_conditional_edges(START, fan, ["work"]).compile(checkpointer=saver)
    log = call(graph, {"log": []}, CONFIG, durability=any_durability)["log"]
    assert log == [800 * n + 12 for n in range(8)]
    assert sorted(steps.calls) == [100 * n + i for n in range(8) for i in range(4)]


def test_a_stream_shows_what_a_node_with_steps_sends(saver: SqliteSaver, chunks: Chunks, any_durability: str) -> None:
    @task
    def tells(n: int) -> int:
        get_stream_writer()(n)
        return n

    def node(state: Log) -> Any:
        return {"log": [tells(n).result() for n in range(3)]}

    graph = one_node(node, saver)
    assert chunks(graph, {"log": []}, CONFIG, stream_mode="custom", durability=any_durability) == [0, 1, 2]


def test_a_step_sees_the_context_variables_of_its_caller(saver: SqliteSaver, call: Call) -> None:
    user = contextvars.ContextVar("user", default="nobody")

    def shows() -> str:
        return user.get()

    async def ashows() -> str:
        return user.get()

    plain, limited = task(shows, name="plain"), task(shows, name="limited", timeout=60)
    aplain, alimited = task(ashows, name="aplain"), task(ashows, name="alimited", timeout=60)

    def node(state: Log) -> Any:
        user.set("ann")
        return {"log": [step().result() for step in (plain, limited, aplain, alimited)]}

    async def anode(state: Log) -> Any:
        user.set("ann")
        return {"log": [await step() for step in (plain, limited, aplain, alimited)]}

    for function in (node, anode):
        assert call(one_node(function, saver), {"log": []}, CONFIG)["log"] == ["ann"] * 4
        saver.delete_thread("t")


def test_beside_the_node_a_call_is_known_by_its_arguments_so_they_must_be_storable(saver: SqliteSaver) -> None:
    @task
    def uses(lock: Any) -> str:
        return "used"

    async def node(state: Log) -> Any:
        async def beside() -> Any:
            return await uses(threading.Lock())

        return {"log": await asyncio.gather(beside())}

    assert one_node(node, None).invoke({"log": []})["log"] == ["used"]  # nothing is kept, so nothing is looked up
    with pytest.raises(UnserializableValueError) as caught:
        one_node(node, saver).invoke({"log": []}, CONFIG)
    assert any("told apart by what they are called with" in note for note in caught.value.__notes__)


# -- how many at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_steps_are_at_work_than_max_concurrency_says(limit: int, saver: SqliteSaver, call: Call) -> None:
    at_work = AtWork()

    @task
    def works(n: int) -> int:
        with at_work:
            threading.Event().wait(0.001)
        return n

    @task
    async def aworks(n: int) -> int:
        with at_work:
            for _ in range(5):
                await asyncio.sleep(0)
        return n

    def node(state: Log) -> Any:
        return {"log": [future.result() for future in [(works, aworks)[n % 2](n) for n in range(10)]]}

    async def anode(state: Log) -> Any:
        return {"log": await asyncio.gather(*((works, aworks)[n % 2](n) for n in range(10)))}

    graph = siblings(saver, a=node, b=anode, c=node)
    log = call(graph, {"log": []}, {**CONFIG, "max_concurrency": limit})["log"]
    assert log == list(range(10)) * 3
    assert 1 <= at_work.most <= limit


@pytest.mark.parametrize("is_async", [False, True])
def test_a_step_that_waits_for_those_within_it_never_waits_for_ever(
    is_async: bool, saver: SqliteSaver, call: Call
) -> None:
    at_work = AtWork()

    @task
    def tree(depth: int) -> int:
        if depth == 0:
            with at_work:
                return 1
        return sum(future.result() for future in [tree(depth - 1), tree(depth - 1)])

    @task
    async def atree(depth: int) -> int:
        if depth == 0:
            with at_work:
                await asyncio.sleep(0)
                return 1
        return sum(await asyncio.gather(atree(depth - 1), atree(depth - 1)))

    def node(state: Log) -> Any:
        return {"log": [tree(3).result(), atree(3).result()]}

    async def anode(state: Log) -> Any:
        return {"log": await asyncio.gather(tree(3), atree(3))}

    graph = one_node(anode if is_async else node, saver)
    assert call(graph, {"log": []}, {**CONFIG, "max_concurrency": 1})["log"] == [8, 8]
    assert at_work.most == 1


def test_sync_steps_take_no_more_threads_than_sync_nodes_do(saver: SqliteSaver) -> None:
    at_work = AtWork()

    @task
    def works() -> int:
        with at_work:
            threading.Event().wait(0.001)
        return 1

    def node(state: Log) -> Any:
        return {"log": [future.result() for future in [works() for _ in range(100)]]}

    graph = one_node(node, saver)
    assert graph.invoke({"log": []}, CONFIG)["log"] == [1] * 100
    assert at_work.most <= 33  # the node's own thread runs one while it would only wait


# -- two at the same moment -------------------------------------------------------------------------------------------


class HandedOver:
    """A lock that lets the thread which waits for it go on first, before the one that leaves it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self.gone_on = threading.Event()
        self.leaver = 0

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if threading.get_ident() == self.leaver:
            self.gone_on.wait(30)


def test_who_finds_its_record_taken_along_by_another_waits_until_that_is_written(sqlite_saver: SqliteSaver) -> None:
    """A loop takes along what a thread has queued: the thread must not go on before the write has landed."""
    seen = []

    @task
    def step() -> int:
        scope = current.get()
        assert scope is not None
        run = scope.root.owner.run  # type: ignore[attr-defined]
        journal, lock = journal_of(run), HandedOver()
        run.ledger.lock = lock
        entry = Entry(scope.root, "x", [Draft("step", b"\x90")])
        journal.add(entry)  # as a thread does that is to go on in `record`

        def another() -> None:
            lock.leaver = threading.get_ident()
            journal.stage()

        thread = threading.Thread(target=another)
        thread.start()
        while entry in journal._waiting:
            pass
        with run.ledger.lock:
            seen.append((entry.taken, entry.future is not None))
        lock.gone_on.set()
        thread.join()
        raise ValueError("enough")

    def node(state: Log) -> Any:
        return {"log": [step().result()]}

    with pytest.raises(ValueError, match="enough"):
        one_node(node, sqlite_saver).invoke({"log": []}, CONFIG)
    assert seen == [(True, True)]


def test_what_one_task_forgets_is_no_business_of_the_others() -> None:
    """A node's attempt fails on one thread while a sibling notes its first step on another."""
    base = Base(State({}), Identity("g", "v", "t", "", "c"))
    failed = Step("node/a/0", "a", "", "", "", FAILED, b"", "", b"", 1, 0, 0)
    base.stepped("one", failed)
    held = base.steps  # what a sibling's thread has in its hands
    base.forget_failures("one")
    held.setdefault("two", {})["node/b/0"] = failed._replace(call_id="node/b/0", status=DONE)  # type: ignore[attr-defined]
    assert {task: list(steps) for task, steps in base.steps.items()} == {"one": [], "two": ["node/b/0"]}


# -- progress ---------------------------------------------------------------------------------------------------------


def test_the_steps_of_a_node_are_its_progress(call: Call) -> None:
    """The idle time begins anew with each step, and with each that is over."""
    clock = FakeClock()

    @task
    async def takes_a_while() -> int:
        clock.advance(6)
        return 1

    async def node(state: Log) -> Any:
        found = []
        for _ in range(3):
            clock.advance(6)
            found.append(await takes_a_while())
        return {"log": found}

    with Saver(clock) as saver:
        graph = one_node(node, saver, timeout=TimeoutPolicy(idle_timeout=10))
        assert call(graph, {"log": []}, CONFIG)["log"] == [1, 1, 1]
