"""`get_journal`: what a thread has recorded of its steps and effects, newest first."""

import asyncio
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypedDict

import apsw
import pytest

from stepwell import (
    START,
    CorruptRecordError,
    InMemorySaver,
    InvalidConfigError,
    JournalEntry,
    NoCheckpointerError,
    RawValue,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    UnknownCheckpointError,
    UnknownThreadError,
    UnknownTypeError,
    entrypoint,
    interrupt,
    task,
)
from stepwell.stores.sqlite.sql import query
from stepwell.superstep import lifecycle

CONFIG = {"configurable": {"thread_id": "t"}}


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


@task
def double(n: int) -> int:
    return n * 2


def chain(saver: Any, **nodes: Callable[[Log], Any]) -> Any:
    """Return a graph of these nodes, one behind the other."""
    builder, last = StateGraph(Log), START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    return builder.compile(checkpointer=saver, name="chain")


def doubling(*numbers: int) -> Callable[[Log], Any]:
    return lambda state: {"log": [double(n).result() for n in numbers]}


def told(entries: Any) -> list[tuple[str, str, Any]]:
    return [(entry.node, entry.planned_action, entry.receipt) for entry in entries]


class Pauses:
    """A node whose first attempt at its step fails, and which asks before it is done."""

    def __init__(self) -> None:
        self.calls = 0
        self.step = task(self._step, name="step", retry_policy=RetryPolicy(initial_interval=0.0, max_attempts=2))

    def _step(self, n: int) -> int:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("no line")
        return n

    def __call__(self, state: Log) -> Any:
        return {"log": [self.step(7).result(), interrupt("go on?")]}


def test_a_step_is_told_with_all_that_is_known_of_it(saver: SqliteSaver) -> None:
    graph = chain(saver, one=doubling(3))
    graph.invoke({"log": []}, {**CONFIG, "run_id": "r1"})
    (entry,) = graph.get_journal(CONFIG)
    assert (entry.kind, entry.name, entry.status, entry.receipt) == ("step", "double", "done", 6)
    assert (entry.planned_action, entry.inputs) == ("double(3)", "(3)")
    assert (entry.attempts, entry.retry_count, entry.error_state) == (1, 0, None)
    assert (entry.node, entry.lineage, entry.run_id, entry.key) == ("one", 0, "r1", None)
    assert (entry.approval_status, entry.decision, entry.decided_by) == (None, None, None)
    assert entry.versions.keys() == {"code"}
    assert entry.fingerprint and entry.digest
    (made_on,) = [state for state in graph.get_state_history(CONFIG) if state.next == ("one",)]
    assert entry.checkpoint_id == made_on.config["configurable"]["checkpoint_id"]
    assert entry.task_id == made_on.tasks[0].id
    assert entry.started_at <= entry.finished_at <= entry.recorded_at
    assert entry.started_at.tzinfo is UTC


def test_entries_are_listed_newest_first_over_nodes(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1, 2), two=doubling(3))
    graph.invoke({"log": []}, CONFIG)
    found = list(graph.get_journal(CONFIG))
    assert told(found) == [("two", "double(3)", 6), ("one", "double(2)", 4), ("one", "double(1)", 2)]
    assert [entry.seq for entry in found] == sorted((entry.seq for entry in found), reverse=True)


def test_each_attempt_has_an_entry_with_what_it_raised(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=Pauses())
    graph.invoke({"log": []}, CONFIG)
    done, failed = graph.get_journal(CONFIG)
    assert (failed.status, failed.error_state) == ("attempt", "ConnectionError('no line')")
    assert (failed.attempts, failed.retry_count, failed.receipt) == (1, 0, None)
    assert (done.status, done.error_state, done.receipt) == ("done", None, 7)
    assert (done.attempts, done.retry_count) == (2, 1)
    assert done.step_id == failed.step_id
    assert done.started_at == failed.started_at


def test_a_step_that_failed_is_told_as_such(memory_saver: InMemorySaver) -> None:
    @task
    def breaks() -> None:
        raise ValueError("bad")

    graph = chain(memory_saver, one=lambda state: breaks().result())
    with suppress(ValueError):
        graph.invoke({"log": []}, CONFIG)
    (entry,) = graph.get_journal(CONFIG)
    assert (entry.status, entry.error_state, entry.receipt) == ("failed", "ValueError('bad')", None)


