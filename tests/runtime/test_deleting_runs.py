"""Deleted runs: what they wrote is gone, every thread stands as it did, and what could not go is said."""

import operator
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    CompiledGraph,
    InMemorySaver,
    InvalidConfigError,
    Overwrite,
    RunLeft,
    RunNotEndedError,
    RunsReport,
    SqliteSaver,
    StateGraph,
    UnknownCheckpointError,
    UnknownRunError,
    effect,
    interrupt,
    points,
)
from stepwell.store import EffectsQuery, HistoryQuery
from stepwell.testing import SimulatedCrash, crash_at
from tests.runtime.deaths import Deaths, Saver

THREAD: Any = {"configurable": {"thread_id": "t"}}


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    ask: bool


@effect
def pay(amount: int, idempotency_key: str) -> str:
    return f"paid {amount}"


def _say(state: Log) -> Log:
    return {"log": [interrupt("well?") if state.get("ask") else "said"]}


def graph_of(saver: Any, node: Any = _say, **options: Any) -> CompiledGraph:
    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    compiled: CompiledGraph = builder.compile(checkpointer=saver, **options)
    return compiled


def run(graph: CompiledGraph, run_id: str, thread_id: str = "t", **more: Any) -> Any:
    return graph.invoke({"log": [run_id], **more}, {"configurable": {"thread_id": thread_id}, "run_id": run_id})


def wrote(saver: SqliteSaver, thread_id: str = "t") -> set[str]:
    """Return the runs that a thread's history, its records and its list of runs know of."""
    with saver.store.reading() as reader:
        rows: list[Any] = [*reader.outline(thread_id), *reader.record_outline(thread_id), *reader.runs(thread_id)]
    return {row.run_id for row in rows}


def test_what_a_run_wrote_is_gone_and_the_thread_stands_as_it_did(saver: SqliteSaver) -> None:
    graph = graph_of(saver, events=True)
    for name in ("a", "b", "c"):
        run(graph, name)
    before = graph.get_state(THREAD)
    report = saver.delete_for_runs(["b"])
    assert (report.deleted, report.runs, report.left) == (0, 0, {"b": RunLeft(0, 2, 0)})
    assert (report.checkpoints, report.events > 0) == (1, True)
    assert graph.get_state(THREAD) == before
    with saver.store.reading() as reader:
        assert [row.run_id for row in reader.history(HistoryQuery("t"))] == ["c"] * 3 + ["a"] * 3
    assert saver.events("b") == []
    run(graph, "d")
    assert graph.get_state(THREAD).values["log"][-2:] == ["d", "said"]


