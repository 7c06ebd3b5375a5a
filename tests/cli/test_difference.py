"""What differs between two values: applied to the one, it makes the other."""

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.cli.difference import Change, changes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 2) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=12,
)


def applied(old: Any, found: list[Change]) -> Any:
    """Return `old` with the changes made to it: what is removed goes from the back, before anything is added."""
    made = [copy.deepcopy(old)]
    for change in sorted((c for c in found if c.kind == "removed"), key=lambda c: str(c.path), reverse=True):
        place, key = _place(made, change)
        del place[key]
    for change in found:
        place, key = _place(made, change)
        if change.kind == "added" and isinstance(place, list):
            place.insert(key, change.new)
        elif change.kind != "removed":
            place[key] = change.new
    return made[0]


def _place(made: list[Any], change: Change) -> tuple[Any, Any]:
    place: Any = made
    for key in (0, *change.path)[:-1]:
        place = place[key]
    return place, (0, *change.path)[-1]


@given(JSON, JSON)
def test_the_changes_make_the_one_out_of_the_other(old: Any, new: Any) -> None:
    assert repr(_sorted(applied(old, list(changes(old, new))))) == repr(_sorted(new))


@given(JSON)
def test_between_a_value_and_itself_there_are_none(value: Any) -> None:
    assert list(changes(value, copy.deepcopy(value))) == []


def _sorted(value: Any) -> Any:
    """Return the value with its keys in order: a mapping has none."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"n": 1}, {"n": 2}, [(("n",), "changed", 1, 2)]),
        ({"n": 1}, {"n": True}, [(("n",), "changed", 1, True)]),
        ([1, 2], [1, 2, 3], [((2,), "added", None, 3)]),
        ([1, 2, 3], [1, 3], [((1,), "removed", 2, None)]),
        ([{"a": 1}, 2], [{"a": 5}, 2], [((0, "a"), "changed", 1, 5)]),
        ({"a": [1]}, {"a": {"b": 1}}, [(("a",), "changed", [1], {"b": 1})]),
    ],
)
def test_a_change_names_the_smallest_place(old: Any, new: Any, found: list[Any]) -> None:
    assert list(changes(old, new)) == found
