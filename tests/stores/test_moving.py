"""A thread moves between bodies as a file: what PostgreSQL exports SQLite imports, digest for digest, and back."""

import re
from pathlib import Path

import psycopg

from stepwell import InMemorySaver
from stepwell.clock import SystemClock
from stepwell.savers.postgres import PostgresSaver
from stepwell.savers.retention.moving import export_thread, import_thread
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.postgres.sql import query
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD
from stepwell.testing.store_suite.pruning import ended, pruning
from stepwell.testing.store_suite.restoring import taken_out
from tests.runtime.graphs import chain, note, thread


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


def test_a_thread_weighs_the_same_on_sqlite_and_postgresql(conninfo: str, tmp_path: Path) -> None:
    """By table and by channel. The tables of PostgreSQL are vacuumed in between, in both ways."""
    sqlite, database = InMemorySaver(), PostgresSaver(conninfo)
    with sqlite, database:
        database.setup()
        graph = chain(("a", note("a")), ("b", note("b"))).compile(checkpointer=sqlite)
        graph.invoke({"log": ["x" * 20_000]}, thread("t"))
        graph.invoke({"log": ["in"]}, thread("t"))
        sqlite.export_thread("t", tmp_path / "out")
        database.import_thread(tmp_path / "out")
        for full in (False, True):
            before, after = database.vacuum(full=full)
            assert 0 < after.bytes <= before.bytes or not full
        stats = database.stats("t")
        assert stats.threads == sqlite.stats("t").threads
        assert stats.threads[0].tables["blobs"] > 0
        assert stats.size.bytes > 0


def test_size_and_vacuum_name_every_table_that_holds_rows_of_threads(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver, psycopg.connect(conninfo) as connection:
        saver.setup()
        listed = connection.execute("select tablename from pg_tables where schemaname = 'stepwell'").fetchall()
    tables = {name for (name,) in listed} - {"meta"}
    for name in ("size", "vacuum", "vacuum_full"):
        assert set(re.findall(r'"stepwell"\.(\w+)', query(name))) == tables, name
