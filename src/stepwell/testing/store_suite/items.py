"""Items (INV-1, INV-2, INV-14): written by anybody, or with a commit and only with it; found by whole labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepwell.errors import LeaseLostError
from stepwell.store import Deletion, ItemRow, ItemWrites, Store
from stepwell.superstep.items import DELETE, PUT, TOUCH, ItemWrite
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import Drive, started
from stepwell.testing.store_suite.history import HOSTILE

NOW = 1_000_000


def put(key: str, namespace: str = "a", at: int = 1, ttl: int | None = None) -> ItemWrite:
    return ItemWrite(PUT, namespace, key, at, b"value of " + key.encode(), ttl)


def items(store: Store, prefix: str = "", now: int = NOW) -> list[ItemRow]:
    with store.reading() as reader:
        return list(reader.items(prefix, now))


def keys(store: Store, prefix: str = "", now: int = NOW) -> list[str]:
    return [row.key for row in items(store, prefix, now)]


class TestItemRows:
    """What becomes of writes."""

    def test_writes_land_together_and_are_listed_in_the_order_they_were_made(self, store: Store) -> None:
        store.write_items(ItemWrites([put("b"), put("a"), put("c"), put("b", at=7), ItemWrite(DELETE, "a", "c", 8)]))
        first, second = items(store)
        assert [first.key, second.key] == ["b", "a"]
        assert first.ordinal < second.ordinal
        assert (first.value, first.created_at, first.updated_at) == (b"value of b", 1, 7)

    def test_an_item_that_was_deleted_is_made_anew(self, store: Store) -> None:
        store.write_items(ItemWrites([put("a"), put("b")]))
        store.write_items(ItemWrites([ItemWrite(DELETE, "a", "a", 2), put("a", at=3)]))
        assert [(row.key, row.created_at) for row in items(store)] == [("b", 1), ("a", 3)]

    def test_an_item_expires_unless_it_is_touched(self, store: Store) -> None:
        store.write_items(ItemWrites([put("a", ttl=10), put("b", ttl=10)]))
        store.write_items(ItemWrites([ItemWrite(TOUCH, "a", "b", 6), ItemWrite(TOUCH, "a", "nobody", 6)]))
        assert [keys(store, now=now) for now in (10, 11, 15, 16)] == [["a", "b"], ["b"], ["b"], []]
        with store.reading() as reader:
            assert reader.item_namespaces(15) == ["a"]
            assert reader.item_namespaces(16) == []
            assert reader.item("a", "a") is not None

    def test_a_sweep_deletes_what_has_expired_and_says_how_much(self, store: Store) -> None:
        store.write_items(ItemWrites([put("a", ttl=10), put("b", ttl=20), put("c")]))
        assert store.write_items(ItemWrites(expired_at=11)) == 1
        with store.reading() as reader:
            assert reader.item("a", "a") is None
        assert keys(store, now=0) == ["b", "c"]

    def test_a_prefix_is_a_namespace_and_what_lies_below_it(self, store: Store) -> None:
        names = ["a", "a.b", "a.b.c", "a-", "a/", "ab", "A", "b.a"]
        store.write_items(ItemWrites([put("k", name) for name in names]))
        assert [row.namespace for row in items(store, "a")] == ["a", "a.b", "a.b.c"]
        assert [row.namespace for row in items(store, "a.b")] == ["a.b", "a.b.c"]
        assert [row.namespace for row in items(store)] == names

    @pytest.mark.parametrize("text", [text for text in HOSTILE if text])
    def test_no_name_selects_more(self, store: Store, text: str) -> None:
        store.write_items(ItemWrites([put("k")]))
        assert keys(store, text) == []
        with store.reading() as reader:
            assert reader.item(text, "k") is reader.item("a", text) is None
        store.write_items(ItemWrites([put(text, text)]))
        assert [(row.namespace, row.key) for row in items(store, text)] == [(text, text)]
        store.write_items(ItemWrites([ItemWrite(DELETE, text, text, 2)]))
        assert keys(store) == ["k"]


class TestItemsOfRuns:
    """Writes that come with a commit."""

    def test_they_are_there_with_the_commit(self, store: Store) -> None:
        drive = started(store)
        step = replace(drive.step(), items=[put("a"), put("b")])
        assert keys(store) == []
        store.commit(step)
        assert keys(store) == ["a", "b"]
        assert list(store.verify()) == []

    def test_a_lost_lease_writes_none(self, store: Store, clock: FakeClock) -> None:
        late = replace(started(store).step(), items=[put("a")])
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert keys(store) == []

    def test_a_claim_that_comes_too_late_writes_none(self, store: Store) -> None:
        claim = replace(Drive(store).claim(), items=[put("a")])
        started(store)
        assert store.admit(claim) is None
        assert keys(store) == []

    def test_a_claim_that_lands_writes_them(self, store: Store) -> None:
        store.admit(replace(Drive(store).claim(), items=[put("a")]))
        assert keys(store) == ["a"]

    def test_deleting_a_thread_leaves_them(self, store: Store) -> None:
        drive = started(store)
        store.commit(replace(drive.step(), items=[put("a")]))
        store.delete(Deletion(drive.thread_id, NOW))
        assert keys(store) == ["a"]

    def test_a_store_is_the_same_as_itself(self, store: Store) -> None:
        assert store.is_same(store)
