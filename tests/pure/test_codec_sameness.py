"""What the codec's tests call the same value: equal, of equal types, all the way down; and proof that they see more."""

import dataclasses
import enum
import math
import struct
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest


def same(left: Any, right: Any) -> bool:
    """Whether two values agree in type and content at every level; a NaN equals itself, and order counts."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, Decimal):
        return str(left) == str(right)
    if isinstance(left, enum.Enum):
        return left is right
    if isinstance(left, datetime):
        return (left, left.fold, repr(left.tzinfo)) == (right, right.fold, repr(right.tzinfo))
    if isinstance(left, ChainMap):
        return same(left.maps, right.maps)
    if isinstance(left, Mapping):
        return _own(left) == _own(right) and same([*left.items()], [*right.items()])
    if isinstance(left, list | tuple | deque):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and _own(left) == _own(right) and all(same(one, two) for one, two in pairs)
    if isinstance(left, set | frozenset):
        return same(sorted(left, key=_order), sorted(right, key=_order))
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(same(getattr(left, name), getattr(right, name)) for name in names)
    return bool(left == right)


def _own(value: Any) -> Any:
    return getattr(value, "maxlen", None), getattr(value, "default_factory", None)


def _order(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], (1,)),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (deque([1], 2), deque([1])),
        (defaultdict(list), defaultdict(set)),
        (Counter("a"), {"a": 1}),
        ({1}, {True}),
        ([[[1]]], [[[1.0]]]),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    ],
)
def test_same_sees_what_equality_alone_does_not(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert same(left, left)


def test_same_takes_nan_for_itself() -> None:
    assert same([math.nan, Decimal("NaN")], [math.nan, Decimal("NaN")])
