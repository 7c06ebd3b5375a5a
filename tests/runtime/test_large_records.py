"""Large values of records: results of steps, questions and answers, what an effect was called with and its receipt,
items and signals. They stand apart as those of checkpoints do, in the transaction of their record, and nobody sees it.
"""

import operator
import re
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Approve,
    Command,
    CorruptRecordError,
    EffectInDoubtError,
    Encryption,
    InMemorySaver,
    PostgresSaver,
    PostgresStore,
    Runtime,
    SqliteSaver,
    SqliteStore,
    StateGraph,
    effect,
    get_store,
    interrupt,
    points,
    task,
    wait_for,
)
from stepwell.clock import SystemClock
from stepwell.runtime.effects.deciding import record_decision
from stepwell.runtime.reading.unreadable import Unreadable
from stepwell.savers.keeping import KeepingSaver
from stepwell.store import EffectsQuery
from stepwell.superstep import blobs, body as layout, lifecycle
from stepwell.superstep.references import blobs_of, references
from stepwell.testing import SimulatedCrash
from stepwell.testing.crash import record_points
from tests.encryption.life import build, config, live
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Node, chain, note, thread
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

MORE = 100_000


class Desk(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    doc: str


class Given(TypedDict, total=False):
    doc: str


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every value be a large one."""
    monkeypatch.setattr(blobs, "ABOVE", 7)


def names(saver: KeepingSaver, thread_id: str = "t") -> set[bytes]:
    with saver.store.reading() as reader:
        return reader.blob_names(thread_id)


def referred(saver: KeepingSaver, thread_id: str = "t") -> dict[str, set[bytes]]:
    """Return what the rows of a thread refer to: by kind of record, and under "" for its checkpoints."""
    with saver.store.reading() as reader:
        checkpoints, records = reader.everything(thread_id)
    found: dict[str, set[bytes]] = {}
    for row in checkpoints:
        needs = references(layout.open_checkpoint(row.body, "checkpoint"), row.seq)
        found.setdefault("", set()).update(needs.blobs)
    for record in records:
        found.setdefault(record.kind, set()).update(blobs_of(record.body))
    return {kind: names for kind, names in found.items() if names}


def is_exact(saver: KeepingSaver, thread_id: str = "t") -> bool:
    """Tell whether a thread has the values that its rows refer to, and no others."""
    return names(saver, thread_id) == set().union(*referred(saver, thread_id).values())


# -- what it costs ----------------------------------------------------------------------------------------------------


def text(size: int) -> str:
    return "d" * size


@task
def fetch(size: int) -> str:
    return text(size)


@task
def refuse(size: int) -> None:
    raise ValueError(text(size))


@effect(on_doubt="raise")
def echo(size: int) -> str:
    return text(size)


@effect(on_doubt="raise", scope="global", key=str)
def share(size: int) -> str:
    return text(size)


@effect(on_doubt="raise")
def send(doc: str) -> int:
    return len(doc)


def stepping(size: int) -> Node:
    return lambda state: {"doc": fetch(size).result()}


def failing(size: int) -> Node:
    def node(state: Any) -> dict[str, Any]:
        with suppress(ValueError):
            refuse(size).result()
        return {}

    return node


def everything(size: int) -> Node:
    """Return a node through which one document goes: step, effect, question, answer, signal, and its channel."""

    def node(state: Any) -> dict[str, Any]:
        assert fetch(size).result() == echo(size)
        interrupt(text(size))
        return {"doc": wait_for("doc")}

    return node


WAYS = {
    "the result of a step, which its node writes": (stepping, 1),
    "the receipt of an effect, which its node writes": (lambda size: lambda state: {"doc": echo(size)}, 1),
    "the receipt of an effect of all threads: its row holds it too": (
        lambda size: lambda state: {"doc": share(size)},
        2,
    ),
    "what an effect is called with, by name": (lambda size: lambda state: {"log": [str(send(text(size)))]}, 1),
    "what a step raised, to be raised again": (failing, 1),
    "all that one document goes through; the inbox holds it till then": (everything, 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_document_is_stored_once_whatever_it_goes_through(way: str) -> None:
    """INV-13, exactly: a document that is so much longer costs so much more, and no byte beside."""
    make, copies = WAYS[way]
    costs = []
    for size in (MORE, 2 * MORE):
        with InMemorySaver() as saver:
            graph = chain(("a", make(size)), schema=Desk).compile(checkpointer=saver)
            graph.invoke({}, thread())
            while graph.get_state(thread()).interrupts:
                graph.invoke(Command(resume=text(size)), thread())
            if graph.get_state(thread()).next:
                graph.signal(thread(), "doc", text(size))
                graph.invoke(None, thread())
            costs.append(saver.store.counts.bytes)
            assert graph.get_state(thread()).values.get("doc", text(size)) == text(size)
            assert is_exact(saver)
    assert costs[1] - costs[0] == copies * MORE


def test_below_the_limit_a_record_holds_its_values_and_writes_no_row_more(sqlite_saver: SqliteSaver) -> None:
    graph = chain(("a", stepping(8000)), schema=Desk).compile(checkpointer=sqlite_saver)
    graph.invoke({}, thread())
    assert referred(sqlite_saver) == {}
    assert names(sqlite_saver) == set()


# -- what is seen -----------------------------------------------------------------------------------------------------


def opened(kind: str, stack: ExitStack, worker_id: str) -> tuple[KeepingSaver, Any]:
    if kind == "postgres":
        database = stack.enter_context(PostgresSaver(empty_database(VERSIONS[-1], worker_id)))
        database.setup()
        return database, stack.enter_context(PostgresStore(database))
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "encrypted": {"encryption": Encryption({"k": Encryption.new_key()})},
        "compressed": {"compress_above": 16},
    }
    saver = stack.enter_context(SqliteSaver(":memory:", **options[kind]))
    return saver, stack.enter_context(SqliteStore(saver))


def views(saver: KeepingSaver, graph: Any) -> list[str]:
    """Return all that can be read of the threads of a life, without the ids and times that differ from life to life."""
    seen: list[Any] = []
    for thread_id in ("t", "copied", "doubt"):
        at = config(thread_id)
        for state in graph.get_state_history(at):
            tasks = [(each.name, each.result, each.error, each.interrupts) for each in state.tasks]
            seen.append((state.values, state.next, state.writes, tasks))
        for entry in graph.get_journal(at):
            seen.append((entry.kind, entry.name, entry.status, entry.inputs, entry.receipt, entry.error_state))
            seen.append((entry.planned_action, entry.approval, entry.decided_by, entry.reason))
        seen += [(each.checkpoint["channel_values"], each.pending_writes) for each in saver.list(at)]
        seen.append(saver.read_raw(at).values)
    return [re.sub(r"[0-9a-f]{32}|datetime\.datetime\([^)]*\)", "#", repr(each)) for each in seen]


@pytest.mark.parametrize("kind", ["plain", "encrypted", "compressed", "postgres"])
def test_where_values_stand_is_seen_nowhere(kind: str, worker_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A life in which something is said wherever something can be, with every value apart and with none."""
    lives = []
    for above in (7, 1 << 40):
        monkeypatch.setattr(blobs, "ABOVE", above)
        with ExitStack() as stack:
            saver, items = opened(kind, stack, worker_id)
            live(saver, items, "sync")
            graph, _, _ = build(saver, items)
            lives.append(views(saver, graph))
            kinds = set(referred(saver)) | set(referred(saver, "doubt"))
            assert [is_exact(saver, thread_id) for thread_id in ("t", "copied", "doubt")] == [True] * 3
            assert list(saver.store.verify()) == []
            with saver.store.reading() as reader:
                assert not [row for row in reader.effects(EffectsQuery()) if blobs_of(row.body)]
            if above == 7:
                assert kinds >= {lifecycle.STEP, lifecycle.INTERRUPTED, *lifecycle.ANSWERS, lifecycle.ARRIVED}
                assert kinds >= {lifecycle.INTENT, lifecycle.RECEIPT, lifecycle.DOUBT, lifecycle.RESOLVED}
            else:
                assert kinds == set()
    assert lives[0] == lives[1]


@pytest.mark.usefixtures("all_large")
def test_a_thread_is_pruned_moved_and_deleted_with_what_its_records_refer_to(tmp_path: Path) -> None:
    """What is about effects stays with what it says; whatever nothing refers to goes."""
    with InMemorySaver() as saver, SqliteStore(saver) as items, InMemorySaver() as other:
        live(saver, items, "sync")
        saver.export_thread("t", tmp_path / "out")
        other.import_thread(tmp_path / "out")
        assert referred(other) == referred(saver)
        assert is_exact(other)
        before, told = names(saver), referred(saver)
        saver.prune("t", keep_last=1)
        assert names(saver) < before
        assert is_exact(saver)
        assert [referred(saver)[kind] == told[kind] for kind in (lifecycle.INTENT, lifecycle.RECEIPT)] == [True] * 2
        runs = [run.run_id for run in saver.runs("copied")]
        saver.delete_for_runs(runs[1:])
        assert is_exact(saver, "copied")
        assert list(saver.store.verify()) == [] == list(other.store.verify())
        saver.delete_thread("t")
        assert names(saver) == set()
        assert is_exact(saver, "copied")


# -- what goes on -----------------------------------------------------------------------------------------------------


class Till:
    """The world outside, which knows what it has done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pay(self, key: str) -> str:
        if key not in self.done:
            self.done.append(key)
        return f"receipt number {self.done.index(key)} of the till"


def desk(saver: KeepingSaver, till: Till) -> Any:
    @effect(on_doubt="retry")
    def pay(order: str, idempotency_key: str) -> str:
        return till.pay(idempotency_key)

    @task
    def prepare(order: str) -> str:
        items = get_store()
        items.put(("orders",), order, {"state": "it is prepared"})
        return f"prepared {order}"

    def work(state: Any) -> dict[str, Any]:
        prepared = prepare("the order of somebody").result()
        receipt = pay("the order of somebody")
        return {"log": [prepared, receipt, interrupt(f"was {receipt} right?"), wait_for("shipped")]}

    graph = StateGraph(Desk).add_node("work", work).add_node("beside", note("beside"))
    graph.add_edge(START, "work").add_edge(START, "beside")
    return graph.compile(checkpointer=saver, store=SqliteStore(saver))


def driven(graph: Any, deaths: Deaths) -> Any:
    """Drive a thread to its end, whatever dies on the way; return its state."""
    while True:
        with suppress(SimulatedCrash):
            state = graph.get_state(thread())
            if state.created_at is None:
                graph.invoke({}, thread())
            elif state.interrupts:
                graph.invoke(Command(resume="it was quite right"), thread())
            elif state.next:
                graph.signal(thread(), "shipped", "it was shipped", id="once")
                graph.invoke(None, thread())
            else:
                return state.values
        if deaths.dead:
            deaths.revive()


@pytest.mark.usefixtures("all_large")
def test_a_process_that_dies_at_any_point_leaves_no_record_without_its_values() -> None:
    """INV-1, INV-13: a record and what it refers to are one transaction. No value is left behind that nothing needs."""
    deaths = Deaths()
    with Saver(deaths.clock) as saver, record_points() as reached:
        live_state = driven(desk(saver, Till()), deaths)
    places = sorted({(point, reached[:i].count(point) + 1) for i, point in enumerate(reached)})
    assert {point for point, _ in places} >= {points.STEP_RECORDED, points.INTENT_DURABLE, points.ARRIVED_DURABLE}
    for point, nth in places:
        till = Till()
        with Saver(deaths.clock) as saver:
            deaths.dies_at(point, nth)
            graph = desk(saver, till)
            with suppress(SimulatedCrash):
                driven(graph, deaths)
            deaths.revive()
            assert list(saver.store.verify()) == [], (point, nth)
            assert driven(graph, deaths) == live_state, (point, nth)
            assert len(till.done) == 1
            assert is_exact(saver), (point, nth)


def test_a_large_item_is_written_though_its_outcome_had_to_wait_in_a_record(saver: SqliteSaver) -> None:
    """It came back as a reference, and the thread was told to be damaged."""
    broken = [True]

    def put(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        runtime.store.put(("kept",), "doc", {"text": text(MORE)})
        return {"log": ["put"]}

    def beside(state: Any) -> dict[str, Any]:
        if broken:
            raise ValueError(broken.pop())
        return {"log": ["beside"]}

    items = SqliteStore(saver)
    graph = StateGraph(Desk).add_node("put", put).add_node("beside", beside)
    compiled = graph.add_edge(START, "put").add_edge(START, "beside").compile(checkpointer=saver, store=items)
    with pytest.raises(ValueError, match="True"):
        compiled.invoke({}, thread())
    assert items.get(("kept",), "doc") is None
    assert compiled.invoke(None, thread()) == {"log": ["beside", "put"]}
    assert (found := items.get(("kept",), "doc")) is not None
    assert found.value == {"text": text(MORE)}


@pytest.mark.usefixtures("all_large")
def test_what_an_edit_and_an_older_answer_carry_over_is_read_where_it_stood(saver: SqliteSaver) -> None:
    """Steps, answers and the open question go along with an edit as they are: nothing is called, or stored, again. An
    answer at an older checkpoint takes the earlier answers along."""
    called: list[str] = []

    @task
    def prepare(order: str) -> str:
        called.append(order)
        return f"prepared {order}"

    def work(state: Any) -> dict[str, Any]:
        prepared = prepare("an order").result()
        return {"log": [prepared, interrupt("the first question"), interrupt("the second question")]}

    built = StateGraph(Desk).add_node("work", work, input_schema=Given)  # what is edited is none of its input
    graph = built.add_edge(START, "work").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume="the first answer"), thread())
    asked = graph.get_state(thread())
    before = names(saver)
    graph.update_state(thread(), {"log": ["edited by hand"]}, as_node=START)
    assert len(names(saver) - before) == 1
    assert graph.get_state(thread()).interrupts[0].value == "the second question"
    ended = graph.invoke(Command(resume="the second answer"), thread())
    assert ended["log"][-3:] == ["prepared an order", "the first answer", "the second answer"]
    again = graph.invoke(Command(resume={asked.interrupts[0].id: "another answer"}), asked.config)
    assert again["log"][-3:] == ["prepared an order", "the first answer", "another answer"]
    assert called == ["an order"] * 2  # once for each lineage
    assert is_exact(saver)


@pytest.mark.usefixtures("all_large")
def test_a_receipt_goes_along_whole_into_a_thread_that_is_forked_off(saver: SqliteSaver) -> None:
    """The other thread may be deleted: its values are gone then, and the effect is still not performed again."""
    till = Till()

    @effect(on_doubt="raise")
    def pay(order: str) -> str:
        return till.pay(order)

    graph = chain(("pay", lambda state: {"log": [pay("an order")]}), schema=Desk).compile(checkpointer=saver)
    first = graph.invoke({}, thread())
    before = list(graph.get_state_history(thread()))[1].config
    branch = graph.fork(before, thread_id="branch")
    saver.delete_thread("t")
    till.done.append("so another receipt would be told apart")
    assert graph.invoke(None, branch) == first


@pytest.mark.usefixtures("all_large")
def test_what_an_operator_decides_stands_apart_too(saver: SqliteSaver) -> None:
    @effect(on_doubt="raise", approval=True)
    def pay(order: str) -> str:
        raise RuntimeError("nobody knows")

    graph = chain(("pay", lambda state: {"log": [pay("an order")]}), schema=Desk).compile(checkpointer=saver)
    graph.invoke({}, thread())
    record_decision(saver.store, graph.codec, SystemClock(), "t", None, Approve("ann", args={"order": "another order"}))
    with pytest.raises(EffectInDoubtError) as doubt:
        graph.invoke(None, thread())
    graph.resolve_effect(thread(), doubt.value.fields()["key"], receipt="the receipt, found by hand", by="ann")
    assert graph.invoke(None, thread()) == {"log": ["the receipt, found by hand"]}
    assert set(referred(saver)) >= {lifecycle.DECISION, lifecycle.RESOLVED}
    assert is_exact(saver)
    (entry, *_) = graph.get_journal(thread())
    assert (entry.inputs, entry.receipt) == ({"order": "another order"}, "the receipt, found by hand")


# -- what is lost -----------------------------------------------------------------------------------------------------


def lose(saver: SqliteSaver, name: bytes) -> None:
    connection = saver.store._writer.transactions.connection
    assert connection is not None
    connection.execute("delete from blobs where name = ?1", (name,))


SAID: dict[str, Any] = {
    lifecycle.STEP: "prepared the order of somebody",
    lifecycle.INTERRUPTED: "was receipt number 0 of the till right?",
    lifecycle.INTENT: {"order": "the order of somebody"},
    lifecycle.RECEIPT: "receipt number 0 of the till",
}


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("kind", SAID)
def test_a_lost_value_of_a_record_is_named_and_harms_what_needs_it_alone(kind: str) -> None:
    till = Till()
    with InMemorySaver() as saver:
        graph = desk(saver, till)
        graph.invoke({}, thread())
        name = saver.store.sealer.blob_name("t", graph.codec.dumps(SAID[kind]))
        assert name in referred(saver)[kind]
        lose(saver, name)
        told = f"value {name.hex()} that it refers to is missing"
        faults = [fault for fault in saver.store.verify() if fault.reason == f"the {told}"]
        assert {fault.table for fault in faults} == {"records"}
        shown = [value for entry in graph.get_journal(thread()) for value in (entry.inputs, entry.receipt)]
        unreadable = [value for value in shown if isinstance(value, Unreadable)]
        if kind == lifecycle.INTERRUPTED:
            with pytest.raises(CorruptRecordError, match=f"value {name.hex()} of thread t .* it is missing"):
                graph.get_state(thread())
        if kind in (lifecycle.STEP, lifecycle.RECEIPT):
            assert graph.get_state(thread()).interrupts[0].value == SAID[lifecycle.INTERRUPTED]
            with pytest.raises(CorruptRecordError, match=f"value {name.hex()} of thread t .* it is missing"):
                graph.invoke(Command(resume="it was right"), thread())
        if kind == lifecycle.INTENT:  # its receipt answers, and nothing asks what it was called with
            graph.invoke(Command(resume="it was right"), thread())
        assert len(unreadable) == (kind != lifecycle.INTERRUPTED)
        assert len(till.done) == 1


@pytest.mark.usefixtures("all_large")
def test_an_effect_whose_receipt_is_lost_is_in_doubt_once_its_thread_is_repaired() -> None:
    with InMemorySaver() as saver:

        @effect(on_doubt="raise")
        def pay(order: str) -> str:
            return "the receipt"

        graph = chain(("pay", lambda state: {"log": [pay("an order")]}), schema=Desk).compile(checkpointer=saver)
        graph.invoke({}, thread())
        (name,) = referred(saver)[lifecycle.RECEIPT]
        lose(saver, name)
        saver.repair("t")
        with saver.store.reading() as reader:
            assert [row.status for row in reader.effects(EffectsQuery("t"))] == ["doubt"]
        assert saver.verify("t").is_sound