def test_without_steps_and_without_a_thread_there_is_nothing_to_list(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=lambda state: None)
    assert list(graph.get_journal(CONFIG)) == []
    graph.invoke({"log": []}, CONFIG)
    assert list(graph.get_journal(CONFIG)) == []


def test_the_journal_of_an_entrypoint_names_it(memory_saver: InMemorySaver) -> None:
    @entrypoint(checkpointer=memory_saver)
    def flow(n: int) -> int:
        return int(double(n).result())

    flow.invoke(4, CONFIG)
    assert told(flow.get_journal(CONFIG)) == [("flow", "double(4)", 8)]


def test_it_is_read_off_the_loop_too(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1, 2, 3))
    graph.invoke({"log": []}, CONFIG)

    async def main() -> Any:
        page = graph.aget_journal(CONFIG, limit=2)
        found = [entry async for entry in page]
        return found + [entry async for entry in graph.aget_journal(CONFIG, before=page.more)]

    assert asyncio.run(main()) == list(graph.get_journal(CONFIG))


# -- a part of it -----------------------------------------------------------------------------------------------------


def test_a_limit_says_where_to_go_on(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1, 2, 3))
    graph.invoke({"log": []}, CONFIG)
    page = graph.get_journal(CONFIG, limit=2)
    first = list(page)
    assert [entry.inputs for entry in first] == ["(3)", "(2)"]
    rest = graph.get_journal(CONFIG, before=page.more)
    assert ([entry.inputs for entry in rest], rest.more) == (["(1)"], None)
    assert list(graph.get_journal(CONFIG, before=first[0])) == [first[1], *graph.get_journal(CONFIG, before=first[1])]


def test_a_page_reads_what_it_shows_and_nothing_behind_it(tmp_path: Path) -> None:
    """INV-13: an entry that cannot be read is found by whoever gets to it."""
    with SqliteSaver(tmp_path / "db") as saver:
        chain(saver, one=doubling(*range(40)), two=doubling(40)).invoke({"log": []}, CONFIG)
    damaged(tmp_path / "db", "update records set body = x'00' where kind = 'step' and ordinal = 3")
    with SqliteSaver(tmp_path / "db") as saver:
        graph = chain(saver, one=doubling(1), two=doubling(1))
        page = graph.get_journal(CONFIG, limit=30)
        assert len(list(page)) == 30
        with pytest.raises(CorruptRecordError, match="records row of thread 't'"):
            list(graph.get_journal(CONFIG, before=page.more))


def test_a_checkpoint_shows_what_was_recorded_on_it(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1), two=doubling(2))
    graph.invoke({"log": []}, CONFIG)
    on_two = next(state.config for state in graph.get_state_history(CONFIG) if state.next == ("two",))
    assert told(graph.get_journal(on_two)) == [("two", "double(2)", 4)]
    assert told(graph.get_journal(on_two, lineage="current")) == [("one", "double(1)", 2)]
    with pytest.raises(UnknownCheckpointError):
        graph.get_journal({"configurable": {"thread_id": "t", "checkpoint_id": "nope"}})


def test_a_lineage_is_told_with_its_ancestors_up_to_the_fork(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1), two=doubling(2))
    graph.invoke({"log": []}, CONFIG)
    on_two = next(state.config for state in graph.get_state_history(CONFIG) if state.next == ("two",))
    forked = graph.fork(on_two)
    graph.invoke(None, forked)
    line = [(entry.lineage, entry.node) for entry in graph.get_journal(CONFIG, lineage=1)]
    assert line == [(1, "two"), (0, "one")]
    assert list(graph.get_journal(CONFIG, lineage="current")) == list(graph.get_journal(CONFIG, lineage=1))
    assert [entry.lineage for entry in graph.get_journal(CONFIG, lineage=0)] == [0, 0]
    assert [entry.lineage for entry in graph.get_journal(CONFIG)] == [1, 0, 0]


@pytest.mark.parametrize("given", [{"limit": -1}, {"before": "x"}, {"before": True}, {"lineage": 5}, {"lineage": "x"}])
def test_what_cannot_be_meant_is_refused_before_anything_is_listed(
    memory_saver: InMemorySaver, given: dict[str, Any]
) -> None:
    graph = chain(memory_saver, one=doubling(1))
    graph.invoke({"log": []}, CONFIG)
    with pytest.raises(InvalidConfigError):
        graph.get_journal(CONFIG, **given)


