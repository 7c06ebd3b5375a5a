"""The store contract, kept by an encrypted store."""

import pytest

from stepwell import Encryption
from stepwell.clock import Clock
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing import store_suite
from stepwell.testing.store_suite import *  # noqa: F403
from stepwell.testing.store_suite.fixtures import StoreFactory
from tests.encryption.conforming import ConformingStore


@pytest.fixture
def store_factory() -> StoreFactory:
    key = Encryption.new_key()

    def make(clock: Clock) -> ConformingStore:
        return ConformingStore(SqliteStore(clock=clock), Encryption({"k": key}), clock)

    return make


class TestLifetime(store_suite.TestLifetime):  # type: ignore[no-redef]
    test_counts_tell_transactions_and_bytes = None  # type: ignore[assignment]  # bodies are longer: see test_costs.py
