"""Commits while their server is killed again and again: what was acknowledged is there, and nothing lands twice."""

from __future__ import annotations

import random
import threading

from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.postgres.schema import migrate_schema
from stepwell.testing.store_suite.drive import Drive, everything, started
from tests.stores.servers import Server

THREADS = 3
KILLS = 3


def commits_through_kills(server: Server) -> None:
    """Drive some threads while the server is killed and started; each commit must land, once."""
    connections = OwnConnections(server.conninfo())
    migrate_schema(connections, "stepwell")
    store = PostgresStore(connections)
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(THREADS)]
    over = threading.Event()
    failures: list[BaseException] = []

    def go(drive: Drive) -> None:
        try:
            while not over.is_set():
                drive.commit(records=1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=go, args=(drive,)) for drive in drives]
    for thread in threads:
        thread.start()
    order = random.Random(7)
    for _ in range(KILLS):
        reached = [drive.seq + order.randrange(2, 12) for drive in drives]
        while any(drive.seq < seq for drive, seq in zip(drives, reached, strict=True)) and not failures:
            over.wait(0.001)
        server.kill()
        server.start()
    over.set()
    for thread in threads:
        thread.join()
    assert failures == []
    for drive in drives:
        assert everything(store, drive.thread_id)[1] == drive.last
    assert list(store.verify()) == []
    store.close()
