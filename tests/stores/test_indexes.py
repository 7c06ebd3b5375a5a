"""What a run asks, or is asked of one thread, run or name, reads no whole table: both bodies, by their plans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stepwell.stores import postgres, sqlite
from stepwell.stores.postgres.sql import SCHEMA, query
from stepwell.stores.sqlite import SqliteStore, cache as caching
from stepwell.stores.sqlite.sql import query as sqlite_query
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

WHOLE = {
    "count_tables": "asks the catalogue",
    "threads": "lists all threads, by when they changed",
    "scan_threads": "the same, where a filter is to be looked at",
    "raw_all_threads": "checks all rows",
    "raw_all_inbox": "checks all rows",
    "raw_items": "checks all rows",
    "raw_keys": "checks all rows",
    "raw_shapes": "checks all rows",
    "orphans": "checks all rows",
    "effects": "lists all effects, page by page",
    "effects_in_doubt": "the same, those in doubt: they have an index of their own",
    "keys": "lists all keys, page by page",
    "put_schema_version": "is of a table of two rows",
    "cache_clear": "forgets all cached results",
    "item_places": "looks through all items",
    "item_namespaces": "lists all namespaces",
    "last_item": "the end of the key, which is one step",
}
SORTED = {"raw_runs": "by id, which no read needs otherwise"}
ROWS, THREADS = 12_000, 3_000
SAMPLES: Mapping[str, Any] = {
    "after": 5,
    "after_key": "key5",
    "after_seq": 5,
    "after_thread": "t5",
    "base_seq": 55,
    "base_seqs": [55, 56],
    "before": "run_id55",
    "before_at": 55,
    "before_id": "t5",
    "before_seq": 5_000,
    "body": b"",
    "checkpoint_id": "checkpoint_id55",
    "consumed_seq": 5,
    "digest": b"",
    "epoch": 5,
    "fingerprint": "fingerprint55",
    "first": 5,
    "high": "namespace6",
    "holder": "",
    "key": "key55",
    "kind": "step",
    "last": 9,
    "lease_until": 0.0,
    "line": "[[0, 55]]",
    "line_from": 55,
    "lineage": 0,
    "low": "namespace5",
    "max_rows": 10,
    "message_id": "message_id55",
    "names": ["00"],
    "namespace": "",
    "needles": [],
    "now": 55,
    "ordinals": [55],
    "parent_seq": 55,
    "position": "position55",
    "run_id": "run_id55",
    "schema": SCHEMA,
    "seq": 55,
    "seqs": [55, 56],
    "since_seq": 5,
    "statuses": None,
    "thread_id": "t55",
    "until_seq": 5_000,
    "thread_ids": ["t55"],
}


def names_of(body: Any) -> list[str]:
    found = [path.stem for path in Path(str(files(body) / "queries")).glob("*.sql")]
    return sorted(set(found) - WHOLE.keys())


def test_what_reads_a_whole_table_is_known_by_name() -> None:
    everything = {path.stem for body in (sqlite, postgres) for path in (Path(body.__path__[0]) / "queries").glob("*")}
    assert WHOLE.keys() <= everything


def test_sqlite_finds_by_an_index_whatever_a_run_asks_for() -> None:
    store = SqliteStore()
    connection = store._writer.transactions.connection
    assert connection is not None
    for schema in caching.SCHEMA:
        connection.execute(sqlite_query(schema))
    tables = {name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}
    scanned: list[str] = []
    for name in names_of(sqlite):
        if name in caching.SCHEMA or name in ("integrity", "overwrite_log", "fold_log"):
            continue
        text = sqlite_query(name)
        numbers = [int(number) for number in re.findall(r"\?(\d+)", text)]
        bindings: Any = (None,) * max(numbers) if numbers else dict.fromkeys(re.findall(r":(\w+)", text))
        for *_, step in connection.execute(f"explain query plan {text}", bindings):
            found = re.match(r"SCAN (\w+)", step)
            if (found is not None and found[1] in tables) or (step.startswith("USE TEMP") and name not in SORTED):
                scanned.append(f"{name}: {step}")
    store.close()
    assert "\n".join(scanned) == ""


@pytest.fixture
def filled(worker_id: str) -> Iterator[psycopg.Connection]:
    """Tables with so many rows that nobody would read them whole who can help it."""
    with psycopg.connect(empty_database(VERSIONS[-1], worker_id)) as connection:
        tables = connection.execute(
            "select table_name::text, array_agg(column_name::text order by ordinal_position), array_agg(data_type::text"
            " order by ordinal_position) from information_schema.columns where table_schema = %s group by 1",
            (SCHEMA,),
        ).fetchall()
        for table, columns, types in tables:
            if table != "meta":
                values = ", ".join(_value(table, column, kind) for column, kind in zip(columns, types, strict=True))
                filling = f"insert into {SCHEMA}.{table} select {values} from generate_series(1, {ROWS}) as n"
                connection.execute(filling.encode())
                connection.execute(f"analyze {SCHEMA}.{table}".encode())
        yield connection
        connection.rollback()


def _value(table: str, column: str, kind: str) -> str:
    """Return what a column of the row numbered n holds."""
    special = {
        "thread_id": f"'t' || n{'' if table in ('threads', 'keys') else f' % {THREADS}'}",
        "namespace": "'namespace' || n % 100" if table == "items" else "''",
        "lineage": "n / 1000" if table == "lineages" else "0",
        "base_seq": "n / 3",
        "kind": "case n % 10 when 0 then 'step' else 'succeeded' end",
        "status": "case n % 50 when 0 then 'doubt' else 'done' end",
        "consumed_seq": "n % 20",
        "run_id": "'run_id' || n / 10" if table == "events" else "'run_id' || n",
    }
    if table == "lineages" and column == "lineage":
        return "n"
    plain = {"text": f"'{column}' || n", "bytea": "int8send(n)", "double precision": "n", "bigint": "n"}
    return special.get(column, plain[kind])


def test_postgres_finds_by_an_index_whatever_a_run_asks_for(filled: psycopg.Connection) -> None:
    texts = {name: query(name) for name in names_of(postgres)}
    asked = {name: text for name, text in texts.items() if re.match(r"(select|insert|update|delete|with)\b", text)}
    assert "\n".join(step for name, text in asked.items() for step in _explained(filled, name, text)) == ""
    filled.execute("alter table stepwell.blobs drop constraint blobs_pkey")
    assert list(_explained(filled, "blobs", texts["blobs"])) == ["blobs: Seq Scan on blobs"]


def _explained(connection: psycopg.Connection, name: str, text: str) -> Iterator[str]:
    """Yield what a query reads whole."""
    names = set(re.findall(r"%\((\w+)\)s", text))
    if names or "$" not in text:
        told = connection.execute(f"explain (format json) {text}".encode(), {key: SAMPLES[key] for key in names})
    else:
        told = connection.execute(f"explain (generic_plan, format json) {text}".encode())
    [([plan],)] = told.fetchall()
    for step in _whole_reads(plan["Plan"]):
        yield f"{name}: {step}"


def _whole_reads(node: dict[str, Any]) -> Iterator[str]:
    """Yield the steps of a plan that look at every row of a table."""
    kind, table = node["Node Type"], node.get("Relation Name", "")
    if kind == "Seq Scan" and table != "meta" and not table.startswith("pg_"):
        yield f"{kind} on {table}"
    if kind in ("Index Scan", "Index Only Scan", "Bitmap Index Scan") and "Index Cond" not in node:
        yield f"{kind} of all {node['Index Name']}"
    for below in node.get("Plans", ()):
        yield from _whole_reads(below)
