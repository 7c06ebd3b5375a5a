"""Branches of one thread: which one a call means, that each is what its history made it, and that no clock decides."""

import asyncio
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    InMemorySaver,
    MergeError,
    Overwrite,
    Send,
    SqliteSaver,
    StateGraph,
    UnserializableValueError,
    interrupt,
)
from stepwell.clock import SystemClock
from tests.runtime.graphs import Call, Counted, Log, ask, chain, fan, letters, note, thread


def log(*names: str) -> dict[str, list[str]]:
    return {"log": list(names)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


def reopened(path: Path, graph: Any, config: Any = None) -> Any:
    """Return the state as another process finds it."""
    with SqliteSaver(path) as saver:
        return graph.compile(checkpointer=saver).get_state(config or thread()).values


# -- live and reloaded ------------------------------------------------------------------------------------------------


def test_D5_parallel_writes_are_folded_in_one_order_live_and_reloaded(path: Path) -> None:
    """LangGraph's report 8382: live the order was that of task paths, after a reload that of task ids."""

    async def index(state: Any) -> dict[str, list[str]]:
        await asyncio.sleep(0)
        return log(str(state["n"]))

    graph = StateGraph(Log).add_node("a", note("a")).add_node("n", index).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: [Send("n", {"n": n}) for n in range(20)], ["n"])
    expected = log("a", *map(str, range(20)))
    with SqliteSaver(path) as saver:
        assert graph.compile(checkpointer=saver).invoke({}, thread()) == expected
    assert reopened(path, graph) == expected


def test_D5_a_superstep_that_was_finished_by_another_process_is_folded_in_the_same_order(path: Path) -> None:
    """The first process records some of the outcomes, the second makes the others and merges them all."""
    broken = {"3", "7"}

    def index(state: Any) -> dict[str, list[str]]:
        if state["n"] in broken:
            raise ValueError("broken")
        return log(state["n"])

    graph = StateGraph(Log).add_node("a", note("a")).add_node("n", index).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: [Send("n", {"n": str(n)}) for n in range(9)], ["n"])
    with SqliteSaver(path) as saver, pytest.raises(ValueError, match="broken"):
        graph.compile(checkpointer=saver).invoke({}, thread())
    broken.clear()
    with SqliteSaver(path) as saver:
        assert graph.compile(checkpointer=saver).retry(thread()) == log("a", *map(str, range(9)))


@pytest.mark.parametrize("writer", "abc")
def test_D7_an_overwrite_among_other_writes_means_the_same_live_and_reloaded(writer: str, path: Path) -> None:
    """LangGraph's report 8821: writes after an overwrite in one step were dropped live and kept on replay."""

    def node(name: str) -> Any:
        return lambda state: {"log": Overwrite([f"only {name}"]) if name == writer else [name]}

    graph = fan(*((name, node(name)) for name in "abc")).add_node("d", note("d")).add_edge(["a", "b", "c"], "d")
    expected = log(f"only {writer}", "d")
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        assert compiled.invoke(log("in"), thread()) == expected
        before = next(s for s in compiled.get_state_history(thread()) if s.next == ("a", "b", "c"))
        assert compiled.invoke(None, before.config) == expected
    assert reopened(path, graph) == expected


# -- which branch -----------------------------------------------------------------------------------------------------


