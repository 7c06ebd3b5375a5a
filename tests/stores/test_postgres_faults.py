"""Faults of others, on PostgreSQL, by their ids."""

import asyncio
import threading
import tomllib
from pathlib import Path
from typing import Any, TypedDict
from uuid import UUID

import psycopg_pool
import pytest

from stepwell import START, PostgresSaver, PostgresStore, SaverClosedError, StateGraph, StoreError
from stepwell.errors import InvalidConfigError
from stepwell.stores.postgres.schema import SCRIPTS
from stepwell.stores.shared.migrating import known_migrations

T1 = {"configurable": {"thread_id": "t1"}}
LONG = 5000


class Count(TypedDict):
    n: int


def counter(saver: PostgresSaver) -> Any:
    graph = StateGraph(Count).add_node("add", lambda state: {"n": state["n"] + 1}).add_edge(START, "add")
    return graph.compile(checkpointer=saver, name="counter")


class Proactor(asyncio.SelectorEventLoop):
    """A loop that watches no sockets of others, as the default one of Windows."""

    def add_reader(self, *_: Any) -> None:  # type: ignore[override]
        raise NotImplementedError

    def add_writer(self, *_: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_H4_a_saver_made_outside_of_any_loop_serves_two_at_once(conninfo: str) -> None:
    saver = PostgresSaver(conninfo)
    graph, both = counter(saver), threading.Barrier(2)
    found: list[Any] = []

    async def go(name: str) -> Any:
        both.wait(30)
        return await graph.ainvoke({"n": 1}, {"configurable": {"thread_id": name}})

    threads = [threading.Thread(target=lambda name=name: found.append(asyncio.run(go(name)))) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"n": 2}] * 2
    saver.close()


def test_H5_a_saver_used_behind_its_block_says_how_long_it_lives(conninfo: str) -> None:
    with PostgresSaver.from_conn_string(conninfo) as saver:
        graph = counter(saver)
    with pytest.raises(SaverClosedError, match="Keep it open as long as graphs use it"):
        graph.invoke({"n": 1}, T1)
    lasting = PostgresSaver(conninfo)
    assert counter(lasting).invoke({"n": 1}, T1) == {"n": 2}
    lasting.close()


def test_H7_a_loop_that_cannot_watch_sockets_serves_as_well(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver, asyncio.Runner(loop_factory=Proactor) as runner:
        assert runner.run(counter(saver).ainvoke({"n": 1}, T1)) == {"n": 2}
        assert runner.run(saver.aget_tuple(T1)) is not None


def test_H8_the_extra_brings_a_driver_that_needs_no_library_of_the_system() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    [wanted] = project["project"]["optional-dependencies"]["postgres"]
    assert wanted.startswith("psycopg[binary")


def test_I5_setup_needs_no_statement_of_its_own_and_works_on_a_default_pool(conninfo: str) -> None:
    """Nothing is built concurrently, so a migration is one transaction, beside whatever else a role creates."""
    assert all("concurrently" not in made.script.lower() for made in known_migrations(SCRIPTS))
    with psycopg_pool.ConnectionPool(conninfo, min_size=1, max_size=2) as pool, PostgresSaver(pool=pool) as saver:
        saver.setup()
        assert counter(saver).invoke({"n": 1}, T1) == {"n": 2}
        with pool.connection() as connection:
            assert not connection.autocommit


def test_I7_a_thread_id_that_is_too_long_is_refused_before_anything_is_written(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver:
        graph = counter(saver)
        with pytest.raises(InvalidConfigError, match="thread_id has 5000 bytes"):
            graph.invoke({"n": 1}, {"configurable": {"thread_id": "x" * LONG}})
        longest = {"configurable": {"thread_id": "ä" * 256}}
        assert graph.invoke({"n": 1}, longest) == {"n": 2}
        assert next(iter(saver.threads())).thread_id == "ä" * 256


def test_I7_an_item_whose_key_is_too_long_says_so_and_leaves_nothing(conninfo: str) -> None:
    with PostgresStore(conninfo) as store:
        key = "".join(chr(97 + n * n % 26) + str(n) for n in range(LONG))
        with pytest.raises(StoreError, match="too long"):
            store.put(("users",), key, {"a": 1})
        store.put(("users",), "short", {"a": 1})
        assert [item.key for item in store.search(("users",))] == ["short"]


def test_I8_an_id_is_one_key_whatever_form_it_comes_in(conninfo: str) -> None:
    given = UUID("12345678-1234-5678-1234-567812345678")
    with PostgresSaver(conninfo) as saver:
        graph = counter(saver)
        graph.invoke({"n": 1}, {"configurable": {"thread_id": given}})
        assert graph.get_state({"configurable": {"thread_id": str(given)}}).values == {"n": 2}
