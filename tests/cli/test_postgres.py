"""The command line on PostgreSQL: every command that takes a file takes an address, and tells no password."""

from typing import Any

import psycopg
import pytest

from stepwell.savers.places import shown_place
from tests.cli.calls import Call
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database
from tests.stores.servers import shared


@pytest.fixture
def address(worker_id: str) -> str:
    """The address of an empty database, with a password in it that the server does not ask for."""
    empty_database(VERSIONS[-1], worker_id)
    folder = shared(VERSIONS[-1]).folder
    return f"postgresql://postgres:hunter2@/worker_{worker_id}?host={folder}&port=5432&sslpassword=hunter2"


def test_a_thread_on_a_server_is_run_looked_at_and_deleted(call: Call, address: str) -> None:
    told = []

    def on_server(*words: str, status: int = 0) -> Any:
        result = call(*words, "--db", address, status=status)
        told.append(result.output)
        return result

    on_server("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}')
    on_server("run", "flows.py:graph", "--thread", "asks", "--input", '{"n": 1}')
    assert "t" in on_server("threads").stdout
    for words in (("show", "t"), ("history", "t"), ("tree", "t"), ("runs", "t"), ("journal", "t"), ("effects",)):
        on_server(*words)
    on_server("copy", "t", "other")
    on_server("verify")
    on_server("verify", "--json")
    for words in (("stats",), ("stats", "t"), ("prune", "--all"), ("vacuum",)):
        on_server(*words)
        on_server(*words, "--json")
    on_server("migrate", "--check")
    on_server("migrate", "--json")
    on_server("delete", "other", "--yes")
    on_server("show", "nobody", status=3)
    assert "every row verifies" in "".join(told)
    assert "hunter2" not in "".join(told)


def test_a_database_without_tables_is_refused_with_the_command_that_makes_them(call: Call, address: str) -> None:
    bare = address.replace("/worker_", "/bare_worker_")
    with shared(VERSIONS[-1]).admin() as admin:
        admin.execute(f"create database {bare.partition('?')[0].rpartition('/')[2]}")
    refused = call("threads", "--db", bare, status=6).stderr
    assert "has no tables of Stepwell's" in refused
    assert "`stepwell migrate`" in refused
    call("migrate", "--db", bare)
    call("threads", "--db", bare)


def test_a_server_that_does_not_answer_is_exit_6_without_a_password(call: Call) -> None:
    result = call("threads", "--db", "postgresql://ann:hunter2@127.0.0.1:1/x?connect_timeout=2", status=6)
    assert "hunter2" not in result.output
    assert "port=1" in result.output


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("threads.db", "threads.db"),
        ("postgresql://ann:pw@db.example:5432/app", "postgresql://ann@db.example:5432/app"),
        ("postgres://:pw@db.example/app?sslmode=require&password=pw", "postgres://@db.example/app?sslmode=require"),
        ("postgresql://ann:p/w@db.example/app", "postgresql://"),
        ("postgresql://ann:p@w@db.example/app", "postgresql://"),
        ("postgresql://ann:p?w@db.example/app", "postgresql://"),
        ("postgresql://ann:p#w@db.example/app", "postgresql://"),
        ("postgresql:///app?passfile=/secret&user=ann", "postgresql:///app?user=ann"),
        ("postgresql:///app?host=/run/pg&port=5433", "postgresql:///app?host=/run/pg&port=5433"),
        ("postgresql:///app?host=%2Frun%2Fpg", "postgresql:///app?host=/run/pg"),
        ("postgresql://[pw", "postgresql://"),
    ],
)
def test_of_an_address_nothing_is_shown_that_may_be_a_secret(address: str, shown: str) -> None:
    assert shown_place(address) == shown


def test_a_schema_of_ones_own_is_named_with_the_address(call: Call, address: str) -> None:
    at, elsewhere = ("--db", address, "--schema", "ours"), ("--db", address)
    assert "schema version 1, from version 0" in call("migrate", *at).stderr
    told = call("run", "flows.py:graph", "--thread", "asks", "--input", '{"n": 1}', *at).stderr
    assert " --schema ours " in told
    assert "asks" in call("threads", *at).stdout
    assert "asks" not in call("threads", *elsewhere).stdout
    assert "a file has none" in call("threads", "--schema", "ours", status=2).stderr
    assert "a file has none" in call("migrate", "--schema", "ours", status=2).stderr


def test_the_repair_that_verify_names_holds_no_password_and_says_where(call: Call, address: str) -> None:
    call("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}', "--db", address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "update stepwell.checkpoints set step = 99 where seq = (select max(seq) from stepwell.checkpoints)"
        )
    for words in (("verify",), ("verify", "--json")):
        result = call(*words, "--db", address, "--schema", "stepwell", status=1)
        assert "repair t --db" in result.output
        assert "--schema stepwell" in result.output
        assert "hunter2" not in result.output
