"""Which items are found, in which order, and that a filter only narrows (INV-14)."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from stepwell.errors import InvalidItemError
from stepwell.items import ListNamespacesOp, MatchCondition
from stepwell.testing.item_suite.fixtures import ADA, BOB, Ask, keys


class TestSearch:
    """Which items a search returns, and in which order."""

    def test_items_come_in_the_order_they_were_made(self, ask: Ask) -> None:
        for key in "dacb":
            ask.put(BOB if key == "a" else ADA, key, {"n": 1})
        assert keys(ask.search(("users",))) == ["d", "a", "c", "b"]
        assert ask.search(("users",))[0].score is None

    def test_limit_and_offset_are_a_window(self, ask: Ask) -> None:
        for number in range(25):
            ask.put(ADA, f"{number:02}", {"even": number % 2 == 0})
        assert len(ask.search(ADA)) == 10
        assert keys(ask.search(ADA, limit=2, offset=3)) == ["03", "04"]
        assert keys(ask.search(ADA, filter={"even": True}, limit=3, offset=2)) == ["04", "06", "08"]
        assert ask.search(ADA, offset=30) == ask.search(ADA, limit=0) == []
        pages = [ask.search(ADA, limit=7, offset=start) for start in range(0, 28, 7)]
        assert keys([item for page in pages for item in page]) == [f"{number:02}" for number in range(25)]

    @pytest.mark.parametrize("window", [{"limit": -1}, {"offset": -1}, {"limit": "3"}, {"limit": True}], ids=str)
    def test_a_window_that_is_none_is_refused(self, ask: Ask, window: dict[str, Any]) -> None:
        with pytest.raises(InvalidItemError):
            ask.search(ADA, **window)
        with pytest.raises(InvalidItemError):
            ask.list_namespaces(**window)


@dataclasses.dataclass(frozen=True)
class Matches:
    """A filter, and the keys of the items it finds among `FOUND`."""

    filter: dict[str, Any]
    keys: str


VALUES: dict[str, dict[str, Any]] = {
    "a": {"n": 1, "name": "ann", "tags": ["x", "y"], "deep": {"m": 1, "o": 2}},
    "b": {"n": 2.5, "name": "bob", "tags": ["x"], "deep": {"m": 2}},
    "c": {"n": None, "name": "cid", "at": datetime(2030, 1, 1, tzinfo=UTC)},
    "d": {"n": "2", "flag": True},
}
FILTERS = [
    Matches({}, "abcd"),
    Matches({"n": 1}, "a"),
    Matches({"n": 1.0}, "a"),
    Matches({"n": {"$eq": 2.5}}, "b"),
    Matches({"n": {"$ne": 1}}, "bcd"),
    Matches({"n": {"$gt": 1}}, "b"),
    Matches({"n": {"$gte": 1}}, "ab"),
    Matches({"n": {"$gte": 1, "$lt": 2}}, "a"),
    Matches({"n": {"$lte": 0}}, ""),
    Matches({"n": None}, "c"),
    Matches({"flag": None}, "abc"),
    Matches({"name": {"$gt": "ann"}}, "bc"),
    Matches({"name": {"$gt": 3}}, ""),
    Matches({"name": "ann", "n": 1}, "a"),
    Matches({"name": "ann", "n": 2}, ""),
    Matches({"tags": ["x"]}, "b"),
    Matches({"tags": ("x", "y")}, "a"),
    Matches({"deep": {"m": 1}}, "a"),
    Matches({"deep": {"m": {"$gte": 1}}}, "ab"),
    Matches({"deep": {}}, "ab"),
    Matches({"at": {"$lt": datetime(2031, 1, 1, tzinfo=UTC)}}, "c"),
    Matches({"flag": True}, "d"),
]


class TestFilters:
    """What a filter lets through (INV-14). What cannot be compared does not match."""

    @pytest.mark.parametrize("case", FILTERS, ids=lambda case: str(case.filter))
    def test_a_filter_compares_values(self, ask: Ask, case: Matches) -> None:
        for key, value in VALUES.items():
            ask.put(ADA, key, value)
        assert "".join(keys(ask.search(ADA, filter=case.filter))) == case.keys

    @pytest.mark.parametrize(
        "wanted", [{"n": {"$in": [1]}}, {"n": {"$gt": 1, "x": 2}}, {"a": {"b": {"$or": 1}}}, ["n"]]
    )
    def test_an_operator_that_is_none_is_refused_before_anything_is_read(self, ask: Ask, wanted: Any) -> None:
        with pytest.raises(InvalidItemError):
            ask.search(ADA, filter=wanted)


class TestNamespaces:
    """list_namespaces."""

    def test_namespaces_are_listed_sorted_and_cut(self, ask: Ask) -> None:
        for namespace in [
            ("b", "x"),
            ("a", "b", "c"),
            ("a", "b", "d", "e"),
            ("a", "b", "d", "i"),
            ("a", "c", "f"),
            ("a-",),
        ]:
            ask.put(namespace, "k", {"n": 1})
        everything = ask.list_namespaces()
        assert everything == sorted(everything)
        assert len(everything) == 6
        assert ask.list_namespaces(prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d")]
        assert ask.list_namespaces(max_depth=1) == [("a",), ("a-",), ("b",)]
        assert ask.list_namespaces(max_depth=1, limit=1, offset=1) == [("a-",)]
        assert ask.list_namespaces(suffix=("f",)) == [("a", "c", "f")]
        assert ask.list_namespaces(prefix=("a", "*", "d")) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
        assert ask.list_namespaces(suffix=("d", "*")) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
        assert ask.list_namespaces(prefix=("a",), suffix=("c",)) == [("a", "b", "c")]
        assert ask.list_namespaces(prefix=("*", "*", "*", "*", "*")) == []

    def test_a_namespace_without_items_is_none(self, ask: Ask) -> None:
        ask.put(ADA, "k", {"n": 1})
        ask.get(BOB, "k")
        ask.delete(ADA, "k")
        assert ask.list_namespaces() == []

    def test_a_listing_that_is_none_is_refused(self, ask: Ask) -> None:
        with pytest.raises(InvalidItemError, match="max_depth"):
            ask.list_namespaces(max_depth=0)
        with pytest.raises(InvalidItemError, match="match_type"):
            ask.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]
