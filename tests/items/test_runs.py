"""What nodes write to the item store belongs to their outcomes: INV-1, INV-2, INV-4, INV-14."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from stepwell import (
    END,
    START,
    BaseStore,
    Command,
    InMemorySaver,
    InMemoryStore,
    InvalidConfigError,
    InvalidItemError,
    ItemsClosedError,
    LeaseLostError,
    MergeError,
    RetryPolicy,
    Runtime,
    Send,
    SqliteSaver,
    SqliteStore,
    StateGraph,
    UnserializableValueError,
    effect,
    entrypoint,
    get_runtime,
    get_store,
    interrupt,
    task,
    wait_for,
)
from stepwell.testing import FakeClock
from tests.items.places import APART, BESIDE, N, Place, opened, puts
from tests.runtime.conftest import call as call
from tests.runtime.graphs import Call, Flaky, Log, chain, fan, note, thread

SOON = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3, retry_on=ValueError)


@pytest.fixture(params=BESIDE)
def beside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Items in the saver's database."""
    with opened(request.param, tmp_path) as place:
        yield place
        assert list(place.saver.store.verify()) == []


@pytest.fixture(params=[*BESIDE, *APART])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Items wherever they may lie."""
    with opened(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Items in the saver's file."""
    with opened("path", tmp_path) as place:
        yield place


def seen(store: Any) -> list[str]:
    return [item.key for item in store.search((), limit=100)]


# -- what a node sees -------------------------------------------------------------------------------------------------


def first(state: Log, store: BaseStore) -> dict[str, list[str]]:
    store.put(N, "a", {"n": 1})
    store.put(("n", "below"), "b", {"n": 2})
    found = store.get(N, "a")
    assert found is not None
    assert (found.value, seen(store)) == ({"n": 1}, ["there", "a", "b"])
    assert store.list_namespaces() == [N, ("n", "below")]
    store.delete(N, "there")
    store.delete(("n", "below"), "b")
    assert (seen(store), store.list_namespaces()) == (["a"], [N])
    return {"log": ["first"]}


async def second(state: Log, runtime: Runtime[None]) -> dict[str, list[str]]:
    store = runtime.store
    assert [item.key for item in await store.asearch(N, filter={"n": {"$gte": 1}})] == ["a"]
    await store.aput(N, "a", {"n": 3})
    assert (await store.aget(N, "a")).value == {"n": 3}
    assert [get_store(), get_runtime().store] == [store, store]
    return {"log": ["second"]}


def check_what_nodes_see(place: Place, call: Call, **options: Any) -> None:
    place.store.put(N, "there", {"n": 0})
    graph = place.compiled(chain(("first", first), ("second", second)))
    assert call(graph, {}, thread(), **options) == {"log": ["first", "second"]}
    assert [(item.key, item.value) for item in place.store.search(())] == [("a", {"n": 3})]


def test_a_node_sees_what_is_committed_and_what_it_wrote(anywhere: Place, call: Call) -> None:
    check_what_nodes_see(anywhere, call)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_node_sees_what_is_merged_and_not_on_disk_yet(beside: Place, call: Call, durability: str) -> None:
    check_what_nodes_see(beside, call, durability=durability)


def test_siblings_do_not_see_each_others_writes_until_the_superstep_is_committed(
    anywhere: Place, any_durability: Any
) -> None:
    """INV-14."""
    written, looked = threading.Event(), threading.Event()

    def writes(state: Log, store: BaseStore) -> dict[str, list[str]]:
        store.put(N, "w", {"n": 1})
        written.set()
        assert looked.wait(10)
        return {"log": ["writes"]}

    def looks(state: Log, store: BaseStore) -> dict[str, list[str]]:
        assert written.wait(10)
        assert (seen(store), seen(anywhere.store)) == ([], [])
        looked.set()
        return {"log": ["looks"]}

    def after(state: Log, store: BaseStore) -> dict[str, list[str]]:
        return {"log": seen(store)}

    graph = fan(("looks", looks), ("writes", writes)).add_node("after", after).add_edge(["looks", "writes"], "after")
    options = {"durability": any_durability} if anywhere.saver is not None else {}
    assert anywhere.compiled(graph).invoke({}, thread(), **options) == {"log": ["looks", "writes", "w"]}