def test_a_run_of_which_nothing_is_needed_any_more_is_forgotten_and_its_id_is_free(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for name in ("a", "b", "c"):
        run(graph, name)
    saver.delete_for_runs(["b"])
    with pytest.raises(UnknownCheckpointError, match="Run b is over"):
        run(graph, "b")
    graph.update_state(THREAD, {"log": Overwrite([])})
    saver.prune("t", keep_last=1)
    assert saver.delete_for_runs(["a", "b"]) == RunsReport(runs=2)
    assert wrote(saver) == {"", "c"}
    assert run(graph, "b")["log"] == ["b", "said"]


def test_a_thread_to_which_nobody_else_wrote_goes_as_a_whole(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for name, thread_id in (("a", "t"), ("b", "t"), ("c", "u"), ("d", "edited")):
        run(graph, name, thread_id)
    graph.update_state({"configurable": {"thread_id": "edited"}}, {"log": ["by hand"]})
    report = saver.delete_for_runs(["a", "b", "c", "d"])
    assert (report.deleted, list(report.left)) == (2, ["d"])
    assert [thread.thread_id for thread in saver.threads()] == ["edited"]
    assert graph.get_state({"configurable": {"thread_id": "edited"}}).values["log"] == ["d", "said", "by hand"]


def test_the_newest_checkpoint_of_a_lineage_stays_whoever_wrote_it(saver: SqliteSaver) -> None:
    """To take back what a run did, fork from before it: then its checkpoints can go, but for the end of its lineage."""
    graph = graph_of(saver)
    run(graph, "a")
    at = graph.get_state(THREAD).config
    run(graph, "b")
    assert saver.delete_for_runs(["b"]).left["b"].checkpoints == 1
    assert graph.get_state(THREAD).values["log"] == ["a", "said", "b", "said"]
    graph.fork(at)
    assert graph.get_state(THREAD).values["log"] == ["a", "said"]
    assert saver.delete_for_runs(["b"]).left["b"].checkpoints == 1


def test_a_question_stays_open_though_the_run_that_asked_it_is_deleted(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    run(graph, "a", ask=True)
    (asked,) = graph.get_state(THREAD).interrupts
    assert saver.delete_for_runs(["a"]).left["a"].checkpoints == 1
    assert graph.invoke(Command(resume={asked.id: "yes"}), THREAD)["log"] == ["a", "yes"]


def test_a_checkpoint_on_which_another_run_has_worked_stays(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    run(graph, "a", ask=True)
    graph.invoke(Command(resume="yes"), {**THREAD, "run_id": "b"})
    run(graph, "c", ask=False)
    run(graph, "d")
    with saver.store.reading() as reader:
        theirs = [row for row in reader.record_outline("t") if row.run_id == "b"]
    assert saver.delete_for_runs(["a"]).left["a"].checkpoints == 1
    with saver.store.reading() as reader:
        assert [row for row in reader.record_outline("t") if row.run_id == "b"] == theirs
    assert saver.delete_for_runs(["a", "b"]).left.keys() <= {"a", "b"}
    assert graph.get_state(THREAD).values["log"] == ["a", "yes", "c", "said", "d", "said"]


def test_what_was_done_to_the_world_stays_known(saver: SqliteSaver) -> None:
    """INV-7."""

    def buy(state: Log) -> Log:
        return {"log": [pay(5)]}

    graph = graph_of(saver, buy)
    run(graph, "a")
    run(graph, "b")
    assert saver.delete_for_runs(["a"]).left["a"].records >= 2
    with saver.store.reading() as reader:
        assert [row.status for row in reader.effects(EffectsQuery("t"))] == ["done", "done"]


def test_nothing_goes_where_one_of_the_runs_is_unknown(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    run(graph, "a")
    with pytest.raises(UnknownRunError, match="nobody"):
        saver.delete_for_runs(["a", "nobody"])
    assert wrote(saver) == {"a"}
    assert saver.delete_for_runs(["a", "nobody"], missing_ok=True).deleted == 1
    assert saver.delete_for_runs([]) == RunsReport()


@pytest.mark.parametrize("given", ["a", None, b"a", 5], ids=repr)
def test_one_id_is_no_list_of_ids(memory_saver: InMemorySaver, given: Any) -> None:
    with pytest.raises(InvalidConfigError):
        memory_saver.delete_for_runs(given)


def test_a_run_that_is_going_on_is_not_deleted_nor_one_whose_process_died(deaths: Deaths) -> None:
    saver = Saver(deaths.clock)
    graph = graph_of(saver)
    run(graph, "a")
    deaths.dies_at(points.TASK_FINISHED)
    with pytest.raises(SimulatedCrash):
        run(graph, "b")
    points.hook = None
    for _ in range(2):
        with pytest.raises(RunNotEndedError, match="Run b of thread t"):
            saver.delete_for_runs(["a", "b"])
        deaths.revive()
    assert wrote(saver) == {"a", "b"}
    assert saver.delete_for_runs(["a"]).left.keys() <= {"a"}
    assert run(graph, "b")["log"] == ["a", "said", "b", "said"]
    saver.close()


@pytest.mark.parametrize("point", [points.PRUNING_READ, points.BEGUN, points.ROWS_DELETED, points.WRITTEN])
def test_a_process_that_dies_has_deleted_whole_threads_or_nothing_and_can_be_repeated(
    saver: SqliteSaver, point: str
) -> None:
    """INV-1: of two threads, the one or the other."""
    graph = graph_of(saver)
    for thread_id in ("t", "u"):
        for name in ("a", "b", "c"):
            run(graph, f"{name} of {thread_id}", thread_id)
    before = {thread_id: history(graph, thread_id) for thread_id in ("t", "u")}
    named = ["b of t", "b of u"]
    with pytest.raises(SimulatedCrash), crash_at(point, 2):
        saver.delete_for_runs(named)
    assert len(history(graph, "t")) == len(before["t"]) - 3
    assert history(graph, "u") == before["u"]
    saver.delete_for_runs(named, missing_ok=True)
    assert len(history(graph, "u")) == len(before["u"]) - 3


def history(graph: CompiledGraph, thread_id: str) -> list[Any]:
    return list(graph.get_state_history({"configurable": {"thread_id": thread_id}}))


async def test_a_deletion_can_be_awaited(memory_saver: InMemorySaver) -> None:
    run(graph_of(memory_saver), "a")
    assert (await memory_saver.adelete_for_runs(["a"])).deleted == 1
