"""Looking at a thread: its state, its history, and what each checkpoint says about itself."""

import contextlib
import copy
import pickle
from typing import Any, TypedDict

import pytest

from stepwell import END, START, Send, SqliteSaver, StateGraph, points
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Flaky, Log, ask, chain, fan, letters, note, thread


def history(graph: Any, config: Any = None, **options: Any) -> list[Any]:
    return list(graph.get_state_history(config or thread(), **options))


def test_the_history_of_a_chain_newest_first(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    call(graph, {"log": ["in"]}, thread())
    snapshots = history(graph)
    assert [(s.metadata["source"], s.metadata["step"], s.next, s.values) for s in snapshots] == [
        ("loop", 2, (), {"log": ["in", "a", "b"]}),
        ("loop", 1, ("b",), {"log": ["in", "a"]}),
        ("loop", 0, ("a",), {"log": ["in"]}),
        ("input", -1, (START,), {"log": []}),
    ]
    assert [s.parent_config for s in snapshots] == [*(s.config for s in snapshots[1:]), None]
    assert [s.writes for s in snapshots] == [
        {"b": {"log": ["b"]}},
        {"a": {"log": ["a"]}},
        {START: {"log": ["in"]}},
        None,
    ]
    assert [[task.result for task in s.tasks] for s in snapshots] == [
        [],
        [{"log": ["b"]}],
        [{"log": ["a"]}],
        [{"log": ["in"]}],
    ]


def test_exit_mode_keeps_the_last_checkpoint_only_and_it_is_the_same(call: Call, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    last = {}
    for mode in ("sync", "async", "exit"):
        call(graph, {"log": ["in"]}, thread(mode), durability=mode)
        snapshots = history(graph, thread(mode))
        last[mode] = (snapshots[0].values, snapshots[0].next, snapshots[0].metadata, snapshots[0].writes)
        assert len(snapshots) == (1 if mode == "exit" else 4)
    assert last["sync"] == last["async"] == last["exit"]


def test_metadata_is_source_step_parents_and_what_the_caller_gave(call: Call, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    call(graph, {}, thread("plain"))
    assert graph.get_state(thread("plain")).metadata == {"source": "loop", "step": 1, "parents": {}}
    config = {"configurable": {"thread_id": "t", "tenant": "blue", "__hidden": 1}, "metadata": {"user": "ada"}}
    call(graph, {}, config)
    given = {"user": "ada", "tenant": "blue"}
    assert graph.get_state(thread()).metadata == {"source": "loop", "step": 1, "parents": {}, **given}


def test_run_lineage_seq_and_digest_are_fields_of_their_own(call: Call, saver: SqliteSaver) -> None:
    """INV-9 and INV-10: order is a counter, every row has a digest."""
    graph = letters("abc").compile(checkpointer=saver)
    call(graph, {}, thread(run_id="run-1"))
    snapshots = history(graph)
    assert {(s.run_id, s.lineage) for s in snapshots} == {("run-1", 0)}
    assert [s.seq for s in snapshots] == sorted((s.seq for s in snapshots), reverse=True)
    assert len({s.digest for s in snapshots}) == 5
    assert all(len(bytes.fromhex(s.digest)) == 16 for s in snapshots)


# -- choosing from the history ----------------------------------------------------------------------------------------


def test_the_history_is_filtered_limited_and_begun_anywhere(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    for number in (1, 2):
        graph.invoke({}, thread(metadata={"number": number, "kind": "odd" if number % 2 else "even"}))
    everything = history(graph)
    assert len(everything) == 10
    assert history(graph, limit=3) == everything[:3]
    assert history(graph, limit=0) == []
    assert history(graph, before=everything[4].config) == everything[5:]
    assert history(graph, before=everything[4].config, limit=2) == everything[5:7]
    assert history(graph, filter={"source": "input"}) == [s for s in everything if s.metadata["source"] == "input"]
    assert history(graph, filter={"number": 1}) == everything[5:]
    assert history(graph, filter={"kind": "even", "source": "loop"}) == everything[:4]
    assert history(graph, filter={"step": 1}) == [s for s in everything if s.metadata["step"] == 1]
    assert history(graph, filter={"number": 1, "kind": "even"}) == []
    assert history(graph, thread("other")) == []


@pytest.mark.parametrize("key", ["x' OR 1=1 --", "$.source", "source') OR ('1'='1", "", "a.b", "%", '"'])
def test_a_hostile_filter_finds_nothing(key: str, saver: SqliteSaver) -> None:
    """INV-14: no filter key or value widens a result set."""
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    try:
        assert history(graph, filter={key: 1}) == []
        assert history(graph, filter={key: "loop"}) == []
    except ValueError as refused:
        assert "filter" in str(refused)
    assert history(graph, filter={"source": "loop' OR '1'='1"}) == []


# -- the head and what is on its way ----------------------------------------------------------------------------------


def test_the_head_shows_finished_tasks_applied_and_a_checkpoint_by_id_does_not(call: Call, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    head = graph.get_state(thread())
    by_id = graph.get_state(head.config)
    assert (head.values, head.next) == ({"log": ["a"]}, ("b",))
    assert (by_id.values, by_id.next) == ({"log": []}, ("a", "b"))
    assert [task.result for task in by_id.tasks] == [{"log": ["a"]}, None]


def lost(state: Log) -> str:
    raise ValueError("no way is open")


def stopped(state: Log) -> Any:
    raise KeyboardInterrupt


class Single(TypedDict, total=False):
    value: int


UNFINISHED: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "a task failed": (chain(("a", Flaky("a", 9))), {}, ("a",)),
    "a sibling failed": (fan(("a", note("a")), ("b", Flaky("b", 9))), {}, ("b",)),
    "the router failed": (chain(("a", note("a"))).add_conditional_edges("a", lost, [END]), {}, ("a",)),
    "the router of the entry failed": (
        StateGraph(Log).add_node("a", note("a")).add_conditional_edges(START, lost, ["a"]),
        {},
        (START,),
    ),
    "two wrote to one value": (
        fan(("a", lambda state: {"value": 1}), ("b", lambda state: {"value": 2}), schema=Single),
        {},
        ("a", "b"),
    ),
    "a result cannot be stored": (chain(("a", lambda state: {"log": [object()]})), {}, ("a",)),
    "a question is open": (chain(("a", note("a")), ("ask", ask("ask"))), {}, ("ask",)),
    "a question is open beside what has finished": (fan(("a", note("a")), ("ask", ask("ask"))), {}, ("ask",)),
    "a breakpoint before": (letters("ab"), {"interrupt_before": ["a"]}, ("a",)),
    "a breakpoint behind": (letters("ab"), {"interrupt_after": ["a"]}, ("b",)),
    "the limit was reached": (letters("ab"), {"on_limit": "stop"}, ("b",)),
    "it was interrupted": (chain(("a", stopped)), {}, ("a",)),
}


@pytest.mark.parametrize("why", UNFINISHED)
def test_a_thread_that_is_not_finished_never_shows_an_empty_next(
    why: str, saver: SqliteSaver, any_durability: str
) -> None:
    """LangGraph shows what is still to run only while no task has finished or failed in a way that it drops."""
    graph, options, expected = UNFINISHED[why]
    compiled = graph.compile(checkpointer=saver)
    with contextlib.suppress(Exception, KeyboardInterrupt):
        compiled.invoke({}, thread(recursion_limit=1), durability=any_durability, **options)
    (summary,) = saver.threads()
    assert summary.status in ("failed", "paused", "cancelled")
    assert compiled.get_state(thread()).next == expected
    assert compiled.get_state(compiled.get_state(thread()).config).next != ()


@pytest.mark.parametrize("used", [False, True], ids=["first-input", "second-input"])
@pytest.mark.parametrize("point", [p for p in points.ALL if not p.startswith("copy.") and p != points.ROWS_DELETED])
def test_a_thread_whose_process_died_never_shows_an_empty_next(
    point: str, used: bool, any_durability: Any, deaths: Deaths
) -> None:
    """Whatever line it died at: the run never began, or something is left to do, or it has finished."""
    died, nth = True, 0
    while died:
        nth += 1
        saver = Saver(deaths.clock)
        graph = letters("ab").compile(checkpointer=saver)
        if used:
            graph.invoke({}, thread())
        deaths.dies_at(point, nth)
        with contextlib.suppress(SimulatedCrash):
            graph.invoke({}, thread(), durability=any_durability)
        died = deaths.dead
        deaths.revive()
        statuses = [summary.status for summary in saver.threads()]
        assert bool(graph.get_state(thread()).next) == (statuses not in ([], ["finished"]))


def test_an_input_that_is_on_no_checkpoint_yet_is_still_to_begin(deaths: Deaths) -> None:
    """`exit` mode: the question that the input dropped is not shown as open, and the values are those before it."""
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=Saver(deaths.clock))
    graph.invoke({}, thread())
    deaths.dies_at(points.ADMITTED)
    with pytest.raises(SimulatedCrash):
        graph.invoke({"log": ["2nd"]}, thread(run_id="r2"), durability="exit", on_pending="discard")
    deaths.revive()
    state = graph.get_state(thread())
    assert (state.values, state.next, state.tasks, state.interrupts) == ({"log": ["a"]}, (START,), (), ())
    assert state.run_id == "r2"
    assert graph.get_state(state.config).next == ("ask",), "the checkpoint is as it was committed"


def test_sends_are_listed_one_by_one(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("s", ask("s"))
    graph.add_conditional_edges(START, lambda state: [Send("s", {"log": ["x"]})] * 3, ["s"])
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {}, thread())
    snapshot = compiled.get_state(thread())
    assert snapshot.next == ("s", "s", "s")
    assert [task.path for task in snapshot.tasks] == [("__pregel_push", index, False) for index in range(3)]
    assert len({task.id for task in snapshot.tasks}) == 3
    assert len(snapshot.interrupts) == 3


def test_a_thread_that_never_ran_is_empty(saver: SqliteSaver) -> None:
    snapshot = letters("a").compile(checkpointer=saver).get_state(thread("new"))
    assert (snapshot.values, snapshot.next, snapshot.metadata, snapshot.tasks) == ({}, (), None, ())
    assert snapshot.created_at is None
    assert snapshot.config == thread("new")


def test_threads_do_not_see_each_other(saver: SqliteSaver) -> None:
    """INV-14, with ids that try to reach further."""
    graph = letters("a").compile(checkpointer=saver)
    names = ["t", "T", "t ", "t%", "t_", "%", "t' OR '1'='1", 't"', "t\x1f", "ť", "t\u0301", "t|x", "t:x", "../t", "🂡"]
    for name in names:
        graph.invoke({"log": [name]}, thread(name))
    for name in names:
        assert graph.get_state(thread(name)).values == {"log": [name, "a"]}
        assert len(history(graph, thread(name))) == 3


def test_an_abandoned_question_stays_in_the_history(call: Call, saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    asked = graph.get_state(thread())
    call(graph, {}, thread(), on_pending="discard")
    assert [task.interrupts for task in graph.get_state(asked.config).tasks] == [asked.interrupts]


async def test_the_async_twins_show_the_same(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    await graph.ainvoke({}, thread())
    assert await graph.aget_state(thread()) == graph.get_state(thread())
    found = [s async for s in graph.aget_state_history(thread(), filter={"source": "loop"}, limit=2)]
    assert found == history(graph, filter={"source": "loop"}, limit=2)
    config = await graph.aupdate_state(thread(), {"log": ["x"]})
    assert (await graph.aget_state(config)).values == {"log": ["a", "b", "x"]}
    forked = await graph.afork(found[1].config)
    assert (await graph.aget_state(forked)).next == ("b",)


def test_a_snapshot_unpacks_pickles_and_copies_as_a_named_tuple_does(saver: SqliteSaver) -> None:
    graph: Any = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    for found in (graph.get_state(thread()), next(graph.get_state_history(thread()))):
        values, upcoming, *_, interrupts = found
        assert (values, upcoming, interrupts) == ({"log": ["a", "b"]}, (), ()) and len(found) == 8
        assert found[0] is found.values and list(found._asdict()) == list(found._fields)
        assert found._replace(values={"log": []}).values == {"log": []}
        assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == copy.copy(found) == found
        assert pickle.loads(pickle.dumps(found)).seq == found.seq
