"""Standard-library values with parts: each as lists, dicts and leaves, and back.

Here: one row per type in `CONTAINERS`, and the closed list of default factories. Not here: plain dict and list, which
need no row. Rule kept: type, order, bound and factory survive; `load` checks the shape it is given.
"""

from __future__ import annotations

import gc
import re
from collections import ChainMap, Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from stepwell.codec.kinds import Kind, Malformed, Refused


@dataclass(frozen=True, slots=True)
class Container:
    """How one type with parts is written and read. `load` gets what unpacking the packed `dump` gives."""

    kind: Kind
    cls: type[Any]
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


FACTORIES: Final[dict[str, Callable[[], Any]]] = {
    kind.__qualname__: kind
    for kind in (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)
} | {kind.__qualname__: kind for kind in (deque, Counter, OrderedDict, Decimal, Fraction)}
FACTORY_NAMES: Final = {factory: name for name, factory in FACTORIES.items()}


def expect(value: Any, *kinds: type[Any]) -> Any:
    """Return `value` if it is exactly of one of the built-in kinds; a record that holds something else is malformed."""
    if type(value) not in kinds:
        raise Malformed(f"a {type(value).__name__} stands where a {kinds[0].__name__} belongs")
    return value


def expect_list(value: Any, *lengths: int) -> list[Any]:
    """Return `value` if it is a list of one of these lengths."""
    items: list[Any] = expect(value, list)
    if len(items) not in lengths:
        raise Malformed(f"{len(items)} items stand where {' or '.join(map(str, lengths))} belong")
    return items


def pairs(value: dict[Any, Any]) -> list[Any]:
    """Flatten a mapping: key, value, key, value."""
    return [part for pair in value.items() for part in pair]


def load_pairs(value: Any) -> dict[Any, Any]:
    """Rebuild a mapping from its flat form."""
    items = expect(value, list)
    if len(items) % 2:
        raise Malformed("a key has no value")
    return dict(zip(items[::2], items[1::2], strict=True))


def load_deque(value: Any) -> deque[Any]:
    """Rebuild a deque from [bound, items]."""
    bound, items = expect_list(value, 2)
    if bound is not None and expect(bound, int) < len(expect(items, list)):
        raise Malformed("a deque holds more than its bound")
    return deque(expect(items, list), bound)


def _dump_steps(value: range | slice) -> list[Any]:
    return [value.start, value.stop, value.step]


def _load_range(value: Any) -> range:
    return range(*(expect(part, int) for part in expect_list(value, 3)))


def _load_fraction(value: Any) -> Fraction:
    return Fraction(*(expect(part, int) for part in expect_list(value, 2)))


_QUIET: Final = int(re.ASCII | re.IGNORECASE | re.LOCALE | re.MULTILINE | re.DOTALL | re.UNICODE | re.VERBOSE)


def _dump_proxy(value: MappingProxyType[Any, Any]) -> Any:
    (mapping,) = gc.get_referents(value)  # the mapping itself: its copy() may be anything
    return mapping


def _dump_pattern(value: re.Pattern[Any]) -> list[Any]:
    if not isinstance(value.pattern, str | bytes):
        raise Refused(": its pattern is neither str nor bytes")
    if value.flags & ~_QUIET:
        raise Refused(": compiling it again would print it")
    return [value.pattern, value.flags]


def _load_pattern(value: Any) -> re.Pattern[Any]:
    pattern, flags = expect_list(value, 2)
    if expect(flags, int) & ~_QUIET:
        raise Malformed("not the flags of a pattern")
    compiled: re.Pattern[Any] = re.compile(expect(pattern, str, bytes), flags)
    return compiled


CONTAINERS: Final = (
    Container(Kind.TUPLE, tuple, list, lambda value: tuple(expect(value, list))),
    Container(Kind.SET, set, list, lambda value: set(expect(value, list))),
    Container(Kind.FROZENSET, frozenset, list, lambda value: frozenset(expect(value, list))),
    Container(Kind.DEQUE, deque, lambda value: [value.maxlen, list(value)], load_deque),
    Container(Kind.ORDERED_DICT, OrderedDict, pairs, lambda value: OrderedDict(load_pairs(value))),
    Container(Kind.COUNTER, Counter, dict, lambda value: Counter(expect(value, dict))),
    Container(Kind.CHAIN_MAP, ChainMap, lambda value: value.maps, lambda value: ChainMap(*expect(value, list))),
    Container(Kind.MAPPING_PROXY, MappingProxyType, _dump_proxy, MappingProxyType),
    Container(Kind.RANGE, range, _dump_steps, _load_range),
    Container(Kind.SLICE, slice, _dump_steps, lambda value: slice(*expect_list(value, 3))),
    Container(Kind.FRACTION, Fraction, lambda value: [value.numerator, value.denominator], _load_fraction),
)
PATTERN: Final = Container(Kind.PATTERN, re.Pattern, _dump_pattern, _load_pattern)
