"""The log of a run: what listeners hear, on disk, in the transactions that were there anyway."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    START,
    Command,
    InMemorySaver,
    InvalidConfigError,
    NoCheckpointerError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    UnknownRunError,
    events,
    points,
)
from stepwell.events import Event, UnknownEvent
from stepwell.store import EventDraft
from stepwell.testing import SimulatedCrash
from stepwell.testing.store_suite.drive import started
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Flaky, Log, ask, chain, fan, letters, note, thread

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)
ENDS = (events.RunFinished, events.RunPaused, events.RunFailed, events.RunCancelled)


def last_run(saver: SqliteSaver, thread_id: str = "t") -> str:
    return saver.runs(thread_id)[0].run_id


def logged(saver: SqliteSaver, run_id: str | None = None) -> list[Event]:
    found = saver.events(run_id or last_run(saver))
    assert [entry.offset for entry in found] == list(range(1, len(found) + 1))
    return [entry.event for entry in found]


def retrying() -> StateGraph[Any, Any, Any, Any]:
    return StateGraph(Log).add_node("a", Flaky("a", 2), retry_policy=AT_ONCE).add_edge(START, "a")


def sending() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Log).add_node("plan", note("plan")).add_node("s", lambda arg: {"log": [arg]})
    graph.add_conditional_edges("plan", lambda state: [Send("s", str(i)) for i in range(3)], ["s"])
    return graph.add_edge(START, "plan")


GRAPHS: dict[str, Callable[[], StateGraph[Any, Any, Any, Any]]] = {
    "chain": lambda: letters("abc"),
    "fan": lambda: fan(*((name, note(name)) for name in "abc")),
    "sends": sending,
    "question": lambda: chain(("a", note("a")), ("ask", ask("ask"))),
    "failure": lambda: chain(("a", note("a")), ("b", Flaky("b"))),
    "retry": retrying,
    "router": lambda: letters("a").add_conditional_edges(START, lambda state: "a", ["a"]),
}


def run(graph: Any, config: Any, **options: Any) -> None:
    try:
        graph.invoke({}, config, **options)
    except ValueError as error:
        assert "broken" in str(error)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_log_holds_what_listeners_heard(name: str, saver: SqliteSaver, any_durability: str) -> None:
    heard: list[Event] = []
    graph = GRAPHS[name]().compile(checkpointer=saver, listeners=[heard.append], events=True)
    run(graph, thread(), durability=any_durability)
    found = logged(saver)
    assert sorted(map(repr, found)) == sorted(map(repr, heard))
    assert isinstance(found[0], events.RunStarted)
    assert isinstance(found[-1], ENDS)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_log_costs_no_transaction(name: str, any_durability: str) -> None:
    def spent(**options: Any) -> tuple[int, int]:
        with InMemorySaver() as saver:
            run(GRAPHS[name]().compile(checkpointer=saver, **options), thread(), durability=any_durability)
            return saver.store.counts.transactions, saver.store.counts.syncs

    wide = name in ("fan", "sends") and any_durability != "exit"  # how its outcomes are batched is a matter of timing
    bare, with_log = spent(), spent(events=True)
    assert with_log == bare or wide


def test_who_only_listens_costs_nothing_in_the_store() -> None:
    def counts(**options: Any) -> Any:
        with InMemorySaver() as saver:
            letters("abc").compile(checkpointer=saver, **options).invoke({}, thread())
            return saver.store.counts

    assert counts(listeners=[lambda event: None]) == counts()


def test_a_log_is_read_from_an_offset(saver: SqliteSaver) -> None:
    letters("ab").compile(checkpointer=saver, events=True).invoke({}, thread())
    run_id = last_run(saver)
    whole = saver.events(run_id)
    assert saver.events(run_id, after=4) == whole[4:]
    assert saver.events(run_id, after=4, limit=2) == whole[4:6]
    assert saver.events(run_id, after=whole[-1].offset) == []
    assert asyncio.run(saver.aevents(run_id, after=4, limit=2)) == whole[4:6]


def test_a_log_is_followed_while_its_run_works(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        graph, offset, seen = letters("ab").compile(checkpointer=saver, events=True), 0, list[str]()
        for _ in graph.stream({}, thread()):
            entries = other.events(last_run(other), after=offset)
            offset += len(entries)
            seen += [entry.event.node for entry in entries if isinstance(entry.event, events.TaskFinished)]
        assert seen == ["a", "b"]
        assert isinstance(other.events(last_run(other))[-1].event, events.RunFinished)


def test_each_run_of_a_thread_has_a_log_of_its_own(saver: SqliteSaver) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=saver, events=True)
    graph.invoke({}, thread())
    graph.invoke(Command(resume=1), thread())
    graph.update_state(thread(), {"log": ["x"]})
    second, first = saver.runs("t")
    assert [record.kind for record in (first, second)] == ["input", "answer"]
    assert isinstance(logged(saver, first.run_id)[-1], events.RunPaused)
    assert isinstance(logged(saver, second.run_id)[-1], events.RunFinished)
    assert (first.events, second.events) == (len(saver.events(first.run_id)), len(saver.events(second.run_id)))


def test_a_log_goes_with_its_thread(saver: SqliteSaver) -> None:
    letters("a").compile(checkpointer=saver, events=True).invoke({}, thread())
    run_id = last_run(saver)
    saver.delete_thread("t")
    assert saver.get_run(run_id) is None
    with pytest.raises(UnknownRunError):
        saver.events(run_id)
    assert list(saver.store.verify()) == []


def test_a_run_that_keeps_no_log_has_an_empty_one(saver: SqliteSaver) -> None:
    letters("a").compile(checkpointer=saver).invoke({}, thread())
    assert saver.events(last_run(saver)) == []


def test_a_log_needs_a_checkpointer_and_a_run(saver: SqliteSaver) -> None:
    with pytest.raises(NoCheckpointerError):
        letters("a").compile(events=True)
    with pytest.raises(UnknownRunError, match="There is no run nobody"):
        saver.events("nobody")
    for wrong in ({"after": -1}, {"limit": 0}):
        with pytest.raises(InvalidConfigError):
            saver.events("nobody", **wrong)


def test_an_event_of_a_newer_version_is_read_all_the_same(saver: SqliteSaver) -> None:
    drive = started(saver.store, "t")
    commit = drive.step()
    body = events.body_of(
        events.RunFinished(run_id="run-1", thread_id="t", at=1, checkpoint_id="c"),
    )
    drafts = [EventDraft("run-1", "ship_sailed", 1, body), EventDraft("run-1", "run_finished", 1, body)]
    commit.rows = commit.rows._replace(events=drafts)
    saver.store.commit(commit)
    unknown, known = logged(saver, "run-1")
    assert unknown == UnknownEvent(
        run_id="run-1", thread_id="t", at=1, name="ship_sailed", facts={"checkpoint_id": "c"}
    )
    assert known == events.RunFinished(run_id="run-1", thread_id="t", at=1, checkpoint_id="c")


@pytest.mark.parametrize("kind", events.KINDS)
def test_every_event_is_what_it_was_when_it_is_read(kind: str) -> None:
    given: dict[str, Any] = {
        "int": 7,
        "str": "text",
        "tuple[str, ...]": ("a", "b"),
        "int | None": None,
        "str | None": "t",
    }
    cls = events.KINDS[kind]
    facts: dict[str, Any] = {name: given[str(field.type)] for name, field in cls.__dataclass_fields__.items()}
    event = cls(**facts)
    assert events.name_of(event) == kind
    assert events.event_of(kind, events.body_of(event), event.run_id, "t", event.at) == event


# -- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE])
def test_a_log_has_what_was_committed_and_nothing_else(point: str, nth: int, deaths: Deaths) -> None:
    """INV-1 for events: a crash at any line of any transaction leaves state and log together."""
    saver = Saver(deaths.clock)
    graph = letters("abc").compile(checkpointer=saver, events=True)
    deaths.dies_at(point, nth)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread())
    deaths.revive()
    runs = saver.runs("t")
    found = logged(saver, runs[0].run_id) if runs else []
    told = [event.checkpoint_id for event in found if isinstance(event, events.CheckpointCommitted)]
    history = graph.get_state_history(thread())
    assert told[::-1] == [snapshot.config["configurable"]["checkpoint_id"] for snapshot in history]
    assert list(saver.store.verify()) == []
    assert graph.invoke(None if runs else {}, thread()) == {"log": ["a", "b", "c"]}
    kinds = [events.name_of(event) for event in logged(saver)]
    assert kinds.count("task_finished") == 3
    assert kinds.count("superstep_committed") == 3
    assert kinds[-1] == "run_finished"
