"""A thread moves between bodies as a file: what PostgreSQL exports SQLite imports, digest for digest, and back."""

from pathlib import Path

from stepwell.clock import SystemClock
from stepwell.savers.retention.moving import export_thread, import_thread
from stepwell.stores.postgres.connections import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD
from stepwell.testing.store_suite.pruning import ended, pruning
from stepwell.testing.store_suite.restoring import taken_out


def test_a_thread_moves_to_postgresql_and_back_with_its_chain_of_digests(conninfo: str, tmp_path: Path) -> None:
    sqlite, back = SqliteStore(), SqliteStore()
    postgres = PostgresStore(OwnConnections(conninfo), clock=SystemClock())
    try:
        ended(sqlite)
        sqlite.prune(pruning(sqlite))
        export_thread(sqlite, THREAD, tmp_path / "out", 1)
        import_thread(postgres, tmp_path / "out")
        export_thread(postgres, THREAD, tmp_path / "back", 2)
        import_thread(back, tmp_path / "back")
        assert taken_out(postgres)[1:] == taken_out(back)[1:] == taken_out(sqlite)[1:]
        assert [*postgres.verify(), *back.verify()] == []
    finally:
        for store in (sqlite, back, postgres):
            store.close()
