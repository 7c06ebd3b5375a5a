"""Repair: a poisoned checkpoint is read raw, edited, and left behind. What a run is given is never read half."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    CompiledGraph,
    CorruptRecordError,
    InMemorySaver,
    InvalidConfigError,
    InvalidUpdateError,
    Overwrite,
    RawValue,
    Send,
    SqliteSaver,
    StateGraph,
    UnknownCheckpointError,
    UnknownThreadError,
    UnknownTypeError,
    interrupt,
    register_type,
)
from stepwell.codec.registry import _process, type_name
from tests.runtime.graphs import letters, thread


@dataclass
class Doc:
    """A class that only the first deployment lists."""

    title: str


class State(TypedDict, total=False):
    doc: Any
    docs: Annotated[list[Any], operator.add]
    log: Annotated[list[str], operator.add]


@contextmanager
def listed() -> Iterator[None]:
    """Let graphs made inside the block know `Doc`, as a deployment that registers it; those made after it do not."""
    register_type(Doc)
    try:
        yield
    finally:
        del _process.by_name[type_name(Doc)], _process.by_class[Doc]


def make(saver: SqliteSaver) -> CompiledGraph:
    """Return write → ask → end."""

    def write(state: Any) -> dict[str, Any]:
        return {"doc": Doc("a"), "docs": [Doc("b")], "log": ["write"]}

    def ask(state: Any) -> dict[str, Any]:
        return {"log": [interrupt("go on?")]}

    def end(state: Any) -> dict[str, Any]:
        return {"log": [f"end {state.get('doc')}"]}

    graph = StateGraph(State).add_sequence([("write", write), ("ask", ask), ("end", end)]).add_edge(START, "write")
    made: CompiledGraph = graph.compile(checkpointer=saver, name="g")
    return made


@pytest.fixture
def poisoned(saver: SqliteSaver) -> CompiledGraph:
    """A deployment that cannot read the thread's newest checkpoint."""
    with listed():
        make(saver).invoke({}, thread())
    return make(saver)


def damage(saver: SqliteSaver, seq: int, body: str = "x'00'", thread_id: str = "t") -> None:
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    connection.execute(f"update checkpoints set body = {body} where thread_id = '{thread_id}' and seq = {seq}")


@pytest.fixture
def damaged() -> Iterator[tuple[InMemorySaver, CompiledGraph]]:
    """A thread whose newest checkpoint lost its body to an accident."""
    with InMemorySaver() as saver:
        graph = letters("abc").compile(checkpointer=saver)
        graph.invoke({}, thread())
        damage(saver, graph.get_state(thread()).seq)
        yield saver, graph


# -- a value whose class is gone --------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_an_error_that_names_it(poisoned: CompiledGraph) -> None:
    with pytest.raises(UnknownTypeError, match=r"doc holds a tests\.runtime\.test_repair:Doc"):
        poisoned.get_state(thread())
    with pytest.raises(UnknownTypeError):
        poisoned.invoke(Command(resume="yes"), thread())
    with pytest.raises(UnknownTypeError):
        poisoned.invoke(None, thread())


def test_a_history_goes_past_what_cannot_be_read(poisoned: CompiledGraph) -> None:
    found = list(poisoned.get_state_history(thread()))
    assert [snapshot.next for snapshot in found] == [("ask",), ("write",), ("__start__",)]
    with pytest.raises(UnknownTypeError):
        assert found[0].values
    assert found[1].values == {"docs": [], "log": []}
    assert "unreadable doc" in repr(found[1].tasks[0].result["doc"])


def test_a_poisoned_checkpoint_is_read_raw(poisoned: CompiledGraph, saver: SqliteSaver) -> None:
    raw = saver.read_raw(thread())
    assert raw.fault is None
    assert raw.next == ("ask",)
    assert raw.values == {"log": ["write"]}
    assert set(raw.faults) == {"doc", "docs"}
    assert "Doc" in raw.faults["doc"]
    assert raw.channels["doc"].data
    assert raw.parent_config == list(poisoned.get_state_history(thread()))[1].config


def test_a_poisoned_value_is_replaced_by_an_edit(poisoned: CompiledGraph) -> None:
    poisoned.update_state(thread(), {"doc": "plain", "docs": Overwrite(["b"])}, as_node="write")
    state = poisoned.get_state(thread())
    assert state.values == {"doc": "plain", "docs": ["b"], "log": ["write"]}
    poisoned.invoke(None, thread())  # its input is another now, so it asks anew
    assert poisoned.invoke(Command(resume="yes"), thread())["log"] == ["write", "yes", "end plain"]


