"""What encryption costs, counted: no transaction, and one statement for the key of a thread. And of cached results."""

from pathlib import Path

import pytest

from stepwell import CachePolicy, EncryptedCache, Encryption, SqliteCache, SqliteSaver, StateGraph, WrongKeyError
from stepwell.store.cache import CacheKey
from stepwell.stores.encrypted.cache import _place as place_in
from tests.runtime.graphs import Log, letters, thread

CALLS: list[int] = []


def counted(state: Log) -> Log:
    CALLS.append(1)
    return {"log": ["word-of-result"]}


def spent(path: Path, encryption: Encryption | None) -> list[tuple[int, int, int]]:
    """Return transactions, statements and syncs up to the opening, and after a first and a second run."""
    found = []
    with SqliteSaver(path, encryption=encryption) as saver:
        graph, counts = letters("abc").compile(checkpointer=saver), saver.store.counts
        for _ in range(3):
            found.append((counts.transactions, counts.statements, counts.syncs))
            graph.invoke({}, thread())
    return found


def test_encryption_costs_no_transaction_and_a_statement_for_the_key_of_a_thread(tmp_path: Path, key: bytes) -> None:
    """And one transaction in the life of a database, for its own key."""
    plain = spent(tmp_path / "plain.db", None)
    hidden = spent(tmp_path / "hidden.db", Encryption({"k": key}))
    more = [tuple(a - b for a, b in zip(*both, strict=True)) for both in zip(hidden, plain, strict=True)]
    assert more == [(1, 3, 1), (1, 4, 1), (1, 4, 1)]


def test_a_cache_holds_nothing_that_can_be_read_and_serves_all_the_same(tmp_path: Path, key: bytes) -> None:
    """Another process finds what this one kept; one without the key, nothing; planted plaintext is not found."""
    path = tmp_path / "cache.db"
    CALLS.clear()

    def run(cache: EncryptedCache) -> list[str]:
        graph = StateGraph(Log).add_node("n", counted, cache_policy=CachePolicy()).set_entry_point("n")
        values = graph.compile(cache=cache, name="cached").invoke({"log": ["word-of-input"]})
        return list(values["log"])

    for _ in range(2):
        with SqliteCache(path) as kept:
            assert run(EncryptedCache(kept, Encryption({"k": key}))) == ["word-of-input", "word-of-result"]
            assert b"word-of" not in path.read_bytes() + path.with_name("cache.db-wal").read_bytes()
    assert len(CALLS) == 1
    with SqliteCache(path) as kept:
        other = EncryptedCache(kept, Encryption({"k": Encryption.new_key()}))
        assert run(other) == ["word-of-input", "word-of-result"]
        assert len(CALLS) == 2
        mine = EncryptedCache(kept, Encryption({"k": key}))
        place = CacheKey("g", "n", "0" * 32)
        mine.set(place, b"value", None)
        assert mine.get(place) == b"value"
        assert mine.get(place._replace(callee="m")) is None
        ((stored,),) = kept._execute("cache_find", **place_in(mine._key(), place)._asdict(), now=0)
        kept.set(place_in(mine._key(), place._replace(callee="m")), stored, None)
        assert mine.get(place._replace(callee="m")) is None, "moved"
        kept.set(place_in(mine._key(), place), b"planted", None)
        assert mine.get(place) is None
        with pytest.raises(WrongKeyError):
            other.get(place)
        mine.clear()
        assert mine.get(place) is None
        mine.set(place, b"again", None)
        assert mine.get(place) == b"again"
