"""How deep values and bytes nest, and whether a value hides a buffer.

Here: the measurements that keep ormsgpack's native recursion within the C stack and its silent bytearray-to-bytes
conversion out of the format. Not here: what follows from them. Rule kept: nothing in this file recurses, and each walk
runs at C speed level by level.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any, Final

from stepwell.codec.kinds import NATIVE_LEVELS, Malformed

_WALKED: Final = frozenset({dict, list})
_BUFFERS: Final = frozenset({bytearray, memoryview})
_HEADERS: Final = bytes([*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF])
_WIDTH: Final = {  # byte -> (bytes that hold a length, 0 if none; bytes that follow whatever the length)
    0xC0: (0, 0), 0xC2: (0, 0), 0xC3: (0, 0),
    0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
    0xCA: (0, 4), 0xCB: (0, 8), 0xCC: (0, 1), 0xCD: (0, 2), 0xCE: (0, 4), 0xCF: (0, 8),
    0xD0: (0, 1), 0xD1: (0, 2), 0xD2: (0, 4), 0xD3: (0, 8),
    0xD4: (0, 2), 0xD5: (0, 3), 0xD6: (0, 5), 0xD7: (0, 9), 0xD8: (0, 17),
    0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0),
}  # fmt: skip


def holds_buffer(value: Any) -> bool:
    """Whether the lists and dicts of `value` hold a bytearray or memoryview, which msgpack cannot tell from bytes."""
    level = [value]
    while level:
        kinds = set(map(type, level))
        if not kinds.isdisjoint(_BUFFERS):
            return True
        if kinds.isdisjoint(_WALKED):
            return False
        level = _below(level)
    return False


def levels(value: Any) -> int:
    """Count the lists and dicts nested in each other, up to one more than the format allows."""
    depth, level = 0, [value]
    while depth <= NATIVE_LEVELS and not _WALKED.isdisjoint(map(type, level)):
        level = list({id(item): item for item in _below(level)}.values())
        depth += 1
    return depth


def _below(level: Iterable[Any]) -> list[Any]:
    return gc.get_referents(*[item for item in level if type(item) in _WALKED])


def stored_levels(data: bytes, enough: int) -> int:
    """Bound the native nesting of packed bytes: a cheap upper bound if it is at most `enough`, else the count."""
    bound = len(data) - len(data.translate(None, _HEADERS))
    return bound if bound <= enough else _measured(data)


def _measured(data: bytes) -> int:
    """Walk the headers of one packed value without building anything."""
    at, deepest = 0, 0
    open_items = [1]
    while open_items:
        if open_items[-1] == 0:
            open_items.pop()
            continue
        open_items[-1] -= 1
        at, items = _header(data, at)
        if items >= 0:
            open_items.append(items)
            deepest = max(deepest, len(open_items) - 1)
    return deepest


def _header(data: bytes, at: int) -> tuple[int, int]:
    """Return where the next header stands, and how many items this one opens (-1 if it is no container)."""
    if at >= len(data):
        raise Malformed("it ends too early")
    byte = data[at]
    at += 1
    if byte < 0x80 or byte >= 0xE0:
        return at, -1
    if byte < 0xA0:
        return at, (byte & 0x0F) * (2 if byte < 0x90 else 1)
    if byte < 0xC0:
        return at + (byte & 0x1F), -1
    if byte >= 0xDC:
        width = 2 if byte in (0xDC, 0xDE) else 4
        return at + width, int.from_bytes(data[at : at + width]) * (2 if byte >= 0xDE else 1)
    if byte not in _WIDTH:
        raise Malformed(f"{byte:#x} starts no value")
    width, follow = _WIDTH[byte]
    return at + width + int.from_bytes(data[at : at + width]) + follow, -1
