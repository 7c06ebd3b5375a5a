"""Savers and item stores as users open them: what is refused, that nothing is left open, and what is closed says so."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    AsyncPostgresSaver,
    AsyncPostgresStore,
    AsyncSqliteSaver,
    Encryption,
    InMemorySaver,
    InMemoryStore,
    InvalidConfigError,
    InvalidItemError,
    PostgresSaver,
    PostgresStore,
    SaverClosedError,
    SqliteSaver,
    SqliteStore,
    UnknownThreadError,
    UnsupportedStorageError,
)
from stepwell.stores.postgres.pool import OwnConnections
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database


@pytest.fixture(scope="module")
def conninfo(worker_id: str) -> str:
    return empty_database(VERSIONS[-1], worker_id)


def openings(folder: Path, conninfo: str) -> list[Callable[[], Any]]:
    return [
        lambda: SqliteSaver(folder / "threads.db"),
        lambda: SqliteStore(folder / "items.db"),
        lambda: PostgresSaver(conninfo),
        lambda: PostgresStore(conninfo),
    ]


def test_what_is_closed_is_not_set_up_or_entered_again(tmp_path: Path, conninfo: str) -> None:
    for opening in openings(tmp_path, conninfo):
        opened = opening()
        opened.setup()
        opened.close()
        opened.close()
        for again in (opened.setup, opened.__enter__, lambda: asyncio.run(opened.asetup())):  # noqa: B023
            with pytest.raises(SaverClosedError, match="Keep it open as long as graphs use it"):
                again()


def test_setup_may_be_awaited_as_langgraphs_async_savers_have_it(tmp_path: Path, conninfo: str) -> None:
    async def moved() -> None:
        async with AsyncPostgresSaver.from_conn_string(conninfo) as saver:
            await saver.setup()
        async with AsyncPostgresStore.from_conn_string(conninfo) as store:
            await store.setup()
            await store.aput(("a",), "k", {"v": 1})
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db"), ttl=timedelta(days=1)) as saver:
            await saver.setup()
        keys = Encryption({"k": Encryption.new_key()})
        async with SqliteStore.from_conn_string(str(tmp_path / "items.db"), encryption=keys) as store:
            await store.setup()

    asyncio.run(moved())


@pytest.mark.parametrize(
    "sizes", [{"max_size": "x"}, {"max_size": 2.5}, {"min_size": None, "max_size": 0}, {"max_size": True}]
)
def test_a_pool_of_no_size_is_refused(sizes: Any) -> None:
    with pytest.raises(UnsupportedStorageError, match="A pool has 0 <= min_size <= max_size"):
        PostgresSaver("host=/nowhere", **sizes)


def test_a_pool_smaller_than_what_usually_stays_open_need_not_say_so() -> None:
    assert OwnConnections("host=/nowhere", max_size=1)._min_size == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ttl": 5}, "ttl is a"),
        ({"on_unknown_type": "x"}, "on_unknown_type is"),
        ({"compress_above": -1}, "compress_above"),
    ],
)
def test_a_wrong_option_is_told_before_the_file_is_made(tmp_path: Path, options: Any, told: str) -> None:
    with pytest.raises(InvalidConfigError, match=told):
        SqliteSaver(tmp_path / "threads.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_places_and_options_that_are_none_are_refused_by_name() -> None:
    anything: Any = "x"
    with pytest.raises(UnsupportedStorageError, match="holds NUL"):
        SqliteSaver("a\0b")
    with pytest.raises(InvalidConfigError, match="max_bytes is a number of bytes"):
        InMemorySaver(max_bytes=anything)
    with pytest.raises(InvalidItemError, match="ttl= is a dict"):
        InMemoryStore(ttl=anything)


def test_what_is_no_thread_or_run_id_is_refused_and_never_no_such_thing() -> None:
    wrong: Any
    with InMemorySaver() as saver:
        for wrong in (5, None, "", b"x"):
            for ask in (
                lambda given: saver.get_run(given),
                lambda given: saver.events(given),
                lambda given: saver.delete_for_runs([given], missing_ok=True),
            ):
                with pytest.raises(InvalidConfigError, match="a run id is"):
                    ask(wrong)
        for wrong in (set("ab"), (each for each in "ab")):
            with pytest.raises(InvalidConfigError, match="an id, a list of ids or a filter"):
                saver.prune(wrong)
        wrong = 5
        with pytest.raises(InvalidConfigError, match="or several, not 5"):
            saver.threads(status=wrong)
        for wrong in (-1, "x", True):
            with pytest.raises(InvalidConfigError, match="limit is a number"):
                saver.stats(limit=wrong)
            with pytest.raises(InvalidConfigError, match="limit is a number"):
                saver.runs("t", limit=wrong)
        with pytest.raises(UnknownThreadError, match="no thread nobody"):
            saver.verify("nobody")
