"""The store contract, kept in a file, and shared by two stores: INV-1, INV-2, INV-3, INV-9, INV-14."""

from pathlib import Path

import pytest

from stepwell.clock import Clock
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite import *  # noqa: F403
from stepwell.testing.store_suite.fixtures import StoreFactory
from stepwell.testing.store_suite.shared import TestOneHost, TestTwoStores, other

__all__ = ["TestOneHost", "TestTwoStores", "other"]


@pytest.fixture
def store_factory(tmp_path: Path) -> StoreFactory:
    def make(clock: Clock) -> SqliteStore:
        return SqliteStore(tmp_path / "threads.db", clock=clock)

    return make


def test_a_file_blocks_a_loop(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "threads.db")
    assert store.blocking
    store.close()
