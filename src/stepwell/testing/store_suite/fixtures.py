"""What every test of the suite is given: a clock set by hand, and a fresh store that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stepwell.clock import Clock
from stepwell.store import Store
from stepwell.testing.clock import FakeClock

StoreFactory = Callable[[Clock], Store]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(store_factory: StoreFactory, clock: FakeClock) -> Iterator[Store]:
    opened = store_factory(clock)
    yield opened
    opened.close()
