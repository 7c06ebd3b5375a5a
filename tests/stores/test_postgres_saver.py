"""The saver on PostgreSQL: how it is opened, set up and closed, what it refuses, and what it never holds or tells."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import psycopg
import psycopg_pool
import pytest

from stepwell import (
    END,
    START,
    AsyncPostgresSaver,
    Encryption,
    PostgresSaver,
    PostgresStore,
    SaverClosedError,
    StateGraph,
    StoreError,
    UnsupportedStorageError,
)
from stepwell.errors import (
    DatabaseEncryptedError,
    DatabaseUnavailableError,
    SchemaMigrationError,
    SchemaNewerError,
    SchemaOutdatedError,
)
from stepwell.stores.postgres.schema import SCRIPTS
from stepwell.stores.shared.migrating import Migration, of_later_release
from tests.stores.binaries import VERSIONS
from tests.stores.servers import Server, shared

T1 = {"configurable": {"thread_id": "t1"}}


class Count(TypedDict):
    n: int


def counter(saver: PostgresSaver, node: Any = lambda state: {"n": state["n"] + 1}) -> Any:
    graph = StateGraph(Count)
    graph.add_node("add", node)
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    return graph.compile(checkpointer=saver)


@pytest.fixture(scope="session")
def server() -> Server:
    return shared(VERSIONS[-1])


@pytest.fixture
def fresh(server: Server, worker_id: str) -> Iterator[str]:
    """How to connect to a database in which nobody has set anything up."""
    name = f"fresh_{worker_id}"
    with server.admin() as admin:
        admin.execute(f"create database {name}")
        yield server.conninfo(name)
        admin.execute(f"drop database {name} with (force)")


def test_one_saver_serves_sync_and_async_callers_and_several_loops(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver:
        graph = counter(saver)
        assert graph.invoke({"n": 1}, T1) == {"n": 2}
        for n in range(2):
            assert asyncio.run(graph.ainvoke({"n": n}, T1)) == {"n": n + 1}
        assert len(list(saver.runs("t1"))) == 3
        assert asyncio.run(saver.aget_tuple(T1)) == saver.get_tuple(T1)
        assert list(saver.store.verify()) == []
    with pytest.raises(SaverClosedError):
        graph.invoke({"n": 1}, T1)
    with pytest.raises(SaverClosedError):
        saver.get_tuple(T1)


def test_a_block_closes_it_and_the_async_name_is_the_same_class(conninfo: str) -> None:
    async def main() -> None:
        async with AsyncPostgresSaver.from_conn_string(conninfo) as saver:
            await saver.asetup()
            assert await counter(saver).ainvoke({"n": 1}, T1) == {"n": 2}
        with pytest.raises(SaverClosedError):
            await saver.aget_tuple(T1)

    asyncio.run(main())
    assert AsyncPostgresSaver is PostgresSaver


def test_setup_by_eight_at_once_makes_one_schema(fresh: str) -> None:
    savers = [PostgresSaver(fresh) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(PostgresSaver.migrate_schema, savers))
    schema = savers[0].read_schema()
    assert schema.pending == ()
    assert sorted(made.version for each in done for made in each) == list(range(1, schema.newest + 1))
    assert counter(savers[3]).invoke({"n": 1}, T1) == {"n": 2}
    for saver in savers:
        saver.setup()
        saver.close()


def test_without_setup_it_says_what_to_call(fresh: str) -> None:
    with PostgresSaver(fresh) as saver:
        with pytest.raises(UnsupportedStorageError, match=r"call setup\(\) once"):
            saver.get_tuple(T1)
        with pytest.raises(UnsupportedStorageError, match=r"call setup\(\) once"):
            counter(saver).invoke({"n": 1}, T1)
        saver.setup()
        assert counter(saver).invoke({"n": 1}, T1) == {"n": 2}


def test_with_encryption_nothing_is_written_in_plain_whoever_made_the_tables(fresh: str) -> None:
    encryption = Encryption({"one": b"k" * 32})
    with PostgresSaver(fresh, encryption=encryption) as saver:
        saver.setup()
        assert counter(saver).invoke({"n": 1}, T1) == {"n": 2}
        assert counter(saver).get_state(T1).values == {"n": 2}
        with PostgresStore(saver) as items:
            items.put(("a",), "k", {"secret": 1})
            assert items.search(("a",), filter={"secret": 1})[0].key == "k"
        assert list(saver.store.verify()) == []
    with PostgresSaver(fresh) as saver, pytest.raises(DatabaseEncryptedError):
        saver.get_tuple(T1)
    with PostgresStore(fresh, encryption=encryption) as items:
        assert items.search(("a",), filter={"secret": 2}) == []


def test_two_schemas_of_a_database_know_nothing_of_each_other(fresh: str) -> None:
    with PostgresSaver(fresh, schema="one") as one, PostgresSaver(fresh, schema="Two-2$") as two:
        one.setup()
        two.setup()
        counter(one).invoke({"n": 1}, T1)
        assert two.get_tuple(T1) is None
        assert one.store.is_same(two.store) is False
        assert list(one.store.verify()) == []
    with psycopg.connect(fresh) as connection:
        found = connection.execute(
            "select distinct schemaname from pg_tables where schemaname !~ '^(pg_|information_)'"
        )
        assert set(found) == {("one",), ("Two-2$",)}


def test_a_migration_that_fails_leaves_nothing(fresh: str) -> None:
    with psycopg.connect(fresh, autocommit=True) as connection, PostgresSaver(fresh) as saver:
        connection.execute("create schema stepwell; create type stepwell.items as (x int)")
        with pytest.raises(SchemaMigrationError):
            saver.setup()
        found = connection.execute("select count(*) from pg_class where relname = 'threads'").fetchone()
        assert found == (0,)
        connection.execute("drop type stepwell.items")
        saver.setup()
        assert saver.read_schema().pending == ()


def test_a_schema_of_another_program_or_a_newer_release_is_refused(fresh: str) -> None:
    with psycopg.connect(fresh, autocommit=True) as connection:
        connection.execute("create table public.theirs (x int)")
        with PostgresSaver(fresh, schema="public") as saver, pytest.raises(UnsupportedStorageError, match="another"):
            saver.setup()
        with PostgresSaver(fresh) as saver:
            saver.setup()
            connection.execute("update stepwell.meta set value = '999' where name = 'schema_version'")
            with pytest.raises(SchemaNewerError):
                saver.setup()
            with PostgresSaver(fresh) as other, pytest.raises(SchemaNewerError):
                other.get_tuple(T1)


def test_an_older_schema_is_refused_until_it_is_migrated(fresh: str) -> None:
    later = Migration(0, "later", "alter table stepwell.threads add column note text")
    with PostgresSaver(fresh) as saver:
        saver.setup()
        of_later_release[SCRIPTS] = (later._replace(version=saver.read_schema().newest + 1),)
    try:
        with PostgresSaver(fresh) as saver:
            with pytest.raises(SchemaOutdatedError):
                saver.get_tuple(T1)
            saver.setup()
            assert saver.get_tuple(T1) is None
    finally:
        del of_later_release[SCRIPTS]


def test_a_role_that_may_not_create_schemas_uses_the_one_it_was_given(fresh: str) -> None:
    with psycopg.connect(fresh, autocommit=True) as connection:
        connection.execute("drop role if exists tenant; create role tenant login; create schema ours")
        connection.execute("grant usage, create on schema ours to tenant")
        as_tenant = psycopg.conninfo.make_conninfo(fresh, user="tenant")
        with PostgresSaver(as_tenant) as saver, pytest.raises(SchemaMigrationError, match="permission denied"):
            saver.setup()
        with PostgresSaver(as_tenant, schema="ours") as saver:
            saver.setup()
            assert counter(saver).invoke({"n": 1}, T1) == {"n": 2}
        connection.execute("revoke select on ours.checkpoints from tenant")
        with PostgresSaver(as_tenant, schema="ours") as saver, pytest.raises(StoreError, match="may not read"):
            saver.get_tuple(T1)
        connection.execute("drop owned by tenant; drop role tenant")


def test_a_pool_of_the_users_is_used_as_it_is_and_stays_open(conninfo: str) -> None:
    with psycopg_pool.ConnectionPool(conninfo, min_size=1, max_size=1, open=True) as pool:
        with PostgresSaver(pool=pool) as saver:
            assert counter(saver).invoke({"n": 1}, T1) == {"n": 2}
        with pool.connection() as connection:
            assert connection.autocommit is False
            assert connection.execute("select count(*) from stepwell.threads").fetchone() == (1,)


def test_no_connection_is_held_while_a_node_runs(conninfo: str) -> None:
    with PostgresSaver(conninfo, min_size=0, max_size=1) as saver:

        def look(state: Count) -> Count:
            with psycopg.connect(conninfo, autocommit=True) as connection:
                found = connection.execute(
                    "select count(*) from pg_stat_activity where application_name = 'stepwell'"
                    " and datname = current_database() and state like 'idle in%%'"
                )
                assert found.fetchone() == (0,)
            assert saver.get_tuple(T1) is not None
            return {"n": state["n"] + 1}

        assert counter(saver, look).invoke({"n": 1}, T1) == {"n": 2}


def test_a_snapshot_shows_one_moment_and_ends_with_its_block(conninfo: str) -> None:
    with PostgresSaver(conninfo) as saver:
        graph = counter(saver)
        graph.invoke({"n": 1}, T1)
        with saver.store.reading() as reader:
            before = reader.thread("t1")
            graph.invoke({"n": 5}, T1)
            assert reader.thread("t1") == before
            assert reader.everything("t1")[0][-1].seq == before.head_seq if before else False
        with pytest.raises(SaverClosedError):
            reader.thread("t1")


def test_connections_that_were_cut_while_idle_are_replaced_without_a_word(
    conninfo: str, caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresSaver(conninfo) as saver, psycopg.connect(conninfo, autocommit=True) as connection:
        graph = counter(saver)
        for n in range(3):
            assert graph.invoke({"n": n}, T1) == {"n": n + 1}
            connection.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where application_name = 'stepwell' and datname = current_database()"
            )
            assert graph.get_state(T1).values == {"n": n + 1}
            connection.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                " where application_name = 'stepwell' and datname = current_database()"
            )
            saver.vacuum()
    assert caplog.messages == []


def test_a_role_that_may_not_vacuum_is_told(fresh: str) -> None:
    """PostgreSQL only warns, and does nothing."""
    with psycopg.connect(fresh, autocommit=True) as connection, PostgresSaver(fresh) as owner:
        owner.setup()
        connection.execute("drop role if exists guest; create role guest login")
        connection.execute(
            "grant usage on schema stepwell to guest; grant select on all tables in schema stepwell to guest"
        )
        as_guest = psycopg.conninfo.make_conninfo(fresh, user="guest")
        for full in (False, True):
            with PostgresSaver(as_guest) as saver, pytest.raises(StoreError, match="left 13 tables as they are"):
                saver.vacuum(full=full)
        owner.vacuum()
        connection.execute("drop owned by guest; drop role guest")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conninfo": "dbname=x", "pool": object()},
        {"conninfo": object()},
        {"pool": object()},
        {"conninfo": "postgresql://ann:hunter2@[nowhere/x"},
        {"conninfo": "nonsense hunter2"},
        {"conninfo": "dbname=x", "min_size": 3, "max_size": 2},
        {"conninfo": "dbname=x", "schema": "a.b"},
        {"conninfo": "dbname=x", "schema": 'x"; drop table threads; --'},
        {"conninfo": "dbname=x", "schema": ""},
        {"conninfo": "dbname=x", "schema": "pg_temp"},
        {"conninfo": "dbname=x", "schema": "a" * 64},
    ],
)
def test_what_cannot_be_opened_is_refused_before_anything_is_connected(options: Any) -> None:
    with pytest.raises(UnsupportedStorageError) as caught:
        PostgresSaver(**options)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UnsupportedStorageError):
        PostgresStore(options.pop("conninfo", None), **options)


def test_an_async_pool_is_refused_by_name() -> None:
    class AsyncPool:
        async def getconn(self) -> None: ...

        async def putconn(self, connection: object) -> None: ...

    with pytest.raises(UnsupportedStorageError, match="AsyncPool"):
        PostgresSaver(pool=AsyncPool())


def test_a_server_that_does_not_answer_is_named_without_user_and_password() -> None:
    with PostgresSaver("postgresql://ann:hunter2@127.0.0.1:1/x?connect_timeout=2") as saver:
        with pytest.raises(DatabaseUnavailableError, match=r"host=127\.0\.0\.1 port=1 dbname=x") as caught:
            saver.setup()
        with pytest.raises(DatabaseUnavailableError):
            saver.get_tuple(T1)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(vars(caught.value))


def test_a_database_that_is_not_in_UTF8_is_refused(server: Server, worker_id: str) -> None:
    name = f"latin_{worker_id}"
    with server.admin() as admin:
        admin.execute(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
        with PostgresSaver(server.conninfo(name)) as saver, pytest.raises(UnsupportedStorageError, match="UTF8"):
            saver.setup()
        admin.execute(f"drop database {name}")


def test_without_psycopg_the_rest_works_and_the_error_names_what_to_install() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import stepwell; stepwell.InMemorySaver()\n"
        "try: stepwell.PostgresSaver('dbname=x')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'stepwell[postgres]'" in done.stdout
