"""Whatever happens on the way, the end is the same: paused, failed, disturbed runs equal the undisturbed one."""

import asyncio
import operator
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, strategies as st

from stepwell import Command, InMemorySaver, Send, SqliteSaver, StateGraph, StoreError, interrupt, points
from stepwell.graph.types import START
from tests.runtime.deaths import failing_at
from tests.runtime.graphs import Call, Counted, Log, chain, fan, letters, note, thread

# -- any graph, paused and failed anywhere ----------------------------------------------------------------------------


class Trouble:
    """Which nodes ask and which fail, each on its first call in a superstep; none of it shows in the state."""

    def __init__(self, asking: set[str], failing: set[str]) -> None:
        self.asking = asking
        self.failing = failing
        self.failed: set[str] = set()

    def node(self, name: str) -> Any:
        def run(state: Any) -> dict[str, list[str]]:
            seen = f"{name}:{state['n'] if 'n' in state else len(state['log'])}"
            if name in self.asking:
                assert interrupt(seen) == "go on"
            if name in self.failing and seen not in self.failed:
                self.failed.add(seen)
                raise ValueError(seen)
            return {"log": [seen]}

        return run


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a layered graph: plain edges, joins, deferred nodes, sends, and who asks or fails."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 6)))]
    edges = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if draw(st.booleans())]
    entries = [name for name in names if not any(b == name for _, b in edges)]
    joins = draw(st.sets(st.sampled_from(names), max_size=2))
    picked = st.sets(st.sampled_from(names))
    return {
        "names": names,
        "edges": edges,
        "entries": entries,
        "joins": joins,
        "late": draw(st.sets(st.sampled_from(names), max_size=1)),
        "sending": draw(st.sets(st.sampled_from(names), min_size=1, max_size=2)),
        "asking": draw(picked),
        "failing": draw(picked),
        "durability": draw(st.sampled_from(["sync", "async", "exit"])),
    }


def build(shape: dict[str, Any], trouble: Trouble) -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Log)
    for name in shape["names"]:
        graph.add_node(name, trouble.node(name), defer=name in shape["late"])
    graph.add_node("sent", trouble.node("sent"))
    for name in shape["entries"]:
        graph.add_edge(START, name)
    for name in shape["names"]:
        sources = [a for a, b in shape["edges"] if b == name]
        if name in shape["joins"] and len(sources) > 1:
            graph.add_edge(sources, name)
        else:
            for source in sources:
                graph.add_edge(source, name)
    for name in shape["sending"]:
        graph.add_conditional_edges(name, lambda state: [Send("sent", {"n": i}) for i in range(3)], ["sent"])
    return graph


def finish(graph: Any, shape: dict[str, Any], choose: Any) -> Any:
    """Drive to the end: answer some of the questions, retry what failed."""
    given: Any = {"log": ["in"]}
    for _ in range(100):
        try:
            result = graph.invoke(given, thread(), durability=shape["durability"])
        except ValueError:
            given = None
            continue
        if "__interrupt__" not in result:
            return result
        ids = [question.id for question in result["__interrupt__"]]
        given = Command(resume=dict.fromkeys(choose(ids), "go on"))
    raise AssertionError("the run does not end")


@pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")
@given(shapes(), st.data())
def test_A10_a_disturbed_run_ends_like_an_undisturbed_one(shape: dict[str, Any], data: st.DataObject) -> None:
    """tinyagents' review, finding C2: after a pause, successors of finished siblings ran beside the task that asked."""
    with InMemorySaver() as saver:
        expected = (
            build(shape, Trouble(set(), set())).compile(checkpointer=saver).invoke({"log": ["in"]}, thread("plain"))
        )
        trouble = Trouble({*shape["asking"], "sent"}, shape["failing"])
        graph = build(shape, trouble).compile(checkpointer=saver)

        def choose(ids: list[str]) -> list[str]:
            return data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))

        assert finish(graph, shape, choose) == expected
        assert graph.get_state(thread()).values == expected
        assert list(saver.store.verify()) == []


def test_A10_the_next_superstep_waits_for_the_task_that_asked(call: Call, saver: SqliteSaver) -> None:
    """The scenario itself: a2 sees what b wrote although b paused and a did not."""

    def build_with(b: Any) -> Any:
        graph = fan(("a", note("a")), ("b", b)).add_node("b2", note("b2"))
        graph.add_node("a2", lambda state: {"log": ["+".join(state["log"])]})
        return graph.add_edge("a", "a2").add_edge("b", "b2").compile(checkpointer=saver)

    plain = call(build_with(note("b")), {}, thread("plain"))
    asking = build_with(lambda state: {"log": [interrupt("?")]})
    call(asking, {}, thread())
    assert asking.get_state(thread()).next == ("b",)
    assert call(asking, Command(resume="b"), thread()) == plain == {"log": ["a", "b", "a+b", "b2"]}


