"""INV-14, fuzzed: whatever a namespace, key, filter or window says, a search finds only what is there for it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell import InMemoryStore, InvalidItemError, SearchItem

labels = st.text(st.characters(exclude_characters=".\0", exclude_categories=["Cs"]), min_size=1, max_size=4)
hostile = st.sampled_from(["'", '"', "%", "_", "*", "a", "a'--", "$eq", "$gt", "or 1=1", ":now", "?1", "/", "-"])
names = st.one_of(hostile, labels)
namespaces = st.lists(names, min_size=1, max_size=3).map(tuple).filter(lambda made: made[0] != "langgraph")
scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), names)
values = st.dictionaries(
    names, st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(names, scalars, max_size=2)), max_size=3
)
operators = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), scalars, min_size=1, max_size=2
)
filters = st.dictionaries(names, st.one_of(scalars, operators, st.lists(scalars, max_size=2)), max_size=2)


@pytest.fixture
def store() -> Iterator[InMemoryStore]:
    with InMemoryStore() as made:
        yield made


def places(found: list[SearchItem]) -> list[tuple[tuple[str, ...], str]]:
    return [(item.namespace, item.key) for item in found]


def fill(
    store: InMemoryStore, items: dict[tuple[tuple[str, ...], str], dict[str, Any]]
) -> list[tuple[tuple[str, ...], str]]:
    for item in store.search((), limit=10_000):
        store.delete(item.namespace, item.key)
    for (namespace, key), value in items.items():
        store.put(namespace, key, value)
    return list(items)


@given(
    items=st.dictionaries(st.tuples(namespaces, names), values, max_size=8),
    prefix=st.one_of(st.just(()), namespaces),
    wanted=filters,
    more=filters,
    window=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_a_result_set_can_only_narrow(
    store: InMemoryStore, items: Any, prefix: tuple[str, ...], wanted: Any, more: Any, window: tuple[int, int]
) -> None:
    everything = fill(store, items)
    below = [place for place in everything if place[0][: len(prefix)] == prefix]
    assert places(store.search(prefix, limit=100)) == below
    found = places(store.search(prefix, filter=wanted, limit=100))
    assert [place for place in below if place in found] == found
    narrower = places(store.search(prefix, filter={**more, **wanted}, limit=100))
    assert set(narrower) <= set(found)
    limit, offset = window
    assert places(store.search(prefix, filter=wanted, limit=limit, offset=offset)) == found[offset : offset + limit]
    for namespace, key in everything:
        item = store.get(namespace, key)
        assert item is not None
        assert item.value == items[namespace, key]
    listed = store.list_namespaces(prefix=prefix or None, limit=100)
    if "*" not in prefix:
        assert listed == sorted({namespace for namespace, _ in below})


@given(
    wanted=st.dictionaries(
        names, st.dictionaries(st.text(max_size=3).map("${}".format), scalars, min_size=1), min_size=1
    )
)
def test_an_operator_is_known_or_refused(store: InMemoryStore, wanted: Any) -> None:
    known = all(key in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte") for inner in wanted.values() for key in inner)
    try:
        assert store.search((), filter=wanted) == []
    except InvalidItemError:
        assert not known
    else:
        assert known
