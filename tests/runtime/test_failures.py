"""A failure loses nothing: what finished stays finished, the thread says what failed, and only that runs again."""

import asyncio
import threading
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    InvalidUpdateError,
    MergeError,
    NodeCancelledError,
    NothingToRetryError,
    Send,
    SqliteSaver,
    StateGraph,
    UsageError,
)
from tests.runtime.graphs import GIVEN, Call, Counted, Flaky, Log, ask, chain, fan, letters, note, thread


def test_siblings_of_a_failed_task_finish_and_keep_their_results(call: Call, saver: SqliteSaver) -> None:
    """INV-4: here the healthy sibling even finishes after the failure."""
    failed = threading.Event()

    def fails_first(state: Log) -> dict[str, list[str]]:
        if failed.is_set():
            return {"log": ["b"]}
        failed.set()
        raise ValueError("b is broken")

    def slow(state: Log) -> dict[str, list[str]]:
        assert failed.wait(30)
        return {"log": ["c"]}

    a, b, c = Counted("a"), Counted("b", fails_first), Counted("c", slow)
    graph = fan(("a", a), ("b", b), ("c", c)).add_node("end", note("end")).add_edge(["a", "b", "c"], "end")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="b is broken"):
        call(compiled, {}, thread())
    assert compiled.get_state(thread()).next == ("b",)
    assert compiled.get_state(thread()).values == {"log": ["a", "c"]}
    assert call(compiled, None, thread()) == {"log": ["a", "b", "c", "end"]}
    assert (a.calls, b.calls, c.calls) == (1, 2, 1)