def test_sends_do_not_see_each_others_writes(place: Place) -> None:
    def one(arg: int, store: BaseStore) -> dict[str, list[str]]:
        store.put(N, f"{arg}", {"n": arg})
        return {"log": [",".join(seen(store))]}

    graph = StateGraph(Log).add_node("one", one)
    graph.add_conditional_edges(START, lambda state: [Send("one", number) for number in (2, 1)], ["one"])
    assert place.compiled(graph).invoke({}, thread(max_concurrency=1))["log"] == ["2", "1"]
    assert place.keys() == ["2", "1"]


def test_of_two_siblings_writes_to_one_item_the_later_in_merge_order_counts(beside: Place) -> None:
    """INV-5: whoever was faster."""
    turn = threading.Event()

    def late(state: Log, store: BaseStore) -> None:
        assert turn.wait(10)
        store.put(N, "k", {"by": "a"})

    def early(state: Log, store: BaseStore) -> None:
        store.put(N, "k", {"by": "b"})
        turn.set()

    beside.compiled(fan(("a", late), ("b", early))).invoke({}, thread())
    found = beside.store.get(N, "k")
    assert found is not None
    assert found.value == {"by": "b"}


def test_another_store_is_handed_to_the_nodes_as_it_is() -> None:
    class Foreign(BaseStore):
        def batch(self, ops: Any) -> Any:
            raise NotImplementedError

        async def abatch(self, ops: Any) -> Any:
            raise NotImplementedError

    got: list[Any] = []
    for given in (Foreign(), {"any": "thing"}):
        graph = chain(("a", lambda state, store: got.append(store))).compile(checkpointer=InMemorySaver(), store=given)
        graph.invoke({}, thread())
        assert got.pop() is given


# -- when it is applied -----------------------------------------------------------------------------------------------


def test_writes_appear_with_the_commit_of_their_superstep(beside: Place) -> None:
    """INV-1."""
    graph = beside.compiled(chain(*((name, puts(name)) for name in "abc")))
    for chunk in graph.stream({}, thread(), stream_mode="values"):
        assert beside.keys() == chunk.get("log", [])


def test_writes_of_exit_mode_appear_at_the_end(beside: Place) -> None:
    outside: list[list[str]] = []

    def look(state: Log, store: BaseStore) -> dict[str, list[str]]:
        outside.append(beside.keys())
        return {"log": seen(store)}

    graph = beside.compiled(chain(("a", puts("a")), ("look", look), ("b", puts("b"))))
    assert graph.invoke({}, thread(), durability="exit") == {"log": ["a", "a", "b"]}
    assert (outside, beside.keys()) == ([[]], ["a", "b"])


def test_item_writes_cost_no_transaction_of_their_own(beside: Place, call: Call) -> None:
    graph = beside.compiled(chain(*((name, puts(name)) for name in "abc")))
    counts = beside.saver.store.counts
    for durability, expected in (("sync", 4), ("exit", 2)):
        before = counts.transactions
        call(graph, {}, thread(durability), durability=durability)
        assert counts.transactions - before == expected
    if beside.store.rows is not beside.saver.store:
        assert beside.store.rows.counts.transactions == 0


def test_what_a_node_puts_is_taken_as_it_is_then(place: Place) -> None:
    def node(state: Log, store: BaseStore) -> None:
        value: dict[str, Any] = {"list": [1]}
        store.put(N, "k", value)
        value["list"].append(2)

    place.compiled(chain(("a", node))).invoke({}, thread())
    found = place.store.get(N, "k")
    assert found is not None
    assert found.value == {"list": [1]}


def test_what_cannot_be_stored_fails_in_the_node_that_put_it(place: Place) -> None:
    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        with pytest.raises(UnserializableValueError, match="item n/k"):
            store.put(N, "k", {"bad": object()})
        return {"log": ["went on"]}

    assert place.compiled(chain(("a", node))).invoke({}, thread()) == {"log": ["went on"]}
    assert place.keys() == []


def test_reading_in_a_node_lets_an_items_time_begin_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteStore(saver, clock=clock) as store:
        store.put(N, "k", {"n": 1}, ttl=1)
        clock.advance(40)
        chain(("a", lambda state, store: store.get(N, "k") and None)).compile(checkpointer=saver, store=store).invoke(
            {}, thread()
        )
        clock.advance(40)
        assert seen(store) == ["k"]


def refuse(left: Any, right: Any) -> Any:
    raise TypeError("refused")


