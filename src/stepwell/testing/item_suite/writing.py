"""What is put is there, under what names, in batches, and for how long (INV-12, INV-14)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell.errors import InvalidItemError, InvalidNamespaceError, UnserializableValueError
from stepwell.items import GetOp, ListNamespacesOp, PutOp, SearchOp
from stepwell.testing.clock import FakeClock
from stepwell.testing.item_suite.fixtures import ADA, BOB, Ask, Factory, keys


class TestItems:
    """put, get, delete."""

    def test_what_is_put_is_there_with_its_times(self, ask: Ask, clock: FakeClock) -> None:
        before = datetime.fromtimestamp(clock.now() // 10**6, UTC)
        ask.put(ADA, "food", {"likes": "soup"})
        item = ask.get(ADA, "food")
        assert (item.namespace, item.key, item.value) == (ADA, "food", {"likes": "soup"})
        assert item.created_at == item.updated_at == before
        assert item.dict()["namespace"] == ["users", "ada"]
        assert ask.get(ADA, "drink") is None
        assert ask.get(BOB, "food") is None

    def test_an_item_put_again_keeps_when_it_was_made_and_its_place(self, ask: Ask, clock: FakeClock) -> None:
        ask.put(ADA, "one", {"n": 1})
        ask.put(ADA, "two", {"n": 2})
        made = ask.get(ADA, "one").created_at
        clock.advance(5)
        ask.put(ADA, "one", {"n": 3})
        item = ask.get(ADA, "one")
        assert (item.value, item.created_at, item.updated_at) == ({"n": 3}, made, made + timedelta(seconds=5))
        assert keys(ask.search(ADA)) == ["one", "two"]

    def test_an_item_deleted_and_put_again_is_a_new_one(self, ask: Ask, clock: FakeClock) -> None:
        ask.put(ADA, "one", {"n": 1})
        ask.put(ADA, "two", {"n": 2})
        clock.advance(5)
        ask.delete(ADA, "one")
        assert ask.get(ADA, "one") is None
        ask.delete(ADA, "one")
        ask.put(ADA, "one", {"n": 1})
        item = ask.get(ADA, "one")
        assert item.created_at == item.updated_at
        assert keys(ask.search(ADA)) == ["two", "one"]

    def test_values_come_back_exactly_and_as_copies(self, ask: Ask) -> None:
        value = {
            "at": datetime(2030, 1, 2, tzinfo=UTC),
            "pair": (1, 2.5),
            "raw": b"\0",
            "deep": {"list": [{"x": None}]},
        }
        ask.put(ADA, "k", value)
        value["deep"]["list"].append("later")  # type: ignore[index]
        found = ask.get(ADA, "k").value
        assert found["pair"] == (1, 2.5)
        assert found["deep"] == {"list": [{"x": None}]}
        found["deep"]["list"].clear()
        assert ask.get(ADA, "k").value["deep"] == {"list": [{"x": None}]}

    def test_what_cannot_be_stored_is_refused_with_its_path(self, ask: Ask) -> None:
        with pytest.raises(UnserializableValueError, match=r"users\.ada/k.*bad"):
            ask.put(ADA, "k", {"bad": [object()]})
        assert ask.get(ADA, "k") is None

    @pytest.mark.parametrize("value", [None, 5, "text", [1], {1: "a"}])
    def test_a_value_is_a_dict_with_texts_as_keys(self, ask: Ask, value: Any) -> None:
        with pytest.raises(InvalidItemError):
            ask.put(ADA, "k", value)

    def test_a_key_becomes_text(self, ask: Ask) -> None:
        ask.put(ADA, 7, {"n": 1})
        assert ask.get(ADA, "7").key == "7"

    def test_search_by_meaning_is_refused_and_no_index_is_no_error(self, ask: Ask) -> None:
        with pytest.raises(InvalidItemError, match="index"):
            ask.put(ADA, "k", {"n": 1}, index=["n"])
        with pytest.raises(InvalidItemError, match="index"):
            ask.search(ADA, query="something like soup")
        ask.put(ADA, "k", {"n": 1}, index=False)
        assert keys(ask.search(ADA)) == ["k"]


BAD_NAMESPACES: list[Any] = [
    (), ("",), ("a", ""), ("a.b",), ("a\0",), ("a", 1), "users", None, ("langgraph", "x"), ("\ud800",)
]  # fmt: skip


class TestNames:
    """Namespaces and keys (INV-14): what is one, and that none reaches another's items."""

    @pytest.mark.parametrize("namespace", BAD_NAMESPACES, ids=repr)
    def test_what_is_no_namespace_is_refused_before_anything_is_written(self, ask: Ask, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError) as caught:
            ask.put(namespace, "k", {"n": 1})
        assert caught.value.fields()["namespace"] == namespace
        with pytest.raises(InvalidNamespaceError):
            ask.batch([PutOp(ADA, "k", {"n": 1}), PutOp(namespace, "k", {"n": 1})])
        assert ask.search(()) == []

    @pytest.mark.parametrize("namespace", [("a.b",), ("a", ""), ("a\0",), "users"], ids=repr)
    def test_none_is_read_from_either(self, ask: Ask, namespace: Any) -> None:
        reads: dict[str, dict[str, Any]] = {
            "get": {"namespace": namespace, "key": "k"},
            "delete": {"namespace": namespace, "key": "k"},
            "list_namespaces": {"prefix": namespace},
        }
        for name, given in reads.items():
            with pytest.raises(InvalidNamespaceError):
                getattr(ask, name)(**given)
        with pytest.raises(InvalidNamespaceError):
            ask.search(namespace)
        with pytest.raises(InvalidNamespaceError):
            ask.list_namespaces(suffix=namespace)

    def test_a_prefix_is_whole_labels(self, ask: Ask) -> None:
        for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a/",), ("a-",), ("A",), ("a", "bc")]:
            ask.put(namespace, "k", {"n": 1})
        assert [item.namespace for item in ask.search(("a",))] == [("a",), ("a", "b"), ("a", "b", "c"), ("a", "bc")]
        assert [item.namespace for item in ask.search(("a", "b"))] == [("a", "b"), ("a", "b", "c")]
        assert len(ask.search(())) == 8

    @pytest.mark.parametrize("text", ["'; drop table items; --", "%", "_", "*", "a%", "?1", ":key", '"', "\\", "🙂"])
    def test_no_label_or_key_selects_more(self, ask: Ask, text: str) -> None:
        ask.put(("a",), "k", {"n": 1})
        assert ask.get(("a",), text) is None
        assert ask.search((text,)) == []
        assert ask.search(("a",), filter={text: 1}) == []
        ask.put((text, text), text, {text: text})
        assert [(item.namespace, item.key) for item in ask.search((text,))] == [((text, text), text)]
        assert keys(ask.search((), filter={text: text})) == [text]
        ask.delete((text, text), text)
        assert keys(ask.search(())) == ["k"]


