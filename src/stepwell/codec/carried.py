"""What an instance carries besides its attributes: the content of the built-in type its class is built on.

Here: one row per such type in `_CARRIERS`, and the choice among them. Not here: attributes (`objects`), what an
exception carries (`exceptions`). Rule kept: content is taken and put back by the built-in type's own functions, so that
no method of the class runs.
"""

from __future__ import annotations

import sys
from array import array, typecodes
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import PurePath
from time import struct_time
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, Final, NamedTuple

from stepwell.codec import exceptions
from stepwell.codec.containers import expect, expect_list, load_deque, load_pairs, pairs
from stepwell.codec.kinds import Malformed, Refused, Unbuildable

_HEAP_TYPE: Final = 1 << 9


class Carrier(NamedTuple):
    """How the content of one built-in type is taken from an instance and put into a new one of a class."""

    take: Callable[[Any], Any]
    make: Callable[[type[Any], Any], Any]
    empty: Any
    """Content to try a class with."""


def carrier_of(cls: type[Any]) -> Carrier | None:
    """Return how instances of `cls` carry content; None if they have attributes only. Raises `Refused`."""
    if issubclass(cls, BaseException):
        return Carrier(exceptions.take, exceptions.make, exceptions.empty(cls))
    native = next(base for base in cls.__mro__ if base in _CARRIERS or not base.__flags__ & _HEAP_TYPE)
    if native is object and not issubclass(cls, PurePath):
        return None
    if native not in _CARRIERS:
        built_on = "a path" if native is object else native.__qualname__
        raise Refused(f": it is built on {built_on}, whose content only dump= and load= can keep")
    return _CARRIERS[native]


def slots_of(cls: type[Any]) -> dict[str, MemberDescriptorType]:
    """Return the slots of a class written in Python."""
    return {
        key: member
        for base in reversed(cls.__mro__)
        if base.__flags__ & _HEAP_TYPE and base not in _CARRIERS
        for key, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }


def _plain(kind: Any, take: Callable[[Any], Any]) -> Carrier:
    return Carrier(take, lambda cls, content: kind.__new__(cls, expect(content, kind)), kind())


def _filled(kind: Any, take: Callable[[Any], Any], fill: Callable[[Any, Any], None]) -> Carrier:
    def make(cls: type[Any], content: Any) -> Any:
        made = kind.__new__(cls)
        fill(made, expect(content, kind))
        return made

    return Carrier(take, make, kind())


def _make_deque(cls: type[Any], content: Any) -> Any:
    made = deque.__new__(cls)
    loaded = load_deque(content)
    deque.__init__(made, loaded, loaded.maxlen)
    return made


def _make_ordered(cls: type[Any], content: Any) -> Any:
    made = OrderedDict.__new__(cls)
    for key, item in load_pairs(content).items():
        OrderedDict.__setitem__(made, key, item)
    return made


def _take_array(value: array[Any]) -> list[Any]:
    ordered = value if sys.byteorder == "little" else array(value.typecode, value)
    if ordered is not value:
        ordered.byteswap()
    return [value.typecode, value.itemsize, array.tobytes(ordered)]


def _make_array(cls: type[Any], content: Any) -> Any:
    code, size, data = expect_list(content, 3)
    if expect(code, str) not in typecodes:
        raise Malformed("not a type of array items")
    made = array.__new__(cls, code)
    if made.itemsize != expect(size, int):
        raise Unbuildable("array:array", content, f"items of type {code!r} have {made.itemsize} bytes here, not {size}")
    array.frombytes(made, expect(data, bytes))
    if sys.byteorder != "little":
        array.byteswap(made)
    return made


def _take_moment(value: struct_time) -> list[Any]:
    return [*tuple.__iter__(value), value.tm_zone, value.tm_gmtoff]


_CARRIERS: Final[dict[type[Any], Carrier]] = {
    str: _plain(str, str.__str__),
    int: _plain(int, int.__int__),
    float: _plain(float, float.__float__),
    bytes: _plain(bytes, lambda value: bytes.__getitem__(value, slice(None))),
    tuple: _plain(tuple, lambda value: tuple.__getitem__(value, slice(None))),
    frozenset: _plain(frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    set: _filled(set, lambda value: set(set.__iter__(value)), set.update),
    list: _filled(list, list.copy, list.extend),
    dict: _filled(dict, lambda value: dict(dict.items(value)), dict.update),
    deque: Carrier(lambda value: [value.maxlen, list(deque.__iter__(value))], _make_deque, [None, []]),
    OrderedDict: Carrier(lambda value: pairs(OrderedDict(OrderedDict.items(value))), _make_ordered, []),
    array: Carrier(_take_array, _make_array, ["b", 1, b""]),
    struct_time: Carrier(
        _take_moment, lambda cls, content: struct_time(expect_list(content, 11)), [0] * 9 + [None, None]
    ),
    SimpleNamespace: Carrier(lambda value: None, lambda cls, content: SimpleNamespace.__new__(cls), None),
}