class Strict(Log, total=False):
    """A state with a channel that cannot be merged."""

    total: Annotated[Any, refuse]


# -- what is dropped, and what is kept --------------------------------------------------------------------------------


def test_a_failed_attempt_leaves_nothing(anywhere: Place, call: Call) -> None:
    attempts = iter("12")

    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        attempt = next(attempts)
        store.put(N, attempt, {"n": 1})
        if attempt == "1":
            raise ValueError("again")
        return {"log": seen(store)}

    graph = StateGraph(Log).add_node("a", node, retry_policy=SOON).add_edge(START, "a")
    assert call(anywhere.compiled(graph), {}, thread()) == {"log": ["2"]}
    assert anywhere.keys() == ["2"]


def test_a_failed_node_leaves_nothing_and_its_siblings_writes_wait_for_the_superstep(
    beside: Place, any_durability: Any
) -> None:
    """INV-4: kept with the outcome, applied when it is merged."""
    broken = Flaky("b")
    graph = beside.compiled(fan(("a", puts("a")), ("b", puts("b", broken))))
    with pytest.raises(ValueError, match="b is broken"):
        graph.invoke({}, thread(), durability=any_durability)
    assert beside.keys() == []
    assert graph.invoke(None, thread(), durability=any_durability) == {"log": ["a", "b"]}
    assert sorted(beside.keys()) == ["a", "b"]


def test_a_task_that_is_run_anew_on_request_writes_anew(place: Place) -> None:
    calls: list[str] = []

    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        calls.append("a")
        store.put(N, f"a{len(calls)}", {"n": 1})
        return {"log": ["a"]}

    graph = place.compiled(fan(("a", node), ("b", puts("b", Flaky("b")))))
    with pytest.raises(ValueError, match="b is broken"):
        graph.invoke({}, thread())
    graph.retry(thread(), tasks=["a", "b"])
    assert sorted(place.keys()) == ["a2", "b"]


def test_a_node_that_asks_leaves_nothing_until_it_has_its_answer(beside: Place, any_durability: Any) -> None:
    """It runs again from its start, so what it wrote before the question is dropped, and written again."""
    calls: list[list[str]] = []

    def asks(state: Log, store: BaseStore) -> dict[str, list[str]]:
        calls.append(seen(store))
        store.put(N, f"before{len(calls)}", {"n": 1})
        answer = interrupt("go on?")
        store.put(N, "after", {"answer": answer})
        return {"log": ["asks"]}

    graph = beside.compiled(fan(("asks", asks), ("beside", puts("beside"))))
    graph.invoke({}, thread(), durability=any_durability)
    assert beside.keys() == []
    graph.invoke(Command(resume="yes"), thread(), durability=any_durability)
    assert (calls, beside.keys()) == ([[], []], ["before2", "after", "beside"])


def test_a_failing_router_keeps_its_nodes_writes_and_is_called_again_alone(beside: Place) -> None:
    left = [1]

    def route(state: Log, store: BaseStore) -> str:
        store.put(N, f"route{left[0]}", {"n": 1})
        if left[0]:
            left[0] -= 1
            raise ValueError("no way")
        return END

    graph = StateGraph(Log).add_node("a", puts("a")).add_edge(START, "a").add_conditional_edges("a", route)
    compiled = beside.compiled(graph)
    with pytest.raises(ValueError, match="no way"):
        compiled.invoke({}, thread())
    assert beside.keys() == []
    compiled.invoke(None, thread())
    assert beside.keys() == ["a", "route0"]


def test_a_router_of_start_writes_with_the_inputs_commit(beside: Place) -> None:
    def route(state: Log, store: BaseStore) -> str:
        store.put(N, "start", {"n": 1})
        return "a"

    graph = StateGraph(Log).add_node("a", lambda state, store: {"log": seen(store)})
    graph.add_conditional_edges(START, route, ["a"])
    assert beside.compiled(graph).invoke({}, thread()) == {"log": ["start"]}


def test_outcomes_that_cannot_be_merged_have_written_nothing(beside: Place) -> None:
    graph = StateGraph(Strict).add_node("a", puts("a", lambda state: {"total": 1})).add_edge(START, "a")
    with pytest.raises(MergeError):
        beside.compiled(graph).invoke({"total": 0}, thread())
    assert beside.keys() == []


