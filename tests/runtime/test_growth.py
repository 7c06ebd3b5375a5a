"""What is stored stays small, what is deleted is gone, and what makes a thread grow is named."""

import operator
import shutil
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    CompiledGraph,
    InMemorySaver,
    LeaseLostError,
    ReadOnlySaverError,
    SqliteSaver,
    StateGraph,
    StoreError,
    UnknownThreadError,
    effect,
    interrupt,
    points,
)
from stepwell.store import Message
from stepwell.stores.shared.restoring import INSERTS
from stepwell.testing import SimulatedCrash, crash_at

THREAD: Any = {"configurable": {"thread_id": "t"}}
TABLES = (*(name for name in INSERTS if name != "shapes"), "keys")


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    payload: str
    rewritten: str


@effect
def pay(amount: int, idempotency_key: str) -> str:
    return f"paid {amount}"


def _ask(state: Log) -> Log:
    return {"log": [pay(5), interrupt("well?")]}


def _say(state: Log) -> Log:
    return {"log": ["said"], "rewritten": state.get("rewritten", "") + "x" * 50}


def graph_of(saver: SqliteSaver, node: Any = _say, **options: Any) -> CompiledGraph:
    builder = StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    compiled: CompiledGraph = builder.compile(checkpointer=saver, **options)
    return compiled


def rows(saver: SqliteSaver, thread_id: str = "t") -> dict[str, int]:
    """Return how many rows of a thread each table has, the database asked itself."""
    connection: Any = saver.store._writer.transactions.connection
    counts = {name: f"select count(*) from {name} where thread_id = ?" for name in TABLES}
    return {name: connection.execute(text, (thread_id,)).get for name, text in counts.items()}


def lived(saver: SqliteSaver) -> CompiledGraph:
    """Return a graph whose thread has rows in every table that needs no key."""
    graph = graph_of(saver, _ask, events=True)
    for number in range(3):
        graph.invoke({"log": [f"{number}"]}, THREAD)
        graph.invoke(Command(resume="yes"), THREAD)
    graph.fork(list(graph.get_state_history(THREAD))[2].config)
    graph.invoke({"log": [], "payload": "P" * 20_000}, THREAD, on_pending="discard")
    saver.store.append(Message("t", "m", "signal", "k", b"body", 1))
    saver.prune("t", keep_last=2)
    return graph


def test_a_deleted_thread_leaves_no_row_in_any_table(saver: SqliteSaver) -> None:
    """G5: erasure is complete, of this thread alone, and can be repeated."""
    graph = lived(saver)
    graph.invoke({"log": []}, {"configurable": {"thread_id": "other"}})
    other = rows(saver, "other")
    before = rows(saver)
    assert [name for name, count in before.items() if not count] == ["keys"]
    saver.delete_thread("t")
    assert rows(saver) == dict.fromkeys(TABLES, 0)
    saver.delete_thread("t")
    assert rows(saver, "other") == other


def test_a_late_write_does_not_bring_a_deleted_thread_back(saver: SqliteSaver) -> None:
    """G4: the thread is deleted in the middle of a step, and an old config is used afterwards."""

    def deleting(state: Log) -> Log:
        saver.delete_thread("t")
        return {"log": ["late"]}

    with pytest.raises(LeaseLostError, match="deleted"):
        graph_of(saver, deleting).invoke({"log": []}, THREAD)
    assert rows(saver) == dict.fromkeys(TABLES, 0)
    with pytest.raises(ReadOnlySaverError):
        saver.put(THREAD, {}, {}, {})
    with pytest.raises(ReadOnlySaverError):
        saver.put_writes(THREAD, [], "task")
    assert [thread.thread_id for thread in saver.threads()] == []


