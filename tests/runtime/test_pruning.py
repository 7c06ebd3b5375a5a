"""Pruned threads: whatever is thrown away, what is kept reads the same, goes on the same and does nothing twice."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, strategies as st

from stepwell import (
    START,
    Command,
    CompiledGraph,
    InvalidConfigError,
    SqliteSaver,
    StateGraph,
    StateSnapshot,
    ThreadBusyError,
    UnknownCheckpointError,
    effect,
    interrupt,
    points,
)
from stepwell.savers.retention.choosing import PruneReport, Ttl
from stepwell.savers.retention.deleting import delete_for_runs
from stepwell.savers.retention.pruning import prune_thread
from stepwell.store import EffectsQuery, Message, Store
from stepwell.superstep.retention import Policy
from stepwell.testing import FakeClock, SimulatedCrash
from stepwell.testing.graphs import graph_scripts
from tests.pure.model.machine import Machine, Saver, dying
from tests.pure.model.scripts import Edit, Fork, Replay, ReplyEarlier, Rewrite, Script, scripts
from tests.pure.model.seen import Seen
from tests.runtime.graphs import ask, chain

# -- random lives -----------------------------------------------------------------------------------------------------

LIVES = (
    *("begin", "reply", "reply", "reply earlier", "continue", "redirect", "redeploy"),
    *("edit", "edit head", "rewrite", "retry", "fork", "replay"),
)
policies = st.integers(1, 3).map(Policy) | st.sets(st.integers(0, 4), min_size=1)
"""How a thread is pruned: by a policy, or by deleting its runs, but for the first one and these."""


@pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")
@given(
    scripts(graph_scripts(), LIVES, crashes=0, breaks=False, most=6),
    st.lists(st.none() | policies, min_size=6, max_size=6),
)
def test_a_thread_that_is_pruned_goes_on_as_one_that_is_not(
    script: Script, prunings: list[Policy | set[int] | None]
) -> None:
    """Two lives of one script, one of them pruned after some steps, or rid of some runs: values, `next`, questions and
    errors are the same, what is kept of the history reads the same, every row verifies, and pruning once more finds
    nothing to do."""
    whole, pruned = Machine(script.graph, failing=False), Machine(script.graph, failing=False)
    store = pruned.saver.store
    try:
        for step, policy in zip(script.steps, prunings, strict=False):
            at, op = step, step.op
            if isinstance(op, Edit | Rewrite | Fork | Replay | ReplyEarlier):
                at = replace(step, op=replace(op, back=_same_place(whole, pruned, op.back)))
            one, other = whole.play(at), pruned.play(step)
            _check_same(one, other)
            if policy is not None:
                again = _prune(store, policy)
                _check_same(other, pruned.look(other.error))
                before = store.counts.transactions
                again()
                assert store.counts.transactions == before
            assert list(store.verify()) == []
        heads = [head[:4] for head in whole.branches()]
        assert [head[:4] for head in pruned.branches()] == heads
        assert [head[:4] for head in pruned.copied()] == heads
        assert list(store.verify()) == []
    finally:
        whole.close()
        pruned.close()


def _prune(store: Store, policy: Policy | set[int]) -> Callable[[], Any]:
    """Prune the thread; return what does it once more."""
    again: Callable[[], Any]
    if isinstance(policy, Policy):
        again = partial(prune_thread, store, "t", policy, 0)
    else:
        with store.reading() as reader:
            runs = reader.runs("t")[:-1]
        named = [run.run_id for number, run in enumerate(runs) if number not in policy]
        again = partial(delete_for_runs, store, named, 0, missing_ok=True)
    again()
    return again


def _same_place(whole: Machine, pruned: Machine, back: int) -> int:
    """Return where in the whole history the checkpoint stands that is so far back in the pruned one."""
    left = [_place(snapshot) for snapshot in pruned.graph.get_state_history(THREAD)]
    return [_place(snapshot) for snapshot in whole.graph.get_state_history(THREAD)].index(left[back % len(left)])


def _place(snapshot: StateSnapshot) -> tuple[int, int]:
    """Return which checkpoint this is: seqs depend on which of several tasks finished first."""
    assert snapshot.metadata is not None
    return snapshot.lineage, snapshot.metadata["step"]


def _check_same(whole: Seen, pruned: Seen) -> None:
    assert replace(pruned, history=[]) == replace(whole, history=[])
    for snapshot in pruned.history:
        assert any(_reads_as(snapshot, other) for other in whole.history)


def _reads_as(pruned: Any, whole: Any) -> bool:
    """Tell whether a snapshot is the same but for what its tasks came to: that went with the checkpoint after it."""
    tasks = zip(pruned[6], whole[6], strict=False)
    return pruned[:6] == whole[:6] and all(a[:3] == b[:3] and a[4] in (b[4], None) for a, b in tasks)


THREAD: Any = {"configurable": {"thread_id": "t"}}

# -- what is kept -----------------------------------------------------------------------------------------------------


def joined(log: list[str], more: list[str]) -> list[str]:
    """A reducer of the user's own: its channel is stored whole, each time it is written."""
    return log + more