def test_only_what_is_missing_runs_again(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-4, in every mode."""
    before, done, flaky = Counted("before"), Counted("done"), Flaky("flaky", failures=2)
    graph = chain(("before", before)).add_node("done", done).add_node("flaky", flaky)
    graph.add_edge("before", "done").add_edge("before", "flaky")
    compiled = graph.compile(checkpointer=saver)
    for given in GIVEN:
        with pytest.raises(ValueError, match="flaky is broken"):
            call(compiled, given, thread(), durability=any_durability)
    assert call(compiled, None, thread(), durability=any_durability) == {"log": ["before", "done", "flaky"]}
    assert (before.calls, done.calls, flaky.calls) == (1, 1, 3)


def test_the_error_is_on_the_thread_and_on_the_exception(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="b is broken") as raised:
        call(graph, {}, thread(), durability=any_durability)
    snapshot = graph.get_state(thread())
    (task,) = snapshot.tasks
    assert (snapshot.next, snapshot.values) == (("b",), {"log": ["a"]})
    assert (task.name, task.error, task.result) == ("b", "ValueError('b is broken')", None)
    notes = "\n".join(raised.value.__notes__)
    for fact in ("'b'", task.id, "'t'", snapshot.config["configurable"]["checkpoint_id"]):
        assert fact in notes


def test_the_first_failure_in_merge_order_is_raised(call: Call, saver: SqliteSaver) -> None:
    """Whatever fails first by the clock: `b` waits until `c` and both sends have failed."""
    others = threading.Barrier(4)

    def broken(name: str) -> Any:
        def node(state: Any) -> None:
            others.wait(30)
            raise ValueError(name if isinstance(state, dict) else str(state))

        return node

    graph = fan(("c", broken("c")), ("b", broken("b"))).add_node("s", broken("s"))
    graph.add_conditional_edges(START, lambda state: [Send("s", "s0"), Send("s", "s1")], ["s"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError) as raised:
        call(compiled, {}, thread())
    assert str(raised.value) == "b"
    errors = [task.error for task in compiled.get_state(thread()).tasks]
    assert errors == [f"ValueError({name!r})" for name in ("s0", "s1", "b", "c")]


# -- retry ------------------------------------------------------------------------------------------------------------


def test_retry_runs_what_failed_and_nothing_else(saver: SqliteSaver, any_durability: str) -> None:
    done, flaky = Counted("done"), Flaky("flaky", failures=2)
    graph = fan(("done", done), ("flaky", flaky)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread(), durability=any_durability)
    with pytest.raises(ValueError, match="broken"):
        graph.retry(thread(), durability=any_durability)
    assert graph.retry(thread(), durability=any_durability) == {"log": ["done", "flaky"]}
    assert (done.calls, flaky.calls) == (1, 3)


async def test_retry_has_an_async_twin(saver: SqliteSaver) -> None:
    graph = fan(("done", note("done")), ("flaky", Flaky("flaky"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        await graph.ainvoke({}, thread())
    assert await graph.aretry(thread()) == {"log": ["done", "flaky"]}
    with pytest.raises(NothingToRetryError):
        await graph.aretry(thread())


def test_retry_where_nothing_failed_is_an_error(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver, interrupt_before=["a"])
    with pytest.raises(UsageError):
        graph.retry(thread())
    graph.invoke({}, thread())
    for _ in ("breakpoint", "question"):
        with pytest.raises(NothingToRetryError, match="Thread t has no failed task"):
            graph.retry(thread())
        graph.invoke(None, thread())
    finished = letters("a").compile(checkpointer=saver)
    finished.invoke({}, thread("done"))
    with pytest.raises(NothingToRetryError):
        finished.retry(thread("done"))


# -- routers ----------------------------------------------------------------------------------------------------------


class FlakyRouter(Flaky):
    """A router that raises as often as told, then names a node."""

    def __call__(self, state: Any) -> Any:
        super().__call__(state)
        return self.name


def test_M4_a_failing_router_is_told_and_retried_alone(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """LangGraph's report 3014: an exception in a conditional edge ended the graph without an error.

    INV-4: the node's writes are kept; it does not run again.
    """
    node, router = Counted("a"), FlakyRouter("b")
    graph = chain(("a", node)).add_node("b", note("b")).add_conditional_edges("a", router, ["b"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="b is broken"):
        call(compiled, {}, thread(), durability=any_durability)
    (task,) = compiled.get_state(thread()).tasks
    assert (task.name, task.error) == ("a", "ValueError('b is broken')")
    assert call(compiled, None, thread(), durability=any_durability) == {"log": ["a", "b"]}
    assert (node.calls, router.calls) == (1, 2)


def test_a_failing_router_of_the_entry_keeps_the_input(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    router = FlakyRouter("b")
    graph = StateGraph(Log).add_node("b", note("b")).add_conditional_edges(START, router, ["b"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="b is broken"):
        call(compiled, {"log": ["in"]}, thread(), durability=any_durability)
    assert compiled.get_state(thread()).next == (START,)
    assert call(compiled, None, thread(), durability=any_durability) == {"log": ["in", "b"]}


def test_M4_the_error_of_a_router_ends_a_stream_too(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a"))).add_node("b", note("b")).add_conditional_edges("a", FlakyRouter("b"), ["b"])
    with pytest.raises(ValueError, match="b is broken"):
        list(graph.compile(checkpointer=saver).stream({}, thread()))


# -- merging ----------------------------------------------------------------------------------------------------------


class Ballot(TypedDict, total=False):
    choice: str


def test_two_writes_to_a_single_value_fail_the_run_and_keep_both(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    a, b = Counted("a", lambda s: {"choice": "a"}), Counted("b", lambda s: {"choice": "b"})
    graph = fan(("a", a), ("b", b), schema=Ballot).compile(checkpointer=saver)
    for given in GIVEN:
        with pytest.raises(InvalidUpdateError, match="At key 'choice': Can receive only one value per step") as raised:
            call(graph, given, thread(), durability=any_durability)
        assert raised.value.channel == "choice"  # type: ignore[attr-defined]
        assert raised.value.tasks == ["a", "b"]  # type: ignore[attr-defined]
    assert (a.calls, b.calls) == (1, 1)
    assert [task.result for task in graph.get_state(thread()).tasks] == [{"choice": "a"}, {"choice": "b"}]


class Sum:
    """A reducer that can be repaired."""

    broken = True

    def __call__(self, left: list[str], right: list[str]) -> list[str]:
        if self.broken and left:
            raise ZeroDivisionError("cannot add")
        return left + right


def test_a_failing_reducer_is_named_and_merged_again_once_it_is_repaired(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """INV-4: a failing merge keeps the outcomes; retry merges them again and runs nothing."""
    reducer = Sum()

    class Sums(TypedDict):
        log: Annotated[list[str], reducer]

    a, b = Counted("a"), Counted("b")
    graph = fan(("a", a), ("b", b), schema=Sums).compile(checkpointer=saver)
    with pytest.raises(MergeError, match="cannot add") as raised:
        call(graph, {}, thread(), durability=any_durability)
    assert raised.value.fields()["channel"] == "log"
    assert raised.value.fields()["tasks"] == ["a", "b"]
    assert graph.get_state(thread()).config["configurable"]["checkpoint_id"]
    assert len(list(graph.get_state_history(thread()))) >= 1
    reducer.broken = False
    assert graph.retry(thread(), durability=any_durability) == {"log": ["a", "b"]}
    assert (a.calls, b.calls) == (1, 1)


def test_what_is_no_update_is_refused_naming_the_value(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", lambda state: 42)).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="Expected dict, got 42"):
        call(graph, {}, thread())
    assert graph.get_state(thread()).next == ("b",)


async def test_a_cancelled_error_raised_by_a_node_is_a_failure(saver: SqliteSaver) -> None:
    async def node(state: Log) -> None:
        raise asyncio.CancelledError("by hand")

    graph = fan(("a", note("a")), ("b", node)).compile(checkpointer=saver)
    with pytest.raises(NodeCancelledError, match="'b'"):
        await graph.ainvoke({}, thread())
    with pytest.raises(NodeCancelledError, match="'b'"):
        await chain(("b", node)).compile().ainvoke({})
    assert graph.get_state(thread()).values == {"log": ["a"]}
