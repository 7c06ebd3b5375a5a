"""Processes that die while a thread gets its first key, or while keys are wrapped anew: no row is without its key."""

import contextlib
from typing import Any

import pytest

from stepwell import Encryption, points
from stepwell.savers.keeping import KeepingSaver
from stepwell.stores.encrypted import wrapping
from stepwell.stores.encrypted.store import EncryptedStore
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing import SimulatedCrash
from tests.encryption.conftest import talk
from tests.runtime.deaths import Deaths
from tests.runtime.graphs import thread

PAGE = 5
FIRST = (points.DATA_KEY_WRAPPED, points.ADMISSION, points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE)


class Process(KeepingSaver):
    """A saver of a process that begins on a database which others have left: it knows no data key."""

    def __init__(self, database: SqliteStore, deaths: Deaths, encryption: Encryption) -> None:
        super().__init__(EncryptedStore(database, encryption, deaths.clock))


@pytest.fixture
def database(deaths: Deaths) -> SqliteStore:
    return SqliteStore(clock=deaths.clock)


def sound(saver: Any) -> bool:
    """Tell whether every row verifies and decrypts."""
    return list(saver.store.verify()) == []


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", FIRST)
def test_a_thread_whose_first_process_died_has_the_key_of_its_rows_or_no_row(
    point: str, nth: int, database: SqliteStore, deaths: Deaths, key: bytes
) -> None:
    """INV-1 for the key: durable with the first row that needs it."""
    encryption = Encryption({"k": key})
    first = Process(database, deaths, encryption)
    deaths.dies_at(point, nth)
    with contextlib.suppress(SimulatedCrash):
        talk(first).invoke({"log": ["in"]}, thread())
    deaths.revive()
    second = Process(database, deaths, encryption)
    assert sound(second)
    with second.store.reading() as reader:
        begun = reader.thread("t") is not None
        assert (reader.key("t") is not None) is begun
    graph = talk(second)
    graph.invoke(None if begun and graph.get_state(thread()).next else {"log": ["in"]}, thread())
    assert graph.get_state(thread()).values == {"log": ["in", "a"]}
    assert sound(second)


@pytest.mark.parametrize("point", [points.DATA_KEY_WRAPPED, points.BEGUN, points.WRITTEN, points.DURABLE])
def test_a_message_to_a_thread_that_has_not_begun_comes_with_its_key_or_not_at_all(
    point: str, database: SqliteStore, deaths: Deaths, key: bytes
) -> None:
    encryption = Encryption({"k": key})
    first = Process(database, deaths, encryption)
    deaths.dies_at(point)
    with contextlib.suppress(SimulatedCrash):
        talk(first).signal(thread(), "k", "v", id="s")
    deaths.revive()
    second = Process(database, deaths, encryption)
    with second.store.reading() as reader:
        assert (reader.key("t") is not None) is bool(reader.inbox("t"))
    talk(second).signal(thread(), "k", "v", id="s")
    with second.store.reading() as reader:
        assert [row.key for row in reader.inbox("t")] == ["k"]
    assert sound(second)


@pytest.mark.parametrize("point", [points.DATA_KEY_WRAPPED, points.BEGUN, points.WRITTEN, points.DURABLE])
def test_a_database_whose_first_process_died_opens(
    point: str, database: SqliteStore, deaths: Deaths, key: bytes
) -> None:
    deaths.dies_at(point)
    with pytest.raises(SimulatedCrash):
        Process(database, deaths, Encryption({"k": key}))
    deaths.revive()
    second = Process(database, deaths, Encryption({"k": key}))
    talk(second).invoke({"log": []}, thread())
    assert sound(second)


@pytest.mark.parametrize("point", [points.BEGUN, points.WRITTEN, points.DURABLE, points.KEYS_REWRAPPED])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_rotation_that_died_is_gone_on_with(
    point: str, nth: int, database: SqliteStore, deaths: Deaths, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page; whatever it had done, every key opens with one of the two, and in the end with the new one."""
    monkeypatch.setattr(wrapping, "PAGE", PAGE)
    new = Encryption.new_key()
    both = Encryption({"k": key, "new": new}, current="new")
    saver: Any = Process(database, deaths, Encryption({"k": key}))
    for number in range(PAGE + 3):
        talk(saver).signal(thread(f"t{number}"), "k", "v")
    deaths.dies_at(point, nth)
    with pytest.raises(SimulatedCrash):
        Process(database, deaths, both).rekey()
    deaths.revive()
    assert sound(Process(database, deaths, both))
    done = Process(database, deaths, both).rekey()
    assert done.rewrapped + done.current == PAGE + 4
    assert not done.failed
    assert (done.rewrapped < PAGE + 4) is (point not in (points.BEGUN, points.WRITTEN) or nth > 1)
    alone = Process(database, deaths, Encryption({"new": new}))
    with alone.store.reading() as reader:
        assert [row.key for row in reader.inbox("t1")] == ["k"]
