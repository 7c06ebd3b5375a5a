"""What the bodies of the store have in common: names, columns, and what a filter selects, whatever it is made of."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings, strategies as st

from stepwell.store import HistoryQuery, Store, ThreadsQuery
from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.stores.postgres.texts import loaded, stored
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import started
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database


@pytest.fixture(scope="module")
def conninfo(worker_id: str) -> str:
    return empty_database(VERSIONS[-1], worker_id)


@pytest.fixture(scope="module")
def stores(conninfo: str) -> Iterator[tuple[Store, Store]]:
    one, other = SqliteStore(), PostgresStore(OwnConnections(conninfo))
    yield one, other
    one.close()
    other.close()


def test_both_bodies_have_the_same_tables_and_columns(conninfo: str) -> None:
    store = SqliteStore()
    here = store._writer.transactions.connection
    assert here is not None
    tables = {name: [row[1] for row in here.pragma("table_info", name)] for (name,) in here.execute(TABLES)}
    with psycopg.connect(conninfo) as there:
        found: dict[str, list[str]] = {}
        for table, column in there.execute(COLUMNS):
            found.setdefault(table, []).append(column)
    found.pop("meta")
    assert found == tables
    store.close()


TABLES = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
COLUMNS = (
    "select table_name, column_name from information_schema.columns where table_schema = 'stepwell'"
    " order by table_name, ordinal_position"
)

# -- filters ----------------------------------------------------------------------------------------------------------

hostile = st.sampled_from(
    [
        "'",
        '"',
        "%",
        "_",
        "\\",
        "\0",
        "\x01",
        "\ud800",
        "é",
        "a",
        '": "',
        "$.a",
        "source",
        "step",
        "run_id",
        "lineage",
        "",
    ]
)
keys = st.one_of(hostile, st.text(max_size=3))
numbers = st.sampled_from([0, 1, -1, 1.0, 0.1, -0.0, 1e23, 10**23, 2**53 + 1, float(2**53), 1e400, float("nan")])
scalars = st.one_of(st.none(), st.booleans(), numbers, keys)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(keys, inner, max_size=2)),
    max_leaves=4,
)
metadata = st.dictionaries(keys, values, max_size=3)
named = count(1)


def lists(
    store: Store, thread_id: str, wanted: Any, limit: int | None = None
) -> tuple[list[int], list[int], list[str]]:
    with store.reading() as reader:
        head = reader.newest_seq(thread_id, "")
        history = reader.history(HistoryQuery(thread_id, filter=wanted, limit=limit))
        line = reader.history(HistoryQuery(thread_id, filter=wanted, limit=limit, line_from=head))
        threads = [row.thread_id for row in reader.threads(ThreadsQuery(filter=wanted))]
    return [row.seq for row in history], [row.seq for row in line], [name for name in threads if name == thread_id]


@settings(max_examples=40)
@given(data=st.data())
def test_a_filter_selects_the_same_in_every_body_and_can_only_narrow(
    stores: tuple[Store, Store], data: st.DataObject
) -> None:
    """INV-14: no key and no value widens a result, and none means another thing elsewhere."""
    told = data.draw(st.lists(metadata, min_size=1, max_size=4))
    wanted = data.draw(st.one_of(metadata, st.sampled_from(told), st.sampled_from([{"step": 1}, {"source": "loop"}])))
    more = data.draw(metadata)
    thread_id = f"thread-{next(named)}"
    for store in stores:
        drive = started(store, thread_id, run_id=f"run of {thread_id}")
        for given_ in told:
            drive.commit(metadata=json.dumps(given_))
    one, other = (lists(store, thread_id, wanted) for store in stores)
    assert one == other
    everything, _, _ = lists(stores[1], thread_id, None)
    assert [seq for seq in everything if seq in other[0]] == other[0]
    history, line, threads = lists(stores[1], thread_id, {**more, **wanted})
    assert {*history} <= {*other[0]}
    assert {*line} <= {*other[1]}
    assert {*threads} <= {*other[2]}
    assert lists(stores[1], thread_id, wanted, limit=1)[0] == other[0][:1]


# -- texts ------------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
near_nul = st.text(st.sampled_from("\0\1\2a"), max_size=5)


@given(found=st.lists(st.one_of(texts, near_nul), min_size=2, max_size=2))
def test_texts_are_stored_exactly_apart_and_in_their_order(found: list[str]) -> None:
    one, other = found
    assert loaded(stored(one)) == one
    assert "\0" not in stored(one)
    assert (stored(one) < stored(other)) == (one < other)
    assert (stored(one) == stored(other)) == (one == other)


def test_a_NUL_in_a_text_comes_back_as_it_was_from_every_body(stores: tuple[Store, Store]) -> None:
    for store in stores:
        started(store, "with NUL", run_id="run\0\1").commit(source="a\0b\1c")
        with store.reading() as reader:
            row, run = reader.newest("with NUL", ""), reader.run("run\0\1")
            assert row is not None
            assert run is not None
            assert (row.source, row.run_id, run.run_id) == ("a\0b\1c", "run\0\1", "run\0\1")
        assert list(store.verify()) == []
