"""The fixtures that LangGraph's tests ask for, under their names: the conftest of the sliced tests.

The names are looked up in the package put in front as `langgraph`; one that is not there fails who asks for it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to judge the real LangGraph by mistake."""
    found = importlib.import_module("langgraph").__file__ or ""
    expected = os.environ["COMPAT_PACKAGE"]
    if not Path(found).is_relative_to(expected):
        pytest.exit(f"langgraph was imported from {found} instead of {expected}", returncode=3)


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    return mocker.patch("uuid.uuid4", side_effect=(UUID(int=number, version=4) for number in range(10_000)))


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["sqlite", "memory"])
def cache(request: pytest.FixtureRequest) -> Any:
    if request.param == "sqlite":
        return _named("langgraph.cache.sqlite", "SqliteCache")(path=":memory:")
    return _named("langgraph.cache.memory", "InMemoryCache")()


@pytest.fixture
def sync_store() -> Any:
    return _named("langgraph.store.memory", "InMemoryStore")()


@pytest.fixture
def async_store() -> Any:
    return _named("langgraph.store.memory", "InMemoryStore")()


@pytest.fixture(params=["memory", "sqlite"])
def sync_checkpointer(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "memory":
        yield _named("langgraph.checkpoint.memory", "InMemorySaver")()
    else:
        with _named("langgraph.checkpoint.sqlite", "SqliteSaver").from_conn_string(":memory:") as saver:
            yield saver


@pytest.fixture(params=["memory", "sqlite_aio"])
async def async_checkpointer(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield _named("langgraph.checkpoint.memory", "InMemorySaver")()
    else:
        async with _named("langgraph.checkpoint.sqlite.aio", "AsyncSqliteSaver").from_conn_string(":memory:") as saver:
            yield saver
