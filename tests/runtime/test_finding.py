"""Finding threads, lineages and checkpoints, and deleting what is not wanted any more."""

import contextlib
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import (
    Command,
    CompiledGraph,
    InMemorySaver,
    Interrupt,
    InvalidConfigError,
    LeaseLostError,
    ReadOnlySaverError,
    SaverClosedError,
    SqliteSaver,
    ThreadSummary,
    UnknownCheckpointError,
    effect,
)
from stepwell.testing.store_suite.drive import Drive
from stepwell.testing.store_suite.history import HOSTILE
from tests.runtime.graphs import Flaky, ask, chain, fan, letters, note, thread


def ids(summaries: Any) -> list[str]:
    return [summary.thread_id for summary in summaries]


@pytest.fixture
def crowd(saver: SqliteSaver) -> SqliteSaver:
    """Threads in each status: finished, paused, failed, and one whose process is gone."""
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver, name="graph")
    graph.invoke({}, thread("paused", metadata={"user": "ann"}))
    graph.invoke({}, thread("finished", metadata={"user": "bob"}))
    graph.invoke(Command(resume="yes"), thread("finished", metadata={"user": "bob"}))
    failing = chain(("b", Flaky("b", failures=9))).compile(checkpointer=saver, name="failing")
    with pytest.raises(ValueError, match="broken"):
        failing.invoke({}, thread("failed"))
    Drive(saver.store, "crashed", lease_seconds=-1.0, run_id="lost").admit()
    return saver


# -- threads ----------------------------------------------------------------------------------------------------------


def test_threads_are_listed_with_what_an_operator_asks_first(crowd: SqliteSaver) -> None:
    found = {summary.thread_id: summary for summary in crowd.threads()}
    assert {name: summary.status for name, summary in found.items()} == {
        "crashed": "crashed",
        "failed": "failed",
        "finished": "finished",
        "paused": "paused",
    }
    paused, failed, crashed = found["paused"], found["failed"], found["crashed"]
    assert (paused.graph_id, paused.step, paused.lineages, paused.error, paused.run_id) == ("graph", 1, 1, None, None)
    assert failed.error is not None
    assert "b is broken" in failed.error
    assert crashed.run_id == "lost"
    assert paused.config == thread("paused")
    assert paused.updated_at.tzinfo is not None


def test_a_live_run_is_running_and_a_dead_one_is_not(saver: SqliteSaver) -> None:
    """A thread whose process died is not shown as running for ever."""
    Drive(saver.store, "live", run_id="live").admit()
    Drive(saver.store, "dead", run_id="dead", lease_seconds=-1.0).admit()
    assert ids(saver.threads(status="running")) == ["live"]
    assert ids(saver.threads(status="crashed")) == ["dead"]
    assert ids(saver.threads(status=["crashed", "running"])) == ["dead", "live"]
    assert ids(saver.threads(status="running", limit=1)) == ["live"]


def test_threads_by_status_and_by_what_their_last_call_said(crowd: SqliteSaver) -> None:
    assert ids(crowd.threads(status="paused")) == ["paused"]
    assert ids(crowd.threads(filter={"user": "ann"})) == ["paused"]
    assert ids(crowd.threads(status="finished", filter={"user": "ann"})) == []


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_threads_page_by_page_are_the_whole_list(crowd: SqliteSaver, size: int) -> None:
    whole = list(crowd.threads())
    seen: list[ThreadSummary] = []
    cursor = None
    while True:
        page = crowd.threads(limit=size, before=cursor)
        seen += page
        cursor = page.more
        if cursor is None:
            break
        assert len(seen) < len(whole)
    assert seen == whole


async def test_the_async_list_of_threads_is_the_same(crowd: SqliteSaver) -> None:
    assert [summary async for summary in crowd.athreads()] == list(crowd.threads())


