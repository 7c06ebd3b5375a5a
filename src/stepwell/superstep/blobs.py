"""Large values apart from the bodies they belong to: a body then holds a reference, an extension with the value's name.

Equal values of a thread have equal names, so that one is stored once however often it is written. What is moved out is
any run of bytes in a body that is longer than `ABOVE`: a body holds no other bytes than users' values. The rule: a
reference stands exactly where the bytes would, so no layout knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ormsgpack

from stepwell.superstep.compression import is_compressed, plain

ABOVE = 8192
"""Bytes above which a value is stored apart. Below, a row of its own costs more than the value can save."""
TAG = 0x62
NAME_BYTES = 16

_MARK = bytes((0xD8, TAG))
"""How msgpack begins every reference. Other bytes may look so by chance."""


class BlobRef:
    """Stands for bytes that are stored apart."""

    __slots__ = ("name",)

    def __init__(self, name: bytes) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"BlobRef({self.name.hex()})"


def reference(tag: int, data: bytes) -> BlobRef:
    """Return the reference that an extension is. Raises ValueError where it is none."""
    if tag != TAG or len(data) != NAME_BYTES:
        raise ValueError("an extension that no body holds")
    return BlobRef(bytes(data))


def pack(parts: Any) -> bytes:
    """Return a body, which may hold references."""
    return ormsgpack.packb(parts, _extension, ormsgpack.OPT_NON_STR_KEYS)


def _extension(found: Any) -> ormsgpack.Ext:
    if type(found) is not BlobRef:
        raise TypeError(f"a body holds a {type(found).__name__}")
    return ormsgpack.Ext(TAG, found.name)


def apart(body: bytes, put: Callable[[bytes], bytes]) -> bytes:
    """Return a body with its large values moved out: `put` stores one and returns its name."""
    parts = ormsgpack.unpackb(plain(body), ext_hook=reference, option=ormsgpack.OPT_NON_STR_KEYS)
    return pack(_moved(parts, put))


def _moved(part: Any, put: Callable[[bytes], bytes]) -> Any:
    kind = type(part)
    if kind is bytes:
        return BlobRef(put(part)) if len(part) > ABOVE else part
    if kind is list:
        return [_moved(each, put) for each in part]
    if kind is dict:
        return {key: _moved(each, put) for key, each in part.items()}
    return part


def whole(body: bytes, values: Mapping[bytes, bytes]) -> bytes:
    """Return a body with these values, by name, in the place of what stands for them. KeyError for one that is not
    among them."""
    parts = ormsgpack.unpackb(plain(body), ext_hook=reference, option=ormsgpack.OPT_NON_STR_KEYS)
    return pack(_put_back(parts, values))


def _put_back(part: Any, values: Mapping[bytes, bytes]) -> Any:
    kind = type(part)
    if kind is BlobRef:
        return values[part.name]
    if kind is list:
        return [_put_back(each, values) for each in part]
    if kind is dict:
        return {key: _put_back(each, values) for key, each in part.items()}
    return part


def is_apart(part: Any) -> bool:
    """Tell whether something only stands for bytes that are stored apart."""
    return type(part) is BlobRef


def kinds_of(parts: Sequence[Any]) -> tuple[type, ...]:
    """Return the types of the parts of a body: what stands for bytes counts as them."""
    return tuple([bytes if type(part) is BlobRef else type(part) for part in parts])


def names_in(body: bytes) -> set[bytes]:
    """Return the names of the values that a body refers to."""
    body = plain(body)
    if _MARK not in body:
        return set()
    return names_of(ormsgpack.unpackb(body, ext_hook=reference, option=ormsgpack.OPT_NON_STR_KEYS))


def names_of(part: Any) -> set[bytes]:
    """Return the names of the values that a part of an opened body refers to."""
    found: set[bytes] = set()
    _find(part, found)
    return found


def _find(part: Any, found: set[bytes]) -> None:
    if type(part) is BlobRef:
        found.add(part.name)
    elif type(part) is list:
        for each in part:
            _find(each, found)
    elif type(part) is dict:
        for each in part.values():
            _find(each, found)


def may_refer(bodies: Iterable[bytes]) -> bool:
    """Tell whether any of these bodies can hold a reference, without opening one."""
    return any(_MARK in body or is_compressed(body) for body in bodies)
