"""PostgreSQL behind a pooler in transaction mode: nothing is prepared, nothing is set for a session (I1, I4)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stepwell.store import EventDraft, Message
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.testing.store_suite.drive import Drive, everything, started
from tests.stores.pooler import Pooler, pooled

WORKERS = 4
SERVERS = 2
STEPS = 12


@pytest.fixture
def pooler(conninfo: str) -> Iterator[Pooler]:
    """A pooler in front of the server of each version."""
    with pooled(conninfo.split(" ", 1)[0].removeprefix("host="), servers=SERVERS) as made:
        yield made


@pytest.fixture
def through(conninfo: str, pooler: Pooler) -> str:
    """How to connect through it."""
    return f"host={pooler.folder} {conninfo.split(' ', 1)[1]}"


def test_four_workers_share_two_connections_of_a_pooler(through: str, conninfo: str) -> None:
    """I4."""
    failures: list[BaseException] = []
    done: list[Drive] = []

    def work(number: int) -> None:
        try:
            store = PostgresStore(OwnConnections(through))
            drive = started(store, f"thread-{number}", run_id=f"run-{number}")
            for step in range(STEPS):
                commit = drive.step(records=1)
                if step % 3 == 0:
                    event = EventDraft(drive.run_id, "told", step, b"body")
                    commit.rows = commit.rows._replace(events=[event])
                store.commit(commit)
                store.append(Message(drive.thread_id, f"message-{step}", "signal", "key", b"body", 1))
                assert everything(store, drive.thread_id)[1] == drive.last
            done.append(drive)
            store.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    direct = PostgresStore(OwnConnections(conninfo))
    assert [everything(direct, drive.thread_id)[1] for drive in done] == [drive.last for drive in done]
    assert len(done) == WORKERS
    assert list(direct.verify()) == []
    direct.close()


def test_a_pooler_that_starts_again_costs_no_step(through: str, pooler: Pooler) -> None:
    """I1: connections that sat idle while a node ran are gone when they are needed."""
    store = PostgresStore(OwnConnections(through))
    drive = started(store)
    for _ in range(2):
        pooler.stop()
        pooler.start()
        drive.commit(records=1)
        assert everything(store)[1] == drive.last
    store.close()