class Log(TypedDict, total=False):
    log: Annotated[list[str], joined]
    big: str


def _say(state: Log) -> Log:
    return {"log": ["said"]}


def _ask(state: Log) -> Log:
    return {"log": [interrupt("well?")]}


def graph_of(saver: SqliteSaver, node: Callable[[Log], Any] = _say, **options: Any) -> CompiledGraph:
    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    compiled: CompiledGraph = builder.compile(checkpointer=saver, **options)
    return compiled


def seqs(graph: CompiledGraph, **options: Any) -> list[int]:
    return [snapshot.seq for snapshot in graph.get_state_history(THREAD, **options)]


def effects_of(saver: SqliteSaver) -> list[str]:
    with saver.store.reading() as reader:
        return [row.status for row in reader.effects(EffectsQuery("t"))]


def talk(graph: CompiledGraph, times: int) -> None:
    for number in range(times):
        graph.invoke({"log": [f"{number}"], **({} if number else {"big": "B" * 100})}, THREAD)


def test_a_checkpoint_that_is_only_held_is_listed_nowhere_and_cannot_be_addressed(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    talk(graph, 3)
    oldest = list(graph.get_state_history(THREAD))[-2]
    values = graph.get_state(THREAD).values
    report = saver.prune("t", keep_last=1)
    assert (report.threads, report.checkpoints, report.held) == (1, 7, 1)
    assert len(seqs(graph)) == 1
    assert graph.get_state(THREAD).values == values
    assert graph.get_state(THREAD).parent_config is None
    with pytest.raises(UnknownCheckpointError):
        graph.invoke(None, oldest.config)
    assert [found.config["configurable"]["checkpoint_id"] for found in saver.list(THREAD)] == [
        graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
    ]


def test_fork_points_and_every_lineage_head_are_kept(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    talk(graph, 3)
    fork_point = list(graph.get_state_history(THREAD))[4]
    graph.fork(fork_point.config)
    graph.invoke(None, THREAD)
    heads = [snapshot.seq for snapshot in graph.get_state_history(THREAD, lineage=0)][:1]
    saver.prune("t", keep_last=1)
    assert seqs(graph) == [*seqs(graph)[:1], *heads, fork_point.seq]
    assert seqs(graph, lineage=1) == [seqs(graph)[0], fork_point.seq]
    assert seqs(graph, lineage=0) == [*heads, fork_point.seq]
    (tree,) = graph.get_lineages(THREAD)
    assert tree.children[0].forked_from == graph.get_state(fork_point.config).config


def test_an_open_question_is_answered_after_pruning_by_the_id_it_was_asked_under(saver: SqliteSaver) -> None:
    graph = graph_of(saver, _ask)
    graph.invoke({"log": []}, THREAD)
    (asked,) = graph.get_state(THREAD).interrupts
    for _ in range(3):
        graph.update_state(THREAD, {"log": []}, START)
    saver.prune("t", keep_last=1)
    assert graph.invoke(Command(resume={asked.id: "yes"}), THREAD)["log"][-1] == "yes"


def test_a_question_can_be_answered_once_more_where_it_was_asked(saver: SqliteSaver) -> None:
    """The siblings of the task that asked keep what they came to, though the checkpoint after it is not listed."""
    ran: list[str] = []

    def beside(state: Log) -> Log:
        ran.append("beside")
        return {"log": ["beside"]}

    builder = StateGraph(Log)
    builder.add_node("ask", _ask)
    builder.add_node("beside", beside)
    for name in ("ask", "beside"):
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"log": []}, THREAD)
    at = graph.get_state(THREAD).config
    graph.invoke(Command(resume="yes"), THREAD)
    graph.fork(at)
    saver.prune("t", keep_last=1)
    assert graph.invoke(Command(resume="no"), at)["log"] == ["no", "beside"]
    assert ran == ["beside"]


