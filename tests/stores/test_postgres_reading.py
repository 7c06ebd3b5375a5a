"""Round trips of what is read, counted on the wire: what can be foreseen is asked for together."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import START, Command, InMemorySaver, PostgresSaver, StateGraph, interrupt
from stepwell.stores.postgres.source import PostgresSource
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.stores.relay import Relay

T1: Any = {"configurable": {"thread_id": "t1"}}
END = 1
"""A snapshot is ended by a statement of its own."""


@pytest.fixture
def wire(worker_id: str) -> Iterator[tuple[PostgresSaver, Relay]]:
    conninfo = empty_database(VERSIONS[-1], worker_id)
    host, rest = conninfo.split(" ", 1)
    with Relay(f"{host.removeprefix('host=')}/.s.PGSQL.5432") as relay:
        saver = PostgresSaver(f"host={relay.folder} {rest}")
        yield saver, relay
        saver.close()


class Kept(TypedDict, total=False):
    log: Annotated[list[int], operator.add]
    early: str
    last: int


def graph(saver: Any, grows: bool = False) -> Any:
    """Write a channel once and never again, one last and, where it `grows`, one each time; then ask."""
    built = StateGraph(Kept)
    built.add_node("one", lambda state: {"early": "kept"})
    built.add_node("two", lambda state: {"log": [2]} if grows else {})
    built.add_node("three", lambda state: {"last": 3, **({"log": [3]} if grows else {})})
    built.add_node("ask", lambda state: {"last": interrupt("well?")})
    for before, after in zip([START, "one", "two", "three"], ["one", "two", "three", "ask"], strict=True):
        built.add_edge(before, after)
    return built.compile(checkpointer=saver)


@pytest.mark.parametrize("grows", [False, True])
def test_the_state_of_a_thread_is_two_round_trips_and_the_end(wire: tuple[PostgresSaver, Relay], grows: bool) -> None:
    """The newest row with what it is judged by; what that row refers to, with all that is known of it elsewhere. What
    is folded along a chain is one more."""
    saver, relay = wire
    app, twin = graph(saver, grows), graph(InMemorySaver(), grows)
    for each in (app, twin):
        each.invoke({"log": [0]}, T1)
    app.get_state(T1)
    before = relay.round_trips
    found = app.get_state(T1)
    assert relay.round_trips - before == 2 + grows + END
    assert found.values == twin.get_state(T1).values
    assert [task.interrupts[0].value for task in found.tasks] == ["well?"]
    before = relay.round_trips
    assert app.get_state({"configurable": {"thread_id": "nobody"}}).values == {}
    assert relay.round_trips - before == 1 + END


def test_to_go_on_with_a_thread_is_three_round_trips_the_end_and_the_claim(wire: tuple[PostgresSaver, Relay]) -> None:
    """The thread; its newest row; what that row refers to."""
    saver, relay = wire
    app = graph(saver)
    app.invoke({"log": [0]}, T1)
    before = relay.round_trips
    assert app.invoke(Command(resume=4), T1)["last"] == 4
    assert relay.round_trips - before == 3 + END + 1 + 1, "and the last superstep"


def test_a_list_is_one_round_trip_for_each_page(
    wire: tuple[PostgresSaver, Relay], monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, relay = wire
    app = graph(saver)
    for n in range(3):
        app.invoke({"log": [0]}, {"configurable": {"thread_id": f"t{n}"}})
    for rows_at_once, pages in ((500, 1), (2, 2), (1, 4)):
        monkeypatch.setattr("stepwell.stores.postgres.source.ROWS_AT_ONCE", rows_at_once)
        source = PostgresSource(saver.store.connections, saver.store.schema)
        before = relay.round_trips
        assert len(list(source.scan("raw_all_threads", {}))) == 3
        assert relay.round_trips - before == pages
        source.end()
