"""Threads under another id: whole copies, and forks that begin a thread of their own."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import (
    END,
    Command,
    EmptyInputError,
    InMemorySaver,
    InvalidConfigError,
    InvalidUpdateError,
    SqliteSaver,
    ThreadBusyError,
    ThreadExistsError,
    UnknownCheckpointError,
    UnknownThreadError,
    points,
)
from stepwell.store import Deletion
from stepwell.testing import SimulatedCrash, crash_at
from tests.runtime.graphs import Counted, Flaky, ask, chain, fan, letters, note, thread

Copy = Callable[[SqliteSaver, str, str], None]


def _acopy(saver: SqliteSaver, source: str, target: str) -> None:
    asyncio.run(saver.acopy_thread(source, target))


@pytest.fixture(params=["sync", "async"])
def copy(request: pytest.FixtureRequest) -> Copy:
    """Copy by each API in turn."""
    return _acopy if request.param == "async" else lambda saver, source, target: saver.copy_thread(source, target)


def log(*names: str) -> dict[str, list[str]]:
    return {"log": list(names)}


def shown(graph: Any, thread_id: str) -> list[Any]:
    """Return everything that a history shows but thread id, digests, run ids, task ids and the store's time."""

    def where(config: Any) -> Any:
        return config and config["configurable"]["checkpoint_id"]

    return [
        (
            *(s.values, s.next, s.metadata, s.created_at, s.lineage, s.seq, s.writes, s.joins, s.interrupts),
            *(where(s.config), where(s.parent_config)),
            [(t.name, t.path, t.error, t.interrupts, t.result) for t in s.tasks],
        )
        for s in graph.get_state_history(thread(thread_id))
    ]


def lived(graph: Any) -> None:
    """Let a thread have a failure, a retry, an answer, an edit, a fork and a replay."""
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    graph.retry(thread())
    graph.invoke(Command(resume="yes"), thread())
    old = list(graph.get_state_history(thread()))[2].config
    graph.update_state(old, log("edited"))
    graph.fork(old)
    graph.invoke(None, old)


# -- copies -----------------------------------------------------------------------------------------------------------