@pytest.mark.parametrize("wrong", [{"status": "empty"}, {"status": ["paused", "x' or 1=1 --"]}, {"before": "t"}])
def test_a_wrong_question_about_threads_is_refused(saver: SqliteSaver, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        saver.threads(**wrong)


@pytest.mark.parametrize("value", HOSTILE)
def test_no_filter_widens_a_list_of_threads(crowd: SqliteSaver, value: str) -> None:
    """INV-14."""
    assert list(crowd.threads(filter={"user": value})) == []
    assert list(crowd.threads(filter={value: "ann"})) == []
    assert [*crowd.threads(before=f"0:{value}")] == []


# -- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [513, 5_000])
def test_I7_a_thread_id_that_no_index_could_hold_is_refused_by_its_length(saver: SqliteSaver, size: int) -> None:
    """One limit, said up front, at every place that takes a thread id."""
    graph = letters("a").compile(checkpointer=saver)
    calls: list[Callable[[], Any]] = [
        lambda: graph.invoke({}, thread("x" * size)),
        lambda: graph.get_state(thread("x" * size)),
        lambda: graph.get_state_history(thread("x" * size)),
        lambda: graph.update_state(thread("x" * size), {}),
        lambda: saver.get_tuple(thread("x" * size)),
        lambda: saver.list(thread("x" * size)),
        lambda: saver.delete_thread("x" * size),
    ]
    for call in calls:
        with pytest.raises(InvalidConfigError, match=f"thread_id has {size} bytes, more than 512"):
            call()
    assert list(saver.threads()) == []
    graph.invoke({}, thread("x" * 512))
    assert graph.get_state(thread("x" * 512)).values == {"log": ["a"]}


def test_I8_a_thread_id_is_text_by_one_rule(saver: SqliteSaver) -> None:
    """A UUID and its text, an int and its text: one thread, whoever asks and however."""
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver)
    given = uuid.UUID("12345678123456781234567812345678")
    graph.invoke({}, {"configurable": {"thread_id": given}})
    graph.invoke(Command(resume="yes"), thread(str(given)))
    assert graph.get_state({"configurable": {"thread_id": given}}).values == {"log": ["ask='yes'"]}
    graph.invoke({}, {"configurable": {"thread_id": 1}})
    assert saver.get({"configurable": {"thread_id": "1"}}) == saver.get({"configurable": {"thread_id": 1}})
    assert ids(saver.threads()) == ["1", str(given)]
    saver.delete_thread(1)
    saver.delete_thread(given)
    assert ids(saver.threads()) == []
    for wrong in (True, 1.0, b"1", None, "", "  ", ("1",)):
        with pytest.raises(InvalidConfigError):
            graph.invoke({}, {"configurable": {"thread_id": wrong}})
        with pytest.raises(InvalidConfigError):
            saver.delete_thread(wrong)  # type: ignore[arg-type]


# -- lineages ---------------------------------------------------------------------------------------------------------