def test_receipts_answer_in_every_lineage_that_is_kept(saver: SqliteSaver) -> None:
    """INV-7: what was done before the oldest checkpoint that is kept is not done again by a fork."""
    done: list[str] = []

    @effect
    def pay(amount: int, idempotency_key: str) -> str:
        done.append(idempotency_key)
        return f"paid {amount}"

    def buy(state: Log) -> Log:
        return {"log": [pay(5)]}

    graph = graph_of(saver, buy)
    graph.invoke({"log": []}, THREAD)
    planned = next(snapshot for snapshot in graph.get_state_history(THREAD) if snapshot.next == ("node",))
    forked = graph.fork(planned.config)
    talk_on = [graph.invoke({"log": ["more"]}, THREAD, on_pending="discard") for _ in range(2)]
    assert talk_on
    bought = list(done)
    saver.prune("t", keep_last=1)
    graph.invoke(None, graph.fork(planned.config))
    assert done == bought
    assert saver.prune("t", keep_last=1).records == 0
    assert forked != planned.config
    assert effects_of(saver) == ["done"] * len(bought)


def test_a_doubt_is_resolved_where_it_is_after_pruning(saver: SqliteSaver) -> None:
    @effect(on_doubt="raise")
    def pay(amount: int) -> str:
        raise RuntimeError("the line went dead")

    def buy(state: Log) -> Log:
        return {"log": [pay(5) if not state.get("big") else "nothing"]}

    graph = graph_of(saver, buy)
    with pytest.raises(RuntimeError):
        graph.invoke({"log": []}, THREAD)
    for _ in range(3):
        graph.invoke({"log": ["on"], "big": "b"}, THREAD, on_pending="discard")
    saver.prune("t", keep_last=1)
    with saver.store.reading() as reader:
        (doubt,) = reader.effects(EffectsQuery("t", in_doubt=True))
    graph.resolve_effect(THREAD, doubt.key, receipt="paid after all", by="ann")
    assert effects_of(saver) == ["done"]


def test_a_run_whose_process_died_is_finished_after_pruning() -> None:
    clock = FakeClock()
    saver: Any = Saver(None, clock)
    graph = graph_of(saver)
    talk(graph, 2)
    with pytest.raises(SimulatedCrash), dying((points.TASK_FINISHED, 1)):
        graph.invoke({"log": ["last"]}, {**THREAD, "run_id": "r"})
    points.hook = None
    with pytest.raises(ThreadBusyError):
        prune_thread(saver.store, "t", Policy(1), 0)
    clock.advance(31.0)
    pruned = prune_thread(saver.store, "t", Policy(1), 0)
    assert pruned is not None
    assert pruned.checkpoints
    assert graph.invoke({"log": ["last"]}, {**THREAD, "run_id": "r"})["log"][-2:] == ["last", "said"]
    assert list(saver.store.verify()) == []
    saver.store.close()


# -- policies ---------------------------------------------------------------------------------------------------------


def test_what_is_younger_is_kept_and_with_both_what_either_keeps(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    talk(graph, 3)
    moment = datetime.fromisoformat(list(graph.get_state_history(THREAD))[4].created_at or "")
    assert saver.prune("t", older_than=moment, keep_last=2).checkpoints == 3
    assert saver.prune("t", older_than=timedelta(days=1)).checkpoints == 0
    assert saver.prune("t", older_than=datetime.now(UTC)).checkpoints == 4
    assert len(seqs(graph)) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"keep_last": 0}, {"keep_last": True}, {"keep_last": 1, "strategy": "delete"}, {"strategy": "delete_all"},
        {"older_than": 5}, {"older_than": datetime(2026, 1, 1)}, {"older_than": timedelta(-1)},  # noqa: DTZ001
    ],
    ids=str,
)  # fmt: skip
def test_a_policy_that_means_nothing_is_refused_before_anything_goes(
    saver: SqliteSaver, options: dict[str, Any]
) -> None:
    graph = graph_of(saver)
    talk(graph, 1)
    before = seqs(graph)
    with pytest.raises(InvalidConfigError):
        saver.prune("t", **options)
    assert seqs(graph) == before


def test_no_thread_is_not_all_threads(saver: SqliteSaver) -> None:
    """INV-14: a variable that was forgotten to be set prunes nothing."""
    talk(graph_of(saver), 1)
    nothing: Any = None
    with pytest.raises(InvalidConfigError):
        saver.prune(nothing)
    assert saver.prune([]) == PruneReport()
    assert saver.prune("another") == PruneReport()