class TestBatches:
    """Several operations at once."""

    def test_a_batch_answers_each_in_its_order_and_reads_what_was_there_before(self, ask: Ask) -> None:
        ask.put(ADA, "k", {"n": 1})
        found = ask.batch(
            [PutOp(ADA, "k", {"n": 2}), GetOp(ADA, "k"), SearchOp(ADA), ListNamespacesOp(), PutOp(BOB, "k", {"n": 3})]
        )
        assert [found[0], found[4]] == [None, None]
        assert found[1].value == {"n": 1}
        assert keys(found[2]) == ["k"]
        assert found[3] == [ADA]
        assert ask.get(ADA, "k").value == {"n": 2}

    def test_of_two_writes_to_one_item_the_later_counts(self, ask: Ask) -> None:
        ask.batch(
            [
                PutOp(ADA, "k", {"n": 1}),
                PutOp(ADA, "gone", {"n": 1}),
                PutOp(ADA, "k", {"n": 2}),
                PutOp(ADA, "gone", None),
            ]
        )
        assert [(item.key, item.value) for item in ask.search(ADA)] == [("k", {"n": 2})]

    def test_a_batch_is_written_whole_or_not_at_all(self, ask: Ask) -> None:
        with pytest.raises(UnserializableValueError):
            ask.batch([PutOp(ADA, "one", {"n": 1}), PutOp(ADA, "two", {"n": object()})])
        with pytest.raises(InvalidItemError):
            ask.batch([PutOp(ADA, "one", {"n": 1}), "get"])
        assert ask.search(()) == []
        assert ask.batch([]) == []


