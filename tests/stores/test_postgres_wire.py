"""INV-1 over a wire that can be counted and cut: round trips, lost connections, servers that return (I1, I2)."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from stepwell.errors import CommitUnknownError, DatabaseUnavailableError, StoreError
from stepwell.store import Deletion, EventDraft, ItemWrites, Message
from stepwell.stores.postgres import recovery
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.postgres.schema import migrate_schema
from stepwell.superstep.items import PUT, ItemWrite
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from tests.stores.binaries import VERSIONS
from tests.stores.crashing import commits_through_kills
from tests.stores.databases import empty_database
from tests.stores.relay import Cut, Relay
from tests.stores.servers import started as started_server

NEWEST = VERSIONS[-1]
COMMIT = b"with member as"
"""Only the statement of a group of commits holds these bytes."""


@pytest.fixture
def conninfo(worker_id: str) -> str:
    """One version serves: what is counted and cut is the client's."""
    return empty_database(NEWEST, worker_id)


@pytest.fixture
def relay(conninfo: str) -> Iterator[Relay]:
    """A wire to the server."""
    host = conninfo.split()[0].removeprefix("host=")
    with Relay(f"{host}/.s.PGSQL.5432") as made:
        yield made


@pytest.fixture
def store(conninfo: str, relay: Relay) -> Iterator[PostgresStore]:
    """A store at the other end of the wire."""
    rest = conninfo.split(" ", 1)[1]
    made = PostgresStore(OwnConnections(f"host={relay.folder} {rest}"))
    yield made
    made.close()


def test_a_lone_commit_is_one_round_trip(store: PostgresStore, relay: Relay) -> None:
    drive = started(store)
    drive.commit()
    for records in (0, 1, 5):
        before = relay.round_trips
        drive.commit(records=records)
        assert relay.round_trips - before == 1
    before = relay.round_trips
    store.commit(drive.ending())
    assert relay.round_trips - before == 1


def test_a_group_of_commits_is_one_round_trip_and_one_transaction(store: PostgresStore, relay: Relay) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(20)]
    before, counted = relay.round_trips, store.counts.transactions
    with store._writer.lock:
        futures = [store.queue(drive.step(records=1)) for drive in drives]
        store.settle(futures[-1])
    assert [future.exception(timeout=30) for future in futures] == [None] * 20
    assert relay.round_trips - before == 1
    assert store.counts.transactions - counted == 1
    assert [everything(store, drive.thread_id)[1] for drive in drives] == [drive.last for drive in drives]


@pytest.mark.parametrize("cut", Cut)
def test_a_commit_whose_connection_is_cut_lands_once(store: PostgresStore, relay: Relay, cut: Cut) -> None:
    drive = started(store)
    relay.cut(cut, COMMIT)
    drive.commit(records=2)
    assert relay.cuts == 1
    assert everything(store)[1] == drive.last
    drive.commit()
    assert list(store.verify()) == []


@pytest.mark.parametrize("cut", Cut)
def test_a_group_whose_connection_is_cut_lands_once_each(store: PostgresStore, relay: Relay, cut: Cut) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(5)]
    relay.cut(cut, COMMIT)
    with store._writer.lock:
        futures = [store.queue(drive.step(records=1)) for drive in drives]
        store.settle(futures[0])
    assert [future.exception(timeout=30) for future in futures] == [None] * 5
    assert relay.cuts == 1
    assert [everything(store, drive.thread_id)[1] for drive in drives] == [drive.last for drive in drives]


@pytest.mark.parametrize("cut", Cut)
@pytest.mark.parametrize("kind", ["admission", "message", "deletion", "items", "events", "renewal"])
def test_any_other_write_whose_commit_is_cut_off_lands_once(
    store: PostgresStore, relay: Relay, kind: str, cut: Cut
) -> None:
    drive = started(store)
    step = drive.step()
    step.rows = step.rows._replace(events=[EventDraft("run-1", "told", 1, b"body")])
    at_commit = b"commit\x00"
    if kind == "admission":
        other = Drive(store, "other", run_id="run-2")
        relay.cut(cut, b"with patience as")
        other.admit()
        assert everything(store, "other")[1] == other.last
        other.commit()
    elif kind == "message":
        relay.cut(cut, at_commit)
        message = Message(THREAD, "message-1", "signal", "key", b"body", 1)
        row = store.append(message)
        assert (row.ordinal, store.append(message)) == (1, row)
    elif kind == "deletion":
        relay.cut(cut, at_commit)
        assert store.delete(Deletion(THREAD, 5))
        assert everything(store)[0] is None
    elif kind == "items":
        relay.cut(cut, at_commit)
        store.write_items(ItemWrites([ItemWrite(PUT, "users", "ada", 1, b"value")]))
        with store.reading() as reader:
            item = reader.item("users", "ada")
        assert item is not None
        assert item.value == b"value"
    elif kind == "events":
        relay.cut(cut, at_commit)
        store.commit(step)
        with store.reading() as reader:
            assert [event.ordinal for event in reader.events("run-1")] == [1]
    else:
        relay.cut(cut, at_commit)
        assert store.renew(THREAD, "run-1", drive.epoch, 30.0)
    assert relay.cuts == 1
    assert list(store.verify()) == []


