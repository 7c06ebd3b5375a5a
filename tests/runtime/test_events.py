"""What listeners are told: every event of a run, in order, and state only once it is durable."""

import asyncio
import contextvars
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    InvalidConfigError,
    JoinNotReleasedWarning,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    events,
    interrupt,
    points,
)
from stepwell.errors import LeaseLostError, StoreError
from stepwell.events import Event
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver, failing_at
from tests.runtime.graphs import Call, Flaky, Log, anote, ask, chain, fan, letters, note, thread

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)


class Heard(list[Event]):
    """A listener that keeps what it is told."""

    def on_event(self, event: Event) -> None:
        self.append(event)

    @property
    def names(self) -> list[str]:
        return [events.name_of(event) for event in self]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]

    def only(self, kind: type[Any]) -> Any:
        (event,) = self.of(kind)
        return event


@pytest.fixture
def heard() -> Heard:
    return Heard()


SUPERSTEP = ["superstep_started", "task_scheduled", "task_started", "task_finished"]
COMMITTED = ["superstep_committed", "checkpoint_committed"]
BEGUN = ["run_started", "checkpoint_committed", "checkpoint_committed"]


def test_a_run_tells_its_life(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    call(letters("ab").compile(checkpointer=saver, listeners=[heard]), {}, thread())
    assert heard.names == [*BEGUN, *SUPERSTEP, *COMMITTED, *SUPERSTEP, *COMMITTED, "run_finished"]
    assert {event.thread_id for event in heard} == {"t"}
    assert len({event.run_id for event in heard}) == 1
    assert [event.nodes for event in heard.of(events.SuperstepCommitted)] == [("a",), ("b",)]
    assert [event.step for event in heard.of(events.CheckpointCommitted)] == [-1, 0, 1, 2]


def test_in_async_mode_the_same_is_told(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    call(letters("ab").compile(checkpointer=saver, listeners=[heard]), {}, thread(), durability="async")
    assert heard.names == [*BEGUN, *SUPERSTEP, *COMMITTED, *SUPERSTEP, *COMMITTED, "run_finished"]


def test_in_exit_mode_only_the_last_checkpoint_is_told(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    call(letters("ab").compile(checkpointer=saver, listeners=[heard]), {}, thread(), durability="exit")
    assert heard.names == ["run_started", *SUPERSTEP, *SUPERSTEP, *COMMITTED, "run_finished"]


def test_without_a_checkpointer_runs_and_tasks_are_told(call: Call, heard: Heard) -> None:
    call(letters("ab").compile(listeners=[heard]), {})
    assert heard.names == ["run_started", *SUPERSTEP, *SUPERSTEP, "run_finished"]
    assert {event.thread_id for event in heard} == {None}
    with pytest.raises(ValueError, match="broken"):
        call(chain(("a", Flaky("a"))).compile(listeners=[heard]), {})
    assert heard.names[-2:] == ["task_failed", "run_failed"]


def test_a_function_listens_too_and_several_hear_the_same(saver: SqliteSaver, heard: Heard) -> None:
    others: list[Event] = []
    letters("a").compile(checkpointer=saver, listeners=[others.append, heard]).invoke({}, thread())
    assert others == heard != []


@pytest.mark.parametrize("listener", [None, "name", 7, anote("x")], ids=["none", "text", "number", "coroutine"])
def test_what_cannot_listen_is_refused(listener: Any) -> None:
    with pytest.raises(InvalidConfigError, match="a listener is a function of one event"):
        letters("a").compile(listeners=[listener])


def test_a_broken_listener_is_logged_and_changes_nothing(
    call: Call, saver: SqliteSaver, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no disk left")

    graph = letters("ab").compile(checkpointer=saver, listeners=[broken, heard])
    assert call(graph, {}, thread()) == {"log": ["a", "b"]}
    assert heard.names[-1] == "run_finished"
    told = [record for record in caplog.records if record.name == "stepwell.events"]
    assert len(told) == len(heard)
    assert "RunStarted(" in told[0].getMessage()
    assert told[0].exc_info is not None


def test_what_is_told_is_on_disk(tmp_path: Path) -> None:
    """INV-11: when a listener hears of state, another process finds it already."""
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        looking = letters("abc").compile(checkpointer=other)
        seen: list[str] = []

        def look(event: Event) -> None:
            if isinstance(event, events.CheckpointCommitted):
                address = {"configurable": {"thread_id": "t", "checkpoint_id": event.checkpoint_id}}
                assert looking.get_state(address).metadata["step"] == event.step
                seen.append(event.checkpoint_id)
            elif isinstance(event, events.TaskFinished):
                assert event.node in looking.get_state(thread()).values["log"]
                seen.append(event.node)
            elif isinstance(event, events.RunFinished):
                with other.store.reading() as reader:
                    assert [run.status for run in reader.runs("t")] == ["finished"]
                seen.append("end")

        letters("abc").compile(checkpointer=saver, listeners=[look]).invoke({}, thread())
        assert len(seen) == 5 + 3 + 1


def test_tasks_of_a_wide_superstep_are_told_one_by_one(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    call(fan(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver, listeners=[heard]), {}, thread())
    assert heard.only(events.SuperstepStarted).nodes == ("a", "b")
    assert sorted(event.node for event in heard.of(events.TaskFinished)) == ["a", "b"]
    by_task = {event.task_id: event.node for event in heard.of(events.TaskScheduled)}
    assert {event.task_id: event.node for event in heard.of(events.TaskFinished)} == by_task


# -- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_failed_attempt_is_told_with_the_time_of_the_next(
    durability: str, call: Call, saver: SqliteSaver, heard: Heard
) -> None:
    graph = StateGraph(Log).add_node("a", Flaky("a", 2), retry_policy=AT_ONCE).add_edge(START, "a")
    call(graph.compile(checkpointer=saver, listeners=[heard]), {}, thread(), durability=durability)
    assert [(event.attempt, event.node) for event in heard.of(events.RetryScheduled)] == [(1, "a"), (2, "a")]
    assert {event.error for event in heard.of(events.RetryScheduled)} == {"ValueError('a is broken')"}
    assert [event.attempt for event in heard.of(events.TaskStarted)] == [1, 2, 3]
    assert heard.only(events.TaskFinished).attempt == 3
    assert heard.of(events.TaskFailed) == []


def test_a_failed_task_fails_its_run(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver, listeners=[heard])
    with pytest.raises(ValueError, match="broken"):
        call(graph, {}, thread())
    assert heard.only(events.TaskFinished).node == "a"
    assert heard.only(events.TaskFailed).error == "ValueError('b is broken')"
    assert heard.names[-1] == "run_failed"
    assert heard.only(events.RunFailed).error == "ValueError('b is broken')"
    heard.clear()
    call(graph, None, thread())
    assert heard.names[:2] == ["run_started", "checkpoint_restored"]
    assert heard.only(events.SuperstepStarted).nodes == ("b",), "what is done is not scheduled again"


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_value_that_cannot_be_stored_is_told_as_a_failure_only(
    durability: str, call: Call, saver: SqliteSaver, heard: Heard
) -> None:
    graph = fan(("a", note("a")), ("b", lambda state: {"log": [object()]})).compile(
        checkpointer=saver, listeners=[heard]
    )
    with pytest.raises(UnserializableValueError):
        call(graph, {}, thread(), durability=durability)
    assert [event.node for event in heard.of(events.TaskFinished)] == ["a"]
    assert [event.node for event in heard.of(events.TaskFailed)] == ["b"]
    assert heard.names[-1] == "run_failed"


def unstorable(state: Log) -> Any:
    return {"log": [object()]}


def asks_unstorably(state: Log) -> Any:
    return interrupt(object())


@pytest.mark.parametrize("refused", [unstorable, asks_unstorably], ids=["success", "question"])
def test_what_cannot_be_stored_is_told_as_a_failure_while_a_sibling_still_runs(
    refused: Any, any_durability: str, saver: SqliteSaver, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sibling waits until the other task is settled, so that one is told of before the superstep is over."""
    settled = threading.Event()
    monkeypatch.setattr(points, "hook", lambda point: settled.set() if point == points.TASK_FINISHED else None)

    def slow(state: Log) -> Any:
        assert settled.wait(60)
        return {"log": ["slow"]}

    graph = fan(("refused", refused), ("slow", slow)).compile(checkpointer=saver, listeners=[heard], events=True)
    with pytest.raises(UnserializableValueError):
        graph.invoke({}, thread(), durability=any_durability)
    told = ["task_failed refused", "task_finished slow"]
    assert outcomes(heard) == told
    assert outcomes([entry.event for entry in saver.events(heard[0].run_id)]) == told


def outcomes(told: Sequence[Event]) -> list[str]:
    kinds = (events.TaskFinished, events.TaskFailed, events.InterruptRaised)
    return [f"{events.name_of(event)} {event.node}" for event in told if isinstance(event, kinds)]


def test_what_cannot_be_stored_is_told_as_a_failure_when_a_sibling_is_tried_again(
    any_durability: str, saver: SqliteSaver, heard: Heard
) -> None:
    """Both come back in one turn of the loop, and the failed attempt of the one is written first."""
    graph = StateGraph(Log).add_node("a", aunstorable).add_node("b", AsyncFlaky("b"), retry_policy=AT_ONCE)
    compiled = graph.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver, listeners=[heard])
    with pytest.raises(UnserializableValueError):
        asyncio.run(compiled.ainvoke({}, thread(), durability=any_durability))
    assert outcomes(heard) == ["task_failed a", "task_finished b"]
    assert heard.only(events.RetryScheduled).node == "b"
    assert {task.name: bool(task.error) for task in compiled.get_state(thread()).tasks} == {"a": True, "b": False}


def test_what_has_finished_is_on_disk_when_it_is_told_beside_a_failed_attempt(saver: SqliteSaver) -> None:
    """INV-11: one transaction holds the attempt and what had finished before it."""
    seen: list[Any] = []

    def look(event: Event) -> None:
        if isinstance(event, events.TaskFinished) and event.node == "a":
            with saver.store.reading() as reader:
                base = reader.newest("t", "")
                assert base is not None
                kinds = [record.kind for record in reader.records("t", base.seq)]
            seen.append(kinds)

    graph = StateGraph(Log).add_node("a", anote("a")).add_node("b", AsyncFlaky("b"), retry_policy=AT_ONCE)
    compiled = graph.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver, listeners=[look])
    asyncio.run(compiled.ainvoke({}, thread()))
    assert seen == [["succeeded", "attempt"]]


async def aunstorable(state: Log) -> Any:
    return {"log": [object()]}


class AsyncFlaky(Flaky):
    """A coroutine function that fails as a `Flaky` does."""

    async def __call__(self, state: Any) -> dict[str, list[str]]:  # type: ignore[override]
        return super().__call__(state)


def test_a_cancelled_run_is_told_with_its_tasks(saver: SqliteSaver, heard: Heard) -> None:
    async def forever(state: Log) -> Any:
        running.set()
        await asyncio.Event().wait()

    async def main() -> None:
        driving = asyncio.create_task(graph.ainvoke({}, thread()))
        await running.wait()
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving

    running = asyncio.Event()
    graph = chain(("a", note("a")), ("b", forever)).compile(checkpointer=saver, listeners=[heard])
    asyncio.run(main())
    assert heard.only(events.TaskCancelled).node == "b"
    assert heard.names[-1] == "run_cancelled"


def test_a_stream_that_is_left_cancels_its_run(saver: SqliteSaver, heard: Heard) -> None:
    graph = letters("abc").compile(checkpointer=saver, listeners=[heard])
    chunks = graph.stream({}, thread())
    next(chunks)
    chunks.close()
    assert heard.names[-1] == "run_cancelled"
    assert saver.runs("t")[0].status == "cancelled"


def test_a_step_limit_is_told_as_what_it_is(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    graph = letters("abc").compile(checkpointer=saver, listeners=[heard])
    call(graph, {}, thread(recursion_limit=1), on_limit="stop")
    assert heard[-1] == events.RunPaused(
        run_id=heard[-1].run_id,
        thread_id="t",
        at=heard[-1].at,
        checkpoint_id=heard.of(events.CheckpointCommitted)[-1].checkpoint_id,
        interrupt_ids=(),
    )


def test_N4_a_join_that_is_never_released_is_told(saver: SqliteSaver, heard: Heard) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_node("b", note("b")).add_node("join", note("join"))
    graph.add_edge(["a", "b"], "join").add_conditional_edges(START, lambda state: "a", ["a", "b"])
    compiled = graph.compile(checkpointer=saver, listeners=[heard])
    with pytest.warns(JoinNotReleasedWarning):
        compiled.invoke({}, thread())
    assert heard.only(events.JoinNotReleased).missing == ("b",)
    assert heard.names[-2:] == ["join_not_released", "run_finished"]


@pytest.mark.parametrize("length", [1, 2], ids=["last", "middle"])
def test_a_run_that_lost_its_thread_hears_so_and_nothing_else(length: int, deaths: Deaths, heard: Heard) -> None:
    saver = Saver(deaths.clock)
    other = letters("ab").compile(checkpointer=saver, name="g")

    def overtaken(state: Log) -> dict[str, list[str]]:
        deaths.clock.advance(3600.0)
        contextvars.Context().run(other.invoke, {"log": ["other"]}, thread())
        return {"log": ["late"]}

    nodes = [("a", overtaken), ("b", note("b"))][:length]
    graph = chain(*nodes).compile(checkpointer=saver, name="g", listeners=[heard])
    with pytest.raises(LeaseLostError):
        graph.invoke({}, thread())
    assert heard.names[-2:] == ["task_started", "lease_lost"]


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_A2_what_a_failed_write_took_along_is_not_told(
    durability: Any, nth: int, saver: SqliteSaver, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = letters("abc").compile(checkpointer=saver, listeners=[heard], events=True)
    with monkeypatch.context() as patch:
        patch.setattr(points, "hook", failing_at(nth))
        try:
            graph.invoke({}, thread(), durability=durability)
        except StoreError:
            assert heard.names[-1:] in ([], ["run_failed"])
    told = [event.checkpoint_id for event in heard.of(events.CheckpointCommitted)]
    history = graph.get_state_history(thread())
    assert told[::-1] == [snapshot.config["configurable"]["checkpoint_id"] for snapshot in history]
    for record in saver.runs("t"):
        logged = [entry.event for entry in saver.events(record.run_id)]
        assert [event for event in logged if isinstance(event, events.CheckpointCommitted)] == heard.of(
            events.CheckpointCommitted
        )
        assert logged[-1] == heard[-1]


def test_a_run_that_is_taken_over_tells_from_whom(deaths: Deaths, heard: Heard) -> None:
    graph = letters("ab").compile(checkpointer=Saver(deaths.clock), listeners=[heard])
    deaths.dies_at(points.FENCED, nth=3)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    run_id = heard[0].run_id
    heard.clear()
    deaths.revive()
    graph.invoke(None, thread())
    assert heard.names[:3] == ["run_started", "lease_taken_over", "checkpoint_restored"]
    assert {event.run_id for event in heard} == {run_id}
    assert (heard.only(events.RunStarted).attempt, heard.only(events.RunStarted).kind) == (2, "input")
    assert heard.only(events.LeaseTakenOver).from_run_id == run_id
    assert heard.only(events.SuperstepStarted).nodes == ("b",)
    assert heard.names[-1] == "run_finished"


def test_the_run_of_a_dead_process_fails_when_an_input_takes_its_thread(deaths: Deaths, heard: Heard) -> None:
    graph = letters("ab").compile(checkpointer=Saver(deaths.clock), listeners=[heard])
    deaths.dies_at(points.MERGED)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    dead = heard[0].run_id
    heard.clear()
    deaths.revive()
    graph.invoke({}, thread())
    failed = heard.only(events.RunFailed)
    assert failed.run_id == dead != heard[0].run_id
    assert "its process died" in failed.error


# -- questions, branches, deployments ---------------------------------------------------------------------------------


def test_a_question_and_its_answer_are_told(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    graph = chain(("ask", ask("ask", "first", "second"))).compile(checkpointer=saver, listeners=[heard])
    call(graph, {}, thread())
    asked = heard.only(events.InterruptRaised)
    assert heard.only(events.RunPaused).interrupt_ids == (asked.interrupt_id,)
    heard.clear()
    call(graph, Command(resume="yes"), thread())
    assert heard.names[:3] == ["run_started", "checkpoint_restored", "answer_recorded"]
    assert heard.only(events.RunStarted).kind == "answer"
    answered = heard.only(events.AnswerRecorded)
    assert (answered.interrupt_id, answered.task_id) == (asked.interrupt_id, asked.task_id)
    assert heard.only(events.InterruptRaised).interrupt_id != asked.interrupt_id


def test_a_replay_and_a_fork_are_told(saver: SqliteSaver, heard: Heard) -> None:
    graph = letters("ab").compile(checkpointer=saver, listeners=[heard])
    graph.invoke({}, thread())
    first = next(each for each in graph.get_state_history(thread()) if each.next == ("b",))
    heard.clear()
    graph.invoke(None, first.config)
    assert (heard.only(events.RunStarted).kind, heard.only(events.ThreadForked).lineage) == ("replay", 1)
    assert heard.only(events.ThreadForked).from_seq == heard.only(events.CheckpointRestored).seq
    heard.clear()
    graph.fork(first.config)
    assert heard.names == ["thread_forked", "checkpoint_committed"]
    assert (heard[0].run_id, heard.only(events.ThreadForked).lineage) == ("", 2)
    heard.clear()
    graph.update_state(thread(), {"log": ["x"]}, as_node="a")
    assert heard.names == ["checkpoint_committed"]


@pytest.mark.parametrize(
    ("kind", "given", "path"),
    [("input", {}, ()), ("continue", None, ()), ("command", Command(goto="b"), ()), ("retry", None, ("retry",))],
)
def test_a_run_says_what_call_made_it(kind: str, given: Any, path: Any, saver: SqliteSaver, heard: Heard) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b", 1))).compile(checkpointer=saver, listeners=[heard])
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    heard.clear()
    if path:
        graph.retry(thread())
    else:
        graph.invoke(given, thread())
    assert heard.only(events.RunStarted).kind == kind


def test_Q2_another_graph_on_the_thread_is_told(saver: SqliteSaver, heard: Heard) -> None:
    before = chain(("a", note("a")), ("t", ask("t"))).compile(checkpointer=saver, name="g", version="1")
    before.invoke({}, thread())
    graph = chain(("a", note("a")), ("t", ask("t")), ("more", note("more")))
    after = graph.compile(checkpointer=saver, name="g", version="2", listeners=[heard])
    after.invoke(Command(resume=1), thread())
    changed = heard.only(events.GraphChanged)
    assert (changed.from_fingerprint, changed.to_fingerprint) == (before.plan.fingerprint, after.plan.fingerprint)
    assert (changed.from_version, changed.to_version) == ("1", "2")
    assert any("more" in difference for difference in changed.differences)
    heard.clear()
    after.invoke({}, thread())
    assert heard.of(events.GraphChanged) == []


# -- what nothing was done for is not told -----------------------------------------------------------------------------


def test_a_call_that_does_nothing_tells_nothing(call: Call, saver: SqliteSaver, heard: Heard) -> None:
    graph = letters("a").compile(checkpointer=saver, listeners=[heard])
    call(graph, {}, thread(run_id="r"))
    heard.clear()
    call(graph, None, thread())
    call(graph, {}, thread(run_id="r"))
    assert heard == []


def test_a_graph_that_nobody_listens_to_has_nobody_to_tell(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    assert graph._run({}, thread()).tell is None
    assert graph.with_config(tags=["x"])._run({}, thread()).tell is None


def test_config_laid_over_a_graph_keeps_its_listeners(saver: SqliteSaver, heard: Heard) -> None:
    letters("a").compile(checkpointer=saver, listeners=[heard]).with_config(thread()).invoke({})
    assert heard.names[-1] == "run_finished"


def test_pending_work_that_is_finished_first_is_told_as_a_run_of_its_own(saver: SqliteSaver, heard: Heard) -> None:
    graph = letters("ab").compile(checkpointer=saver, listeners=[heard])
    graph.invoke({}, thread(), interrupt_after=["a"])
    heard.clear()
    graph.invoke({}, thread(), on_pending="finish")
    assert [event.kind for event in heard.of(events.RunStarted)] == ["continue", "input"]
    assert len(heard.of(events.RunFinished)) == 2