def test_a_task_that_stays_keeps_its_question_though_its_input_cannot_be_read(
    poisoned: CompiledGraph, saver: SqliteSaver
) -> None:
    """INV-4: the same bytes are the same input."""
    poisoned.update_state(thread(), {}, as_node="write")
    with listed():
        graph = make(saver)
        (asked,) = graph.get_state(thread()).interrupts
        assert asked.value == "go on?"
        assert graph.invoke(Command(resume="yes"), thread())["log"] == ["write", "yes", "end Doc(title='a')"]


def test_an_edit_leaves_what_it_does_not_touch_as_it_is(poisoned: CompiledGraph, saver: SqliteSaver) -> None:
    """The bytes stay: a deployment that lists the class again reads them."""
    poisoned.update_state(thread(), {"log": ["edited"]}, as_node="ask")
    with pytest.raises(UnknownTypeError):
        poisoned.get_state(thread())
    with listed():
        state = make(saver).get_state(thread())
    assert state.values == {"doc": Doc("a"), "docs": [Doc("b")], "log": ["write", "edited"]}
    assert state.next == ("end",)


def test_a_reducer_is_not_given_what_cannot_be_read(poisoned: CompiledGraph) -> None:
    with pytest.raises(InvalidUpdateError, match=r"value of docs cannot be read.*Overwrite"):
        poisoned.update_state(thread(), {"docs": ["more"]}, as_node="write")


def test_a_poisoned_checkpoint_is_left_behind_by_a_fork_before_it(poisoned: CompiledGraph, saver: SqliteSaver) -> None:
    before = saver.read_raw(thread()).parent_config
    poisoned.fork(before)
    assert poisoned.get_state(thread()).values == {"docs": [], "log": []}
    assert poisoned.get_state(thread()).next == ("write",)


def test_a_plain_fork_of_what_cannot_be_read_is_refused(poisoned: CompiledGraph) -> None:
    with pytest.raises(UnknownTypeError):
        poisoned.fork(poisoned.get_state_history(thread(), limit=1).__next__().config)


# -- a plan that cannot be decoded ------------------------------------------------------------------------------------


def fan_out(saver: SqliteSaver) -> CompiledGraph:
    def each(state: Any) -> dict[str, Any]:
        return {"log": ["each"]}

    def spread(state: Any) -> list[Send]:
        return [Send("each", {"doc": Doc("a")}), Send("each", {"doc": Doc("b")})]

    graph = StateGraph(State).add_node("plan", lambda state: {"log": ["plan"]}).add_node("each", each)
    graph.add_edge(START, "plan").add_conditional_edges("plan", spread, ["each"])
    made: CompiledGraph = graph.compile(checkpointer=saver, name="g", interrupt_before=["each"])
    return made


def test_N7_a_plan_that_cannot_be_decoded_can_still_be_edited(saver: SqliteSaver) -> None:
    """No operation on the thread is lost for good: list it, edit it, and look at it again."""
    with listed():
        fan_out(saver).invoke({}, thread())
    graph = fan_out(saver)
    with pytest.raises(UnknownTypeError, match="Send"):
        graph.get_state(thread())
    assert saver.read_raw(thread()).next == ("each", "each")
    assert next(graph.get_state_history(thread())).next == ("each", "each")
    with pytest.raises(UnknownTypeError):
        graph.invoke(None, thread())
    graph.update_state(thread(), {"log": ["edited"]}, as_node="each")
    state = graph.get_state(thread())
    assert (state.values, state.next) == ({"docs": [], "log": ["plan", "edited"]}, ())


def test_a_recorded_outcome_that_cannot_be_decoded_can_still_be_edited_past(saver: SqliteSaver) -> None:
    """A finished sibling wrote what cannot be read now; its superstep waits for an answer."""

    def deployment() -> CompiledGraph:
        graph = StateGraph(State)
        graph.add_node("doc", lambda state: {"doc": Doc("a")}).add_edge(START, "doc")
        graph.add_node("ask", lambda state: {"log": [interrupt("?")]}).add_edge(START, "ask")
        graph.add_node("end", lambda state: {"log": ["end"]}).add_edge(["doc", "ask"], "end")
        made: CompiledGraph = graph.compile(checkpointer=saver, name="g")
        return made

    with listed():
        deployment().invoke({}, thread())
    graph = deployment()
    with pytest.raises(UnknownTypeError):
        graph.invoke(Command(resume="yes"), thread())
    graph.update_state(thread(), {"log": ["edited"]}, as_node="end")
    assert graph.get_state(thread()).values == {"docs": [], "log": ["edited"]}


# -- rows that do not verify ------------------------------------------------------------------------------------------


