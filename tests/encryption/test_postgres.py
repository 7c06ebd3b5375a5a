"""The same on PostgreSQL: nothing to be read in any table, one key a thread, and nobody is connected to too early."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from stepwell import DatabaseEncryptedError, Encryption, PostgresSaver, PostgresStore, WrongKeyError
from stepwell.store import Store
from stepwell.stores.encrypted.unopened import UnopenedStore
from tests.encryption.conftest import begin, talk
from tests.encryption.life import WORDS, live
from tests.runtime.graphs import thread
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database


@pytest.fixture
def conninfo(worker_id: str) -> str:
    return empty_database(VERSIONS[-1], worker_id)


def read_off(conninfo: str) -> set[str]:
    """Return the words that can be read in any table."""
    found = b""
    with psycopg.connect(conninfo) as connection:
        named = "select table_name from information_schema.tables where table_schema = 'stepwell'"
        for (table,) in connection.execute(named).fetchall():
            for row in connection.execute(f'select * from stepwell."{table}"').fetchall():
                found += b" ".join(each if isinstance(each, bytes) else str(each).encode() for each in row)
    return {word for word in WORDS if word.encode() in found}


def test_nothing_that_was_given_or_made_can_be_read_in_any_table(conninfo: str, worker_id: str, key: bytes) -> None:
    with PostgresSaver(conninfo) as plain, PostgresStore(plain) as items:
        plain.setup()
        state = live(plain, items, "sync")
        assert read_off(conninfo) == set(WORDS)
    again = empty_database(VERSIONS[-1], worker_id)
    with PostgresSaver(again, encryption=Encryption({"k": key})) as saver, PostgresStore(saver) as items:
        saver.setup()
        assert live(saver, items, "sync") == state
        assert read_off(again) == set()
        assert list(saver.store.verify()) == []
        new = Encryption({"k": key, "new": Encryption.new_key()}, current="new")
        with PostgresSaver(again, encryption=new) as other:
            assert other.rekey().rewrapped > 3
            assert talk(other).get_state(thread("later")).values == {}
            assert list(other.store.verify()) == []


def test_the_keys_are_looked_at_when_the_database_is_first_used(conninfo: str, key: bytes) -> None:
    with PostgresSaver(conninfo, encryption=Encryption({"k": key})) as saver:
        saver.setup()
        begin(saver, "t")
    wrong = PostgresSaver(conninfo, encryption=Encryption({"k": Encryption.new_key()}))
    with wrong, pytest.raises(WrongKeyError):
        list(wrong.threads())
    with PostgresSaver(conninfo) as locked:
        (listed,) = locked.threads()
        assert (listed.thread_id, listed.status) == ("t", "paused")
        assert list(locked.store.verify()) == []
        with pytest.raises(DatabaseEncryptedError):
            talk(locked).invoke({"log": []}, thread("new"))
        locked.delete_thread("t")


def test_threads_that_begin_at_once_through_small_pools_have_one_key_each(conninfo: str, key: bytes) -> None:
    """One connection each: a key is looked for on the connection that reads, never on a second one beside it."""
    encryption: Any = Encryption({"k": key})
    with (
        PostgresSaver(conninfo, encryption=encryption, min_size=1, max_size=2) as one,
        PostgresSaver(conninfo, encryption=encryption, min_size=1, max_size=2) as two,
        ThreadPoolExecutor(8) as pool,
    ):
        one.setup()
        graphs = [talk(one), talk(two)]
        for number in range(4):
            at = thread(f"t{number}")
            sent = [pool.submit(graph.signal, at, "k", index) for index, graph in enumerate(graphs * 2)]
            begun = [pool.submit(graph.invoke, {"log": []}, at, on_pending="discard") for graph in graphs]
            assert len({future.result() for future in sent}) == 4
            assert any(future.exception() is None for future in begun)
        assert list(one.store.verify()) == list(two.store.verify()) == []


def test_a_repair_writes_nothing_in_plaintext(conninfo: str, key: bytes) -> None:
    with PostgresSaver(conninfo, encryption=Encryption({"k": key})) as saver:
        saver.setup()
        begin(saver, "t")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("update stepwell.runs set error = 'altered'")
        assert [table for table, _ in saver.repair("t").made_anew] == ["runs"]
        assert saver.verify().is_sound
        assert [run.status for run in saver.runs("t")] == ["failed"]


def test_an_unopened_store_passes_every_verb_through_what_it_is_opened_as() -> None:
    verbs = {name for name in vars(Store) if not name.startswith("_")}
    assert verbs - vars(UnopenedStore).keys() == set()
