"""Claims of many threads in one transaction: one round trip, and each stands or falls alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import psycopg
import pytest

from stepwell.errors import RunConflictError, ThreadBusyError
from stepwell.ids import fingerprint_of
from stepwell.store import NO_DIGEST, Claim, Commit, Deletion, RunRow, ShapeRow, ThreadRow
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.shared.rows import thread_digest
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import Drive, everything, run_row, started
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.stores.relay import Cut, Relay
from tests.stores.waiting import wait_until

ADMIT = b"with patience as"
"""Only the statement of a group of claims holds these bytes."""


@pytest.fixture
def conninfo(worker_id: str) -> str:
    """One version serves for what is counted; what the statements do, the suite shows on both."""
    return empty_database(VERSIONS[-1], worker_id)


@pytest.fixture
def relay(conninfo: str) -> Iterator[Relay]:
    host = conninfo.split()[0].removeprefix("host=")
    with Relay(f"{host}/.s.PGSQL.5432") as made:
        yield made


@pytest.fixture
def store(conninfo: str, relay: Relay, clock: FakeClock) -> Iterator[PostgresStore]:
    made = PostgresStore(OwnConnections(f"host={relay.folder} {conninfo.split(' ', 1)[1]}"), clock=clock)
    yield made
    made.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def other(conninfo: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(conninfo) as connection:
        yield connection


def written(store: PostgresStore, works: Sequence[Claim | Commit]) -> list[Future[ThreadRow | None]]:
    """Write all of these as one batch; return what each was answered with."""
    with ThreadPoolExecutor(len(works)) as pool:
        with store._writer.lock:
            futures = []
            for work in works:
                futures.append(pool.submit(store._writer.run, work))
                wait_until(lambda: len(store._writer._waiting) == len(futures))
        wait(futures, timeout=30)
    return futures


def test_an_admission_is_one_round_trip(store: PostgresStore, relay: Relay) -> None:
    started(store)
    before = relay.round_trips
    drive = started(store, "new", run_id="run-2")
    assert relay.round_trips - before == 1
    store.commit(drive.ending())
    seen = everything(store, "new")[0]
    before = relay.round_trips
    again = drive.claim(seen)
    again.ended = drive_of(seen)
    assert store.admit(again) is not None
    assert relay.round_trips - before == 1
    assert list(store.verify()) == []


def drive_of(seen: ThreadRow) -> RunRow:
    return run_row(seen.thread_id, "of a dead process", status="cancelled", finished_at=3)


def test_claims_and_commits_that_wait_at_one_moment_share_a_round_trip(store: PostgresStore, relay: Relay) -> None:
    running = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(3)]
    begun = [Drive(store, f"new-{n}", run_id=f"new-run-{n}") for n in range(5)]
    counts = store.counts
    before, counted = relay.round_trips, (counts.transactions, counts.statements, counts.syncs)
    claims = [drive.claim() for drive in begun]
    for claim in claims:
        claim.shape = ShapeRow(fingerprint_of("shape"), "shape")
    answers = written(store, [*claims, *(drive.step(records=1) for drive in running)])
    assert relay.round_trips - before == 1
    spent = (counts.transactions, counts.statements, counts.syncs)
    assert [now - then for now, then in zip(spent, counted, strict=True)] == [1, 2, 1]
    rows = [future.result() for future in answers[:5]]
    for drive, row in zip(begun, rows, strict=True):
        assert row is not None
        drive.epoch = row.epoch
        drive.commit()
    for drive in running + begun:
        assert everything(store, drive.thread_id)[1] == drive.last
    assert list(store.verify()) == []


def test_a_claim_that_cannot_land_drops_out_alone(store: PostgresStore, clock: FakeClock) -> None:
    expired, moved = started(store, "expired", run_id="run-1"), started(store, "moved", run_id="run-2")
    seen = {name: everything(store, name)[0] for name in ("expired", "moved")}
    clock.advance(31)
    moved.commit()
    started(store, "busy", run_id="run-3")
    started(store, "deleted", run_id="run-4")
    store.delete(Deletion("deleted", 5))
    before = [everything(store, name) for name in ("busy", "moved")]
    claims = [
        Drive(store, "fresh", run_id="a").claim(),
        Drive(store, "busy", run_id="b").claim(everything(store, "busy")[0], rows=False),
        Drive(store, "moved", run_id="c").claim(seen["moved"], rows=False),
        Drive(store, "deleted", run_id="d").claim(),  # it left a tombstone
        Drive(store, "expired", run_id="e", last=expired.last, head=expired.head).claim(seen["expired"]),
    ]
    fresh, busy, stale, deleted, taken = written(store, claims)
    assert isinstance(busy.exception(), ThreadBusyError)
    assert stale.result() is None
    assert [row.result().epoch for row in (fresh, deleted, taken)] == [1, 3, 2]  # type: ignore[union-attr]
    assert [everything(store, name) for name in ("busy", "moved")] == before
    assert list(store.verify()) == []


def test_a_claim_with_a_run_of_another_thread_harms_none_beside_it(store: PostgresStore) -> None:
    started(store)
    before = everything(store)
    claims = [Drive(store, "thief").claim(), Drive(store, "beside", run_id="run-2").claim()]
    thief, beside = written(store, claims)
    assert isinstance(thief.exception(), RunConflictError)
    assert beside.result() is not None
    assert everything(store) == before
    assert everything(store, "thief")[0] is None


def test_a_claim_whose_row_is_locked_holds_up_no_other(store: PostgresStore, other: psycopg.Connection) -> None:
    held = started(store, "held")
    store.commit(held.ending())
    seen = everything(store, "held")[0]
    other.execute("select from stepwell.threads where thread_id = 'held' for update")
    claims = [Drive(store, "held", run_id="again").claim(seen, rows=False), Drive(store, "free", run_id="r").claim()]
    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(written, store, claims)
        wait_until(lambda: everything(store, "free")[0] is not None)
        assert not answers.done()
        other.rollback()
        rows = [future.result() for future in answers.result(timeout=30)]
    assert [row.epoch for row in rows if row is not None] == [2, 1]


@pytest.mark.parametrize("commits", [True, False], ids=["it commits", "it gives up"])
def test_who_is_opening_a_thread_at_this_moment_holds_up_no_other_for_long(
    store: PostgresStore, other: psycopg.Connection, commits: bool
) -> None:
    row = ThreadRow("opening", "graph", "finished", 7, "", "", 0.0, 1, NO_DIGEST, 1, 1)
    columns = (*row, thread_digest(row))
    other.execute(f"insert into stepwell.threads values ({', '.join(['%s'] * len(columns))})", columns)
    claims = [Drive(store, name, run_id=f"run of {name}").claim() for name in ("opening", "beside")]
    with ThreadPoolExecutor(1) as pool:
        answers = pool.submit(written, store, claims)
        wait_until(lambda: everything(store, "beside")[0] is not None)
        assert not answers.done()
        other.commit() if commits else other.rollback()
        opening, beside = answers.result(timeout=30)
    assert beside.result().epoch == 1  # type: ignore[union-attr]
    taken = opening.result()
    assert taken is None if commits else taken is not None


def test_processes_that_open_the_same_threads_share_them_out(store: PostgresStore, conninfo: str) -> None:
    """Threads are opened in the order of their ids, whatever the order of the claims: nobody waits for ever."""
    second = PostgresStore(OwnConnections(conninfo), clock=FakeClock())
    names = [f"thread-{n}" for n in range(8)]

    def go(on: PostgresStore, who: str, order: list[str]) -> list[ThreadRow | None]:
        claims = [Drive(on, name, run_id=f"{who} of {name}").claim() for name in order]
        found = [future.result() for future in written(on, claims)]
        return [found[order.index(name)] for name in names]

    with ThreadPoolExecutor(2) as pool:
        mine, theirs = pool.map(go, (store, second), ("mine", "theirs"), (names, names[::-1]))
    for name, one, another in zip(names, mine, theirs, strict=True):
        [taken] = [row for row in (one, another) if row is not None]
        assert everything(store, name)[0] == taken
    assert list(store.verify()) == []
    second.close()


@pytest.mark.parametrize("cut", Cut)
def test_admissions_whose_connection_is_cut_land_once_each(store: PostgresStore, relay: Relay, cut: Cut) -> None:
    running, begun = started(store), [Drive(store, f"new-{n}", run_id=f"run of {n}") for n in range(3)]
    relay.cut(cut, ADMIT)
    answers = written(store, [running.step(), *(drive.claim() for drive in begun)])
    rows = [future.result() for future in answers]
    assert relay.cuts == 1
    assert [row.epoch for row in rows[1:] if row is not None] == [1, 1, 1]
    for drive in begun:
        drive.epoch = 1
        drive.commit()
    assert [everything(store, drive.thread_id)[1] for drive in begun] == [drive.last for drive in begun]
    assert everything(store)[1] == running.last
    assert list(store.verify()) == []
