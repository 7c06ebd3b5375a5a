"""The store contract, kept in memory."""

import pytest

from stepwell.clock import Clock
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite import *  # noqa: F403
from stepwell.testing.store_suite.fixtures import StoreFactory


@pytest.fixture
def store_factory() -> StoreFactory:
    def make(clock: Clock) -> SqliteStore:
        return SqliteStore(":memory:", clock=clock)

    return make


def test_memory_never_blocks_a_loop() -> None:
    store = SqliteStore()
    assert not store.blocking
    store.close()