def test_D8_an_answer_at_the_head_by_its_id_is_an_answer_and_no_replay(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 7361: with an explicit checkpoint id a resume was taken for a replay."""
    before = Counted("a")
    graph = chain(("a", before), ("ask", ask("ask"))).compile(checkpointer=saver)
    call(graph, {}, thread())
    head = graph.get_state(thread()).config
    assert call(graph, Command(resume="yes"), head) == log("a", "ask='yes'")
    assert graph.get_state(thread()).lineage == 0
    assert before.calls == 1
    assert call(graph, Command(resume="no"), head) == log("a", "ask='no'")
    assert graph.get_state(thread()).lineage == 1


def test_a_branch_that_is_not_the_newest_goes_on_by_its_own_head(call: Call, saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["c"])
    call(graph, {}, thread())
    first = graph.get_state(thread()).config
    second = graph.fork(first)
    edited = graph.update_state(first, log("edit"))
    assert graph.get_state(thread()).values == log("a", "b", "edit")
    assert graph.get_state(thread()).lineage == 0
    assert call(graph, None, second) == log("a", "b", "c")
    assert graph.get_state(thread()).lineage == 1
    assert call(graph, None, edited) == log("a", "b", "edit", "c")


# -- order ------------------------------------------------------------------------------------------------------------


class Backwards(SystemClock):
    """A clock that steps five seconds back each time it is read."""

    def __init__(self) -> None:
        self._now = super().now()

    def now(self) -> int:
        self._now -= 5_000_000
        return self._now


class Descending:
    """Ids that sort the other way round."""

    def __init__(self) -> None:
        self._left = 10**6

    def new(self) -> str:
        self._left -= 1
        return f"{self._left:032x}"


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give every graph a clock that steps back and ids that sort the other way round."""
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", Backwards())
    monkeypatch.setattr("stepwell.engine.wiring._IDS", Descending())
    yield


@pytest.mark.usefixtures("backwards")
def test_D10_D11_the_newest_is_the_last_written_whatever_clocks_and_ids_say(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's reports 6869, 7179 and 2854: ids compared as text, and clocks that step back, chose the latest."""
    graph = letters("abc").compile(checkpointer=saver, interrupt_before=["c"])
    call(graph, {}, thread())
    first = graph.get_state(thread())
    assert first.values == log("a", "b")
    branches = [first.config, graph.fork(first.config), graph.update_state(first.config, log("edit"))]
    assert graph.get_state(thread()).config == branches[2]
    history = list(graph.get_state_history(thread()))
    assert [s.seq for s in history] == sorted((s.seq for s in history), reverse=True)
    assert [s.created_at for s in history] == sorted(s.created_at for s in history)
    ids = [s.config["configurable"]["checkpoint_id"] for s in history]
    assert ids == sorted(ids)
    assert call(graph, None, branches[1]) == log("a", "b", "c")
    assert graph.get_state(thread()).lineage == 1
    assert call(graph, None, branches[2]) == log("a", "b", "edit", "c")
    assert graph.get_state(thread()).lineage == 0


@pytest.mark.usefixtures("backwards")
def test_a_copy_made_while_the_clock_steps_back_has_the_same_heads(saver: SqliteSaver) -> None:
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    old = next(s.config for s in graph.get_state_history(thread()) if s.next == ("b",))
    graph.update_state(old, log("edit"))
    saver.copy_thread("t", "copy")
    assert graph.get_state(thread("copy")).values == graph.get_state(thread()).values == log("a", "edit")


# -- what cannot poison a thread --------------------------------------------------------------------------------------


def test_E4_what_a_node_wrote_before_it_pauses_is_not_part_of_the_state(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 8179. A node writes by returning. Where its router asks, what it returned is kept beside the
    state until the router is done, and applied once."""
    node = Counted("a")

    graph = StateGraph(Log).add_node("a", node).add_node("b", note("b")).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: interrupt(state["log"]), ["b"])
    compiled = graph.compile(checkpointer=saver)
    call(compiled, {}, thread())
    paused = compiled.get_state(thread())
    assert (paused.values, paused.next) == (log(), ("a",))
    assert [i.value for i in paused.interrupts] == [["a"]]
    assert call(compiled, Command(resume="b"), thread()) == log("a", "b")
    assert node.calls == 1


def test_F11_what_cannot_be_stored_is_refused_however_deep_and_in_an_edit_too(call: Call, saver: SqliteSaver) -> None:
    """Langflow's report 13633: an opaque member of a dict was stored as null, and the resumed step counted as done."""

    class Frames(TypedDict, total=False):
        frames: dict[str, Any]

    opaque = {"frames": {"deep": [{"frame": object()}]}}
    graph = chain(("a", lambda state: opaque), schema=Frames).compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match=r"frames\['deep'\]\[0\]\['frame'\]"):
        call(graph, {}, thread())
    assert graph.get_state(thread()).next == ("a",)
    with pytest.raises(UnserializableValueError, match=r"frames\['deep'\]\[0\]\['frame'\]"):
        graph.update_state(thread(), opaque, as_node="a")
    with pytest.raises(UnserializableValueError, match="frame"):
        graph.fork(thread(), opaque, as_node="a", thread_id="new")
    graph.update_state(thread(), {"frames": {}}, as_node="a")
    assert graph.get_state(thread()).next == ()


class Keyed(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    seen: Annotated[dict[str, str], lambda old, new: _joined(old, new)]


def _joined(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    if old.keys() & new.keys():
        raise ValueError(f"{sorted(old.keys() & new.keys())} came twice")
    return {**old, **new}


def test_N7_a_plan_that_cannot_be_carried_out_never_poisons_a_thread(call: Call, saver: SqliteSaver) -> None:
    """LangGraph's report 8819: two packets with one key were saved, and failed at planning ever after, in edits too."""
    twice = [Send("n", {"key": "k"}), Send("n", {"key": "k"})]
    graph = StateGraph(Keyed).add_node("a", note("a")).add_edge(START, "a")
    graph.add_node("n", lambda packet: {"seen": {packet["key"]: "here"}})
    graph.add_conditional_edges("a", lambda state: twice, ["n"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(MergeError, match="came twice"):
        call(compiled, {}, thread())
    assert compiled.get_state(thread()).next == ("n", "n"), "it is not finished"
    with pytest.raises(MergeError, match="came twice"):
        compiled.retry(thread())
    compiled.update_state(thread(), {"seen": {"k": "by hand"}}, as_node="n")
    state = compiled.get_state(thread())
    assert (state.next, state.values["seen"]) == ((), {"k": "by hand"})


def test_N7_a_packet_that_cannot_be_stored_is_refused_before_it_is_planned(call: Call, saver: SqliteSaver) -> None:
    graph = StateGraph(Log).add_node("a", note("a")).add_node("n", note("n")).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: [Send("n", object())], ["n"])
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match="Send to n"):
        call(compiled, {}, thread())
    assert compiled.get_state(thread()).next == ("a",)
    compiled.update_state(thread(), log("by hand"), as_node="n")
    assert compiled.get_state(thread()).next == ()


def test_a_thread_in_memory_and_one_on_disk_branch_alike(path: Path) -> None:
    def lived(saver: SqliteSaver) -> list[Any]:
        graph = letters("abc").compile(checkpointer=saver)
        graph.invoke({}, thread())
        old = next(s.config for s in graph.get_state_history(thread()) if s.next == ("b",))
        graph.update_state(old, [(log("x"), "b")], as_node="__copy__")
        graph.invoke(None, old)
        graph.fork(old)
        return [(s.lineage, s.seq, s.values, s.next) for s in graph.get_state_history(thread())]

    with InMemorySaver() as memory, SqliteSaver(path) as disk:
        assert lived(memory) == lived(disk)
