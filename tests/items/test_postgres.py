"""The item store on PostgreSQL, of both versions (INV-14): the whole suite, and beside the threads of a saver."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import PostgresSaver, PostgresStore
from stepwell.testing.item_suite import *  # noqa: F403
from tests.items.test_filters_fuzz import test_a_result_set_can_only_narrow
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

__all__ = ["test_a_result_set_can_only_narrow"]


@pytest.fixture
def store(worker_id: str) -> Iterator[PostgresStore]:
    """What the fuzzed searches are asked of."""
    with PostgresStore(empty_database(VERSIONS[-1], worker_id)) as made:
        yield made


@pytest.fixture(params=VERSIONS)
def conninfo(request: pytest.FixtureRequest, worker_id: str) -> str:
    return empty_database(request.param, worker_id)


@pytest.fixture
def item_store_factory(conninfo: str) -> Callable[..., PostgresStore]:
    return lambda clock, **options: PostgresStore(conninfo, clock=clock, **options)


def test_a_store_made_of_a_saver_shares_its_connections(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver:
        with PostgresStore(saver) as store:
            store.setup()
            store.put(("a",), "k", {"n": 1})
            found: Any = store.get(("a",), "k")
            assert found.value == {"n": 1}
        assert saver.get_tuple({"configurable": {"thread_id": "1"}}) is None


def test_a_search_reads_on_in_pieces_and_in_order(conninfo: str) -> None:
    with PostgresStore(conninfo) as store:
        for n in range(70):
            store.put(("many",), f"k{n}", {"n": n})
        assert [item.value["n"] for item in store.search(("many",), limit=100)] == list(range(70))
        assert [item.value["n"] for item in store.search(("many",), filter={"n": {"$gte": 40}}, limit=3)] == [
            40,
            41,
            42,
        ]
