"""What the codec's tests call the same value: equal, of equal types, all the way down; and proof that they see more."""

import dataclasses
import enum
import math
import struct
from array import array
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from time import struct_time
from typing import Any

import numpy
import pytest


def same(left: Any, right: Any) -> bool:
    """Whether two values agree in type and content at every level; a NaN equals itself, and order counts."""
    if type(left) is not type(right):
        return False
    if hasattr(left, "dtype"):
        return bool(_array(left) == _array(right))
    for kinds, alike in _ALIKE:
        if isinstance(left, kinds):
            return bool(alike(left, right))
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(same(getattr(left, name), getattr(right, name)) for name in names)
    return bool(left == right) or (hasattr(left, "__dict__") and same(vars(left), vars(right)))


def _by(*parts: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    return lambda left, right: all(part(left) == part(right) for part in parts)


def _same_mappings(left: Any, right: Any) -> bool:
    return _own(left) == _own(right) and same([*left.items()], [*right.items()])


def _same_sequences(left: Any, right: Any) -> bool:
    pairs = zip(left, right, strict=False)
    return len(left) == len(right) and _own(left) == _own(right) and all(same(one, two) for one, two in pairs)


def _same_errors(left: Any, right: Any) -> bool:
    """Compare everything but the traceback, and the object an attribute was missed on."""
    own = {name for name in dir(left) if not name.startswith("__") and name not in ("args", "obj")}
    names = own | {"args", "__cause__", "__context__", "__suppress_context__", "__dict__"}
    values = [(getattr(left, name, None), getattr(right, name, None)) for name in names]
    return str(left) == str(right) and all(same(one, two) for one, two in values if not callable(one))


def _array(value: Any) -> Any:
    content = repr(value.tolist()) if value.dtype.names else value.tobytes()
    text = value[:] if isinstance(value, str | bytes) else None  # whole, where numpy drops zeros at its end
    return repr(value.dtype), value.dtype.char, value.dtype.isalignedstruct, value.shape, content, text


_ALIKE: list[tuple[Any, Callable[[Any, Any], bool]]] = [
    (enum.Enum, lambda left, right: left is right),
    (float, _by(lambda value: struct.pack(">d", value))),
    (complex, lambda left, right: same(left.real, right.real) and same(left.imag, right.imag)),
    (Decimal, _by(str)),
    (datetime, _by(lambda value: (value, value.fold, repr(value.tzinfo)))),
    (array, _by(lambda value: (value.typecode, value.tobytes()))),
    (struct_time, _by(lambda value: (*value, value.tm_zone, value.tm_gmtoff))),
    (ChainMap, lambda left, right: same(left.maps, right.maps)),
    (Mapping, _same_mappings),
    ((list, tuple, deque), _same_sequences),
    ((set, frozenset), lambda left, right: same(sorted(left, key=_order), sorted(right, key=_order))),
    (BaseException, _same_errors),
]


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
        (array("i", [1]), array("l", [1])),
        (ValueError("a"), ValueError("b")),
        (ValueError("a"), KeyError("a")),
        (FileNotFoundError(2, "a", "b"), FileNotFoundError(2, "a", "c")),
        (numpy.str_("a\0"), numpy.str_("a")),
        (numpy.zeros(1, "<i4"), numpy.zeros(1, ">i4")),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    ],
)
def test_same_sees_what_equality_alone_does_not(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert same(left, left)


def test_same_takes_nan_for_itself() -> None:
    assert same([math.nan, Decimal("NaN")], [math.nan, Decimal("NaN")])
