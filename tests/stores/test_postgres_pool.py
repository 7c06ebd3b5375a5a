"""The store's own connections: few, more where they are needed, and fewer again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepwell.errors import StoreError
from stepwell.stores.postgres import pool
from stepwell.stores.postgres.connections import Connection
from stepwell.stores.postgres.pool import OwnConnections
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.stores.waiting import wait_until

Make = Callable[[int, int], OwnConnections]
NEVER, AT_ONCE = 1e6, 0.0


@pytest.fixture
def make(worker_id: str) -> Iterator[Make]:
    made: list[OwnConnections] = []

    def one(min_size: int, max_size: int) -> OwnConnections:
        conninfo = empty_database(VERSIONS[-1], worker_id)
        made.append(OwnConnections(conninfo, min_size=min_size, max_size=max_size))
        return made[-1]

    yield one
    for connections in made:
        connections.close()


def taken(connections: OwnConnections, count: int) -> list[Connection]:
    return [connections.take() for _ in range(count)]


def test_who_waits_is_served_in_its_turn_with_what_others_give_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "GROWTH_SECONDS", NEVER)
    connections = make(1, 3)
    [first] = taken(connections, 1)
    second = connections.take()  # the first beyond min_size; the next only after a while
    served = []
    with ThreadPoolExecutor(4) as threads:
        for number in range(4):
            answer = threads.submit(connections.take)
            answer.add_done_callback(lambda _, number=number: served.append(number))  # type: ignore[misc]
            wait_until(lambda: len(connections._waiting) == number + 1)  # noqa: B023
        for number in range(4):
            connections.give_back(second if number % 2 else first)
            wait_until(lambda: len(served) == number + 1)  # noqa: B023
    assert served == [0, 1, 2, 3]
    assert connections._open == 2
    connections.give_back(first)
    connections.give_back(second)


def test_while_all_are_in_use_more_are_opened_up_to_the_limit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GROWTH_SECONDS", AT_ONCE)
    monkeypatch.setattr(pool, "WAIT_SECONDS", AT_ONCE)
    connections = make(0, 3)
    held = taken(connections, 3)
    assert len({connection.info.backend_pid for connection in held}) == 3
    with pytest.raises(StoreError, match="All 3 connections to PostgreSQL"):
        connections.take()
    connections.give_back(held.pop())
    held.append(connections.take())
    for connection in held:
        connections.give_back(connection)


def test_a_connection_that_is_lost_makes_room_for_who_waits(make: Make) -> None:
    connections = make(1, 1)
    [lost] = taken(connections, 1)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(connections.take)
        wait_until(lambda: len(connections._waiting) == 1)
        lost.close()
        connections.give_back(lost)
        fresh = answer.result(timeout=30)
    assert fresh.execute("select 1").fetchone() == (1,)
    connections.give_back(fresh)
    assert connections._open == 1


def test_what_stays_unused_is_closed_down_to_what_is_to_stay_open(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GROWTH_SECONDS", AT_ONCE)
    monkeypatch.setattr(pool, "IDLE_SECONDS", NEVER)
    connections = make(1, 4)
    held = taken(connections, 4)
    for connection in held:
        connections.give_back(connection)
    connections.close_unused()
    assert [connection.closed for connection in held] == [False] * 4, "they were in use until a moment ago"
    for connection in reversed(taken(connections, 2)):
        connections.give_back(connection)
    connections.close_unused()
    assert sum(connection.closed for connection in held) == 2
    connections.close_unused()
    assert sum(connection.closed for connection in held) == 3
    connections.close_unused()
    assert sum(connection.closed for connection in held) == 3


def test_a_timer_looks_as_long_as_more_are_open_than_are_to_stay(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GROWTH_SECONDS", AT_ONCE)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.001)
    connections = make(1, 3)
    for connection in taken(connections, 3):
        connections.give_back(connection)
    wait_until(lambda: connections._open == 1 and connections._timer is None)


def test_a_pool_that_is_closed_keeps_nothing_it_is_given_back(make: Make) -> None:
    connections = make(1, 2)
    idle, held = taken(connections, 2)
    connections.give_back(idle)
    connections.close()
    connections.give_back(held)
    assert (idle.closed, held.closed, connections._open) == (True, True, 0)