def test_a_damaged_checkpoint_is_said_by_every_read_but_the_raw_one(
    damaged: tuple[InMemorySaver, CompiledGraph],
) -> None:
    saver, graph = damaged
    for read in (graph.get_state, saver.get_tuple, lambda config: list(graph.get_state_history(config))):
        with pytest.raises(CorruptRecordError):
            read(thread())
    raw = saver.read_raw(thread())
    assert raw.fault == "its columns do not match its digest"
    assert (dict(raw.channels), raw.next, raw.columns["body"]) == ({}, (), b"\x00")
    assert saver.read_raw(raw.config) == raw


@pytest.mark.parametrize("way", ["fork", "edit", "replay", "retry from history"])
def test_a_damaged_checkpoint_is_left_behind(damaged: tuple[InMemorySaver, CompiledGraph], way: str) -> None:
    saver, graph = damaged
    raw = saver.read_raw(thread())
    before = raw.parent_config
    assert before is not None
    assert graph.get_state(before).values == {"log": ["a", "b"]}
    if way == "fork":
        graph.fork(before)
    elif way == "edit":
        graph.update_state(before, {"log": ["edited"]}, as_node="b")
    elif way == "replay":
        graph.invoke(None, before)
    else:
        older = next(graph.get_state_history(thread(), before=raw.config))
        graph.fork(older.config)
    result = graph.invoke(None, thread())
    assert result["log"] == (["a", "b", "edited", "c"] if way == "edit" else ["a", "b", "c"])
    assert graph.get_state(thread()).lineage == 1
    assert len(graph.get_lineages(thread())[0].children) == 1


def test_a_value_that_lies_in_a_damaged_row_is_said_by_its_channel(saver: SqliteSaver) -> None:
    with InMemorySaver() as other:
        graph = letters("abc").compile(checkpointer=other)
        graph.invoke({"log": ["in"]}, thread())
        graph.update_state(thread(), {})
        head = graph.get_state(thread()).seq
        damage(other, head - 1)
        raw = other.read_raw(thread())
        assert raw.fault is None
        assert "the checkpoint that holds it cannot be opened" in raw.faults["log"]


def test_bytes_of_no_known_extension_are_shown_as_what_they_are(damaged: tuple[InMemorySaver, CompiledGraph]) -> None:
    saver, graph = damaged
    graph.invoke({}, thread("u"))
    seq = graph.get_state(thread("u")).seq
    stored = saver.read_raw(thread("u")).columns["body"]
    damage(saver, seq, f"x'{(stored + b'more').hex()}'", "u")
    raw = saver.read_raw(thread("u"))
    assert raw.fault is not None
    assert raw.columns["checkpoint_id"] == raw.config["configurable"]["checkpoint_id"]


def test_there_must_be_something_to_read_raw(memory_saver: InMemorySaver) -> None:
    with pytest.raises(UnknownThreadError):
        memory_saver.read_raw(thread())
    letters("a").compile(checkpointer=memory_saver).invoke({}, thread())
    with pytest.raises(UnknownCheckpointError):
        memory_saver.read_raw({"configurable": {"thread_id": "t", "checkpoint_id": "nowhere"}})


# -- on_unknown_type --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("raw", RawValue("tests.runtime.test_repair:Doc", {"title": "a"})),
        (lambda name, parts: (name.rpartition(":")[2], parts["title"]), ("Doc", "a")),
    ],
)
def test_a_saver_says_what_becomes_of_unknown_types(tmp_path: Any, policy: Any, expected: Any) -> None:
    with listed(), SqliteSaver(tmp_path / "threads.db") as saver:
        make(saver).invoke({}, thread())
    with SqliteSaver(tmp_path / "threads.db", on_unknown_type=policy) as saver:
        graph = make(saver)
        assert graph.get_state(thread()).values["doc"] == expected
        found = saver.get(thread())
        assert found is not None
        assert found["channel_values"]["doc"] == expected
        assert graph.invoke(Command(resume="yes"), thread())["log"][-1] == f"end {expected}"
    with SqliteSaver(tmp_path / "threads.db", on_unknown_type="raise") as saver, pytest.raises(UnknownTypeError):
        make(saver).get_state(thread())


def test_a_raw_value_is_not_stored_again(tmp_path: Any) -> None:
    with listed(), SqliteSaver(tmp_path / "threads.db") as saver:
        make(saver).invoke({}, thread())
    with SqliteSaver(tmp_path / "threads.db", on_unknown_type="raw") as saver:
        graph = make(saver)
        value = graph.get_state(thread()).values["doc"]
        with pytest.raises(TypeError, match="RawValue"):
            graph.update_state(thread(), {"doc": value}, as_node="write")


@pytest.mark.parametrize("wrong", ["skip", 1, {}])
def test_another_policy_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidConfigError, match="on_unknown_type"):
        InMemorySaver(on_unknown_type=wrong)
