"""What is stored, and what it costs: counted in bytes, rows and queries, never timed."""

import operator
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    END,
    START,
    DeltaChannel,
    InMemorySaver,
    Overwrite,
    SqliteSaver,
    StateGraph,
    UnknownReducerError,
    add_messages,
)
from stepwell.superstep import body as layout
from stepwell.superstep.body import deltas
from tests.runtime.graphs import Call, Log, chain, fan, note, thread


def merged(value: list[str], writes: Sequence[list[str]]) -> list[str]:
    for write in writes:
        value += write
    return value


class Kinds(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    marks: Annotated[dict[str, int], operator.or_]
    talk: Annotated[list[Any], add_messages]
    own: Annotated[list[str], DeltaChannel(merged)]
    last: str


def write(name: str) -> Any:
    return lambda state: {"log": [name], "marks": {name: 1}, "talk": [("user", name)], "own": [name], "last": name}


def bodies(saver: SqliteSaver, thread_id: str = "t") -> list[layout.Opened]:
    """Return the bodies of a thread's checkpoints, in order."""
    with saver.store.reading() as reader:
        return [layout.open_checkpoint(row.body, "r") for row in reader.everything(thread_id)[0]]


def kinds(saver: SqliteSaver, channel: str, thread_id: str = "t") -> list[int | None]:
    """Return how each checkpoint stores a channel."""
    found = [opened.channels.get(channel) for opened in bodies(saver, thread_id)]
    return [None if entry is None else entry[0] for entry in found]


@contextmanager
def counted_reads(saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the rows of each read of checkpoints by their seqs."""
    from stepwell.stores.shared.reader import RowReader

    asked: list[int] = []
    real = RowReader.checkpoints

    def checkpoints(self: Any, thread_id: str, seqs: Sequence[int]) -> Any:
        asked.append(len(seqs))
        return real(self, thread_id, seqs)

    with monkeypatch.context() as patch:
        patch.setattr(RowReader, "checkpoints", checkpoints)
        yield asked


@pytest.fixture
def long_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deltas follow however small the snapshot."""
    monkeypatch.setattr(deltas, "LIMITS", deltas.Limits(3, 10**6))


# -- deltas -----------------------------------------------------------------------------------------------------------


def looping(steps: int, schema: Any = Log, make: Any = None, start: Any = None) -> Any:
    """A node that goes round `steps` times, each time writing what `make` gives."""
    graph = StateGraph(schema).add_node("more", make or (lambda state: {"log": ["x"]})).add_edge(START, "more")
    graph.add_conditional_edges("more", lambda state: "more" if len(state["log"]) < steps else END, ["more", END])
    return graph


def test_G1_what_grows_is_stored_as_what_was_written(memory_saver: InMemorySaver) -> None:
    """LangGraph's reports of lists that were stored whole at each step: a thread of 1,700 steps took 17 GB. INV-13."""
    graph = looping(300, make=lambda state: {"log": [f"{len(state['log']):01000d}"]}).compile(checkpointer=memory_saver)
    done = graph.invoke({}, thread() | {"recursion_limit": 1000})
    written = 300 * 1000
    stored = memory_saver.store.counts.bytes
    assert stored < 2.6 * written
    assert graph.get_state(thread()).values == done
    assert layout.DELTA in kinds(memory_saver, "log")


@pytest.mark.usefixtures("long_chains")
def test_every_known_reducer_is_stored_as_deltas(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-5: live as reloaded, in each checkpoint and over several runs."""
    graph = chain(*((name, write(name)) for name in "abcd"), schema=Kinds).compile(checkpointer=saver)
    for _ in range(3):
        live = call(graph, {"log": ["in"]}, thread(), durability=any_durability)
        assert graph.get_state(thread()).values == live
    for channel in ("log", "marks", "talk", "own"):
        assert layout.DELTA in kinds(saver, channel)
    history = [snapshot.values for snapshot in graph.get_state_history(thread())]
    assert history[0] == live
    assert [len(values.get("own", ())) for values in history] == sorted(
        (len(values.get("own", ())) for values in history), reverse=True
    )


@pytest.mark.usefixtures("long_chains")
def test_D7_an_overwrite_is_stored_whole_and_what_follows_is_folded_over_it(path: Path) -> None:
    """LangGraph's report 8821, where the list is stored as deltas: live and reloaded, the same list."""

    def node(name: str) -> Any:
        return lambda state: {"log": Overwrite(["over"]) if name == "b" else [name]}

    graph = chain(("first", note("first")), ("second", note("second")), ("third", note("third")))
    for name in "abc":
        graph.add_node(name, node(name)).add_edge("third", name)
    graph.add_node("after", note("after")).add_edge(["a", "b", "c"], "after")
    with SqliteSaver(path) as saver:
        live = graph.compile(checkpointer=saver).invoke({"log": ["in"]}, thread())
        assert live["log"] == ["over", "after"]
        assert kinds(saver, "log")[-4:] == [layout.DELTA, layout.DELTA, layout.SNAPSHOT, layout.DELTA]
    with SqliteSaver(path) as saver:
        history = list(graph.compile(checkpointer=saver).get_state_history(thread()))
    assert [state.values["log"] for state in history[:3]] == [
        ["over", "after"], ["over"], ["in", "first", "second", "third"]
    ]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.mark.usefixtures("long_chains")
def test_D5_parallel_writes_are_folded_in_one_order_from_deltas_too(path: Path) -> None:
    """LangGraph's report 8382, where some of the outcomes stand in records: a sibling failed, and was run again."""
    broken = {"c"}

    def node(name: str) -> Any:
        def act(state: Log) -> dict[str, list[str]]:
            if name in broken:
                raise ValueError("broken")
            return {"log": [name]}

        return act

    graph = chain(("one", note("one")), ("two", note("two")))
    for name in "edcba":
        graph.add_node(name, node(name)).add_edge("two", name)
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        with pytest.raises(ValueError, match="broken"):
            compiled.invoke({"log": ["in"]}, thread())
    broken.clear()
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        live = compiled.retry(thread())
        assert live["log"] == ["in", "one", "two", *"abcde"]
        assert compiled.get_state(thread()).values == live
        assert kinds(saver, "log")[-1] == layout.DELTA
        assert [len(outcome) for outcome in bodies(saver)[-1].outcomes] == [4, 4, 5, 4, 4]


@pytest.mark.usefixtures("long_chains")
def test_edits_forks_replays_and_copies_are_folded_from_the_chain_they_stand_on(path: Path) -> None:
    graph = chain(*((name, note(name)) for name in "abc"))
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": ["in"]}, thread())
        middle = next(s for s in compiled.get_state_history(thread()) if s.values.get("log") == ["in", "a"])
        edited = compiled.update_state(middle.config, {"log": ["edit"]})
        assert compiled.get_state(edited).values["log"] == ["in", "a", "edit"]
        assert compiled.invoke(None, edited)["log"] == ["in", "a", "edit", "b", "c"]
        assert compiled.invoke(None, middle.config)["log"] == ["in", "a", "b", "c"]
        over = compiled.update_state(thread(), {"log": Overwrite(["new"])})
        compiled.update_state(thread(), {"log": ["more"]})
        assert compiled.get_state(thread()).values["log"] == ["new", "more"]
        saver.copy_thread("t", "copy")
        before = {s.config["configurable"]["checkpoint_id"]: s.values for s in compiled.get_state_history(thread())}
        assert before[over["configurable"]["checkpoint_id"]]["log"] == ["new"]
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        for name in ("t", "copy"):
            history = compiled.get_state_history(thread(name))
            assert {s.config["configurable"]["checkpoint_id"]: s.values for s in history} == before
        assert list(saver.store.verify()) == []


def declared(kind: Any, name: str = "log") -> Any:
    return TypedDict("State", {name: Annotated[list[str], kind]})  # type: ignore[operator]


@pytest.mark.usefixtures("long_chains")
def test_a_channel_declared_otherwise_is_read_by_the_old_rule_and_stored_whole_once(saver: SqliteSaver) -> None:
    def graph_with(kind: Any) -> Any:
        return chain(("a", note("a")), schema=declared(kind)).compile(checkpointer=saver, name="g")

    expected: list[str] = []
    for kind in (operator.add, lambda left, right: left + right, operator.add, operator.concat):
        graph = graph_with(kind)
        for _ in range(3):
            live = graph.invoke({"log": ["in"]}, thread())["log"]
            expected += ["in", "a"]
            assert live == expected == graph.get_state(thread()).values["log"]
    stored = [kind for kind in kinds(saver, "log") if kind != layout.DISTANCE]
    whole = [layout.FULL] * 6
    chained = [layout.SNAPSHOT] + [layout.DELTA] * 5
    assert stored == [layout.FULL, *chained, *whole, *chained, *whole]


@pytest.mark.usefixtures("long_chains")
def test_a_renamed_channel_goes_on_from_the_value_its_old_name_had(saver: SqliteSaver) -> None:
    def graph_with(name: str, **options: Any) -> Any:
        graph = StateGraph(declared(operator.add, name))
        for node in "ab":
            graph.add_node(node, lambda state, node=node: {name: [node]})
        graph.add_edge(START, "a").add_edge("a", "b")
        return graph.compile(checkpointer=saver, name="g", **options)

    old = graph_with("log", interrupt_before=["b"])
    old.invoke({"log": ["in"]}, thread())
    new = graph_with("lines", aliases={"log": "lines"})
    assert new.invoke(None, thread()) == {"lines": ["in", "a", "b"]} == new.get_state(thread()).values
    assert new.invoke({"lines": ["again"]}, thread())["lines"] == ["in", "a", "b", "again", "a", "b"]
    assert new.get_state(thread()).values["lines"] == ["in", "a", "b", "again", "a", "b"]
    assert kinds(saver, "lines")[-3:] == [layout.DELTA] * 3


@pytest.mark.usefixtures("long_chains")
def test_a_reducer_of_ones_own_is_found_by_its_name(saver: SqliteSaver) -> None:
    def graph_with(channel: Any) -> Any:
        return chain(("a", note("a")), schema=declared(channel)).compile(checkpointer=saver, name="g")

    live = graph_with(DeltaChannel(merged)).invoke({"log": ["in"]}, thread())
    other = graph_with(DeltaChannel(lambda value, writes: value))
    with pytest.raises(UnknownReducerError, match=r"to be folded by delta:.*merged") as caught:
        other.invoke({"log": ["more"]}, thread())
    assert caught.value.fields()["channel"] == "log"
    renamed = graph_with(DeltaChannel(lambda value, writes: merged(value, writes), name=f"{merged.__module__}:merged"))
    assert renamed.get_state(thread()).values == live
    assert renamed.invoke({"log": ["more"]}, thread())["log"] == ["in", "a", "more", "a"]


def test_a_saver_folds_by_the_reducers_of_the_graphs_that_are_compiled_with_it(path: Path) -> None:
    """LangGraph's savers are asked for tuples of threads with a DeltaChannel too."""
    own = StateGraph(declared(DeltaChannel(merged))).add_node("a", note("a")).add_edge(START, "a")
    with SqliteSaver(path) as saver:
        live = own.compile(checkpointer=saver, name="g").invoke({"log": ["in"]}, thread())
        assert saver.get_tuple(thread()).checkpoint["channel_values"] == live  # type: ignore[union-attr]
        assert [len(each.checkpoint["channel_values"].get("log", ())) for each in saver.list(thread())] == [2, 1, 0]
        assert saver.read_raw(thread()).values == live
    with SqliteSaver(path) as saver:
        with pytest.raises(UnknownReducerError, match=r"merged .* say --graph where you asked on the command line"):
            saver.get_tuple(thread())
        assert "merged" in saver.read_raw(thread()).faults["log"]


def extended(value: Any, writes: Sequence[Any]) -> Any:
    for write in writes:
        value.extend(write)
    return value


def counted(value: Any, writes: Sequence[Any]) -> Any:
    for write in writes:
        value.update(write)
    return value


def kept(value: Any, writes: Sequence[Any]) -> Any:
    value.items = [*value.items, *writes]
    return value


@dataclass
class Box:
    items: list[Any] = field(default_factory=list)


def pushed(value: Any, write: Any) -> Any:
    value.extend(write)
    return value


@pytest.mark.parametrize(
    ("kind", "channel", "write", "at"),
    [
        (deque, DeltaChannel(extended), [1], lambda n: deque([1] * n)),
        (bytearray, DeltaChannel(extended), b"x", lambda n: bytearray(b"x" * n)),
        (Counter, DeltaChannel(counted), {"x": 1}, lambda n: Counter({"x": n} if n else {})),
        (Box, DeltaChannel(kept), 1, lambda n: Box([1] * n)),
        (deque, pushed, [1], lambda n: deque([1] * n)),
    ],
)
@pytest.mark.usefixtures("long_chains")
def test_a_reducer_that_changes_the_value_it_is_given_changes_nobody_elses(
    memory_saver: InMemorySaver, kind: Any, channel: Any, write: Any, at: Any
) -> None:
    """Not what a router of the same node sees beside it, not the value that is folded again from what was stored, not
    what the other checkpoints of a page of the history hold."""
    schema: Any = TypedDict("schema", {"log": Annotated[list[str], operator.add], "own": Annotated[kind, channel]})
    graph = looping(6, schema, lambda state: {"log": ["x"], "own": write}).compile(checkpointer=memory_saver)
    assert graph.invoke({"log": []}, thread("t"))["own"] == at(6)
    told = [snapshot.values["own"] for snapshot in graph.get_state_history(thread("t")) if "own" in snapshot.values]
    assert told[:7] == [at(n) for n in range(6, -1, -1)]


def test_a_thread_of_any_length_is_resumed_in_a_bounded_number_of_reads(
    memory_saver: InMemorySaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-13: the rows of a chain are read at once, and are 15 for each digit of its length to the base of 16."""
    graph = looping(301, make=lambda state: {"log": ["x"]}).compile(checkpointer=memory_saver)
    graph.invoke({"log": ["y" * 10_000]}, thread() | {"recursion_limit": 1000})
    with counted_reads(memory_saver, monkeypatch) as asked:
        assert len(graph.get_state(thread()).values["log"]) == 301
    assert asked == [1 + 1 + 2 + 11]  # the snapshot, one that took over 255, two that took over 15, and 11


def test_G1_ten_times_as_many_messages_take_little_more_than_ten_times_the_bytes(memory_saver: InMemorySaver) -> None:
    """INV-13: each write stands beside later ones as often as its number of deltas has digits to the base of 16, at
    most until what was put together stands apart."""

    def bytes_of(messages: int) -> int:
        before = memory_saver.store.counts.bytes
        make = lambda state: {"log": [f"{len(state['log']):0200d}"]}  # noqa: E731
        graph = looping(messages, make=make).compile(checkpointer=memory_saver)
        graph.invoke({}, thread(str(messages)) | {"recursion_limit": 10_000}, durability="async")
        assert len(graph.get_state(thread(str(messages))).values["log"]) == messages
        return memory_saver.store.counts.bytes - before

    few, many = bytes_of(400), bytes_of(4000)
    assert few < 400 * (200 * 3 + 400)
    assert many < 10 * few * 1.13


# -- what does not change ---------------------------------------------------------------------------------------------


def test_a_value_in_a_record_is_not_stored_again(sqlite_saver: SqliteSaver) -> None:
    """Of two siblings one failed: what the other wrote stands in its record, and the next checkpoint points there."""
    broken = [True]

    def fails(state: Any) -> dict[str, Any]:
        if broken:
            broken.clear()
            raise ValueError("broken")
        return {"log": ["b"]}

    class State(TypedDict, total=False):
        log: Annotated[list[str], operator.add]
        text: str

    graph = fan(("a", lambda state: {"text": "x" * 3000}), ("b", fails), schema=State)
    compiled = graph.compile(checkpointer=sqlite_saver)
    with pytest.raises(ValueError, match="broken"):
        compiled.invoke({}, thread())
    before = sqlite_saver.store.counts.bytes
    assert before > 3000
    live = compiled.retry(thread())
    assert sqlite_saver.store.counts.bytes - before < 500
    assert compiled.get_state(thread()).values == live == {"log": ["b"], "text": "x" * 3000}
    assert [s.values.get("text") for s in compiled.get_state_history(thread())] == ["x" * 3000, None, None]
    assert sqlite_saver.get_tuple(thread()).checkpoint["channel_values"]["text"] == "x" * 3000  # type: ignore[union-attr]
    assert sqlite_saver.read_raw(thread()).values["text"] == "x" * 3000
