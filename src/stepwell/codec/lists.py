"""Bytes of values into the bytes of their list, without decoding one.

Here: what msgpack makes of a list, and the frame around it. Rule kept: `Codec.loads` gives the list of what it gives
for each, and needs to know nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stepwell.codec.codec import TRAILER, framed
from stepwell.errors import CorruptRecordError

_SHORT, _SHORT_END, _WIDE, _WIDEST = 0x90, 0xA0, 0xDC, 0xDD
_FITS_SHORT: Final = 1 << 4
_FITS_WIDE: Final = 1 << 16


def joined(parts: Iterable[bytes | list[bytes]]) -> bytes:
    """Return the bytes of the list of these values. A part that is `[data]` stands for the elements of the list that
    `data` is the bytes of."""
    count, bodies = 0, []
    for part in parts:
        if type(part) is list:
            many, start = _header(part[0])
            count += many
            bodies.append(part[0][start:-TRAILER])
        else:
            count += 1
            bodies.append(part[:-TRAILER])  # type: ignore[arg-type]
    return framed(b"".join([_header_of(count), *bodies]))


def _header(data: bytes) -> tuple[int, int]:
    """Return how many elements a list has, and where the first begins."""
    first = data[0]
    if _SHORT <= first < _SHORT_END:
        return first - _SHORT, 1
    if first == _WIDE:
        return int.from_bytes(data[1:3], "big"), 3
    if first == _WIDEST:
        return int.from_bytes(data[1:5], "big"), 5
    raise CorruptRecordError(record="a list of writes", reason="its bytes are not those of a list")


def _header_of(count: int) -> bytes:
    if count < _FITS_SHORT:
        return bytes((_SHORT + count,))
    if count < _FITS_WIDE:
        return bytes((_WIDE,)) + count.to_bytes(2, "big")
    return bytes((_WIDEST,)) + count.to_bytes(4, "big")
