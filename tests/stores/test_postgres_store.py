"""The store contract on PostgreSQL, of both versions: the whole suite, two stores included."""

import pytest

from stepwell.clock import Clock
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.testing.store_suite import *  # noqa: F403
from stepwell.testing.store_suite.fixtures import StoreFactory
from stepwell.testing.store_suite.shared import TestManyHosts, TestTwoStores, other
from tests.stores.databases import lasting_connections

__all__ = ["TestManyHosts", "TestTwoStores", "other"]


@pytest.fixture
def store_factory(conninfo: str) -> StoreFactory:
    def make(clock: Clock) -> PostgresStore:
        return PostgresStore(lasting_connections(conninfo), clock=clock)

    return make
