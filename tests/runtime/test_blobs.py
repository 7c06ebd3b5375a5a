"""Large values: stored once for a thread however often they are written, read wherever they are referred to, and gone
with it."""

import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    Command,
    CorruptRecordError,
    InMemorySaver,
    InvalidConfigError,
    Send,
    SqliteSaver,
    StateGraph,
    ZstdMissingError,
    effect,
    interrupt,
    task,
)
from stepwell.superstep import blobs, compression
from tests.runtime.graphs import Call, chain, fan, note, thread

LARGE = "large " * 5000


class Shelf(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    doc: str
    copy: str
    best: Annotated[str, max]


def names(saver: SqliteSaver, thread_id: str = "t") -> list[bytes]:
    with saver.store.reading() as reader:
        return [row.name for row in reader.blobs(thread_id)]


def test_G2_an_unchanged_large_value_is_stored_once(sqlite_saver: SqliteSaver) -> None:
    """pizza-bot's report 58: a file of 1.24 GB, where a static payload was stored again at each step. INV-13.

    Here a node even writes it again each time, and a second run does.
    """

    def same(state: Any) -> dict[str, Any]:
        return {"doc": LARGE, "copy": LARGE, "log": ["x"]}

    graph = chain(*((f"n{i}", same) for i in range(50)), schema=Shelf).compile(checkpointer=sqlite_saver)
    for _ in range(2):
        graph.invoke({"doc": LARGE}, thread())
    assert len(names(sqlite_saver)) == 1
    assert sqlite_saver.store.counts.bytes < 3 * len(LARGE)
    assert graph.get_state(thread()).values["copy"] == LARGE


def test_the_input_is_stored_once_though_it_stands_in_two_checkpoints(sqlite_saver: SqliteSaver) -> None:
    """50 channels of 20 kB: the raw input, what START makes of it, and 100 steps that change one number."""
    schema = TypedDict("Wide", {f"c{i}": str for i in range(50)} | {"n": int}, total=False)  # type: ignore[misc]
    given = {f"c{i}": chr(65 + i) * 20_000 for i in range(50)}
    steps = 100
    nodes = [(f"n{i}", lambda state, i=i: {"n": i}) for i in range(steps)]
    graph = chain(*nodes, schema=schema).compile(checkpointer=sqlite_saver)
    graph.invoke(given, thread())
    written = 50 * 20_000
    assert len(names(sqlite_saver)) == 50
    assert sqlite_saver.store.counts.bytes < written * 1.12
    before = sqlite_saver.store.counts.bytes
    graph.update_state(thread(), {"n": 7})
    assert sqlite_saver.store.counts.bytes - before < 1100  # whatever the unchanged megabyte
    assert graph.get_state(thread()).values == given | {"n": 7}


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every value be a large one."""
    monkeypatch.setattr(blobs, "ABOVE", 7)


def asking(state: Any) -> dict[str, Any]:
    return {"log": [f"asked and got {interrupt('a question with some text')!r}"]}


def sending(state: Any) -> list[Send]:
    return [Send("sent", {"log": [f"sent as number {i}"]}) for i in range(2)]


@task
def prepare(what: str) -> str:
    return f"prepared {what}"


@effect(on_doubt="retry")
def pay(what: str, idempotency_key: str) -> str:
    return f"paid {what}"


def acting(state: Any) -> dict[str, Any]:
    assert (prepare("the order").result(), pay("for the order")) == ("prepared the order", "paid for the order")
    return {"doc": "what a wrote to doc", "log": ["a wrote to log"]}


def everything() -> StateGraph[Any, Any, Any, Any]:
    """Outcomes inline and in records, steps, an effect, sends, reducers, questions, an input: each with values that
    stand apart."""
    graph = fan(("a", acting), ("ask", asking), schema=Shelf)
    graph.add_node("sent", lambda given: {"log": given["log"], "best": given["log"][0]})
    return graph.add_conditional_edges("ask", sending, ["sent"])


@pytest.mark.usefixtures("all_large")
def test_what_stands_apart_is_read_wherever_it_is_referred_to(
    call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    graph = everything().compile(checkpointer=saver)
    call(graph, {"log": ["a long enough input"]}, thread(), durability=any_durability)
    paused = graph.get_state(thread())
    assert paused.values["doc"] == "what a wrote to doc"
    live = call(graph, Command(resume="an answer"), thread(), durability=any_durability)
    assert graph.get_state(thread()).values == live
    assert live["log"][-2:] == ["sent as number 0", "sent as number 1"]
    assert names(saver)
    shown = [(s.values, s.writes, [t.result for t in s.tasks]) for s in graph.get_state_history(thread())]
    assert shown[0][0] == live
    saver.copy_thread("t", "copy")
    copied = graph.get_state_history(thread("copy"))
    assert [(s.values, s.writes, [t.result for t in s.tasks]) for s in copied] == shown
    assert names(saver, "copy") == names(saver)
    assert saver.get_tuple(thread()).checkpoint["channel_values"] == live  # type: ignore[union-attr]
    assert saver.read_raw(thread()).values == live
    again = call(graph, Command(resume="another one"), paused.config, durability=any_durability)
    assert again["log"][-3:] == ["asked and got 'another one'", "sent as number 0", "sent as number 1"]
    graph.update_state(thread(), {"log": ["edited by hand"]})
    assert graph.get_state(thread()).values["log"] == [*again["log"], "edited by hand"]
    assert list(saver.store.verify()) == []
    saver.delete_thread("t")
    assert names(saver) == []
    assert names(saver, "copy")


@pytest.mark.usefixtures("all_large")
def test_a_value_that_is_missing_is_found_and_named(saver: SqliteSaver, tmp_path: Path) -> None:
    graph = chain(("a", note("a long enough text"))).compile(checkpointer=saver)
    graph.invoke({"log": ["a long enough input"]}, thread())
    with saver.store._writer.lock:
        connection = saver.store._writer.transactions.connection
        assert connection is not None
        connection.execute("delete from blobs")
    with pytest.raises(CorruptRecordError, match=r"value [0-9a-f]{32} of thread t .* it is missing"):
        graph.get_state(thread())
    assert any("that it refers to is missing" in fault for fault in map(str, saver.store.verify()))
    graph.invoke({"log": ["a long enough input"]}, thread("other"))  # no other thread is harmed
    saver.delete_thread("t")


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("damage", ["delete from blobs", "update blobs set body = x'c101'"])
def test_a_thread_with_a_damaged_value_is_repaired_and_goes_on(damage: str) -> None:
    """Whatever value it is: the thread goes on from a checkpoint that can be read, writes the same values once more,
    and stays sound, also when it is pruned."""
    repaired = 0
    with InMemorySaver() as saver:
        graph = everything().compile(checkpointer=saver)
        for number in range(len(_lived(saver, "t"))):
            at = thread(thread_id := f"t{number}")
            name = _lived(saver, thread_id)[number]
            connection = saver.store._writer.transactions.connection
            assert connection is not None
            connection.execute(f"{damage} where thread_id = ?1 and name = ?2", (thread_id, name))
            if saver.verify(thread_id).threads[0].last_good is None:
                continue
            saver.repair(thread_id)
            repaired += 1
            while (stands := graph.get_state(at)).next:
                graph.invoke(Command(resume="answer " * 30) if stands.interrupts else None, at)
            assert saver.verify(thread_id).is_sound
            saver.prune(thread_id)
            assert saver.verify(thread_id).is_sound
    assert repaired > number / 2


def _lived(saver: SqliteSaver, thread_id: str) -> list[bytes]:
    """Return the names of the values of a thread that has lived."""
    graph = everything().compile(checkpointer=saver)
    graph.invoke({"log": ["in " * 40], "doc": LARGE}, thread(thread_id))
    graph.invoke(Command(resume="answer " * 30), thread(thread_id))
    return names(saver, thread_id)


def test_G2_pruning_takes_the_values_that_nothing_refers_to_any_more(saver: SqliteSaver) -> None:
    """pizza-bot's report 58: nothing was ever pruned. A chain of deltas that is still needed stays, with its values."""

    def draft(state: Any) -> dict[str, Any]:
        return {"doc": f"{len(state['log'])}" * 20_000, "log": ["x" * 9000]}

    graph = chain(*((f"n{i}", draft) for i in range(18)), schema=Shelf).compile(checkpointer=saver)
    live = graph.invoke({"log": []}, thread())
    assert len(names(saver)) == 19  # 18 drafts and a note
    saver.prune("t", keep_last=1)
    assert graph.get_state(thread()).values == live
    assert len(names(saver)) == 4  # those of the rows that the chain still has: the 16th took over 15
    assert list(saver.store.verify()) == []
    assert graph.invoke({"log": []}, thread())["log"] == ["x" * 9000] * 36


# -- compression ------------------------------------------------------------------------------------------------------


def test_what_is_compressed_is_read_whatever_is_asked_for_now(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    graph = everything()
    with SqliteSaver(path) as saver:
        graph.compile(checkpointer=saver).invoke({"log": [LARGE] * 3}, thread("plain"))
        plain = saver.store.counts.bytes
    with SqliteSaver(path, compress_above=256) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": [LARGE] * 3}, thread())
        assert saver.store.counts.bytes * 10 < plain
        compiled.invoke(Command(resume="y" * 1000), thread())
        saver.copy_thread("t", "copy")
        live = compiled.get_state(thread()).values
        assert list(saver.store.verify()) == []
    with SqliteSaver(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        assert compiled.get_state(thread()).values == live == compiled.get_state(thread("copy")).values
        assert compiled.get_state(thread("plain")).values["log"][:3] == [LARGE] * 3
        assert compiled.invoke({"log": ["on"]}, thread(), on_pending="discard")["log"][-1:]


def test_without_the_library_compressing_is_refused_and_what_is_compressed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = chain(("a", note("a")))
    with SqliteSaver(tmp_path / "threads.db", compress_above=0) as saver:
        graph.compile(checkpointer=saver).invoke({"log": ["x" * 1000]}, thread())

    compression.zstd.cache_clear()
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    try:
        with pytest.raises(ZstdMissingError, match=r"pip install 'stepwell\[zstd\]'"):
            SqliteSaver(tmp_path / "other.db", compress_above=0)
        with SqliteSaver(tmp_path / "threads.db") as saver, pytest.raises(ZstdMissingError):
            graph.compile(checkpointer=saver).get_state(thread())
    finally:
        monkeypatch.undo()
        compression.zstd.cache_clear()


@pytest.mark.parametrize("above", [-1, True, "4k"])
def test_a_size_that_is_none_is_refused(above: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="compress_above"):
        SqliteSaver(tmp_path / "threads.db", compress_above=above)


def test_a_frame_that_is_none_is_a_corrupt_record() -> None:
    with pytest.raises(CorruptRecordError, match="cannot be decompressed"):
        compression.plain(compression.FLAG + b"no frame", "checkpoint 3")
    assert compression.plain(compression.compress(b"a" * 99)) == b"a" * 99
    assert compression.compress(b"short") == b"short"