def test_it_needs_a_checkpointer_and_a_thread(memory_saver: InMemorySaver) -> None:
    with pytest.raises(NoCheckpointerError, match="get_journal"):
        chain(None, one=doubling(1)).get_journal(CONFIG)
    with pytest.raises(InvalidConfigError, match="thread_id"):
        chain(memory_saver, one=doubling(1)).get_journal(None)


# -- what is not as it was --------------------------------------------------------------------------------------------


@dataclass
class Receipt:
    number: int


def paid(saver: Any, schema: Any = None) -> Any:
    @task
    def pay() -> Receipt:
        return Receipt(5)

    class Paid(TypedDict):
        receipt: Receipt

    builder = StateGraph(schema or Paid)
    builder.add_node("pay", lambda state: {"receipt": pay().result()} if schema is None else None)
    builder.add_edge(START, "pay")
    return builder.compile(checkpointer=saver, name="paid")


class Bare(TypedDict):
    other: int


def test_a_receipt_of_a_type_that_is_not_there_raises_when_it_is_looked_into(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "db") as saver:
        paid(saver).invoke({}, CONFIG)
    with SqliteSaver(tmp_path / "db") as saver:
        (entry,) = paid(saver, Bare).get_journal(CONFIG)
        assert (entry.name, entry.status) == ("pay", "done")
        with pytest.raises(UnknownTypeError):
            _ = entry.receipt.number


def test_the_graphs_own_way_with_unknown_types_is_kept_to(tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "db") as saver:
        paid(saver).invoke({}, CONFIG)
    with SqliteSaver(tmp_path / "db", on_unknown_type=RawValue) as saver:
        (entry,) = paid(saver, Bare).get_journal(CONFIG)
        assert isinstance(entry.receipt, RawValue)


def damaged(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "update records set body = x'00' where kind = 'step' and ordinal = 1",
        "update records set task_id = 'x' where kind = 'step' and ordinal = 1",
        "delete from records where kind = 'step' and ordinal = 1",
        "delete from records where kind = 'step' and ordinal = 0",
        "delete from records where seq = (select max(seq) from records)",
        "update checkpoints set version = 'x' where seq = (select max(base_seq) from records where kind = 'step')",
    ],
    ids=["altered", "moved", "lost", "lost first", "lost tail", "base altered"],
)
def test_an_entry_that_does_not_verify_is_an_error_that_names_it(tmp_path: Path, statement: str) -> None:
    """INV-10: never skipped, never half told."""
    with SqliteSaver(tmp_path / "db") as saver:
        graph = chain(saver, one=doubling(1, 2, 3), two=lambda state: {"log": [interrupt("?")]})
        graph.invoke({"log": []}, CONFIG)
    damaged(tmp_path / "db", statement)
    with SqliteSaver(tmp_path / "db") as saver:
        graph = chain(saver, one=doubling(1, 2, 3), two=lambda state: None)
        with pytest.raises(CorruptRecordError) as caught:
            list(graph.get_journal(CONFIG))
    assert caught.value.fields()["thread_id"] == "t"


def test_a_thread_that_is_deleted_meanwhile_is_an_error_and_no_short_list(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(*range(40)))
    graph.invoke({"log": []}, CONFIG)
    page = graph.get_journal(CONFIG)
    next(page)
    memory_saver.delete_thread("t")
    with pytest.raises(UnknownThreadError, match="deleted while its journal was read"):
        list(page)


def test_a_copy_of_a_thread_has_its_journal(memory_saver: InMemorySaver) -> None:
    graph = chain(memory_saver, one=doubling(1, 2))
    graph.invoke({"log": []}, CONFIG)
    memory_saver.copy_thread("t", "u")
    copied = {"configurable": {"thread_id": "u"}}

    def facts(entry: JournalEntry) -> Any:
        return entry.seq, entry.planned_action, entry.receipt, entry.node, entry.recorded_at

    assert list(map(facts, graph.get_journal(copied))) == list(map(facts, graph.get_journal(CONFIG)))


def test_the_database_lists_what_the_journal_tells() -> None:
    schema = (files("stepwell.stores.sqlite.migrations") / "0001_threads.sql").read_text()
    (index,) = re.findall(r"create index records_of_journal [^;]*;", schema)
    for text in (query("journal"), index):
        (listed,) = re.findall(r"kind in \(([^)]*)\)", text)
        assert set(re.findall(r"'(\w+)'", listed)) == set(lifecycle.JOURNAL_KINDS)