def test_a_copy_reads_as_the_original(copy: Copy, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b")), ("ask", ask("ask"))).compile(checkpointer=saver)
    lived(graph)
    copy(saver, "t", "copy")
    assert shown(graph, "copy") == shown(graph, "t")
    with saver.store.reading() as reader:
        plain = [[run._replace(run_id="", thread_id="") for run in reader.runs(t)] for t in ("t", "copy")]
    assert plain[0] == plain[1]


def test_a_copy_goes_on_where_the_original_stands(copy: Copy, saver: SqliteSaver) -> None:
    """INV-4, INV-8: what was done is not done again, what was asked keeps its id, in the copy as in the original."""
    done = Counted("done")
    graph = fan(("ask", ask("ask")), ("done", done)).compile(checkpointer=saver)
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    copy(saver, "t", "copy")
    assert graph.get_state(thread("copy")).interrupts == (question,)
    assert graph.invoke(Command(resume={question.id: "copied"}), thread("copy")) == log("ask='copied'", "done")
    assert graph.invoke(Command(resume={question.id: "here"}), thread()) == log("ask='here'", "done")
    assert done.calls == 1


def test_a_copy_replays_and_forks_as_the_original(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    old = next(s.config for s in graph.get_state_history(thread("copy")) if s.next == ("b",))
    assert graph.invoke(None, old) == log("a", "b", "c")
    assert graph.get_state(thread("copy")).lineage == 1
    assert graph.get_state(thread()).lineage == 0


def test_the_original_is_not_touched(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = list(graph.get_state_history(thread()))
    saver.copy_thread("t", "copy")
    graph.invoke(log("more"), thread("copy"))
    assert list(graph.get_state_history(thread())) == before


def test_nothing_is_copied_over_a_thread_or_from_none(copy: Copy, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.invoke({}, thread("other"))
    before = shown(graph, "other")
    with pytest.raises(ThreadExistsError, match="Thread other is not empty"):
        copy(saver, "t", "other")
    with pytest.raises(InvalidConfigError, match="thread t cannot be copied onto itself"):
        copy(saver, "t", "t")
    with pytest.raises(UnknownThreadError):
        copy(saver, "nowhere", "copy")
    with pytest.raises(InvalidConfigError, match="thread_id is empty"):
        copy(saver, "t", " ")
    assert shown(graph, "other") == before
    assert graph.get_state(thread("copy")).config == thread("copy")


def test_a_deleted_thread_may_be_copied_into(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    for name in ("t", "copy"):
        graph.invoke({}, thread(name))
    for _ in range(2):
        assert saver.store.delete(Deletion("copy", 0))
        saver.copy_thread("t", "copy")
        assert graph.invoke(log("more"), thread("copy")) == log("a", "more", "a")


def test_a_copy_keeps_the_logs_of_its_runs(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, events=True)
    graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    (run,), (copied,) = saver.runs("t"), saver.runs("copy")
    assert copied.run_id != run.run_id
    logs = [[(entry.offset, type(entry.event)) for entry in saver.events(one.run_id)] for one in (run, copied)]
    assert logs[0] == logs[1]
    assert len(logs[0]) == run.events > 0
    assert {entry.event.thread_id for entry in saver.events(copied.run_id)} == {"copy"}


def test_a_copy_is_one_transaction(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = saver.store.counts.transactions
    saver.copy_thread("t", "copy")
    assert saver.store.counts.transactions == before + 1


def test_a_copy_knows_where_it_comes_from(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    saver.copy_thread("t", "copy")
    saver.copy_thread("copy", "copy of copy")
    assert saver.get_origin("t") is None
    first, second = saver.get_origin("copy"), asyncio.run(saver.aget_origin("copy of copy"))
    assert first is not None
    assert second is not None
    assert (first.how, first.thread_id, first.digest.hex()) == ("copied", "t", graph.get_state(thread()).digest)
    assert (second.how, second.thread_id, second.seq) == ("copied", "copy", first.seq + 1)


@pytest.fixture
def dying() -> Iterator[Callable[[str, int], None]]:
    """Let the process be dead from the nth time on that a point is reached."""

    def dies_at(point: str, nth: int) -> None:
        left = itertools.count(nth - 1, -1)
        dead: list[str] = []

        def hook(reached: str) -> None:
            if dead or (reached == point and next(left) == 0):
                dead.append(reached)
                raise SimulatedCrash(reached)

        points.hook = hook

    yield dies_at
    points.hook = None


@pytest.mark.parametrize(("durability", "calls"), [("sync", [1, 2]), ("exit", [2, 2])])
def test_a_run_that_is_going_on_is_copied_as_one_that_crashed(
    durability: str, calls: list[int], dying: Callable[[str, int], None]
) -> None:
    """INV-3: also where the input stands in the run's row alone."""
    with InMemorySaver() as saver:
        a, b = Counted("a"), Counted("b")
        graph = chain(("a", a), ("b", b)).compile(checkpointer=saver)
        dying(points.TASK_FINISHED, 2)
        with pytest.raises(SimulatedCrash):
            graph.invoke(log("in"), thread(), durability=durability)
        points.hook = None
        saver.copy_thread("t", "copy")
        assert graph.invoke(None, thread("copy")) == log("in", "a", "b")
        assert [a.calls, b.calls] == calls
        with pytest.raises(ThreadBusyError):
            graph.invoke(None, thread())
        with saver.store.reading() as reader:
            assert [run.status for run in reader.runs("copy")] == ["finished"]
        assert list(saver.store.verify()) == []


def test_a_copy_that_is_cut_off_leaves_nothing(saver: SqliteSaver) -> None:
    """INV-1."""
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    for point in (points.COPY_READ, points.BEGUN, points.FENCED, points.WRITTEN):
        with pytest.raises(SimulatedCrash), crash_at(point):
            saver.copy_thread("t", "copy")
        assert shown(graph, "copy") == []
        assert list(saver.store.verify()) == []
    saver.copy_thread("t", "copy")
    assert shown(graph, "copy") == shown(graph, "t")


# -- forks into a thread ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_fork_may_begin_another_thread(asynchronous: bool, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    old = next(s for s in graph.get_state_history(thread()) if s.next == ("b",))
    before = shown(graph, "t")
    if asynchronous:
        config = asyncio.run(graph.afork(old.config, thread_id="new"))
    else:
        config = graph.fork(old.config, thread_id="new")
    forked = graph.get_state(config)
    assert config["configurable"]["thread_id"] == "new"
    assert (forked.values, forked.next, forked.parent_config, forked.lineage) == (log("a"), ("b",), None, 0)
    assert (forked.metadata["source"], forked.metadata["step"]) == ("fork", old.metadata["step"] + 1)
    assert graph.invoke(None, config) == log("a", "b", "c")
    assert shown(graph, "t") == before
    origin = saver.get_origin("new")
    assert origin is not None
    assert (origin.how, origin.thread_id, origin.seq, origin.digest.hex()) == ("forked", "t", old.seq, old.digest)


def test_a_fork_into_a_thread_costs_the_same_however_long_the_history(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    spent = []
    for turn in range(4):
        graph.invoke({}, thread())
        before = saver.store.counts.statements
        graph.fork(thread(), thread_id=f"new {turn}")
        spent.append(saver.store.counts.statements - before)
    assert spent == [spent[0]] * 4


def test_a_fork_into_a_thread_may_carry_an_edit(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    old = next(s.config for s in graph.get_state_history(thread()) if s.next == ("b",))
    graph.fork(old, log("edit"), as_node="b", thread_id="new")
    assert graph.invoke(None, thread("new")) == log("a", "edit", "c")
    graph.fork(old, None, as_node=END, thread_id="cleared")
    assert graph.get_state(thread("cleared")).next == ()
    graph.fork(old, log("in"), as_node="__input__", thread_id="begun")
    assert graph.invoke(None, thread("begun")) == log("a", "in", "a", "b", "c")


def test_a_fork_into_a_thread_asks_again(saver: SqliteSaver) -> None:
    node = Counted("ask", ask("ask"))
    graph = chain(("ask", node)).compile(checkpointer=saver)
    (question,) = graph.invoke({}, thread())["__interrupt__"]
    graph.fork(thread(), thread_id="new")
    assert graph.get_state(thread("new")).interrupts == ()
    (again,) = graph.invoke(None, thread("new"))["__interrupt__"]
    assert (again.value, again.id == question.id) == (question.value, False)
    assert node.calls == 2


def test_a_fork_does_not_begin_a_thread_that_is_there(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    for name in ("t", "other"):
        graph.invoke({}, thread(name))
    before = shown(graph, "other")
    with pytest.raises(ThreadExistsError, match="Thread other is not empty"):
        graph.fork(thread(), thread_id="other")
    assert shown(graph, "other") == before
    with pytest.raises(UnknownCheckpointError):
        graph.fork(thread("nowhere"), thread_id="new")
    with pytest.raises(InvalidUpdateError, match="A fork is a copy already"):
        graph.fork(thread(), as_node="__copy__", thread_id="new")
    with pytest.raises(EmptyInputError):
        graph.invoke(None, thread("new"))


def test_a_fork_named_for_its_own_thread_is_a_lineage_of_it(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    assert graph.get_state(graph.fork(thread(), thread_id="t")).lineage == 1


def test_a_node_may_fork_its_thread_into_another(saver: SqliteSaver) -> None:
    def node(state: Any) -> dict[str, list[str]]:
        compiled.fork(thread(), thread_id="aside")
        return log("a")

    compiled = chain(("a", node)).compile(checkpointer=saver)
    compiled.invoke({}, thread())
    assert compiled.get_state(thread("aside")).next == ("a",)