# -- a commit that fails ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", range(1, 6))
def test_A2_a_failed_write_fails_the_run_and_tears_nothing(
    nth: int, call: Call, saver: SqliteSaver, any_durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph's report 8234: a lost write beside a successful checkpoint left a state of two different steps.

    INV-1: the superstep is visible as a whole or not at all; what did land is not done again.
    """
    a, b = Counted("a"), Counted("b")
    graph = fan(("a", a), ("b", b)).add_node("end", note("end")).add_edge(["a", "b"], "end").compile(checkpointer=saver)
    monkeypatch.setattr(points, "hook", failing_at(nth))
    given: Any = {"log": ["in"]}
    try:
        result = call(graph, given, thread(), durability=any_durability)
    except StoreError as error:
        assert "full" in str(error)
        landed = {task.name for task in graph.get_state(thread()).tasks if task.result is not None}
        before = {node.name: node.calls for node in (a, b)}
        known = graph.get_state(thread()).created_at is not None
        result = call(graph, None if known else given, thread(), durability=any_durability)
        again = {node.name for node in (a, b) if node.calls > before[node.name]}
        assert not again & landed
    assert result == {"log": ["in", "a", "b", "end"]}
    assert graph.get_state(thread()).values == result


# -- who else looks ---------------------------------------------------------------------------------------------------


def test_A4_admission_is_durable_before_the_first_node(call: Call, any_durability: str, tmp_path: Path) -> None:
    """LangGraph's report 8764: a process that died early left no trace that the run had been accepted. INV-3.

    A second connection looks from inside the first node: run and input are on disk in every mode, in `sync` and
    `async` the input's checkpoints too.
    """
    seen: list[Any] = []
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:

        def first(state: Log) -> dict[str, list[str]]:
            with other.store.reading() as reader:
                row, runs = reader.thread("t"), reader.runs("t")
            looking = letters("first").compile(checkpointer=other, name="g")
            seen.append((row and row.status, [run.status for run in runs], bool(runs[0].input)))
            seen.append(len(list(looking.get_state_history(thread()))))
            return {"log": ["first"]}

        graph = chain(("first", first)).compile(checkpointer=saver, name="g")
        call(graph, {"log": ["in"]}, thread(), durability=any_durability)
    assert seen == [("running", ["running"], any_durability == "exit"), 0 if any_durability == "exit" else 2]


def test_A8_a_reader_never_sees_half_a_checkpoint(tmp_path: Path) -> None:
    """PostHog's pull request 34648: a reader found a checkpoint whose values had not arrived yet. INV-1."""
    faults: list[Any] = []
    seen: set[int] = set()
    done = threading.Event()
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        nodes = [(f"n{i}", note(f"n{i}")) for i in range(60)]
        graph = chain(*nodes).compile(checkpointer=saver, name="g")
        looking = chain(*nodes).compile(checkpointer=other, name="g")

        def look() -> None:
            while not done.is_set():
                for snapshot in looking.get_state_history(thread(), limit=3):
                    seen.add(snapshot.seq)
                    step = snapshot.metadata["step"]
                    if len(snapshot.values["log"]) != max(step, 0) or len(snapshot.next) != (step < 60):
                        faults.append(snapshot)

        reader = threading.Thread(target=look)
        reader.start()
        graph.invoke({}, thread())
        done.set()
        reader.join()
    assert faults == []
    assert seen


@pytest.mark.parametrize(("durability", "ahead"), [("sync", 0), ("async", 1)])
async def test_G7_a_run_gets_no_further_ahead_of_a_slow_disk_than_its_mode_says(
    durability: Any, ahead: int, sqlite_saver: SqliteSaver
) -> None:
    """LangGraph's report 7094: with a slow database, saves that nobody waited for piled up with the steps of a run.

    From the first node on no write lands. The run stops there in `sync`, and one superstep later in `async`.
    """
    lock, called = sqlite_saver.store._writer.lock, list[str]()

    def node(name: str) -> Any:
        async def noting(state: Log) -> dict[str, list[str]]:
            if not called:
                lock.acquire()
            called.append(name)
            return {"log": [name]}

        return noting

    graph = chain(*((name, node(name)) for name in "abcdefgh")).compile(checkpointer=sqlite_saver)
    running = asyncio.create_task(graph.ainvoke({}, thread(), durability=durability))
    while len(called) < 1 + ahead:
        await asyncio.sleep(0)
    for _ in range(100):  # turns of the loop in which it could go on
        await asyncio.sleep(0)
    assert called == list("abcdefgh"[: 1 + ahead])
    lock.release()
    assert await running == {"log": list("abcdefgh")}


class Shelf(TypedDict, total=False):
    books: list[str]
    notes: Annotated[list[str], operator.add]


def test_F10_what_a_node_changes_after_it_returned_is_not_stored(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """LangGraph's report 4168: states mutated while a slow save was going on were stored corrupt. INV-5."""
    kept: list[str] = ["one"]

    def lend(state: Shelf) -> dict[str, list[str]]:
        return {"books": kept}

    def scribble(state: Shelf) -> dict[str, list[str]]:
        kept.append("scribbled")
        return {"notes": [",".join(state["books"])]}

    graph = chain(("lend", lend), ("scribble", scribble), schema=Shelf).compile(checkpointer=saver)
    live = call(graph, {}, thread(), durability=any_durability)
    assert live == {"books": ["one"], "notes": ["one"]}
    assert graph.get_state(thread()).values == live
