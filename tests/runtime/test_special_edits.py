"""Edits that are more than one update: supersteps of them, inputs, copies, clearing; and what an update stands for."""

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    END,
    START,
    Command,
    InMemorySaver,
    InvalidUpdateError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    StateUpdate,
    UnknownTaskError,
)
from tests.runtime.graphs import Counted, Flaky, Log, ask, chain, fan, letters, note, thread

Bulk = Callable[..., Any]


def _abulk(graph: Any, *args: Any) -> Any:
    return asyncio.run(graph.abulk_update_state(*args))


@pytest.fixture(params=["sync", "async"])
def bulk(request: pytest.FixtureRequest) -> Bulk:
    """Edit in bulk by each API in turn."""
    return _abulk if request.param == "async" else lambda graph, *args: graph.bulk_update_state(*args)


def shown(graph: Any, config: Any = None) -> list[Any]:
    """Return (values, next, source, step) of the whole history, oldest first."""
    found = list(graph.get_state_history(config or thread()))[::-1]
    return [(s.values, s.next, s.metadata["source"], s.metadata["step"]) for s in found]


def log(*names: str) -> dict[str, list[str]]:
    return {"log": list(names)}


# -- many at once -----------------------------------------------------------------------------------------------------


def test_each_superstep_of_updates_is_one_checkpoint(bulk: Bulk, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    config = bulk(graph, thread(), [[StateUpdate(log("1"), "a")], [(log("2"), "b"), (log("3"), "a")]])
    assert graph.get_state(thread()).config == config
    assert shown(graph) == [(log("1"), ("b",), "update", 0), (log("1", "2", "3"), ("b", "c"), "update", 1)]


def test_updates_of_one_superstep_are_folded_in_the_order_given(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.bulk_update_state(thread(), [[StateUpdate(log(name), name) for name in "cab"]])
    assert graph.get_state(thread()).values == log("c", "a", "b")


def test_edits_in_bulk_cost_one_transaction(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    before = saver.store.counts.transactions
    graph.bulk_update_state(thread(), [[StateUpdate(log(name), "a")] for name in "xyz"])
    assert saver.store.counts.transactions == before + 1


def test_edits_in_bulk_are_written_together_or_not_at_all(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver)
    for wrong in (StateUpdate(5, "b"), StateUpdate({"log": 5}, "b"), StateUpdate(log("x"), "b", "no task")):
        with pytest.raises(Exception, match=r"got 5|could not be combined|plans no task"):
            graph.bulk_update_state(thread(), [[StateUpdate(log("1"), "a")], [wrong]])
    assert shown(graph) == []


@pytest.mark.parametrize(
    ("supersteps", "told"),
    [
        ([], "No supersteps provided"),
        ([[]], "No updates provided"),
        ([[StateUpdate({}, "a")], []], "No updates provided"),
        ([[StateUpdate({}, "a"), StateUpdate({}, None)]], "as_node is required when applying multiple updates"),
        ([[StateUpdate(None, END), StateUpdate({}, "a")]], "Cannot apply multiple updates when clearing state"),
        (
            [[StateUpdate({}, "__input__"), StateUpdate({}, "a")]],
            "multiple updates when updating as input",
        ),
        ([[StateUpdate(None, "__copy__"), StateUpdate({}, "a")]], "Cannot copy checkpoint with multiple updates"),
        ([[StateUpdate({}, "a"), StateUpdate({}, "__input__")]], "Node __input__ does not exist"),
        ([[StateUpdate({"log": []}, END)]], "Node __end__ does not exist"),
        ([[StateUpdate({}, "a"), StateUpdate({}, "b")], [StateUpdate({}, "zz")]], "Node zz does not exist"),
        ([[StateUpdate(None, "__input__")]], "Received no input writes for __start__"),
        ([[StateUpdate(5, "__input__")]], "Expected the input to be a dict"),
        ([[StateUpdate(None, "__copy__")]], "Cannot copy a non-existent checkpoint"),
        ([[StateUpdate([5], "__copy__")]], "Invalid update item: 5 when copying checkpoint"),
        ([[StateUpdate({"log": []}, "__copy__")]], "A copy takes a list"),
        ([[StateUpdate([({}, None), ({}, None)], "__copy__")]], "as_node is required"),
        ([["a"]], "Expected a StateUpdate"),
    ],
)
def test_updates_that_cannot_be_carried_out_are_refused(supersteps: Any, told: str, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match=told) as raised:
        graph.bulk_update_state(thread(), supersteps)
    assert isinstance(raised.value, ValueError)
    assert shown(graph) == []


def test_a_thread_written_by_hand_reads_like_one_that_ran(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    for _ in range(2):
        graph.invoke(log("in"), thread("ran"))
    turn = [
        [StateUpdate(log("in"), "__input__")],
        [StateUpdate(log("in"), START)],
        *([StateUpdate(log(name), name)] for name in "ab"),
    ]
    graph.bulk_update_state(thread("written"), turn * 2)
    ran, written = ([list(graph.get_state_history(thread(t)))] for t in ("ran", "written"))

    def plain(history: list[Any]) -> list[Any]:
        return [(s.values, s.next, s.metadata["step"], [(t.name, t.result) for t in s.tasks]) for (s) in history[0]]

    assert plain(written) == plain(ran)
    assert graph.invoke(None, thread("written")) == graph.invoke(None, thread("ran"))


# -- whom an edit acts as ---------------------------------------------------------------------------------------------


def test_an_edit_does_not_count_as_the_last_that_ran(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_after=["a"])
    graph.invoke({}, thread())
    graph.update_state(thread(), log("as b"), as_node="b")
    graph.update_state(thread(), log("as a"))
    assert graph.get_state(thread()).next == ("b",)


def test_an_edit_before_the_first_node_acts_as_the_input(saver: SqliteSaver) -> None:
    """Also where the graph has one node only."""
    graph = letters("a").compile(checkpointer=saver, interrupt_before=["a"])
    graph.invoke(log("in"), thread())
    graph.update_state(thread(), log("edit"))
    assert graph.get_state(thread()).next == ("a",)
    assert graph.invoke(None, thread()) == log("in", "edit", "a")


def test_E1_the_edit_after_a_seed_is_the_same_for_both_apis(saver: SqliteSaver) -> None:
    """LangGraph's report 8714: after `update_state(..., as_node=START)` the async edit demanded `as_node`."""
    graph = letters("ab").compile(checkpointer=saver)

    async def seeded() -> None:
        await graph.aupdate_state(thread("async"), log("seed"), as_node=START)
        await graph.aupdate_state(thread("async"), log("edit"))

    graph.update_state(thread("sync"), log("seed"), as_node=START)
    graph.update_state(thread("sync"), log("edit"))
    asyncio.run(seeded())
    assert shown(graph, thread("sync")) == shown(graph, thread("async"))
    assert shown(graph, thread("sync"))[-1] == (log("seed", "edit"), ("a",), "update", 1)


def test_an_edit_of_no_values_is_an_edit(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.update_state(thread(), None)
    graph.update_state(thread(), None, as_node="a")
    assert [entry[1:] for entry in shown(graph)] == [(("a",), "update", 0), (("b",), "update", 1)]


def test_an_edit_may_jump(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.update_state(thread(), Command(update=log("x"), goto=["c", Send("b", {})]), as_node="a")
    assert graph.get_state(thread()).next == ("b", "b", "c")


def test_a_router_that_is_retried_within_an_edit_writes_nothing_meanwhile(saver: SqliteSaver) -> None:
    failures = iter([True, True, False])

    def route(state: Log) -> str:
        if next(failures):
            raise ConnectionError("not now")
        return END

    policy = RetryPolicy(initial_interval=0, jitter=False)
    graph = StateGraph(Log).add_node("a", note("a"), retry_policy=policy).add_edge(START, "a")
    compiled = graph.add_conditional_edges("a", route, [END]).compile(checkpointer=saver)
    compiled.bulk_update_state(thread(), [[StateUpdate(log("x"), START)], [StateUpdate(log("y"), "a")]])
    assert shown(compiled)[-1] == (log("x", "y"), (), "update", 1)


# -- the task an update stands for ------------------------------------------------------------------------------------


def test_an_update_is_shown_as_the_result_of_the_task_it_stands_for(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_after=["a"])
    graph.invoke({}, thread())
    base = graph.get_state(thread())
    graph.update_state(thread(), log("by hand"), as_node="b")
    assert [task.result for task in graph.get_state(base.config).tasks] == [log("by hand")]
    assert graph.get_state(thread()).writes == {"b": log("by hand")}


def test_an_update_may_name_its_task(saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_node("b", note("b")).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: [Send("b", log(n)) for n in "xyz"], ["b"])
    compiled = graph.compile(checkpointer=saver, interrupt_before=["b"])
    compiled.invoke({}, thread())
    base = compiled.get_state(thread())
    third = base.tasks[2].id
    compiled.bulk_update_state(thread(), [[StateUpdate(log("1"), "b"), StateUpdate(log("3"), "b", third)]])
    assert [task.result for task in compiled.get_state(base.config).tasks] == [log("1"), None, log("3")]
    with pytest.raises(UnknownTaskError, match=f"plans no task {third}"):
        compiled.update_state(thread(), log("x"), task_id=third)
    with pytest.raises(InvalidUpdateError, match="is of node 'b', not of 'a'"):
        compiled.update_state(base.config, log("x"), as_node="a", task_id=third)
    with pytest.raises(InvalidUpdateError, match="Two updates stand for task"):
        compiled.bulk_update_state(base.config, [[StateUpdate(log("x"), "b", third)] * 2])
    named = compiled.get_state(compiled.update_state(base.config, log("by task"), task_id=third))
    assert named.writes == {"b": log("by task")}


def test_an_update_does_not_hide_what_a_finished_task_wrote(saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    base = graph.get_state(graph.get_state(thread()).config)
    graph.bulk_update_state(thread(), [[StateUpdate(log("1"), "a"), StateUpdate(log("2"), "b")]])
    assert [task.result for task in graph.get_state(base.config).tasks] == [log("a"), log("2")]


# -- END --------------------------------------------------------------------------------------------------------------


def test_clearing_keeps_what_had_finished_and_where_it_led(saver: SqliteSaver) -> None:
    done = Counted("a")
    graph = fan(("a", done), ("b", Flaky("b", 9))).add_node("c", note("c")).add_edge("a", "c")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        compiled.invoke({}, thread())
    compiled.update_state(thread(), None, as_node=END)
    assert shown(compiled)[-1] == (log("a"), ("c",), "update", 1)
    assert compiled.invoke(None, thread()) == log("a", "c")
    assert done.calls == 1


def test_clearing_an_open_question_finishes_the_thread(saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.update_state(thread(), None, as_node=END)
    state = graph.get_state(thread())
    assert (state.next, state.interrupts, state.tasks) == ((), (), ())
    with saver.store.reading() as reader:
        found = reader.thread("t")
    assert found is not None
    assert found.status == "finished"


def test_clearing_what_is_clear_adds_a_checkpoint(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.update_state(thread(), None, as_node=END)
    assert shown(graph) == [({"log": []}, (), "update", 0)]


def test_clearing_an_older_checkpoint_brings_nothing_along(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    before_b = next(s.config for s in graph.get_state_history(thread()) if s.next == ("b",))
    cleared = graph.get_state(graph.update_state(before_b, None, as_node=END))
    assert (cleared.values, cleared.next, cleared.lineage) == (log("a"), (), 1)


# -- __input__ --------------------------------------------------------------------------------------------------------


def test_an_edit_as_input_begins_and_runs_nothing(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.update_state(thread(), log("in"), as_node="__input__")
    assert shown(graph)[-1] == (log("a", "b"), (START,), "input", 3)
    assert graph.invoke(None, thread()) == log("a", "b", "in", "a", "b")


def test_an_edit_as_input_drops_what_was_planned(saver: SqliteSaver) -> None:
    """As a new input does; LangGraph would run both."""
    graph = letters("ab").compile(checkpointer=saver, interrupt_before=["b"])
    graph.invoke({}, thread())
    graph.update_state(thread(), log("in"), as_node="__input__")
    assert graph.get_state(thread()).next == (START,)


# -- __copy__ ---------------------------------------------------------------------------------------------------------


def test_a_copy_stands_beside_its_checkpoint(bulk: Bulk, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    original = next(s for s in graph.get_state_history(thread()) if s.next == ("b",))
    copy = graph.get_state(bulk(graph, original.config, [[StateUpdate(None, "__copy__")]]))
    assert (copy.values, copy.next, copy.parent_config) == (original.values, original.next, original.parent_config)
    assert (copy.metadata["source"], copy.metadata["step"], copy.lineage) == ("fork", original.metadata["step"] + 1, 1)
    assert graph.invoke(None, copy.config) == log("a", "b")


def test_a_copy_of_the_first_checkpoint_has_no_parent_either(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke(log("in"), thread())
    first = list(graph.get_state_history(thread()))[-1]
    copy = graph.get_state(graph.update_state(first.config, [(log("in*"), START)], as_node="__copy__"))
    assert copy.values == log("in*")
    root = graph.get_state(copy.parent_config)
    assert (root.parent_config, root.next, root.lineage) == (None, (START,), 1)
    assert [task.result for task in root.tasks] == [log("in*")]
    assert graph.invoke(None, copy.config) == log("in*", "a", "b")
    assert graph.get_state(first.config) == first


def test_a_copy_asks_again(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    pause = graph.get_state(thread())
    copy = graph.update_state(pause.config, None, as_node="__copy__")
    assert graph.get_state(copy).interrupts == ()
    assert [i.value for i in graph.invoke(None, copy)["__interrupt__"]] == ["ask"]
    assert graph.invoke(Command(resume="new"), copy) == log("a", "ask='new'")
    assert graph.get_state(pause.config).interrupts == pause.interrupts


def test_a_copy_may_bring_updates_of_its_tasks(saver: SqliteSaver) -> None:
    """Updates of one node come together, in the order in which the nodes are first named."""
    graph = StateGraph(Log).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
    graph.add_edge(START, "a").add_edge("a", "c")
    graph.add_conditional_edges("a", lambda state: [Send("b", {}), Send("b", {})], ["b"])
    compiled = graph.compile(checkpointer=saver, interrupt_after=["a"])
    compiled.invoke({}, thread())
    base = compiled.get_state(thread())
    updates = [(log("1"), "b"), (log("c"), "c"), StateUpdate(log("2"), "b", base.tasks[0].id)]
    made = compiled.get_state(compiled.update_state(base.config, updates, as_node="__copy__"))
    assert made.values == log("a", "1", "2", "c")
    assert [task.result for task in compiled.get_state(made.parent_config).tasks] == [log("2"), log("1"), log("c")]


# -- branches from one checkpoint -------------------------------------------------------------------------------------


class Numbers(TypedDict, total=False):
    numbers: Annotated[list[int], operator.add]


def test_D4_each_edit_of_an_old_checkpoint_is_a_branch_of_its_own(bulk: Bulk, saver: SqliteSaver) -> None:
    """LangGraph's report 8551: the second edit of an old checkpoint was written into the first one's branch."""
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    old = next(s.config for s in graph.get_state_history(thread()) if s.next == ("b",))
    heads = [bulk(graph, old, [[StateUpdate(log(name), "a")]]) for name in ("x", "y")]
    assert [graph.get_state(head).values for head in heads] == [log("a", "x"), log("a", "y")]
    assert [graph.invoke(None, head) for head in heads] == [log("a", "x", "b"), log("a", "y", "b")]


def test_an_edit_that_carries_a_failure_leaves_the_thread_failed() -> None:
    with InMemorySaver() as saver:
        graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
        with pytest.raises(ValueError, match="broken"):
            graph.invoke({}, thread())
        graph.update_state(thread(), {}, as_node=START)
        with saver.store.reading() as reader:
            found = reader.thread("t")
        assert found is not None
        assert found.status == "failed"
        assert graph.retry(thread()) == log("a", "b")
