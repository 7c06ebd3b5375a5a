"""The extension codes of the format, the limits on nesting, and the signals passed between the codec's modules.

Here: numbers and names only. Rule kept: a code, once released, keeps its meaning for ever; a changed meaning takes a
new code.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

FORMAT: Final = 1

# Depth: ormsgpack nests 255 lists and dicts natively and calls back for every other type, whose content is packed by
# itself. The first FREE_LEVELS of those are not measured; below, each level and what it nests counts, so that neither
# direction can exhaust the C stack.
FREE_LEVELS: Final = 3
MAX_LEVELS: Final = 128
NATIVE_LEVELS: Final = 255


class Kind(IntEnum):
    """What the payload of an extension holds."""

    TUPLE = 1
    MAP = 2  # a dict whose keys msgpack cannot hold: [key, value, key, value, ...]
    TEXT = 3  # a str with lone surrogates
    INT = 4  # beyond 64 bits
    BYTEARRAY = 5
    SET = 6
    FROZENSET = 7
    DEQUE = 8
    DEFAULTDICT = 9
    ORDERED_DICT = 10
    COUNTER = 11
    CHAIN_MAP = 12
    RANGE = 13
    SLICE = 14
    COMPLEX = 15
    DATETIME = 16
    DATE = 17
    TIME = 18
    TIMEDELTA = 19
    TIMEZONE = 20
    ZONE_INFO = 21
    DECIMAL = 22
    FRACTION = 23
    UUID = 24
    PURE_POSIX_PATH = 25
    PURE_WINDOWS_PATH = 26
    POSIX_PATH = 27
    WINDOWS_PATH = 28
    IPV4_ADDRESS = 29
    IPV6_ADDRESS = 30
    IPV4_NETWORK = 31
    IPV6_NETWORK = 32
    IPV4_INTERFACE = 33
    IPV6_INTERFACE = 34
    PATTERN = 35
    MAPPING_PROXY = 36
    ELLIPSIS = 37
    ENUM = 40  # [type name, member name]
    FLAG = 41  # [type name, value]
    OBJECT = 42  # [type name, {field: value}] or [type name, {field: value}, {"more", "unset", "base"}]
    NAMED_TUPLE = 43  # [type name, {field: value}]
    MODEL = (
        44  # [type name, {field: value}, [fields set] or None] or the same and {"extra", "private", "more", "unset"}
    )
    CUSTOM = 45  # [type name, what its dump() returned]
    ARRAY = 46  # [dtype, shape, Fortran order, bytes]
    ARRAY_SCALAR = 47  # [dtype, bytes]


class Refused(Exception):
    """A value cannot be written. `reason` completes the sentence "which cannot be stored exactly"."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class TooDeep(Refused):
    """A value nests deeper than the format allows."""

    def __init__(self) -> None:
        super().__init__(f": it nests more than {NATIVE_LEVELS} lists and dicts, or {MAX_LEVELS} typed values")


class Unbuildable(Exception):
    """A stored value is sound, and nothing listed can rebuild it. `payload` is what the hook for unknown types gets."""

    def __init__(self, type_name: str, payload: Any, problem: str = "") -> None:
        super().__init__(type_name, problem)
        self.type_name = type_name
        self.payload = payload
        self.problem = problem


class Malformed(ValueError):
    """A payload does not have the shape of its kind."""


class NestsTooDeep(Malformed):
    """A record nests deeper than any that was written."""