def test_lineages_are_a_tree_of_forks_and_heads(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    assert graph.get_lineages(thread()) == ()
    graph.invoke({}, thread())
    trunk = graph.get_state(thread()).config
    at = {snapshot.metadata["step"]: snapshot.config for snapshot in graph.get_state_history(thread())}
    first = graph.fork(at[1])
    second = graph.fork(at[2])
    graph.invoke(None, first)
    third = graph.fork(first)
    (root,) = graph.get_lineages(thread())
    assert (root.lineage, root.parent, root.forked_from, root.head) == (0, None, None, trunk)
    one, two = root.children
    (three,) = one.children
    assert (one.lineage, one.parent, one.forked_from) == (1, 0, at[1])
    assert (two.lineage, two.parent, two.forked_from, two.head) == (2, 0, at[2], second)
    assert (three.lineage, three.parent, three.forked_from, three.head) == (3, 1, first, third)
    assert graph.get_state(one.head).values == {"log": ["a", "b", "c"]}
    assert [each.lineage for each in root.walk()] == [0, 1, 3, 2]
    assert [each.lineage for each in root.walk() if each.is_current] == [3]


async def test_the_async_tree_is_the_same(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.fork(graph.get_state(thread()).config)
    assert await graph.aget_lineages(thread()) == graph.get_lineages(thread())


# -- LangGraph's reading side ------------------------------------------------------------------------------------------


def test_a_tuple_has_the_shape_that_langgraph_gives(saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("ask", ask("ask")), ("bad", Flaky("bad"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({"log": ["in"]}, thread(metadata={"user": "ann"}))
    found = saver.get_tuple(thread())
    assert found is not None
    state = graph.get_state(found.config)
    assert found.config == state.config
    assert found.metadata == state.metadata == {"user": "ann", "source": "loop", "step": 0, "parents": {}}
    assert found.parent_config == state.parent_config
    assert found.checkpoint["id"] == state.config["configurable"]["checkpoint_id"]
    assert found.checkpoint["ts"] == state.created_at
    assert found.checkpoint["channel_values"] == {"log": ["in"]}
    assert found.checkpoint["updated_channels"] == ["log"]
    tasks = {task.name: task.id for task in state.tasks}
    asked = (Interrupt(value="ask", id=state.interrupts[0].id),)
    assert found.pending_writes is not None
    assert sorted(found.pending_writes, key=lambda write: write[1]) == [
        (tasks["bad"], "__error__", "ValueError('bad is broken')"),
        (tasks["ask"], "__interrupt__", asked),
        (tasks["a"], "log", ["a"]),
    ]


def test_what_a_superstep_came_to_stays_with_its_checkpoint(saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume=None), thread())
    asked = next(each for each in saver.list(thread()) if each.metadata["step"] == 0)
    assert asked.pending_writes is not None
    assert [(channel, value) for _, channel, value in asked.pending_writes] == [
        ("log", ["ask=None"]),
        ("__resume__", [None]),
    ]


def test_a_list_is_the_history_in_tuples(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread("t"))
    graph.invoke({}, thread("u"))
    history = list(graph.get_state_history(thread("t")))
    listed = list(saver.list(thread("t")))
    assert [each.config for each in listed] == [snapshot.config for snapshot in history]
    assert [each.checkpoint["channel_values"] for each in listed] == [snapshot.values for snapshot in history]
    page = saver.list(thread("t"), limit=2)
    assert len(list(page)) == 2
    assert list(saver.list(thread("t"), before=page.more)) == listed[2:]
    assert list(saver.list(thread("t"), filter={"source": "input"})) == listed[-1:]
    assert list(saver.list(listed[1].config)) == [listed[1]]
    assert saver.get_tuple(listed[1].config) == listed[1]
    assert saver.get(listed[1].config) == listed[1].checkpoint
    assert list(saver.list(None)) == [*saver.list(thread("u")), *listed]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_list_of_all_threads_page_by_page(saver: SqliteSaver, size: int) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    for name in "tuv":
        graph.invoke({}, thread(name))
    seen: list[Any] = []
    cursor = None
    while True:
        page = saver.list(None, limit=size, before=cursor)
        seen += page
        cursor = page.more
        if cursor is None:
            break
    assert seen == list(saver.list(None))
    assert len(seen) == 12


async def test_the_async_reading_side_is_the_same(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    await graph.ainvoke({}, thread())
    assert await saver.aget_tuple(thread()) == saver.get_tuple(thread())
    assert await saver.aget(thread()) == saver.get(thread())
    assert [each async for each in saver.alist(thread(), limit=2)] == list(saver.list(thread(), limit=2))
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(thread()) is None


def test_what_is_not_there_is_none(saver: SqliteSaver) -> None:
    assert saver.get_tuple(thread()) is None
    assert saver.get(thread()) is None
    assert list(saver.list(thread())) == list(saver.list(None)) == []
    with pytest.raises(InvalidConfigError):
        saver.get_tuple({"configurable": {}})


async def test_a_saver_takes_no_writes_and_says_what_to_do(memory_saver: InMemorySaver) -> None:
    with pytest.raises(ReadOnlySaverError, match="update_state"):
        memory_saver.put(thread(), {}, {}, {})
    with pytest.raises(ReadOnlySaverError, match="put_writes"):
        memory_saver.put_writes(thread(), [], "task")
    with pytest.raises(ReadOnlySaverError):
        await memory_saver.aput(thread(), {}, {}, {})
    with pytest.raises(NotImplementedError):
        await memory_saver.aput_writes(thread(), [], "task")


# -- deleting ---------------------------------------------------------------------------------------------------------


def test_a_deleted_thread_is_as_if_it_had_never_been(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, events=True)
    graph.invoke({}, thread())
    graph.fork(graph.get_state(thread()).config)
    (run,) = saver.runs("t")
    saver.delete_thread("t")
    assert graph.get_state(thread()).metadata is None
    assert list(graph.get_state_history(thread())) == []
    assert graph.get_lineages(thread()) == ()
    assert (list(saver.runs("t")), saver.get_run(run.run_id)) == ([], None)
    assert list(saver.threads()) == []
    saver.delete_thread("t")
    saver.delete_thread("never there")
    assert graph.invoke({}, thread()) == {"log": ["a", "b"]}
    assert len(list(graph.get_state_history(thread()))) == 4


@pytest.mark.parametrize("begun_anew", [False, True], ids=["gone", "begun-anew"])
def test_G4_an_old_address_of_a_deleted_thread_leads_nowhere(saver: SqliteSaver, begun_anew: bool) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    config = graph.get_state(thread()).config
    saver.delete_thread("t")
    if begun_anew:
        graph.invoke({}, thread())
    before = list(graph.get_state_history(thread()))
    assert graph.get_state(config).metadata is None
    late: list[Callable[[], Any]] = [
        lambda: graph.invoke(None, config),
        lambda: graph.update_state(config, {"log": ["late"]}, as_node="a"),
        lambda: graph.fork(config),
    ]
    for call in late:
        with pytest.raises(UnknownCheckpointError):
            call()
    assert list(graph.get_state_history(thread())) == before


def test_G5_a_deleted_thread_leaves_no_row_but_its_tombstone(tmp_path: Path) -> None:
    """aegra's pull request 499: deleting a thread left its checkpoints. Here: no table keeps a row, no row a value."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        act = effect(on_doubt="raise", name="act")(lambda what: what)
        acting = ("a", lambda state: {"log": [act("secret" * 2_000)]})
        graph = fan(acting, ("ask", ask("ask")), ("b", Flaky("b"))).compile(
            checkpointer=saver, events=True, name="graph"
        )
        with pytest.raises(ValueError, match="broken"):
            graph.invoke({}, thread(metadata={"user": "secret"}))
        graph.fork(next(graph.get_state_history(thread(), filter={"step": 0})).config)
        graph.signal(thread(), "go", "secret")
        filled = rows_by_table(path)
        for _ in range(2):
            saver.delete_thread("t")
            left = rows_by_table(path)
            assert {table: len(rows) for table, rows in left.items() if rows} == {"threads": 1, "shapes": 1}
            assert "secret" not in repr(left)
    filled_tables = {table for table, rows in filled.items() if rows}
    assert filled_tables == set(filled) - {"items", "keys", "anchors"}, (
        "each table had what to delete; items are no thread's"
    )


def rows_by_table(path: Path) -> dict[str, list[Any]]:
    """Return every row of the file, as another connection finds it."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        names = [name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")]
        return {name: connection.execute(f"select * from {name}").fetchall() for name in names}


def test_another_graph_may_use_the_id_of_a_deleted_thread(saver: SqliteSaver) -> None:
    letters("ab").compile(checkpointer=saver, name="one").invoke({}, thread())
    saver.delete_thread("t")
    assert letters("c").compile(checkpointer=saver, name="two").invoke({}, thread()) == {"log": ["c"]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_G4_a_run_whose_thread_is_deleted_brings_nothing_back(saver: SqliteSaver, durability: Any) -> None:
    """LangGraph's report 7206: a late write brought a deleted thread back.

    INV-2: deleting fences the run out; it fails with an error that says so, and the thread stays gone.
    """

    def deletes(state: Any) -> dict[str, list[str]]:
        saver.delete_thread("t")
        return {"log": ["late"]}

    graph = chain(("a", note("a")), ("deletes", deletes), ("b", note("b"))).compile(checkpointer=saver)
    with pytest.raises(LeaseLostError, match="it was deleted"):
        graph.invoke({}, thread(), durability=durability)
    assert graph.get_state(thread()).metadata is None
    assert list(saver.threads()) == []


def test_a_run_begun_anew_is_not_disturbed_by_the_one_before(saver: SqliteSaver) -> None:
    """The old run finds its thread deleted and begun anew while it was in a node."""
    reached, go_on = threading.Event(), threading.Event()

    def held(state: Any) -> dict[str, list[str]]:
        reached.set()
        go_on.wait(30)
        return {"log": ["old"]}

    old = chain(("held", held)).compile(checkpointer=saver, name="graph")
    new = chain(("held", note("new"))).compile(checkpointer=saver, name="graph")
    errors: list[BaseException] = []

    def drive() -> None:
        try:
            old.invoke({}, thread())
        except LeaseLostError as error:
            errors.append(error)

    worker = threading.Thread(target=drive)
    worker.start()
    assert reached.wait(30)
    saver.delete_thread("t")
    assert new.invoke({}, thread()) == {"log": ["new"]}
    go_on.set()
    worker.join()
    assert len(errors) == 1
    assert new.get_state(thread()).values == {"log": ["new"]}


def test_a_damaged_thread_does_not_hide_the_others_and_can_be_deleted(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver:
        graph = letters("ab").compile(checkpointer=saver)
        for name in ("good", "bad"):
            graph.invoke({}, thread(name))
        connection = saver.store._writer.transactions.connection
        assert connection is not None
        connection.execute("update checkpoints set body = x'00' where thread_id = 'bad'")
        found = {summary.thread_id: summary for summary in saver.threads()}
        assert found["good"].damage is None
        assert found["bad"].status == "finished"
        assert "does not verify" in (found["bad"].damage or "")
        connection.execute("update threads set digest = x'00' where thread_id = 'bad'")
        found = {summary.thread_id: summary for summary in saver.threads()}
        assert (found["good"].status, found["good"].damage) == ("finished", None)
        assert found["bad"].status == "damaged"
        assert (found["bad"].damage or "").startswith("The record threads row of thread 'bad' does not verify")
        assert ids(saver.threads(status="damaged")) == ["bad"]
        assert ids(saver.threads(status="finished")) == ["good"]
        saver.delete_thread("bad")
        assert ids(saver.threads()) == ["good"]
        assert list(saver.store.verify()) == []
        assert graph.invoke({}, thread("bad")) == {"log": ["a", "b"]}


# -- sync and async, loops and lifetime -------------------------------------------------------------------------------


SYNC_SAVER_CALLS: dict[str, Callable[[SqliteSaver], Any]] = {
    "threads": lambda saver: list(saver.threads()),
    "get_tuple": lambda saver: saver.get_tuple(thread()),
    "get": lambda saver: saver.get(thread()),
    "list": lambda saver: list(saver.list(thread())),
    "runs": lambda saver: saver.runs("t"),
    "read_raw": lambda saver: saver.read_raw(thread()),
    "copy_thread": lambda saver: saver.copy_thread("t", "copy"),
    "setup": lambda saver: saver.setup(),
    "delete_thread": lambda saver: saver.delete_thread("t"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", SYNC_SAVER_CALLS)
async def test_H1_every_sync_method_of_a_saver_returns_inside_a_running_loop(saver: SqliteSaver, name: str) -> None:
    """None hangs and none needs another name: sync calls work wherever they are made."""
    await letters("ab").compile(checkpointer=saver).ainvoke({}, thread())
    SYNC_SAVER_CALLS[name](saver)


@pytest.mark.timeout(20)
async def test_H1_a_saver_is_closed_inside_a_running_loop(tmp_path: Path) -> None:
    saver = SqliteSaver(tmp_path / "threads.db")
    await letters("ab").compile(checkpointer=saver).ainvoke({}, thread())
    saver.close()


SYNC_GRAPH_CALLS: dict[str, Callable[[CompiledGraph], Any]] = {
    "invoke": lambda graph: graph.invoke({}, thread()),
    "stream": lambda graph: list(graph.stream({}, thread())),
    "get_state": lambda graph: graph.get_state(thread()),
    "get_state_history": lambda graph: list(graph.get_state_history(thread())),
    "get_lineages": lambda graph: graph.get_lineages(thread()),
    "update_state": lambda graph: graph.update_state(thread(), {"log": ["x"]}, as_node="a"),
    "fork": lambda graph: graph.fork(graph.get_state(thread()).config),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("place", ["loop", "thread"])
@pytest.mark.parametrize("name", SYNC_GRAPH_CALLS)
async def test_H2_every_sync_method_of_a_graph_returns_wherever_it_is_called(
    saver: SqliteSaver, name: str, place: str
) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    await graph.ainvoke({}, thread())
    if place == "loop":
        SYNC_GRAPH_CALLS[name](graph)
        return
    worker = threading.Thread(target=SYNC_GRAPH_CALLS[name], args=(graph,))
    worker.start()
    worker.join()


def test_H4_a_saver_belongs_to_no_loop(saver: SqliteSaver) -> None:
    """Made before any loop, used by two at once and by a third after both have ended."""
    import asyncio

    graph = letters("abc").compile(checkpointer=saver)

    async def use(name: str) -> Any:
        await asyncio.gather(*(graph.ainvoke({}, thread(f"{name}{n}")) for n in range(3)))
        found = [summary.thread_id async for summary in saver.athreads()]
        assert {f"{name}{n}" for n in range(3)} <= set(found)
        return await saver.aget_tuple(thread(f"{name}0"))

    results: list[Any] = []
    workers = [threading.Thread(target=lambda name=name: results.append(asyncio.run(use(name)))) for name in "xy"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 2
    assert asyncio.run(use("z")).checkpoint["channel_values"] == {"log": ["a", "b", "c"]}


AFTER_CLOSE: dict[str, Callable[[CompiledGraph, SqliteSaver], Any]] = {
    "invoke": lambda graph, saver: graph.invoke({}, thread()),
    "get_state": lambda graph, saver: graph.get_state(thread()),
    "get_state_history": lambda graph, saver: list(graph.get_state_history(thread())),
    "get_lineages": lambda graph, saver: graph.get_lineages(thread()),
    "update_state": lambda graph, saver: graph.update_state(thread(), {}),
    "threads": lambda graph, saver: list(saver.threads()),
    "get_tuple": lambda graph, saver: saver.get_tuple(thread()),
    "list": lambda graph, saver: list(saver.list(thread())),
    "read_raw": lambda graph, saver: saver.read_raw(thread()),
    "delete_thread": lambda graph, saver: saver.delete_thread("t"),
}


@pytest.mark.parametrize("name", AFTER_CLOSE)
@pytest.mark.parametrize("path", [":memory:", "threads.db"])
def test_H5_a_saver_used_after_its_block_says_so_in_one_typed_error(tmp_path: Path, path: str, name: str) -> None:
    place = path if path == ":memory:" else str(tmp_path / path)
    with SqliteSaver.from_conn_string(place) as saver:
        graph = letters("ab").compile(checkpointer=saver)
        graph.invoke({}, thread())
    with pytest.raises(SaverClosedError, match="SqliteSaver\\(path\\)"):
        AFTER_CLOSE[name](graph, saver)