def test_a_payload_is_stored_once_and_pruning_with_a_vacuum_gives_the_room_back(tmp_path: Path) -> None:
    """G2: a channel of 100 KB that does not change over 200 steps; then what it held is deleted."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        graph = graph_of(saver, lambda state: {"log": ["x"]})
        graph.invoke({"payload": "P" * 100_000}, THREAD)
        for _ in range(66):
            graph.invoke({"log": []}, THREAD)
        assert saver.stats("t").threads[0].tables["checkpoints"] < 300_000
        saver.prune("t", keep_last=1)
        assert len(graph.get_state(THREAD).values["payload"]) == 100_000
        before, after = saver.vacuum()
        assert after.bytes < before.bytes
        assert after.free == 0
        saver.delete_thread("t")
        saver.vacuum()
        assert path.stat().st_size == saver.stats().size.bytes < 300_000


def test_a_large_value_goes_with_the_last_row_that_refers_to_it(saver: SqliteSaver) -> None:
    graph = graph_of(saver, lambda state: {"rewritten": state["payload"][:1] * 20_000})
    for letter in "abc":
        graph.invoke({"payload": letter * 20_000}, THREAD)
    graph.invoke({"log": []}, THREAD)
    assert rows(saver)["blobs"] == 6 // (2 if graph.get_state(THREAD).values["payload"] == "c" * 20_000 else 1)
    saver.prune("t", keep_last=1)
    assert rows(saver)["blobs"] == 1
    assert graph.get_state(THREAD).values["payload"] == "c" * 20_000
    assert graph.get_state(THREAD).values["rewritten"] == "c" * 20_000


def test_a_vacuum_without_room_on_the_disk_says_so_and_changes_nothing(
    sqlite_saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_of(sqlite_saver).invoke({"log": []}, THREAD)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(StoreError, match="Make room first"):
        sqlite_saver.vacuum()


def test_a_page_of_a_history_decodes_what_it_shows(saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """G10: `limit` reaches the database, and a list of threads decodes no value."""
    graph = graph_of(saver)
    for _ in range(20):
        graph.invoke({"log": ["x"]}, THREAD)
    decoded: list[str] = []
    loads = graph.codec.loads

    def noted(data: bytes, path: str) -> Any:
        decoded.append(path)
        return loads(data, path)

    monkeypatch.setattr(graph.codec, "loads", noted)
    assert len(list(saver.threads())) == 1
    assert decoded == []
    (newest,) = graph.get_state_history(THREAD, limit=1)
    assert newest.values["log"][-1] == "said"
    assert len(decoded) < 60


def test_a_thread_that_is_used_over_and_over_stays_small_when_it_is_pruned() -> None:
    """G11: 200 calls on one thread id, in memory and bounded."""
    with InMemorySaver(max_bytes=1 << 20) as saver:
        graph = graph_of(saver, lambda state: {"payload": "P" * 10_000})
        for number in range(200):
            graph.invoke({"log": []}, THREAD)
            if number % 10 == 0:
                saver.prune("t", keep_last=1)
        assert saver.stats("t").threads[0].checkpoints < 60


def test_stats_name_the_channel_that_grows(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for number in range(6):
        graph.invoke({"log": ["x"], **({} if number else {"payload": "P" * 5000})}, THREAD)
    (weight,) = saver.stats("t").threads
    assert weight.grows == "rewritten"
    assert {each.channel for each in weight.channels} >= {"log", "payload", "rewritten"}
    assert weight.channels[0].channel == "payload"
    assert weight.bytes == sum(weight.tables.values())
    assert weight.checkpoints == len(list(graph.get_state_history(THREAD)))
    with pytest.raises(UnknownThreadError):
        saver.stats("nobody")


def test_what_was_written_once_however_late_is_not_said_to_grow(saver: SqliteSaver) -> None:
    graph = (
        StateGraph(Log)
        .add_node("note", lambda state: {"log": ["x"]})
        .add_edge(START, "note")
        .compile(checkpointer=saver)
    )
    for _ in range(8):
        graph.invoke({"log": []}, THREAD)
    graph.update_state(THREAD, {"payload": "P" * 500})
    (weight,) = saver.stats("t").threads
    assert weight.channels[0].channel == "payload"
    assert weight.grows is None


def test_stats_list_the_heaviest_threads_first(saver: SqliteSaver) -> None:
    graph = graph_of(saver)
    for size in (10, 3000, 1000):
        graph.invoke({"payload": "P" * size}, {"configurable": {"thread_id": f"{size}"}})
    assert [weight.thread_id for weight in saver.stats(limit=2).threads] == ["3000", "1000"]


@pytest.mark.parametrize("point", [points.PRUNING_READ, points.BEGUN, points.ROWS_DELETED, points.WRITTEN])
def test_a_pruning_whose_process_dies_has_pruned_nothing(saver: SqliteSaver, point: str) -> None:
    """INV-1: and the next one does all of it."""
    graph = graph_of(saver)
    for _ in range(3):
        graph.invoke({"log": ["x"]}, THREAD)
    before, history = rows(saver), list(graph.get_state_history(THREAD))
    with pytest.raises(SimulatedCrash), crash_at(point):
        saver.prune("t", keep_last=1)
    assert rows(saver) == before
    assert list(graph.get_state_history(THREAD)) == history
    saver.prune("t", keep_last=1)
    assert len(list(graph.get_state_history(THREAD))) == 1


async def test_every_verb_is_there_for_the_event_loop(saver: SqliteSaver, tmp_path: Path) -> None:
    graph_of(saver).invoke({"log": ["x"]}, THREAD)
    await saver.aexport_thread("t", tmp_path / "t.thread")
    assert (await saver.aprune("t", keep_last=1)).threads == 1
    assert (await saver.astats("t")).threads[0].thread_id == "t"
    assert (await saver.asweep(ttl={"default_ttl": 60})).deleted == 0
    await saver.avacuum()
    await saver.adelete_thread("t")
    assert (await saver.aimport_thread(tmp_path / "t.thread")).thread_id == "t"
