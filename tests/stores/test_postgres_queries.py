"""PostgreSQL's SQL files: each says what it guarantees and is used; rows are packed in the order of the tables."""

import re
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from stepwell.store import CheckpointRow, RecordRow, RunRow, ThreadRow
from stepwell.stores.postgres.sql import query

PACKAGE = Path(str(files("stepwell.stores.postgres")))
QUERIES = sorted(path.stem for path in (PACKAGE / "queries").glob("*.sql"))
SQLITE = {path.stem for path in (PACKAGE.parent / "sqlite" / "queries").glob("*.sql")}
OWN = {
    "vacuum_full",
    "admit",
    "commit",
    "create_schema",
    "database",
    "find_schema",
    "lock_names",
    "lock_schema",
    "lock_thread",
    "put_schema_version",
    "scan_history",
    "scan_line",
    "scan_threads",
    "schema_version",
    "threads_named",
}
"""What only this body asks: its version table, its locks, its statements of many writes, its way with filters."""
NOT_HERE = {"overwrite_log", "fold_log"} | {name for name in SQLITE if name.startswith("cache_")}
"""What only a file needs."""


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_says_what_it_guarantees_and_locks(name: str) -> None:
    text = (PACKAGE / "queries" / f"{name}.sql").read_text()
    header = re.match(r"(?:-- .*\n)+", text)
    assert header is not None
    assert re.search(r"\block", header[0], re.IGNORECASE)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_one_statement_and_used(name: str) -> None:
    assert ";" not in query(name)
    sources = "\n".join(
        path.read_text() for folder in (PACKAGE, PACKAGE.parent / "shared") for path in folder.glob("*.py")
    )
    generic = (name.startswith("raw_") and 'f"raw_{' in sources) or (name.startswith("scan_") and 'f"scan_{' in sources)
    assert f'"{name}"' in sources or generic


def test_both_bodies_have_the_same_queries() -> None:
    assert set(QUERIES) - OWN == SQLITE - NOT_HERE


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("threads", (*ThreadRow._fields, "digest")),
        ("checkpoints", CheckpointRow._fields),
        ("records", RecordRow._fields),
        ("runs", (*RunRow._fields, "epoch", "digest")),
    ],
)
def test_rows_are_packed_in_the_order_of_their_table(conninfo: str, table: str, columns: tuple[str, ...]) -> None:
    with psycopg.connect(conninfo) as connection:
        found = connection.execute(
            "select column_name from information_schema.columns where table_schema = 'stepwell' and table_name = %s"
            " order by ordinal_position",
            (table,),
        ).fetchall()
    assert tuple(name for (name,) in found) == columns