class TestTTL:
    """Items that expire, by the clock the store was given."""

    def test_an_item_is_gone_when_its_minutes_are_over(self, ask: Ask, clock: FakeClock) -> None:
        ask.put(ADA, "k", {"n": 1}, ttl=1.5)
        ask.put(ADA, "stays", {"n": 2})
        clock.advance(89)
        assert ask.get(ADA, "k", refresh_ttl=False).value == {"n": 1}
        clock.advance(1)
        assert ask.get(ADA, "k") is None
        assert keys(ask.search(ADA)) == ["stays"]
        ask.put(BOB, "k", {"n": 1}, ttl=1)
        clock.advance(60)
        assert ask.list_namespaces() == [ADA]

    def test_reading_lets_its_time_begin_anew(self, ask: Ask, clock: FakeClock) -> None:
        for key in ("got", "found", "left"):
            ask.put(ADA, key, {"key": key}, ttl=1)
        clock.advance(40)
        ask.get(ADA, "got")
        ask.search(ADA, filter={"key": "found"})
        ask.search(ADA, filter={"key": "left"}, refresh_ttl=False)
        clock.advance(40)
        assert keys(ask.search(ADA, refresh_ttl=False)) == ["got", "found"]
        clock.advance(20)
        assert ask.search(ADA) == []

    def test_an_item_that_has_expired_is_made_anew(self, ask: Ask, clock: FakeClock) -> None:
        ask.put(ADA, "k", {"n": 1}, ttl=1)
        clock.advance(60)
        ask.put(ADA, "k", {"n": 2})
        item = ask.get(ADA, "k")
        assert item.created_at == item.updated_at
        clock.advance(600)
        assert ask.get(ADA, "k").value == {"n": 2}

    def test_a_sweep_deletes_what_has_expired_and_nothing_else(self, ask: Ask, clock: FakeClock) -> None:
        for number in range(4):
            ask.put(ADA, str(number), {"n": number}, ttl=number + 1)
        ask.put(ADA, "stays", {"n": 9})
        assert ask.sweep_ttl() == 0
        clock.advance(120)
        assert ask.sweep_ttl() == 2
        assert ask.sweep_ttl() == 0
        assert keys(ask.search(ADA)) == ["2", "3", "stays"]

    def test_a_store_may_say_how_long_items_live(self, item_store_factory: Factory, clock: FakeClock) -> None:
        store = item_store_factory(clock, ttl={"default_ttl": 1, "refresh_on_read": False})
        store.put(ADA, "k", {"n": 1})
        store.put(ADA, "ever", {"n": 2}, ttl=None)
        clock.advance(40)
        store.get(ADA, "k")
        clock.advance(20)
        assert keys(store.search(ADA)) == ["ever"]
        store.close()

    @pytest.mark.parametrize("ttl", [0, -1, "1", True, float("nan"), float("inf")], ids=repr)
    def test_what_is_no_time_is_refused(self, ask: Ask, ttl: Any) -> None:
        with pytest.raises(InvalidItemError, match="ttl"):
            ask.put(ADA, "k", {"n": 1}, ttl=ttl)

    def test_an_option_nobody_keeps_is_refused(self, item_store_factory: Factory, clock: FakeClock) -> None:
        with pytest.raises(InvalidItemError, match="sweep_ttl"):
            item_store_factory(clock, ttl={"sweep_interval_minutes": 5})
        with pytest.raises(InvalidItemError, match="index"):
            item_store_factory(clock, index={"dims": 3})
