"""The item store in memory (INV-14)."""

from collections.abc import Callable

import pytest

from stepwell import InMemoryStore
from stepwell.testing.item_suite import *  # noqa: F403


@pytest.fixture
def item_store_factory() -> Callable[..., InMemoryStore]:
    return lambda clock, **options: InMemoryStore(clock=clock, **options)


def test_two_stores_in_memory_share_nothing() -> None:
    with InMemoryStore() as one, InMemoryStore() as other:
        one.put(("a",), "k", {"n": 1})
        assert other.search(()) == []
