"""INV-10 on PostgreSQL: a column of any row that somebody changes is found, and what reads it is refused."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from stepwell.errors import CorruptRecordError
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.testing.store_suite.drive import THREAD, Drive, started
from stepwell.testing.store_suite.effects import saying
from stepwell.testing.store_suite.events import telling
from stepwell.testing.store_suite.inbox import message
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

OTHER = {
    "text": "{0} || 'x'",
    "bigint": "coalesce({0}, 0) + 1000",
    "double precision": "{0} + 1",
    "bytea": "{0} || 'x'::bytea",
}


@pytest.fixture
def conninfo(worker_id: str) -> str:
    return empty_database(VERSIONS[-1], worker_id)


@pytest.fixture
def store(conninfo: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(OwnConnections(conninfo))) as made:
        yield made


def columns(connection: psycopg.Connection[Any], table: str) -> list[tuple[str, str]]:
    return connection.execute(
        "select column_name, data_type from information_schema.columns where table_schema = 'stepwell'"
        " and table_name = %s",
        (table,),
    ).fetchall()


def filled(store: PostgresStore) -> Drive:
    drive = started(store)
    drive.commit(records=1)
    store.append(message("m-1"))
    store.commit(telling(saying(drive, status="interrupted"), "one", "two"))
    return drive


def test_a_changed_column_of_any_row_is_found(store: PostgresStore, conninfo: str) -> None:
    filled(store)
    assert list(store.verify()) == []
    missed = []
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for table in ("threads", "runs", "checkpoints", "records", "events", "inbox", "effects"):
            assert connection.execute(f"select count(*) from stepwell.{table}").fetchone() != (0,), table
            for column, kind in columns(connection, table):
                connection.execute(f"create temp table kept as select * from stepwell.{table}")
                one = f"ctid = (select min(ctid) from stepwell.{table})"
                connection.execute(f"update stepwell.{table} set {column} = {OTHER[kind].format(column)} where {one}")
                if not list(store.verify()):
                    missed.append(f"{table}.{column}")
                connection.execute(f"delete from stepwell.{table}")
                connection.execute(f"insert into stepwell.{table} select * from kept; drop table kept")
    assert missed == []
    assert list(store.verify()) == []


def test_a_changed_row_is_refused_by_what_reads_it(store: PostgresStore, conninfo: str) -> None:
    drive = filled(store)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("update stepwell.checkpoints set body = 'other' where seq = 1")
    with store.reading() as reader:
        with pytest.raises(CorruptRecordError):
            reader.checkpoints(THREAD, [1])
        raw = reader.raw_checkpoint(THREAD, 1)
        assert raw is not None
        assert raw.fault is not None
        assert reader.newest(THREAD, "") == drive.last
