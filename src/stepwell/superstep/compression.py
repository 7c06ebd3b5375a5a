"""Bodies and large values as zstd frames, told from others by their first byte, so that they are read whatever is asked
for now.

No body and no large value begins with that byte of its own: a body is a list, and nil is no large value.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from stepwell.errors import CorruptRecordError, ZstdMissingError

FLAG = b"\xc0"
_LEVEL = 3


@functools.cache
def zstd() -> Any:
    """Return the module that compresses: the standard library's from Python 3.14 on. ZstdMissingError without one."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ZstdMissingError


def is_compressed(data: bytes) -> bool:
    """Tell whether these bytes are a compressed body or value."""
    return data[:1] == FLAG


def compress(data: bytes) -> bytes:
    """Return the bytes compressed, or as they are where that makes them no shorter or was done before."""
    if is_compressed(data):
        return data
    made: bytes = FLAG + zstd().compress(data, _LEVEL)
    return made if len(made) < len(data) else data


def plain(data: bytes, record: str = "value") -> bytes:
    """Return the bytes as they were before `compress`. CorruptRecordError for a frame that is none."""
    if not is_compressed(data):
        return data
    library = zstd()
    try:
        made: bytes = library.decompress(data[1:])
    except library.ZstdError as error:
        raise CorruptRecordError(record=record, reason=f"it cannot be decompressed: {error}") from error
    return made