def test_what_comes_after_the_node_is_over_is_refused(place: Place) -> None:
    kept: list[Any] = []

    def node(state: Log, store: BaseStore) -> None:
        kept.append(store)

    place.compiled(chain(("a", node))).invoke({}, thread())
    place.store.put(N, "k", {"n": 1})
    assert seen(kept[0]) == ["k"]
    with pytest.raises(ItemsClosedError) as caught:
        kept[0].put(N, "late", {"n": 1})
    assert caught.value.fields() == {"namespace": "n", "key": "late"}
    assert place.keys() == ["k"]


def test_a_run_that_lost_its_thread_writes_no_items(beside: Place) -> None:
    """INV-2."""

    def node(state: Log, store: BaseStore) -> None:
        store.put(N, "k", {"n": 1})
        beside.saver.delete_thread("t")

    with pytest.raises(LeaseLostError):
        beside.compiled(chain(("a", node))).invoke({}, thread())
    assert beside.keys() == []


# -- edits, answers, forks --------------------------------------------------------------------------------------------


def half_done(place: Place) -> Any:
    """Return a graph, and leave the thread where `a` has finished and `b` asks."""
    graph = place.compiled(fan(("a", puts("a")), ("b", lambda state: {"log": [interrupt("?")]})))
    graph.invoke({}, thread())
    assert place.keys() == []
    return graph


def test_an_edit_carries_what_finished_tasks_wrote(beside: Place) -> None:
    graph = half_done(beside)
    graph.update_state(thread(), {"log": []}, as_node=START)
    assert beside.keys() == []
    graph.invoke(Command(resume="yes"), thread())
    assert beside.keys() == ["a"]


def test_an_edit_that_ends_the_superstep_applies_what_it_merges(beside: Place) -> None:
    graph = half_done(beside)
    graph.update_state(thread(), None, as_node=END)
    assert (graph.get_state(thread()).values, beside.keys()) == ({"log": ["a"]}, ["a"])


def test_a_new_input_drops_what_it_drops(beside: Place) -> None:
    graph = half_done(beside)
    graph.invoke({}, thread(), on_pending="discard")
    graph.invoke(Command(resume="yes"), thread())
    found = beside.store.get(N, "a")
    assert found is not None
    assert beside.keys() == ["a"]


def test_a_fork_does_not_write_again_what_was_written_in_the_lineage_it_left(beside: Place) -> None:
    """An item may have changed since."""
    graph = half_done(beside)
    asked = graph.get_state(thread()).config
    graph.invoke(Command(resume="yes"), thread())
    beside.store.put(N, "a", {"by": "somebody later"})
    assert graph.invoke(Command(resume="no"), asked) == {"log": ["a", "no"]}
    found = beside.store.get(N, "a")
    assert found is not None
    assert found.value == {"by": "somebody later"}


def test_a_fork_does_not_write_again_what_a_node_wrote_whose_router_waits(beside: Place) -> None:
    """As above, where the outcome that is carried is a wait."""

    def route(state: Log) -> str:
        return str(wait_for("where"))

    graph = fan(("a", puts("a")), ("b", lambda state: {"log": [interrupt("?")]}))
    compiled = beside.compiled(graph.add_conditional_edges("a", route, [END]))
    compiled.invoke({}, thread())
    asked = compiled.get_state(thread())
    compiled.update_state(thread(), {"log": []}, as_node=START)
    for at, answer in ((None, "yes"), (asked.config, "no")):
        compiled.signal(thread(), "where", END)
        resume = Command(resume=answer if at is None else {asked.interrupts[0].id: answer})
        assert compiled.invoke(resume, at or thread()) == {"log": ["a", answer]}
        if at is None:
            beside.store.put(N, "a", {"by": "somebody later"})
    found = beside.store.get(N, "a")
    assert found is not None
    assert found.value == {"by": "somebody later"}


def test_what_an_edits_routers_write_is_part_of_the_edit(anywhere: Place) -> None:
    if anywhere.saver is None:
        return

    def route(state: Log, store: BaseStore) -> str:
        store.put(N, "routed", {"n": 1})
        return END

    graph = StateGraph(Log).add_node("a", note("a")).add_edge(START, "a").add_conditional_edges("a", route)
    anywhere.compiled(graph).update_state(thread(), {"log": ["x"]}, as_node="a")
    assert anywhere.keys() == ["routed"]