def test_a_filter_selects_threads_by_their_newest_checkpoint(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for name in ("a", "b"):
        for _ in range(2):
            graph.invoke({"log": []}, {"configurable": {"thread_id": name}, "metadata": {"user": name}})
    assert saver.prune({"user": "a"}, keep_last=1).threads == 1
    assert saver.prune({}, keep_last=1).threads == 2
    assert saver.prune({"user": "b"}, strategy="delete").deleted == 1
    assert [thread.thread_id for thread in saver.threads()] == ["a"]


def test_langgraphs_strategies_keep_the_newest_checkpoint_or_nothing(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    talk(graph, 2)
    saver.prune(["t"], strategy="keep_latest")
    assert len(seqs(graph)) == 1
    saver.prune(["t"], strategy="delete")
    assert seqs(graph) == []


def test_no_strategy_deletes_a_thread_with_something_to_come_unless_asked(saver: SqliteSaver) -> None:
    talk(graph_of(saver), 1)
    asks = chain(("q", ask("q"))).compile(checkpointer=saver, name="asks")
    asks.invoke({}, {"configurable": {"thread_id": "asks"}})
    for choice in ("asks", ["asks", "t"], {"source": "loop"}, {}):
        report = saver.prune(choice, strategy="delete")
        assert report.skipped == {"asks": "it is paused"}
    assert [thread.thread_id for thread in saver.threads()] == ["asks"]
    with pytest.raises(InvalidConfigError, match="unfinished goes with"):
        saver.prune({}, keep_last=1, unfinished=True)
    assert saver.prune({}, strategy="delete", unfinished=True).deleted == 1
    assert list(saver.threads()) == []


def test_a_damaged_thread_keeps_no_other_from_being_pruned(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for name in ("good", "lost"):
        for _ in range(2):
            graph.invoke({"log": []}, {"configurable": {"thread_id": name}})
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    kept = connection.execute("select * from checkpoints where thread_id = 'lost' and seq = 2").fetchall()
    connection.execute("delete from checkpoints where thread_id = 'lost' and seq = 2")
    report = saver.prune({}, keep_last=1)
    assert report.threads == 1
    assert "missing" in report.skipped["lost"]
    connection.execute(f"insert into checkpoints values ({', '.join('?' * len(kept[0]))})", kept[0])


# -- sweeping ---------------------------------------------------------------------------------------------------------

DAY = timedelta(days=1)


def two_days_on() -> FakeClock:
    clock = FakeClock()
    clock.wall_microseconds = (datetime.now(UTC) + 2 * DAY - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    return clock


def test_a_thread_is_swept_when_nothing_changed_it_for_long_enough(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    talk(graph, 1)
    assert saver.sweep(ttl=DAY) == PruneReport()
    saver._clock = two_days_on()
    assert saver.sweep(ttl=Ttl(DAY, "keep_latest")).checkpoints == 1
    assert saver.sweep(ttl={"default_ttl": 1440}).deleted == 1
    assert seqs(graph) == []


def test_threads_that_say_how_long_they_live_have_sweeps_of_their_own(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for name, kept in (("draft", "day"), ("order", "year")):
        graph.invoke({"log": []}, {"configurable": {"thread_id": name}, "metadata": {"kept": kept}})
    graph.invoke({"log": []}, THREAD)
    saver._clock = two_days_on()
    assert saver.sweep(ttl=365 * DAY, filter={"kept": "year"}).deleted == 0
    assert saver.sweep(ttl=DAY, filter={"kept": "day"}).deleted == 1
    assert {thread.thread_id for thread in saver.threads()} == {"order", "t"}
    none: Any = "kept"
    with pytest.raises(InvalidConfigError):
        saver.sweep(ttl=DAY, filter=none)
    assert saver.sweep(ttl=DAY).deleted == 2


def test_a_thread_with_something_to_come_is_not_swept_unless_asked(saver: SqliteSaver) -> None:
    graph = graph_of(saver, _ask)
    graph.invoke({"log": []}, THREAD)
    graph_of(saver).invoke({"log": []}, {"configurable": {"thread_id": "told"}})
    saver.store.append(Message("told", "m", "signal", "k", b"", 1))
    saver._clock = two_days_on()
    report = saver.sweep(ttl=DAY)
    assert (report.deleted, set(report.skipped)) == (0, {"t", "told"})
    assert saver.sweep(ttl=DAY, unfinished=True).deleted == 2


@pytest.mark.parametrize("ttl", [0, "1d", timedelta(0), {"default_ttl": "x"}, {"sweep_interval_minutes": 5}], ids=str)
def test_a_ttl_that_is_none_is_refused(saver: SqliteSaver, ttl: Any) -> None:
    with pytest.raises(InvalidConfigError):
        saver.sweep(ttl=ttl)
    with pytest.raises(InvalidConfigError):
        saver.sweep()
