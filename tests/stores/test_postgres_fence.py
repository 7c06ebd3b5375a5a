"""INV-2 on PostgreSQL: why the fence locks the thread row, and what a row that somebody else has locked holds up."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from stepwell.errors import LeaseLostError
from stepwell.store import EventDraft, ItemWrites
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.postgres.schema import migrate_schema
from stepwell.stores.shared.rows import thread_digest
from stepwell.superstep.items import PUT, ItemWrite
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from tests.stores.binaries import VERSIONS
from tests.stores.servers import started as started_server
from tests.stores.waiting import wait_until

TAKE_OVER = "update stepwell.threads set epoch = epoch + 1, head_seq = head_seq + 1 where thread_id = %s"
SELECT_FENCE = """
insert into stepwell.shapes select 'written', 'by a stale writer'
where exists (select from stepwell.threads where thread_id = %s and epoch = 1)
"""


@pytest.fixture
def store(conninfo: str) -> Iterator[PostgresStore]:
    made = PostgresStore(OwnConnections(conninfo), clock=FakeClock())
    yield made
    made.close()


@pytest.fixture
def other(conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo) as connection:
        yield connection


def test_a_fence_that_only_selects_lets_a_stale_write_land_after_a_takeover(
    store: PostgresStore, other: psycopg.Connection, conninfo: str
) -> None:
    """Under READ COMMITTED: its look and the takeover do not wait for each other. So it is forbidden."""
    started(store)
    with psycopg.connect(conninfo) as stale:
        stale.execute(SELECT_FENCE, (THREAD,))  # it has looked, and has not committed
        other.execute(TAKE_OVER, (THREAD,))
        other.commit()  # at once: nothing holds it up
        stale.commit()
        found = stale.execute("select count(*) from stepwell.shapes where fingerprint = 'written'").fetchone()
    assert found == (1,)


def test_a_commit_that_is_under_way_holds_up_a_takeover(
    store: PostgresStore, other: psycopg.Connection, conninfo: str
) -> None:
    drive = started(store)
    other.execute("set lock_timeout = 1")
    with psycopg.connect(conninfo) as writer:
        fenced = writer.execute(
            "update stepwell.threads set head_seq = 9 where thread_id = %s and epoch = 1", (THREAD,)
        )
        assert fenced.rowcount == 1
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(TAKE_OVER, (THREAD,))
        writer.rollback()
    drive.commit()


@pytest.mark.parametrize("events", [(), (EventDraft("run-1", "told", 1, b"body"),)], ids=["plain", "with events"])
def test_a_commit_during_a_takeover_waits_and_writes_nothing(
    store: PostgresStore, other: psycopg.Connection, events: tuple[EventDraft, ...]
) -> None:
    stale = started(store)
    late = stale.step(records=1)
    late.rows = late.rows._replace(events=events)
    before = everything(store)
    row = before[0]._replace(epoch=2, run_id="run-2")
    taken = "update stepwell.threads set epoch = %s, run_id = %s, digest = %s where thread_id = %s"
    other.execute(taken, (2, "run-2", thread_digest(row), THREAD))
    future = store.queue(late)
    wait_until(store._transactions._stragglers.any)
    assert not future.done()
    other.commit()
    with pytest.raises(LeaseLostError):
        future.result(timeout=30)
    assert everything(store) == (row, *before[1:])


def test_a_member_whose_row_is_locked_stalls_nobody_and_lands_in_order(
    store: PostgresStore, other: psycopg.Connection
) -> None:
    held, free = started(store, "held"), started(store, "free", run_id="run-2")
    other.execute("select from stepwell.threads where thread_id = 'held' for update")
    waiting = [store.queue(held.step()) for _ in range(3)]
    for _ in range(5):
        free.commit(records=1)  # in the same queue, and not held up
    assert everything(store, "free")[1] == free.last
    assert [future.done() for future in waiting] == [False] * 3
    other.rollback()
    assert [future.exception(timeout=30) for future in waiting] == [None] * 3
    assert everything(store, "held")[1] == held.last


def test_a_caller_whose_row_is_locked_waits_alone(store: PostgresStore, other: psycopg.Connection) -> None:
    held, free = started(store, "held"), started(store, "free", run_id="run-2")
    other.execute("select from stepwell.threads where thread_id = 'held' for update")
    caller = threading.Thread(target=held.commit)
    caller.start()
    wait_until(store._transactions._stragglers.any)
    free.commit()
    assert caller.is_alive()
    other.rollback()
    caller.join(30)
    assert everything(store, "held")[1] == held.last


def test_closing_lands_what_waits_for_a_lock(store: PostgresStore, other: psycopg.Connection) -> None:
    held = started(store, "held")
    other.execute("select from stepwell.threads where thread_id = 'held' for update")
    future = store.queue(held.step())
    wait_until(store._transactions._stragglers.any)
    closing = threading.Thread(target=store.close)
    closing.start()
    other.rollback()
    closing.join(30)
    assert future.exception(timeout=0) is None


def test_groups_of_two_processes_that_cross_do_not_wait_for_each_other(store: PostgresStore, conninfo: str) -> None:
    """Thread rows are locked in the order of their ids; what is locked already is passed over."""
    second = PostgresStore(OwnConnections(conninfo), clock=FakeClock())
    mine = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(6)]
    theirs = [started(second, f"other-{n}", run_id=f"their-{n}") for n in range(6)]

    def go(on: PostgresStore, drives: list[Drive]) -> None:
        for _ in range(5):
            futures = [on.queue(drive.step(records=1)) for drive in drives]
            for future in futures:
                future.result(timeout=60)

    threads = [threading.Thread(target=go, args=pair) for pair in ((store, mine[::-1]), (second, theirs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [everything(store, drive.thread_id)[1] for drive in mine + theirs] == [drive.last for drive in mine + theirs]
    second.close()


def test_an_item_whose_name_is_locked_stalls_nobody(store: PostgresStore, other: psycopg.Connection) -> None:
    drive = started(store)
    other.execute("select pg_advisory_xact_lock(hashtextextended('item users/ada', 0))")
    waiting = store.queue(ItemWrites([ItemWrite(PUT, "users", "ada", 1, b"value")]))
    wait_until(store._transactions._stragglers.any)
    drive.commit(records=1)
    assert not waiting.done()
    other.rollback()
    assert waiting.exception(timeout=30) is None


def test_a_write_that_comes_while_the_server_starts_again_waits_for_it() -> None:
    with started_server(VERSIONS[-1]) as server:
        connections = OwnConnections(server.conninfo())
        migrate_schema(connections, "stepwell")
        store = PostgresStore(connections)
        drive = started(store)
        connections.forget_idle()
        server.stop()
        future = store.queue(drive.step())
        server.start()
        assert future.exception(timeout=60) is None
        store.close()