def test_a_graph_without_an_item_store_does_not_go_on_where_items_would_be_lost(beside: Place) -> None:
    half_done(beside)
    graph = fan(("a", note("a")), ("b", note("b")))
    without = graph.compile(checkpointer=beside.saver)
    with pytest.raises(InvalidConfigError, match="compile the graph with store="):
        without.invoke(Command(resume="yes"), thread())
    with pytest.raises(InvalidConfigError, match="compile the graph with store="):
        without.update_state(thread(), None, as_node=END)
    graph.compile(checkpointer=beside.saver, store=beside.store).invoke(Command(resume="yes"), thread())
    assert beside.keys() == ["a"]


def test_a_store_in_memory_beside_a_saver_in_memory_is_written_ahead_of_the_commit() -> None:
    with InMemorySaver() as saver, InMemoryStore() as store:
        graph = chain(("a", puts("a")), ("b", puts("b"))).compile(checkpointer=saver, store=store)
        for chunk in graph.stream({}, thread(), stream_mode="values"):
            assert seen(store) == chunk.get("log", [])


# -- steps inside a node ----------------------------------------------------------------------------------------------


def test_what_a_step_writes_is_the_nodes_once_the_step_is_done_and_kept_with_its_record(
    anywhere: Place, call: Call
) -> None:
    """A step that is replayed does not run: what it wrote is written all the same."""
    ran: list[list[str]] = []

    @task
    def remember(name: str, store: Any = None) -> str:
        store.put(N, name, {"n": 1})
        ran.append(seen(store))
        return name

    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        store.put(N, "node", {"n": 1})
        names = [remember(name).result() for name in "ab"]
        assert seen(store) == ["node", "a", "b"]
        answers = [interrupt("?")] if anywhere.saver is not None else []
        return {"log": names + answers}

    graph = anywhere.compiled(chain(("node", node)))
    call(graph, {}, thread())
    if anywhere.saver is not None:
        assert anywhere.keys() == []
        call(graph, Command(resume="yes"), thread())
    assert (ran, anywhere.keys()) == ([["node", "a"], ["node", "a", "b"]], ["node", "a", "b"])


def test_a_failed_attempt_of_a_step_leaves_nothing(place: Place) -> None:
    attempts = iter("12")

    @task(retry_policy=SOON)
    def flaky() -> None:
        attempt = next(attempts)
        get_store().put(N, attempt, {"n": 1})
        if attempt == "1":
            raise ValueError("again")

    def node(state: Log) -> dict[str, list[str]]:
        flaky().result()
        return {"log": seen(get_store())}

    assert place.compiled(chain(("node", node))).invoke({}, thread()) == {"log": ["2"]}
    assert place.keys() == ["2"]


def test_steps_side_by_side_do_not_see_each_others_writes(place: Place) -> None:
    written, looked = threading.Event(), threading.Event()

    @task
    def writes() -> None:
        get_store().put(N, "w", {"n": 1})
        written.set()
        assert looked.wait(10)

    @task
    def looks() -> list[str]:
        assert written.wait(10)
        found = seen(get_store())
        looked.set()
        return found

    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        first, second = writes(), looks()
        first.result()
        return {"log": [*second.result(), *seen(store)]}

    assert place.compiled(chain(("node", node))).invoke({}, thread()) == {"log": ["w"]}


def test_an_effect_writes_no_items(place: Place) -> None:
    """It is not run again, and its receipt is all that is known of it."""

    @effect(on_doubt="raise")
    def charge() -> list[str]:
        with pytest.raises(InvalidItemError, match="write what it returned"):
            get_store().put(N, "lost", {"n": 1})
        return seen(get_store())

    def node(state: Log, store: BaseStore) -> dict[str, list[str]]:
        store.put(N, "node", {"n": 1})
        return {"log": charge()}

    assert place.compiled(chain(("node", node))).invoke({}, thread()) == {"log": ["node"]}
    assert place.keys() == ["node"]


async def test_an_async_workflow_writes_with_its_end(place: Place) -> None:
    @task
    async def remember(name: str) -> str:
        await get_store().aput(N, name, {"n": 1})
        return name

    @entrypoint(checkpointer=place.saver, store=place.store)
    async def work(names: str) -> list[str]:
        done = [await remember(name) for name in names]
        assert place.keys() == []
        return done

    assert await work.ainvoke("ab", thread()) == ["a", "b"]
    assert place.keys() == ["a", "b"]