@pytest.mark.parametrize("cut", Cut)
def test_a_commit_that_nobody_can_ask_about_is_unknown(
    store: PostgresStore, relay: Relay, conninfo: str, cut: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "PATIENCE_SECONDS", 0.0)
    drive = started(store)
    commit = drive.step()
    relay.cut(cut, COMMIT, for_good=True)
    with pytest.raises(CommitUnknownError) as caught:
        store.commit(commit)
    assert caught.value.fields()["thread_id"] == THREAD
    with pytest.raises(DatabaseUnavailableError):
        Drive(store, "other", run_id="run-2").admit()
    direct = PostgresStore(OwnConnections(conninfo))
    landed = everything(direct)[0].head_seq == commit.rows.head_seq
    assert landed is (cut not in (Cut.BEFORE_SEND, Cut.PART_SENT))
    direct.close()


def test_connections_that_the_server_closed_meanwhile_cost_no_step(store: PostgresStore, conninfo: str) -> None:
    """I1, I2: what sits idle while a node runs may be gone when it is needed."""
    drive = started(store)
    for _ in range(3):
        with psycopg.connect(conninfo, autocommit=True) as admin:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name = 'stepwell'"
            )
        drive.commit(records=1)
    assert everything(store)[1] == drive.last


@pytest.mark.crash
def test_a_commit_during_which_the_server_is_killed_lands_once() -> None:
    """As a failing disk under the log does: the server dies of it, and says nothing."""

    def die() -> None:
        server.kill()
        server.start()

    with started_server(NEWEST) as server, Relay(server.socket) as relay:
        connections = OwnConnections(server.conninfo())
        migrate_schema(connections, "stepwell")
        connections.close()
        store = PostgresStore(OwnConnections(f"host={relay.folder} port=5432 user=postgres dbname=postgres"))
        drive = started(store)
        for cut in (Cut.AFTER_SEND, Cut.BEFORE_ANSWER, Cut.BEFORE_SEND):
            relay.cut(cut, COMMIT, then=die)
            drive.commit(records=1)
            assert everything(store)[1] == drive.last
        assert relay.cuts == 3
        assert list(store.verify()) == []
        store.close()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("disk_full", "disk is full"),
        ("io_error", "refused the write"),
        ("out_of_memory", "out of memory"),
        ("insufficient_privilege", "may not write"),
        ("read_only_sql_transaction", "takes no writes"),
        ("query_canceled", "cancelled the write"),
    ],
)
@pytest.mark.parametrize("table", ["checkpoints", "events"])
def test_a_write_that_the_server_refuses_changes_nothing_and_harms_nobody_beside_it(
    store: PostgresStore, conninfo: str, code: str, told: str, table: str
) -> None:
    drive, beside = started(store), started(store, "beside", run_id="run-2")
    before = everything(store)
    commit = drive.step(records=1)
    commit.rows = commit.rows._replace(events=[EventDraft("run-1", "told", 1, b"body")] if table == "events" else [])
    with psycopg.connect(conninfo, autocommit=True) as admin:
        admin.execute(
            f"create or replace function stepwell.refuse() returns trigger language plpgsql as"
            f" $$begin if new.thread_id = 'thread-1' then raise {code}; end if; return new; end$$"
        )
        trigger = (
            f"create trigger refusing before insert on stepwell.{table} for each row execute function stepwell.refuse()"
        )
        admin.execute(trigger)
        try:
            with store._writer.lock:
                futures = [store.queue(commit), store.queue(beside.step())]
                with pytest.raises(StoreError, match=told):
                    store.settle(futures[0])
                store.settle(futures[1])
        finally:
            admin.execute(f"drop trigger refusing on stepwell.{table}")
            admin.execute("drop function stepwell.refuse")
    assert everything(store) == before
    assert everything(store, "beside")[1] == beside.last
    store.commit(commit)


@pytest.mark.crash
def test_a_server_that_starts_again_costs_no_step() -> None:
    """I2: killed in the middle, at any moment, and started again: each commit lands once."""
    with started_server(NEWEST) as server:
        commits_through_kills(server)
