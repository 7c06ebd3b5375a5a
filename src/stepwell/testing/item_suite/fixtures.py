"""What every test of the suite is given: a store by a clock set by hand, asked by its methods and their async twins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell.testing.clock import FakeClock

ADA, BOB = ("users", "ada"), ("users", "bob")
Factory = Callable[..., Any]


class Ask:
    """A store whose every method is called by its name, or by its async twin."""

    def __init__(self, store: Any, asynchronous: bool) -> None:
        self.store = store
        self._asynchronous = asynchronous

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if not self._asynchronous:
                return getattr(self.store, name)(*args, **options)

            async def main() -> Any:
                return await getattr(self.store, f"a{name}")(*args, **options)

            return asyncio.run(main())

        return call


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def item_store(item_store_factory: Factory, clock: FakeClock) -> Iterator[Any]:
    opened = item_store_factory(clock)
    yield opened
    opened.close()


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, item_store: Any) -> Ask:
    return Ask(item_store, request.param == "async")


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]
