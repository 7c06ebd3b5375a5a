"""The SQL files: each says what it guarantees, each is used, and none that a run needs scans a table."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell.store import HistoryQuery
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.cache import SCHEMA
from stepwell.stores.sqlite.sql import query
from stepwell.testing.store_suite.drive import Drive

PACKAGE = Path(str(files("stepwell.stores.sqlite")))
SHARED = Path(str(files("stepwell.stores.shared")))
QUERIES = sorted(path.stem for path in (PACKAGE / "queries").glob("*.sql"))
WHOLE_TABLES = {
    "threads",
    "raw_threads",
    "orphans",
    "integrity",
    "raw_runs",
    "count_tables",
    "overwrite_log",
    "raw_inbox",
    "effects",
    *SCHEMA,
}
"""What lists all threads or checks all rows, and may therefore read them all."""


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_says_what_it_guarantees_and_locks(name: str) -> None:
    text = (PACKAGE / "queries" / f"{name}.sql").read_text()
    header = re.match(r"(?:-- .*\n)+", text)
    assert header is not None
    assert re.search(r"\block", header[0], re.IGNORECASE)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_one_statement_and_used(name: str) -> None:
    assert ";" not in query(name)
    sources = "\n".join(path.read_text() for path in (*PACKAGE.glob("*.py"), *SHARED.glob("*.py")))
    assert f'"{name}"' in sources or (name.startswith("raw_") and 'f"raw_{table.name}"' in sources)


@pytest.mark.parametrize("name", sorted(set(QUERIES) - WHOLE_TABLES))
def test_a_query_of_a_run_finds_its_rows_by_an_index(name: str) -> None:
    store = SqliteStore()
    connection = store._writer.transactions.connection
    assert connection is not None
    for schema in SCHEMA if name.startswith("cache_") else ():
        connection.execute(query(schema))
    numbers = [int(number) for number in re.findall(r"\?(\d+)", query(name))]
    bindings = (None,) * max(numbers) if numbers else dict.fromkeys(re.findall(r":(\w+)", query(name)))
    plan = [row[3] for row in connection.execute(f"explain query plan {query(name)}", bindings)]
    assert [
        step for step in plan if re.match(r"SCAN (threads|runs|checkpoints|records|inbox|effects)|USE TEMP", step)
    ] == []
    store.close()


def test_a_statement_is_planned_once_whatever_it_is_bound_to() -> None:
    store = SqliteStore()
    connection = store._writer.transactions.connection
    assert connection is not None
    _write_and_read(store, "first")
    planned: list[int] = []

    def note(action: int, *about: Any) -> int:
        planned.append(action)
        return apsw.SQLITE_OK

    connection.authorizer = note  # asked whenever SQLite plans a statement; setting it has all planned once more
    _write_and_read(store, "second")
    assert planned
    planned.clear()
    _write_and_read(store, "third")
    assert planned == []
    store.close()


def _write_and_read(store: SqliteStore, thread_id: str) -> None:
    drive = Drive(store, thread_id=thread_id, run_id=f"run of {thread_id}")
    drive.admit()
    drive.commit(records=1)
    with store.reading() as reader:
        assert reader.newest(thread_id, "") is not None
        assert reader.records_of(thread_id, [1, 2, 3])
        assert list(reader.history(HistoryQuery(thread_id)))
